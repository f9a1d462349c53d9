"""Terms of a project file: how much may be learned, in what time, and by whom."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from sfumato.catalog.catalog import Analyst, Policy
from sfumato.catalog.checks import Checks, Place
from sfumato.catalog.invariants import Invariant
from sfumato.catalog.project import Period
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.arguments import budget_quantity, count, delta_quantity
from sfumato.core.rules import Rule
from sfumato.errors import SfumatoError

__all__ = ["Terms"]

_RULES = ("pure", "gaussian", "zero_concentrated", "renyi")
_PERIODS = ("day", "week", "month", "year")


class Terms(Checks):
    """Reads [budget] and [policy]."""

    def budget(self, budget: Any) -> PrivacyBudget:
        """Read the budget of a lifetime."""
        at = ("budget",)
        self.known(budget, at, "budget", "epsilon = 3 and delta = 1e-7, for example")
        rule: Rule | None = None
        if "rule" in budget:
            name = self.choice(budget["rule"], (*at, "rule"), _RULES)
            record: dict[str, Any] = {"rule": name}
            if name == "renyi":
                order = self.need(budget, at, "order", "a Renyi rule has one order, fixed here: order = 8")
                record["order"] = float(order) if isinstance(order, int | Decimal) else order
            rule = self.attempt((*at, "order" if name == "renyi" else "rule"), Rule.from_dict, record)
        if "order" in budget and budget.get("rule") != "renyi":
            self.refuse("only the rule `renyi` has an order", (*at, "order"), 'rule = "renyi"')
        return self._terms(budget, at, "usual values are 0.1 to 5", rule, people=self.people(budget))

    def people(self, budget: dict[str, Any]) -> int | None:
        """Read how many units there are, where that is public."""
        people = budget.get("people")
        return None if people is None else self.attempt(("budget", "people"), count, people, "people")

    def _terms(
        self,
        given: dict[str, Any],
        at: Place,
        hint: str,
        rule: Rule | None,
        whole: PrivacyBudget | None = None,
        people: int | None = None,
    ) -> PrivacyBudget:
        """Read epsilon, delta and keys_delta: those of the whole budget, or of a part that lies within it.

        What a part does not say about delta is as in the whole; what the whole does not say about
        keys is a tenth of delta.
        """
        epsilon = self.need(given, at, "epsilon", hint)
        epsilon = self.attempt((*at, "epsilon"), budget_quantity, epsilon, "epsilon")
        usual = whole.delta if whole else 0
        delta = self.attempt((*at, "delta"), delta_quantity, given.get("delta", usual), people=people)
        keys = given.get("keys_delta", min(whole.keys_delta, delta) if whole else delta / 10)
        keys = self.attempt((*at, "keys_delta"), delta_quantity, keys, name="keys_delta")
        for name, value in {"epsilon": epsilon, "delta": delta, "keys_delta": keys}.items():
            if whole is not None and value > getattr(whole, name):
                self.refuse(
                    f"`{name}` is above that of the whole budget, which it lies within",
                    (*at, name),
                    f"at most {float(getattr(whole, name)):g}",
                )
        try:
            return PrivacyBudget(epsilon=epsilon, delta=delta, keys_delta=keys, rule=rule)
        except SfumatoError as error:
            key = error.place if error.place in given else "rule" if "rule" in given else None
            self.refuse(error.message, (*at, key) if key is not None else at, *error.hints)

    def period(self, renew: Any, whole: PrivacyBudget) -> Period:
        """Read what one period may use of it."""
        at = ("budget", "renew")
        self.known(renew, at, "budget.renew", 'renew = { every = "week", epsilon = 0.5 }')
        every = self.choice(self.need(renew, at, "every", "day, week or year"), (*at, "every"), _PERIODS)
        part = self._terms(renew, at, "how much of the budget one period may use", whole.rule, whole)
        return Period(every=every, budget=part)  # type: ignore[arg-type]

    def policy(self, policy: Any, whole: PrivacyBudget) -> Policy:
        """Read the owner's policy."""
        at = ("policy",)
        self.known(policy, at, "policy", "ceiling = 0.5, for example")
        ceiling = policy.get("ceiling")
        if ceiling is not None:
            ceiling = self.attempt((*at, "ceiling"), budget_quantity, ceiling, "ceiling")
        measures = policy.get("measures")
        if measures is not None:
            if not isinstance(measures, list) or not measures:
                self.refuse("measures needs a list", (*at, "measures"), 'measures = ["gaussian"]')
            measures = tuple(
                self.choice(one, (*at, "measures", place), _RULES) for place, one in enumerate(measures)
            )
            if whole.rule.name not in measures:
                self.refuse(
                    f"the budget adds up by the rule `{whole.rule.name}`, which is not among them",
                    (*at, "measures"),
                    f"set rule in [budget]: {', '.join(measures)}",
                )
        analysts = policy.get("analysts", {})
        self.mapping(analysts, (*at, "analysts"), "analysts are [policy.analysts.<name>]")
        named = [self._analyst(name, analysts[name], whole) for name in analysts]
        keep = self.flag(policy, at, "keep_questions", True)
        return Policy(
            ceiling=ceiling,
            measures=measures,
            analysts=tuple(named),
            keep_questions=keep,
            invariants=self._invariants(policy.get("invariants", []), (*at, "invariants")),
        )

    def _invariants(self, listed: Any, at: Place) -> tuple[Invariant, ...]:
        hint = 'an invariant has table = "people", by = ["state"], totals = "state_totals", count = "n"'
        if not isinstance(listed, list):
            self.refuse("invariants are [[policy.invariants]]", at, hint)
        found = []
        for place, one in enumerate(listed):
            here = (*at, place)
            self.known(one, here, "policy.invariants", hint)
            given = {name: self.need(one, here, name, hint) for name in ("table", "by", "totals", "count")}
            found.append(self.attempt(here, Invariant, **given))
        return tuple(found)

    def _analyst(self, name: str, grant: Any, whole: PrivacyBudget) -> Analyst:
        at = ("policy", "analysts", name)
        self.known(grant, at, "policy.analysts.<name>", "epsilon = 1, for example")
        part = self._terms(grant, at, "how much of the budget they may use", whole.rule, whole)
        return self.attempt(at, Analyst, name=name, budget=part)
