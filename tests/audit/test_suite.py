"""The suite adds up its verdicts, its report can be filed, and the command says how it ended."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sfumato.audit import Claim, Report, Verdict, mechanisms, questions, suites, write_report
from sfumato.audit import suite as whole_suite
from sfumato.audit.evidence import Evidence
from sfumato.audit.reports import LIMITS
from sfumato.audit.subject import ExactEpsilon
from sfumato.audit.training_runs import examine_training
from sfumato.audit.zoo import ANIMALS
from sfumato.cli import audit as command
from sfumato.core import Proportion
from sfumato.errors import InvalidArgument

MISS = 1e-9


@pytest.fixture(scope="module")
def report() -> Report:
    """A small suite: two mechanisms, two questions, one whole release, two animals."""
    patch = pytest.MonkeyPatch()
    patch.setattr(suites, "mechanisms", lambda: mechanisms.mechanisms()[5:7])
    patch.setattr(suites, "QUESTIONS", questions.QUESTIONS[:2])
    honestly = suites.examine_questions
    patch.setattr(suites, "examine_questions", lambda **options: honestly(questions.QUESTIONS[:2], **options))
    patch.setattr(suites, "WHOLE", questions.WHOLE[:1])
    patch.setattr(
        suites, "released", lambda *given, **options: questions.released(*given, trials=8, **options)
    )
    patch.setattr(
        suites,
        "examine_training",
        lambda estimator, miss: examine_training(
            estimator.set_params(steps=2), canaries=8, rows=2, miss=miss
        ),
    )
    patch.setattr(suites, "ANIMALS", ANIMALS[:2])
    steps: list[str] = []
    made = whole_suite(quick=True, miss=MISS, progress=steps.append)
    patch.undo()
    assert "the zoo" in steps and questions.QUESTIONS[0].kind in steps
    assert not any(character.isdigit() for step in steps for character in step)  # steps only
    return made


def failing(report: Report) -> Report:
    broken = Verdict(
        name="a <broken> thing | here",
        claim=Claim(epsilon=1),
        exact=ExactEpsilon(low=math.inf, high=math.inf, pair="x", wrongs=("one unit moved 3 groups, not 2",)),
    )
    part = replace(report.parts[0], verdicts=(*report.parts[0].verdicts, broken))
    return replace(report, parts=(part, *report.parts[1:]))


def test_the_system_passes_and_the_auditor_sees(report: Report) -> None:
    """False alarm: at most 1e-9 for the whole suite, divided over what is sampled."""
    assert report.passed and report.sound and report.sighted
    assert [part.name for part in report.parts] == [
        "Mechanisms", "Questions", "Whole releases", "Training", "Prices", "Sound twins",
    ]  # fmt: skip
    sampled = [
        verdict.evidence for part in report.parts for verdict in part.verdicts if verdict.evidence is not None
    ]
    assert sum(one.miss for one in sampled) == pytest.approx(MISS, abs=0)
    assert sum(one.miss for one in sampled) <= MISS * (1 + 1e-9)


def test_one_false_claim_fails_it_and_so_does_blindness(report: Report) -> None:
    failed = failing(report)
    assert not failed.sound and failed.sighted and not failed.passed
    animal, verdict = report.zoo[0]
    blind = replace(report, zoo=((animal, replace(verdict, claim=Claim(epsilon=50))), *report.zoo[1:]))
    assert blind.sound and not blind.sighted and not blind.passed
    assert "NOT VALID" in blind.to_markdown()


def test_verdicts_say_why() -> None:
    evidence = Evidence(
        epsilon=1.2, delta=0.0, miss=1e-9, pair="a and b", event="[out >= 3]",
        likely=Proportion(hits=5, trials=9), unlikely=Proportion(hits=1, trials=9),
    )  # fmt: skip
    claim = Claim(epsilon=1)
    assert Verdict(name="x", claim=claim, evidence=evidence).caught
    assert not Verdict(name="x", claim=Claim(epsilon=1.2), evidence=evidence).caught
    assert Verdict(name="x", claim=claim, exact=ExactEpsilon(low=1.1, high=1.1, pair="p")).caught
    assert Verdict(name="x", claim=claim, exact=ExactEpsilon(low=0, high=0, pair="p", wrongs=("w",))).caught
    assert not Verdict(name="x", claim=claim, exact=ExactEpsilon(low=0.9, high=1.0000001, pair="p")).caught
    told = str(Verdict(name="x", claim=claim, evidence=evidence, exact=ExactEpsilon(low=2, high=2, pair="p")))
    assert "CAUGHT" in told and "[out >= 3]" in told and "5 times in 9" in told


def test_the_page_holds_all_it_needs(report: Report) -> None:
    page = report.document().html()
    assert page.count("<svg") == 2 and "PASSED" in page and "Signature" in page
    assert "http://www.w3.org" in page  # the name of SVG's language, and no other address
    assert "<script" not in page and "src=" not in page and "<link" not in page
    for part in report.parts:
        for verdict in part.verdicts:
            assert verdict.name in page.replace("&#x27;", "'")
    assert all(limit in page.replace("&#x27;", "'") for limit in LIMITS)
    failed = failing(report).document().html()
    assert "FAILED" in failed and "a &lt;broken&gt; thing" in failed and "<broken>" not in failed


def test_a_page_without_pictures(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "altair", None)
    page = report.document().html()
    assert "<svg" not in page and "sfumato[plots]" in page


def test_reports_are_written(report: Report, tmp_path: Path) -> None:
    for ending in ("html", "md", "json"):
        write_report(failing(report), tmp_path / f"audit.{ending}")
    text = (tmp_path / "audit.md").read_text()
    assert (
        text.startswith("# Privacy audit") and "thing \\| here" in text and "one unit moved 3 groups" in text
    )
    record = json.loads((tmp_path / "audit.json").read_text())
    assert record["passed"] is False and record["false_alarm"] == MISS
    assert record["versions"]["python"] and len(record["zoo"]) == 2
    with pytest.raises(InvalidArgument):
        write_report(report, tmp_path / "audit.pdf")


# -- the command ------------------------------------------------------------------------------


def test_the_command_says_how_it_ended(
    report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given: list[dict[str, Any]] = []

    def small(**options: Any) -> Report:
        given.append(options)
        return report

    monkeypatch.setattr(command, "suite", small)
    path = tmp_path / "audit.html"
    assert command.run(output=str(path), quick=True, as_json=False) == 0
    assert path.exists() and given[0]["quick"] is True
    out = capsys.readouterr().out
    assert "passed" in out and "2 of 2 broken mechanisms" in out
    monkeypatch.setattr(command, "suite", lambda **options: failing(report))
    assert command.run(output=None, quick=False, as_json=False) == 3
    assert "FAILED" in capsys.readouterr().out
    assert command.run(output=None, quick=False, as_json=True) == 3
    assert json.loads(capsys.readouterr().out)["passed"] is False
    with pytest.raises(InvalidArgument):
        command.run(output="audit.pdf", quick=False, as_json=False)


def test_the_command_examines_a_question_of_a_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Through a project file: nothing is spent, and a refusal is one."""
    import duckdb

    from sfumato.cli import init
    from sfumato.cli.options import Wishes

    path = tmp_path / "people.parquet"
    duckdb.sql("SELECT range AS person, range % 90 AS age FROM range(50)").write_parquet(str(path))
    monkeypatch.chdir(tmp_path)
    wishes = Wishes(
        files=[str(path)], unit=["person"], each_row=False, public=[], between=["age=0,110"], one_of=[],
        max_groups=1, max_rows=1, epsilon=1.0, delta=1e-6, ceiling=None, ledger=None,
    )  # fmt: skip
    init.run(wishes, project="sfumato.toml", ask=False, force=False)
    capsys.readouterr()
    text, asked = "SELECT AVG(age) FROM people", {"project": "sfumato.toml", "epsilon": 0.5}
    ended = command.run_question(text, output="one.html", as_json=True, **asked)  # type: ignore[arg-type]
    record = json.loads(capsys.readouterr().out)
    page = Path("one.html").read_text()
    assert "Nothing was found against this claim" in page and text in page and "The zoo:" not in page
    with pytest.raises(InvalidArgument, match=r"\.html, \.md or \.json"):
        command.run_question(text, output="one.pdf", as_json=True, **asked)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="the data of table `people`"):
        path.rename("people.json")
        Path("sfumato.toml").write_text(Path("sfumato.toml").read_text().replace(path.name, "people.json"))
        command.run_question(text, output="people.json", as_json=True, **asked)  # type: ignore[arg-type]
    assert ended == 0 and record["caught"] is False and record["claim"]["epsilon"] == 0.5
    assert record["exact"]["high"] <= 0.5
