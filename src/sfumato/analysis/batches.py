"""Batches: several private questions of one request, answered for one epsilon.

    WITH a AS (SELECT COUNT(*) ..), b AS (SELECT AVG(x) ..) SELECT ..   asks two questions

What epsilon allows, in the currency of the budget's rule, is divided among them so that the sum of all
relative variances is least, as it is within one question: an even split is right only for questions
that are as hard as each other.

Theorem: let a question that may spend A have the sum of relative variances C / A^p: p = 1 where the rule
adds up squares of what noise divides by (rho, mu^2), 2 where it adds up epsilon. Then the sum of C_q / A_q^p
at a fixed sum of A_q is least for A_q in proportion to C_q^(1/(p+1)) (Lagrange). The parts are rounded
down to 32 bits and add up to at most one, so that all questions together cost at most what epsilon
allows: they are (epsilon, delta_loss)-private together by the rule's own theorem.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from sfumato.analysis.bounded import Bounding
from sfumato.analysis.pricing import Cost, price
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.arguments import Number, delta_quantity
from sfumato.core.rules import PureRule

__all__ = ["price_together"]

_BITS = 32


def price_together(
    boundings: tuple[Bounding, ...],
    budget: PrivacyBudget,
    *,
    epsilon: Number | None,
    weights: Mapping[str, Fraction] | None = None,
    noise: str | None = None,
    keys_delta: Number | None = None,
    whole: Fraction = Fraction(1),
) -> tuple[Cost, ...]:
    """Return the noise of each question with which all of them are (epsilon, delta_loss)-private together.

    `keys_delta` is for all of them: those that select keys share it equally. `whole` is the part of what
    epsilon allows that they may use, beside others.
    """
    selecting = max(1, sum(bounding.select_keys for bounding in boundings))
    each = None if keys_delta is None else delta_quantity(keys_delta, name="keys_delta") / selecting

    def priced(bounding: Bounding, part: Fraction) -> Cost:
        own = {answer.name for answer in bounding.answers}
        known = {name: weight for name, weight in (weights or {}).items() if name in own}
        chosen = weights if len(boundings) == 1 else known
        return price(
            bounding, budget, epsilon=epsilon, weights=chosen, noise=noise, keys_delta=each, part=part
        )

    alone = tuple(priced(bounding, whole) for bounding in boundings)
    if len(alone) <= 1:
        return alone
    power = 3 if isinstance(budget.rule, PureRule) else 2
    wishes = [max(cost.objective, 1e-300) ** (1 / power) for cost in alone]
    parts = [
        Fraction(max(1, math.floor(wish / math.fsum(wishes) * (2**_BITS - len(wishes)))), 2**_BITS)
        for wish in wishes
    ]
    return tuple(priced(bounding, whole * part) for bounding, part in zip(boundings, parts, strict=True))
