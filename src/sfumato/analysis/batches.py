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
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from sfumato.analysis.bounded import Bounding
from sfumato.analysis.pricing import Cost, price
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.arguments import Number
from sfumato.core.rules import PureRule
from sfumato.plan.options import DEFAULT_OPTIONS, Options

__all__ = ["divided", "price_together"]

_BITS = 32


def price_together(
    boundings: tuple[Bounding, ...],
    budget: PrivacyBudget,
    *,
    epsilon: Number | None,
    options: Options = DEFAULT_OPTIONS,
    own: Sequence[Options | None] = (),
    whole: Fraction = Fraction(1),
) -> tuple[Cost, ...]:
    """Return the noise of each question with which all of them are (epsilon, delta_loss)-private together.

    `whole` is the part of what epsilon allows that they may use, beside others. `own` are the options of
    questions that have some of their own; if all of them have an epsilon, it says which part each gets.
    """
    asked = list(zip(boundings, divided(options, boundings, own), strict=True))
    parts = _said_parts([own.epsilon for _, own in asked], budget) if any(own) else None
    if parts is None:
        alone = tuple(price(one, budget, epsilon=epsilon, options=own, part=whole) for one, own in asked)
        if len(alone) <= 1:
            return alone
        power = 3 if isinstance(budget.rule, PureRule) else 2
        parts = _rounded([max(cost.objective, 1e-300) ** (1 / power) for cost in alone])
    return tuple(
        price(one, budget, epsilon=epsilon, options=own, part=whole * part)
        for (one, own), part in zip(asked, parts, strict=True)
    )


def _said_parts(epsilons: Sequence[Fraction | None], budget: PrivacyBudget) -> list[Fraction] | None:
    """Return the part of what all epsilons together allow that each allows; None, where one is not said."""
    known = [one for one in epsilons if one is not None]
    if len(known) < len(epsilons):
        return None
    whole, each = budget.allowance(sum(known)), [budget.allowance(one) for one in known]
    return [one / max(whole, sum(each)) for one in each]


def _rounded(wishes: Sequence[float]) -> list[Fraction]:
    """Return parts in these proportions that add up to one at most."""
    total, steps = math.fsum(wishes), 2**_BITS - len(wishes)
    return [Fraction(max(1, math.floor(wish / total * steps)), 2**_BITS) for wish in wishes]


def divided(
    options: Options, boundings: tuple[Bounding, ...], own: Sequence[Options | None] = ()
) -> tuple[Options, ...]:
    """Return the options of each question: its own, or else those of all.

    Of those of all, each question has its own weights, and an equal share of the delta for keys.
    """
    if any(own):
        return tuple(options if one is None else one for one in own)
    if len(boundings) == 1:
        return (options,)
    selecting = max(1, sum(bounding.select_keys for bounding in boundings))
    delta = None if options.delta is None else options.delta / selecting
    names = [{answer.name for answer in bounding.answers} for bounding in boundings]
    weights = [{name: one for name, one in options.weights.items() if name in own} for own in names]
    return tuple(replace(options, delta=delta, weights=own) for own in weights)
