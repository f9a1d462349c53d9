"""Display: a release of marginals as text, and as HTML with a picture of the errors of pairs of columns."""

from __future__ import annotations

import html as _html
from collections.abc import Mapping
from typing import TYPE_CHECKING

from sfumato.workloads.marginal_tables import half_width

if TYPE_CHECKING:
    from sfumato.workloads.marginal_release import Marginals

__all__ = ["error_lines", "html", "text"]

_TABLES = 12


def text(release: Marginals) -> str:
    """Return which tables there are, how far off their cells are, and what it cost."""
    head = f"{len(release.tables):,} tables that agree, {release.cells:,} cells: .table(..), .count(..)"
    lines = [head, *error_lines(release.errors()), *(f"-- {note}" for note in _footer(release))]
    return "\n".join(lines)


def error_lines(errors: Mapping[tuple[str, ...], float]) -> list[str]:
    """Return the typical error of each table; of many, of those with the least and the largest."""
    ordered = sorted(errors.items(), key=lambda one: one[1])
    some = ordered if len(ordered) <= _TABLES else [*ordered[: _TABLES // 2], *ordered[-_TABLES // 2 :]]
    lines = [f"  {' x '.join(names) or 'total'}: ±{half_width(error):.4g} (95%)" for names, error in some]
    if len(some) < len(ordered):
        lines.insert(_TABLES // 2, f"  .. {len(ordered) - len(some):,} more, in between ..")
    return lines


def html(release: Marginals) -> str:
    """Return the same as HTML; every value is escaped."""
    head = f"<div><strong>{len(release.tables):,} tables that agree, {release.cells:,} cells</strong></div>"
    rows = "".join(f"<li>{_html.escape(line.strip())}</li>" for line in error_lines(release.errors()))
    notes = "".join(f"<div><small>{_html.escape(note)}</small></div>" for note in _footer(release))
    return f"{head}<ul>{rows}</ul>{notes}"


def _footer(release: Marginals) -> list[str]:
    spent = f"epsilon {float(release.cost['epsilon']):.4g}" if "epsilon" in release.cost else ""
    spent += f"; delta {float(release.cost['delta']):.3g}" if release.cost.get("delta") else ""
    return [
        one
        for one in (f"{spent}; ± covers 95% of the cells of a table, each by itself", *release.notes)
        if one
    ]
