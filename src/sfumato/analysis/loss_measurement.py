"""Loss measurement: what the caps and bounds of a question took, measured beside it under one epsilon.

A question with `losses=True` brings a second one: a few sums over units (`clipping_bias.losses_of`), which
are priced with `MEASURED_PART` of what epsilon allows; the question itself has the rest.

Theorem: costs add up in the currency of the budget's rule, and each of the two costs at most its part of
what epsilon allows. The parts add up to one. So both together are (epsilon, delta_loss)-private, as the
questions of one request are (`analysis/batches`), and are reserved and charged as one event.
The noise of the question grows: by 1 / sqrt(0.95), 2.6%, where costs are squares of what noise divides by,
and by 1 / 0.95, 5.3%, under the pure rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.analysis import clipping_bias
from sfumato.analysis.batches import price_together
from sfumato.analysis.bounded import Bounding
from sfumato.analysis.bounding import bound
from sfumato.analysis.pricing import Cost
from sfumato.catalog.catalog import Catalog
from sfumato.core.accountant import PrivacyBudget
from sfumato.plan.options import Options
from sfumato.plan.request import Request

__all__ = ["MEASURED_PART", "QuestionLoss", "losses_of", "main_part", "priced_losses"]

MEASURED_PART = Fraction(1, 20)
"""The part of what a question may cost that measuring its losses takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionLoss:
    """The limits of a question that may bite, and the sums that measure what they take, if wanted."""

    limits: clipping_bias.Limits
    bounding: Bounding | None = None
    cost: Cost | None = None


def main_part(losses: Sequence[QuestionLoss]) -> Fraction:
    """Return the part of what epsilon allows that is left for the questions themselves."""
    return 1 - MEASURED_PART if any(loss.bounding is not None for loss in losses) else Fraction(1)


def losses_of(request: Request, boundings: Sequence[Bounding], catalog: Catalog) -> tuple[QuestionLoss, ...]:
    """Return what may be lost of each question of a request, and how it is measured where that is wanted.

    Requests with notes of their own (estimates of bounds, caps and losses) say what they leave out.
    """
    if request.notes or request.sought is not None:
        return ()
    found = []
    for named, bounding in zip(request.queries, boundings, strict=True):
        measured = request.options.losses
        limits, query = clipping_bias.losses_of(named.query, catalog, bounding, measured=measured)
        found.append(QuestionLoss(limits=limits, bounding=None if query is None else bound(query, catalog)))
    return tuple(loss for loss in found if loss.limits)


def priced_losses(
    losses: Sequence[QuestionLoss],
    budget: PrivacyBudget,
    *,
    epsilon: Fraction | None,
    noise: str | None,
    part: Fraction = Fraction(1),
) -> tuple[QuestionLoss, ...]:
    """Return the losses with the noise that makes their measurement cost its part of `part`."""
    measured = tuple(loss.bounding for loss in losses if loss.bounding is not None)
    own = Options(noise=noise)
    costs = iter(price_together(measured, budget, epsilon=epsilon, options=own, whole=part * MEASURED_PART))
    return tuple(replace(loss, cost=next(costs)) if loss.bounding is not None else loss for loss in losses)
