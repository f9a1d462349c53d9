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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.analysis.batches import price_together as priced_parts
from sfumato.analysis.expected_error import ExpectedError
from sfumato.analysis.forecast import worst_forecasts
from sfumato.analysis.invariants import NOT_PROTECTED
from sfumato.analysis.loss_measurement import main_part, priced_losses
from sfumato.core.arguments import Number, budget_quantity, positive
from sfumato.core.rules import UNITS, PureRule
from sfumato.errors import InvalidArgument
from sfumato.pipeline import PricedQuery
from sfumato.plan.outline import labels
from sfumato.release.workload_release import WorkloadRelease
from sfumato.session.counting import counted
from sfumato.session.price import Price, price_together
from sfumato.session.question import Question
from sfumato.session.sql_question import Asked, SqlQuestion
from sfumato.workloads.batch import PricedBatch, batch_event, plan_batch

if TYPE_CHECKING:
    from sfumato.advise.choice import Choice, Outcome
    from sfumato.session.database import Database

__all__ = ["Target", "Workload", "workload_of"]

Target = Number | Mapping[str, float]
"""The 95% error that a question may have: of each of its columns, or by their names."""

_ROUNDS = 8
_CLOSE = Fraction(999, 1000)  # of what the epsilon of a workload allows is used, at least


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Workload(Question[PricedBatch, WorkloadRelease]):
    """Many questions that are answered together; nothing is spent until `release`.

    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> people = pa.table({"person": range(900)})
    >>> db = sf.connect(people, name="people", unit="person", max_rows=1, budget=sf.Budget(epsilon=3))
    >>> several = db.workload(["SELECT COUNT(*) AS n FROM people"] * 10, epsilon=1)
    >>> len(several.priced().shared)  # the same count in ten questions is measured once
    1
    """

    names: tuple[str, ...]
    questions: tuple[SqlQuestion, ...]
    targets: Mapping[str, Target]
    size: float | None = None

    refused_as = "workload"
    slow_to_price = True

    @property
    def called(self) -> str:
        """What advice calls it."""
        return f"the workload of {len(self.names)} question{'' if len(self.names) == 1 else 's'}"

    @property
    def reads_public(self) -> bool:
        """Whether any of its questions names a public table, or the policy has totals in one."""
        return any(one.reads_public for one in self.questions)

    def _plan(self, epsilon: Fraction | None) -> PricedBatch:
        """Return what is measured, with what noise, and what all of it costs."""
        found = {name: self._alone(name, one) for name, one in self._questions() if self._settled(name, one)}
        rest = [(name, one) for name, one in self._questions() if name not in found]
        if rest:
            found |= self._divided(dict(rest), found, epsilon)
        priced = self._together(found)
        if not rest and epsilon is not None and priced.epsilon > epsilon:
            raise InvalidArgument(
                f"errors and epsilons of single questions need epsilon {float(priced.epsilon):.3g} together,"
                f" above the {float(epsilon):g} of the workload",
                place="epsilon",
                hints=(f"the dearest are {self._dearest(found)}", "allow larger errors, or more epsilon"),
            )
        return priced

    def _questions(self) -> list[tuple[str, SqlQuestion]]:
        return list(zip(self.names, self.questions, strict=True))

    @property
    def settled(self) -> bool:
        """Whether every question has an epsilon or an error of its own, so that nothing is left to divide."""
        return all(self._settled(name, one) for name, one in self._questions())

    def _settled(self, name: str, question: SqlQuestion) -> bool:
        return name in self.targets or question.epsilon is not None

    def _together(self, found: Mapping[str, PricedQuery]) -> PricedBatch:
        return plan_batch(self.names, [found[name] for name in self.names], budget=self.database.terms)

    def _alone(self, name: str, question: SqlQuestion) -> PricedQuery:
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
        self, rest: Mapping[str, SqlQuestion], found: Mapping[str, PricedQuery], epsilon: Fraction | None
    ) -> dict[str, PricedQuery]:
        """Return the other questions with shares of what is left of the workload's epsilon.

        The shares are in the best proportions (`analysis.batches`). Measurements that are shared make
        the whole cheaper than its parts, so all shares grow until the whole costs what it may.
        """
        if epsilon is None:
            raise InvalidArgument(
                f"it is not said what `{next(iter(rest))}` may cost",
                place="epsilon",
                hints=("give the workload an epsilon for all such questions", "or this one an error"),
            )
        rule = self.database.terms.rule
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
                name: self._at(one, epsilon, min(Fraction(1), _short(part * Fraction(wishes[name]))))
                for name, one in alone.items()
            }
            cost = self._charge({**found, **tried})
            if cost <= allowed:
                best = tried
                if cost >= allowed * _CLOSE:
                    break
            part *= (allowed - spent) / max(cost - spent, allowed / 10**6) * Fraction(9999, 10000)
        return best

    def _at(self, priced: PricedQuery, epsilon: Fraction, part: Fraction) -> PricedQuery:
        """Return a question with the noise for a part of what the workload's epsilon allows."""
        terms, options = self.database.terms, priced.request.options
        costs = priced_parts(
            priced.boundings,
            terms,
            epsilon=epsilon,
            options=options,
            own=[named.options for named in priced.request.queries],
            whole=part * main_part(priced.losses),
        )
        losses = priced_losses(priced.losses, terms, epsilon=epsilon, noise=options.noise, part=part)
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

    def _named_errors(
        self, priced: PricedBatch, size: float | None
    ) -> Iterator[tuple[str, str, ExpectedError]]:
        """Yield how far off each column of each question will be, with the names of both."""
        rows = self.size if size is None else size
        uses = {use.place: use.cost(one.cost) for one in priced.shared for use in one.uses}
        places = iter(sorted(uses))
        for name, question, own in zip(self.names, self.questions, priced.questions, strict=True):
            for asked, bounding in zip(own.request.queries, own.boundings, strict=True):
                columns = {**labels(asked.query), **question.names()}
                for one in worst_forecasts(bounding, uses[next(places)], size=rows):
                    column = columns[one.name]
                    yield name, column, ExpectedError.of(one, f"{name}.{column}", size=rows)

    def _expected(self, priced: PricedBatch, size: float | None) -> tuple[ExpectedError, ...]:
        return tuple(one for _, _, one in self._named_errors(priced, size))

    @counted
    def price(self, *, size: float | None = None) -> Price:
        """Return the total cost, and the error of every column of every question. Free.

        `size` is how many rows a group has, the one of the workload unless it is given.
        """
        priced, rule = self.priced(), self.database.terms.rule
        errors = [(name, column, one.said) for name, column, one in self._named_errors(priced, size)]
        found = price_together(self.database, (priced,), errors)
        alone = sum(rule.charge(one.event) for one in priced.questions) / max(1, self.database.terms.limit)
        measured = sum(len(one.cost.noises) for one in priced.shared)
        asked = sum(len(cost.noises) for one in priced.questions for cost in one.costs)
        delta, unprotected = priced.delta, priced.unprotected
        return replace(
            found,
            head=(
                f"workload, not asked yet: epsilon {float(found.epsilon):.4g}, delta {float(delta):.3g}",
                f"{found.share:.2%} of the budget; one by one {alone:.2%}",
                f"{measured} sums are measured for {asked} that are asked for",
                *(f"{NOT_PROTECTED}: {said}" for said in unprotected),
            ),
            foot=(
                "caps on what one person contributes hold for each question by itself",
                "nothing is spent until .release()",
            ),
            facts={
                "epsilon": float(found.epsilon),
                "delta": float(delta),
                "share_of_budget": found.share,
                "share_one_by_one": alone,
                "measured": measured,
                "asked": asked,
                "unprotected": list(unprotected),
            },
        )

    def choice(self, *, size: float | None = None) -> Choice:
        """Return the choice of its epsilon; questions with an epsilon or error of their own keep it. Free."""
        choice = Question.choice(self, size=size)
        if not self.settled:
            return choice

        def at(epsilon: Fraction) -> Outcome:
            return replace(choice.at(epsilon), epsilon=self.priced(epsilon).epsilon)

        return replace(choice, epsilon=self.priced().epsilon, at=at)

    def _lines(self) -> list[str]:
        return self.price().lines()

    def _html(self) -> str:
        return self.price()._repr_html_()


@counted
def workload_of(
    database: Database,
    questions: Mapping[str, str | Asked | SqlQuestion] | Sequence[str | Asked | SqlQuestion],
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


def _question(database: Database, name: object, given: object) -> SqlQuestion:
    if not isinstance(name, str) or not name or not name.isprintable():
        raise InvalidArgument("questions of a workload have names that are texts", place="workload")
    match given:
        case str():
            question = database.sql(given)
        case Asked():
            question = database.ask(given)
        case SqlQuestion() if given.database is database:
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
