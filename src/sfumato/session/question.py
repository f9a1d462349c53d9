"""The question: what was asked, with its price and its error; nothing is spent until `release`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Unpack

from sfumato.aggregates.answer import Forecast
from sfumato.analysis import Bounding, Cost
from sfumato.analysis.batches import divided
from sfumato.analysis.forecast import cheapest, forecasts
from sfumato.analysis.invariants import NOT_PROTECTED
from sfumato.analysis.loss_measurement import MEASURED_PART, main_part
from sfumato.analysis.missing_limits import BOUNDS_PART
from sfumato.analysis.shapes import scans
from sfumato.core.arguments import Number, budget_quantity
from sfumato.core.rules import PureRule
from sfumato.errors import BudgetExceeded, InvalidArgument, QueryRefused, SfumatoError
from sfumato.ledger import Balance, GrantBalance, Owner
from sfumato.ledger.charges import Charge
from sfumato.pipeline import Payable, Priced, admit, answer_public, parts_charged, plan
from sfumato.plan.outline import labels
from sfumato.plan.request import QuestionOptions, Request
from sfumato.plan.tree import GROUPING_SET
from sfumato.release import Release
from sfumato.release.answers import Origin
from sfumato.release.lineage import trace
from sfumato.session.answers import answered, not_charged_yet
from sfumato.session.progress import Progress, shown

if TYPE_CHECKING:
    from sfumato.session.database import Database
    from sfumato.session.free_answers import FreeAnswer

__all__ = [
    "Asked",
    "Price",
    "Question",
    "charge_of",
    "error_of",
    "fits",
    "price_of",
    "shortage",
    "shown_columns",
]


_ON_LIMITS = "depends on limits that are found first"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question with its price tag; nothing is spent until `release`.

    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> people = pa.table({"person": range(900)})
    >>> db = sf.connect(people, name="people", unit="person", max_rows=1, budget=sf.Budget(epsilon=3))
    >>> question = db.sql("SELECT COUNT(*) AS n FROM people", epsilon=1)  # free: shows price and error
    >>> question.epsilon, db.balance.spent_units
    (Fraction(1, 1), 0)
    """

    database: Database
    request: Request
    epsilon: Fraction | None
    purpose: str | None = None
    only_free: bool = False  # it is answered from old releases, or refused

    @property
    def free(self) -> bool:
        """Whether it is about public tables alone: it needs no epsilon, and nothing is charged."""
        return not self.request.queries

    def priced(self, epsilon: Number | None = None) -> Priced:
        """Return what one unit can change, the noise that takes, and the cost. Free."""
        chosen = self.epsilon if epsilon is None else budget_quantity(epsilon, "epsilon")
        database = self.database
        return plan(
            self.request,
            catalog=database.catalog,
            budget=database.terms,
            epsilon=chosen,
            backend=database.backend,
        )

    def from_releases(self) -> FreeAnswer | None:
        """Return the answer that kept releases determine, with its errors, None if they do not. Free."""
        from sfumato.session.free_answers import free_answer

        return free_answer(self)

    def losses(self, *, epsilon: Number | None = None) -> Question:
        """Ask what clamping and capping take from this question: another question, with its own price."""
        from sfumato.analysis.clipping_bias import losses_request

        database = self.database
        request = losses_request(self.request, database.catalog, database.backend)
        return database.ask(request, epsilon=epsilon, purpose=self.purpose)

    def explain(self, *, size: float | None = None) -> str:
        """Explain the plan, the noise, the cost, and the error at half, the same and double epsilon. Free."""
        from sfumato.analysis.explain import explain

        if self.free:
            return "this is about public tables alone: it is answered exactly, and free"
        if self.only_free:
            return self.said_free()
        if self.epsilon is None:
            raise InvalidArgument(
                "explaining needs an epsilon", place="epsilon", hints=("ask with epsilon=0.5, for example",)
            )
        priced = self.priced()
        own = [named.options for named in self.request.queries]
        options = divided(self.request.options, priced.boundings, own)
        texts = [
            explain(
                bounding,
                self.database.terms,
                epsilon=self.epsilon,
                size=size,
                options=own,
                part=cost.part,
                aggregates=labels(named.query),
                names=self.names(),
            )
            for named, bounding, own, cost in zip(
                self.request.queries, priced.boundings, options, priced.costs, strict=True
            )
        ]
        levels = ["\n  ".join(["levels", *lines])] if (lines := self.levels(priced)) else []
        said = [*levels, *_said_of_losses(priced), *_said_of_limits(priced), *self._left_out()]
        return self._named("\n\n".join([*texts, *said]))

    def levels(self, priced: Priced) -> list[str]:
        """Return how far off each level of consistent answers will be, and what of them is not protected."""
        pure, lines = isinstance(self.database.terms.rule, PureRule), []
        shown = set(shown_columns(self.request).values())
        for named, bounding, cost in zip(self.request.queries, priced.boundings, priced.costs, strict=True):
            if bounding.consistency is not None:
                names = {name: name if name in shown else own for name, own in labels(named.query).items()}
                lines += _said_of_levels(bounding, cost, names, pure=pure)
        return [self._named(line) for line in lines]

    def _left_out(self) -> list[str]:
        """Return what to say of columns of the asked tables that no question can use."""
        named = {scan.table for one in self.request.queries for scan in scans(one.query.source)}
        tables = [table for table in self.database.catalog.tables if table.name in named]
        lines = [
            f"left out of `{table.name}`: {one.refusal}" for table in tables for one in table.unsupported
        ]
        return ["\n".join(lines)] if lines else []

    def release(
        self,
        *,
        error: Number | Mapping[str, float] | None = None,
        size: float | None = None,
        key: str | None = None,
        purpose: str | None = None,
        progress: Progress = None,
    ) -> Release:
        """Spend: charge the budget, compute, add noise, and return the answer with its intervals.

        With `error`, epsilon is the smallest at which the 95% error is no larger; for averages and
        other ratios it needs the `size` of a group. With a `key`, the same request asked again
        returns the stored release, free. The `purpose`, or the one that was asked with, is kept with the
        charge for the owner of the ledger.

        `progress` shows the steps of a question that takes long: True on standard error, a function is called
        with each of them, and by default they are shown at a prompt and in a notebook. Ctrl-C is a
        `KeyboardInterrupt` that says whether the question was charged.
        """
        with not_charged_yet():
            if self.free:
                return answer_public(self.request, backend=self.database.backend)
            if self.only_free:
                return self._determined().release
            priced = (self if error is None else self.within(error, size=size)).priced()
        purpose = self.purpose if purpose is None else purpose
        with shown(progress) as tell:
            return answered(self.database, priced, key=key, purpose=purpose, tell=tell)

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

    async def release_async(
        self,
        *,
        error: Number | Mapping[str, float] | None = None,
        size: float | None = None,
        key: str | None = None,
        purpose: str | None = None,
        progress: Progress = None,
    ) -> Release:
        """Spend as `release` does, in a thread, while other tasks go on: `await question.release_async()`.

        Whoever stops waiting does not stop the question: it is charged and answered, and its answer is in
        the ledger, to be had again under its `key`.
        """
        return await asyncio.to_thread(
            self.release, error=error, size=size, key=key, purpose=purpose, progress=progress
        )

    def within(self, error: Number | Mapping[str, float], *, size: float | None = None) -> Question:
        """Return this question at about the smallest epsilon whose 95% error is no larger. Free."""
        budget = self.database.terms
        try:
            priced = self.priced(budget.epsilon)
            if priced.limits is not None:
                hint = "give bounds, max_groups and max_rows, or declare them"
                raise InvalidArgument(f"the error {_ON_LIMITS}", place="error", hints=(hint,))
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
            message = self._named(refusal.message)
            raise InvalidArgument(message, place=refusal.place, hints=refusal.hints) from None
        return replace(self, epsilon=epsilon)

    def __repr__(self) -> str:
        if self.free:
            return "<question about public tables alone: .release() answers it, free>"
        try:
            if self.only_free:
                return f"question: {self.said_free()}"
            if self.epsilon is None:
                tag = "<question: give epsilon to see its price, or release(error=..)>"
            else:
                tag = self._price_tag(self.epsilon)
        except SfumatoError as refusal:  # showing something must not fail
            return f"question that will be refused:\n{refusal}"
        with suppress(SfumatoError):  # nor does a price depend on what was released
            found = self.from_releases()
            return tag if found is None else f"{tag}\nfree=True: {self._said(found)}"
        return tag

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
        rows = zip(self.request.queries, priced.boundings, priced.costs, strict=True)
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
        lines += [f"  {note}" for note in (*self.levels(priced), *self.request.query_notes)]
        lines.append("nothing is spent until .release()")
        return self._named("\n".join(lines))

    def _named(self, text: str) -> str:
        """Call noisy columns in a text what the question calls them."""
        for column, name in self.names().items():
            text = re.sub(rf"\b{re.escape(column)}\b", name.replace("\\", r"\\"), text)
        return text

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
    ) -> Question:
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


def _said_of_levels(bounding: Bounding, cost: Cost, names: Mapping[str, str], *, pure: bool) -> list[str]:
    """Return how far off each level of a consistent answer will be, and what of it is not protected."""
    assert bounding.consistency is not None
    query, known = bounding.query, bounding.consistency
    shares = known.pure_shares if pure else known.shares
    lines = []
    for place in sorted(range(len(query.grouping_sets)), key=lambda one: len(query.grouping_sets[one])):
        keys = ", ".join(query.keys[at][0] for at in query.grouping_sets[place])
        share = float(shares[place])
        errors = ", ".join(
            f"{names[one.name]} ±{one.error:.4g}"
            for one in forecasts(bounding, cost, grouping_set=place)
            if one.error is not None
        )
        where = f"by {keys}" if keys else "in all"
        lines.append(f"{where}: {errors} (95%), for {share:.3g} of the cost")
    return [*lines, *(f"{NOT_PROTECTED}: {said}" for said in known.unprotected)]


def _said_of_losses(priced: Priced) -> list[str]:
    """Return which limits may bite, and whether what they take is measured."""
    part = f"{float(MEASURED_PART):.0%} of the cost measures what is left out by"
    return [
        f"losses\n  {loss.limits.unknown if loss.bounding is None else f'{part} {loss.limits}'}"
        for loss in priced.losses
    ]


def _said_of_limits(priced: Priced) -> list[str]:
    """Return that limits are found first, and what is shown as long as they are not known."""
    if priced.limits is None:
        return []
    found = [f"  {one.wanted}" for one in priced.limits.missing]
    shown = f"  for {float(BOUNDS_PART):.0%} of the cost; what is shown above is for very wide ones"
    return ["\n".join(["found privately, before the rest", *found, shown])]


def shown_columns(request: Request) -> dict[str, str]:
    """Return, for each column that shows a noisy one as it is, which one that is."""
    if request.postprocessing is None or len(request.queries) != 1:
        return {}
    [named] = request.queries
    columns = (*(name for name, _ in (*named.query.keys, *named.query.aggregates)), GROUPING_SET)
    found = trace(request.postprocessing, {named.name: columns})
    if found is None:
        return {}
    pairs = zip(found.names, found.origins, strict=True)
    return {
        name: origin.column
        for name, origin in pairs
        if origin is not None and origin == Origin(column=origin.column)
    }


# -- the price, against what is left of the budget ----------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What a question would cost: `share` of the whole budget; `times` it could still be asked."""

    epsilon: Fraction
    keys_delta: Fraction
    units: int
    keys_units: int
    share: float
    times: int
    errors: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    refusal: BudgetExceeded | None = None

    def lines(self) -> list[str]:
        """Return the price as text."""
        if not self.epsilon:
            return [*(self.notes or ("this is about public tables alone: free",)), "nothing was spent"]
        left = f"{self.times} more like it fit" if self.times else "it does not fit in what is left"
        return [
            f"epsilon {float(self.epsilon):.4g}: {self.share:.2%} of the budget; {left}",
            *(f"  {name}: {error}" for name, error in self.errors),
            *(f"  {note}" for note in self.notes),
            "nothing was spent",
        ]

    def record(self) -> dict[str, Any]:
        """Return the price as plain data."""
        return {
            "epsilon": float(self.epsilon),
            "keys_delta": float(self.keys_delta),
            "share_of_budget": self.share,
            "times": self.times,
            "errors": dict(self.errors),
            "notes": list(self.notes),
        }


def price_of(question: Question, *, size: float | None = None) -> Price:
    """Price a question against what is left; refuse what the policy forbids. `size`: rows of a group."""
    database = question.database
    if question.free or question.only_free:
        free = Fraction(0)
        said = () if question.free else (question.said_free(),)
        return Price(epsilon=free, keys_delta=free, units=0, keys_units=0, share=0.0, times=1, notes=said)
    priced = question.priced()
    charge, grant = charge_of(database, priced)
    balance = database.balance
    limits = priced.limits
    errors = [
        (one.name, error_of(one, on_limits=limits is not None and limits.decide(place, one.name)))
        for place, (bounding, cost) in enumerate(zip(priced.boundings, priced.costs, strict=True))
        for one in forecasts(bounding, cost, size=size)
    ]
    shown = question.names()
    levels = question.levels(priced)
    return Price(
        epsilon=priced.epsilon,
        keys_delta=priced.keys_delta,
        units=charge.units,
        keys_units=charge.keys_units,
        share=charge.units / max(1, balance.limit),
        times=fits(balance, charge, grant),
        errors=tuple((shown.get(name, name), error) for name, error in errors),
        notes=(*levels, *question.request.query_notes),
        refusal=shortage(balance, charge, grant),
    )


def charge_of(database: Database, priced: Payable[Any]) -> tuple[Charge, GrantBalance | None]:
    """Return what would be charged, and the grant that it would be charged to; refuse what is forbidden."""
    admit(priced, database.catalog.policy)
    balance, who = database.balance, database.analyst
    parts = parts_charged(priced, catalog=database.catalog, ledger=database.ledger)
    units, keys_units = balance.budget.charge(priced.event, priced.keys_delta)
    charge = Charge(
        units=units,
        keys_units=keys_units,
        parts=None if parts is None else tuple(sorted(parts)),
        version=balance.totals.version,  # that of the last charge: nothing is read to see if it is old
        epoch=balance.totals.epoch,
    )
    return charge, None if isinstance(who, Owner) else database.ledger.grant_balance(database.unit, who)


def fits(balance: Balance, charge: Charge, grant: GrantBalance | None = None) -> int:
    """Return how often a charge still fits, now: in the budget, in this period's allowance, in the grant.

    Equal charges leave the totals that one charge as large as their sum would leave; so the
    ledger's own answer to that one decides, and the largest is searched for.
    """
    pairs = ((balance.limit, charge.units), (balance.keys_limit, charge.keys_units))
    most = min((limit // units for limit, units in pairs if units > 0), default=0)
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        many = replace(charge, units=middle * charge.units, keys_units=middle * charge.keys_units)
        if shortage(balance, many, grant) is None:
            low = middle
        else:
            high = middle - 1
    return low


def shortage(balance: Balance, charge: Charge, grant: GrantBalance | None = None) -> BudgetExceeded | None:
    """Return the refusal that a charge would meet now, None if it fits."""
    refusal = balance.shortage(charge, balance.totals.charged(charge))
    return refusal if refusal is not None or grant is None else grant.shortage(charge)


def error_of(one: Forecast, *, on_limits: bool = False) -> str:
    """Return the error that is expected, as text."""
    if on_limits:
        return _ON_LIMITS
    if one.error is None:
        return "depends on the group's size"
    if one.falls_short:
        return f"at most {one.error:.4g} rows short of the most frequent value (95%)"
    return f"±{one.error:.4g} rows in rank (95%)" if one.in_ranks else f"±{one.error:.4g} (95%)"
