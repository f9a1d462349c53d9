"""The workload: many questions under one budget, with their total cost and every error; free until `release`.

What is known of each question says how its noise is found:

    it has an epsilon      held fixed: it has the noise that it would have alone
    an error is stated     the cheapest noise with which it errs by no more, as it would have alone
    neither                it has a share of what the workload's epsilon leaves over

What questions have in common is measured once, with the least noise that one of them needs
(`analysis.shared_measurements`). So no question errs by more than it would alone for the same epsilon.
What is saved so goes to the questions that share the rest: their noise is lowered until all together cost
what the workload's epsilon allows.

Caps on what one person contributes hold for each question, as if it were asked alone.
"""

from __future__ import annotations

import html as _html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Unpack

from sfumato.aggregates.answer import Forecast
from sfumato.analysis.batches import price_together
from sfumato.analysis.forecast import worst_forecasts
from sfumato.analysis.invariants import NOT_PROTECTED
from sfumato.analysis.loss_measurement import main_part, priced_losses
from sfumato.core.arguments import Number, budget_quantity, positive
from sfumato.core.rules import UNITS, PureRule
from sfumato.errors import BudgetExceeded, InvalidArgument, SfumatoError
from sfumato.pipeline import PricedQuery
from sfumato.plan.outline import labels
from sfumato.release.workload_release import WorkloadRelease
from sfumato.session.answers import answered, not_charged_yet
from sfumato.session.counting import counted
from sfumato.session.price import charge_of, error_of, shortage
from sfumato.session.progress import Progress, shown
from sfumato.session.question import Asked, Question
from sfumato.workloads.batch import PricedBatch, batch_event, plan_batch

if TYPE_CHECKING:
    from sfumato.advise.advice import Advice, AdviceOptions
    from sfumato.session.database import Database

__all__ = ["Target", "Workload", "WorkloadPrice", "workload_of"]

Target = Number | Mapping[str, float]
"""The 95% error that a question may have: of each of its columns, or by their names."""

_ROUNDS = 8
_CLOSE = Fraction(999, 1000)  # of what the epsilon of a workload allows is used, at least


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Many questions that are answered together; nothing is spent until `release`.

    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> people = pa.table({"person": range(900)})
    >>> db = sf.connect(people, name="people", unit="person", max_rows=1, budget=sf.Budget(epsilon=3))
    >>> several = db.workload(["SELECT COUNT(*) AS n FROM people"] * 10, epsilon=1)
    >>> len(several.priced().shared)  # the same count in ten questions is measured once
    1
    """

    database: Database
    names: tuple[str, ...]
    questions: tuple[Question, ...]
    targets: Mapping[str, Target]
    size: float | None = None
    epsilon: Fraction | None = None
    purpose: str | None = None

    @counted
    def priced(self) -> PricedBatch:
        """Return what is measured, with what noise, and what all of it costs. Free."""
        found = {name: self._alone(name, one) for name, one in self._questions() if self._settled(name, one)}
        rest = [(name, one) for name, one in self._questions() if name not in found]
        if rest:
            found |= self._divided(dict(rest), found)
        priced = self._together(found)
        if not rest and self.epsilon is not None and priced.epsilon > self.epsilon:
            raise InvalidArgument(
                f"errors and epsilons of single questions need epsilon {float(priced.epsilon):.3g} together,"
                f" above the {float(self.epsilon):g} of the workload",
                place="epsilon",
                hints=(f"the dearest are {self._dearest(found)}", "allow larger errors, or more epsilon"),
            )
        return priced

    def _questions(self) -> list[tuple[str, Question]]:
        return list(zip(self.names, self.questions, strict=True))

    @property
    def settled(self) -> bool:
        """Whether every question has an epsilon or an error of its own, so that nothing is left to divide."""
        return all(self._settled(name, one) for name, one in self._questions())

    def _settled(self, name: str, question: Question) -> bool:
        return name in self.targets or question.epsilon is not None

    def _together(self, found: Mapping[str, PricedQuery]) -> PricedBatch:
        return plan_batch(self.names, [found[name] for name in self.names], budget=self.database.terms)

    def _alone(self, name: str, question: Question) -> PricedQuery:
        """Return a question with the noise of its own epsilon, or the cheapest for its own error."""
        if name not in self.targets:
            return question.priced()
        whole = self.database.terms.epsilon
        try:
            within = question.within(self.targets[name], size=self.size)
        except InvalidArgument as refusal:
            message = f"`{name}`: {refusal.message}"
            raise InvalidArgument(message, place=refusal.place, hints=refusal.hints) from None
        if within.epsilon is not None and within.epsilon > whole:
            raise InvalidArgument(
                f"no budget reaches the error of `{name}`: it needs epsilon {float(within.epsilon):.3g},"
                f" and the whole budget is {float(whole):g}",
                place="error",
                hints=("allow a larger error, or ask for fewer groups or tighter bounds",),
            )
        return within.priced()

    # -- what the rest share ------------------------------------------------------------------

    def _divided(
        self, rest: Mapping[str, Question], found: Mapping[str, PricedQuery]
    ) -> dict[str, PricedQuery]:
        """Return the other questions with shares of what is left of the workload's epsilon.

        The shares are in the best proportions (`analysis.batches`). Measurements that are shared make
        the whole cheaper than its parts, so all shares grow until the whole costs what it may.
        """
        if self.epsilon is None:
            raise InvalidArgument(
                f"it is not said what `{next(iter(rest))}` may cost",
                place="epsilon",
                hints=("give the workload an epsilon for all such questions", "or this one an error"),
            )
        rule, epsilon = self.database.terms.rule, self.epsilon
        allowed = self.database.terms.allowance(epsilon)
        alone = {name: one.priced(epsilon) for name, one in rest.items()}
        spent = self._charge(found)
        if spent >= allowed:
            raise InvalidArgument(
                "questions with an error or an epsilon of their own leave nothing for the rest",
                place="epsilon",
                hints=(f"the dearest are {self._dearest(found)}", "give the workload more epsilon"),
            )
        power = 3 if isinstance(rule, PureRule) else 2
        wishes = {
            name: sum(max(cost.objective, 1e-300) for cost in one.costs) ** (1 / power)
            for name, one in alone.items()
        }
        part = (1 - spent / allowed) / Fraction(sum(wishes.values()))
        best: dict[str, PricedQuery] = {}
        for _ in range(_ROUNDS):
            tried = {
                name: self._at(one, min(Fraction(1), _short(part * Fraction(wishes[name]))))
                for name, one in alone.items()
            }
            cost = self._charge({**found, **tried})
            if cost <= allowed:
                best = tried
                if cost >= allowed * _CLOSE:
                    break
            part *= (allowed - spent) / max(cost - spent, allowed / 10**6) * Fraction(9999, 10000)
        return best

    def _at(self, priced: PricedQuery, part: Fraction) -> PricedQuery:
        """Return a question with the noise for a part of what the workload's epsilon allows."""
        terms, options = self.database.terms, priced.request.options
        costs = price_together(
            priced.boundings,
            terms,
            epsilon=self.epsilon,
            options=options,
            own=[named.options for named in priced.request.queries],
            whole=part * main_part(priced.losses),
        )
        losses = priced_losses(priced.losses, terms, epsilon=self.epsilon, noise=options.noise, part=part)
        return replace(priced, costs=costs, losses=losses)

    def _charge(self, found: Mapping[str, PricedQuery]) -> Fraction:
        """Return what questions are charged together, in the currency of the budget's rule."""
        if not found:
            return Fraction(0)
        event = batch_event(list(found.values()))
        return Fraction(self.database.terms.rule.charge(event), UNITS)

    def _dearest(self, found: Mapping[str, PricedQuery]) -> str:
        first = sorted(found, key=lambda name: -found[name].epsilon)[:3]
        return ", ".join(f"`{name}` (epsilon {float(found[name].epsilon):.3g})" for name in first)

    # -- what it would cost, and spending it ------------------------------------------------------

    @counted
    def forecasts(self, priced: PricedBatch) -> list[tuple[str, str, Forecast]]:
        """Return how far off each column of each question will be, with the names of both. Free."""
        uses = {use.place: use.cost(one.cost) for one in priced.shared for use in one.uses}
        places, found = iter(sorted(uses)), []
        for name, question, own in zip(self.names, self.questions, priced.questions, strict=True):
            for asked, bounding in zip(own.request.queries, own.boundings, strict=True):
                columns = {**labels(asked.query), **question.names()}
                expected = worst_forecasts(bounding, uses[next(places)], size=self.size)
                found += [(name, columns[one.name], one) for one in expected]
        return found

    @counted
    def price(self) -> WorkloadPrice:
        """Return the total cost, and the error of every column of every question. Free."""
        return _price(self, self.priced())

    @counted
    def advise(self, **options: Unpack[AdviceOptions]) -> Advice:
        """Say what all questions together tell about a person, and what else could be had. Free.

        The options are those of `Question.advise`. `error` is the largest that any column of any question may
        have, or by the names that the advice shows: `{"ages.n": 20}`. Questions with an epsilon or an error
        of their own keep it.
        """
        from sfumato.advise.advice import advise
        from sfumato.session.choices import choice_of_workload

        return advise(choice_of_workload(self), **options)

    def release(
        self, *, key: str | None = None, purpose: str | None = None, progress: Progress = None
    ) -> WorkloadRelease:
        """Spend: charge the budget once, measure, add noise, and return all answers.

        `key`, `purpose` and `progress` are those of `Question.release`.
        """
        purpose = self.purpose if purpose is None else purpose
        with shown(progress) as tell:
            tell("pricing")
            with not_charged_yet():
                priced = self.priced()
            return answered(self.database, priced, key=key, purpose=purpose, tell=tell)

    @counted
    def __repr__(self) -> str:
        try:
            return "\n".join(self.price().lines())
        except SfumatoError as refusal:  # showing something must not fail
            return f"workload that will be refused:\n{refusal}"

    @counted
    def _repr_html_(self) -> str:
        try:
            return self.price().html()
        except SfumatoError as refusal:  # showing something must not fail
            return f"<pre>workload that will be refused:\n{_html.escape(str(refusal))}</pre>"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class WorkloadPrice:
    """What a workload would cost, and how far off each column of each question would be.

    `share` is what is charged of the whole budget, `share_alone` what the same questions with the same
    noise would be charged one by one.
    """

    epsilon: Fraction
    delta: Fraction
    share: float
    share_alone: float
    measured: int
    asked: int
    errors: tuple[tuple[str, str, str], ...]  # question, column, error
    unprotected: tuple[str, ...] = ()  # what the owner's policy declares public
    refusal: BudgetExceeded | None = None  # what is left does not cover it

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """Return the price as text."""
        width = max(len(name) for name, _, _ in self.errors)
        errors = [f"  {name.ljust(width)}  {column}: {error}" for name, column, error in self.errors]
        first, *rest, caps, last = self._said()
        return [first, *(f"  {line}" for line in rest), *errors, caps, last]

    def html(self) -> str:
        """Return the price as HTML: a table of errors, and what is said around it."""
        first, *rest, caps, last = (_html.escape(line) for line in self._said())
        rows = [f"<tr>{_cells(one, 'td')}</tr>" for one in self.errors]
        head = f"<thead><tr>{_cells(('question', 'column', 'error'), 'th')}</tr></thead>"
        table = f"<table>{head}<tbody>{''.join(rows)}</tbody></table>"
        around = "".join(f"<div><small>{line}</small></div>" for line in (*rest, caps, last))
        return f"<div>{first}</div>{table}{around}"

    def _said(self) -> list[str]:
        return [
            f"workload, not asked yet: epsilon {float(self.epsilon):.4g}, delta {float(self.delta):.3g}",
            f"{self.share:.2%} of the budget; one by one {self.share_alone:.2%}",
            f"{self.measured} sums are measured for {self.asked} that are asked for",
            *(f"{NOT_PROTECTED}: {said}" for said in self.unprotected),
            "caps on what one person contributes hold for each question by itself",
            "nothing is spent until .release()",
        ]

    def record(self) -> dict[str, Any]:
        """Return the price as plain data."""
        return {
            "epsilon": float(self.epsilon),
            "delta": float(self.delta),
            "share_of_budget": self.share,
            "share_one_by_one": self.share_alone,
            "measured": self.measured,
            "asked": self.asked,
            "unprotected": list(self.unprotected),
            "errors": [dict(zip(("question", "column", "error"), one, strict=True)) for one in self.errors],
        }


def _cells(texts: Sequence[str], tag: str) -> str:
    return "".join(f'<{tag} style="text-align:left">{_html.escape(text)}</{tag}>' for text in texts)


def _price(workload: Workload, priced: PricedBatch) -> WorkloadPrice:
    database = workload.database
    charge, grant = charge_of(database, priced)
    rule, limit = database.terms.rule, max(1, database.terms.limit)
    return WorkloadPrice(
        epsilon=priced.epsilon,
        delta=priced.delta,
        share=charge.units / limit,
        share_alone=sum(rule.charge(one.event) for one in priced.questions) / limit,
        measured=sum(len(one.cost.noises) for one in priced.shared),
        asked=sum(len(cost.noises) for one in priced.questions for cost in one.costs),
        errors=tuple(
            (name, column, error_of(one, size=workload.size))
            for name, column, one in workload.forecasts(priced)
        ),
        unprotected=priced.unprotected,
        refusal=shortage(database.balance, charge, grant),
    )


@counted
def workload_of(
    database: Database,
    questions: Mapping[str, str | Asked | Question] | Sequence[str | Asked | Question],
    *,
    epsilon: Number | None,
    errors: Mapping[str, Target] | None,
    size: Number | None,
    purpose: str | None,
) -> Workload:
    """Return the workload of questions, under their names or their numbers; refuse what makes no sense."""
    if isinstance(questions, (str, bytes)) or not isinstance(questions, (Mapping, Sequence)):
        raise InvalidArgument(
            "a workload is a list of questions, or a dictionary of them by name",
            place="workload",
            hints=("db.workload(['SELECT COUNT(*) FROM people', ..], epsilon=1)",),
        )
    numbered = ((f"q{at}", one) for at, one in enumerate(questions, 1))
    named = dict(questions if isinstance(questions, Mapping) else numbered)
    if not named:
        raise InvalidArgument("a workload has one question at least", place="workload")
    asked = {name: _question(database, name, one) for name, one in named.items()}
    targets = dict(errors or {})
    if unknown := [name for name in targets if name not in asked]:
        hint = f"the questions are {', '.join(list(asked)[:10])}"
        raise InvalidArgument(f"no question is called `{unknown[0]}`", place="errors", hints=(hint,))
    for name in targets:
        if asked[name].epsilon is not None:
            hint = "the one holds its noise fixed, the other looks for it"
            raise InvalidArgument(f"`{name}` has an epsilon and an error", place="errors", hints=(hint,))
    return Workload(
        database=database,
        names=tuple(asked),
        questions=tuple(asked.values()),
        targets=targets,
        size=None if size is None else float(positive(size, "size")),
        epsilon=None if epsilon is None else budget_quantity(epsilon, "epsilon"),
        purpose=purpose,
    )


def _question(database: Database, name: object, given: object) -> Question:
    if not isinstance(name, str) or not name or not name.isprintable():
        raise InvalidArgument("questions of a workload have names that are texts", place="workload")
    match given:
        case str():
            question = database.sql(given)
        case Asked():
            question = database.ask(given)
        case Question() if given.database is database:
            question = given
        case _:
            hint = "SQL, db.sql(..) or db.table(..).agg(..) of this database"
            raise InvalidArgument(f"`{name}` is no question", place="workload", hints=(hint,))
    if question.free:
        hint = "db.sql(..).release() answers it, free"
        raise InvalidArgument(f"`{name}` is about public tables alone", place="workload", hints=(hint,))
    if question.only_free:
        hint = "ask it by itself: it costs nothing"
        raise InvalidArgument(f"`{name}` is asked for free", place="workload", hints=(hint,))
    if question.request.sought is not None:
        hint = "ask for bounds by themselves, and declare what was found"
        raise InvalidArgument(f"`{name}` looks for bounds", place="workload", hints=(hint,))
    return question


def _short(part: Fraction) -> Fraction:
    """Round down to 32 bits: what is calibrated to it stays short."""
    unit = Fraction(1, 2**40)
    return max(unit, part // unit * unit)
