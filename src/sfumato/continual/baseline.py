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
from dataclasses import dataclass
from statistics import NormalDist

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
                self._error(one.total),
                self._error(one.period),
            )
            for one in self.ways
        )

    def _error(self, times: float) -> str:
        wide = "" if self.release is None else f"±{times * self.release[1]:.3g} "
        return f"{wide}({times:.3g} x)"

    def lines(self) -> list[str]:
        """Return the table as aligned text."""
        cells: Sequence[Sequence[str]] = (self.heads, *self.rows)
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        return [
            "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip()
            for row in cells
        ]

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
    errors = [
        length * float(find(stream.factorisation, horizon)[-1])
        for find in (total_deviations, period_deviations)
    ]
    epsilon, delta = float(stream.epsilon), float(terms.delta_loss + stream.cost.keys_delta)
    anew = terms.rule.epsilon(horizon * terms.allowance(stream.epsilon), terms.delta_loss)
    return Baseline(
        every=every,
        periods=horizon,
        ways=(
            PublishingWay(
                what="this stream", epsilon=epsilon, delta=delta, total=errors[0], period=errors[1]
            ),
            PublishingWay(
                what=f"fresh noise each {every}, same cost",
                epsilon=epsilon,
                delta=delta,
                total=math.sqrt(often * horizon),
                period=math.sqrt(often),
            ),
            PublishingWay(
                what=f"the total asked anew each {every}",
                epsilon=anew,
                delta=min(1.0, float(terms.delta_loss + horizon * single.keys_delta)),
                total=1.0,
                period=math.sqrt(2),
            ),
        ),
        release=_one_release(stream, single),
    )


def _one_release(stream: PricedStream, single: Cost) -> tuple[str, float] | None:
    """Return the first count or sum of a question, and the error of one release of it, not rounded."""
    noises = {one.measure: one.added.deviation for one in single.noises}
    wide = NormalDist().inv_cdf((1 + _LEVEL) / 2)
    for answer in stream.bounding.answers:
        if (worth := answer.function.record.linear(answer)) is not None:
            off = math.hypot(*(float(one) * noises[name] for name, one in worth.items()))
            return stream.names.get(answer.name, answer.name), wide * off
    return None
