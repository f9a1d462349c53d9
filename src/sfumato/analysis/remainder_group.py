"""Everything else: one more row, for all that is in no group that is shown.

Declared keys: it is one more declared group, for rows with any other value, or none. A unit may be in
it as in any group, and it costs nothing of its own.

Selected keys: it is the sum of the groups that were not selected. Given which were, let j of a unit's at
most k groups be shown: they move by at most the sensitivity R each, and the sum by (k - j) R.

Theorem (Gaussian): with variance v in groups and k v in the sum, this costs what k groups do: in units of
R^2 / v it is j + (k - j)^2 / k <= k, for k - j <= k. For mu the step of the wider noise must be small
enough, which is computed, and the variance raised until it is (`GaussianNoise.widened`).
Theorem (Laplace): with one scale, it costs at most what a shift of k R in one number does, by the theorem of
`analysis.pricing`; that is what is charged.
Theorem (numbers of units): these decide which groups are shown, so all k noisy numbers are used, also
those of groups that are not shown; a unit counts once in the sum. That is k + 1 shifts by one, with noise
of one parameter, and charged as such.
"""

from __future__ import annotations

from dataclasses import replace

from sfumato.analysis.bounded import BoundedQuery, MeasureKind
from sfumato.catalog.kind import Kind, Value
from sfumato.errors import QueryRefused
from sfumato.plan.conditions import one_of
from sfumato.plan.tree import Case, Literal

__all__ = ["LABEL", "check_others", "declared_others"]

LABEL = "everything else"
"""The key of that row, in columns of text; other columns are NULL there."""


def check_others(query: BoundedQuery, text: str) -> None:
    """Refuse what the row cannot be shown for."""
    hint = "leave `others` out"
    if not query.keys:
        _refuse("`others` needs groups: there is no GROUP BY", text, hint)
    if query.grouping_sets != (tuple(range(len(query.keys))),):
        _refuse("`others` goes with a plain GROUP BY", text, "ask for each grouping set by itself")
    if query.declared is not None:
        if any(key.kind is not Kind.TEXT for _, key in query.keys):
            _refuse("`others` of declared keys needs keys of text", text, hint)
        if any(LABEL in key for key in query.declared):
            _refuse(f"a declared key is called {LABEL!r} already", text, hint)
        return
    for measure in query.measures:
        if measure.kind is MeasureKind.DISTINCT:
            _refuse("values that differ between groups cannot be added up to `others`", text, hint)
        if measure.kind is MeasureKind.UNITS and measure.condition is not None:
            _refuse("units that differ between groups cannot be added up to `others`", text, hint)


def declared_others(query: BoundedQuery) -> BoundedQuery:
    """Return the query with one more declared group: of rows whose keys are in none of the others."""
    declared = query.declared or ()
    listed = one_of([key for _, key in query.keys], declared)
    label = Literal(value=LABEL, kind=Kind.TEXT)
    keys = tuple(
        (name, Case(branches=((listed, key),), otherwise=label, kind=Kind.TEXT)) for name, key in query.keys
    )
    last: tuple[Value, ...] = (LABEL,) * len(keys)
    return replace(query, keys=keys, declared=(*declared, last))


def _refuse(message: str, text: str, hint: str) -> None:
    raise QueryRefused(message, code="SF404", text=text, hints=(hint,))
