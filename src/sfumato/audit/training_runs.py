"""The audit of a training run: canary units are in the data by a fair coin each, and are guessed from it.

The table is invented. Each canary has a value of its own in the only feature, and several equal rows: a unit
that is not clipped as one stands out. A crowd of others has no value there. The model is trained once, by
the code that trains every model. The auditor sees all that a training may reveal: not the model alone, but
the noisy integers of every step. What a canary would add to each step is known; the more of it the noisy
integers show, the likelier the canary is in the data:

    sum over steps of (<noisy, own> - <own, own> / 2) / variance of the noise

is the logarithm of the likelihood ratio of Gaussian noise. It is taken of the numbers of the canary's own
feature, less what all others add there, which follows from the numbers of the constant feature. The quarter
of canaries with the largest are guessed to be in, the quarter with the smallest to be out; nothing is guessed
of the others.

Theorem: `one_run.one_run_miss`. The coins are independent of everything else, and guesses depend on noisy
integers alone, which the charged event covers. So a training that keeps its claim is called false with
probability at most `miss`. The bound is loose: it can prove a claim false, and is never an epsilon.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sfumato.audit.evidence import Evidence, read_miss
from sfumato.audit.one_run import one_run_epsilon
from sfumato.audit.subject import Claim, Verdict
from sfumato.backends import UnitRows
from sfumato.catalog import one_of
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.arguments import Number, count
from sfumato.core.coins import bernoulli
from sfumato.core.proportion import Proportion
from sfumato.errors import InvalidArgument
from sfumato.learn.networks.training import PricedNetwork
from sfumato.learn.training import PricedTraining
from sfumato.release.noise import add_noise_in_steps
from sfumato.session import connect

__all__ = ["LOOSE", "examine_training"]

LOOSE = "one run gives a loose lower bound: a small one is no evidence of privacy, and it is never an epsilon"
"""What is said beside every bound of one run."""

_MOST = 1_000  # canaries: each is a feature
_CROWD = 20  # for each canary: what they learn drowns the noise that canaries would hide behind

_Step = tuple[Any, npt.NDArray[Any], npt.NDArray[Any]]
"""The state before a step, its noisy integers, and what one of the crowd would add to them. Public."""


class _Classifier(Protocol):
    """What is trained: an estimator of `sfumato.learn` for labels with two values."""

    def get_params(self) -> dict[str, Any]: ...

    def priced(self, table: Any) -> PricedTraining | PricedNetwork: ...


def examine_training(
    estimator: _Classifier, *, canaries: int = 200, rows: int = 50, delta: Number = 1e-12, miss: float = 1e-9
) -> Verdict:
    """Train once on invented canaries, guess which were in the data, and say what the guesses prove.

    `estimator` is a classifier of `sfumato.learn` with the settings that are to be examined; its label and
    features are replaced by those of the invented table. Each canary has `rows` rows. No budget is spent, and
    no row of yours is used. A true claim is called false with probability at most `miss`.

    >>> from sfumato.learn import LogisticRegression
    >>> verdict = examine_training(LogisticRegression(label="any", epsilon=1, steps=5), canaries=40, rows=2)
    >>> verdict.passed, verdict.evidence.miss
    (True, 1e-09)
    """
    wrong, number = read_miss(miss), count(canaries, "canaries", least=4, most=_MOST)
    times = count(rows, "rows", most=1_000)
    settings = estimator.get_params()
    if settings.get("epsilon") is None:
        raise InvalidArgument(
            "a training that is examined claims an epsilon",
            place="epsilon",
            hints=("LogisticRegression(label='any', epsilon=1)",),
        )
    if settings.get("module") is not None:
        raise InvalidArgument(
            "a training is examined with the network that is built in: that of a module sees other features",
            place="module",
            hints=("NeuralNetwork(label='any', epsilon=1, hidden=(16,))",),
        )
    claim = Claim(epsilon=float(settings["epsilon"]), delta=float(delta))
    trained = type(estimator)(**{**settings, "label": "label", "features": ["canary"]})
    present, labels = bernoulli(0.5, size=number), bernoulli(0.5, size=number)
    inside, crowd = np.repeat(np.flatnonzero(present), times), _CROWD * number
    table = pa.table(
        {
            "unit": np.concatenate([inside, number + np.arange(crowd)]),
            "canary": pa.chunked_array([pa.array(inside), pa.nulls(crowd, pa.int64())]),
            "label": np.concatenate([labels[inside], bernoulli(0.5, size=crowd)]),
        }
    )
    database = connect(
        table,
        name="canaries",
        unit="unit",
        columns={"canary": one_of(*range(number))},
        budget=PrivacyBudget(epsilon=settings["epsilon"], delta=claim.delta, keys_delta=claim.delta / 10),
    )
    priced = trained.priced(database.table("canaries"))
    seen: list[tuple[Any, npt.NDArray[Any]]] = []

    def update(state: Any, noisy: npt.NDArray[Any]) -> Any:
        seen.append((state, noisy))
        return priced.update(state, noisy)

    exact = database.backend.training_rows(priced.rows.relation)
    vectors: Any = priced.vectors
    add_noise_in_steps(exact, vectors, update, priced.start, priced.step_laws)
    own = [_rows(place, bool(labels[place]), times) for place in range(number)]
    if isinstance(priced, PricedNetwork):
        assert priced.hidden is not None, "a module of the user's is refused before"
        scores = [_network_score(place, rows, priced, seen) for place, rows in enumerate(own)]
    else:
        others = priced.vectors(_rows(-1, True, 1))
        steps = [(state, noisy, others(state)) for state, noisy in seen]
        scores = [_score(place, rows, priced, steps) for place, rows in enumerate(own)]
    right, guesses = _guessed(np.array(scores), present)
    return Verdict(
        name=f"{type(estimator).__name__}: one training run",
        claim=claim,
        evidence=Evidence(
            epsilon=one_run_epsilon(number, guesses, right, delta=claim.delta, miss=wrong),
            delta=claim.delta,
            miss=wrong,
            pair=f"{number} canaries that are in the data by a fair coin each",
            event="`the guess is right`, beside `it is wrong`,",
            likely=Proportion(hits=right, trials=guesses),
            unlikely=Proportion(hits=guesses - right, trials=guesses),
        ),
        notes=(LOOSE,),
    )


def _rows(place: int, label: bool, times: int) -> UnitRows:
    """Return the rows of one canary, as the engine would read them."""
    columns = {"canary": np.full(times, float(place)), "label": np.full(times, float(label))}
    return UnitRows(columns=columns, sizes=np.array([times]))


def _score(place: int, rows: UnitRows, priced: PricedTraining, steps: list[_Step]) -> float:
    """Return the logarithm of the likelihood ratio of one canary, in and out, from all steps."""
    vectors, total = priced.vectors(rows), 0.0
    for (state, noisy, others), law in zip(steps, priced.step_laws, strict=True):
        at, constant = (place + 1, 0) if noisy.ndim == 1 else (place, -1)  # moments begin with a constant
        lean = np.asarray(others[at], dtype=np.float64) / np.asarray(others[constant], dtype=np.float64)
        own, found = (
            np.asarray(one[at], dtype=np.float64) - lean * np.asarray(one[constant], dtype=np.float64)
            for one in (vectors(state), noisy)
        )
        total += float((own * (found - own / 2) / (1 + lean**2)).sum()) / float(law.variance)
    return total


def _network_score(
    place: int, rows: UnitRows, priced: PricedNetwork, steps: list[tuple[Any, npt.NDArray[Any]]]
) -> float:
    """Return the same for a network, from the weights that its first layer gives to the canary's own feature.

    All others have none of it, so that nothing but noise hides the canary there; but it may not be sampled.
    """
    surely = replace(priced, noise=replace(priced.noise, rate=Fraction(1)))
    vectors, rate, total = surely.vectors(rows), float(priced.noise.rate), 0.0
    width = priced.features.width
    mine = place + width * np.arange(next(priced.module.parameters()).shape[0])
    for state, noisy in steps:
        own, found = (one[mine].astype(np.float64) for one in (vectors(state), noisy))
        ratio = float((own * (found - own / 2)).sum()) / float(priced.noise.law.variance)
        total += math.log(1 - rate + rate * math.exp(min(ratio, 700.0)))
    return total


def _guessed(scores: npt.NDArray[np.float64], present: npt.NDArray[np.bool_]) -> tuple[int, int]:
    """Guess that the quarter of largest scores is in, and that of the smallest out: (right, all guesses)."""
    order, some = np.argsort(scores, kind="stable"), len(scores) // 4
    return int(present[order[-some:]].sum() + (~present[order[:some]]).sum()), 2 * some
