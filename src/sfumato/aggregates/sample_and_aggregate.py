"""Sample and aggregate: a statistic that no bound on one person is known for, of k blocks of people.

Every person is in one of k blocks. The statistic of each block is clamped to a range that the question gives,
and the noisy mean of the k values is the answer: centre + S * scale / k, where S is the noisy sum of their
distances from the middle of the range, in steps of `scale`. What one person moves: `analysis/measures`.

The mean, and not a private median of the k values: its error, about range / (k epsilon), is known before
anything is spent, and its interval is that of the noise alone. Simulated with values of blocks that spread
by s of the range, the median errs two to four times as much for k epsilon below 25, and as much where s is
a fifth; for k epsilon of 50 and more and s below a tenth it is ahead, and there a narrower range helps the
mean.

Theorem (Nissim, Raskhodnikova and Smith 2007): where one person is in one block, any function of blocks may
be computed in each of them, and one person changes one of the k results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import ClassVar

from sfumato.aggregates.answer import AddedNoise, Answer, Forecast, NoisyColumn, NoisyMeasure
from sfumato.aggregates.linear import scaled
from sfumato.aggregates.measure_request import MeasureRequest
from sfumato.aggregates.record import AggregateRecord
from sfumato.catalog.kind import Kind

__all__ = [
    "BlockDesign",
    "BlockStatistic",
    "DEFAULT_BLOCKS",
    "MOST_BLOCKS",
    "SampleAndAggregate",
    "statistic_called",
]

DEFAULT_BLOCKS = 50
MOST_BLOCKS = 10_000


class BlockStatistic(Enum):
    """What `backends/bounding/block_values` can compute of a block, by the names that SQL has for it."""

    AVG = ("avg", "mean")
    CORR = ("corr",)
    ENTROPY = ("entropy",)
    GEOMEAN = ("geomean", "geometric_mean")
    KURTOSIS = ("kurtosis",)
    KURTOSIS_POP = ("kurtosis_pop",)
    MAD = ("mad",)
    MAX = ("max",)
    MEDIAN = ("median",)
    MIN = ("min",)
    SKEWNESS = ("skewness",)
    STDDEV = ("stddev_samp", "stddev", "std")
    VARIANCE = ("var_samp", "variance", "var")

    @property
    def label(self) -> str:
        """How it is shown."""
        return str(self.value[0])

    @property
    def arity(self) -> int:
        """How many values of a row it takes."""
        return 2 if self is BlockStatistic.CORR else 1

    def takes(self, kind: Kind) -> bool:
        """Return whether its values may be of a kind."""
        return kind.numeric or self is BlockStatistic.ENTROPY


def statistic_called(*names: str) -> BlockStatistic | None:
    """Return the statistic that SQL calls by one of these names, None if there is none.

    >>> statistic_called("STD")
    <BlockStatistic.STDDEV: ('stddev_samp', 'stddev', 'std')>
    """
    called = {name.lower() for name in names}
    return next((one for one in BlockStatistic if called & set(one.value)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockDesign:
    """How people are divided, and what is computed of each block, between which ends."""

    statistic: BlockStatistic
    number: int
    lower: Fraction
    upper: Fraction


@dataclass(frozen=True, slots=True)
class SampleAndAggregate(AggregateRecord):
    """SAMPLE_AND_AGGREGATE(statistic, lower, upper, blocks => k)."""

    clamps: ClassVar[bool] = False  # values of rows are not; those of blocks are

    def takes(self, kind: Kind | None, *, inner: bool) -> bool:
        """Take any kind: which of them is a matter of the statistic."""
        return kind is not None

    def measured(self, asked: MeasureRequest) -> Answer:
        """Ask for the sum of the blocks' values."""
        measure, factor, blocks = asked.block_values()
        return Answer(
            name=asked.name,
            function=asked.function,
            measures=(measure,),
            scale=factor.grid.step,
            centre=factor.centre,
            weight=Fraction(1, blocks.number),
            lower=float(blocks.lower),
            upper=float(blocks.upper),
        )

    def answered(
        self, answer: Answer, noisy: Sequence[NoisyMeasure], level: float | None, *, non_negative: bool
    ) -> NoisyColumn:
        """Return the mean over blocks."""
        [one] = noisy
        assert one.sums is not None
        unit = answer.scale * answer.weight
        means = [Fraction(answer.centre) + unit * total for total in one.sums.tolist()]
        wide = 0 if level is None else unit * Fraction(one.noise.law.half_width(level))
        return scaled(answer, means, Fraction(1), wide, non_negative=non_negative)

    def forecast(
        self, answer: Answer, noises: Sequence[AddedNoise], size: float | None, level: float
    ) -> Forecast:
        """Return the half-width of the noise."""
        unit = float(answer.scale * answer.weight)
        return Forecast(name=answer.name, error=noises[0].law.half_width(level) * unit)

    def notes(self, answer: Answer, noises: Sequence[AddedNoise], name: str, *, shown: bool) -> Iterator[str]:
        """Say what it estimates."""
        number = answer.weight.denominator
        yield (
            f"{name} is the mean over {number:,} blocks of people: it estimates the statistic of a sample as"
            f" large as a block; a block in which there is no such number counts as {answer.centre:g}"
        )
