"""The budget of the people in a dataset, in one call."""

from __future__ import annotations

from collections.abc import Callable

from sfumato.core.accountant import PrivacyBudget
from sfumato.core.arguments import Number, budget_quantity
from sfumato.core.rules import GaussianRule, PureRule, Rule, ZeroConcentratedRule
from sfumato.errors import InvalidArgument

__all__ = ["Budget"]

_RULES: dict[str, Callable[[], Rule]] = {
    "gaussian": GaussianRule,
    "pure": PureRule,
    "zcdp": ZeroConcentratedRule,
}


def Budget(
    epsilon: Number,
    delta: Number = 0,
    *,
    keys_delta: Number | None = None,
    rule: Rule | str | None = None,
    people: int | None = None,
) -> PrivacyBudget:
    """Return the budget of the people in a dataset, for ever: (epsilon, delta) over all answers together.

    `rule` says how costs add up: "gaussian" (unless delta is zero) for many questions, "pure" for a few
    large ones, "zcdp" for much Laplace noise. A tenth of delta is set aside for finding groups that were
    not declared, all of it under the pure rule, unless `keys_delta` says otherwise. With the number of
    `people`, where it is no secret, a delta of 1 / people or more is refused.

    >>> Budget(epsilon=3, delta=1e-7)
    <budget: epsilon 3, delta 1e-07, gaussian rule; of delta 1e-08 is for finding groups>
    """
    if isinstance(rule, str):
        if rule not in _RULES:
            raise InvalidArgument(f"no rule is called {rule!r}", place="rule", hints=(", ".join(_RULES),))
        rule = _RULES[rule]()
    if keys_delta is None:
        keys_delta = budget_quantity(delta, "delta", zero=True) / (1 if isinstance(rule, PureRule) else 10)
    return PrivacyBudget(epsilon=epsilon, delta=delta, keys_delta=keys_delta, rule=rule, people=people)
