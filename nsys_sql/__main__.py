"""`python -m nsys_sql` is `nsys-sql`."""

from nsys_sql.cli import main

main()
