"""Pricing of a stream: noise for all of its periods that costs no more than noise for one release.

Of one release each measure has Gaussian noise of parameter p, and one person changes it by a vector over
groups of Euclidean length at most D (the length that its event says). In a stream a person does that in each
of the periods that `Participation` allows. Integers are counted in fine steps, `steps` to one unit, and get
the noise of `CorrelatedNoise`, with z of parameter q, which is 1000 or more.

Theorem. The whole stream of a measure costs what discrete Gaussian noise of parameter q costs on a vector
that changes by a length of at most steps * D * |C v| * (1 + 2^-19), where |C v|^2 is
`l2_squared(participation)`.

Proof. By `factorisation`, C x changes by at most S = steps * D * |C v|, and by `correlated_noise` the shifts,
which may be chosen adaptively, have at most the length S + sqrt(m R) (1 + slack), where m is how many groups
one person is in during the whole stream: at most `max_groups` in each of its periods, and no more than are
declared. `steps_for` makes the second term at most 2^-20 of steps * D (2^-19 holds whatever floats round),
and |C v| is at least 1, for c_0 is 1.

So q begins at p * |C v|^2 * steps^2, where both cost the same but for rounding, and is raised until the
event costs no more, in the currency of the budget, than that of one release. Numbers by which undeclared keys
are selected get noise in the same way; how far above it they must be is `key_selection`'s.
Assumes: the bounds of the question hold for the rows of any period, which they do, for they hold for any
rows whatever (`analysis.measures`); and only the periods that `Participation` allows count a person's rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

from sfumato.analysis.bounded import BoundedQuery, Bounding, MeasureKind
from sfumato.analysis.pricing import Cost
from sfumato.analysis.selection import Selection
from sfumato.catalog.catalog import Catalog
from sfumato.catalog.kind import Kind
from sfumato.continual.correlated_noise import steps_for
from sfumato.continual.factorisation import Factorisation, square_root
from sfumato.continual.key_selection import key_thresholds
from sfumato.continual.participation import Participation
from sfumato.continual.periods import Periods
from sfumato.continual.rates import LONGEST_DESIGN, Buffers, buffers
from sfumato.continual.row_rules import RowRules
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.events import Composed, DiscreteGaussian, DiscreteGaussianVector, Event
from sfumato.core.gaussian import GaussianNoise
from sfumato.core.noise_law import shortened
from sfumato.core.rules import Rule
from sfumato.core.steps import spend
from sfumato.errors import InvalidArgument, LedgerError, Unsupported
from sfumato.pipeline import Priced, PricedQuery
from sfumato.plan.outline import labels
from sfumato.plan.request import Request
from sfumato.plan.time_window import TimeColumn, time_column
from sfumato.plan.tree import Filter, Join, Listed, Projection, Scan, SemiJoin, relations
from sfumato.release.lineage import shown_columns

__all__ = ["PricedStream", "another_stream", "plan_stream"]

_ROUNDING = (1 + Fraction(1, 1 << 19)) ** 2
_WHOLE_UNITS = Fraction(1, 4)  # three times the variance of rounding to whole units
_FLOATS = 1 + 1e-9  # more than what floats round in a deviation
_PERIODS = 15  # that are gone through in one step, in arrays
_REMEMBERED = 4_096  # periods whose noise is remembered; a longer stream, or one without an end, has buffers
_LEAST_RAISE = Fraction(1, 1 << 30)
_LEAST_PARAMETER = 1000  # the theorem of `correlated_noise` needs it
_ROW_BY_ROW = (Filter, Join, Listed, Projection, Scan, SemiJoin)  # of one private row each, and public ones
_COUNTED = (MeasureKind.DISTINCT, MeasureKind.MOMENT, MeasureKind.UNITS)


@dataclass(frozen=True, kw_only=True)
class PricedStream(Priced):
    """A stream whose cost is known: the question of one period, and the noise of all periods.

    `question` holds the noise of the whole stream, in the steps of the first period.
    """

    name: str
    question: PricedQuery
    by: TimeColumn
    periods: Periods
    participation: Participation
    factorisation: Factorisation | Buffers
    first_steps: Mapping[str, int]  # by measure: how many steps make one unit in the first period
    rows: RowRules

    @property
    def bounding(self) -> Bounding:
        """What one person can change of one period."""
        return self.question.boundings[0]

    @property
    def cost(self) -> Cost:
        """What the whole stream costs."""
        return self.question.costs[0]

    @cached_property
    def request(self) -> Request:
        """What is asked of each period."""
        return self.question.request

    @cached_property
    def unit(self) -> str:
        """Whose privacy is protected."""
        return self.question.unit

    @cached_property
    def event(self) -> Event:
        """All that happens over the horizon."""
        return self.cost.event

    @cached_property
    def epsilon(self) -> Fraction:
        """What the whole stream gives away by itself."""
        return self.question.epsilon

    @cached_property
    def delta(self) -> Fraction:
        """The delta of that epsilon."""
        return self.question.delta

    @cached_property
    def laws(self) -> Mapping[str, GaussianNoise]:
        """The law of z of each measure, in steps of the first period."""
        found = {noise.measure: noise.law for noise in self.cost.noises}
        return {name: law for name, law in found.items() if isinstance(law, GaussianNoise)}

    def steps(self, measure: str, number: int = 1) -> int:
        """Return how many steps make one unit of a measure in a period."""
        return self.first_steps[measure] << self.factorisation.extra_bits(number)

    def fresh(self, measure: str, number: int, size: int) -> Any:
        """Draw z of a period, in its steps."""
        finer = 4 ** self.factorisation.extra_bits(number)
        return GaussianNoise(self.numbers[measure].parameter * finer).draw(size)

    def cost_of_sum(self, off: float) -> Cost:
        """Return the cost with the noise of a weighted sum of periods that is rounded to whole units.

        `off` is the deviation of the sum, where z has deviation 1 (`stream_release` has the theorem).
        """
        noises = []
        for noise in self.cost.noises:
            variance = noise.law.variance * (Fraction(off * _FLOATS) / self.steps(noise.measure)) ** 2
            noises.append(replace(noise, law=GaussianNoise(shortened(variance + _WHOLE_UNITS))))
        return replace(self.cost, noises=tuple(noises))

    @cached_property
    def names(self) -> Mapping[str, str]:
        """What the question calls columns of its noisy table."""
        shown = {column: name for name, column in shown_columns(self.request).items()}
        return labels(self.request.queries[0].query) | shown

    @property
    def keys_delta(self) -> Fraction:
        """What selecting keys may cost over the horizon."""
        return self.cost.keys_delta

    @property
    def rule(self) -> Selection | None:
        """How keys that appear over time are selected; None: all groups are declared."""
        return self.cost.selection()

    @property
    def deciding(self) -> str:
        """The number by which keys are selected: a measure, or "" where it is none."""
        return "" if self.rule is None else self.rule.measure or ""

    @cached_property
    def numbers(self) -> Mapping[str, GaussianNoise]:
        """The law of z of each number of a key: of its measures, and of what it is selected by."""
        found = dict(self.laws)
        if self.rule is not None and self.rule.measure is None and isinstance(self.rule.law, GaussianNoise):
            found[""] = self.rule.law
        return found

    @cached_property
    def shown_if(self) -> str | None:
        """What must hold of a key that nobody declared before it is shown, in words."""
        if self.rule is None:
            return None
        rows = self.rule.row
        size = self.steps(self.deciding) * self.rule.grid / (1 if rows is None else rows)
        levels, periods = self.thresholds(self.periods.planned), self.periods
        first, last = (math.ceil(one / size) for one in (levels[0], levels[-1]))
        number = "people" if rows is None else "rows"
        weighed = (
            f", who weigh 1/sqrt(d) in each of d groups of a {periods.every}," if self.rule.grid > 1 else ""
        )
        return (
            f"their noisy running total of {number}{weighed} was above a threshold in some {periods.every},"
            f" {first:,} in the first {periods.every} and {last:,} in number {periods.planned:,}"
        )

    @cached_property
    def groups(self) -> int:
        """How many groups are shown in each period."""
        declared = self.bounding.query.declared
        return 1 if declared is None else len(declared)

    def query(self, number: int, since: int | None = None) -> BoundedQuery:
        """Return what the engine computes of one period, over the rows that happened since another one."""
        query = self.bounding.query
        begin = self.periods.begin(number if since is None else since)
        source = self.by.between(query.source, begin, self.periods.end(number))
        return replace(query, source=source)

    @property
    def capped(self) -> bool:
        """Whether anybody could appear more often than is allowed."""
        return self.participation.remembers(self.periods.horizon)

    @property
    def late_by_person(self) -> bool:
        """Whether late rows are told by their person: whoever was counted in a period counts in no other.

        Rows that count once have to be compared with others; so have those that decide together whether they
        meet the conditions of the question.
        """
        row_by_row = all(isinstance(one, _ROW_BY_ROW) for one in relations(self.bounding.query.source))
        once = self.capped and self.participation.periods == 1
        return self.rows.remembers and not self.rows.once and once and row_by_row

    @property
    def late_by_file(self) -> bool:
        """Whether late rows are looked for in files that changed: see `PeriodRows`."""
        told_by_period = self.rows.remembers and not self.rows.once and self.rows.row_id is None
        return self.late_by_person or told_by_period

    def asked(self) -> dict[str, Any]:
        """Return all that was asked: it must not change while the stream runs.

        The noise that follows from it is not in it: floats of another machine may find a little more of it.
        """
        query = self.bounding.query
        return {
            "stream": self.name,
            "request": self.request,
            "unit": self.unit,
            "by": self.by.column.name,
            "periods": self.periods,
            "participation": self.participation,
            "rows": self.rows,
            "groups": query.declared,
            "caps": (query.max_groups, query.max_rows, query.max_total),
            "measures": [(one.name, one.sensitivity) for one in query.measures],
            "steps": dict(self.first_steps),
            "factorisation": self.factorisation,
            "epsilon": self.epsilon,
            "keys_delta": self.cost.keys_limit,
        }

    def as_charged(self, event: Event) -> PricedStream:
        """Return this stream with the noise that was charged when it began, as the ledger holds it."""
        charged = event.events if isinstance(event, Composed) else (event,)
        priced = self.event.events if isinstance(self.event, Composed) else (self.event,)
        laws = []
        for part, own in zip(charged, priced, strict=False):
            if not (
                isinstance(part, DiscreteGaussianVector)
                and isinstance(own, DiscreteGaussianVector)
                and part.l2_squared == own.l2_squared
            ):
                break
            laws.append((GaussianNoise(Fraction(part.sigma_squared)), part))
        if not len(laws) == len(priced) == len(charged):
            raise another_stream(self.name)
        pairs = zip(self.cost.noises, laws, strict=False)
        noises = tuple(replace(noise, law=law, event=part) for noise, (law, part) in pairs)
        cost = replace(self.cost, noises=noises)
        if self.rule is not None and self.rule.event is not None:
            law, part = laws[-1]
            cost = replace(cost, selections=(replace(self.rule, law=law, event=part),))
        return replace(self, question=replace(self.question, costs=(cost,)))

    def thresholds(self, until: int) -> tuple[int, ...]:
        """Return above which running total a key is shown, by period, in steps of the first one."""
        query, measure = self.bounding.query, self.deciding
        periods, cap = self.periods, self.participation
        sensitivities = {one.name: one.sensitivity for one in query.measures}
        each = sensitivities[measure] if measure else 1 if self.rule is None else self.rule.grid
        return key_thresholds(
            self.numbers[measure],
            self.factorisation,
            cap,
            each=each * self.steps(measure),
            keys=(query.max_groups or 1) * len(cap.earliest(periods.horizon)),
            delta=self.keys_delta,
            horizon=None if periods.design else periods.horizon,
            until=min(until, periods.horizon),
        )


def another_stream(name: str, sequence: int | None = None) -> LedgerError:
    """Return the refusal of a stream that is not the one that was begun under its name."""
    return LedgerError(
        f"stream `{name}` was begun with another question, schema, price or cap",
        code="SF606",
        place="stream",
        sequence=sequence,
        hints=("ask as it was begun, or begin another stream under a new name",),
    )


def plan_stream(
    question: PricedQuery,
    *,
    name: str,
    by: str,
    periods: Periods,
    participation: Participation,
    rows: RowRules,
    catalog: Catalog,
    budget: PrivacyBudget,
) -> PricedStream:
    """Price a stream, given the price of one release with Gaussian noise. Free, and reads no private data."""
    _refuse_unproved(question)
    [bounding], [cost] = question.boundings, question.costs
    query = bounding.query
    spend(periods.planned // _PERIODS)
    when = time_column(query.source, by, catalog, rows.row_id)
    if periods.every == "hour" and when.column.kind is Kind.DATE:
        raise InvalidArgument("dates have no hours", place="every", hints=("every='day'",))
    factorisation: Factorisation | Buffers
    if periods.design is None and periods.horizon <= _REMEMBERED:
        factorisation = square_root(periods.horizon)
    else:
        factorisation = buffers(min(periods.planned, LONGEST_DESIGN))
    most = (query.max_groups or 1) * len(participation.earliest(periods.horizon))  # groups of one person
    numbers = most if query.declared is None else min(most, len(query.declared))
    over_the_horizon = partial(_over_the_horizon, factorisation, participation, numbers, budget.rule)
    found = {noise.measure: over_the_horizon(noise.event) for noise in cost.noises}
    noises = tuple(
        replace(noise, law=law, event=event)
        for noise, (law, event, _) in zip(cost.noises, found.values(), strict=True)
    )
    cost = replace(cost, noises=noises)
    if (rule := cost.selection()) is not None:
        if rule.event is not None:
            length = rule.grid**2 if rule.rounds else query.max_groups or 1
            found[""] = over_the_horizon(rule.event, Fraction(length))
            rule = replace(rule, law=found[""][0], event=found[""][1], rounds=())
        delta = cost.keys_limit  # for all periods together: `PricedStream.thresholds` follow from it
        rule = replace(rule, cut=None, delta=delta)
        cost = replace(cost, selections=(rule,), delta=cost.delta - cost.keys_delta + delta, keys_delta=delta)
    return PricedStream(
        name=name,
        question=replace(question, costs=(cost,)),
        by=when,
        periods=periods,
        participation=participation,
        rows=rows,
        factorisation=factorisation,
        first_steps={measure: steps for measure, (_, _, steps) in found.items()},
    )


def _over_the_horizon(
    factorisation: Factorisation | Buffers,
    participation: Participation,
    numbers: int,
    rule: Rule,
    event: Event,
    length: Fraction | None = None,
) -> tuple[GaussianNoise, Event, int]:
    """Return noise for all periods that costs no more than one release, its event and its steps. Rounds: up.

    `length` is the square of what one person changes in one period, unless that of all parts of the event.
    """
    moved, precision, single = Fraction(0), Fraction(0), Fraction(0)
    for part, times in event.parts():
        match part:
            case DiscreteGaussian(sensitivity=shift, sigma_squared=square):
                squared = Fraction(shift) ** 2 * times
            case DiscreteGaussianVector(l2_squared=each, sigma_squared=square):
                squared = each * times
            case _:
                raise Unsupported("streams with other noise than Gaussian", place="noise")
        moved += squared
        precision += squared / square
        single += Fraction(rule.price(part)) * times
    size = moved if length is None else length
    steps = steps_for(factorisation, numbers, math.sqrt(size))
    size *= factorisation.l2_squared(participation) * steps**2 * _ROUNDING
    more = Fraction(0)
    while True:
        parameter = math.ceil(size / precision * (1 + more))
        law = GaussianNoise(Fraction(max(_LEAST_PARAMETER, parameter)))
        whole = DiscreteGaussianVector(sigma_squared=law.parameter, l2_squared=size)
        if Fraction(rule.price(whole)) <= single:
            return law, whole, steps
        more = 2 * more or _LEAST_RAISE


def _refuse_unproved(question: PricedQuery) -> None:
    """Refuse, by name, what no theorem here covers."""
    if len(question.boundings) != 1:
        raise Unsupported("streams of several private questions", hints=("make a stream of each",))
    if question.limits is not None:
        hint = "give bounds, max_groups and max_rows with the question, or declare them"
        raise Unsupported("streams whose limits are not known", hints=(hint,))
    [bounding] = question.boundings
    query = bounding.query
    refused = {
        "streams in which each row is a unit by itself": query.row_unit,
        "streams over ROLLUP, CUBE or GROUPING SETS": len(query.grouping_sets) != 1
        or bounding.consistency is not None,
        "streams that leave out groups of few people": bounding.min_units is not None,
        "streams with a row for all other groups": bounding.others,
        "streams that measure what caps leave out": any(one.bounding is not None for one in question.losses),
        "streams of quantiles, histograms and statistics of blocks": any(
            measure.kind not in _COUNTED for measure in query.measures
        ),
    }
    hints = {
        "streams in which each row is a unit by itself": ("name the column that says whose each row is",),
        "streams of quantiles, histograms and statistics of blocks": (
            "counts, sums, averages and variances have streams",
        ),
    }
    for said, found in refused.items():
        if found:
            raise Unsupported(f"{said} are not supported", place="question", hints=hints.get(said, ()))
