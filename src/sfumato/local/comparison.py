"""What a comparison of models of trust found: errors, how they fall, what to take away, and pictures."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sfumato.local.trust import MODELS, Model
from sfumato.pages import PageTable
from sfumato.plots import Axis, Line, Mark, Picture, Points

__all__ = ["Comparison", "HEADS", "MeasuredError", "NORMAL", "OWNER", "Slope", "cells"]

OWNER = "Errors are distances from the truth: for the owner of the data, and never a release."
"""What every report ends with."""
HEADS = ("epsilon", "people", *MODELS, "each report")
"""What stands above the cells of a table of errors."""
NORMAL = 1.959963984540054
"""The deviations of a normal law within which 95% lie."""

_OF_EPSILON = """\
The same people, the same question, the same promise to each of them. Lines are formulas, points are
measured, with 95% intervals. While epsilon is small, no way to do without trust falls faster than the dashed
line, one over epsilon times the root of n (Duchi, Jordan and Wainwright 2013)."""
_OF_PEOPLE = """\
Where everybody adds noise, it averages out like one over the root of n, the dashed line: a tenth of the
error takes a hundred times as many people. A trusted collector adds noise once, and its part in the answer
falls like 1/n."""
_WIDTH = 110
_APART = 0.01  # logarithms closer than this are one place, through which no line is fitted


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredError:
    """How far off one model was, as a root mean squared error, beside what its formula says.

    `low` and `high` hold the error that endless repetitions would show, in about 95 of 100 cases. `each` is
    the epsilon of one report, `protocol` what made it; a trusted collector gets no reports. `predicted` is
    None where the people are too few for the formula.
    """

    model: Model
    epsilon: float
    people: int
    error: float
    low: float
    high: float
    predicted: float | None
    each: float | None = None
    protocol: str | None = None

    @property
    def deviation(self) -> float:
        """The standard error of the logarithm of `error`."""
        return math.log(self.high / self.error) / NORMAL if self.error else math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Slope:
    """How fast the error falls: like the number of people, or epsilon, to this power.

    `deviation` is the standard error of a fit by least squares through logarithms.
    """

    model: Model
    value: float
    deviation: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ± {NORMAL * self.deviation:.2f}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Comparison:
    """Errors in three models of trust: against epsilon with all people, and against people at one epsilon."""

    what: str
    people: int
    epsilon: float
    delta: float
    repetitions: int
    spread: float
    """The variance of one person's value: what asking fewer people costs by itself."""
    by_epsilon: tuple[MeasuredError, ...]
    by_people: tuple[MeasuredError, ...]
    dropped: int = 0
    clamped: int = 0
    sampled: int = 0
    """How many more people there were, of whom these are a random sample."""
    invented: bool = False

    def at(self, model: Model) -> MeasuredError:
        """Return what was measured with all people, at the epsilon in question."""
        return next(one for one in self.by_epsilon if one.model == model and one.epsilon == self.epsilon)

    def one_in(self, model: Model) -> float | None:
        """Return x: a trusted collector who asks one in x of the people does as well as this model with all.

        Of n people, m are drawn at random and answer a collector whom they trust: the squared error is then
        s (1/m - 1/n) for who was drawn, and C/m^2 for the noise. Where that is the error of the other model,
        x = n/m. None where the formulas do not hold because the people are too few.
        """
        n, central, other = self.people, self.at("central").predicted, self.at(model).predicted
        if central is None or other is None or n < 2:
            return None
        noise, drawn = (central * n) ** 2, self.spread * n / (n - 1)
        # Solve noise u^2 + drawn u = other^2 + drawn/n for u = 1/m; in this form nothing cancels.
        right = other**2 + drawn / n
        u = 2 * right / (drawn + math.sqrt(drawn**2 + 4 * noise * right))
        return max(1.0, u * n)

    @property
    def sentence(self) -> str:
        """What to take away."""
        where = f"At epsilon {self.epsilon:g} and with {self.people:,} people"
        local, shuffled = self.one_in("local"), self.one_in("shuffled")
        if local is None or shuffled is None:
            return f"{where} there is little to compare: even a trusted collector's noise drowns the answer."
        asked = max(1, round(self.people / local))
        return (
            f"{where}, not trusting the collector costs as much as asking only one in {_short(local)} of "
            f"them: a trusted collector would do as well with {asked:,} drawn at random. Trusting only a "
            f"shuffler costs as much as asking one in {_short(shuffled)}."
        )

    @property
    def slopes(self) -> tuple[Slope, ...]:
        """How the measured error falls with the number of people: -1/2 where each randomises, else -1."""
        return _slopes(self.by_people, "people")

    @property
    def epsilon_slopes(self) -> tuple[Slope, ...]:
        """How the measured error falls with epsilon, where that is at most 1."""
        return _slopes([one for one in self.by_epsilon if one.epsilon <= 1], "epsilon")

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know of the data and the models."""
        said = ["The people are invented."] if self.invented else []
        if self.sampled:
            said.append(f"They are a random sample: {self.sampled:,} more are in the table.")
        if self.dropped:
            said.append(f"Left out, for they have no such value: {self.dropped:,}.")
        if self.clamped:
            said.append(
                f"Outside the bounds, and moved to the nearer one in every model: {self.clamped:,}. "
                "What that does to the answer is in no error here."
            )
        for one in (*self.by_people, *self.by_epsilon):
            if one.model == "shuffled" and one.each is not None and one.each <= one.epsilon * 1.001:
                said.append(
                    f"With {one.people:,} people and delta {self.delta:g} shuffling hides nothing more at "
                    f"epsilon {one.epsilon:g}: shuffled is local there."
                )
                break
        said.append(
            "The shuffled model assumes that all of the people are honest, and delta "
            f"{self.delta:g}; the others need no delta."
        )
        return (*said, OWNER)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, JSON-ready."""
        found = asdict(self)
        del found["spread"]
        return {
            **found,
            **{
                name: [{"model": one.model, "slope": one.value, "deviation": one.deviation} for one in slopes]
                for name, slopes in (("slopes", self.slopes), ("epsilon_slopes", self.epsilon_slopes))
            },
            "one_in": {model: self.one_in(model) for model in MODELS},
            "sentence": self.sentence,
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        lines = [
            f"{self.what}: root mean squared error of {self.repetitions:,} repetitions (and by formula)",
            "",
            *_table(self.by_epsilon),
            "",
            *_table(self.by_people),
            "",
        ]
        for what, slopes in (("people", self.slopes), ("epsilon, up to 1,", self.epsilon_slopes)):
            if slopes:
                each = ", ".join(f"{one.model} {one}" for one in slopes)
                lines.append(f"the error falls with {what} to the power: {each} (95%)")
        words = (self.sentence, *(f"-- {note}" for note in self.notes))
        return "\n".join([*lines, "", *(textwrap.fill(text, _WIDTH) for text in words)])

    __repr__ = __str__

    def pictures(self) -> tuple[Picture, Picture]:
        """Draw error against epsilon, and error against the number of people."""
        epsilon = f"Error against epsilon, with {self.people:,} people"
        people = f"Error against the number of people, at epsilon {self.epsilon:g}"
        return (
            self._picture("epsilon", -1.0, epsilon, _OF_EPSILON),
            self._picture("people", -0.5, people, _OF_PEOPLE),
        )

    def _picture(self, axis: str, power: float, title: str, caption: str) -> Picture:
        """Draw measured points with their intervals, formulas as lines, and a dashed line of one power."""
        points = self.by_epsilon if axis == "epsilon" else self.by_people

        def x(one: MeasuredError) -> float:
            return float(getattr(one, axis))

        lines: list[Mark] = []
        spots: list[Mark] = []
        for model in MODELS:
            ours = [one for one in points if one.model == model]
            known = tuple((x(one), one.predicted) for one in ours if one.predicted is not None)
            seen = tuple((x(one), one.error, one.low, one.high) for one in ours if one.error > 0)
            lines.append(Line(label=model, points=known))
            spots.append(Points(label=model, points=seen))
        local = [one for one in points if one.model == "local"]
        start = local[0].predicted or local[0].error
        falling = tuple((x(one), start * (x(one) / x(local[0])) ** power) for one in local)
        dashed = Line(label=f"{axis} to the power {power:g}", points=falling, dashed=True)
        return Picture(
            title=title,
            caption=caption,
            x=Axis(title=axis, log=True),
            y=Axis(title="root mean squared error", log=True),
            marks=(*lines, dashed, *spots),
        )


def _slopes(points: Sequence[MeasuredError], axis: str) -> tuple[Slope, ...]:
    """Fit log error against the logarithm of epsilon or people; nothing to fit where all are one."""
    found = []
    for model in MODELS:
        ours = [one for one in points if one.model == model and one.error > 0]
        x = np.log([float(getattr(one, axis)) for one in ours])
        if len(ours) < 2 or np.ptp(x) < _APART:
            continue
        weights = (x - x.mean()) / np.sum((x - x.mean()) ** 2)
        y = np.log([one.error for one in ours])
        noise = np.array([one.deviation for one in ours])
        found.append(
            Slope(
                model=model,
                value=float(weights @ y),
                deviation=float(np.sqrt(np.sum((weights * noise) ** 2))),
            )
        )
    return tuple(found)


def cells(points: Sequence[MeasuredError]) -> list[tuple[str, ...]]:
    """Return one row of texts per epsilon and number of people, with the models side by side."""
    rows: dict[tuple[float, int], dict[Model, MeasuredError]] = {}
    for one in points:
        rows.setdefault((one.epsilon, one.people), {})[one.model] = one
    return [
        (
            f"{epsilon:g}",
            f"{people:,}",
            *(_cell(models[model]) for model in MODELS),
            f"{models['shuffled'].each or 0.0:.3g}",
        )
        for (epsilon, people), models in rows.items()
    ]


def _table(points: Sequence[MeasuredError]) -> list[str]:
    return PageTable(heads=HEADS, rows=cells(points), sides="r" * len(HEADS)).text().splitlines()


def _cell(one: MeasuredError) -> str:
    return f"{one.error:.3g} ({'-' if one.predicted is None else f'{one.predicted:.3g}'})"


def _short(times: float) -> str:
    return f"{times:.3g}" if times < 100 else f"{times:,.0f}"
