"""Neural networks on private rows, in the convention of scikit-learn but for `fit`: it takes a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self, cast

from sfumato.core.arguments import (
    Number,
    budget_quantity,
    count,
    delta_quantity,
    probability,
)
from sfumato.errors import InvalidArgument
from sfumato.learn.base_estimator import ClassifierEstimator
from sfumato.learn.descent import moderate
from sfumato.learn.features import declared_features, declared_label
from sfumato.learn.fit_question import FitQuestion
from sfumato.learn.networks.clipping import check_norms, sensitivity
from sfumato.learn.networks.fitted import FittedNetwork
from sfumato.learn.networks.modules import checked, multilayer, parameters, require_torch
from sfumato.learn.networks.pricing import step_noise
from sfumato.learn.networks.training import PricedNetwork, train
from sfumato.learn.private_rows import training_rows
from sfumato.pipeline import Tell, refuse_huge
from sfumato.plan.builder import Frame
from sfumato.session.progress import Progress

if TYPE_CHECKING:
    from torch.nn import Module

__all__ = ["NeuralNetwork"]

_LEAST = Fraction(1, 10**6)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class _NetworkFit(FitQuestion[FittedNetwork]):
    """The fit of a network, which looks at the data in every step."""

    def _answered(
        self, priced: PricedNetwork, *, key: str | None, purpose: str | None, tell: Tell
    ) -> FittedNetwork:
        return train(priced, key=key, purpose=purpose, tell=tell)


class NeuralNetwork(ClassifierEstimator[FittedNetwork]):
    """A classifier trained by noisy gradient descent on random samples of people (DP-SGD, with Adam).

    Each of `steps` samples every person with probability `sampling`, clips what each of them says to the norm
    `clip`, adds noise, and moves by about `rate`. A person counts with `rows_per_unit` rows at most in a
    step. `module` is a `torch.nn.Module` of the encoded features, with one number for each class; without
    one, layers of the sizes `hidden` are made. Parameters are stored in the ledger at `checkpoints`, from
    which an interrupted training goes on. `delta` is taken from the budget's delta for keys, and pays for
    what samples save: a tenth of it unless it is given.

    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> from sfumato.learn import NeuralNetwork
    >>> people = pa.table({"who": range(900), "age": [20, 70] * 450, "ill": [False, True] * 450})
    >>> columns = {"age": sf.between(0, 100)}
    >>> budget = sf.Budget(epsilon=9, delta=1e-6)
    >>> db = sf.connect(people, name="people", unit="who", columns=columns, budget=budget)
    >>> network = NeuralNetwork(label="ill", epsilon=8, hidden=(16,), steps=40, rate=0.1)
    >>> network = network.fit(db.table("people"))
    >>> network.predict({"age": [10, 90]}).tolist()
    [False, True]
    """

    _asked_as = _NetworkFit

    def __init__(
        self,
        *,
        label: str,
        epsilon: Number | None = None,
        features: Sequence[str] | None = None,
        module: Module | None = None,
        hidden: Sequence[int] = (64,),
        steps: int = 200,
        sampling: Number = Fraction(1, 5),
        clip: float = 1.0,
        rate: float = 0.02,
        rows_per_unit: int = 8,
        checkpoints: int = 5,
        delta: Number | None = None,
    ) -> None:
        self.label = label
        self.epsilon = epsilon
        self.features = features
        self.module = module
        self.hidden = hidden
        self.steps = steps
        self.sampling = sampling
        self.clip = clip
        self.rate = rate
        self.rows_per_unit = rows_per_unit
        self.checkpoints = checkpoints
        self.delta = delta

    def priced(self, table: Frame[Any]) -> PricedNetwork:
        """Return the noise and the cost of a training. Free."""
        require_torch()
        if self.epsilon is None:
            raise InvalidArgument(
                "it is not said what this network may cost", place="epsilon", hints=("give epsilon=3",)
            )
        label = declared_label(table, self.label)
        if len(label.values) < 2:
            raise InvalidArgument(
                f"`{label.name}` has no list of at least two values, and a network tells classes apart",
                place="label",
                hints=(f"declare its values: columns={{{label.name!r}: sf.one_of('no', 'yes')}}",),
            )
        features = declared_features(table, self.features, but=(self.label,))
        rows = training_rows(table, features.columns, labels=(label,))
        budget, epsilon = rows.database.terms, budget_quantity(self.epsilon, "epsilon")
        refuse_huge(epsilon)
        rate = probability(self.sampling, "sampling")
        if rate < _LEAST:
            raise InvalidArgument(
                f"sampling is a probability from {float(_LEAST):g} to 1",
                place="sampling",
                hints=("sampling=0.2",),
            )
        module, hidden = self._module(features.width, len(label.values))
        steps = count(self.steps, "steps", most=1_000_000)
        noise = step_noise(
            budget,
            epsilon,
            sensitivity=sensitivity(len(parameters(module))),
            rate=rate,
            steps=steps,
            failure=None if self.delta is None else delta_quantity(self.delta),
        )
        return PricedNetwork(
            rows=rows,
            features=features,
            label=label,
            module=module,
            hidden=hidden,
            noise=noise,
            clip=moderate(self.clip, "clip"),
            rate=moderate(self.rate, "rate"),
            rows_per_unit=count(self.rows_per_unit, "rows_per_unit", most=100_000),
            checkpoints=min(steps, count(self.checkpoints, "checkpoints", most=10_000)),
            epsilon=epsilon,
            delta=budget.delta_loss,
        )

    def _module(self, width: int, classes: int) -> tuple[Module, tuple[int, ...] | None]:
        hidden = tuple(count(size, "hidden", most=100_000) for size in self.hidden)
        module = multilayer(width, hidden, classes) if self.module is None else self.module
        own = checked(module, width, classes)
        check_norms(own, width)
        return own, hidden if self.module is None else None

    def price_notes(self, priced: PricedNetwork) -> tuple[str, ...]:
        """Return how many steps there are, and how much noise each of them has."""
        noise = priced.noise
        return (f"{noise.steps:,} steps, each with noise of {noise.multiplier:.3g} clips",)

    def fit(
        self,
        table: Frame[Any],
        y: None = None,
        *,
        key: str | None = None,
        purpose: str | None = None,
        progress: Progress = None,
    ) -> Self:
        """Spend: charge the budget once, and train.

        With a `key`, the same again goes on from the last checkpoint of a training that was interrupted, or
        gives the stored network, free. Progress shows steps and what they cost, and never how well they do.
        """
        return ClassifierEstimator.fit(self, table, key=key, purpose=purpose, progress=progress)

    # -- what was fitted ----------------------------------------------------------------------

    @property
    def module_(self) -> Module:
        """The trained module: a copy of the one that was given."""
        return cast("Module", self._fitted().module)
