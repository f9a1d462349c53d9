"""What trust is worth: one question in three models of trust, on the same people, with the same promise.

The errors are distances from the truth, which only the owner of the table may look at.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from sfumato.core.arguments import Number, budget_quantity, count, delta_quantity
from sfumato.errors import InvalidArgument
from sfumato.local.comparison import NORMAL, Comparison, MeasuredError
from sfumato.local.people import People, invent_ages, invent_answers, read_answers, read_numbers
from sfumato.local.protocol import Protocol
from sfumato.local.rounding import bounds_of
from sfumato.local.trust import MeanAsked, Model, SharesAsked, TrustQuestion, Way

__all__ = ["compare"]

_STEPS = (Fraction(1, 10), Fraction(1, 5), Fraction(1, 2), 1, 2, 5)  # of epsilon
_PARTS = (100, math.sqrt(1000), 10, math.sqrt(10), 1)  # one person in this many is used
_LARGEST = 20  # what protocols offer
_PEOPLE = 20_000


def compare(
    data: Any = None,
    *,
    column: str | None = None,
    low: Number | None = None,
    high: Number | None = None,
    answers: Sequence[str] | None = None,
    epsilon: Number = 1,
    delta: Number = 1e-6,
    people: int | None = None,
    repetitions: int = 100,
    epsilons: Sequence[Number] | None = None,
    sizes: Sequence[int] | None = None,
) -> Comparison:
    """Answer one question in three models of trust, again and again, and see how far off each is.

    The question is the mean of a number between `low` and `high`, or the shares of all `answers`. `data` is
    the owner's table, read as it is; without it people are invented. `people` is how many to take, at random,
    or to invent: by default all of a table, up to 20,000. The truth is that of these people: which of them
    were taken is no error of a model.
    """
    promised, allowed = budget_quantity(epsilon, "epsilon"), delta_quantity(delta)
    count(repetitions, "repetitions", least=2)
    wanted = None if people is None else count(people, "people")
    everyone, bounds = _people(data, column, low, high, answers, wanted)
    taken = everyone.shuffled(min(len(everyone), wanted or _PEOPLE))
    delta_quantity(delta, people=len(taken))
    losses = _epsilons(promised, epsilons)
    counts = _sizes(len(taken), sizes)

    def asked(n: int) -> TrustQuestion:
        if bounds is None:
            return SharesAsked(values=taken.values[:n], size=len(answers or ()))
        return MeanAsked(values=taken.values[:n], low=bounds[0], high=bounds[1])

    whole = asked(len(taken))
    by_epsilon = _measure(whole, losses, allowed, repetitions)
    by_people: list[MeasuredError] = []
    for n in counts:
        if n == len(taken):
            by_people += [one for one in by_epsilon if one.epsilon == float(promised)]
        else:
            by_people += _measure(asked(n), (promised,), allowed, repetitions)
    return Comparison(
        what=f"{'The mean' if bounds else 'Shares'} of {taken.what}",
        people=len(taken),
        epsilon=float(promised),
        delta=float(allowed),
        repetitions=repetitions,
        spread=whole.spread,
        by_epsilon=tuple(by_epsilon),
        by_people=tuple(by_people),
        dropped=everyone.dropped,
        clamped=everyone.clamped,
        sampled=len(everyone) - len(taken),
        invented=everyone.invented,
    )


def _people(
    data: Any,
    column: str | None,
    low: Number | None,
    high: Number | None,
    answers: Sequence[str] | None,
    people: int | None,
) -> tuple[People, tuple[Fraction, Fraction] | None]:
    """Read or invent people; the bounds are None where the question is of answers."""
    if answers is not None and (low is not None or high is not None):
        raise InvalidArgument(
            "bounds are for a number, answers for a choice: give one of them", place="answers"
        )
    if data is None:
        if column is not None or low is not None or high is not None:
            raise InvalidArgument(
                "a column and bounds need a table", place="data", hints=("without one, ages are invented",)
            )
        if answers is None:
            return invent_ages(people or _PEOPLE), bounds_of(0, 110)
        return invent_answers(people or _PEOPLE, answers), None
    if column is None:
        raise InvalidArgument(
            "which column is asked about?", place="column", hints=("column='income', or --column income",)
        )
    if answers is not None:
        return read_answers(data, column, answers), None
    if low is None or high is None:
        raise InvalidArgument(
            "the mean of a number needs its bounds",
            place="low" if low is None else "high",
            hints=(
                "low=0, high=200_000, or --low 0 --high 200000: known beforehand, not read off the data",
                "for a column of answers, name them: answers=('yes', 'no'), or --answers yes,no",
            ),
        )
    return read_numbers(data, column, low, high), bounds_of(low, high)


def _epsilons(epsilon: Fraction, given: Sequence[Number] | None) -> tuple[Fraction, ...]:
    """Return where to measure, in order; the epsilon in question is among them."""
    if given is None:
        return tuple(sorted({epsilon, *(epsilon * step for step in _STEPS if epsilon * step <= _LARGEST)}))
    return tuple(sorted({epsilon, *(budget_quantity(one, "epsilons") for one in given)}))


def _sizes(n: int, given: Sequence[int] | None) -> tuple[int, ...]:
    """Return how many people to take, in order; all of them are the last."""
    if given is None:
        return tuple(sorted({n, *(max(1, round(n / part)) for part in _PARTS)}))
    return tuple(sorted({n, *(min(n, count(one, "sizes")) for one in given)}))


def _measure(
    asked: TrustQuestion, epsilons: Sequence[Fraction], delta: Fraction, repetitions: int
) -> list[MeasuredError]:
    """Measure all models at some epsilons."""
    database = asked.open()
    return [
        _measured(model, float(epsilon), asked, way, repetitions)
        for epsilon in epsilons
        for model, way in asked.ways(epsilon, delta, database).items()
    ]


def _measured(
    model: Model, epsilon: float, asked: TrustQuestion, way: Way, repetitions: int
) -> MeasuredError:
    """Repeat; the interval is that of a mean of squares, on the scale of its logarithm."""
    squares, predicted = asked.squared_errors(way, repetitions), asked.error(way)
    mean = float(squares.mean())
    error, width = math.sqrt(mean), 0.0
    if mean > 0:
        width = NORMAL * float(squares.std(ddof=1)) / math.sqrt(repetitions) / mean / 2
    return MeasuredError(
        model=model,
        epsilon=epsilon,
        people=len(asked.values),
        error=error,
        low=error * math.exp(-width),
        high=error * math.exp(width),
        predicted=None if predicted is None else math.sqrt(predicted),
        each=way.epsilon if isinstance(way, Protocol) else None,
        protocol=way.name if isinstance(way, Protocol) else None,
    )
