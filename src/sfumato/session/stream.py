"""A stream: one question about each hour, day, week or month, for one charge over all of them."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sfumato.analysis.expected_error import ExpectedError
from sfumato.analysis.forecast import forecasts, worst_of
from sfumato.continual.advancing import advance, key_of
from sfumato.continual.baseline import Baseline, baseline
from sfumato.continual.participation import Participation
from sfumato.continual.periods import Moment, Periods, moment
from sfumato.continual.pricing import PricedStream, another_stream, plan_stream
from sfumato.continual.row_rules import RowRules
from sfumato.continual.series import period_deviations, total_deviations
from sfumato.continual.stored_outputs import StoredOutputs
from sfumato.continual.stream_release import StreamRelease
from sfumato.core.arguments import Number
from sfumato.errors import InvalidArgument, LedgerError
from sfumato.ledger import Entry, Owner
from sfumato.pipeline import Tell
from sfumato.session.counting import counted
from sfumato.session.question import Question
from sfumato.session.sql_question import Asked, SqlQuestion

if TYPE_CHECKING:
    from sfumato.advise.choice import Choice
    from sfumato.session.database import Database

__all__ = ["Stream", "stream_of"]

_LONG = datetime.timedelta(days=100)
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Stream(Question[PricedStream, StreamRelease]):
    """A question that is answered period after period; nothing is spent until `start` or `advance`.

    >>> import datetime
    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> days = [datetime.date(2026, 1, 1 + person % 5) for person in range(900)]
    >>> visits = pa.table({"person": range(900), "day": days})
    >>> budget = sf.Budget(epsilon=3, delta=1e-6)
    >>> db = sf.connect(visits, name="visits", unit="person", max_rows=1, budget=budget)
    >>> stream = db.stream(
    ...     "SELECT COUNT(*) AS n FROM visits",
    ...     name="daily", by="day", every="day", start="2026-01-01", horizon=30, epsilon=1,
    ... )
    >>> published = stream.advance(now="2026-01-04")
    >>> len(published), abs(published.total().column("n")[0] - 540) < 100
    (3, True)
    """

    name: str
    question: SqlQuestion  # of one period; its epsilon is that of the stream
    by: str
    periods: Periods
    participation: Participation
    rows: RowRules

    refused_as = "stream"

    @property
    def called(self) -> str:
        """What advice calls it."""
        every = f"{self.periods.every}s"
        return f"the whole stream of {f'{every} without an end' if self.periods.design else self._many}"

    @property
    def title(self) -> str:
        """The line above its price."""
        design = self.periods.design
        until = f", without an end, designed for {design}" if design else ""
        return f"stream `{self.name}`: {self._many} from {self.periods.name(1)} on{until}"

    @property
    def _many(self) -> str:
        every = f"{self.periods.every}s"
        return every if self.periods.design else f"{self.periods.horizon} {every}"

    @property
    def reads_public(self) -> bool:
        """Whether its question names a public table, or the policy has totals in one."""
        return self.question.reads_public

    def _plan(self, epsilon: Fraction | None) -> PricedStream:
        """Return what one person can change over the whole horizon, the noise that takes, and the cost."""
        database = self.database
        stream = plan_stream(
            self.question.priced(epsilon),
            name=self.name,
            by=self.by,
            periods=self.periods,
            participation=self.participation,
            rows=self.rows,
            catalog=database.catalog,
            budget=database.terms,
        )
        database.backend.check_rows("streams over")
        database.backend.check(stream.query(1))
        _ = stream.names  # are kept: their steps are those of the price, and the same each time
        return stream

    def _expected(self, priced: PricedStream, size: float | None) -> tuple[ExpectedError, ...]:
        """Return the largest error of each column: among running totals, and among periods.

        A group has `size` rows in each period. Noise is largest in the last of them. A total of fewer periods
        has fewer rows, by which an average divides its noise, and that falls faster than noise grows: the
        first total is the worst of an average. A stream without an end has no largest error; it is looked at
        as far as it was designed for.
        """
        many, every, found = self.periods.planned, self.periods.every, []
        until = f" of the first {many:,} {every}s" if self.periods.design else ""
        for what, find in (("running total", total_deviations), (every, period_deviations)):
            noise = find(priced.factorisation, many)
            rows = {
                at: None if size is None else size * (at + 1 if what != every else 1) for at in (0, many - 1)
            }
            ends = (
                forecasts(priced.bounding, priced.cost_of_sum(float(noise[at])), size=each)
                for at, each in rows.items()
            )
            for one in worst_of(ends):
                name = priced.names.get(one.name, one.name)
                found.append(ExpectedError.of(one, f"{name}, worst {what}{until}", size=size))
        return tuple(found)

    def _notes(self, priced: PricedStream) -> tuple[str, ...]:
        cap, every = self.participation, self.periods.every
        often = len(cap.earliest(self.periods.horizon))
        apart = f", {cap.apart} apart" if often > 1 and cap.apart > 1 else ""
        shown = () if priced.rule is None else (f"groups are shown once {priced.shown_if}",)
        return (f"one person counts in at most {often} {every}{'s' if often > 1 else ''}{apart}", *shown)

    def choice(self, *, size: float | None = None) -> Choice:
        """Return the choice of its epsilon, which is for all of its periods together. Free."""
        return replace(Question.choice(self, size=size), year=())  # it is not asked again and again

    def _answered(
        self, priced: PricedStream, *, key: str | None, purpose: str | None, tell: Tell
    ) -> StreamRelease:
        if key is not None:
            hint = "release() and advance() go on with it, and charge it once"
            raise InvalidArgument("a stream goes by its name, and has no key", place="key", hints=(hint,))
        return self._advanced(self._ended(None), purpose)

    def start(self) -> StreamRelease:
        """Spend: charge the whole horizon, unless that was done before."""
        return self._advanced(0, self.purpose)

    def advance(self, now: Moment | None = None) -> StreamRelease:
        """Publish every period that is over and was not published, in order; return all that is published.

        The first call charges the whole horizon; no other call charges anything. It may be called as often as
        you like, by several processes at once: a period is published once. `now` is the clock of this
        machine unless it is given, and never later: what is published too early cannot be published again.
        Without it, a clock that is 100 days ahead of the stream is not believed.
        """
        return self._advanced(self._ended(now), self.purpose)

    def _ended(self, now: Moment | None) -> int:
        """Return how many periods are over."""
        clock = moment(_clock(), "now")
        at = clock if now is None else moment(now, "now")
        if at > clock:
            hint = "a period is published when it is over, and once"
            raise InvalidArgument("`now` is later than the clock of this machine", place="now", hints=(hint,))
        until = self.periods.ended(at)
        entry = self._entry() if now is None else None
        if entry is not None and entry.taken < until and at - self._known_moment(entry) > _LONG:
            raise InvalidArgument(
                f"by the clock of this machine nothing was published for more than {_LONG.days} days",
                place="now",
                hints=("if the clock is right, say so: now='2026-01-31', or --now 2026-01-31",),
            )
        return until

    def _known_moment(self, entry: Entry) -> datetime.datetime:
        """Return a moment that is over: when the stream was charged, or its last published period ended."""
        charged = datetime.datetime.fromtimestamp(entry.at / 1000, datetime.UTC)
        return max(moment(charged, "now"), self.periods.end(entry.taken))

    def _advanced(self, until: int, purpose: str | None) -> StreamRelease:
        database, stream = self.database, self.priced()
        try:
            advance(
                stream,
                until,
                catalog=database.catalog,
                ledger=database.ledger,
                backend=database.backend,
                analyst=database.analyst,
                purpose=purpose,
            )
        except LedgerError as refusal:
            if refusal.code != "SF606":
                raise
            raise another_stream(self.name, refusal.sequence) from None  # users know no idempotency key
        return self._shown(stream)

    def show(self) -> StreamRelease:
        """Return all that is published. Free: it was paid for."""
        return self._shown(self.priced())

    def _shown(self, stream: PricedStream) -> StreamRelease:
        database = self.database
        entry = self._entry()
        if entry is None:
            raise InvalidArgument(
                f"stream `{self.name}` has not begun",
                place="stream",
                hints=(f"{self._begins} begins it",),
            )
        if (entry.request_hash, entry.policy_hash) != (stream.fingerprint(), database.catalog.fingerprint()):
            raise another_stream(self.name, entry.sequence)
        stream = stream.as_charged(entry.event)
        outputs = StoredOutputs(database.ledger, entry.sequence, entry.taken)
        public = {name: database.backend.public_table(name) for name in stream.request.public}
        return StreamRelease.read(stream, outputs, entry.taken, public)

    @counted
    def baseline(self) -> Baseline:
        """Return what it costs and how far off it is, beside publishing each period anew. Free."""
        return self._beside(self.priced())

    def _beside(self, stream: PricedStream) -> Baseline:
        return baseline(stream, self.question.priced(self.epsilon).costs[0], self.database.terms)

    @property
    def _begins(self) -> str:
        return f".start() or `sfumato stream start {self.name}`"

    @property
    def begun(self) -> bool:
        """Whether it was charged. Free."""
        return self._entry() is not None

    def _entry(self) -> Entry | None:
        database = self.database
        who = None if isinstance(database.analyst, Owner) else database.analyst
        wanted = (key_of(self.name), who)
        entries = database.ledger.entries(database.unit)
        return next((one for one in entries if (one.key, one.analyst) == wanted), None)

    def _lines(self) -> list[str]:
        stream, begun = self.priced(), self.begun
        beside = self._beside(stream)
        lines = (
            f"epsilon {float(stream.epsilon):g} for all of them together",
            *self._notes(stream),
            *beside.lines(),
            beside.legend,
        )
        spent = (
            "it has begun, and was charged" if begun else f"nothing is spent until it begins: {self._begins}"
        )
        return [self.title, *(f"  {line}" for line in lines), spent]


def _clock() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


@counted
def stream_of(
    database: Database,
    question: str | Asked | SqlQuestion,
    *,
    name: str,
    by: str,
    every: str,
    start: Moment,
    horizon: int | None,
    design: int | None,
    epsilon: Number | None,
    participation: Participation | None,
    rows: RowRules,
    purpose: str | None,
) -> Stream:
    """Return a stream; refuse what makes no sense."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        hint = "letters, digits, - and _, at most 64 of them"
        raise InvalidArgument("this is no name of a stream", place="name", hints=(hint,))
    given: Any = participation
    if not isinstance(given, Participation | None):
        hint = "sf.Participation(periods=3, apart=7)"
        raise InvalidArgument("participation is a cap on periods", place="participation", hints=(hint,))
    match question:
        case str():
            asked = database.sql(question, epsilon=epsilon, noise="gaussian")
        case Asked():
            asked = question.ask(epsilon=epsilon, noise="gaussian")
        case SqlQuestion() if question.database is database:
            request = question.request
            asked = database.ask(request, epsilon=epsilon or question.epsilon, noise="gaussian")
        case _:
            hint = "SQL, db.sql(..) or db.table(..).agg(..) of this database"
            raise InvalidArgument("this is no question", place="question", hints=(hint,))
    if asked.free:
        hint = "db.sql(..).release() answers it, free"
        raise InvalidArgument("this is about public tables alone", place="question", hints=(hint,))
    return Stream(
        database=database,
        epsilon=asked.epsilon,
        name=name,
        question=asked,
        by=by,
        periods=_periods(every, moment(start, "start"), horizon, design),
        participation=participation or Participation(),
        rows=rows,
        purpose=purpose,
    )


def _periods(every: str, start: datetime.datetime, horizon: int | None, design: int | None) -> Periods:
    if horizon is None:
        return Periods.endless(every, start, design)
    if design is not None:
        raise InvalidArgument("a stream is designed for its horizon, if it has one", place="design")
    return Periods(every=every, start=start, horizon=horizon)
