"""Write docs/licences.md: what the package depends on, and under which licence each part comes.

Reads the metadata of what is installed, so everything has to be: `make licences`.
"""

from __future__ import annotations

import re
import sys
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "licences.md"
PROJECT = "nsys-sql"
GROUPS = {
    "": "Always installed",
    "shell": "Extra `shell`: the DuckDB program",
    "report": "Extra `report`: pictures that can be zoomed",
    "perfetto": "Extra `perfetto`: timelines in Perfetto's own format",
    "dask": "Extra `dask`: surveys on a cluster",
    "arrow": "Extra `arrow`: Arrow exports as input",
    "notebooks": "Extra `notebooks`",
    "test": "Extra `test`",
    "dev": "Extra `dev`",
}
HEAD = """\
<!-- Made by `make licences`; do not edit. -->
# Licences of dependencies

`nsys-sql` itself is under the Apache License 2.0 ([LICENSE](../LICENSE)). It ships no code of
others: what stands here is installed beside it, and only the first table by a plain `pip install`.
The licence is what the metadata of each package says, in its words. Releases and hashes are in
[`.ci/requirements.txt`](../.ci/requirements.txt). "With" names packages that come because another
one asks for them, on Linux.

The SQLite extension of DuckDB has SQLite compiled in, which is in the public domain. An HTML
report that is written with plotly installed carries plotly.js, under the MIT licence.
"""


def requirements(name: str, extra: str) -> list[str]:
    """The packages that a package asks for here, for one extra or (``""``) always."""
    found = []
    for text in metadata.requires(name) or ():
        asked = Requirement(text)
        always = asked.marker is None or asked.marker.evaluate({"extra": ""})
        if always != (extra == ""):
            continue
        if asked.marker is None or asked.marker.evaluate({"extra": extra}):
            found.append(canonicalize_name(asked.name))
    return sorted(set(found) - {canonicalize_name(PROJECT)})


def closure(names: list[str]) -> list[str]:
    """What these packages ask for in turn, without themselves."""
    seen, stack = set(names), list(names)
    while stack:
        for each in requirements(stack.pop(), ""):
            if each not in seen:
                seen.add(each)
                stack.append(each)
    return sorted(seen - set(names))


def licence(name: str) -> str:
    """What the metadata says: the expression, else a short licence field, else the classifiers."""
    found = metadata.metadata(name)
    if expression := found.get("License-Expression"):
        return str(expression)
    field = (found.get("License") or "").strip()
    if field and re.fullmatch(r"[\w .,()-]{2,40}", field) and field != "UNKNOWN":
        return field
    told = [
        text.rpartition(" :: ")[2]
        for text in found.get_all("Classifier") or ()
        if text.startswith("License ::")
    ]
    return ", ".join(told) or "not said"


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    listed: set[str] = set()
    for extra, title in GROUPS.items():
        direct = requirements(PROJECT, extra)
        rows = [f"| `{name}` | {licence(name)} |\n" for name in direct]
        others = [name for name in closure(direct) if name not in listed]
        rows += [f"| with: `{name}` | {licence(name)} |\n" for name in others if name not in direct]
        listed.update(direct, others)
        parts.append(f"\n## {title}\n\n| package | licence |\n| --- | --- |\n{''.join(rows)}")
    return "".join(parts)


if __name__ == "__main__":
    try:
        PAGE.write_text(page(), encoding="utf-8")
    except metadata.PackageNotFoundError as error:
        sys.exit(f"{error}; install all extras first: see `make licences`")
