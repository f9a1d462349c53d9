"""Black box: a lower bound on the epsilon of anything that can be run, from samples alone.

    screen a few outputs of every pair of neighbours, where there are many; three pairs stay
    choose the pair, the event and the order that promise most, on a quarter of the outputs
    test   that one event on the rest of them, which had no part in choosing it

Theorem: given what was chosen, the outputs for testing are as fresh as if the event had been fixed
beforehand, so `epsilon_of_counts` holds: the bound is above the true epsilon with probability at most
`miss`, however many neighbours, events and orders were looked at. Assumes: one call of `run` returns
independent outputs, and so do several.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.audit.evidence import Evidence, epsilon_of_counts, read_miss
from sfumato.audit.output_table import OutputTable, output_table_of
from sfumato.audit.search import Distinguisher, best_distinguisher
from sfumato.core.arguments import Number, count, delta_quantity
from sfumato.core.proportion import Proportion
from sfumato.errors import InvalidArgument

__all__ = ["Pair", "Run", "best_bound", "lower_bound", "repeated"]

Run = Callable[[Any, int], Any]
"""Takes data and a number of trials; returns as many independent outputs, in a list or an array."""

_CHOOSING = 4  # one part in this many
_SCREENING, _FEWEST, _STAY = 12, 150, 3  # one part in _SCREENING, at least _FEWEST; pairs that stay
_LENIENT = 0.01  # when screening: what can hardly be seen yet must not be lost
_CAUTION = 1e-6  # of the bounds by which events are compared: the best of thousands is partly luck


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pair:
    """Two neighbouring inputs: they differ by one unit, which `name` describes.

    >>> Pair(name="nobody and Ada", left=[], right=["Ada"]).name
    'nobody and Ada'
    """

    name: str
    left: Any
    right: Any


def repeated(function: Callable[[Any], Any]) -> Run:
    """Return the run of a function of one output. What it raises is an output as well.

    >>> repeated(lambda data: sum(data) / len(data))([], 2)
    [ZeroDivisionError('division by zero'), ZeroDivisionError('division by zero')]
    """

    def run(data: Any, trials: int) -> list[Any]:
        outputs: list[Any] = []
        for _ in range(trials):
            try:
                outputs.append(function(data))
            except Exception as error:
                outputs.append(error)
        return outputs

    return run


def lower_bound(
    run: Run, left: Any, right: Any, *, delta: Number = 0, trials: int = 100_000, miss: float = 1e-9
) -> Evidence:
    """Return a lower bound on epsilon at `delta`, from `trials` outputs of each of two neighbours.

    >>> from sfumato.core import discrete_laplace
    >>> found = lower_bound(lambda data, n: len(data) + discrete_laplace(1, size=n), [], ["Ada"])
    >>> 0.6 < found.epsilon <= 1  # the truth is 1
    True
    """
    pair = Pair(name="left and right", left=left, right=right)
    return best_bound(run, (pair,), delta=delta, trials=trials, miss=miss)


def best_bound(
    run: Run, pairs: Sequence[Pair], *, delta: Number = 0, trials: int = 100_000, miss: float = 1e-9
) -> Evidence:
    """Return the lower bound of the pair of neighbours that promises most.

    Screening takes a twelfth of the trials for each pair, choosing a quarter for each of those that stay,
    testing the rest for one.
    """
    lost, wrong = float(delta_quantity(delta)), read_miss(miss)
    if count(trials, "trials") < 2 * _CHOOSING:
        raise InvalidArgument("an audit needs more trials than that", place="trials", hints=("1000, say",))
    if not pairs:
        raise InvalidArgument("an audit needs a pair of neighbours", place="neighbours")
    choosing = trials // _CHOOSING
    screening = max(_FEWEST, trials // _SCREENING) if len(pairs) > _STAY else 0
    stay = list(pairs)
    if screening:
        found = [_looked(run, pair, screening, lost, _LENIENT) for pair in pairs]
        order = sorted(range(len(pairs)), key=lambda at: -found[at].promise)
        stay = [pairs[at] for at in order[:_STAY]]
    events = [_looked(run, pair, choosing, lost, min(wrong, _CAUTION)) for pair in stay]
    pair, event = max(zip(stay, events, strict=True), key=lambda both: both[1].promise)
    testing = trials - choosing
    with np.errstate(over="ignore", invalid="ignore"):
        hits = [int(event.holds(_drawn(run, data, testing)).sum()) for data in (pair.left, pair.right)]
    likely, unlikely = hits if event.left_is_likely else hits[::-1]
    bound = epsilon_of_counts(likely, unlikely, (testing, testing), delta=lost, miss=wrong)
    return Evidence(
        epsilon=float(bound[0]),
        delta=lost,
        miss=wrong,
        pair=pair.name,
        event=event.words,
        likely=Proportion(hits=likely, trials=testing),
        unlikely=Proportion(hits=unlikely, trials=testing),
        samples=2 * (choosing * len(stay) + screening * len(pairs)),
    )


def _looked(run: Run, pair: Pair, trials: int, delta: float, miss: float) -> Distinguisher:
    left, right = (_drawn(run, data, trials) for data in (pair.left, pair.right))
    with np.errstate(over="ignore", invalid="ignore"):  # infinities are outputs like others
        return best_distinguisher(left, right, delta=delta, miss=miss)


def _drawn(run: Run, data: Any, trials: int) -> OutputTable:
    try:
        outputs = run(data, trials)
    except Exception as error:  # whatever the data did, it is an output, the same in every trial
        outputs = [error] * trials
    table = output_table_of(outputs)
    if table.size != trials:
        raise InvalidArgument(
            f"a run of {trials} trials must return {trials} outputs",
            place="run",
            hints=("audit.repeated(f) makes a run of a function f(data) of one output",),
        )
    return table
