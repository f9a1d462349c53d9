"""Every kind of report, made small, with the longest words it may have; and one page of all blocks."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa

from sfumato import Budget, attacks, between, connect, one_of
from sfumato.advise import ComparedProject, ProjectComparison, advise, choice_of_budget
from sfumato.anonymity import Goal, measure, reach
from sfumato.anonymity.report import generalised_page, measures_page
from sfumato.audit import Claim, Report, Verdict
from sfumato.audit.evidence import Evidence
from sfumato.audit.subject import ExactEpsilon
from sfumato.audit.suites import Part
from sfumato.audit.zoo import ANIMALS
from sfumato.core import Proportion
from sfumato.learn.sweep_report import SweepReport, SweepRun
from sfumato.lessons import LESSONS
from sfumato.local.compare import compare
from sfumato.local.comparison_page import comparison_page
from sfumato.pages import (
    BulletList,
    CodeBlock,
    Facts,
    Figure,
    Flag,
    Notice,
    Page,
    PageTable,
    Paragraph,
    Section,
    SignatureLines,
)
from sfumato.plots import Axis, Band, Bars, Line, Picture, Points
from tests.cli.programs import make_project, sfumato
from tests.continual.visits import Visit, database, day, stream
from tests.learn.invented import noisy_report

LONG = "canary" * 20  # a word that no line holds


def people() -> pa.Table:
    draw = np.random.default_rng(2)
    return pa.table(
        {
            "age_in_completed_years_at_admission": draw.integers(0, 60, 400),
            "sex": draw.choice(["f", "m"], 400),
            "diagnosis": draw.choice(["flu", "cold", "none"], 400),
        }
    )


def attack_page() -> str:
    found = (
        attacks.averaging(firms=100, people=3, questions=40, epsilons=(0.1, 1.0, 8.0)),
        attacks.homogeneity(people=3000, ks=(2, 5), epsilons=(0.1, 1.0), victims=100),
        attacks.linkage(people=4000, victims=50, epsilons=(0.1, 8.0)),
        attacks.ratings(viewers=400, films=300, epsilons=(1.0,)),
    )
    return attacks.html_report(found)


def audit_page() -> str:
    """A report of the shape of a whole one, without the minutes of sampling; one claim is false."""

    def evidence(epsilon: float) -> Evidence:
        return Evidence(
            epsilon=epsilon, delta=0.0, miss=1e-9, pair="100 rows, and one more", event="[out >= 3]",
            likely=Proportion(hits=5, trials=9), unlikely=Proportion(hits=1, trials=9),
        )  # fmt: skip

    parts = tuple(
        Part(
            name,
            "noise, choices and answers by themselves",
            tuple(
                Verdict(
                    name=f"a mechanism with a name of some length, number {at}",
                    claim=Claim(epsilon=1, delta=1e-6 if at % 3 else 0),
                    evidence=evidence(0.9 - at / 20),
                    exact=ExactEpsilon(low=0.99, high=0.99, pair="the empty table, and one person"),
                )
                for at in range(5)
            ),
        )
        for name in ("Mechanisms", "Questions", "Whole releases")
    )
    wrongs = ("one unit moved 3 groups, not 2",)
    wrong = ExactEpsilon(low=math.inf, high=math.inf, pair="x", wrongs=wrongs)
    parts += (Part("Twins", "that fail", (Verdict(name=LONG, claim=Claim(epsilon=1), exact=wrong),)),)
    zoo = tuple(
        (animal, Verdict(name=animal.name, claim=Claim(epsilon=1), evidence=evidence(1.1 + at)))
        for at, animal in enumerate(ANIMALS)
    )
    versions = (("sfumato", "0.1.0"), ("python", "3.13.0"), ("duckdb", "2.0.0"))
    report = Report(date="2026-11-17", versions=versions, miss=1e-6, quick=False, parts=parts, zoo=zoo)
    return report.document().html()


def block_page() -> str:
    """Every block, and pictures that are hard to draw."""
    bars = tuple((f"a name of some length, {at}", (-1) ** at * at * 1000.0) for at in range(7))
    ends = tuple((height - 900, height + 900) for _, height in bars)
    many = tuple((f"[{at}, {at + 1})", float(at % 9)) for at in range(60))
    across = Axis(title="what an analyst named at length in a question of many words and columns")
    up = Axis(title="n")
    share = Axis(title="a share whose name takes more than one line of the axis", percent=True, low=0, high=1)
    when = Axis(title="day (UTC)", time=True)
    days = tuple((at * 864e5, 9.0 * at, 9.0 * at - 40, 9.0 * at + 40) for at in range(365))
    epsilon, error = Axis(title="epsilon", log=True), Axis(title="error", log=True)
    edge = tuple((10.0**at, at / 6, max(0.0, at / 6 - 0.1), min(1.0, at / 6 + 0.1)) for at in range(7))
    pictures = (
        Picture(title="Bars with intervals", caption=LONG, x=across, y=up, marks=(
            Bars(label="one", bars=bars, intervals=ends), Bars(label="two", bars=bars, intervals=ends))),
        Picture(title="Many bars", caption="", x=across, y=up, marks=(Bars(label="n", bars=many),)),
        Picture(title="Points at every edge", caption="", x=Axis(title="people", log=True), y=share,
            marks=(
                *(Points(label=f"points, {at}", points=edge, beyond=at == 4) for at in range(5)),
                *(Line.flat(f"a line, {at}", at / 7, (1, 1e6), dashed=bool(at % 2)) for at in range(4)))),
        Picture(title="Bands with a gap", caption="", x=when, y=up, marks=(
            Band(label="one", points=days[:200]), Points(label="one", points=days[210:211]),
            Band(label="one", points=days[250:]), Band(label="two", points=days[50:]))),
        Picture(title="One point", caption="", x=epsilon, y=error,
            marks=(Points(label="alone", points=((1.0, 2.0, 0.0, 3.0),)),)),
    )  # fmt: skip
    heads = ("who", "when", "question", "epsilon", "result")
    sql = "SELECT region, AVG(income) FROM people WHERE age BETWEEN 18 AND 65 GROUP BY region " * 3
    rows = (("ann", "2026-11-17", sql, "0.5", "answered"), ("", LONG, "1 < 2", "0.25", Flag("refused")))
    return Page(
        title=f"Everything a page can hold, {LONG}",
        made=LONG,
        opening=(Notice("As it should be.", tone="good"), Notice("Not so.", tone="bad"), Notice(LONG)),
        sections=(
            Section("Text", Paragraph(LONG), BulletList(("one", LONG)), CodeBlock(f"{sql}\n{LONG}")),
            Section("Facts", Facts((("unit", "person"), (LONG, LONG)))),
            Section("A wide table", PageTable(heads=heads, rows=rows, caption="Who asked what")),
            Section("A narrow table", PageTable(heads=("who", LONG), rows=(("ann", LONG), ("bob", "3")))),
            Section("An empty table", PageTable(heads=heads, rows=(), empty="nobody asked")),
            Section("Pictures", *map(Figure, pictures)),
            Section("To sign", SignatureLines()),
        ),
        closing=f"Nothing on this page is loaded from elsewhere. {LONG}",
    ).html()


def ledger_page() -> str:
    """A record to sign, with a purpose and a question of one long word."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_project(folder)
        asked = f"SELECT COUNT(*) AS n FROM people WHERE name <> '{LONG}'"
        for more in ((), ("--purpose", LONG)):
            assert sfumato(folder, "query", asked, "-e", "0.3", *more).returncode == 0
        assert sfumato(folder, "ledger", "report", "--html", "record.html").returncode == 0
        return (folder / "record.html").read_text()


def stream_page() -> str:
    """A month of days of a stream, of which two are missing; two groups, a count and a mean."""
    rows: list[Visit] = [(person, person % 30, "ab"[person % 2], 5.0) for person in range(3000)]
    sql = f'SELECT place, COUNT(*) AS "{LONG}", AVG(cost) AS mean FROM visits GROUP BY place'
    published = stream(database(rows), sql, horizon=30).advance(day(30))
    kept = {number: one for number, one in published.outputs.items() if number not in (12, 14)}
    return replace(published, outputs=kept).document().html()


def advice_page() -> str:
    """Return advice with errors, and with a limit that cannot be kept together with one of them."""
    columns = {"region": one_of("north", "south"), "cost_of_all_treatments": between(0, 50)}
    table = pa.table({"who": range(40), "region": ["north"] * 40, "cost_of_all_treatments": range(40)})
    db = connect(
        table, name="people", unit="who", columns=columns, max_groups=1, max_rows=1,
        budget=Budget(epsilon=1, delta=1e-6),
    )  # fmt: skip
    text = "SELECT region, COUNT(*) AS n, AVG(cost_of_all_treatments) AS cost FROM people GROUP BY region"
    return (
        db.sql(text, epsilon=1).advise(size=400, people=40, advantage=0.05, error={"n": 5}).document().html()
    )


def compared_page() -> str:
    """Return projects side by side, one with a long name, and a question that both declare."""
    projects = []
    for name, budget in (("a.toml", Budget(epsilon=1)), (f"{LONG}.toml", Budget(epsilon=1, delta=1e-6))):
        choice = choice_of_budget(budget)
        advice = advise(choice)
        projects.append(
            ComparedProject(
                name=name, unit="person", declared={"rule": budget.rule.name, "people": "40"}, budget=choice,
                advice=advice, year=advice.risk, shared={"workload monthly": advice},
            )
        )  # fmt: skip
    return (
        ProjectComparison(projects=tuple(projects), notes=(f"stream {LONG} is not compared",))
        .document()
        .html()
    )


def lessons_page() -> str:
    """Return the pictures of all lessons on one page."""
    figures = (Figure(make()) for make in LESSONS.values())
    return Page(title="Lessons", sections=(Section("Ideas and measures", *figures),)).html()


def sweep_page() -> str:
    """Return two fairness reports of unequal groups on one page, with names that are long."""
    worse, better = (noisy_report(right={"f": rate, "m": 0.9}) for rate in (0.5, 0.7))
    runs = (
        SweepRun(epsilon=Fraction(1, 10), model=None, report=worse),
        SweepRun(epsilon=Fraction(1), model=None, report=better),
    )
    return SweepReport(runs=runs).document().html()


REPORTS: dict[str, Callable[[], str]] = {
    "advice": advice_page,
    "attacks": attack_page,
    "audit": audit_page,
    "fairness": lambda: noisy_report(right={"f": 0.6, "m": 0.9}).document().html(),
    "fairness sweep": sweep_page,
    "ledger": ledger_page,
    "compare": lambda: comparison_page(compare(answers=["yes", "no"], people=60, repetitions=2)).html(),
    "lessons": lessons_page,
    "generalised": lambda: generalised_page(
        reach(people(), ["age_in_completed_years_at_admission", "sex"], Goal(k=5), sensitive="diagnosis")
    ).html(),
    "every block": block_page,
    "stream": stream_page,
    "measured": lambda: measures_page(
        measure(people(), ["age_in_completed_years_at_admission", "sex"], sensitive="diagnosis")
    ).html(),
    "advice compared": compared_page,
}
