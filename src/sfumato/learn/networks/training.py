"""Training a network on private rows: one reservation, and a checkpoint in the ledger every some steps.

    reserve all steps (once) ──> until each checkpoint: sample ──> clipped sum ──> + noise ──> Adam
                             ──> parameters to the ledger ──> .. ──> the network

Theorem: a training publishes one output of each checkpoint at most (`ledger.reservation`), and each step has
the event that was priced, whatever parameters it starts from (`pricing`). So whatever is killed and resumed,
what is published is one run of steps that all together cost what was charged. A checkpoint that failed is
skipped for ever: the next one starts from the parameters before it.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.backends import Exact, UnitRows
from sfumato.core.entropy import random_bits
from sfumato.core.events import Event
from sfumato.core.noise_law import NoiseLaw
from sfumato.errors import LedgerError
from sfumato.interrupts import deferred
from sfumato.learn.features import Features, ModelColumn
from sfumato.learn.networks.adam import NetworkState
from sfumato.learn.networks.clipping import FINE, ClippedSums
from sfumato.learn.networks.fitted import FittedNetwork
from sfumato.learn.networks.modules import architecture, parameters
from sfumato.learn.networks.pricing import StepNoise
from sfumato.learn.networks.sampling import UnitSampler
from sfumato.learn.private_rows import PricedRows, TrainingRows
from sfumato.ledger import Reservation
from sfumato.pipeline import Tell, reserved_steps, silent
from sfumato.release.noise import add_noise_in_steps

__all__ = ["PricedNetwork", "train"]

_BURNT = "SF607"


@dataclass(frozen=True, kw_only=True)
class PricedNetwork(PricedRows):
    """A training of a network whose cost is known: it is charged once, and looks once a checkpoint."""

    rows: TrainingRows
    features: Features
    label: ModelColumn
    module: Any
    hidden: tuple[int, ...] | None
    noise: StepNoise
    clip: float
    rate: float
    rows_per_unit: int
    checkpoints: int
    epsilon: Fraction
    delta: Fraction

    @cached_property
    def event(self) -> Event:
        """What is charged for all steps: see `pricing`."""
        return self.noise.charged.event

    @property
    def keys_delta(self) -> Fraction:
        """The chance that the event says too little, which is charged as that of a key selection is."""
        return self.noise.charged.failure

    def asked(self) -> dict[str, Any]:
        """Return what is asked and what it costs."""
        return {
            **super().asked(),
            "features": self.features,
            "label": self.label,
            "architecture": architecture(self.module),
            "clip": self.clip,
            "rate": self.rate,
            "rows_per_unit": self.rows_per_unit,
            "checkpoints": self.checkpoints,
        }

    def _costs(self) -> dict[str, Any]:
        """Make the cost record: what is charged, and the steps that it is for."""
        return {**super()._costs(), "steps": self.noise.batch(self.noise.steps).to_dict()}

    def steps_until(self, checkpoint: int) -> int:
        """Return how many steps are taken until a checkpoint is stored."""
        return checkpoint * self.noise.steps // self.checkpoints

    def advanced(self, exact: Exact[UnitRows], state: NetworkState, steps: int) -> NetworkState:
        """Return the state after some more steps. They have to be paid for."""
        return add_noise_in_steps(exact, self.vectors, self.update, state, self.step_laws[:steps])

    @property
    def step_laws(self) -> tuple[NoiseLaw, ...]:
        """The noise of each step."""
        return (self.noise.law,) * self.noise.steps

    def vectors(self, rows: UnitRows) -> Callable[[NetworkState], npt.NDArray[np.int64]]:
        """Return the function that gives the exact integers of each step, of a sample of units: private."""
        encoded, labels = self.features.encoded(rows.columns), rows.columns[self.label.name].astype(np.int64)
        sampler = UnitSampler(rows.sizes, self.noise.rate, self.rows_per_unit)
        sums = ClippedSums(self.module, self.clip)

        def vector(state: NetworkState) -> npt.NDArray[np.int64]:
            places, sizes = sampler.draw()
            return sums.at(state.point, encoded[places], labels[places], sizes)

        return vector

    def update(self, state: NetworkState, noisy: npt.NDArray[Any]) -> NetworkState:
        """Return the next state, from noisy integers alone."""
        gradient = (noisy.astype(np.float64) / FINE).astype(np.float32)
        return state.moved(gradient, self.rate, late=2 * state.step >= self.noise.steps)

    @property
    def start(self) -> NetworkState:
        """Return the state before the first step: the parameters that the module came with."""
        return NetworkState.at(parameters(self.module))

    def fitted(self, state: NetworkState) -> FittedNetwork:
        """Return the network of a state."""
        left = self.noise.steps - state.step
        skipped = (f"{left:,} of {self.noise.steps:,} steps failed and are left out",) if left else ()
        network = FittedNetwork(
            features=self.features,
            label=self.label,
            hidden=self.hidden,
            architecture=architecture(self.module),
            parameters=state.mean,
            cost=self.cost_record(),
            notes=(
                f"a unit counts once, with {self.rows_per_unit:,} of its rows at most in a step",
                f"rows without a listed value of `{self.label.name}` are left out",
                *skipped,
            ),
        )
        return network.with_module(copy.deepcopy(self.module))

    def read(self, stored: str) -> FittedNetwork:
        """Return the network that was stored as text."""
        return FittedNetwork.from_json(stored).with_module(copy.deepcopy(self.module))


def train(
    priced: PricedNetwork, *, key: str | None, purpose: str | None, tell: Tell = silent
) -> FittedNetwork:
    """Charge the training, unless it was, and take the steps that were not taken yet."""
    database = priced.rows.database
    key = f"training {random_bits(128):032x}" if key is None else key
    with reserved_steps(
        priced,
        priced.checkpoints,
        catalog=database.catalog,
        ledger=database.ledger,
        backend=database.backend,
        analyst=database.analyst,
        idempotency_key=key,
        purpose=purpose,
        data_may_change=False,
    ) as reservation:
        if reservation.replayed is not None:
            return priced.read(reservation.replayed.decode())
        try:
            state = _advance(priced, reservation, tell)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"interrupted: the training was charged, as reservation {reservation.sequence}; "
                f"fit(.., key={key!r}) goes on with it, free"
            ) from None
        network = priced.fitted(state)
        digest = hashlib.sha256(network.to_json().encode()).hexdigest()
        network = network.with_receipt(reservation.receipt(digest))
        with deferred():
            reservation.commit(network.to_json().encode())
        return network


def _advance(priced: PricedNetwork, reservation: Reservation, tell: Tell) -> NetworkState:
    """Return the state after the last checkpoint; those that are stored are read, the others are made."""
    database, backend = priced.rows.database, priced.rows.database.backend
    asked, version = priced.fingerprint(), backend.data_version()
    state, exact = priced.start, None
    for number in range(1, priced.checkpoints + 1):
        if exact is None and number > reservation.taken:
            with backend.admitted():
                exact = backend.training_rows(priced.rows.relation)
        first, last = priced.steps_until(number - 1), priced.steps_until(number)
        spent = priced.noise.epsilon(last, database.terms)
        tell(f"steps {first + 1:,} to {last:,} of {priced.noise.steps:,}: epsilon {spent:.3g} by then")
        compute = partial(_computed, priced, exact, state, last - first)
        try:
            with backend.admitted(), deferred():
                stored = reservation.step(number, compute, request_hash=asked, data_version=version)
        except LedgerError as error:
            if error.code != _BURNT:
                raise
        else:
            state = NetworkState.from_bytes(stored)
    return state


def _computed(priced: PricedNetwork, exact: Exact[UnitRows] | None, state: NetworkState, steps: int) -> bytes:
    assert exact is not None, "rows are read before a step that was not taken"
    return priced.advanced(exact, state, steps).to_bytes()
