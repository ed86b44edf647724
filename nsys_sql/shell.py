"""An interactive shell over a model: the stock DuckDB program where it is installed, else ours."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from nsys_sql import humanize, interrupts, output, render
from nsys_sql.adapt import literal
from nsys_sql.catalog import Column
from nsys_sql.docs import recipes_in_order
from nsys_sql.errors import NsysSqlError, UsageError
from nsys_sql.formats import Report

if TYPE_CHECKING:
    from nsys_sql.session import Model

# The stock program takes no dot command of ours, so what `.recipes` and `.run` do is a query there.
_HINTS = (
    "FROM recipes; lists the questions, FROM budget; answers one, FROM notes; tells its limits.",
    "SET VARIABLE top = 5; sets a parameter. .tables and .help are those of the duckdb program;",
    "nsys-sql shell --builtin has .recipes, .run, .schema and .set instead.",
)
_PROMPT, _MORE = "nsys-sql> ", "     ...> "
_HISTORY_LINES = 5000
_HELP = """\
A query ends with a semicolon and may take several lines. It reads the relations, steps and recipes,
with or without `nsys.`; a recipe is read under its name with _ for -, as in FROM budget_windows;

.recipes              the recipes, with the questions they answer
.run RECIPE           a recipe as `nsys-sql run` prints it, with its checks and notes
.tables [TEXT]        relations and steps, those whose names hold TEXT
.schema NAME          the columns of a relation, step or recipe
.set NAME VALUE       a parameter, like SET VARIABLE NAME = VALUE; .set shows them
.unset NAME           back to the default
.help                 this text
.quit                 leave; so does the end of the input"""
_KEYWORDS = (
    "AND", "AS", "ASOF", "BETWEEN", "BY", "CASE", "COUNT", "DESC", "DESCRIBE", "DISTINCT", "ELSE",
    "END", "EXCLUDE", "FILTER", "FROM", "GROUP", "HAVING", "IN", "IS", "JOIN", "LEFT", "LIKE",
    "LIMIT", "MEDIAN", "NOT", "NULL", "ON", "OR", "ORDER", "OVER", "PARTITION", "QUALIFY",
    "SELECT", "SUM", "SUMMARIZE", "THEN", "UNION", "USING", "WHEN", "WHERE", "WITH",
)  # fmt: skip
_COMMANDS = (".help", ".quit", ".recipes", ".run", ".schema", ".set", ".tables", ".unset")
# What may hide a semicolon, then the semicolon itself, then what is not closed yet.
_TOKEN = re.compile(
    r"--[^\n]*(?:\n|\Z)|/\*.*?\*/|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\$\$.*?\$\$"
    r"|(?P<end>;)|(?P<open>'|\"|/\*|\$\$)",
    re.DOTALL,
)
_SET = re.compile(r"\s*SET\s+VARIABLE\s+(\w+)\s*(?:=|\bTO\b)\s*(.+)\Z", re.IGNORECASE | re.DOTALL)
_RESET = re.compile(r"\s*RESET\s+VARIABLE\s+(\w+)\s*\Z", re.IGNORECASE)


def split(text: str) -> tuple[list[str], str]:
    """The finished statements of a text, without their semicolons, and what is left.

    >>> split("SELECT ';' AS a; -- b;\\nFROM x")
    (["SELECT ';' AS a"], ' -- b;\\nFROM x')
    """
    found, start = [], 0
    for token in _TOKEN.finditer(text):
        if token["open"]:
            break
        if token["end"]:
            found.append(text[start : token.start()].strip())
            start = token.end()
    return [each for each in found if each], text[start:]


def is_blank(text: str) -> bool:
    """Whether there is nothing but space and comments."""
    return not re.sub(r"--[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL).strip()


# ---------------------------------------------------------------- the stock program


def stock() -> str | None:
    """The DuckDB program: on PATH, or beside this Python as its package on PyPI puts it."""
    beside = Path(sys.executable).with_name("duckdb")
    return shutil.which("duckdb") or (str(beside) if os.access(beside, os.X_OK) else None)


def start(program: str, database: Path, settings: Mapping[str, object] | None = None) -> int:
    """Run the stock program on a built database, read-only; return its exit code.

    `settings` are those of DuckDB's that the user gave; what is None is left to the program.
    """
    command = [program, "-readonly", "-cmd", "SET search_path = 'main,nsys'"]
    for name, value in (settings or {}).items():
        if value is not None:
            command += ["-cmd", f"SET {name} = {literal(str(value))}"]
    if output.is_terminal(sys.stdin) and output.is_terminal(sys.stdout):
        command += [part for line in _HINTS for part in ("-cmd", f".print {line}")]
    # Ctrl-C reaches both of us, and is for the query that runs there. A handler, unlike a signal
    # that is ignored, is not inherited.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        return subprocess.run([*command, str(database)], check=False).returncode
    finally:
        signal.signal(signal.SIGINT, before)


# ---------------------------------------------------------------- our own


class Shell:
    """Statements and dot commands over one model; `write` takes text, `read` gives lines."""

    def __init__(
        self,
        model: Model,
        write: Callable[[str], None],
        read: Callable[[str], str] = input,
        width: int = 120,
        limit: int = 200,
    ) -> None:
        self.model = model
        self.write = write
        self.complain = write
        self.read = read
        self.width = width
        self.limit = limit
        self.variables: dict[str, object] = {}
        self.is_done = False
        catalog = model.catalog
        self.relations = sorted({*catalog.adapters, *catalog.steps, "capability"})
        self.recipes = sorted(name.replace("-", "_") for name in catalog.recipes)

    def loop(self, stop_on_error: bool) -> int:
        """Read until the end; with `stop_on_error`, as for a script, until the first error."""
        pending = ""
        if not stop_on_error:
            interrupts.lives_on()
        while not self.is_done:
            try:
                line = self.read(_MORE if pending else _PROMPT)
            except EOFError:
                break
            except KeyboardInterrupt:
                interrupts.handled()
                pending = ""
                self.write("\n")
                continue
            except UsageError as error:  # the line is no text
                if stop_on_error:
                    raise
                self.complain(f"Error: {error.told}\n")
                continue
            if not pending and line.lstrip().startswith("."):
                statements, pending = [line.strip()], ""
            else:
                statements, pending = split(f"{pending}{line}\n")
                pending = "" if is_blank(pending) else pending
            if (code := self._all(statements)) and stop_on_error:
                return code
        if not is_blank(pending) and not self.is_done:
            return self._all([pending]) if stop_on_error else 0
        return 0

    def _all(self, statements: Iterable[str]) -> int:
        for statement in statements:
            try:
                self.execute(statement)
            except NsysSqlError as error:
                self.complain(f"Error: {humanize.clean(error.told)}\n")
                return error.exit_code
            except KeyboardInterrupt:
                interrupts.handled()
                self.write("interrupted\n")
                return 130
            except RuntimeError as error:  # DuckDB's name for Ctrl-C in a query
                if "nterrupt" not in str(error):
                    raise
                interrupts.handled()
                self.write("interrupted\n")
                return 130
        return 0

    def execute(self, statement: str) -> None:
        """One dot command, or one statement without its semicolon."""
        if statement.startswith("."):
            name, _, rest = statement.rstrip(";").partition(" ")
            self._command(name, rest.strip())
        elif found := _SET.match(statement):
            query = f"SELECT ({found[2]}\n) AS value"
            value = self.model.query(query, (), **self.variables).fetchone()
            self.variables[found[1].lower()] = value[0] if value else None
        elif found := _RESET.match(statement):
            self.variables.pop(found[1].lower(), None)
        else:
            relation = self.model.query(statement, (), **self.variables)
            columns = [
                Column(name, str(kind), humanize.unit_of(name), "")
                for name, kind in zip(relation.columns, relation.types, strict=True)
            ]
            self._table(columns, self.model.rows(relation))

    def _table(self, columns: Iterable[Column], rows: list[tuple[object, ...]]) -> None:
        self.write(render.listing(list(columns), rows, self.width, self.limit) + "\n")

    # ------------------------------------------------------------ dot commands

    def _command(self, name: str, rest: str) -> None:
        if name in (".quit", ".exit", ".q"):
            self.is_done = True
        elif name == ".help":
            self.write(_HELP + "\n")
        elif name == ".recipes":
            wide = max(map(len, self.recipes))
            for recipe in recipes_in_order(self.model.catalog):
                question = humanize.clean(recipe.question)
                self.write(f"{recipe.name.replace('-', '_').ljust(wide)}  {question}\n")
        elif name == ".run":
            self._run(rest)
        elif name == ".tables":
            names = [each for each in self.relations if rest.lower() in each]
            self.write("\n".join(names) + "\n" if names else "(none)\n")
        elif name == ".schema":
            self._schema(rest)
        elif name == ".set":
            self._set(rest)
        elif name == ".unset":
            self.variables.pop(rest.lower(), None)
        else:
            raise UsageError(f"there is no command {name}", hint=".help lists the commands")

    def _run(self, name: str) -> None:
        recipe = self.model.catalog.recipe(name)
        wanted = self.model.planner.parameters(recipe.name)
        given = {key: value for key, value in self.variables.items() if key in wanted}
        result = self.model.result(recipe.name, **given)
        report = Report(
            recipe.name, "", {"path": str(self.model.trace.path)}, question=recipe.question,
            columns=result.columns, rows=result.rows, checks=result.checks, notes=result.notes,
        )  # fmt: skip
        self.write(render.table(report, self.width, self.limit))

    def _schema(self, name: str) -> None:
        catalog = self.model.catalog
        plain = name.lower().removeprefix("nsys.")
        file = (
            catalog.adapters.get(plain)
            or catalog.steps.get(plain)
            or catalog.recipe(name)  # its error says what is near
        )
        self.write(f"{humanize.clean(file.question)}\n")
        wide = max((len(column.name) for column in file.columns), default=0)
        for column in file.columns:
            told = humanize.clean(column.description)
            self.write(f"  {column.name.ljust(wide)}  {column.type:<8}  {told}\n")

    def _set(self, rest: str) -> None:
        name, _, value = rest.replace("=", " ", 1).partition(" ")
        if not name:
            for key, known in sorted(self.variables.items()):
                self.write(f"{key} = {humanize.clean(str(known))}\n")
        elif not value.strip() or not name.isidentifier():
            raise UsageError(".set takes a name and a value", hint="for example .set top 5")
        else:
            self.variables[name.lower()] = value.strip().strip("'")

    # ------------------------------------------------------------ completion

    def complete(self, line: str, word: str) -> list[str]:
        """What `word`, the end of `line`, may become."""
        if line.lstrip().startswith("."):
            if line.lstrip() == word:
                return [each for each in _COMMANDS if each.startswith(word)]
            names = [*self.recipes, *self.relations]
            return [each for each in names if each.startswith(word)]
        prefix, dot, last = word.rpartition(".")
        if prefix == "nsys":
            found = self.relations
        elif dot:  # an alias or a relation: any column may follow
            found = self._columns(prefix)
        else:
            keywords = [each if word.isupper() else each.lower() for each in _KEYWORDS]
            found = [*self.relations, *self.recipes, *self._columns(""), *keywords, "nsys."]
        return sorted({f"{prefix}{dot}{each}" for each in found if each.startswith(last)})

    def _columns(self, relation: str) -> list[str]:
        catalog = self.model.catalog
        files = {**catalog.recipes, **catalog.steps, **catalog.adapters}
        one = files.get(relation) or files.get(relation.replace("_", "-"))
        return [column.name for file in ([one] if one else files.values())
                for column in file.columns]  # fmt: skip


def history_file() -> Path:
    """Where the lines of earlier sessions are kept: in the user's state folder."""
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "nsys-sql" / "history"


@contextmanager
def editing(shell: Shell) -> Iterator[None]:
    """Line editing with history and completion, where Python has readline."""
    try:
        import readline
    except ImportError:
        yield
        return
    file = history_file()
    found: list[str] = []

    def complete(word: str, number: int) -> str | None:
        nonlocal found
        if number == 0:
            found = shell.complete(readline.get_line_buffer()[: readline.get_endidx()], word)
        return found[number] if number < len(found) else None

    before = readline.get_completer(), readline.get_completer_delims()
    readline.set_completer(complete)
    readline.set_completer_delims(" \t\n\"'`@$><=;|&{}(),+-*/[]")
    readline.parse_and_bind("tab: complete")
    with suppress(OSError):
        readline.read_history_file(file)
    try:
        yield
    finally:
        readline.set_completer(before[0])
        readline.set_completer_delims(before[1])
        with suppress(OSError):
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            readline.set_history_length(_HISTORY_LINES)
            readline.write_history_file(file)
            file.chmod(0o600)
