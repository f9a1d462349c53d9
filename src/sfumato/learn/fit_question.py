"""The question for a fit: an estimator and a table, with one price tag."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

from sfumato.analysis.expected_error import ExpectedError
from sfumato.plan.builder import Frame
from sfumato.session.question import Question

if TYPE_CHECKING:
    from sfumato.learn.base_estimator import Estimator

__all__ = ["FitQuestion"]

_Model = TypeVar("_Model")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class FitQuestion(Question[Any, _Model]):
    """A fit of an estimator to a table with its price tag; `release` spends, and returns the fitted model.

    The estimator is a copy: its parameters are those that it had when this was asked.
    """

    estimator: Estimator[Any]
    table: Frame[Any]

    refused_as = "a fit"

    @property
    def called(self) -> str:
        """What advice calls it."""
        return f"the fit of a {type(self.estimator).__name__}"

    @property
    def title(self) -> str:
        """The line above its price."""
        return repr(self._estimator(self.epsilon))

    def _estimator(self, epsilon: Fraction | None) -> Estimator[Any]:
        return self.estimator if epsilon == self.estimator.epsilon else self.estimator.at(epsilon)

    def _plan(self, epsilon: Fraction | None) -> Any:
        return self._estimator(epsilon).priced(self.table)

    def _expected(self, priced: Any, size: float | None) -> tuple[ExpectedError, ...]:
        return self.estimator.expected_errors(priced)

    def _notes(self, priced: Any) -> tuple[str, ...]:
        return self.estimator.price_notes(priced)
