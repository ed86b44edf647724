"""From a recipe to the statements that answer it: pure, and the same for `run` and `show`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from nsys_sql import macros as macro_files
from nsys_sql import narrow, scrub
from nsys_sql.adapt import CATALOG, Use, adapt, literal, quote, uses
from nsys_sql.catalog import Catalog, SqlFile, near
from nsys_sql.errors import NsysSqlError, UsageError
from nsys_sql.options import Options, param_value

SCHEMA = "nsys"
ANCHOR_STEPS = ("anchor_candidate", "anchor_choice")
# What a plan keeps even where a later step is stored: errors are worded from them.
_TOLD = (*ANCHOR_STEPS[1:], "iteration", "steady", "call_site_thread")
# What a run that drops its steps keeps.
_KEPT = frozenset({*_TOLD, "drive"})
# Where the choice of the anchor, a row of anchor_choice, goes.
_CHOSEN = {
    "anchor_kind": "kind",
    "anchor_pattern": "pattern",
    "per_iteration": "per_iteration",
    "anchor_message": "message",
}

# Why a relation may be absent, and how to capture again so that it is there.
_CUDA = ("it was captured without CUDA tracing, or no such operation ran", "--trace=cuda,nvtx")
# The same where CUDA calls are in the trace: recipe capture counts launches of graphs without rows.
_CALLS_ONLY = (
    "CUDA calls were traced, but no kernel ran, or all of them in CUDA graphs of which this "
    "export has no row (recipe capture)",
    "--trace=cuda,nvtx --cuda-graph-trace=node",
)
_NOT_CAPTURED = {
    "kernel": ("it was captured without CUDA tracing, or no kernel ran", "--trace=cuda,nvtx"),
    "memcpy": _CUDA,
    "memset": _CUDA,
    "sync": _CUDA,
    "api_call": ("it was captured without CUDA tracing", "--trace=cuda,nvtx"),
    "cuda_event": (
        "it was captured without CUDA event tracing, or the program records no events",
        "--trace=cuda,nvtx --cuda-event-trace=true",
    ),
    "graph_exec": (
        "no CUDA graph was traced as a whole",
        "--trace=cuda,nvtx --cuda-graph-trace=graph",
    ),
    "nvtx": (
        "it was captured without NVTX tracing, or the program has no NVTX ranges",
        "--trace=cuda,nvtx",
    ),
    "osrt_call": ("it was captured without OS runtime tracing", "--trace=cuda,nvtx,osrt"),
    "gpu_metric": ("no hardware counters were sampled", "--gpu-metrics-devices=all"),
    "gpu_metric_info": ("no hardware counters were sampled", "--gpu-metrics-devices=all"),
    "sched_event": ("thread scheduling was not recorded", "--cpuctxsw=process-tree"),
}
# Steps whose rows the caller gives: what is missing without them, and the option that brings them.
_GIVEN = {
    "reference_step": (
        "it compares with unprofiled steps of the same run, and none were given",
        "--reference-steps with a trainer log, or durations like 29.39s,29.41s",
    ),
    "call_site": (
        "it needs the call sites of the launches, from a call-stack capture of its own",
        "--callsites FILE with the columns rank, thread, launch ordinal and call site",
    ),
    "metric_given": ("no metrics of another capture were given", "--metrics-from TRACE"),
}
_GET = re.compile(r"getvariable\(\s*'(\w+)'\s*\)", re.IGNORECASE)
# The relation of all strings, and that of those which name something.
STRINGS, _NAMED = "string", "named_string"
_SOURCE = re.compile(rf'\b{CATALOG}\."(\w+)"')


@dataclass(frozen=True, slots=True)
class Shape:
    """What one trace holds: {table: {column: DuckDB type}}, and which tables are rebuilt.

    `relations` is set for a database that `build` made: {canonical relation: (whether the trace
    had it, its columns)}; `stored` are the keys of what stands in it as a table. Only an SQLite
    file can be scrubbed.
    """

    tables: Mapping[str, Mapping[str, str]]
    scrubbed: frozenset[str] = frozenset()
    relations: Mapping[str, tuple[bool, tuple[str, ...]]] | None = None
    stored: Mapping[str, str] = field(default_factory=dict)
    can_scrub: bool = True

    def find(self, table: str) -> str | None:
        """The trace's own name of a table: equal without case, else its highest _V<n>."""
        return _table_names(tuple(self.tables)).get(table.lower())

    def has(self, table: str, column: str | None = None) -> bool:
        """Whether the trace has a table, or a column of it."""
        actual = self.find(table)
        if actual is None or column is None:
            return actual is not None
        return column.lower() in {name.lower() for name in self.tables[actual]}


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a plan.

    kind: schema, setting, variable, macro, scrub, table, view, step, stored (a step taken from a
    built database), recipe. `name` is what it makes or sets. `sql` has no final semicolon. `key`
    changes when the outcome would; `tables` are the source tables of the trace it ends up reading,
    `file` is where its text comes from.
    """

    kind: str
    name: str
    sql: str
    comment: str = ""
    key: str = ""
    tables: tuple[str, ...] = ()
    file: SqlFile | None = None

    @property
    def form(self) -> str:
        """VIEW or TABLE, for a statement that makes one."""
        return "VIEW" if self.sql.startswith("CREATE OR REPLACE VIEW") else "TABLE"


@lru_cache(maxsize=8)
def _table_names(tables: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, tuple[int, str]] = {}
    for table in tables:
        suffix = re.fullmatch(r"(.+)_V([0-9]+)", table, re.IGNORECASE)
        if suffix:
            base, version = suffix[1].lower(), int(suffix[2])
            if version > found.get(base, (-1, ""))[0]:
                found[base] = (version, table)
    names = {base: table for base, (_, table) in found.items()}
    names.update({table.lower(): table for table in tables})
    return names


@lru_cache(maxsize=256)
def source_tables(file: SqlFile) -> tuple[str, ...]:
    """The source tables an adapter names, without parsing it."""
    return tuple(dict.fromkeys(_SOURCE.findall(file.body)))


@lru_cache(maxsize=256)
def adapter_uses(file: SqlFile) -> tuple[Use, ...]:
    """The source tables an adapter reads, with columns and expected types."""
    return uses(file.body, file.optional, file.columns, file.label)


def result_name(recipe: SqlFile) -> str:
    """The relation under which audits and notes find a recipe's result."""
    return "result_" + recipe.name.replace("-", "_")


def failing(recipe: SqlFile, reason: str) -> str:
    """A query with the recipe's columns that says why there is no answer when it is read."""
    columns = ",\n".join(f"    CAST(NULL AS {each.type}) AS {each.name}" for each in recipe.columns)
    return f"SELECT\n{columns}\nWHERE error({literal(reason)}) IS NULL"


def not_captured(relations: Sequence[str], has_calls: bool = False) -> tuple[str, str | None]:
    """What to say, and to do, about a need that a trace does not meet (any of `relations`).

    With `has_calls` CUDA was traced, and only the device side is missing.
    """
    if relations[0] in _GIVEN:
        why, option = _GIVEN[relations[0]]
        return why, f"give {option}"
    other = "".join(f", or give {_GIVEN[each][1]}" for each in relations if each in _GIVEN)
    relations = [each for each in relations if each not in _GIVEN]
    noun = " and no ".join(each.replace("_", " ") for each in relations)
    why, flags = _NOT_CAPTURED.get(relations[0], ("it was not captured, or not exported", ""))
    if has_calls and relations[0] == "kernel":
        why, flags = _CALLS_ONLY
    hint = f"re-capture with `nsys profile {flags}`{other}" if flags else None
    return f"this export has no {noun} table: {why}", hint


def script(statements: Iterable[Statement]) -> str:
    """The statements as one commented script."""
    parts = []
    for statement in statements:
        comment = f"-- {statement.name} — {statement.comment}\n" if statement.comment else ""
        parts.append(f"{comment}{statement.sql};\n")
    return "\n".join(parts)


@dataclass(slots=True)
class _Ledger:
    """Keys and source tables of what a plan makes, recorded as it is made."""

    values: dict[str, str]
    keys: dict[str, str] = field(default_factory=dict)
    tables: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def record(
        self,
        name: str,
        sql: str,
        inputs: Iterable[str] = (),
        variables: Iterable[str] = (),
        tables: Iterable[str] = (),
    ) -> str:
        """Give `name` the key of its text, its variables' values and what it reads."""
        inputs = sorted(inputs)
        parts = [sql, *(f"{each}={self.values.get(each, '')}" for each in sorted(variables))]
        parts += [self.keys.get(each, "") for each in inputs]
        self.keys[name] = hashlib.sha1("\0".join(parts).encode()).hexdigest()
        reached = set(tables).union(*(self.tables.get(each, ()) for each in inputs))
        self.tables[name] = tuple(sorted(reached))
        return self.keys[name]


@dataclass(frozen=True, slots=True)
class Planner:
    """Everything that stays the same over the plans of one opened trace.

    `taxonomy` gives the macros made from the taxonomy's rules, when they are needed; `given` are
    the queries that make the steps whose rows the caller brought. With `is_lazy`, steps that a
    recipe's parameter decides are views, for whoever sets the variable later. With `shows_strings`
    the strings of the trace are handed out, not only looked up by the steps: those that name
    something alone, which costs a look at every row that may point at one.
    """

    catalog: Catalog
    shape: Shape
    options: Options
    taxonomy: Callable[[], Sequence[str]] = tuple
    schema: str = SCHEMA
    alias: str = CATALOG
    all_tables: bool = False
    given: Mapping[str, str] = field(default_factory=dict)
    is_lazy: bool = False
    shows_strings: bool = False

    # ------------------------------------------------------------------ names

    def retarget(self, sql: str) -> str:
        """The same SQL in the caller's schema."""
        return sql if self.schema == SCHEMA else re.sub(rf"\b{SCHEMA}\.", f"{self.schema}.", sql)

    def adapter(self, name: str) -> SqlFile:
        """The adapter of a relation: the first variant whose conditions hold, else the newest."""
        for variant in self.catalog.variants.get(name, ()):
            if all(
                self.shape.has(when.table, when.column) == when.is_present for when in variant.when
            ):
                return variant
        return self.catalog.adapters[name]

    def is_present(self, relation: str) -> bool:
        """Whether the trace has the source table of a relation, or the caller gave its rows."""
        if relation in self.catalog.steps:
            return relation in self.given
        if self.shape.relations is not None:
            return self.shape.relations.get(relation, (False, ()))[0]
        table = self.adapter(relation).source_table
        return table is not None and self.shape.has(table)

    def macros(self) -> dict[str, macro_files.Macro]:
        """Every macro by name."""
        return macro_files.collect(self.catalog.macros.values(), self.taxonomy())

    def parameters(self, recipe: str) -> frozenset[str]:
        """The names of the parameters that a recipe and the steps under it take."""
        files = self.recipes([recipe], audit=True)
        needed = self.closure((file.label, name) for file in files for name in file.inputs)
        steps = (self.catalog.steps[name] for name in needed if name in self.catalog.steps)
        return frozenset(param.name for file in (*files, *steps) for param in file.params)

    def params(self, files: Iterable[SqlFile], given: Mapping[str, object]) -> dict[str, str]:
        """The parameters as SQL text; unknown or malformed ones are usage errors."""
        known = {param.name: param for file in files for param in file.params}
        values: dict[str, str] = {}
        for name, value in self.options.params.items():
            if name in known:
                values[name] = param_value(known[name], value)
        for name, value in given.items():
            if name not in known:
                listed = ", ".join(sorted(known)) or "none"
                raise UsageError(
                    f"there is no parameter {name!r} here",
                    hint=near(name, known) or f"parameters: {listed}",
                )
            values[name] = param_value(known[name], value)
        return values

    # ------------------------------------------------------------------ closure

    def closure(
        self, roots: Iterable[tuple[str, str]], stop: Iterable[str] = frozenset()
    ) -> set[str]:
        """All relations and macros that the (origin, name) pairs need, anchor steps included.

        What those in `stop` need is left out.
        """
        macros = self.macros()
        seen: set[str] = set()
        stack = list(roots)
        while stack:
            origin, name = stack.pop()
            if name in seen or name.startswith("result_"):
                continue
            seen.add(name)
            if name in stop:
                continue
            if name in self.catalog.steps:
                step = self.catalog.steps[name]
                stack += [(step.label, each) for each in step.inputs]
                if name == "iteration" and self.options.is_auto:
                    stack += [
                        (step.label, each) for each in ANCHOR_STEPS if each in self.catalog.steps
                    ]
            elif name in macros:
                stack += [(origin, each) for each in macros[name].calls]
            elif name not in self.catalog.adapters and name != "capability":
                raise NsysSqlError(
                    f"{origin} reads {SCHEMA}.{name}, which no adapter, step or macro makes",
                    hint=near(name, [*self.catalog.adapters, *self.catalog.steps, *macros]),
                )
        return seen

    def recipes(self, names: Iterable[str], audit: bool) -> list[SqlFile]:
        """The recipes with those whose results they, or their audits, read: dependencies first."""
        ordered: list[SqlFile] = []
        active: set[str] = set()

        def visit(name: str) -> None:
            file = self.catalog.recipe(name)
            if file in ordered:
                return
            if file.name in active:
                raise UsageError(
                    f"{file.label} depends on its own result, through the recipes that it reads",
                    hint="let one of them read less",
                )
            active.add(file.name)
            for other in self.audits(file) if audit else (file,):
                for each in other.inputs:
                    if each.startswith("result_") and each != result_name(file):
                        visit(each.removeprefix("result_"))
            active.discard(file.name)
            ordered.append(file)

        for name in names:
            visit(name)
        return ordered

    def audits(self, recipe: SqlFile) -> tuple[SqlFile, ...]:
        """The recipe's file with its notes and cross-recipe invariants."""
        entry = self.catalog.entry(recipe.name)

        def find(kind: str, files: Mapping[str, SqlFile], name: str) -> SqlFile:
            if name not in files:
                raise NsysSqlError(
                    f"recipes.yaml gives {recipe.name} the {kind} {name!r}, "
                    f"but there is no sql/{kind}s/{name}.sql",
                    hint=near(name, files),
                )
            return files[name]

        return (
            recipe,
            *(find("note", self.catalog.notes, name) for name in entry.notes),
            *(find("invariant", self.catalog.invariants, name) for name in entry.invariants),
        )

    # ------------------------------------------------------------------ plan

    def plan(
        self,
        names: Sequence[str] = (),
        params: Mapping[str, object] | None = None,
        audit: bool = False,
        also: Iterable[str] = (),
    ) -> tuple[Statement, ...]:
        """The statements that answer the recipes `names`, in order; the recipes come last.

        With `audit`, what their notes and cross-recipe invariants read is built too. `also` are
        further relations and macros to make.
        """
        recipes = self.recipes(names, audit)
        files = [each for file in recipes for each in (self.audits(file) if audit else (file,))]
        roots = [(file.label, name) for file in files for name in file.inputs]
        needed = self.closure([*roots, *(("the query", name) for name in also)])
        if self.shows_strings and STRINGS in needed:
            needed.add(_NAMED)
        steps = [self.catalog.steps[name] for name in self.catalog.order if name in needed]
        given = self.params([*steps, *files], params or {})
        options = self.options.variables()
        ledger = _Ledger(values={**options, **given})

        body = [*self._macros(needed, ledger)]
        if "capability" in needed:
            body.append(self._capability(ledger))
        tables = [
            *(
                s
                for each in sorted(needed & set(self.catalog.adapters))
                for s in self._adapter(each, ledger)
            ),
            *self._steps(steps, ledger),
        ]
        body += self._unordered(tables) if steps else tables
        body = self._unstored(body, [*roots, *(("", name) for name in also)])
        for file in recipes:
            sql = self.retarget(file.body)
            name = result_name(file)
            key = ledger.record(name, sql, file.inputs, file.variables)
            body.append(
                Statement("recipe", file.name, sql, file.question, key, ledger.tables[name], file)
            )
        used = {name for each in body if each.file for name in each.file.variables}
        used.update(name for file in files for name in file.variables)
        head = [
            Statement(
                "schema",
                self.schema,
                f"CREATE SCHEMA IF NOT EXISTS {self.schema}",
                "everything of nsys-sql lives in this schema",
            )
        ]
        for name, value in {**options, **given}.items():
            if name in used and (name in given or not value.startswith("NULL::")):
                comment = "parameter" if name in given else "option"
                head.append(Statement("variable", name, f"SET VARIABLE {name} = {value}", comment))
        return (*head, *body)

    def _unstored(
        self, body: Sequence[Statement], roots: Sequence[tuple[str, str]]
    ) -> list[Statement]:
        """The statements without those that only lead to a stored step."""
        stored = {each.name for each in body if each.kind == "stored"}
        if not stored:
            return list(body)
        told = [("", name) for name in _TOLD if name in stored]
        reached = self.closure([*roots, *told], stop=stored)
        steps = any(each.kind == "step" and each.name in reached for each in body)
        return [
            each
            for each in body
            if each.kind == "variable"
            or (each.kind == "setting" and steps)
            or (each.kind != "setting" and (each.name in reached or each.kind == "scrub"))
        ]

    def _macros(self, needed: set[str], ledger: _Ledger) -> Iterator[Statement]:
        for macro in macro_files.in_order(self.macros(), needed):
            sql = self.retarget(macro.sql)
            key = ledger.record(macro.name, macro.sql, macro.calls, macro.variables)
            comment = macro.file.question if macro.file else "generated from the taxonomy"
            yield Statement("macro", macro.name, sql, comment, key, (), macro.file)

    def _capability(self, ledger: _Ledger) -> Statement:
        if self.shape.relations is not None:
            return self._built_capability(self.shape.relations, ledger)
        rows = []
        for name in sorted(self.catalog.adapters):
            table = self.adapter(name).source_table
            shown = literal(table) if table else "NULL"
            rows.append(f"    ({literal(name)}, {shown}, {str(self.is_present(name)).lower()})")
        sql = (
            f"CREATE OR REPLACE TABLE {self.schema}.capability AS\n"
            "SELECT relation, source_table::VARCHAR AS source_table, is_present\nFROM (VALUES\n"
            + ",\n".join(rows)
            + "\n) AS c(relation, source_table, is_present)"
        )
        key = ledger.record("capability", sql)
        return Statement("table", "capability", sql, "which relations the trace has", key)

    def _built_capability(
        self, relations: Mapping[str, tuple[bool, tuple[str, ...]]], ledger: _Ledger
    ) -> Statement:
        sql = (
            f"CREATE OR REPLACE TABLE {self.schema}.capability AS\n"
            f"SELECT relation, source_table, is_present\nFROM {self.alias}.{SCHEMA}.capability"
        )
        # Relations that the version which built the file did not know.
        for name in sorted(self.catalog.adapters.keys() - relations.keys()):
            sql += f"\nUNION ALL\nSELECT {literal(name)}, NULL, false"
        key = self._stored_key("capability", sql, ledger)
        return Statement("table", "capability", sql, "which relations the trace has", key)

    def _stored_key(self, name: str, sql: str, ledger: _Ledger) -> str:
        """The key a relation had when its database was built, so that steps keep theirs."""
        key = ledger.record(name, sql)
        if name in self.shape.stored:
            key = ledger.keys[name] = self.shape.stored[name]
        return key

    def _adapter(self, name: str, ledger: _Ledger) -> Iterator[Statement]:
        if self.shape.relations is not None:
            yield self._built_relation(name, self.shape.relations, ledger)
            return
        file = self.adapter(name)
        tables: dict[str, Mapping[str, str]] = {}
        references: dict[str, str] = {}
        for use in adapter_uses(file):
            actual = self.shape.find(use.table)
            if actual is None:
                continue
            tables[use.table] = self.shape.tables[actual]
            if actual in self.shape.scrubbed or self.is_odd(actual):
                target = self.scrub_name(actual)
                references[use.table] = f"temp.{quote(target)}"
                sql = scrub.statement(target, self.alias, actual, self.used_columns(actual))
                key = ledger.record(f"scrub {actual}", sql, tables=(actual,))
                comment = f"{actual} holds values that DuckDB refuses"
                yield Statement("scrub", actual, sql, comment, key, (actual,))
            elif actual != use.table or self.alias != CATALOG:
                references[use.table] = f"{self.alias}.{quote(actual)}"
        sql = adapt(file.body, tables, file.optional, references, file.columns, file.label)
        inputs: tuple[str, ...] = ()
        if name == STRINGS and self.shows_strings:
            inputs = (_NAMED,)
            sql = f"SELECT s.*\nFROM (\n{sql}\n) AS s\nSEMI JOIN {self.schema}.{_NAMED} AS n\n"
            sql += "    ON n.string_id = s.string_id"
        kind = "table" if file.is_materialized or self.all_tables else "view"
        create = f"CREATE OR REPLACE {kind.upper()} {self.schema}.{name} AS\n{sql}"
        actuals = tuple(filter(None, (self.shape.find(table) for table in tables)))
        scrubs = [f"scrub {each}" for each in actuals]
        key = ledger.record(name, create, [*scrubs, *inputs], tables=actuals)
        yield Statement(kind, name, create, file.question, key, actuals, file)

    def _built_relation(
        self, name: str, relations: Mapping[str, tuple[bool, tuple[str, ...]]], ledger: _Ledger
    ) -> Statement:
        file = self.catalog.adapters[name]
        has = set(relations.get(name, (False, ()))[1])
        columns = ",\n".join(
            f"    b.{each.name}"
            if each.name in has
            else f"    CAST(NULL AS {each.type}) AS {each.name}"
            for each in file.columns
        )
        source = f"FROM {self.alias}.{SCHEMA}.{name} AS b" if has else "WHERE false"
        kind = "table" if self.all_tables else "view"
        sql = (
            f"CREATE OR REPLACE {kind.upper()} {self.schema}.{name} AS\nSELECT\n{columns}\n{source}"
        )
        key = self._stored_key(name, sql, ledger)
        return Statement(kind, name, sql, file.question, key, (), file)

    def _unordered(self, statements: Iterable[Statement]) -> Iterator[Statement]:
        """The statements with the order of rows left open, which lets all threads write."""
        name = "preserve_insertion_order"
        yield Statement(
            "setting",
            name,
            f"SET {name} = false",
            "tables promise no order of rows: read the trace with all threads",
        )
        yield from statements
        yield Statement(
            "setting", name, f"SET {name} = true", "a result keeps the order of its ORDER BY"
        )

    def _steps(self, steps: Sequence[SqlFile], ledger: _Ledger) -> Iterator[Statement]:
        lazy = self.lazy_steps() if self.is_lazy else frozenset()
        for file in steps:
            name = file.name
            body = self.given.get(name, file.body)
            key = ledger.record(name, body, file.inputs, file.variables)
            if self.shape.stored.get(name) == key:
                kind = "TABLE" if self.all_tables else "VIEW"
                sql = (
                    f"CREATE OR REPLACE {kind} {self.schema}.{name} AS\n"
                    f"FROM {self.alias}.{SCHEMA}.{name}"
                )
                yield Statement("stored", name, sql, file.question, key, (), file)
            else:
                kind = "VIEW" if file.is_view or name in lazy else "TABLE"
                sql = f"CREATE OR REPLACE {kind} {self.schema}.{name} AS\n{self.retarget(body)}"
                if name in lazy:
                    sql = self.bound(sql)
                yield Statement("step", name, sql, file.question, key, ledger.tables[name], file)
            if name == "anchor_choice" and self.options.is_auto:
                columns = {column.name for column in file.columns}
                for variable, column in _CHOSEN.items():
                    if column in columns:
                        chosen = f"(SELECT {column} FROM {self.schema}.anchor_choice)"
                        ledger.values[variable] = f"{chosen} {key}"
                        yield Statement(
                            "variable",
                            variable,
                            f"SET VARIABLE {variable} = {chosen}",
                            "of the anchor that was found",
                        )

    def variables(self) -> frozenset[str]:
        """The names of all variables that a plan may set or read."""
        files = (*self.catalog.steps.values(), *self.catalog.recipes.values())
        read = (name for file in files for name in file.variables)
        params = (param.name for file in files for param in file.params)
        return frozenset({*self.options.variables(), *_CHOSEN, *read, *params})

    def lazy_steps(self) -> frozenset[str]:
        """The steps that a parameter of a recipe decides, directly or through others.

        They are views in a built database, so that SET VARIABLE works there.
        """
        options = self.options.variables().keys() | _CHOSEN.keys()
        found: set[str] = set()
        for name in self.catalog.order:
            file = self.catalog.steps.get(name)
            if file is None or name in self.given:
                continue
            if {*file.variables} - options or found.intersection(file.inputs):
                found.add(name)
        return frozenset(found)

    def bound(self, sql: str) -> str:
        """SQL that keeps the options and parameters of this planner where no variable is set."""
        known = {
            param.name: param
            for file in (*self.catalog.steps.values(), *self.catalog.recipes.values())
            for param in file.params
        }
        values = {
            name: value
            for name, value in self.options.variables().items()
            if not value.startswith("NULL::")
        }
        for name, value in self.options.params.items():
            if name in known:
                values[name] = param_value(known[name], value)
        if self.options.is_auto:
            for name, column in _CHOSEN.items():
                values[name] = f"(SELECT c.{column} FROM {self.schema}.anchor_choice AS c)"

        def value_of(found: re.Match[str]) -> str:
            value = values.get(found[1])
            return found[0] if value is None else f"coalesce({found[0]}, {value})"

        return _GET.sub(value_of, sql)

    def kept_columns(self, statements: Sequence[Statement]) -> dict[str, tuple[str, ...]]:
        """{step: the columns that anything in a plan reads} of steps that allow to lose others."""
        steps = {each.name: each.file for each in statements if each.kind == "step" and each.file}
        readers = [
            file
            for each in statements
            if each.kind == "recipe" and each.file
            for file in self.audits(each.file)
        ]
        allowed = {
            name: file for name, file in steps.items() if file.is_narrow and name not in self.given
        }
        makers = [steps[name] for name in self.catalog.order if name in steps]
        return narrow.needed_columns(makers, readers, allowed)

    def narrowed(
        self, statements: Sequence[Statement], kept: Mapping[str, tuple[str, ...]]
    ) -> tuple[Statement, ...]:
        """The same plan with no other columns of the steps in `kept`.

        For a run that drops its steps: what is left out cannot be asked for afterwards.
        """

        def narrower(each: Statement) -> Statement:
            columns = kept.get(each.name) if each.kind == "step" else None
            if columns is None:
                return each
            assert each.file is not None
            head, body = each.sql.split(" AS\n", 1)
            gone = [column.name for column in each.file.columns if column.name not in columns]
            body = narrow.without(body, gone)
            sql = f"{head} AS\nSELECT {', '.join(columns)} FROM (\n{body}\n)"
            return replace(each, sql=sql, key=f"{each.key} {','.join(columns)}")

        return tuple(narrower(each) for each in statements)

    def due(
        self, statements: Sequence[Statement], is_made: Callable[[Statement], bool]
    ) -> tuple[Statement, ...]:
        """A plan without the steps that only lead to what is made, and are dropped themselves."""
        wanted = set(_TOLD)
        found = []
        for each in reversed(statements):
            if each.kind in ("step", "stored"):
                is_view = each.form == "VIEW"
                if each.name not in wanted or (is_made(each) and not is_view):
                    continue
            elif each.kind == "recipe" and is_made(each):
                continue
            if each.file is not None and each.kind in ("step", "recipe"):
                files = self.audits(each.file) if each.kind == "recipe" else (each.file,)
                wanted.update(name for file in files for name in file.inputs)
            found.append(each)
        return tuple(reversed(found))

    def last_uses(self, statements: Sequence[Statement]) -> dict[int, list[str]]:
        """The steps that nothing reads after a statement, by the statement's number.

        Steps that are read to word an error are left out; they are small.
        """
        last: dict[str, int] = {}
        steps = self.catalog.steps

        def use(name: str, number: int) -> None:
            last[name] = number
            if name in steps and steps[name].is_view:  # a view reads when it is read
                for each in steps[name].inputs:
                    use(each, number)

        for number, statement in enumerate(statements):
            if statement.file is None:
                continue
            is_recipe = statement.kind == "recipe"
            for file in self.audits(statement.file) if is_recipe else (statement.file,):
                for name in file.inputs:
                    use(name, number)
            last[statement.name] = number
        found: dict[int, list[str]] = {}
        for name, number in last.items():
            if name in steps and not steps[name].is_view and name not in _KEPT:
                found.setdefault(number, []).append(name)
        return found

    # ------------------------------------------------------------------ scrub

    def scrub_name(self, table: str) -> str:
        """The temporary table that stands in for a table of the trace."""
        return f"{self.schema}_{table}"

    def used_columns(self, table: str) -> dict[str, str]:
        """The columns of a trace's table that any adapter reads: {its own name: wanted type}."""
        own = {column.lower(): column for column in self.shape.tables[table]}
        names = _table_names(tuple(self.shape.tables))
        found: dict[str, str] = {}
        for name in self.catalog.adapters:
            file = self.adapter(name)
            if not any(names.get(source.lower()) == table for source in source_tables(file)):
                continue
            for use in adapter_uses(file):
                if names.get(use.table.lower()) == table:
                    for column, wanted in use.columns.items():
                        if column in own:
                            found[own[column]] = wanted
        return found

    def is_odd(self, table: str) -> bool:
        """Whether a declared type is not the one the adapters expect."""
        if not self.shape.can_scrub:
            return False
        columns = self.shape.tables[table]
        return any(columns[name] != wanted for name, wanted in self.used_columns(table).items())
