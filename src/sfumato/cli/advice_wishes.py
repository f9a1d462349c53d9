"""What is wished of `sfumato advise`: what it is about, the limits, and the public facts it may rest on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from sfumato.errors import InvalidArgument

if TYPE_CHECKING:
    from sfumato.advise.advice import AdviceOptions
    from sfumato.catalog import Project
    from sfumato.core.accountant import PrivacyBudget

__all__ = ["AdviceWishes", "budget_of", "options_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceWishes:
    """What the options of `sfumato advise` said; None where they did not."""

    questions: Annotated[
        list[str] | None,
        Argument(
            help="Questions that the budget is for: SQL, or files of it. With --compare: project files, too."
        ),
    ] = None
    stream: Annotated[
        str | None, Option("--stream", help="Instead of the budget: [streams.<name>] of the project file.")
    ] = None
    workload: Annotated[
        str | None, Option("--workload", help="Instead: [workloads.<name>], or a file of questions.")
    ] = None
    marginals: Annotated[str | None, Option("--marginals", help="Instead: [marginals.<name>].")] = None
    survey: Annotated[str | None, Option("--survey", help="Instead: a published survey file.")] = None
    epsilon: Annotated[
        float | None, Option("--epsilon", "-e", help="Another epsilon than the one that is declared.")
    ] = None
    delta: Annotated[float | None, Option("--delta", help="Another delta than the budget's.")] = None
    advantage: Annotated[
        float | None, Option("--advantage", help="The most that an attacker may gain: 0.1.")
    ] = None
    posterior: Annotated[
        float | None, Option("--posterior", help="The most that an attacker may believe afterwards: 0.2.")
    ] = None
    prior: Annotated[float, Option("--prior", help="What an attacker believes beforehand.")] = 0.01
    error: Annotated[
        list[str] | None,
        Option("--error", help="The 95% error you can live with, of all answers or by name: 20, or n=20."),
    ] = None
    size: Annotated[
        float | None, Option("--size", help="Rows to expect in a group, for the error of averages.")
    ] = None
    people: Annotated[int | None, Option("--people", help="How many units there are, if that is public.")] = (
        None
    )
    family: Annotated[int, Option("--family", help="How many people are looked at together.")] = 4
    harm_chance: Annotated[
        float | None, Option("--harm-chance", help="How likely a harm befalls a person anyhow: 0.001.")
    ] = None
    harm_cost: Annotated[float | None, Option("--harm-cost", help="What that harm costs a person.")] = None
    funds: Annotated[float | None, Option("--funds", help="What there is to pay all of them for it.")] = None

    @property
    def subject(self) -> str | None:
        """The option that says what advice is about; None if that is the budget, or questions for it."""
        subjects = ("stream", "workload", "marginals", "survey")
        named = [name for name in subjects if getattr(self, name) is not None]
        if len(named) + bool(self.questions) > 1:
            raise InvalidArgument("advice is about one thing at a time", place=f"--{named[0]}")
        return named[0] if named else None


def budget_of(wishes: AdviceWishes, declared: Project) -> PrivacyBudget:
    """Return the budget that is looked at: the project's, with the epsilon and delta that were said."""
    from sfumato.core.accountant import PrivacyBudget
    from sfumato.core.arguments import budget_quantity

    own = declared.budget
    epsilon = own.epsilon if wishes.epsilon is None else wishes.epsilon
    if wishes.delta is None:
        return PrivacyBudget(epsilon=epsilon, delta=own.delta, keys_delta=own.keys_delta, rule=own.rule)
    if not own.delta:
        hint = "write a delta and another rule into [budget] first"
        raise InvalidArgument("this budget has no delta", place="--delta", hints=(hint,))
    delta = budget_quantity(wishes.delta, "delta")
    keys = delta * own.keys_delta / own.delta
    return PrivacyBudget(epsilon=epsilon, delta=delta, keys_delta=keys, rule=own.rule)


def options_of(wishes: AdviceWishes) -> AdviceOptions:
    """Return what advice takes into account, as Python has it."""
    from sfumato.advise import Harm

    harm = None
    given = (wishes.harm_chance, wishes.harm_cost, wishes.funds)
    if any(one is not None for one in given):
        chance, cost, funds = given
        if chance is None or cost is None or funds is None or wishes.people is None:
            raise InvalidArgument(
                "the economic method needs a chance, a cost, funds and the number of people",
                place="--funds",
                hints=("--harm-chance 0.001 --harm-cost 5000 --funds 10000 --people 20000",),
            )
        harm = Harm(people=wishes.people, chance=chance, cost=cost, funds=funds)
    return {
        "people": wishes.people,
        "family": wishes.family,
        "prior": wishes.prior,
        "advantage": wishes.advantage,
        "posterior": wishes.posterior,
        "harm": harm,
        "error": None if wishes.error is None else _error(wishes.error),
    }


def _error(said: list[str]) -> float | dict[str, float]:
    """Return one error for all answers, or each by its name.

    >>> _error(["n, worst day=20", "years=300"])
    {'n, worst day': 20.0, 'years': 300.0}
    """
    found = {name: number for name, _, number in (one.rpartition("=") for one in said)}
    try:
        errors = {name.strip(): float(number) for name, number in found.items()}
    except ValueError:
        errors = {}
    if len(errors) < len(said) or ("" in errors and len(said) > 1):
        hint = "--error 20 for all of them, or --error n=20 --error age=0.5"
        raise InvalidArgument(
            "an error is a number, for all answers or by name", place="--error", hints=(hint,)
        )
    return errors.get("", errors)
