"""`sfumato demo`: an invented hospital, eight questions, a budget that burns down, a ledger, a year."""

from __future__ import annotations

import re
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from sfumato.catalog import read_project
from sfumato.cli.budget import record_of
from sfumato.cli.chart import chart_lines
from sfumato.cli.hospital import found_hospital
from sfumato.cli.screen import bar, screen, working
from sfumato.errors import InvalidArgument, QueryRefused, Unsupported
from sfumato.ledger import Ledger
from sfumato.session import Database, open_project

__all__ = ["QUESTIONS", "run"]


@dataclass(frozen=True, slots=True)
class _Ask:
    """A question of the story: an epsilon, or the error that is good enough."""

    why: str
    sql: str
    epsilon: float | None = None
    error: float | None = None


QUESTIONS = (
    _Ask(
        "How many patients are there in each district? The districts are declared, so all are shown.",
        "SELECT district, COUNT(*) AS patients FROM patients GROUP BY district ORDER BY district",
        epsilon=0.2,
    ),
    _Ask(
        "How old are they?",
        "SELECT COUNT(*) AS patients, AVG(age) AS age, MEDIAN(age) AS median FROM patients",
        epsilon=0.3,
    ),
    _Ask(
        "Where is the smoking? A ratio of two noisy counts has an error of its own.",
        "SELECT district, COUNT(*) FILTER (WHERE smoker) / COUNT(*) AS smokers "
        "FROM patients GROUP BY district ORDER BY smokers DESC",
        epsilon=0.3,
    ),
    _Ask(
        "What do departments cost? One patient may have many visits; all of them are protected.",
        "SELECT department, COUNT(*) AS visits, AVG(cost) AS cost FROM visits "
        "GROUP BY department ORDER BY cost DESC",
        epsilon=0.5,
    ),
    _Ask(
        "Which wing is busiest? Joined with a table that is no secret.",
        "SELECT wing, COUNT(*) AS visits FROM visits JOIN departments ON department = name "
        "GROUP BY wing ORDER BY visits DESC",
        epsilon=0.4,
    ),
    _Ask(
        "Which illnesses? Nobody declared them: groups are shown only if enough people are in them.",
        "SELECT diagnosis, COUNT(*) AS visits FROM visits GROUP BY diagnosis ORDER BY visits DESC LIMIT 5",
        epsilon=0.4,
    ),
    _Ask(
        "Do older patients cost more? Two private tables, joined on whose they are.",
        "SELECT age >= 65 AS older, AVG(cost) AS cost FROM patients JOIN visits USING (patient_id) "
        "GROUP BY older ORDER BY older",
        epsilon=0.5,
    ),
    _Ask(
        "How many people came at all? Off by at most 300 is good enough: the cheapest epsilon is found.",
        "SELECT COUNT(DISTINCT patient_id) AS people FROM visits",
        error=300,
    ),
)
"""The eight questions."""

_REFUSED = "SELECT age, smoker FROM patients WHERE patient_id = 4711"


def run(
    *,
    folder: str | None = None,
    people: int = 100_000,
    days: int = 365,
    console: Console | None = None,
) -> None:
    """Tell the story, with so many days of a year. Every number in it is drawn afresh: there is no seed."""
    if not 1_000 <= people <= 10_000_000:
        raise InvalidArgument("the hospital has from 1,000 to 10,000,000 people", place="--people")
    out = screen() if console is None else console
    began = time.monotonic()
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()) if folder is None else folder)
        home.mkdir(parents=True, exist_ok=True)
        if (home / "hospital.ledger").exists():
            raise InvalidArgument(
                "there is a hospital in this folder already", place=folder, hints=("name an empty folder",)
            )
        with working("inventing people"):
            project = found_hospital(home, people)
        _tell(out, project, people, days)
    if folder is not None:
        out.print(f"\nAsk on: sfumato shell --project {project}", style="bold")
    out.print(
        f"\n{time.monotonic() - began:.0f} seconds. Every run draws new noise: there is no seed.", style="dim"
    )


def _tell(out: Console, file: Path, people: int, days: int) -> None:
    out.print(f"A hospital with {people:,} patients and {3 * people:,} visits. None exists.")
    out.print("What its owner declared, in sfumato.toml:\n")
    budget = file.read_text().partition("[budget]")
    out.print(_indented(budget[1] + budget[2]), style="dim")
    project = read_project(file)
    with Ledger.open(project.ledger) as ledger:
        anchor = ledger.head()
        database = open_project(project, ledger=ledger)
        for number, ask in enumerate(QUESTIONS, 1):
            _title(out, f"{number}. {ask.why}")
            out.print(_indented(ask.sql), style="green")
            _ask(out, database, ask)
        _title(out, "A question that is refused, before any data is read, and free")
        out.print(_indented(_REFUSED), style="green")
        before = database.balance.spent
        try:
            database.sql(_REFUSED, epsilon=0.1).release()
        except QueryRefused as refusal:
            out.print(_indented(str(refusal)), style="red")
        out.print(f"  the budget has not moved: {database.balance.spent == before}")
        _attack(out)
        _title(out, "The ledger: every charge, written before the data was read")
        head = ledger.verify(anchor=anchor)
        out.print(f"  {head.sequence} records, each chained to the one before it by its hash; all verified")
        out.print(f"  anchor, to be kept elsewhere: {head}")
        record = record_of(project, ledger)
        out.print(
            f"  all eight answers together: epsilon {record['spent_epsilon']:.2f} of {record['epsilon']:g}; "
            f"{record['last']['times']:,} more like the last would fit"
        )
        _year(out, database, days)


def _year(out: Console, database: Database, days: int) -> None:
    """Publish the counts of a year, day by day, as a job that runs every night would have."""
    _title(out, "A year of daily counts, for the price of one release: how many people registered each day?")
    stream = database.stream(
        "SELECT COUNT(*) AS patients FROM patients",
        name="registered",
        by="registered",
        every="day",
        start="2025-01-01",
        horizon=365,
        epsilon=0.4,
        purpose="the demonstration",
    )
    out.print(_indented("\n".join(stream.baseline().lines())), style="dim")
    out.print(_indented(stream.baseline().legend), style="dim")
    with working("publishing days, one after the other"):
        published = stream.advance(now=stream.periods.begin(days + 1))
    out.print()
    out.print(_indented("\n".join(chart_lines(published.plot(totals=False), width=73))))
    for what, release in (
        ("all days together", published.total()),
        ("the last of them", published.period(days)),
        ("change per day, on average", published.trend()),
    ):
        shown = repr(release).splitlines()[2].strip()
        out.print(f"  {what}: {shown}")
    _spent(out, database)
    out.print("  sfumato stream advance, in a line for cron, publishes each day when it is over", style="dim")


def _attack(out: Console) -> None:
    from sfumato.attacks import bit_bound, differencing

    _title(out, "An attack: how many are sick, with Steven and without him?")
    try:
        with working("attacking"):
            found = differencing(firms=2_000, people=12, epsilons=(1.0,))
    except Unsupported as refusal:  # the base install has no scipy: the rest is shown all the same
        out.print(f"  left out: {refusal.message}; {refusal.hints[0]}", style="dim")
        return
    exact, noisy = found.naive.share, found.curve[0].rate.share
    out.print(f"  from two exact totals: his secret told right in {exact:.0%} of 2,000 invented firms")
    out.print(f"  through this system, epsilon 1: in {noisy:.1%}, by an attacker who knows everybody else")
    out.print(f"  guessing is right in 50%; on average nobody at all can exceed {bit_bound(1):.1%}")
    out.print(
        "  sfumato attack all --html attacks.html shows this and eight more, with pictures", style="dim"
    )


def _ask(out: Console, database: Database, ask: _Ask) -> None:
    """Ask, show the answer, and what is left of the budget."""
    release = database.sql(ask.sql, epsilon=ask.epsilon).release(error=ask.error)
    lines = [line for line in repr(release).splitlines() if not line.startswith("-- ")]
    out.print(_indented("\n".join(lines)))
    _spent(out, database)


def _spent(out: Console, database: Database) -> None:
    balance = database.balance
    spent = float(balance.spent / (balance.spent + balance.remaining))
    out.print(f"  budget {bar(spent)} {spent:.1%} spent", style="yellow")


def _title(out: Console, text: str) -> None:
    out.print(f"\n{text}", style="bold cyan")


def _indented(text: str) -> str:
    return re.sub(r"^", "  ", text.rstrip("\n"), flags=re.MULTILINE)
