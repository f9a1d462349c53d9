"""The budget of the people in a dataset, in one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
    **options: Any,
) -> PrivacyBudget:
    """Return the budget of the people in a dataset, for ever: (epsilon, delta) over all answers together.

    `rule` says how costs add up: "gaussian" (unless delta is zero) for many questions, "pure" for a few
    large ones, "zcdp" for much Laplace noise. A tenth of delta is set aside for finding groups that were
    not declared, all of it under the pure rule, unless said otherwise.

    >>> budget = Budget(epsilon=3, delta=1e-7)
    >>> budget.rule.name, float(budget.keys_delta)
    ('gaussian', 1e-08)
    """
    if isinstance(rule, str):
        if rule not in _RULES:
            raise InvalidArgument(f"no rule is called {rule!r}", place="rule", hints=(", ".join(_RULES),))
        rule = _RULES[rule]()
    if keys_delta is None:
        keys_delta = budget_quantity(delta, "delta", zero=True) / (1 if isinstance(rule, PureRule) else 10)
    return PrivacyBudget(epsilon=epsilon, delta=delta, keys_delta=keys_delta, rule=rule, **options)
