"""The question: whatever can be asked, with its price and its errors; nothing is spent until `release`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar, Unpack

from sfumato.analysis.expected_error import ExpectedError
from sfumato.core.arguments import Number, budget_quantity
from sfumato.errors import SfumatoError
from sfumato.pipeline import Priced, PricedAnswer, Tell, answer
from sfumato.session.counting import counted
from sfumato.session.price import Price, price_together
from sfumato.session.price_memory import PriceMemory
from sfumato.session.progress import Progress, not_charged_yet, shown

if TYPE_CHECKING:
    from sfumato.advise.advice import Advice, AdviceOptions
    from sfumato.advise.choice import Choice, Outcome
    from sfumato.session.database import Database

__all__ = ["Question"]

_Priced = TypeVar("_Priced", bound=Priced)
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Question(ABC, Generic[_Priced, _Answer]):
    """Whatever can be asked: it shows its price and its errors, free, and only `release` spends.

    A kind of question says how it is planned, what it is called, and how far off its answers are. Its data
    class is made with `repr=False`, for all kinds are shown as this one is.

    A price follows from what is asked, its epsilon, the declarations, the budget and the engine, which do not
    change, and from what public tables hold: their groups, and how many rows of them are alike. So the price
    is remembered for each epsilon, and, where it reads a public table, for the version of the data that it
    was made for. Where no version is told, nothing is remembered. What is left of the budget and which
    answers are kept is looked up each time.

    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> people = pa.table({"person": range(900)})
    >>> db = sf.connect(people, name="people", unit="person", max_rows=1, budget=sf.Budget(epsilon=3))
    >>> count = db.sql("SELECT COUNT(*) AS n FROM people", epsilon=1)
    >>> several = db.workload({"all": "SELECT COUNT(*) AS n FROM people"}, epsilon=1)
    >>> [isinstance(one, sf.Question) and one.price().times for one in (count, several)]
    [3, 3]
    """

    database: Database
    epsilon: Fraction | None = None
    purpose: str | None = None
    _prices: PriceMemory[_Priced] = field(default_factory=PriceMemory, init=False, compare=False)

    refused_as: ClassVar[str] = "question"
    """What a question that cannot be asked is called where it is shown."""
    slow_to_price: ClassVar[bool] = False
    """Whether pricing is told as a step of its own."""

    # -- what each kind says of itself --------------------------------------------------------

    @abstractmethod
    def _plan(self, epsilon: Fraction | None) -> _Priced:
        """Return the noise and the cost at an epsilon; refuse what cannot be asked."""

    @property
    @abstractmethod
    def called(self) -> str:
        """What advice calls it, such as "the question"."""

    @property
    def title(self) -> str:
        """The line above its price."""
        return f"{self.called}, not asked yet"

    def _expected(self, priced: _Priced, size: float | None) -> tuple[ExpectedError, ...]:
        """Return how far off answers will be, in groups of `size` rows."""
        return ()

    def _notes(self, priced: _Priced) -> tuple[str, ...]:
        """Return what else its price says."""
        return ()

    def _answered(self, priced: _Priced, *, key: str | None, purpose: str | None, tell: Tell) -> _Answer:
        """Charge, and answer in one look, for the analyst that the database was opened for."""
        assert isinstance(priced, PricedAnswer), "a kind of several looks has its own way to answer"
        database = self.database
        found: _Answer = answer(
            priced,
            catalog=database.catalog,
            ledger=database.ledger,
            backend=database.backend,
            idempotency_key=key,
            analyst=database.analyst,
            purpose=purpose,
            tell=tell,
        )
        return found

    def _unpaid(self) -> _Answer | None:
        """Return the answer, if it costs nothing."""
        return None

    # -- the price ----------------------------------------------------------------------------

    @counted
    def priced(self, epsilon: Number | None = None) -> _Priced:
        """Return what one unit can change, the noise that takes, and the cost. Free."""
        chosen = self.epsilon if epsilon is None else budget_quantity(epsilon, "epsilon")
        return self._prices.found(chosen, self._public_state(), lambda: self._plan(chosen))

    @property
    def reads_public(self) -> bool:
        """Whether its price depends on what a public table holds; if the database has one."""
        return not all(table.private for table in self.database.catalog.tables)

    def _public_state(self) -> str | None:
        """Return what tells when public tables changed; None: it cannot be told."""
        if not self.reads_public:
            return ""
        with suppress(SfumatoError):  # pricing says in its own words what is gone
            return self.database.backend.data_version()
        return None

    @counted
    def price(self, *, size: float | None = None) -> Price:
        """Return what it would cost and how far off it would be, against what is left of the budget. Free.

        `size` is how many rows a group has, where errors depend on it. What the policy forbids is refused.
        """
        priced = self.priced()
        errors = [(one.name, one.said) for one in self._expected(priced, size)]
        return price_together(self.database, (priced,), errors, self._notes(priced))

    @counted
    def errors(self, *, size: float | None = None) -> tuple[ExpectedError, ...]:
        """Return the largest error of each column, each with its name. Free."""
        return self._expected(self.priced(), size)

    @counted
    def within(self, error: Number | Mapping[Any, Any], *, size: float | None = None) -> Self:
        """Return this question at about the smallest epsilon whose 95% error is no larger. Free."""
        from sfumato.advise.limits import cheapest_epsilon

        return replace(self, epsilon=cheapest_epsilon(self.choice(size=size), error))

    def choice(self, *, size: float | None = None) -> Choice:
        """Return the choice of its epsilon, which advice is about: what each epsilon would mean. Free."""
        from sfumato.advise.choice import YEARLY, Choice

        terms = self.database.terms
        return Choice(
            name=self.called,
            epsilon=terms.epsilon if self.epsilon is None else self.epsilon,
            delta=terms.delta,
            at=partial(self._outcome, size=size),
            year=YEARLY,
            whole=terms.epsilon,
        )

    @counted
    def _outcome(self, epsilon: Fraction, size: float | None) -> Outcome:
        """Return what would be released at an epsilon."""
        from sfumato.advise.choice import Outcome

        priced = self.priced(epsilon)
        return Outcome(
            epsilon=epsilon,
            source=priced.event,
            keys_delta=priced.keys_delta,
            errors=self._expected(priced, size),
        )

    @counted
    def advise(self, *, size: float | None = None, **options: Unpack[AdviceOptions]) -> Advice:
        """Say what the answer tells about a person at its epsilon, and what else could be had. Free.

        `size` is how many rows a group has, from public knowledge. The options are those of
        `sfumato.advise.advise`: `people`, `family`, `prior`, and what should hold: `advantage`, `posterior`,
        `harm`, `error`. `error` is the largest that any column may have, or by the names that the advice
        shows.
        """
        from sfumato.advise.advice import advise

        return advise(self.choice(size=size), **options)

    @counted
    def explain(self, *, size: float | None = None) -> str:
        """Explain the cost, and the error at half, the same and double epsilon. Free."""
        from sfumato.session.explanation import cost_explained

        return cost_explained(self, size=size)

    # -- spending -----------------------------------------------------------------------------

    def release(
        self,
        *,
        error: Number | Mapping[Any, Any] | None = None,
        size: float | None = None,
        key: str | None = None,
        purpose: str | None = None,
        progress: Progress = None,
    ) -> _Answer:
        """Spend: charge the budget, compute, add noise, and return the answer with its errors.

        With `error`, epsilon is the smallest at which the 95% error is no larger; for averages and
        other ratios it needs the `size` of a group. With a `key`, the same request asked again
        returns the stored answer, free. The `purpose`, or the one that was asked with, is kept with the
        charge for the owner of the ledger.

        `progress` shows the steps of a question that takes long: True on standard error, a function is called
        with each of them, and by default they are shown at a prompt and in a notebook. Ctrl-C is a
        `KeyboardInterrupt` that says whether the question was charged.
        """
        with shown(progress) as tell:
            with not_charged_yet():
                if (unpaid := self._unpaid()) is not None:
                    return unpaid
                if self.slow_to_price:
                    tell("pricing")
                asked = self if error is None else self.within(error, size=size)
                priced = asked.priced()
            why = self.purpose if purpose is None else purpose
            return asked._answered(priced, key=key, purpose=why, tell=tell)

    async def release_async(
        self,
        *,
        error: Number | Mapping[Any, Any] | None = None,
        size: float | None = None,
        key: str | None = None,
        purpose: str | None = None,
        progress: Progress = None,
    ) -> _Answer:
        """Spend as `release` does, in a thread, while other tasks go on: `await question.release_async()`.

        A task that stops waiting does not stop the question: it is charged and answered, and its answer is in
        the ledger, to be had again under its `key`.
        """
        import asyncio  # takes a while to import, and few programs wait like this

        return await asyncio.to_thread(
            self.release, error=error, size=size, key=key, purpose=purpose, progress=progress
        )

    # -- how it is shown ----------------------------------------------------------------------

    def _lines(self) -> list[str]:
        """Return what is shown of it."""
        return [self.title, *self.price().lines()]

    def _html(self) -> str:
        """Return what is shown of it in a notebook."""
        return _as_text(repr(self))

    @counted
    def __repr__(self) -> str:
        try:
            return "\n".join(self._lines())
        except SfumatoError as refusal:  # showing something must not fail
            return f"{self.refused_as} that will be refused:\n{refusal}"

    @counted
    def _repr_html_(self) -> str:
        try:
            return self._html()
        except SfumatoError:  # the text says why
            return _as_text(repr(self))


def _as_text(text: str) -> str:
    return f"<pre>{escape(text)}</pre>"
