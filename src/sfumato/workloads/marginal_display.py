"""Display: a release of marginals as a page, with a picture of the errors of pairs of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, islice
from typing import TYPE_CHECKING

import numpy as np

from sfumato.pages import Block, BulletList, Figure, Notes, Page, PageTable, Paragraph, Pictures
from sfumato.plots import Axis, Picture, Tiles
from sfumato.release.published import CLOSING

if TYPE_CHECKING:
    from sfumato.workloads.marginal_release import Marginals, MarginalTable

__all__ = ["error_blocks", "error_figures", "error_picture", "first_cells", "page"]

_TABLES = 12
_CELLS = 40
_Errors = Mapping[tuple[str, ...], float]


def page(release: Marginals) -> Page:
    """Return which tables there are, how far off their cells are, and what it cost."""
    widths = release.half_widths()
    head = f"{_tables(release)}: .table(..), .count(..)"
    columns = [column.name for column in release.columns]
    picture = Pictures(lambda: error_figures(columns, _errors_of_pairs(release)))
    spent = f"{release.spent}; " if release.spent else ""
    covered = f"{spent}± covers 95% of the cells of a table, each by itself"
    rows = [(" x ".join(names) or "total", f"±{error:.4g}") for names, error in widths.items()]
    return Page(
        title="Tables",
        made=covered,
        brief=(*error_blocks(head, widths), Notes((covered, *release.notes)), picture),
        opening=(
            Paragraph(f"{_tables(release)}."),
            PageTable(heads=("table", "error of a cell (95%)"), rows=rows, sides="lr"),
            BulletList(release.notes),
            picture,
        ),
        closing=CLOSING,
    )


def first_cells(table: MarginalTable) -> str:
    """Return one table as text: a line for each of its first cells, with half of a 95% interval."""
    shape, names = table.counts.shape, [column.name for column in table.columns]
    widths = table.half_widths(0.95)
    rows = []
    for place in islice(np.ndindex(*shape), _CELLS):
        labels = [str(column.labels[at]) for column, at in zip(table.columns, place, strict=True)]
        rows.append([*labels, f"{table.counts[place]:.0f} ±{widths[place]:.0f}"])
    shown = PageTable(heads=(*names, "n"), rows=rows).text()
    left = table.counts.size - len(rows)
    return f"{shown}\n.. {left:,} more cells: .to_arrow() has them" if left else shown


def _tables(release: Marginals) -> str:
    number = len(release.tables)
    return f"{number:,} table{'s that agree' if number != 1 else ''}, {release.cells:,} cells"


def error_blocks(head: str, errors: _Errors) -> tuple[Block, ...]:
    """Return half of a typical interval of each table; of many, of those with the least and the largest."""
    ordered = sorted(errors.items(), key=lambda one: one[1])
    some = ordered if len(ordered) <= _TABLES else [*ordered[: _TABLES // 2], *ordered[-_TABLES // 2 :]]
    lines = [f"{' x '.join(names) or 'total'}: ±{error:.4g} (95%)" for names, error in some]
    if len(some) < len(ordered):
        lines.insert(_TABLES // 2, f".. {len(ordered) - len(some):,} more, in between ..")
    return Paragraph(head), BulletList(tuple(lines))


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


def error_figures(columns: Sequence[str], errors: _Errors) -> tuple[Figure, ...]:
    """Return the picture of the errors of pairs, where there is one."""
    picture = error_picture(columns, errors)
    return () if picture is None else (Figure(picture),)


def _errors_of_pairs(release: Marginals) -> _Errors:
    """Return the errors of all tables, and of the columns and pairs of columns that are part of them."""
    names, errors = [column.name for column in release.columns], release.half_widths()
    for few in (*combinations(names, 1), *combinations(names, 2)):
        if any(set(few) <= set(table) for table in release.tables):
            errors[few] = release.half_width(*few)
    return errors
