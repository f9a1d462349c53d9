"""What a stream is compared with: fresh noise in each period, and totals that are asked anew each time.

Let one release err by sigma. A stream of n periods, in k of which one person may be, is beside
- fresh noise in each period, for the same cost: a person changes k periods, so each of them has the error
  sqrt(k) sigma, and the sum of n of them sqrt(k n) sigma;
- the running total asked again in each period, at the epsilon of the stream each time: an error of sigma, for
  n charges. One period is the difference of two totals. Where keys are selected, each charge has its delta.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.aggregates.answer import AddedNoise, Answer
from sfumato.analysis.pricing import Cost
from sfumato.continual.pricing import PricedStream
from sfumato.continual.series import period_deviations, total_deviations
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.steps import spend
from sfumato.pages import PageTable, fragment

__all__ = ["Baseline", "PublishingWay", "baseline"]

_LEVEL = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishingWay:
    """One way to publish every period: what all of it costs, and how far off its last numbers are.

    Errors are multiples of that of one release at the epsilon of the stream.
    """

    what: str
    epsilon: float
    delta: float
    total: float
    period: float
    errors: tuple[float, float] | None = None  # the 95% errors of both, of the count or sum that is told


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Baseline:
    """A stream beside two plain ways, from the plan alone: nothing is spent on it."""

    every: str
    periods: int  # after which errors are told
    ways: tuple[PublishingWay, ...]
    release: tuple[str, float] | None  # a count or sum, and the 95% error of one release of it

    @property
    def heads(self) -> tuple[str, ...]:
        """The names of columns."""
        name, many = "" if self.release is None else f" of {self.release[0]}", self.periods
        return (
            "",
            "epsilon",
            "delta",
            f"total{name} after {many} {self.every}s",
            f"{self.every} {many}{name}",
        )

    @property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        """The cells of all ways."""
        return tuple(
            (
                one.what,
                f"{one.epsilon:.3g}",
                f"{one.delta:.3g}",
                self._error(one, 0),
                self._error(one, 1),
            )
            for one in self.ways
        )

    @staticmethod
    def _error(way: PublishingWay, place: int) -> str:
        wide = "" if way.errors is None else f"±{way.errors[place]:.3g} "
        return f"{wide}({(way.total, way.period)[place]:.3g} x)"

    def lines(self) -> list[str]:
        """Return the table as aligned text."""
        return PageTable(heads=self.heads, rows=self.rows, sides="lrrrr").text().splitlines()

    def __repr__(self) -> str:
        return "\n".join([*self.lines(), self.legend])

    @property
    def legend(self) -> str:
        """What the numbers are."""
        wide = "" if self.release is None else f"± covers {_LEVEL:.0%}; "
        return f"{wide}x: times the error of one release at this epsilon"

    def _repr_html_(self) -> str:
        heads = ("way to publish", *self.heads[1:])
        return fragment(PageTable(heads=heads, rows=self.rows, caption=self.legend))


def baseline(stream: PricedStream, single: Cost, terms: PrivacyBudget) -> Baseline:
    """Return what a stream is compared with, given what one release of its question costs."""
    horizon, every = stream.periods.planned, stream.periods.every
    spend(2 * horizon // 10)
    often = len(stream.participation.earliest(horizon))
    length = math.sqrt(stream.factorisation.l2_squared(stream.participation))
    offs = [float(find(stream.factorisation, horizon)[-1]) for find in (total_deviations, period_deviations)]
    epsilon, delta = float(stream.epsilon), float(terms.delta_loss + stream.cost.keys_delta)
    anew = terms.rule.epsilon(horizon * terms.allowance(stream.epsilon), terms.delta_loss)
    told = _told(stream)

    def errors(*ends: Sequence[AddedNoise]) -> tuple[float, float] | None:
        if told is None:
            return None
        total, period = (_error(told, noises) for noises in ends)
        return total, period

    def fresh(times: int, factor: float = 1.0) -> list[AddedNoise]:
        wider = Fraction(factor)
        return [
            replace(one.added, law=one.added.law.scaled(wider), times=times * one.added.times)
            for one in single.noises
        ]

    streamed = [[one.added for one in stream.cost_of_sum(off).noises] for off in offs]
    apart = math.sqrt(often)
    return Baseline(
        every=every,
        periods=horizon,
        ways=(
            PublishingWay(
                what="this stream",
                epsilon=epsilon,
                delta=delta,
                total=length * offs[0],
                period=length * offs[1],
                errors=errors(*streamed),
            ),
            PublishingWay(
                what=f"fresh noise each {every}, same cost",
                epsilon=epsilon,
                delta=delta,
                total=math.sqrt(often * horizon),
                period=apart,
                errors=errors(fresh(horizon, apart), fresh(1, apart)),
            ),
            PublishingWay(
                what=f"the total asked anew each {every}",
                epsilon=anew,
                delta=min(1.0, float(terms.delta_loss + horizon * single.keys_delta)),
                total=1.0,
                period=math.sqrt(2),
                errors=errors(fresh(1), fresh(2)),
            ),
        ),
        release=None if told is None else (stream.names.get(told.name, told.name), _error(told, fresh(1))),
    )


def _told(stream: PricedStream) -> Answer | None:
    """Return the first count or sum of a question, None if there is none."""
    answers = stream.bounding.answers
    return next((one for one in answers if one.function.record.linear(one) is not None), None)


def _error(answer: Answer, noises: Sequence[AddedNoise]) -> float:
    """Return the 95% error of a count or sum with these noises, as its interval has it."""
    own = [next(one for one in noises if one.measure == name) for name in answer.measures]
    found = answer.function.record.forecast(answer, own, None, _LEVEL).error
    assert found is not None
    return found
