"""A stream: one question about each hour, day, week or month, for one charge over all of them."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack

from sfumato.continual.advancing import advance, key_of
from sfumato.continual.baseline import Baseline, baseline
from sfumato.continual.participation import Participation
from sfumato.continual.periods import Moment, Periods, moment
from sfumato.continual.pricing import PricedStream, another_stream, plan_stream
from sfumato.continual.row_rules import RowRules
from sfumato.continual.stored_outputs import StoredOutputs
from sfumato.continual.stream_release import StreamRelease
from sfumato.core.arguments import Number
from sfumato.errors import InvalidArgument, LedgerError, SfumatoError
from sfumato.ledger import Entry, Owner
from sfumato.session.counting import counted
from sfumato.session.question import Asked, Question

if TYPE_CHECKING:
    from sfumato.advise.advice import Advice, AdviceOptions
    from sfumato.session.database import Database

__all__ = ["Stream", "stream_of"]

_LONG = datetime.timedelta(days=100)
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
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

    database: Database
    name: str
    question: Question
    by: str
    periods: Periods
    participation: Participation
    rows: RowRules
    purpose: str | None = None

    @counted
    def priced(self) -> PricedStream:
        """Return what one person can change over the whole horizon, the noise that takes, the cost. Free."""
        database = self.database
        stream = plan_stream(
            self.question.priced(),
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
        return stream

    @counted
    def advise(self, *, size: float | None = None, **options: Unpack[AdviceOptions]) -> Advice:
        """Say what the whole stream tells about a person, and what else could be had. Free.

        `size` is how many rows a group has in each period, for averages. The options are those of
        `Question.advise`. `error` is the largest that any running total and any period may have over the
        horizon, or by the names that the advice shows.
        """
        from sfumato.advise.advice import advise
        from sfumato.session.choices import choice_of_stream

        return advise(choice_of_stream(self, size=size), **options)

    def start(self) -> StreamRelease:
        """Spend: charge the whole horizon, unless that was done before."""
        return self._advanced(0)

    def advance(self, now: Moment | None = None) -> StreamRelease:
        """Publish every period that is over and was not published, in order; return all that is published.

        The first call charges the whole horizon; no other call charges anything. It may be called as often as
        you like, by several processes at once: a period is published once. `now` is the clock of this
        machine unless it is given, and never later: what is published too early cannot be published again.
        Without it, a clock that is 100 days ahead of the stream is not believed.
        """
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
        return self._advanced(until)

    def _known_moment(self, entry: Entry) -> datetime.datetime:
        """Return a moment that is over: when the stream was charged, or its last published period ended."""
        charged = datetime.datetime.fromtimestamp(entry.at / 1000, datetime.UTC)
        return max(moment(charged, "now"), self.periods.end(entry.taken))

    def _advanced(self, until: int) -> StreamRelease:
        database, stream = self.database, self.priced()
        try:
            advance(
                stream,
                until,
                catalog=database.catalog,
                ledger=database.ledger,
                backend=database.backend,
                analyst=database.analyst,
                purpose=self.purpose,
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
        return baseline(stream, self.question.priced().costs[0], self.database.terms)

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

    @counted
    def __repr__(self) -> str:
        try:
            stream, begun = self.priced(), self.begun
        except SfumatoError as refusal:  # showing something must not fail
            return f"stream that will be refused:\n{refusal}"
        periods, every, cap = self.periods, self.periods.every, self.participation
        often = len(cap.earliest(periods.horizon))
        until = f", without an end, designed for {periods.design}" if periods.design else ""
        many = "" if periods.design else f"{periods.horizon} "
        apart = f", {cap.apart} apart" if often > 1 and cap.apart > 1 else ""
        beside = self._beside(stream)
        lines = (
            f"stream `{self.name}`: {many}{every}s from {periods.name(1)} on{until}",
            f"  epsilon {float(stream.epsilon):g} for all of them together",
            f"  one person counts in at most {often} {every}{'s' if often > 1 else ''}{apart}",
            *([] if stream.rule is None else [f"  groups are shown once {stream.shown_if}"]),
            *(f"  {line}" for line in (*beside.lines(), beside.legend)),
            "it has begun, and was charged" if begun else f"nothing is spent until it begins: {self._begins}",
        )
        return "\n".join(lines)


def _clock() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


@counted
def stream_of(
    database: Database,
    question: str | Asked | Question,
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
        case Question() if question.database is database:
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
        name=name,
        question=replace(asked, purpose=purpose),
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
