"""Display: a release of marginals as text, and as HTML with a picture of the errors of pairs of columns."""

from __future__ import annotations

import html as _html
from collections.abc import Mapping, Sequence
from itertools import combinations, islice
from typing import TYPE_CHECKING

import numpy as np

from sfumato.errors import Unsupported
from sfumato.plots import Axis, Picture, Tiles, svg

if TYPE_CHECKING:
    from sfumato.workloads.marginal_release import Marginals, MarginalTable

__all__ = ["error_lines", "error_picture", "html", "html_of", "table_text", "text"]

_TABLES = 12
_CELLS = 40
_Errors = Mapping[tuple[str, ...], float]


def text(release: Marginals) -> str:
    """Return which tables there are, how far off their cells are, and what it cost."""
    head = f"{_tables(release)}: .table(..), .count(..)"
    lines = [head, *error_lines(release.half_widths()), *(f"-- {note}" for note in _footer(release))]
    return "\n".join(lines)


def table_text(table: MarginalTable) -> str:
    """Return one table: a line for each of its first cells, with half of a 95% interval."""
    shape, names = table.counts.shape, [column.name for column in table.columns]
    widths = table.half_widths(0.95)
    lines = [[*names, "n"]]
    for place in islice(np.ndindex(*shape), _CELLS):
        labels = [str(column.labels[at]) for column, at in zip(table.columns, place, strict=True)]
        lines.append([*labels, f"{table.counts[place]:.0f} ±{widths[place]:.0f}"])
    sizes = [max(map(len, column)) for column in zip(*lines, strict=True)]
    shown = ["  ".join(map(str.ljust, line, sizes)).rstrip() for line in lines]
    left = table.counts.size - len(lines) + 1
    return "\n".join([*shown, *([f".. {left:,} more cells: .to_arrow() has them"] if left else [])])


def _tables(release: Marginals) -> str:
    number = len(release.tables)
    return f"{number:,} table{'s that agree' if number != 1 else ''}, {release.cells:,} cells"


def error_lines(errors: _Errors) -> list[str]:
    """Return half of a typical interval of each table; of many, of those with the least and the largest."""
    ordered = sorted(errors.items(), key=lambda one: one[1])
    some = ordered if len(ordered) <= _TABLES else [*ordered[: _TABLES // 2], *ordered[-_TABLES // 2 :]]
    lines = [f"  {' x '.join(names) or 'total'}: ±{error:.4g} (95%)" for names, error in some]
    if len(some) < len(ordered):
        lines.insert(_TABLES // 2, f"  .. {len(ordered) - len(some):,} more, in between ..")
    return lines


def error_picture(columns: Sequence[str], errors: _Errors) -> Picture | None:
    """Return a heat map of the errors of pairs of columns, single ones on the diagonal; None of too few."""
    tiles = []
    for names, error in errors.items():
        if len(names) in (1, 2):
            first, last = names[0], names[-1]
            tiles += [(one, other, error) for one, other in {(first, last), (last, first)}]
    if len(columns) < 2 or not tiles:
        return None
    order = {name: place for place, name in enumerate(columns)}
    return Picture(
        title="The error of a cell, by the columns of its table",
        caption="Half of a 95% interval, in rows. The diagonal is of tables of one column.",
        x=Axis(title=""),
        y=Axis(title=""),
        marks=(Tiles(label="±", tiles=tuple(sorted(tiles, key=lambda one: (order[one[1]], order[one[0]])))),),
    )


def html(release: Marginals) -> str:
    """Return the same as HTML, with the picture; every value is escaped."""
    names, errors = [column.name for column in release.columns], release.half_widths()
    for few in (*combinations(names, 1), *combinations(names, 2)):
        if any(set(few) <= set(table) for table in release.tables):
            errors[few] = release.half_width(*few)
    return html_of(_tables(release), names, errors, error_lines(release.half_widths()), _footer(release))


def html_of(
    head: str, columns: Sequence[str], errors: _Errors, lines: Sequence[str], notes: Sequence[str]
) -> str:
    """Return a heading, the errors of tables, a picture of them where it can be drawn, and notes."""
    rows = "".join(f"<li>{_html.escape(line.strip())}</li>" for line in lines)
    small = "".join(f"<div><small>{_html.escape(note)}</small></div>" for note in notes)
    return (
        f"<div><strong>{_html.escape(head)}</strong></div><ul>{rows}</ul>{small}{_drawing(columns, errors)}"
    )


def _drawing(columns: Sequence[str], errors: _Errors) -> str:
    picture = error_picture(columns, errors)
    if picture is None:
        return ""
    try:
        return f'<div role="img" aria-label="{_html.escape(picture.title)}">{svg(picture)}</div>'
    except Unsupported:  # there is no library to draw it
        return ""


def _footer(release: Marginals) -> list[str]:
    spent = f"epsilon {float(release.cost['epsilon']):.4g}; " if "epsilon" in release.cost else ""
    spent += f"delta {float(release.cost['delta']):.3g}; " if release.cost.get("delta") else ""
    return [f"{spent}± covers 95% of the cells of a table, each by itself", *release.notes]
