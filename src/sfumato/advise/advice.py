"""Advice on a choice of epsilon: risk, error, what else could be had, delta. From public facts alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any, TypedDict, Unpack

from sfumato.advise.choice import Choice, FrontierPoint, WantedError, few, frontier
from sfumato.advise.deltas import about_delta
from sfumato.advise.limits import EpsilonRange, Limit, RiskLimit, epsilon_range, wanted_errors
from sfumato.advise.money import Harm
from sfumato.advise.risk import Risk, risk_of
from sfumato.analysis.expected_error import ExpectedError
from sfumato.core.arguments import Number
from sfumato.core.measures import ApproximateDP
from sfumato.pages import Page, Presentable

__all__ = ["Advice", "AdviceOptions", "advise"]

_VALUES = 10  # of the secret that is guessed


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Advice(Presentable):
    """What a choice of epsilon means for people and for answers.

    >>> from sfumato.advise.choice import choice_of_budget
    >>> from sfumato.core.accountant import PrivacyBudget
    >>> advice = advise(choice_of_budget(PrivacyBudget(epsilon=1)))
    >>> round(advice.risk.advantage, 4), advice.epsilon
    (0.4621, Fraction(1, 1))
    """

    name: str
    epsilon: Fraction  # the one that is proposed: the one that stands, unless a limit or an error was stated
    prior: float
    risk: Risk
    family: Risk
    year: tuple[tuple[str, Risk], ...]  # of repeating it, where that may be done
    alone: float  # the advantage, if nothing but (epsilon, delta) were known
    errors: tuple[ExpectedError, ...]
    frontier: tuple[FrontierPoint, ...]
    stated: EpsilonRange | None
    delta: str  # what is said of it
    notes: tuple[str, ...] = ()  # what else is to be known of the risk

    def lines(self) -> list[str]:
        """Return the advice as text."""
        return [f"advice on {self.name}: epsilon {float(self.epsilon):.4g}", *self._said()]

    def _said(self) -> Iterator[str]:
        if self.stated is not None:
            yield f"  {self.stated.said}"
        yield f"  {self.risk.sentence}"
        yield from (f"    {name}: {text}" for name, text in self.facts())
        if self.errors:
            yield "  how far off answers are"
            yield from (f"    {one.name}: {one.said}" for one in self.errors)
        yield "  risk against error" if self.errors else "  risk at other epsilons"
        for point in self.frontier:
            errors = "; ".join(f"{one.name} {one.said}" for one in few(point.errors))
            here = "" if (mark := self.mark(point)) is None else f"  <- {mark}"
            risk = f"epsilon {float(point.epsilon):<8.4g} advantage {point.advantage:<8.3g}"
            yield f"    {risk} {errors}{here}".rstrip()
        if (half := self.at_half()) is not None:
            yield f"  {half}"
        yield f"  {self.delta}"
        yield "nothing was spent, and nothing was asked of the data"

    def facts(self) -> tuple[tuple[str, str], ...]:
        """Return the numbers behind the sentence, each with its name."""
        risk = self.risk
        return (
            ("advantage", f"{risk.advantage:.4f}, from {risk.basis}"),
            ("from (epsilon, delta) alone", f"{self.alone:.4f}, {self._times_as_much()}"),
            (
                f"who believes {self.prior:g} beforehand",
                f"believes {risk.posterior(self.prior):.3g} at most {_after(risk)}",
            ),
            (
                f"a secret with {_VALUES} values",
                f"is guessed {risk.guessed(_VALUES):.3g} of the time at most, {1 / _VALUES:g} by chance",
            ),
            (f"a family of {self.family.people}", f"advantage {self.family.advantage:.4f}"),
            *(
                (
                    f"{often} for a year",
                    f"advantage {risk.advantage:.4f}, {risk.right} of 100 guessed right{_after_all(risk)}",
                )
                for often, risk in self.year
            ),
            *(("besides", note) for note in self.notes),
        )

    def mark(self, point: FrontierPoint) -> str | None:
        """Return what is to be said of a point of the frontier, if anything is."""
        if point.advised and self.stated is not None:
            return "advised, and now" if point.current else "advised"
        return "now" if point.current else None

    def _times_as_much(self) -> str:
        times = self.alone / self.risk.advantage
        return "as much" if times < 1.005 else f"{times:.3g} times as much"

    def at_half(self) -> str | None:
        """Return what half of the advised epsilon would take from the answers; None if nothing is known."""
        points = {point.epsilon: point for point in self.frontier}
        now, half = points[self.epsilon], points.get(self.epsilon / 2)
        if half is None:
            return None
        lost = [
            f"{one.name} would be {less.error / one.error:.3g} times as far off"
            for one, less in zip(few(now.errors), few(half.errors), strict=True)
            if one.error and less.error
        ]
        if not lost:
            return None
        advantage = f"the advantage would be {half.advantage:.3g} and not {now.advantage:.3g}"
        return f"at half of it, epsilon {float(half.epsilon):.4g}: {', '.join(lost)}; {advantage}"

    def record(self) -> dict[str, Any]:
        """Return the advice as plain data, with the curve."""
        return {
            "about": self.name,
            "epsilon": float(self.epsilon),
            "advantage": self.risk.advantage,
            "advantage_from_epsilon_and_delta": self.alone,
            "prior": self.prior,
            "posterior": self.risk.posterior(self.prior),
            "posterior_false_alarms": self.risk.false_alarms,
            "sentence": self.risk.sentence,
            "basis": self.risk.basis,
            "family": {"people": self.family.people, "advantage": self.family.advantage},
            "year": {often: risk.advantage for often, risk in self.year},
            "errors": {one.name: one.said for one in self.errors},
            "frontier": [
                {
                    "epsilon": float(point.epsilon),
                    "advantage": point.advantage,
                    "errors": {one.name: one.error for one in point.errors},
                    "current": point.current,
                    "advised": point.advised,
                }
                for point in self.frontier
            ],
            "stated": None if self.stated is None else self.stated.said,
            "feasible": None if self.stated is None else self.stated.feasible,
            "delta": self.delta,
            "notes": list(self.notes),
            "curve": [list(point) for point in self.risk.points()],
        }

    def document(self) -> Page:
        """Return the advice as a page to file: its pictures drawn, and the precedents."""
        from sfumato.advise.page import advice_page

        return advice_page(self)

    def __repr__(self) -> str:
        return "\n".join(self.lines())


def _after(risk: Risk) -> str:
    """Say after which outputs a belief is held."""
    if not risk.false_alarms:
        return "afterwards, whatever comes out"
    return f"after an alarm, which is also raised for {risk.false_alarms:g} of those who did not take part"


def _after_all(risk: Risk) -> str:
    return f", after {risk.times} releases" if risk.times > 1 else ""


class AdviceOptions(TypedDict, total=False):
    """What advice takes into account besides the choice itself: `advise` says what each of them means."""

    people: int | None
    family: int
    prior: Number
    advantage: Number | None
    posterior: Number | None
    harm: Harm | None
    error: WantedError | None


def advise(choice: Choice, **options: Unpack[AdviceOptions]) -> Advice:
    """Return advice on a choice of epsilon, from public facts alone.

    `people` says how many there are, if that is public: delta is judged by it, and refused from 1/n on.
    `family` people are looked at together, four unless said; `prior` is what somebody believes beforehand,
    0.01 unless said. With the most `advantage` or `posterior` that an attacker may have, a `harm` that is
    paid for, or a wanted `error`, the epsilon that keeps to all of them is proposed. `error` is the largest
    half-width of a 95% interval, of all answers or by the names that the advice shows.

    >>> from sfumato.advise.choice import choice_of_budget
    >>> from sfumato.core.accountant import PrivacyBudget
    >>> float(advise(choice_of_budget(PrivacyBudget(epsilon=1)), posterior=0.2, prior=0.01).epsilon)
    3.2
    """
    prior, error = options.get("prior", 0.01), options.get("error")
    limits = _limits(options, prior)
    delta = about_delta(choice.delta, options.get("people"))
    choice = replace(choice, at=cache(choice.at))  # the same prices are looked at several times
    wanted = None if error is None else wanted_errors(choice, error)
    if wanted is not None and choice.aimed is not None:
        choice = replace(choice, at=cache(choice.aimed(wanted).at))
    stated = epsilon_range(choice, limits=limits, error=error) if limits or error is not None else None
    epsilon = choice.epsilon if stated is None else _proposed(stated, choice.epsilon)
    outcome = choice.at(epsilon)
    epsilon = outcome.epsilon
    risk = outcome.risk()
    risk.posterior(prior)  # refuses one that makes no sense
    return Advice(
        name=choice.name,
        epsilon=epsilon,
        prior=float(prior),
        risk=risk,
        family=outcome.risk(people=options.get("family", 4)),
        year=tuple((often, outcome.risk(times=times)) for often, times in choice.year),
        alone=risk_of(ApproximateDP(epsilon=epsilon * outcome.times, delta=choice.delta)).advantage,
        errors=outcome.errors,
        frontier=frontier(choice, epsilon, names=wanted),
        stated=stated,
        delta=delta,
        notes=choice.notes,
    )


def _limits(options: AdviceOptions, prior: Number) -> tuple[Limit, ...]:
    found: list[Limit] = []
    if (harm := options.get("harm")) is not None:
        found.append(harm)
    if (advantage := options.get("advantage")) is not None:
        found.append(RiskLimit(advantage=advantage))
    if (posterior := options.get("posterior")) is not None:
        found.append(RiskLimit(posterior=posterior, prior=prior))
    return tuple(found)


def _proposed(stated: EpsilonRange, standing: Fraction) -> Fraction:
    """Return the epsilon that is proposed: the cheapest that keeps to what was stated; else the limit's."""
    if stated.least is not None and stated.feasible:
        return stated.least
    return standing if stated.most is None else stated.most
