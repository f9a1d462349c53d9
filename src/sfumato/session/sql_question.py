"""The SQL question: a statement, or what Python calls built, with its price and its errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Unpack

from sfumato.aggregates.answer import Forecast
from sfumato.analysis.expected_error import ON_LIMITS, ExpectedError, error_of
from sfumato.analysis.forecast import cheapest, forecasts, worst_forecasts
from sfumato.analysis.loss_measurement import main_part
from sfumato.analysis.shapes import scans
from sfumato.core.arguments import Number
from sfumato.errors import InvalidArgument, QueryRefused, SfumatoError
from sfumato.pipeline import PricedQuery, answer_public, plan
from sfumato.plan.options import QuestionOptions
from sfumato.plan.outline import labels
from sfumato.plan.request import Request
from sfumato.release import Release
from sfumato.release.lineage import shown_columns
from sfumato.session.counting import counted
from sfumato.session.explanation import explanation, levels
from sfumato.session.price import Price, price_together
from sfumato.session.progress import Progress
from sfumato.session.question import Question

if TYPE_CHECKING:
    from sfumato.advise.choice import Choice, WantedError
    from sfumato.session.database import Database
    from sfumato.session.free_answers import FreeAnswer

__all__ = ["Asked", "SqlQuestion"]

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SqlQuestion(Question[PricedQuery, Release]):
    """A question in SQL, or of Python calls, with its price tag; nothing is spent until `release`.

    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> people = pa.table({"person": range(900)})
    >>> db = sf.connect(people, name="people", unit="person", max_rows=1, budget=sf.Budget(epsilon=3))
    >>> question = db.sql("SELECT COUNT(*) AS n FROM people", epsilon=1)  # free: shows price and error
    >>> question.epsilon, db.balance.spent_units
    (Fraction(1, 1), 0)
    """

    request: Request
    only_free: bool = False  # it is answered from old releases, or refused

    @property
    def free(self) -> bool:
        """Whether it is about public tables alone: it needs no epsilon, and nothing is charged."""
        return not self.request.queries

    @property
    def reads_public(self) -> bool:
        """Whether it names a public table, or the policy has totals in one."""
        catalog, request = self.database.catalog, self.request
        named = {scan.table for one in request.queries for scan in scans(one.query.source)}
        private = {table.name for table in catalog.tables if table.private}
        return bool(request.public or catalog.policy.invariants or named - private)

    def _plan(self, epsilon: Fraction | None) -> PricedQuery:
        database = self.database
        return plan(
            self.request,
            catalog=database.catalog,
            budget=database.terms,
            epsilon=epsilon,
            backend=database.backend,
        )

    @counted
    def from_releases(self) -> FreeAnswer | None:
        """Return the answer that kept releases determine, with its errors, None if they do not. Free."""
        from sfumato.session.free_answers import free_answer

        return free_answer(self)

    @counted
    def losses(self, *, epsilon: Number | None = None) -> SqlQuestion:
        """Ask what clamping and capping take from this question: another question, with its own price."""
        from sfumato.analysis.clipping_bias import losses_request

        database = self.database
        request = losses_request(self.request, database.catalog, database.backend)
        return database.ask(request, epsilon=epsilon, purpose=self.purpose)

    @counted
    def explain(self, *, size: float | None = None) -> str:
        """Explain the plan, the noise, the cost, and the error at half, the same and double epsilon. Free."""
        return explanation(self, size=size)

    # -- how far off it is, and what it costs -------------------------------------------------

    @property
    def called(self) -> str:
        """What advice calls it."""
        return "the question"

    def _expected(self, priced: PricedQuery, size: float | None) -> tuple[ExpectedError, ...]:
        return tuple(self._errors(priced, size, worst_forecasts))

    def _errors(
        self, priced: PricedQuery, size: float | None, find: Callable[..., tuple[Forecast, ...]]
    ) -> Iterator[ExpectedError]:
        """Yield what `find` expects of each column, as the question calls it."""
        rows = zip(priced.request.queries, priced.boundings, priced.costs, strict=True)
        for place, (named, bounding, cost) in enumerate(rows):
            names = {**labels(named.query), **self.names()}
            for one in find(bounding, cost, size=size):
                on_limits = priced.limits is not None and priced.limits.decide(place, one.name)
                yield ExpectedError.of(one, names[one.name], size=size, on_limits=on_limits)

    @counted
    def price(self, *, size: float | None = None) -> Price:
        """Return what it would cost and how far off it would be, against what is left of the budget. Free.

        `size` is how many rows a group has, where errors depend on it. What the policy forbids is refused.
        """
        if self.free or self.only_free:
            none, said = Fraction(0), () if self.free else (self.said_free(),)
            return Price(epsilon=none, keys_delta=none, units=0, keys_units=0, share=0.0, times=1, notes=said)
        priced = self.priced()
        errors = [(one.name, one.said) for one in self._errors(priced, size, forecasts)]
        return price_together(self.database, (priced,), errors, self._notes(priced))

    def _notes(self, priced: PricedQuery) -> tuple[str, ...]:
        return (*levels(self, priced), *self.request.query_notes)

    def choice(self, *, size: float | None = None) -> Choice:
        """Return the choice of its epsilon, or of the whole budget's where it has none yet. Free."""
        if self.free or self.only_free:
            hint = "it has no epsilon to choose"
            raise InvalidArgument("this is answered for free", place="question", hints=(hint,))

        def least(error: WantedError) -> Fraction:
            found = self.within(error, size=size).epsilon
            assert found is not None
            return found

        return replace(Question.choice(self, size=size), cheapest=least)

    # -- spending -----------------------------------------------------------------------------

    def _unpaid(self) -> Release | None:
        if self.free:
            return answer_public(self.request, backend=self.database.backend)
        return self._determined().release if self.only_free else None

    def _determined(self) -> FreeAnswer:
        if (found := self.from_releases()) is None:
            raise QueryRefused(
                "no release that is kept determines the answer to this question",
                code="SF409",
                text=self.request.text,
                hints=(
                    "a table of declared groups determines sums of its cells, for the same data and caps",
                    "ask without free=True, with an epsilon",
                ),
            )
        return found

    @counted
    def within(self, error: Number | Mapping[Any, Any], *, size: float | None = None) -> SqlQuestion:
        """Return this question at about the smallest epsilon whose 95% error is no larger. Free."""
        budget = self.database.terms
        try:
            priced = self.priced(budget.epsilon)
            if priced.limits is not None:
                hint = "give bounds, max_groups and max_rows, or declare them"
                raise InvalidArgument(f"the error {ON_LIMITS}", place="error", hints=(hint,))
            epsilon = cheapest(
                priced.boundings,
                budget,
                error=self._inner_names(error) if isinstance(error, Mapping) else error,
                size=size,
                options=self.request.options,
                own=[named.options for named in self.request.queries],
                whole=main_part(priced.losses),
            )
        except InvalidArgument as refusal:  # in the names of the question
            message = self.in_its_names(refusal.message)
            raise InvalidArgument(message, place=refusal.place, hints=refusal.hints) from None
        return replace(self, epsilon=epsilon)

    # -- how it is shown ----------------------------------------------------------------------

    def _lines(self) -> list[str]:
        if self.free:
            return ["<question about public tables alone: .release() answers it, free>"]
        if self.only_free:
            return [f"question: {self.said_free()}"]
        if self.epsilon is None:
            tag = "<question: give epsilon to see its price, or release(error=..)>"
        else:
            tag = self._price_tag(self.epsilon)
        with suppress(SfumatoError):  # a price does not depend on what was released
            if (found := self.from_releases()) is not None:
                return [tag, f"free=True: {self._said(found)}"]
        return [tag]

    def said_free(self) -> str:
        """Return from which releases the answer follows, and how far off it is; refuse if from none."""
        return self._said(self._determined())

    def _said(self, found: FreeAnswer) -> str:
        names = {name: label for one in self.request.queries for name, label in labels(one.query).items()}
        shown = {**names, **self.names()}
        errors = ", ".join(f"{shown[one.name]} {error_of(one)}" for one in found.errors)
        return f"it follows from {found.source}, without a charge: {errors}"

    def _price_tag(self, epsilon: Fraction) -> str:
        from sfumato.analysis.alternatives import alternative

        priced = self.priced()
        lines = [f"question, not asked yet: epsilon = {float(epsilon):g}"]
        shown = set(shown_columns(self.request).values())
        rows = zip(priced.request.queries, priced.boundings, priced.costs, strict=True)
        for place, (named, bounding, cost) in enumerate(rows):
            asked = labels(named.query)
            if bounding.consistency is not None:
                continue
            for one in forecasts(bounding, cost):
                limits = priced.limits is not None and priced.limits.decide(place, one.name)
                error = error_of(one, on_limits=limits)
                lines.append(f"  {one.name if one.name in shown else asked[one.name]}: {error}")
            budget, noise = self.database.terms, self.request.options.noise
            if (other := alternative(bounding, cost, budget, noise=noise)) is not None:
                lines.append(f"  {other}")
        lines += [f"  {note}" for note in (*levels(self, priced), *self.request.query_notes)]
        lines.append("nothing is spent until .release()")
        return self.in_its_names("\n".join(lines))

    def in_its_names(self, text: str) -> str:
        """Call noisy columns in a text what the question calls them."""
        names = self.names()
        words = {column: name for column, name in names.items() if _WORD.fullmatch(column)}
        for column in (one for one in names if one not in words):
            text = re.sub(rf"\b{re.escape(column)}\b", names[column].replace("\\", r"\\"), text)
        return _WORD.sub(lambda word: words.get(word[0], word[0]), text)

    def names(self) -> dict[str, str]:
        """Return what the question calls noisy columns, where it shows them as they are."""
        return {column: name for name, column in shown_columns(self.request).items()}

    def _inner_names(self, named: Mapping[str, float]) -> dict[str, float]:
        return {shown_columns(self.request).get(name, name): value for name, value in named.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question from Python calls, without a price: give it an epsilon, or the error you can live with."""

    database: Database
    request: Request

    def ask(
        self,
        *,
        epsilon: Number | None = None,
        purpose: str | None = None,
        free: bool = False,
        **options: Unpack[QuestionOptions],
    ) -> SqlQuestion:
        """Return the question with its price. Free; takes what `Database.sql` takes."""
        return self.database.ask(self.request, epsilon=epsilon, purpose=purpose, free=free, **options)

    def release(
        self,
        *,
        epsilon: Number | None = None,
        error: Number | Mapping[str, float] | None = None,
        size: float | None = None,
        key: str | None = None,
        purpose: str | None = None,
        progress: Progress = None,
        **options: Unpack[QuestionOptions],
    ) -> Release:
        """Spend at once: what `ask(epsilon=..).release(..)` does."""
        asked = self.ask(epsilon=epsilon, **options)
        return asked.release(error=error, size=size, key=key, purpose=purpose, progress=progress)

    def __repr__(self) -> str:
        return "<question: .ask(epsilon=0.5) shows its price, .release(epsilon=0.5) spends>"
