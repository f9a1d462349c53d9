"""Networks: digits at three epsilons, ghost clipping beside gradients of single rows, noise, accounting.

    python bench/networks.py

Digits are those of scikit-learn, 1,797 images of 8 x 8 points; every fifth is for testing, as public data.
The accuracy beside it is that of DP-SGD by a plain reference implementation. Clipping and noise are timed on
a network of 1.9 million parameters, in one thread and in one run; epsilon is that of one training.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from cases import best
from opacus.accountants import PRVAccountant
from opacus.grad_sample import GradSampleModule
from report import Row, show
from sklearn.datasets import load_digits

import sfumato as sf
from sfumato.core import Composition, discrete_gaussian
from sfumato.learn import NeuralNetwork
from sfumato.learn.networks.clipping import FINE, ClippedSums
from sfumato.learn.networks.modules import multilayer, parameters
from sfumato.learn.networks.pricing import step_noise

__all__ = ["network_rows"]

DELTA = 1e-5
ACCURACY = {8.0: 0.953, 3.0: 0.917, 1.0: 0.666}
REQUIRED_AT, WITHIN = 3.0, 0.01
RUNS = 5
FASTER = 10.0
SIZES = (784, (1024, 1024), 10)  # 1.9 million parameters
BATCH = 256


def digits() -> tuple[pa.Table, pa.Table]:
    """Return the digits for training and for testing, one person each."""
    images, labels = load_digits(return_X_y=True)
    columns = {f"p{place}": images[:, place] for place in range(images.shape[1])}
    table = pa.table({"who": np.arange(len(labels)), "digit": labels, **columns})
    test = np.arange(len(labels)) % 5 == 4
    return table.filter(~test), table.filter(test)


def fitted(train: pa.Table, epsilon: float) -> NeuralNetwork:
    """Return a network with what is the default of everything but epsilon."""
    points = {name: sf.between(0, 16) for name in train.column_names if name.startswith("p")}
    db = sf.connect(
        train,
        name="digits",
        unit="who",
        columns={"digit": sf.one_of(*range(10)), **points},
        budget=sf.Budget(epsilon=epsilon, delta=DELTA),
    )
    return NeuralNetwork(label="digit", epsilon=epsilon).fit(db.table("digits"))


def accuracy_rows() -> Iterator[Row]:
    """Return the mean accuracy of some runs at each epsilon, beside the reference."""
    train, test = digits()
    for epsilon, reference in ACCURACY.items():
        ours = statistics.mean(fitted(train, epsilon).score(test) for _ in range(RUNS))
        least = (reference - WITHIN) / reference if epsilon == REQUIRED_AT else 0.0
        name = f"accuracy on digits, epsilon {epsilon:g}, mean of {RUNS}: reference"
        yield Row(name=name, ours=ours, rival=reference, unit="", ratio=ours / reference, least=least)


def hooked(module: Any, features: torch.Tensor, labels: torch.Tensor) -> Callable[[], None]:
    """Return what sums clipped gradients of single rows, each of which is made."""
    own = GradSampleModule(module, loss_reduction="sum")
    trained = list(own.parameters())

    def summed() -> None:
        losses = torch.nn.functional.cross_entropy(own(features), labels, reduction="sum")
        torch.autograd.backward(losses)
        each = [one.grad_sample for one in trained]
        norms = torch.stack([one.flatten(1).norm(dim=1) for one in each]).norm(dim=0)
        factors = (1 / norms).clamp(max=1)
        for one in trained:
            torch.einsum("i,i...->...", factors, one.grad_sample)
            one.grad_sample = one.grad = None

    return summed


def speed_rows(times: int) -> Iterator[Row]:
    """Return what a step of a large network takes."""
    rng = np.random.default_rng(0)
    features = rng.uniform(-1, 1, (BATCH, SIZES[0])).astype(np.float32)
    labels = rng.integers(0, SIZES[2], BATCH)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        module = multilayer(*SIZES)
        at, one_row = parameters(module), np.ones(BATCH, dtype=np.int64)
        sums = ClippedSums(module, 1.0)
        ghost = best(lambda: sums.at(at, features, labels, one_row), times=times)
        inputs = torch.from_numpy(features).requires_grad_(True)
        rows = best(hooked(multilayer(*SIZES), inputs, torch.from_numpy(labels)), times=times)
    finally:
        torch.set_num_threads(threads)
    noise = best(lambda: discrete_gaussian(Fraction(4 * FINE), len(at)), times=times)
    what = f"{len(at):,} parameters"
    yield Row(
        name=f"clipped sum of {BATCH} rows, {what}: gradients of single rows",
        ours=ghost,
        rival=rows,
        unit="s",
        ratio=rows / ghost,
        least=FASTER,
    )
    yield Row(
        name=f"exact noise on {what}: clipped sum",
        ours=noise,
        rival=ghost,
        unit="s",
        ratio=noise / ghost,
    )


def accounting_rows() -> Iterator[Row]:
    """Return epsilon of one training, by its loss distribution, by what is charged, and by Opacus."""
    budget = sf.Budget(epsilon=3, delta=DELTA)
    noise = step_noise(budget, Fraction(3), sensitivity=FINE, rate=Fraction(1, 5), steps=200, failure=None)
    ours, delta = Composition([noise.batch(200)]).epsilon(budget.delta_loss), float(budget.delta_loss)
    theirs = PRVAccountant()
    theirs.history = [(noise.multiplier, 0.2, 200)]
    opacus = theirs.get_epsilon(delta)
    yield Row(
        name="epsilon of 200 steps on samples of a fifth: Opacus (PRV)",
        ours=ours,
        rival=opacus,
        unit="",
        ratio=ours / opacus,
        least=0.99,
        most=1.01,
    )
    yield Row(
        name="  as it is charged, by the Gaussian rule",
        ours=noise.epsilon(200, budget),
        rival=opacus,
        unit="",
        ratio=noise.epsilon(200, budget) / opacus,
        least=0.99,
        most=1.01,
    )


def network_rows(times: int = 3) -> Iterator[Row]:
    """Return all that is measured of networks."""
    yield from accuracy_rows()
    yield from speed_rows(times)
    yield from accounting_rows()


if __name__ == "__main__":
    began = time.perf_counter()
    found = show(network_rows(), {"opacus": __import__("opacus").__version__})
    print(f"{time.perf_counter() - began:.0f} s")
    sys.exit(0 if all(row.passed for row in found) else 1)
