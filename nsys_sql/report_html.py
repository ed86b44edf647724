"""A report as one HTML file that needs nothing else: no network, no fonts, no other files."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterator, Sequence
from html import escape as html_escape
from importlib.util import find_spec
from pathlib import Path

from nsys_sql import formats, humanize, pictures
from nsys_sql.formats import is_number
from nsys_sql.humanize import ABSENT
from nsys_sql.pictures import Heat, Picture, Segment
from nsys_sql.report import Advice, Part, Section, Table
from nsys_sql.report_text import PROSE, cells, heads, more, title

_WIDEST = 60
_LONG = 24
_FEW_ROWS = 64
_AXIS_LETTERS = 120
_NONE = ' class="none"'
_OLD = '<p class="soft">This picture needs a browser of 2023 or later, with scripts.</p>'
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:"
)


def html(parts: Sequence[Part]) -> str:
    """All parts as one page; pictures can be zoomed where plotly is installed."""
    is_rich = find_spec("plotly") is not None
    drawn = [(f"p{number}", part) for number, part in enumerate(parts)]
    body = "".join(piece for key, part in drawn for piece in _part(key, part, is_rich))
    script = ""
    if is_rich:
        from plotly.offline import get_plotlyjs  # type: ignore[import-untyped,unused-ignore]

        shown = [
            _plot(f"{key}-{picture.name}", picture)
            for key, part in drawn
            for section in part.sections
            for picture in section.pictures
            if isinstance(picture, Picture)
        ]
        if shown:
            code = f"{get_plotlyjs()}\nconst PICTURES = {_json(shown)};"
            script = f'<script>const PACKED = "{_packed(code)}";\n{_page("report.js")}</script>'
    name = escape(title(parts[0]) if len(parts) == 1 else f"Report of {len(parts)} traces")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{name}</title>\n<style>{_page('report.css')}</style>\n</head>\n<body>\n{body}{script}\n"
        "</body>\n</html>\n"
    )


def _page(name: str) -> str:
    return (Path(__file__).parent / "page" / name).read_text(encoding="utf-8")


def _packed(text: str) -> str:
    """Text that the page unpacks itself: plotly alone would be 5 MB, and is 2 MB like this."""
    return base64.b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode()


def escape(text: str) -> str:
    """Text of a page: no mark-up, and control or hidden characters spelled out as in a terminal."""
    return html_escape(humanize.clean(text))


def _json(value: object) -> str:
    """JSON that no text in it can lead out of its script element."""
    return formats.dumps(_visible(value)).replace("<", "\\u003c")


def _visible(value: object) -> object:
    """A value whose texts hold no control or hidden characters."""
    if isinstance(value, str):
        return humanize.clean(value)
    if isinstance(value, dict):
        return {key: _visible(each) for key, each in value.items()}
    return [_visible(each) for each in value] if isinstance(value, list) else value


def _part(key: str, part: Part, is_rich: bool) -> Iterator[str]:
    yield f"<h1>{escape(title(part))}</h1>\n<nav>"
    for section in part.sections:
        yield f'<a href="#{key}-{section.number}">{section.number} {escape(section.title)}</a>'
    yield "</nav>\n"
    for section in part.sections:
        yield f'<h2 id="{key}-{section.number}">{section.number} {escape(section.title)}</h2>\n'
        yield from _section(key, section, is_rich)


def _section(key: str, section: Section, is_rich: bool) -> Iterator[str]:
    is_first = section.number == 1 or section.title.endswith("Verdict")
    style = ' class="verdict"' if is_first else ""
    yield from (f"<p{style}>{escape(sentence)}</p>\n" for sentence in section.sentences)
    for picture in section.pictures:
        yield f"<figure><h3>{escape(picture.title)}</h3>"
        if isinstance(picture, Heat):
            yield from _tiles(picture)
            yield f"<figcaption>{escape(picture.caption)}</figcaption></figure>\n"
            continue
        yield _key(picture)
        if is_rich:
            yield f'<div class="plot" id="{key}-{picture.name}">{_OLD}</div>'
        else:
            yield from _bars(picture)
        yield f"<figcaption>{escape(picture.caption)}</figcaption></figure>\n"
    if any(isinstance(picture, Picture) for picture in section.pictures):
        hint = (
            "Drag across a picture to zoom, double-click to go back."
            if is_rich
            else "Plain pictures: with nsys-sql[report] installed they can be zoomed."
        )
        yield f'<p class="soft screen">{escape(hint)}</p>\n'
    yield from (_table(table) for table in section.tables)
    yield from (_card(advice) for advice in section.advice)
    for recipe, reason in section.missing:
        yield f"<p>Not captured or not answered, {escape(recipe)}: {escape(reason)}.</p>\n"
    if section.notes:
        notes = "".join(f"<li>{escape(note)}</li>" for note in section.notes)
        yield f'<ul class="notes">{notes}</ul>\n'


def _table(table: Table) -> str:
    names = heads(table.columns)
    kinds = [' class="number"' if is_number(column) else "" for column in table.columns]
    top = "".join(
        f'<th{kind} title="{escape(column.description)}">{escape(name)}</th>'
        for kind, name, column in zip(kinds, names, table.columns, strict=True)
    )
    lines = "".join(
        "<tr>"
        + "".join(
            f'<td{_style(kind, cell)} data-name="{escape(name)}">{escape(cell)}</td>'
            for kind, name, cell in zip(kinds, names, row, strict=True)
        )
        + "</tr>\n"
        for row in cells(table, _WIDEST)
    )
    rest = f'<p class="soft">{escape(more(table))}</p>' if table.left_out else ""
    style = ' class="prose"' if PROSE & {column.name for column in table.columns} else ""
    return (
        f'<h3>{escape(table.title)} <span class="soft">{"result" if table.command else "recipe"} '
        f"{escape(table.recipe)}</span></h3>\n"
        f'<div class="scroll"><table{style}><thead><tr>{top}</tr></thead>\n'
        f"<tbody>{lines}</tbody></table></div>{rest}\n"
    )


def _style(kind: str, cell: str) -> str:
    """The class of a cell: absent, a number, or a text that needs room to break."""
    if cell == ABSENT:
        return ' class="number none"' if kind else _NONE
    return ' class="long"' if not kind and len(cell) > _LONG else kind


def _card(advice: Advice) -> str:
    lines = "".join(f"<dt>{escape(n)}</dt><dd>{escape(text)}</dd>" for n, text in advice.lines)
    return f'<div class="card"><h3>{escape(advice.title)}</h3><dl>{lines}</dl></div>\n'


# ---------------------------------------------------------------- pictures


def _plot(identifier: str, picture: Picture) -> dict[str, object]:
    """A picture as plotly draws it: one bar trace for each group."""
    along, across = ("y", "x") if picture.upright else ("x", "y")
    # two rows may have the same name: rows that lie are told by their number
    places = [
        (name if picture.upright else str(number), segments)
        for number, (name, segments) in enumerate(picture.rows)
    ]
    data: list[dict[str, object]] = []
    for group in picture.groups:
        found = [(n, s) for n, segments in places for s in segments if s.group == group]
        data.append(
            {
                "type": "bar",
                "orientation": "v" if picture.upright else "h",
                "name": group,
                across: [name for name, _ in found],
                along: [_short(s.length) for _, s in found],
                "base": [_short(s.start) for _, s in found],
                # plotly reads a little HTML in hover texts
                "hovertext": [escape(s.text) for _, s in found],
                "hoverinfo": "text",
                "marker": {
                    "color": pictures.colour(group),
                    "line": {"width": 0},
                    "opacity": [_opacity(s) for _, s in found],
                },
            }
        )
    names = [name for name, _ in places]
    rows: dict[str, object] = {
        "type": "category",
        "categoryorder": "array",
        "categoryarray": names,
        "automargin": True,
    }
    if not picture.upright:
        rows["autorange"] = "reversed"
    whole = _whole(picture)
    scale = {"ticksuffix": f" {picture.axis}", "automargin": True, "range": _range(picture, whole)}
    height = 300 if picture.upright else 62 + max(26, 34 - len(names)) * len(names)
    return {
        "id": identifier,
        "upright": picture.upright,
        "names": [name for name, _ in picture.rows],
        "data": data,
        "layout": {
            "barmode": "overlay",
            "bargap": 0.1 if picture.upright else 0.25,
            "height": height,
            "hovermode": "closest",
            "showlegend": False,
            f"{across}axis": rows,
            f"{along}axis": scale,
        },
    }


def _opacity(segment: Segment) -> float:
    """How strongly a segment is drawn: a trace of it stays whatever its density."""
    return round(0.1 + 0.9 * segment.density, 2)


def _short(value: float) -> float:
    """As exact as a picture can show; long decimals would make the page large."""
    return float(f"{value:.6g}")


def _whole(picture: Picture) -> float:
    """Where the longest row ends."""
    ends = [s.start + s.length for _, segments in picture.rows for s in segments]
    return max(ends, default=0.0) or 1.0


def _range(picture: Picture, whole: float) -> list[float]:
    return [picture.origin, whole + 0.01 * (whole - picture.origin)]


def _key(picture: Picture) -> str:
    """The colours of a picture."""
    named = "".join(
        f'<span><i style="background:{pictures.colour(group)}"></i>{escape(group)}</span>'
        for group in picture.groups
    )
    return f'<div class="key">{named}</div>'


def _bars(picture: Picture) -> Iterator[str]:
    """A picture in plain SVG: one strip for each row."""
    origin, whole = picture.origin, _whole(picture)
    scale = 1000 / (whole - origin) if whole > origin else 0.0
    yield '<div class="bars">'
    for name, segments in picture.rows:
        yield f'<span title="{escape(name)}">{escape(name)}</span>'
        yield '<svg viewBox="0 0 1000 16" preserveAspectRatio="none" height="18" role="img">'
        for s in segments:
            start = max(s.start, origin)
            x, width = scale * (start - origin), max(scale * (s.start + s.length - start), 0.1)
            pale = f' fill-opacity="{_opacity(s)}"' if s.density < 1 else ""
            yield (
                f'<rect x="{x:.2f}" width="{width:.2f}" height="16" '
                f'fill="{pictures.colour(s.group)}"{pale}>'
                f"<title>{escape(s.text)}</title></rect>"
            )
        yield "</svg>"
    yield f'</div><p class="soft">{origin:.4g} to {whole:.4g} {escape(picture.axis)}</p>'


def _tiles(heat: Heat) -> Iterator[str]:
    """Tiles in plain SVG, one strip for each row, under the ends of their scale."""
    low, high = heat.scale
    span = high - low
    ends = [
        f'<span><i style="background:{pictures.shade(share)}"></i>'
        f"{escape(humanize.cell(value, heat.name, heat.unit))}</span>"
        for share, value in ((0.0, low), (0.5, (low + high) / 2), (1.0, high))[: 3 if span else 1]
    ]
    yield f'<div class="key">{"".join(ends)}</div><div class="bars tiles">'
    width, height = 1000 / max(len(heat.columns), 1), 14 if len(heat.rows) <= _FEW_ROWS else 8
    for name, tiles in heat.rows:
        yield f'<span title="{escape(name)}">{escape(name)}</span>'
        yield f'<svg viewBox="0 0 1000 16" preserveAspectRatio="none" height="{height}" role="img">'
        for at, tile in enumerate(tiles):
            if tile is not None:
                fill = pictures.shade((tile[0] - low) / span if span > 0 else 0.0)
                yield (
                    f'<rect x="{at * width:.2f}" width="{width:.2f}" height="16" fill="{fill}">'
                    f"<title>{escape(tile[1])}</title></rect>"
                )
        yield "</svg>"
    yield "<span></span>" + _axis(heat.columns) + "</div>"


def _axis(names: Sequence[str]) -> str:
    """The names of columns: all where there is room, else the first and the last."""
    shown = list(names)
    if sum(len(name) + 2 for name in names) > _AXIS_LETTERS:
        shown = [names[0], names[-1]]
    style = "" if len(shown) == len(names) else ' style="justify-content:space-between"'
    cells = "".join(f'<b title="{escape(name)}">{escape(name)}</b>' for name in shown)
    return f'<div class="axis"{style}>{cells}</div>'
