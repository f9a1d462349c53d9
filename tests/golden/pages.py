"""Reports of each kind as pages, as text and as data: from answers that are kept, or from fixed numbers."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato import advise
from sfumato.anonymity import Goal, measure, reach
from sfumato.anonymity.report import generalised_page, measures_page
from sfumato.attacks.attack_result import AttackResult, MeasuredRate, bit_bound
from sfumato.attacks.report import html_report
from sfumato.audit.evidence import Evidence
from sfumato.audit.subject import Claim, ExactEpsilon, Verdict
from sfumato.audit.suites import Part, Report
from sfumato.audit.zoo import ANIMALS
from sfumato.core import Proportion
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.gaussian import GaussianNoise
from sfumato.learn.fairness_cells import GRID, FairnessCells, Subgroups
from sfumato.learn.fairness_release import FairnessReport
from sfumato.learn.sweep_report import SweepReport, SweepRun
from sfumato.local.comparison import Comparison, MeasuredError
from sfumato.local.comparison_page import comparison_page
from sfumato.local.results import Result
from sfumato.session import Database
from tests.golden.asked import ASKED, people
from tests.golden.project import fixed

__all__ = ["PAGES", "page_texts"]


def page_texts(name: str, database: Database) -> str:
    """Return all texts of one kind of report."""
    found = {title: fixed(text) for title, text in PAGES[name](database).items()}
    return "".join(f"==== {title}\n{text.rstrip(os.linesep)}\n" for title, text in found.items())


def _stream(database: Database) -> Mapping[str, str]:
    question = ASKED["stream"].question(database)
    published = ASKED["stream"].release(question, "stream")
    return {
        "page": published.document().html(),
        "page at another level": published.document(level=0.8).html(),
        "baseline": repr(question.baseline()),
        "baseline in a notebook": question.baseline()._repr_html_(),
        "a total": repr(published.total("2026-01-02")),
        "a period": repr(published.period("2026-01-02")),
    }


def _fairness(database: Database) -> Mapping[str, str]:
    report = ASKED["fairness"].release(ASKED["fairness"].question(database), "fairness")
    return {"page": report.document().html(), "record": _plain(report.record()), "text": repr(report)}


def _models(database: Database) -> Mapping[str, str]:
    rows = people().slice(0, 5)
    found = {}
    for name in ("logistic", "linear", "additive", "clusters"):
        model = ASKED[name].release(ASKED[name].question(database), name)
        found[name] = _plain(np.asarray(model.predict(rows)).tolist())
    chosen = ASKED["selection"].release(ASKED["selection"].question(database), "selection")
    return {**found, "selection": repr(chosen.model)}


def _sweep(database: Database) -> Mapping[str, str]:
    cells = FairnessCells(label="ill", classes=("no", "yes"), sets=(Subgroups(),), bins=1)
    runs = []
    for epsilon, right in ((1, 300), (2, 400), (4, 401)):
        measured = np.array([right, 500 - right, 500 - right, right, 1000 - 2 * right, 2 * right]) * GRID
        law = GaussianNoise(Fraction(GRID**2))
        report = FairnessReport(model="model of ill", cells=cells, measured=measured, law=law)
        runs.append(SweepRun(epsilon=Fraction(epsilon), model=None, report=report))
    sweep = SweepReport(runs=tuple(runs))
    return {"text": repr(sweep), "in a notebook": sweep._repr_html_(), "page": sweep.document().html()}


def _audit(database: Database) -> Mapping[str, str]:
    report = _audited()
    alone = replace(report, zoo=(), parts=report.parts[:1])
    blind = replace(report, parts=report.parts[:1], zoo=((ANIMALS[0], _verdict("missed", 0.5)),))
    verdicts = "\n".join(str(verdict) for part in report.parts for verdict in part.verdicts)
    return {
        "page": report.document().html(),
        "markdown": report.to_markdown(),
        "markdown of one question": alone.to_markdown(),
        "markdown of an auditor that does not see": blind.to_markdown(),
        "record": _plain(report.to_dict()),
        "verdicts": verdicts,
    }


def _audited() -> Report:
    exact = ExactEpsilon(low=0.9, high=0.95, pair="one more")
    broken = ExactEpsilon(low=math.inf, high=math.inf, pair="one | less", wrongs=("a group shows",))
    computed = Verdict(name="laplace", claim=Claim(epsilon=1), exact=exact, notes=("a note",))
    false = Verdict(name="a sum", claim=Claim(epsilon=1, delta=1e-3), exact=broken)
    return Report(
        date="2026-11-17",
        versions=(("sfumato", "0"), ("numpy", "1")),
        miss=1e-6,
        quick=True,
        parts=(
            Part("Mechanisms", "noise by itself", (computed, _verdict("gaussian", 0.7))),
            Part("Questions", "SQL of every kind", (_verdict("count", 0), false)),
        ),
        zoo=((ANIMALS[0], _verdict(ANIMALS[0].name, 3.25)),),
    )


def _verdict(name: str, epsilon: float) -> Verdict:
    evidence = Evidence(
        epsilon=epsilon, delta=0.0, miss=1e-9, pair="one more", event="at least 3",
        likely=Proportion(hits=700, trials=1000), unlikely=Proportion(hits=300, trials=1000), samples=500,
    )  # fmt: skip
    return Verdict(name=name, claim=Claim(epsilon=1), evidence=evidence, about="a claim")


def _attack(database: Database) -> Mapping[str, str]:
    curve = tuple(
        MeasuredRate(epsilon=epsilon, rate=Proportion(hits=hits, trials=1000), bound=bit_bound(epsilon))
        for epsilon, hits in ((0.1, 520), (1, 720), (4, 970))
    )
    found = AttackResult(
        name="differencing", title="Two totals", story="Two totals differ by one person.",
        naive=Proportion(hits=998, trials=1000), curve=curve, facts=(("people", "1,000"),),
    ).illustrated("Success against epsilon.")  # fmt: skip
    return {
        "text": str(found),
        "record": _plain(found.to_dict()),
        "page": html_report([found, replace(found, name="averaging")]),
    }


def _anonymity(database: Database) -> Mapping[str, str]:
    measured = measure(people(), ["region", "age"], sensitive=["job"])
    reached = reach(people(), ["region", "age"], Goal(k=5, l=2), sensitive=["job"])
    return {
        "measured": str(measured),
        "measured, record": _plain(measured.to_dict()),
        "measured, page": measures_page(measured).html(),
        "reached": str(reached),
        "reached, record": _plain(reached.to_dict()),
        "reached, page": generalised_page(reached).html(),
    }


def _survey(database: Database) -> Mapping[str, str]:
    result = Result(
        title="exams: Have you ever cheated?", what="share", answers=("no", "yes"),
        values=np.array([0.71, 0.29]), low=np.array([0.66, 0.24]), high=np.array([0.76, 0.34]),
        deviations=np.array([0.025, 0.025]), level=0.95, counted=990, dropped={"of another survey": 10},
        notes=("a note",),
    )  # fmt: skip
    return {"result": repr(result), "record": _plain(result.to_dict())}


def _comparison(database: Database) -> Mapping[str, str]:
    def errors(epsilon: float, number: int) -> tuple[MeasuredError, ...]:
        sizes = (("central", 1.0), ("shuffled", 4.0), ("local", 30.0))
        return tuple(
            MeasuredError(
                model=model, epsilon=epsilon, people=number, error=size / epsilon / number,
                low=0.9 * size / epsilon / number, high=1.1 * size / epsilon / number,
                predicted=size / epsilon / number,
            )
            for model, size in sizes
        )  # fmt: skip

    found = Comparison(
        what="The mean of ages", people=1000, epsilon=1, delta=1e-6, repetitions=100, spread=20.0,
        by_epsilon=(*errors(0.5, 1000), *errors(1, 1000), *errors(2, 1000)),
        by_people=(*errors(1, 100), *errors(1, 1000)), dropped=3, clamped=2, invented=True,
    )  # fmt: skip
    return {
        "text": str(found),
        "record": _plain(found.to_dict()),
        "page": comparison_page(found).html(),
    }


def _advice(database: Database) -> Mapping[str, str]:
    choice = advise.choice_of_budget(PrivacyBudget(epsilon=1, delta=Fraction(1, 10**6)))
    found = {
        "budget": advise.advise(choice, people=900, advantage=0.1),
        "question": ASKED["groups"].question(database).advise(size=300, posterior=0.05),
        "workload": ASKED["workload"].question(database).advise(),
        "marginals": ASKED["marginals"].question(database).advise(people=900),
        "stream": ASKED["stream"].question(database).advise(),
    }
    texts = {f"{name}, text": repr(one) for name, one in found.items()}
    records = {f"{name}, record": _plain(one.record()) for name, one in found.items()}
    pages = {
        "budget, notebook": found["budget"]._repr_html_(),
        "question, page": found["question"].document().html(),
    }
    return {**texts, **records, **pages}


def _compared(database: Database) -> Mapping[str, str]:
    def project(name: str, epsilon: int) -> advise.ComparedProject:
        budget = advise.choice_of_budget(PrivacyBudget(epsilon=epsilon))
        advice = advise.advise(budget)
        return advise.ComparedProject(
            name=name, unit="person", declared={"epsilon": str(epsilon)}, budget=budget, advice=advice,
            year=advice.risk,
        )  # fmt: skip

    found = advise.ProjectComparison(projects=(project("a", 1), project("b", 2)), notes=("a note",))
    return {
        "text": "\n".join(found.lines()),
        "record": _plain(found.record()),
        "page": found.document().html(),
    }


def _plain(record: Any) -> str:
    return json.dumps(record, indent=1, ensure_ascii=False)


PAGES: dict[str, Callable[[Database], Mapping[str, str]]] = {
    "advice": _advice,
    "anonymity": _anonymity,
    "attack": _attack,
    "audit": _audit,
    "compared": _compared,
    "fairness": _fairness,
    "models": _models,
    "stream": _stream,
    "survey": _survey,
    "sweep": _sweep,
    "trust": _comparison,
}
