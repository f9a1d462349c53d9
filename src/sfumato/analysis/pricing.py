"""Pricing: the least noise with which a whole query costs what it may.

A query with epsilon e may cost what `PrivacyBudget.allowance` says, in the currency of the
budget's rule: it is then (e, delta_loss)-private by itself. That is divided over its measures so
that the sum of their variances, each relative to the square of what one unit can move it by,
is least; a measure of weight w counts w times. Both kinds of noise are tried.

What one unit moves. In the finest grouping, k = max_groups groups by at most `sensitivity` each. In a
coarser set of a ROLLUP, CUBE or GROUPING SETS, groups are sums of finest ones: all k of them may
fall together, so one number moves by k * sensitivity (or by as much as a group has parts).
With a cap on rows over all groups, all numbers together move by no more than that cap allows, each by
no more than before. In a histogram of L layers, each layer by at most `sensitivity` altogether, in each of
the k groups. A single quantile of a histogram is found and measured instead (`finding`), and where a cell or
a group is to be chosen nothing else is told of it (`choice`).

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
from dataclasses import dataclass, field, replace
from fractions import Fraction

from sfumato.aggregates.answer import AddedNoise, Answer
from sfumato.analysis.bounded import BoundedQuery, Bounding, Measure, MeasureKind
from sfumato.analysis.cell_choice import CellChoice, CellChoiceItem, chosen_blocks
from sfumato.analysis.keys import appearance, divided_appearance, divided_cut, smallest_cut
from sfumato.analysis.noise_allocation import Item, Treatment, calibrated, tree_shape
from sfumato.analysis.selection import (
    DELTAS,
    SHARES,
    Round,
    Selection,
    deciding_measure,
    grid_of,
    units_measure,
)
from sfumato.analysis.single_quantile import (
    QuantileSearch,
    QuantileSearchItem,
    finds,
    found_blocks,
    single_quantile,
)
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.arguments import Number, budget_quantity
from sfumato.core.events import Composed, Event
from sfumato.core.noise_allocation import Kinds
from sfumato.core.noise_law import NoiseLaw, noise_laws
from sfumato.core.rules import PureRule
from sfumato.core.steps import spend
from sfumato.errors import InvalidArgument, Unsupported
from sfumato.plan.hints import refuse
from sfumato.plan.options import DEFAULT_OPTIONS, Options

__all__ = ["Cost", "Noise", "price"]

_STEPS_PER_PRICE = 40
_STEPS_PER_ITEM = 2
_REST = ""  # of what has no share of epsilon by itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """Integer noise on one measure in one grouping set: fresh for each group (and cell, and layer).

    A CELLS measure gets `levels` layers of noise: layer l = 0, 1, .. is on the sums of
    branching^l neighbouring cells (the last block may be shorter); layer 0 on the cells themselves.
    """

    measure: str
    grouping_set: int  # its place in the query's grouping sets
    law: NoiseLaw  # in the measure's integer units
    levels: int = 1
    branching: int = 2
    event: Event  # what this noise costs, over all groups and layers
    finding: QuantileSearch | None = None  # CELLS: one quantile is found, and the noise is that of its annuli
    choice: CellChoice | None = None  # a cell, or a group, is chosen, and there is no noise

    @property
    def added(self) -> AddedNoise:
        """What is public of it once it was added."""
        found, choice = self.finding, self.choice
        rates = [*([] if found is None else [found.row_rate]), *([] if choice is None else [choice.rate])]
        return AddedNoise(
            measure=self.measure,
            grouping_set=self.grouping_set,
            law=self.law,
            levels=self.levels,
            branching=self.branching,
            quantile=None if found is None else found.quantile,
            row_rate=rates[0] if rates else None,
            anchor=None if found is None else found.anchor,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a query costs, and the noise that makes it cost no more."""

    noises: tuple[Noise, ...]
    selections: tuple[Selection, ...]  # one per grouping set with keys to select, else none
    epsilon: Fraction  # the query by itself is (epsilon, delta)-private
    delta: Fraction  # for losses and keys together
    keys_delta: Fraction  # the part of delta that selecting keys uses
    keys_limit: Fraction = Fraction(0)  # what it might have used
    others: tuple[Noise, ...] = ()  # of what is not shown, as one row; its cost is in `noises` already
    _places: dict[tuple[str, int], Noise] = field(default_factory=dict, init=False, repr=False, compare=False)
    part: Fraction = field(default=Fraction(1), repr=False)  # of what epsilon allows; less, beside others
    objective: float = field(default=0.0, repr=False, compare=False)  # the weighted sum of relative variances

    @property
    def event(self) -> Event:
        """All that happens, as one batch."""
        events = [noise.event for noise in self.noises]
        events += [selection.event for selection in self.selections if selection.event is not None]
        return events[0] if len(events) == 1 else Composed(events=tuple(events))

    def noise(self, measure: str, grouping_set: int = 0) -> Noise:
        """Return the noise of a measure in a grouping set."""
        if not self._places:
            self._places.update({(one.measure, one.grouping_set): one for one in self.noises})
        return self._places[measure, grouping_set]

    def selection(self, grouping_set: int = 0) -> Selection | None:
        """Return how the groups of a grouping set are selected, None if they are all shown."""
        return next((one for one in self.selections if one.grouping_set == grouping_set), None)


def price(
    bounding: Bounding,
    budget: PrivacyBudget,
    *,
    epsilon: Number | None,
    options: Options = DEFAULT_OPTIONS,
    part: Fraction = Fraction(1),
) -> Cost:
    """Return the noise with which the whole query is (epsilon, delta_loss)-private by itself.

    Of the options, `weights` names aggregates that matter more (or less) than 1, `noise` insists on one
    kind, and `delta` is what selecting keys may use of the budget's delta for keys; unless given, the
    share of it that the query takes of the whole budget. `part` is how much of what epsilon allows the
    query may use: several queries whose parts add up to one are (epsilon, delta_loss)-private together.
    """
    if epsilon is None:
        raise InvalidArgument(
            "it is not said what this question may cost",
            place="epsilon",
            hints=("give epsilon, for example epsilon=0.5", "or a wanted error"),
        )
    wanted = budget_quantity(epsilon, "epsilon")
    spend(_STEPS_PER_PRICE)
    allowance = budget.allowance(wanted) * part
    share = _keys_share(bounding, budget, allowance, options.delta)
    candidates = []
    for law in _laws(budget, options.noise):
        items = _items(bounding, law, options.weights, pure=_counts_pure(budget))
        candidates.append(_shared(law, items, bounding, budget, wanted, allowance, part))
    best = min(candidates, key=lambda candidate: candidate.objective)
    cost = _cost(best, bounding, budget, wanted, share)
    return replace(cost, part=part, objective=best.objective)


def _shared(
    law: type[NoiseLaw],
    items: tuple[Item, ...],
    bounding: Bounding,
    budget: PrivacyBudget,
    epsilon: Fraction,
    allowance: Fraction,
    part: Fraction,
) -> Treatment:
    """Return the noise of all items; an aggregate with a share of epsilon gets what that share allows.

    Theorem: what the shares allow (less, if that is more than the whole) and what is left for all others add
    up to what epsilon allows, and each set of items costs at most its own part by `calibrated`.
    """
    deciding = (None, deciding_measure(bounding.query, bounding.min_units))
    measures = dict.fromkeys(item.measure for item in items)
    known = {name: _owner(name, bounding, decides=name in deciding) for name in measures}
    owners = [known[item.measure] for item in items]
    wanted = {one: budget.allowance(epsilon * bounding.shares[one]) * part for one in owners if one != _REST}
    total = sum(wanted.values(), Fraction(0))
    scale = min(Fraction(1), allowance / total) if total else Fraction(1)
    parts = {owner: one * scale for owner, one in wanted.items()}
    if _REST in owners:
        parts[_REST] = allowance - sum(parts.values(), Fraction(0))
        if parts[_REST] <= 0:
            message = "single epsilons leave nothing for the rest of this question"
            hint = (
                "let them add up to less than its epsilon, and groups that nobody declared need a part, too"
            )
            refuse(bounding.text, message, hint)
    found: dict[int, NoiseLaw] = {}
    for owner, own in parts.items():
        places = [place for place, one in enumerate(owners) if one == owner]
        treated = calibrated(law, tuple(items[place] for place in places), budget, own)
        found |= dict(zip(places, treated.laws, strict=True))
    return Treatment(items=items, laws=tuple(found[place] for place in range(len(items))))


def _owner(measure: str | None, bounding: Bounding, *, decides: bool) -> str | None:
    """Return the aggregate whose share of epsilon an item of a measure has, None for selecting keys."""
    if not bounding.shares:
        return _REST
    names = [answer.name for answer in bounding.answers if measure in answer.measures]
    owners = [name for name in (*names, *((None,) if decides else ())) if name in bounding.shares]
    return max(owners, key=lambda name: bounding.shares[name], default=_REST)


def _cost(
    best: Treatment, bounding: Bounding, budget: PrivacyBudget, epsilon: Fraction, share: Fraction
) -> Cost:
    noises, selections = [], []
    sets = bounding.query.grouping_sets
    selected = [place for place in range(len(sets)) if sets[place]]
    deciding = deciding_measure(bounding.query, bounding.min_units)
    by_rows = deciding is not None and deciding != units_measure(bounding.query)
    events: dict[tuple[int, int], Event] = {}
    kinds = Kinds.of(best.items)
    for kind, item, law in zip(kinds.places, best.items, best.laws, strict=True):
        if (kind, id(law)) not in events:
            events[kind, id(law)] = item.event(law)
        event = events[kind, id(law)]
        if item.measure is not None:
            found = item if isinstance(item, QuantileSearchItem) else None
            noises.append(
                Noise(
                    measure=item.measure,
                    grouping_set=item.grouping_set,
                    law=law if found is None else found.annuli(law),
                    levels=item.levels,
                    branching=item.branching,
                    event=event,
                    finding=None if found is None else found.finding(law),
                    choice=item.choice(law) if isinstance(item, CellChoiceItem) else None,
                )
            )
        decides = item.measure in (None, deciding)
        total = item.grouping_set not in selected  # nothing to select, but it may be of too few units
        if not decides or (total and bounding.min_units is None):
            continue
        if item.rounds:
            delta = share / len(selected)
            selections.append(_by_weights(item, law, bounding.query.max_groups or 1, delta))
            continue
        cut: int | None = None
        if bounding.select_keys and not total:
            cut, delta = _cut(bounding.query, item, law, share / len(selected))
            level = cut + (bounding.min_units or 1)
        elif bounding.min_units is not None:
            level, delta = bounding.min_units, Fraction(0)
        else:
            continue
        selections.append(
            Selection(
                grouping_set=item.grouping_set,
                measure=item.measure,
                law=law,
                threshold=level,
                cut=cut,
                delta=delta,
                event=event if item.measure is None else None,
                row=Fraction(bounding.query.max_rows or 1, item.sensitivity) if by_rows else None,
            )
        )
    used = sum((selection.delta for selection in selections), Fraction(0))
    return Cost(
        noises=tuple(noises),
        selections=tuple(selections),
        epsilon=epsilon,
        delta=budget.delta_loss + used,
        keys_delta=used,
        keys_limit=share,
        others=_others(noises, bounding) if bounding.others else (),
    )


def _others(noises: list[Noise], bounding: Bounding) -> tuple[Noise, ...]:
    """Return the noise of everything else: see `analysis/remainder_group`."""
    deciding = units_measure(bounding.query)
    groups = bounding.query.max_groups or 1
    return tuple(
        replace(
            noise,
            grouping_set=len(bounding.query.grouping_sets),
            law=noise.law if noise.measure == deciding else noise.law.widened(groups),
        )
        for noise in noises
    )


# -- what gets noise ------------------------------------------------------------------------


def _laws(budget: PrivacyBudget, noise: str | None) -> tuple[type[NoiseLaw], ...]:
    """Return the kinds of noise to try."""
    wanted = noise_laws(noise)
    usable = tuple(law for law in wanted if law.pure or not _counts_pure(budget))
    if not usable:
        raise Unsupported(
            f"{wanted[0].name.capitalize()} noise has no pure epsilon, and this budget counts nothing else",
            place="noise",
            hints=("leave noise out, or use a budget with a delta for losses",),
        )
    return usable


def _counts_pure(budget: PrivacyBudget) -> bool:
    return budget.delta_loss == 0 or isinstance(budget.rule, PureRule)


def _items(
    bounding: Bounding, law: type[NoiseLaw], weights: Mapping[str, Fraction], *, pure: bool
) -> tuple[Item, ...]:
    query = bounding.query
    unknown = weights.keys() - {answer.name for answer in bounding.answers}
    if unknown:
        raise InvalidArgument(f"weights name no aggregate: {', '.join(sorted(unknown))}", place="weights")
    spend(_STEPS_PER_ITEM * len(query.grouping_sets) * (len(query.measures) + 1))
    used: dict[str, list[Answer]] = {measure.name: [] for measure in query.measures}
    for answer in bounding.answers:
        for name in answer.measures:
            used[name].append(answer)
    items: list[Item] = []
    for place, grouping_set in enumerate(query.grouping_sets):
        shifts = _shifts(query, grouping_set, law)
        for measure in query.measures:
            users = used[measure.name]
            given = [weights[user.name] for user in users if user.name in weights]
            total, others = _total(query, measure), bounding.others
            item = Item(
                measure=measure.name,
                grouping_set=place,
                sensitivity=measure.sensitivity,
                weight=max(given, default=Fraction(1)),
                shifts=((1, _numbers_moved(query, measure.name)),) if others else shifts,
                norm=(others and measure.name != units_measure(query)) or total is not None,
                total=total,
            )
            if measure.kind is MeasureKind.CELLS and any(user.function.record.ranks for user in users):
                # everything else is noised as one more group of a tree; finding is not proved for it
                quantile = None if others else single_quantile(users)
                points = all(user.points for user in users)
                item = _ranked(item, len(measure.edges) - 1, quantile, law, points, bounding.intervals, pure)
            elif users and not others and all(user.function.record.chooses for user in users):
                item = _chosen(item, measure, law, pure=pure)
            if bounding.consistency is not None:
                known = bounding.consistency
                shares = known.pure_shares if pure else known.shares
                item = item.with_share(shares[place], law, pure=pure)
            items.append(item)
        if bounding.select_keys and grouping_set and deciding_measure(query, bounding.min_units) is None:
            items.append(_deciding(query, place, law))
    return tuple(items)


def _ranked(
    item: Item,
    cells: int,
    quantile: Fraction | None,
    law: type[NoiseLaw],
    points: bool,
    intervals: bool,
    pure: bool,
) -> Item:
    """Return a histogram that ranks are read off: by a tree, or by a search where that errs less."""
    levels, branching = tree_shape(cells, law)
    if quantile is None or not finds(quantile, cells, law, levels, branching, points=points):
        blocks = max(Fraction(1), Fraction(levels * (branching - 1), 6))
        return replace(item, levels=levels, branching=branching, blocks=blocks)
    return QuantileSearchItem(
        measure=item.measure,
        grouping_set=item.grouping_set,
        sensitivity=item.sensitivity,
        weight=item.weight,
        shifts=item.shifts,
        blocks=found_blocks(quantile, law, points=points, intervals=intervals),
        quantile=quantile,
        points=points,
        intervals=intervals,
        pure=pure,
    )


def _chosen(item: Item, measure: Measure, law: type[NoiseLaw], *, pure: bool) -> Item:
    """Return a histogram of which one cell is chosen, or groups of which one is."""
    return CellChoiceItem(
        measure=item.measure,
        grouping_set=item.grouping_set,
        sensitivity=measure.span,
        weight=item.weight,
        shifts=item.shifts,
        blocks=chosen_blocks(law),
        pure=pure,
    )


def _numbers_moved(query: BoundedQuery, measure: str) -> int:
    """Return how many numbers one unit moves where groups not shown are one more (`remainder_group`)."""
    return (query.max_groups or 1) + (measure == units_measure(query))


def _total(query: BoundedQuery, measure: Measure) -> Fraction | None:
    """Return how many sensitivities of a measure one unit moves all groups by, if a cap over all groups says.

    A moment of R times `max_rows` moves by R times `max_total` at most (`analysis/measures`).
    """
    weighted = measure.kind in (MeasureKind.CELLS, MeasureKind.MOMENT) and measure.clamp is None
    if query.max_total is None or query.max_rows is None or not weighted:
        return None
    return Fraction(query.max_total, query.max_rows)


def _deciding(query: BoundedQuery, place: int, law: type[NoiseLaw]) -> Item:
    """Return what gets noise to select keys: numbers of units, or weights (`analysis.selection`).

    Weights matter as much as numbers would, of units that are in as many groups as they may be.
    """
    if not query.members:
        shifts = _shifts(query, query.grouping_sets[place], law)
        return Item(measure=None, grouping_set=place, sensitivity=1, weight=Fraction(1), shifts=shifts)
    groups = query.max_groups or 1
    return Item(
        measure=None,
        grouping_set=place,
        sensitivity=grid_of(groups),
        weight=Fraction(groups ** law.power()),
        shifts=((1, 1),),
        rounds=SHARES[law.euclidean],
    )


def _shifts(
    query: BoundedQuery, grouping_set: tuple[int, ...], law: type[NoiseLaw]
) -> tuple[tuple[int, int], ...]:
    """Return how one unit's k groups fall together in a grouping set, at worst."""
    groups = query.max_groups or 1
    if query.choice is not None:  # one in each part, however many groups of a part move
        shown = {tuple(key[place] for place in query.choice.per) for key in query.declared or ()}
        return ((1, min(groups, len(shown))),)
    if len(set(grouping_set)) == len(query.keys):
        return ((1, groups),)
    most = groups
    if query.declared is not None and law.euclidean:
        most = min(groups, query.most_parts(grouping_set))
    whole, rest = divmod(groups, most)
    return ((most, whole),) if not rest else ((most, whole), (rest, 1))


# -- keys -----------------------------------------------------------------------------------


def _keys_share(
    bounding: Bounding, budget: PrivacyBudget, allowance: Fraction, given: Fraction | None
) -> Fraction:
    if not bounding.select_keys:
        return Fraction(0)
    if budget.keys_delta == 0:
        refuse(
            bounding.text,
            "the groups of this question are not known in public, and the budget has no delta to select them",
            "declare the values of the key: one_of('north', 'south', ..)",
            "or use a budget with a keys_delta, for example a tenth of its delta",
            at=bounding.keys_span,
        )
    if given is not None:
        if given <= 0:
            raise InvalidArgument("keys_delta must be above zero to select keys", place="keys_delta")
        if given > budget.keys_delta:
            raise InvalidArgument(
                f"a delta of {float(given):.3g} is above the {float(budget.keys_delta):.3g} that this budget"
                " has for selecting keys",
                place="delta",
                hints=("leave delta out, and the question takes its share",),
            )
        return given
    whole = budget.allowance(budget.epsilon)
    return _rounded_down(budget.keys_delta * min(Fraction(1), allowance / whole))


def _rounded_down(value: Fraction, digits: int = 3) -> Fraction:
    """Keep few decimal digits: people read it."""
    unit = Fraction(10) ** (math.floor(math.log10(value)) - digits + 1)
    return math.floor(value / unit) * unit


def _cut(query: BoundedQuery, item: Item, law: NoiseLaw, delta: Fraction) -> tuple[int, Fraction]:
    """Return the smallest cut that holds delta, and the delta that it uses.

    In a coarser grouping set all numbers of a unit may fall together into one.
    """
    total = math.ceil(item.sensitivity * (item.total or Fraction(query.max_groups or 1)))
    finest = len(set(query.grouping_sets[item.grouping_set])) == len(query.keys)
    each = min(total, item.sensitivity) if finest else total
    cut = smallest_cut(law, delta, each=each, total=total)
    return cut, Fraction(appearance(law, cut, each=each, total=total))


def _by_weights(item: Item, law: NoiseLaw, groups: int, delta: Fraction) -> Selection:
    """Return the rounds of a selection by weights, with the smallest cuts that hold delta."""
    weights = tuple(law.divided(item.sensitivity, number) for number in range(1, groups + 1))
    rounds = []
    for (own, event), part in zip(item.in_rounds(law), DELTAS, strict=True):
        cut = divided_cut(own, delta * part, weights)
        chance = Fraction(divided_appearance(own, cut, weights))
        rounds.append(Round(law=own, cut=cut, delta=chance, event=event))
    return Selection(
        grouping_set=item.grouping_set,
        measure=None,
        law=rounds[-1].law,
        threshold=rounds[-1].cut + 1,
        cut=rounds[-1].cut,
        delta=sum((one.delta for one in rounds), Fraction(0)),
        event=item.event(law),
        grid=item.sensitivity,
        most=groups,
        rounds=tuple(rounds),
    )
