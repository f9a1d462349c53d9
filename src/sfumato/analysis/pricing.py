"""Pricing: the least noise with which a whole query costs what it may.

A query with epsilon e may cost what `PrivacyBudget.allowance` says, in the currency of the
budget's rule: it is then (e, delta_loss)-private by itself. That is divided over its measures so
that the sum of their variances, each relative to the square of what one unit can move it by,
is least; a measure of weight w counts w times. Both kinds of noise are tried.

What one unit moves. In the finest grouping, k = max_groups groups by at most `reach` each. In a
coarser set of a ROLLUP, CUBE or GROUPING SETS, groups are sums of finest ones: all k of them may
fall together, so one number moves by k * reach (or by as much as a group has parts).
In a histogram of L layers, each layer by at most `reach` altogether, in each of the k groups.

Theorem (Laplace): a shift by a in one number and by b in another, with noise of one scale, has at
every epsilon >= 0 at most the hockey-stick divergence of a shift by a + b in one number. For with
P_d the noise moved by d, A_d(e) = sum min(P_0, e^e P_d) = 1 - delta: the pair has the mean over
x ~ P_0 of A_b(e - L_a(x)), which is at least A_b(e - a/s), for A_b rises and L_a <= a/s; and if
e >= (a - b)/s, A_b(e - a/s) = A_{a+b}(e), both being cut at the same output, beyond which P(X < z - a)
= e^(-a/s) P(X < z). The roles of a and b are free, so one of the two applies at every e >= 0.
Theorem (Gaussian): the same holds for mu and rho, whose squares (and which) add up, since the squares
of several shifts sum to at most the square of their sum.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from sfumato.analysis.answer import Bounding
from sfumato.analysis.bounded import BoundedQuery, Measure, MeasureKind
from sfumato.analysis.keys import appearance, threshold
from sfumato.analysis.shares import Item, NoiseKind, Treatment, calibrated, tree_shape
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.arguments import Number, budget_quantity, delta_quantity, positive
from sfumato.core.events import Composed, Event
from sfumato.core.rules import PureRule
from sfumato.errors import InvalidArgument, QueryRefused, Unsupported
from sfumato.plan.tree import Function

__all__ = ["Cost", "Noise", "Selection", "price"]

_RANKED = {Function.QUANTILE, Function.MIN, Function.MAX}


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """Integer noise on one measure in one grouping set: fresh for each group (and cell, and layer).

    A CELLS measure gets `levels` layers of noise: layer l = 0, 1, .. is on the sums of
    branching^l neighbouring cells (the last block may be shorter); layer 0 on the cells themselves.
    """

    measure: str
    grouping_set: int  # its place in the query's grouping sets
    kind: NoiseKind
    parameter: Fraction  # Laplace: the scale; Gaussian: sigma squared; in the measure's integer units
    levels: int = 1
    branching: int = 2
    event: Event  # what this noise costs, over all groups and layers

    @property
    def variance(self) -> float:
        """About the noise's variance, in squared units of the measure's integer."""
        return float(2 * self.parameter**2 if self.kind == "laplace" else self.parameter)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """How the groups of one grouping set are chosen: by their noisy numbers of units.

    `measure` names a measure that is the number of units and gets noise anyway; its noisy value
    decides. None: the exact groups' own `units` get noise of this kind and parameter for the purpose.
    """

    grouping_set: int
    measure: str | None
    kind: NoiseKind
    parameter: Fraction
    threshold: int  # a group is shown if its noisy number of units is at least this
    delta: Fraction  # the chance that a unit makes a group appear that would not exist without it
    event: Event | None  # what the noise costs; None: it is the measure's, which is charged already


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a query costs, and the noise that makes it cost no more."""

    noises: tuple[Noise, ...]
    selections: tuple[Selection, ...]  # one per grouping set with keys to select, else none
    epsilon: Fraction  # the query by itself is (epsilon, delta)-private
    delta: Fraction  # for losses and keys together
    keys_delta: Fraction  # the part of delta that selecting keys uses

    @property
    def event(self) -> Event:
        """All that happens, as one batch."""
        events = [noise.event for noise in self.noises]
        events += [selection.event for selection in self.selections if selection.event is not None]
        return events[0] if len(events) == 1 else Composed(events=tuple(events))

    def noise(self, measure: str, grouping_set: int = 0) -> Noise:
        """Return the noise of a measure in a grouping set."""
        return next(
            noise for noise in self.noises if noise.measure == measure and noise.grouping_set == grouping_set
        )

    def selection(self, grouping_set: int = 0) -> Selection | None:
        """Return how the groups of a grouping set are selected, None if they are all shown."""
        return next((one for one in self.selections if one.grouping_set == grouping_set), None)


def price(
    bounding: Bounding,
    budget: PrivacyBudget,
    *,
    epsilon: Number | None,
    weights: Mapping[str, Fraction] | None = None,
    noise: NoiseKind | None = None,
    keys_delta: Number | None = None,
) -> Cost:
    """Return the noise with which the whole query is (epsilon, delta_loss)-private by itself.

    `weights` names aggregates that matter more (or less) than 1; `noise` insists on one kind.
    `keys_delta` is what selecting keys may use of the budget's delta for keys; unless given, the
    share of it that the query takes of the whole budget.
    """
    if epsilon is None:
        raise InvalidArgument(
            "it is not said what this question may cost",
            place="epsilon",
            hints=("give epsilon, for example epsilon=0.5", "or a wanted error"),
        )
    wanted = budget_quantity(epsilon, "epsilon")
    allowance = budget.allowance(wanted)
    share = _keys_share(bounding, budget, allowance, keys_delta)
    candidates = []
    for kind in _kinds(budget, noise):
        items = _items(bounding, kind, dict(weights or {}))
        candidates.append(calibrated(kind, items, budget, allowance))
    best = min(candidates, key=lambda candidate: candidate.objective)
    return _cost(best, bounding, budget, wanted, share)


def _cost(
    best: Treatment, bounding: Bounding, budget: PrivacyBudget, epsilon: Fraction, share: Fraction
) -> Cost:
    noises, selections = [], []
    sets = bounding.query.grouping_sets
    selected = [place for place in range(len(sets)) if sets[place]]
    units = _units_measure(bounding.query)
    for item, parameter in zip(best.items, best.parameters, strict=True):
        event = item.event(best.kind, parameter)
        if item.measure is not None:
            noises.append(
                Noise(
                    measure=item.measure,
                    grouping_set=item.grouping_set,
                    kind=best.kind,
                    parameter=parameter,
                    levels=item.levels,
                    branching=item.branching,
                    event=event,
                )
            )
        decides = item.measure is None or item.measure == units
        if not decides or item.grouping_set not in selected:
            continue
        if bounding.select_keys:
            level, delta = _level(bounding, best.kind, parameter, item.grouping_set, share / len(selected))
            level += (bounding.min_units or 1) - 1
        elif bounding.min_units is not None:
            level, delta = bounding.min_units, Fraction(0)
        else:
            continue
        selections.append(
            Selection(
                grouping_set=item.grouping_set,
                measure=item.measure,
                kind=best.kind,
                parameter=parameter,
                threshold=level,
                delta=delta,
                event=event if item.measure is None else None,
            )
        )
    used = sum((selection.delta for selection in selections), Fraction(0))
    return Cost(
        noises=tuple(noises),
        selections=tuple(selections),
        epsilon=epsilon,
        delta=budget.delta_loss + used,
        keys_delta=used,
    )


# -- what gets noise ------------------------------------------------------------------------


def _kinds(budget: PrivacyBudget, noise: NoiseKind | None) -> tuple[NoiseKind, ...]:
    pure = budget.delta_loss == 0 or isinstance(budget.rule, PureRule)
    match noise:
        case None:
            return ("laplace",) if pure else ("gaussian", "laplace")
        case "laplace":
            return ("laplace",)
        case "gaussian" if not pure:
            return ("gaussian",)
        case "gaussian":
            raise Unsupported(
                "Gaussian noise has no pure epsilon, and this budget counts nothing else",
                place="noise",
                hints=("leave noise out, or use a budget with a delta for losses",),
            )
    raise InvalidArgument(f"noise must be laplace or gaussian, got {noise!r}", place="noise")


def _items(bounding: Bounding, kind: NoiseKind, weights: dict[str, Fraction]) -> tuple[Item, ...]:
    query = bounding.query
    unknown = weights.keys() - {answer.name for answer in bounding.answers}
    if unknown:
        raise InvalidArgument(f"weights name no aggregate: {', '.join(sorted(unknown))}", place="weights")
    items = []
    for place, grouping_set in enumerate(query.grouping_sets):
        for measure in query.measures:
            users = [answer for answer in bounding.answers if measure.name in answer.measures]
            given = [positive(weights[user.name], "weights") for user in users if user.name in weights]
            levels, branching, blocks = 1, 2, Fraction(1)
            if measure.kind is MeasureKind.CELLS and any(user.function in _RANKED for user in users):
                levels, branching = tree_shape(len(measure.edges) - 1, kind)
                blocks = Fraction(levels * (branching - 1), 6)
            items.append(
                Item(
                    measure=measure.name,
                    grouping_set=place,
                    reach=measure.reach,
                    weight=max(given, default=Fraction(1)),
                    shifts=_shifts(query, grouping_set, kind),
                    levels=levels,
                    branching=branching,
                    blocks=max(Fraction(1), blocks),
                )
            )
        if bounding.select_keys and grouping_set and _units_measure(query) is None:
            shifts = _shifts(query, grouping_set, kind)
            items.append(Item(measure=None, grouping_set=place, reach=1, weight=Fraction(1), shifts=shifts))
    return tuple(items)


def _shifts(
    query: BoundedQuery, grouping_set: tuple[int, ...], kind: NoiseKind
) -> tuple[tuple[int, int], ...]:
    """Return how one unit's k groups fall together in a grouping set, at worst."""
    groups = query.max_groups or 1
    if len(set(grouping_set)) == len(query.keys):
        return ((1, groups),)
    most = groups
    if query.declared is not None and kind == "gaussian":
        coarse = {tuple(key[place] for place in grouping_set) for key in query.declared}
        most = min(groups, len(query.declared) // len(coarse))  # a product: all groups have as many parts
    whole, rest = divmod(groups, most)
    return ((most, whole),) if not rest else ((most, whole), (rest, 1))


def _units_measure(query: BoundedQuery) -> str | None:
    """Return the measure that is the number of units in each group, if there is one."""
    one_row = query.row_unit or (query.max_groups is None and query.max_rows == 1)

    def counts_units(measure: Measure) -> bool:
        if measure.condition is not None or measure.clamp is not None or measure.factors:
            return False
        return measure.kind is MeasureKind.UNITS or (measure.kind is MeasureKind.MOMENT and one_row)

    return next((measure.name for measure in query.measures if counts_units(measure)), None)


# -- keys -----------------------------------------------------------------------------------


def _keys_share(
    bounding: Bounding, budget: PrivacyBudget, allowance: Fraction, given: Number | None
) -> Fraction:
    if not bounding.select_keys:
        return Fraction(0)
    if budget.keys_delta == 0:
        span = bounding.keys_span
        raise QueryRefused(
            "the groups of this question are not known in public, and the budget has no delta to select them",
            code="SF405",
            text=bounding.text,
            start=None if span is None else span.start,
            end=None if span is None else span.end,
            hints=(
                "declare the values of the key: one_of('north', 'south', ..)",
                "or use a budget with a keys_delta, for example a tenth of its delta",
            ),
        )
    if given is not None:
        share = delta_quantity(given, name="keys_delta")
        if share <= 0:
            raise InvalidArgument("keys_delta must be above zero to select keys", place="keys_delta")
        return share
    whole = budget.allowance(budget.epsilon)
    return _rounded_down(budget.keys_delta * min(Fraction(1), allowance / whole))


def _rounded_down(value: Fraction, digits: int = 3) -> Fraction:
    """Keep few decimal digits: people read it."""
    unit = Fraction(10) ** (math.floor(math.log10(value)) - digits + 1)
    return math.floor(value / unit) * unit


def _level(
    bounding: Bounding, kind: NoiseKind, parameter: Fraction, place: int, delta: Fraction
) -> tuple[int, Fraction]:
    query = bounding.query
    groups = query.max_groups or 1
    gathered = len(set(query.grouping_sets[place])) < len(query.keys)
    level = threshold(kind, parameter, groups, delta, gathered=gathered)
    return level, Fraction(appearance(kind, parameter, level, groups, gathered=gathered))
