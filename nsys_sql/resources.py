"""Where the SQL files and recipes.yaml are: inside a wheel, or beside the package in a checkout."""

from __future__ import annotations

from pathlib import Path

from nsys_sql.errors import NsysSqlError


def root() -> Path:
    """Return the directory that holds `sql/` and `recipes.yaml`."""
    package = Path(__file__).resolve().parent
    for candidate in (package, package.parent):
        if (candidate / "sql" / "adapters").is_dir():
            return candidate
    raise NsysSqlError(
        f"the SQL files of nsys-sql are missing: neither {package} nor {package.parent} holds sql/",
        hint="install the package again, or run it from a complete checkout",
    )
