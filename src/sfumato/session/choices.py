"""What advice is asked about: the epsilons that questions, workloads and streams leave open.

Prices and forecasts are functions of plans, declarations and the budget. So advice reads no data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.advise.choice import YEARLY, Choice, ExpectedError, Outcome, WantedError, choice_of_budget
from sfumato.aggregates.answer import Forecast
from sfumato.analysis.forecast import forecasts, worst_forecasts, worst_of
from sfumato.continual.pricing import PricedStream
from sfumato.continual.series import period_deviations, total_deviations
from sfumato.core.arguments import Number, budget_quantity
from sfumato.errors import InvalidArgument
from sfumato.plan.outline import labels
from sfumato.session.price import error_of

if TYPE_CHECKING:
    from sfumato.session.database import Database
    from sfumato.session.marginals import MarginalsQuestion
    from sfumato.session.question import Question
    from sfumato.session.stream import Stream
    from sfumato.session.workload import Workload

__all__ = [
    "choice_of_database",
    "choice_of_marginals",
    "choice_of_question",
    "choice_of_stream",
    "choice_of_workload",
]


def choice_of_database(
    database: Database, asked: Sequence[Question], *, epsilon: Number | None = None, size: float | None = None
) -> Choice:
    """Return the choice of the budget's epsilon: its risk if it is spent in full, by whatever is asked.

    The errors are those of the questions `asked`, if all of the budget went to them.
    """
    budget = choice_of_budget(database.terms)
    if epsilon is not None:
        budget = replace(budget, epsilon=budget_quantity(epsilon, "epsilon"))
    if not asked:
        return budget
    if len(asked) == 1:
        own = choice_of_question(asked[0], size=size)
    else:
        own = choice_of_workload(database.workload(list(asked), epsilon=budget.epsilon, size=size))

    def at(epsilon: Fraction) -> Outcome:
        return replace(budget.at(epsilon), errors=own.at(epsilon).errors)

    return replace(budget, name=f"the whole budget, for {own.name}", at=at, cheapest=own.cheapest)


def choice_of_question(question: Question, *, size: float | None = None) -> Choice:
    """Return the choice of a question's epsilon, or of the whole budget's where it has none yet."""
    if question.free or question.only_free:
        hint = "it has no epsilon to choose"
        raise InvalidArgument("this is answered for free", place="question", hints=(hint,))
    terms = question.database.terms

    def at(epsilon: Fraction) -> Outcome:
        priced = question.priced(epsilon)
        errors = []
        rows = zip(priced.request.queries, priced.boundings, priced.costs, strict=True)
        for place, (named, bounding, cost) in enumerate(rows):
            names = {**labels(named.query), **question.names()}
            for one in worst_forecasts(bounding, cost, size=size):
                on_limits = priced.limits is not None and priced.limits.decide(place, one.name)
                errors.append(_expected(one, names[one.name], size=size, on_limits=on_limits))
        return Outcome(
            epsilon=epsilon, source=priced.event, keys_delta=priced.keys_delta, errors=tuple(errors)
        )

    def cheapest(error: WantedError) -> Fraction:
        found = question.within(error, size=size).epsilon
        assert found is not None
        return found

    return Choice(
        name="the question",
        epsilon=terms.epsilon if question.epsilon is None else question.epsilon,
        delta=terms.delta,
        at=at,
        year=YEARLY,
        cheapest=cheapest,
        whole=terms.epsilon,
    )


def choice_of_workload(workload: Workload) -> Choice:
    """Return the choice of a workload's epsilon; questions with an epsilon or error of their own keep it."""
    terms, settled = workload.database.terms, workload.settled

    def at(epsilon: Fraction) -> Outcome:
        priced = replace(workload, epsilon=epsilon).priced()
        errors = tuple(
            _expected(one, f"{name}.{column}", size=workload.size)
            for name, column, one in workload.forecasts(priced)
        )
        own = priced.epsilon if settled else epsilon
        return Outcome(epsilon=own, source=priced.event, keys_delta=priced.keys_delta, errors=errors)

    if settled:
        standing = workload.priced().epsilon
    else:
        standing = terms.epsilon if workload.epsilon is None else workload.epsilon
    many = len(workload.names)
    name = f"the workload of {many} question{'' if many == 1 else 's'}"
    return Choice(name=name, epsilon=standing, delta=terms.delta, at=at, year=YEARLY, whole=terms.epsilon)


def choice_of_marginals(question: MarginalsQuestion) -> Choice:
    """Return the choice of the epsilon of contingency tables, with the error of each table's cells.

    A wanted error is by table, and noise is divided for it as `release(error=..)` does.
    """
    terms = question.database.terms

    def at(epsilon: Fraction) -> Outcome:
        priced = question.priced(epsilon)
        errors = [_plain(_table(names), width) for names, width in priced.half_widths().items()]
        return Outcome(
            epsilon=epsilon, source=priced.event, keys_delta=priced.keys_delta, errors=tuple(errors)
        )

    def aimed(wanted: Mapping[str, float]) -> Choice:
        tables = {_table(names): names for names in question.tables()}
        return choice_of_marginals(question.aimed({tables[name]: one for name, one in wanted.items()}))

    standing = terms.epsilon if question.epsilon is None else question.epsilon
    return Choice(
        name="the tables",
        epsilon=standing,
        delta=terms.delta,
        at=at,
        year=YEARLY,
        whole=terms.epsilon,
        aimed=aimed,
    )


def _table(names: Sequence[str]) -> str:
    return " x ".join(names) or "total"


def choice_of_stream(stream: Stream, *, size: float | None = None) -> Choice:
    """Return the choice of a stream's epsilon, which is for all of its periods together.

    Errors are the largest of any running total, and of any period, over the horizon, where a group has `size`
    rows in each period.
    """
    terms, question, periods = stream.database.terms, stream.question, stream.periods

    def at(epsilon: Fraction) -> Outcome:
        priced = replace(stream, question=replace(question, epsilon=epsilon)).priced()
        return Outcome(
            epsilon=epsilon,
            source=priced.event,
            keys_delta=priced.keys_delta,
            errors=tuple(_stream_errors(priced, size)),
        )

    standing = terms.epsilon if question.epsilon is None else question.epsilon
    many = f"{periods.every}s without an end" if periods.design else f"{periods.horizon} {periods.every}s"
    return Choice(
        name=f"the whole stream of {many}", epsilon=standing, delta=terms.delta, at=at, whole=terms.epsilon
    )


def _stream_errors(stream: PricedStream, size: float | None) -> Iterator[ExpectedError]:
    """Yield the largest error of each column: among running totals, and among periods.

    Noise is largest in the last of them. A total of fewer periods has fewer rows, by which an average divides
    its noise, and that falls faster than noise grows: the first total is the worst of an average. A stream
    without an end has no largest error; it is looked at as far as it was designed for.
    """
    many, every = stream.periods.planned, stream.periods.every
    until = f" of the first {many:,} {every}s" if stream.periods.design else ""
    for what, find in (("running total", total_deviations), (every, period_deviations)):
        noise = find(stream.factorisation, many)
        rows = {at: None if size is None else size * (at + 1 if what != every else 1) for at in (0, many - 1)}
        ends = (
            forecasts(stream.bounding, stream.cost_of_sum(float(noise[at])), size=each)
            for at, each in rows.items()
        )
        for one in worst_of(ends):
            name = stream.names.get(one.name, one.name)
            yield _expected(one, f"{name}, worst {what}{until}", size=size)


def _plain(name: str, error: float) -> ExpectedError:
    return ExpectedError(name=name, error=error, said=f"±{error:.4g} (95%)")


def _expected(one: Forecast, name: str, *, size: float | None, on_limits: bool = False) -> ExpectedError:
    return ExpectedError(
        name=name,
        error=None if on_limits else one.error,
        said=error_of(one, size=size, on_limits=on_limits),
        share=one.in_ranks and size is not None,
    )
