"""Recipes of the user's own: found, read, and checked before they run. No DuckDB here.

A source is one SQL file, or a folder: `*.sql` are recipes, `notes/*.sql` and `invariants/*.sql`
what their manifest `recipes.yaml` gives them. Installed distributions offer sources of their own
as entry points of the group `nsys_sql.recipes`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from importlib import metadata
from pathlib import Path
from typing import Any

import yaml

from nsys_sql import sandbox
from nsys_sql import source as files
from nsys_sql.catalog import (
    Catalog,
    Invariant,
    Param,
    RecipeEntry,
    SqlFile,
    code,
    load_catalog,
    near,
    parse,
)
from nsys_sql.errors import NsysSqlError, UsageError
from nsys_sql.macros import Macro
from nsys_sql.options import param_value

GROUP = "nsys_sql.recipes"
_MANIFEST = "recipes.yaml"
_EXTRAS = {"notes": "note", "invariants": "invariant"}
# Folders of the package that a folder of recipes has no counterpart of.
_OURS = ("adapters", "compare", "facts", "macros", "recipes", "steps", "survey")
_TYPE = re.compile(r"[A-Z][A-Z0-9_]*(\(\d+(,\d+)?\))?(\[\d*\])*")
_NAME = re.compile(r"[a-z][a-z0-9-]*")
_TOLD = 400
# A literal that stands in for a variable that is not set.
_TAKEN = re.compile(
    r"\b(?:coalesce|ifnull)\(\s*(?:(?:try_)?cast\(\s*)?getvariable\(\s*'(?P<name>\w+)'\s*\)"
    r"(?:\s*::\s*\w+|\s+AS\s+\w+\s*\))?\s*,\s*"
    r"(?P<default>'(?:[^']|'')*'|[-+]?[0-9.]+(?:e[-+]?[0-9]+)?|NULL|true|false)(?:\s*::\s*\w+)?\s*\)",
    re.IGNORECASE,
)
_MAY_REPLACE = re.compile(r"\b(?:coalesce|ifnull|nvl|is|case|if)\b", re.IGNORECASE)
# Set by the options of every command, so no recipe declares them.
OPTION_VARIABLES = frozenset(
    {
        "anchor_kind",
        "anchor_message",
        "anchor_pattern",
        "device",
        "iteration_from",
        "iteration_to",
        "per_iteration",
        "skip_first",
        "skip_last",
        "window_mode",
    }
)
_READS_ONLY = "a recipe is one query that reads nsys.*; it makes and changes nothing"


# ---------------------------------------------------------------- finding and reading


def installed() -> Iterator[tuple[str, str, tuple[Path, ...], str | None]]:
    """Each entry point: name, distribution, sources, and what is wrong with it if anything."""
    for point in sorted(metadata.entry_points(group=GROUP), key=lambda each: each.name):
        where = point.dist.name if point.dist else str(point.value)
        try:
            offered = point.load()
            offered = offered() if callable(offered) else offered
            single = isinstance(offered, str | os.PathLike)
            sources = tuple(Path(each) for each in ((offered,) if single else offered))
        except Exception as error:  # whatever a distribution does must not end our run
            yield point.name, where, (), f"{type(error).__name__}: {error}"
        else:
            yield point.name, where, sources, None


def places(source: str | Path) -> tuple[Path, ...]:
    """The files or folders of a source: itself, or what a distribution offers under that name."""
    path = Path(source)
    if not files.is_there(path):
        for name, _, sources, problem in installed():
            if name == str(source) and problem is None:
                return sources
    return (path,)


def full_catalog(sources: Iterable[str | Path] = ()) -> Catalog:
    """The packaged recipes, those of installed distributions, and those of `sources`."""
    found = (place for source in sources for place in places(source))
    return extend(with_installed(load_catalog()), found)


def with_installed(base: Catalog) -> Catalog:
    """The catalog with the recipes of installed distributions; a bad one is left out and named."""
    for name, where, sources, problem in installed():
        if problem is None:
            try:
                base = extend(base, sources, is_strict=True)
            except NsysSqlError as error:
                problem = error.told
        if problem is not None:
            text = f"the recipes {name} of {where} are left out: {problem}"
            base = replace(base, problems=(*base.problems, text))
    return base


def extend(base: Catalog, sources: Iterable[str | Path], *, is_strict: bool = False) -> Catalog:
    """The catalog with the recipes of each source after its own.

    A recipe whose header is wrong is a UsageError when it is asked for, and named among the
    problems until then: its neighbours do not suffer. With `is_strict` it is one at once.
    """
    for source in dict.fromkeys(map(Path, sources)):
        base = _extend(base, source, is_strict)
    return base


def is_of(file: SqlFile, source: str | Path) -> bool:
    """Whether a file is the user's and came from this source."""
    own = (file.path.resolve(), file.path.parent.resolve())  # a file may be a link elsewhere
    return file.is_user and any(place.resolve() in own for place in places(source))


def of_sources(catalog: Catalog, sources: Iterable[str | Path]) -> tuple[SqlFile, ...]:
    """The recipes that came from these sources, and not with an installed distribution alone."""
    given = tuple(sources)
    return tuple(
        file for file in catalog.recipes.values() if any(is_of(file, each) for each in given)
    )


def _extend(base: Catalog, source: Path, is_strict: bool) -> Catalog:
    if files.is_folder(source):
        folder, paths = source, sorted(source.glob("*.sql"))
        if not paths:
            raise UsageError(f"{source} holds no recipe", hint="a recipe is a file NAME.sql in it")
    elif files.is_file(source):
        folder, paths = source.parent, [source]
    else:
        names = [name for name, *_ in installed()]
        raise UsageError(
            f"--recipes {source}: there is no such file or folder",
            hint=f"installed are {', '.join(names)}" if names else None,
        )
    found: dict[str, dict[str, SqlFile]] = {"recipe": {}, "note": {}, "invariant": {}}
    entries = _manifest(folder / _MANIFEST)
    broken: dict[str, NsysSqlError] = {}
    present: set[str] = set()
    for path in paths:
        present.add(path.name.split(".")[0].replace("_", "-"))
        try:
            file = parse("recipe", path, is_user=True)
        except UsageError as error:
            name = path.name.split(".")[0].replace("_", "-")
            if is_strict or name in base.recipes:
                raise
            broken[name] = error
            continue
        if file.name in found["recipe"] or file.name in base.recipes:
            other = found["recipe"].get(file.name) or base.recipes[file.name]
            if other.path.resolve() == path.resolve():
                continue
            raise UsageError(
                f"{path}: there already is a recipe {file.name}, {other.label}",
                hint="give the file another name",
            )
        found["recipe"][file.name] = file
    for part, kind in _EXTRAS.items():
        known = base.notes if kind == "note" else base.invariants
        for path in sorted((folder / part).glob("*.sql")):
            file = parse(kind, path, is_user=True)
            if file.name in known and known[file.name].path.resolve() != path.resolve():
                raise UsageError(
                    f"{path}: there already is a {kind} {file.name}",
                    hint="give the file another name",
                )
            found[kind][file.name] = file
    catalog = replace(
        base,
        recipes={**base.recipes, **found["recipe"]},
        notes={**base.notes, **found["note"]},
        invariants={**base.invariants, **found["invariant"]},
        entries={
            **base.entries,
            **{name: entry for name, (entry, _) in entries.items() if name in found["recipe"]},
        },
    )
    _check_manifest(catalog, folder / _MANIFEST, entries, present, source.is_dir())
    for file in (*found["note"].values(), *found["invariant"].values()):
        _check_header(catalog, file)
    for file in found["recipe"].values():
        try:
            _check_header(catalog, file)
        except UsageError as error:
            if is_strict:
                raise
            broken[file.name] = error
    unread = _unread(folder, entries, found) if source.is_dir() else ()
    return without(replace(catalog, problems=(*catalog.problems, *unread)), broken)


def _unread(
    folder: Path, entries: _Entries, found: Mapping[str, Mapping[str, SqlFile]]
) -> Iterator[str]:
    """What lies in a folder as if it were read, and is not."""
    for part, kind in _EXTRAS.items():
        named = {name for entry, _ in entries.values() for name in getattr(entry, part)}
        for name, file in found[kind].items():
            if name not in named:
                yield (
                    f"{file.label} is not read: no recipe names this {kind}; "
                    f"write `{part}: [{name}]` under a recipe of {folder / _MANIFEST}"
                )
    for part in _OURS:
        if any((folder / part).glob("*.sql")):
            yield f"{folder / part} is not read: a recipe is one file, and its steps are CTEs of it"


def without(catalog: Catalog, broken: Mapping[str, NsysSqlError]) -> Catalog:
    """The catalog less recipes that are wrong, each named among its problems."""
    texts = (f"the recipe {name} is left out: {error.told}" for name, error in broken.items())
    return replace(
        catalog,
        recipes={name: file for name, file in catalog.recipes.items() if name not in broken},
        problems=(*catalog.problems, *texts),
        broken={**catalog.broken, **broken},
    )


# ---------------------------------------------------------------- the manifest

_Entries = Mapping[str, tuple[RecipeEntry, int]]


def _manifest(path: Path) -> _Entries:
    """The entries of a manifest, each with its line; none where there is no manifest."""
    if not path.is_file():
        return {}
    try:
        root = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        problem = getattr(error, "problem", None) or error
        raise UsageError(f"{where}: this is not valid YAML: {problem}") from None
    entries: dict[str, tuple[RecipeEntry, int]] = {}
    for _, recipes in _pairs(path, root, ("recipes",)):
        for name, value in _pairs(path, recipes, None):
            lists = {key: _texts(path, item) for key, item in _pairs(path, value, tuple(_EXTRAS))}
            entry = RecipeEntry(lists.get("notes", ()), lists.get("invariants", ()))
            entries[name.replace("_", "-")] = (entry, value.start_mark.line + 1)
    return entries


def _pairs(
    path: Path, node: yaml.Node | None, known: Sequence[str] | None
) -> Iterator[tuple[str, yaml.Node]]:
    if node is None or (isinstance(node, yaml.ScalarNode) and node.tag.endswith(":null")):
        return
    if not isinstance(node, yaml.MappingNode):
        raise UsageError(
            f"{path}:{node.start_mark.line + 1}: a mapping is expected here",
            hint="write `recipes:`, then `  my-recipe: {notes: [windows], invariants: []}`",
        )
    seen: dict[str, int] = {}
    for key, value in node.value:
        name, line = str(key.value), key.start_mark.line + 1
        same = name.replace("_", "-")
        if same in seen:
            raise UsageError(
                f"{path}:{line}: {name} stands here for the second time, as on line {seen[same]}",
                hint="make one entry of both",
            )
        seen[same] = line
        if known is not None and name not in known:
            raise UsageError(
                f"{path}:{key.start_mark.line + 1}: unknown key {name!r}",
                hint=near(name, known) or f"known keys: {', '.join(known)}",
            )
        yield name, value


def _texts(path: Path, node: yaml.Node) -> tuple[str, ...]:
    if not isinstance(node, yaml.SequenceNode):
        raise UsageError(f"{path}:{node.start_mark.line + 1}: a list like [windows] is expected")
    return tuple(str(item.value) for item in node.value)


def _check_manifest(
    catalog: Catalog, path: Path, entries: _Entries, recipes: Collection[str], is_whole: bool
) -> None:
    for name, (entry, line) in entries.items():
        if name not in recipes:
            if is_whole:
                raise UsageError(
                    f"{path}:{line}: there is no {name.replace('-', '_')}.sql beside the manifest",
                    hint=near(name, recipes) or "remove the entry, or add the file",
                )
            continue
        for kind, names, known in (
            ("note", entry.notes, catalog.notes),
            ("invariant", entry.invariants, catalog.invariants),
        ):
            for each in names:
                if each not in known:
                    raise UsageError(
                        f"{path}:{line}: {name} names the {kind} {each!r}, which does not exist",
                        hint=near(each, known) or f"{kind}s: {', '.join(sorted(known))}",
                    )


# ---------------------------------------------------------------- the header


def _check_header(catalog: Catalog, file: SqlFile) -> None:
    titled = file.text.splitlines()[0].removeprefix("--").split()[0]
    if titled.replace("_", "-") != file.name.replace("_", "-") or not _NAME.fullmatch(
        file.name.replace("_", "-")
    ):
        raise UsageError(
            f"{file.label}:1: the header names {titled!r}, the file is {file.path.name}",
            hint="both are the name of the recipe: lower case, with _ or - between words",
        )
    if not file.body:
        raise UsageError(f"{file.label}: there is no query under the header")
    if file.kind != "recipe":
        return
    for tag, has, remedy in (
        ("@grain", bool(file.grain), "`-- @grain one row per ...`"),
        ("@column", bool(file.columns), "`-- @column name TYPE unit description` for each column"),
    ):
        if not has:
            raise UsageError(f"{file.label}:1: the header has no {tag}", hint=f"add {remedy}")
    for what, items in (("param", file.params), ("column", file.columns)):
        for item in items:
            where = file.at(rf"@{what}\s+{re.escape(item.name)}\b")
            if not _TYPE.fullmatch(item.type):
                raise UsageError(
                    f"{where}: {item.type} is no plain type",
                    hint="for example BIGINT, DOUBLE, VARCHAR or BOOLEAN",
                )
            if what == "param" and item.name in OPTION_VARIABLES:
                raise UsageError(
                    f"{where}: {item.name} is set by an option of the command line",
                    hint="read it without @param, or give the parameter another name",
                )
    for at, param in enumerate(file.params):
        if param.name in {each.name for each in file.params[:at]}:
            where = file.at(rf"@param\s+{re.escape(param.name)}\b")
            raise UsageError(
                f"{where}: {param.name} is declared twice", hint="make one @param of both"
            )
        _check_default(file, param)
    columns = {column.name for column in file.columns}
    for name in file.key:
        if name not in columns:
            where = file.at(rf"@key\b.*\b{re.escape(name)}\b")
            raise UsageError(
                f"{where}: @key names {name}, which is no @column",
                hint=near(name, columns) or f"columns: {', '.join(sorted(columns))}",
            )
    if _result(file.name) in file.inputs:
        raise UsageError(
            f"{file.at(_result(file.name))}: the recipe reads its own result",
            hint="name the CTE or the other recipe that it should read",
        )
    declared = {param.name for param in file.params} | OPTION_VARIABLES
    for name in file.variables:
        if name not in declared:
            raise UsageError(
                f"{file.at(re.escape(name))}: the query gets the variable {name!r}, "
                "which is not declared",
                hint=near(name, declared) or f"add `-- @param {name} TYPE = default description`",
            )
    relations = {*catalog.adapters, *catalog.steps, "capability"}
    results = {_result(name) for name in catalog.recipes}
    for name in (*file.reads, *(name for either in file.needs for name in either)):
        if name not in relations | results | {_result(file.name)}:
            raise UsageError(
                f"{file.at(re.escape(name))}: there is no relation nsys.{name}",
                hint=near(name, relations) or "docs/canonical.md lists the relations",
            )


def _check_default(file: SqlFile, param: Param) -> None:
    """A default must be a value that could be given, and the one that the query takes."""
    where = file.at(rf"@param\s+{re.escape(param.name)}\b")
    value = _value(param.default)
    if value is not None:
        try:
            param_value(param, value)
        except UsageError as error:
            told = error.message.removeprefix(f"parameter {param.name}=")
            raise UsageError(
                f"{where}: the default of {param.name} {told}"
                if told == error.message
                else f"{where}: the default of {param.name}, {told}",
                hint="correct the default, or the type and the range behind it",
            ) from None
    body = code(file.body)
    for found in _TAKEN.finditer(body):
        if found["name"] == param.name and not _is_same(value, _value(found["default"])):
            line = _first(file) + body[: found.start("default")].count("\n")
            raise UsageError(
                f"{file.label}:{line}: without a {param.name} the query takes {found['default']}, "
                f"and its header says {param.default}",
                hint="write the same in both",
            )
    is_bare = param.name in file.variables and not _MAY_REPLACE.search(body)
    if value is not None and is_bare:
        where = file.at(rf"(?i)^(?!--).*{re.escape(param.name)}")
        raise UsageError(
            f"{where}: without a {param.name} the query takes NULL, "
            f"and its header says {param.default}",
            hint=f"write coalesce(getvariable('{param.name}'), {param.default})::{param.type}",
        )


def _value(text: str) -> str | None:
    """A literal of SQL as its value."""
    if text.upper() == "NULL":
        return None
    return text[1:-1].replace("''", "'") if text.startswith("'") and text.endswith("'") else text


def _is_same(one: str | None, other: str | None) -> bool:
    if one is None or other is None:
        return one is other
    try:
        return Decimal(one) == Decimal(other)
    except InvalidOperation:
        return one.casefold() == other.casefold()


def _result(recipe: str) -> str:
    return "result_" + recipe.replace("-", "_")


# ---------------------------------------------------------------- the query


def vet(
    file: SqlFile, tree: Mapping[str, Any], macros: Mapping[str, Macro], catalog: Catalog
) -> None:
    """Refuse a query that does more than read the model, saying where and what to do.

    `tree` is what DuckDB's json_serialize_sql made of the file's text.
    """
    if tree.get("error"):
        position = int(tree.get("position") or 0)
        line = _line(file, position) if position else _first(file)
        message = str(tree.get("error_message", "it cannot be parsed"))
        if tree.get("error_type") == "not implemented":
            raise UsageError(
                f"{file.label}:{line}: only one SELECT is allowed, and no PIVOT",
                hint=_READS_ONLY,
            )
        raise UsageError(f"{file.label}:{line}: {message}", hint="correct the SQL")
    statements = tree.get("statements", ())
    if len(statements) != 1:
        raise UsageError(
            f"{file.label}: {len(statements)} queries, one is expected",
            hint="put the other into a file of its own",
        )
    nodes = list(_nodes(statements[0]))
    local = {str(each["key"]).lower() for node in nodes for each in _ctes(node)}
    for node in nodes:
        kind = node.get("type")
        if kind == "BASE_TABLE":
            _check_table(file, node, local, catalog)
        elif kind == "TABLE_FUNCTION":
            _check_call(file, node.get("function", {}), macros)
            _check_relations(file, node.get("function", {}), macros, local, catalog)
        elif node.get("class") == "FUNCTION":
            _check_call(file, node, macros)
    try:
        sandbox.inspect(tree, macros, "trace", "nsys_")
    except UsageError as error:
        told = re.search(r"(\w+)(?:\(\)| holds)", error.message)
        where = file.at(rf"(?i)^(?!--).*\b{told[1]}\b") if told else file.label
        text = error.message.removeprefix("the query is refused: ")
        raise UsageError(f"{where}: {text}", hint=_READS_ONLY) from None
    if file.kind == "recipe" and not any(
        each.get("type") == "ORDER_MODIFIER" for each in statements[0]["node"].get("modifiers", ())
    ):
        last = len(file.text.rstrip().splitlines())
        raise UsageError(
            f"{file.label}:{last}: the result has no order",
            hint="end the query with ORDER BY columns that identify a row",
        )


def vet_check(
    file: SqlFile, check: Invariant, tree: Mapping[str, Any], macros: Mapping[str, Macro]
) -> None:
    """Refuse a check that is more than an expression over the columns of the result."""
    where = file.at(rf"@(invariant|warning)\s+{re.escape(check.name)}\b")
    hint = "a check is a boolean expression over the columns of the result"
    if tree.get("error"):
        raise UsageError(f"{where}: {check.name}: {tree.get('error_message')}", hint=hint)
    try:
        sandbox.inspect(tree, macros, "trace", "nsys_")
    except UsageError as error:
        text = error.message.removeprefix("the query is refused: ")
        raise UsageError(f"{where}: {check.name}: {text}", hint=hint) from None
    tables = [
        each
        for each in _nodes(tree["statements"][0])
        if each.get("type") in ("BASE_TABLE", "TABLE_FUNCTION", "SUBQUERY")
    ]
    if len(tables) != 1:
        raise UsageError(f"{where}: {check.name} reads another relation", hint=hint)


def _check_table(file: SqlFile, node: Mapping[str, Any], local: set[str], catalog: Catalog) -> None:
    name = str(node.get("table_name", ""))
    places = [str(node.get(part) or "").lower() for part in ("catalog_name", "schema_name")]
    where = f"{file.label}:{_line(file, node.get('query_location'))}"
    relations = {*catalog.adapters, *catalog.steps, "capability"}
    results = {_result(each) for each in catalog.recipes}
    if not any(places):
        if name.lower() in local or name in results:
            return
        if name in relations:
            raise UsageError(f"{where}: unknown relation {name}", hint=f"write nsys.{name}")
    elif places == ["", "nsys"] and name in relations:
        return
    shown = ".".join([*filter(None, places), name])
    if places[0] == "trace" or places[1] == "trace":
        raise UsageError(
            f"{where}: a recipe cannot read {shown}",
            hint="read the canonical relations, nsys.*: they are the same for every export",
        )
    close = near(name, [*relations, *local, *results])
    raise UsageError(
        f"{where}: unknown relation {shown}", hint=close or "docs/canonical.md lists the relations"
    )


def _check_call(file: SqlFile, node: Mapping[str, Any], macros: Mapping[str, Macro]) -> None:
    name = str(node.get("function_name", ""))
    if str(node.get("schema") or "").lower() == "nsys" and name not in macros:
        raise UsageError(
            f"{file.label}:{_line(file, node.get('query_location'))}: unknown macro nsys.{name}",
            hint=near(name, macros) or "docs/canonical.md lists the macros",
        )


def _check_relations(
    file: SqlFile,
    node: Mapping[str, Any],
    macros: Mapping[str, Macro],
    local: set[str],
    catalog: Catalog,
) -> None:
    """A relation that is passed to a macro by name: a CTE, or one of schema nsys."""
    macro = macros.get(str(node.get("function_name", "")))
    if macro is None:
        return
    for parameter, child in zip(macro.parameters, node.get("children", ()), strict=False):
        if parameter not in sandbox.RELATION_PARAMETERS:
            continue
        where = f"{file.label}:{_line(file, child.get('query_location'))}"
        value = child.get("value", {}).get("value") if "value" in child else None
        if child.get("type") != "VALUE_CONSTANT" or not isinstance(value, str):
            raise UsageError(
                f"{where}: nsys.{macro.name} takes the name of a relation as text",
                hint="write it in quotes, as in nsys.iv_union('busy', device)",
            )
        name = value.removeprefix("nsys.")
        is_ours = value != name and name in {*catalog.adapters, *catalog.steps}
        if value.lower() not in local and not is_ours:
            known = [*local, *(f"nsys.{each}" for each in catalog.steps)]
            raise UsageError(
                f"{where}: unknown relation {value!r}",
                hint=near(value, known) or "name a CTE of the query, or a relation nsys.*",
            )


def _ctes(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    found = node.get("cte_map")
    if isinstance(found, Mapping):
        yield from found.get("map", ())


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    stack = [value]
    while stack:
        each = stack.pop()
        if isinstance(each, dict):
            yield each
            stack.extend(reversed(each.values()))
        elif isinstance(each, list):
            stack.extend(reversed(each))


def _line(file: SqlFile, position: Any) -> int:
    """The line of a byte position in the file's text; where the query starts if it is unknown."""
    data = file.text.encode()
    if not isinstance(position, int) or not 0 <= position <= len(data):
        return _first(file)
    return data[:position].count(b"\n") + 1


def _first(file: SqlFile) -> int:
    """The line on which the query starts."""
    lines = file.text.splitlines()
    return next(
        (n for n, line in enumerate(lines, 1) if line.strip() and not line.startswith("--")), 1
    )


def other_columns(file: SqlFile, returned: Sequence[str]) -> UsageError:
    """The error of a result whose columns are not the declared ones, told for the first of them."""
    declared = [column.name for column in file.columns]
    for name in returned:
        if name not in declared:
            return UsageError(
                f"{file.at(rf'(?i)^(?!--).*{re.escape(name)}')}: the query returns the column "
                f"{name}, which is not declared",
                hint=near(name, [each for each in declared if each not in returned])
                or f"add `-- @column {name} TYPE unit description`",
            )
    for name in declared:
        if name not in returned:
            return UsageError(
                f"{file.at(rf'@column +{re.escape(name)} ')}: the query does not return the "
                f"column {name}",
                hint="add it to the last SELECT, or remove the @column line",
            )
    return UsageError(
        f"{file.at('@column')}: the columns are declared in another order than the query returns",
        hint=f"the query returns {', '.join(returned)}",
    )


def failed(file: SqlFile, message: str, offset: int = 1) -> UsageError:
    """The error of a query that DuckDB refused; `offset` lines stood before the query's text."""
    text = " ".join(message.split("LINE ")[0].split())
    place = re.search(r"LINE (\d+):", message)
    line = _first(file) + int(place[1]) - 1 - offset if place else _first(file)
    line = max(1, min(line, len(file.text.splitlines())))
    told = re.sub(r' Use "SET .*?$', "", text.split(" Candidate ")[0])
    told = told if len(told) <= _TOLD else f"{told[:_TOLD]}..."  # it may quote a value
    return UsageError(f"{file.label}:{line}: {told}", hint=_remedy(text, message))


# What an error of DuckDB's asks for, where it is not a column.
_REMEDIES = (
    ("more than one row returned by a subquery", "aggregate in the subquery, or add LIMIT 1"),
    ("^Conversion Error", "try_cast(x AS TYPE) gives NULL for what does not fit"),
    ("^Out of Range Error", "compute with x::HUGEINT or x::DOUBLE, and cast the outcome"),
    ("^Invalid Input Error", "correct the query, or leave out the rows that it cannot take"),
    ("function with name|no function matches", "the macros nsys.* are listed in docs/canonical.md"),
    ("group by clause", "add it there, or take any_value() of it"),
)


def _remedy(text: str, message: str) -> str:
    bindings = re.search(r"Candidate bindings: (.+?)(?:\n|$)", message)
    if bindings:
        return f"there are {bindings[1].strip()}"
    for pattern, remedy in _REMEDIES:
        if re.search(pattern, text, re.IGNORECASE):
            return remedy
    return "docs/canonical.md lists columns"
