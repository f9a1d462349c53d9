"""The published outcome of a choice among models: which one, the model itself, and its score with noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy.typing as npt

from sfumato.core.mechanism import confidence
from sfumato.core.noise_law import NoiseLaw
from sfumato.learn.additive_model import AdditiveModel
from sfumato.learn.models import LinearModel
from sfumato.pages import BulletList, Page, Paragraph, Section
from sfumato.release import Published
from sfumato.release.storage import decode, encode

__all__ = ["GRID", "SelectedModel"]

GRID = 1 << 20
"""How many steps the score of a unit has: from 0 to this."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class SelectedModel(Published):
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

    kind: ClassVar[str] = "selection"

    winner: int
    candidates: tuple[str, ...]
    model: LinearModel | AdditiveModel
    measured: npt.NDArray[Any]
    law: NoiseLaw

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

    def with_receipt(self, receipt: Mapping[str, Any]) -> Self:
        """Return this release with the receipt of its charge; the model has it too."""
        return replace(self, receipt=receipt, model=self.model.with_receipt(receipt))

    def document(self) -> Page:
        """Return which model was chosen, its score, and the model itself."""
        low, high = self.interval()
        said = (
            f"candidate {self.winner + 1} of {len(self.candidates)} ({self.candidates[self.winner]});"
            f" score {self.score:.4f}, {low:.4f} to {high:.4f} of those held out"
        )
        model = self.model.document()
        return replace(
            model,
            title="Chosen model",
            brief=(Paragraph(f"<{said}; {model.brief_text()}>"),),
            opening=(Paragraph(f"{said[:1].upper()}{said[1:]}."), *model.opening),
            sections=(Section("Candidates", BulletList(self.candidates)), *model.sections),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, JSON-ready, from which the same can be read again."""
        plain = self._plain()
        del plain["model"]
        return {self.kind: self.stored_format, "model": self.model.to_dict(), **encode(plain)}

    @classmethod
    def _read(cls, record: dict[str, Any]) -> Self:
        del record[cls.kind]
        model = record.pop("model")
        kind = AdditiveModel if AdditiveModel.kind in model else LinearModel
        return cls(model=kind.from_dict(model), **decode(record))
