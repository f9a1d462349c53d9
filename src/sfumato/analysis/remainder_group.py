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
from sfumato.plan.conditions import one_of
from sfumato.plan.hints import refuse
from sfumato.plan.tree import Case, Literal

__all__ = ["LABEL", "check_others", "declared_others"]

LABEL = "everything else"
"""The key of that row, in columns of text; other columns are NULL there."""


def check_others(query: BoundedQuery, text: str) -> None:
    """Refuse what the row cannot be shown for."""
    reason, hint = None, "leave `others` out"
    if not query.keys:
        reason = "`others` needs groups: there is no GROUP BY"
    elif query.grouping_sets != (tuple(range(len(query.keys))),):
        reason, hint = "`others` goes with a plain GROUP BY", "ask for each grouping set by itself"
    elif query.declared is not None:
        if any(key.kind is not Kind.TEXT for _, key in query.keys):
            reason = "`others` of declared keys needs keys of text"
        elif any(LABEL in key for key in query.declared):
            reason = f"a declared key is called {LABEL!r} already"
    elif any(one.kind is MeasureKind.BLOCKS for one in query.measures):
        reason = "values of blocks cannot be added up to `others`"
    elif any(one.kind is MeasureKind.DISTINCT for one in query.measures):
        reason = "values that differ between groups cannot be added up to `others`"
    elif any(one.kind is MeasureKind.UNITS and one.condition is not None for one in query.measures):
        reason = "units that differ between groups cannot be added up to `others`"
    if reason is not None:
        refuse(text, reason, hint, code="SF404")


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
