"""The published outcome of a choice among models: which one, the model itself, and its score with noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy.typing as npt

from sfumato.core.mechanism import confidence
from sfumato.core.noise_law import NoiseLaw
from sfumato.errors import InvalidArgument, Unsupported
from sfumato.learn.additive_model import AdditiveModel
from sfumato.learn.models import LinearModel
from sfumato.release.storage import decode, dump, encode, load

__all__ = ["GRID", "SelectedModel"]

GRID = 1 << 20
"""How many steps the score of a unit has: from 0 to this."""

_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SelectedModel:
    """A model that was chosen privately among `candidates`: the one at place `winner`. All may be published.

    `measured` are noisy sums over the units that were held out, in steps of the grid: of the scores of the
    winner, and of what they lack of 1. The cost of the model is that of the whole choice.

    >>> import sfumato as sf
    >>> from sfumato.learn import LogisticRegression, select_model
    >>> rows = {"who": range(2000), "age": [20, 70] * 1000, "ill": [False, True] * 1000}
    >>> import pyarrow as pa
    >>> db = sf.connect(pa.table(rows), name="people", unit="who", columns={"age": sf.between(0, 100)},
    ...                 budget=sf.Budget(epsilon=3, delta=1e-6))
    >>> candidates = [LogisticRegression(label="ill", steps=steps) for steps in (5, 20)]
    >>> chosen = select_model(candidates, db.table("people"), epsilon=1).release()
    >>> low, high = chosen.interval()
    >>> low <= chosen.score <= high <= 1
    True
    """

    winner: int
    candidates: tuple[str, ...]
    model: LinearModel | AdditiveModel
    measured: npt.NDArray[Any]
    law: NoiseLaw
    cost: Mapping[str, Any] = field(default_factory=dict)
    receipt: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def score(self) -> float:
        """The winner's mean score of units held out: of classes, the share that is predicted right."""
        right, wrong = (max(0.0, float(one)) for one in self.measured)
        return right / (right + wrong) if right + wrong else 0.5

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return ends between which the exact mean score of the units held out is, with probability `level`.

        Theorem: each of two noises is within its half width but for half of what may be missed; a share
        rises in its own part and falls in the other.
        """
        half = self.law.half_width((1 + confidence(level)) / 2)
        right, wrong = (int(one) for one in self.measured)
        lows, highs = ([max(0, one + side) for one in (right, wrong)] for side in (-half, half))
        low = lows[0] / (lows[0] + highs[1]) if lows[0] else 0.0
        high = highs[0] / (highs[0] + lows[1]) if lows[1] else 1.0
        return low, high

    def with_receipt(self, receipt: Mapping[str, Any]) -> SelectedModel:
        """Return this release with the receipt of its charge; the model has it too."""
        return replace(self, receipt=receipt, model=self.model.with_receipt(receipt))

    def to_json(self) -> str:
        """Return the one JSON text of this release; `from_json` gives it back, and it the same text."""
        plain = {
            "winner": self.winner,
            "candidates": self.candidates,
            "measured": self.measured,
            "law": self.law,
            "cost": dict(self.cost),
            "receipt": dict(self.receipt),
            "notes": self.notes,
        }
        return dump({"selection": _FORMAT, "model": load(self.model.to_json()), **encode(plain)})

    @staticmethod
    def from_json(text: str) -> SelectedModel:
        """Return the release that was stored as `text`."""
        record = load(text)
        if record.pop("selection", None) != _FORMAT or "model" not in record:
            raise Unsupported("a stored choice of another format", place="text")
        try:
            text = dump(record.pop("model"))
            kind = AdditiveModel if "additive" in load(text) else LinearModel
            return SelectedModel(model=kind.from_json(text), **decode(record))
        except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError):
            raise InvalidArgument("this stored choice is damaged", place="text") from None

    def __repr__(self) -> str:
        low, high = self.interval()
        return (
            f"<candidate {self.winner + 1} of {len(self.candidates)} ({self.candidates[self.winner]});"
            f" score {self.score:.4f}, {low:.4f} to {high:.4f} of those held out; {self.model!r}>"
        )
