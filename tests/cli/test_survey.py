"""`sfumato survey`: what each command prints and writes, and what it refuses."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sfumato.local import client
from sfumato.local.examples import replayed
from sfumato.local.survey import Survey
from tests.cli.programs import sfumato


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return sfumato(Path(), *arguments)


def plan(*arguments: str) -> Survey:
    assert run("survey", "plan", "Which?", *arguments).returncode == 0
    return Survey.read("survey.toml")


@pytest.mark.parametrize(
    ("arguments", "kind", "answer"),
    [
        ((), "yes_no", "yes"),
        (("--answers", "a, b,c"), "one_of", "b"),
        (("--size", "5000"), "one_of", "4711"),
        (("--answers", "a,b,c", "--most", "2"), "several_of", "c"),
        (("--low", "0", "--high", "110"), "number", "34.5"),
        (("--text", "4"), "text", "word"),
        (("--cap", "3"), "yes_no", "no"),
    ],
)
def test_every_kind_is_planned_shown_answered_and_collected(
    arguments: tuple[str, ...], kind: str, answer: str
) -> None:
    survey = plan("--epsilon", "2", *arguments)
    assert survey.question.kind == kind
    assert "%" in run("survey", "show", "survey.toml").stdout
    memory = ("--memory", "memory.json") if survey.cap else ()
    lines = [run("survey", "answer", "survey.toml", answer, *memory).stdout for _ in range(3)]
    assert len({json.loads(line)["id"] for line in lines}) == 3
    Path("reports.jsonl").write_text("".join(lines))
    day = ("--day", "0") if survey.cap else ()
    found = run("survey", "collect", "survey.toml", "reports.jsonl", "--format", "json", *day)
    assert found.returncode == 0 and json.loads(found.stdout)["counted"] == 3


def test_nothing_is_overwritten_by_accident() -> None:
    plan("--epsilon", "1")
    before = Path("survey.toml").read_bytes()
    assert run("survey", "simulate", "survey.toml", "yes=0.5", "no=0.5", "--people", "10").returncode == 0
    reports = Path("reports.parquet").read_bytes()
    for arguments in (
        ("plan", "Another?", "--epsilon", "2"),
        ("collect", "survey.toml", "reports.parquet", "-o", "survey.toml"),
        ("collect", "survey.toml", "reports.parquet", "-o", "reports.parquet"),
        ("simulate", "survey.toml", "yes=0.5", "no=0.5", "-o", "survey.toml"),
        ("simulate", "survey.toml", "yes=0.5", "no=0.5", "-o", "reports.txt"),
    ):
        assert run("survey", *arguments).returncode == 2
    assert Path("survey.toml").read_bytes() == before and Path("reports.parquet").read_bytes() == reports
    assert run("survey", "plan", "Another?", "--epsilon", "2", "--force").returncode == 0


def test_a_memory_is_for_nobody_else_and_for_one_survey() -> None:
    plan("--epsilon", "1", "--cap", "2", "--name", "smoking")
    assert run("survey", "answer", "survey.toml", "yes", "--memory", "memory.json").returncode == 0
    assert Path("memory.json").stat().st_mode & 0o077 == 0
    text = Path("survey.toml").read_text()
    Path("survey.toml").write_text(text + "# another edition\n")  # the same terms: nothing is drawn anew
    kept = Path("memory.json").read_text()
    assert run("survey", "answer", "survey.toml", "yes", "--memory", "memory.json").returncode == 0
    assert Path("memory.json").read_text() == kept
    for changed in (text.replace("Which?", "Another?"), text.replace("version = 1", "version = 2")):
        Path("survey.toml").write_text(changed)
        refused = run("survey", "answer", "survey.toml", "yes", "--memory", "memory.json")
        assert refused.returncode == 2 and "has changed" in refused.stderr and not refused.stdout
        assert Path("memory.json").read_text() == kept
    plan("--epsilon", "2", "--cap", "2", "--name", "smoking", "--force")
    assert run("survey", "answer", "survey.toml", "yes", "--memory", "memory.json").returncode == 2
    before = json.loads(kept)
    del before["smoking"]["format"]  # as earlier clients wrote it
    Path("memory.json").write_text(json.dumps(before))
    refused = run("survey", "answer", "survey.toml", "yes", "--memory", "memory.json")
    assert refused.returncode == 2 and "name a new memory" in refused.stderr.replace("\n", " ")
    assert Path("memory.json").read_text() == json.dumps(before)
    for wrong in ("[]", '{"smoking": 3}', '{"a": {"kept": {}}}', "null"):
        Path("memory.json").write_text(wrong)
        refused = run("survey", "answer", "survey.toml", "yes", "--memory", "memory.json")
        assert refused.returncode == 2 and "memory" in refused.stderr
    assert run("survey", "answer", "survey.toml", "yes", "--memory", "absent/memory.json").returncode == 2


def test_a_hostile_question_does_not_steer_the_screen() -> None:
    plan("--epsilon", "1")
    text = Path("survey.toml").read_text().replace('question = "Which?"', 'question = "Which?\\u001b[8m"')
    Path("survey.toml").write_text(text)
    assert "\x1b" not in run("survey", "show", "survey.toml").stdout
    Path("reports.jsonl").write_text("")
    assert "\x1b" not in run("survey", "collect", "survey.toml", "reports.jsonl").stdout


def test_negative_numbers_and_commas_are_answers_too() -> None:
    plan("--epsilon", "1", "--low", "-10", "--high", "10")
    assert run("survey", "answer", "survey.toml", "-5").returncode == 0
    survey = plan("--epsilon", "1", "--answers", '"yes, often",no', "--force")
    assert survey.question.answers == ("yes, often", "no")  # type: ignore[attr-defined]
    assert run("survey", "answer", "survey.toml", "1e999999999").returncode == 2


def test_a_memory_is_kept_between_answers() -> None:
    plan("--epsilon", "1", "--answers", "a,b,c,d,e,f,g,h", "--cap", "2")
    command = ("survey", "answer", "survey.toml", "--memory", "memory.json")
    reports = [json.loads(run(*command, answer).stdout) for answer in ("a", "a", "b", "a", "c")]
    fields = [{name: one[name] for name in one if name != "id"} for one in reports]
    assert fields[0] == fields[1] == fields[3] == fields[4]
    assert run("survey", "answer", "survey.toml", "a").returncode == 2
    Path("memory.json").write_text("not json")
    refused = run(*command, "a")
    assert refused.returncode == 2 and "memory" in refused.stderr


def test_simulated_respondents_come_back() -> None:
    plan("--epsilon", "3", "--answers", "a,b")
    assert run("survey", "simulate", "survey.toml", "a=0.25", "b=0.75", "--people", "20000").returncode == 0
    rows = json.loads(run("survey", "collect", "survey.toml", "reports.parquet", "--format", "json").stdout)[
        "rows"
    ]
    assert rows[0]["share"] == pytest.approx(0.25, abs=0.05)
    moved = run("survey", "collect", "survey.toml", "reports.parquet", "--simplex")
    assert "add up to one" in moved.stdout
    for wrong in (("a=0.5",), ("a=1.5", "b=0"), ("c=1",), ("a",), ("a=x",)):
        assert run("survey", "simulate", "survey.toml", *wrong).returncode == 2


@pytest.mark.parametrize("limits", [(), ("--cap", "2"), ("--cap", "2", "--every", "30")])
def test_vectors_are_those_of_the_client(limits: tuple[str, ...]) -> None:
    plan("--epsilon", "1", "--size", "300", *limits)
    lines = run("survey", "vectors", "survey.toml", "7", "299", "--times", "3").stdout.splitlines()
    data = Path("survey.toml").read_bytes()
    assert len(lines) == 6
    for line in lines:
        assert replayed(data, json.loads(line)) == json.loads(line)["reports"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "Which?", "--epsilon", "0", "--force"),
        ("plan", "Which?", "--epsilon", "1", "--answers", "a,a", "--force"),
        ("plan", "Which?", "--epsilon", "1", "--answers", "a", "--force"),
        ("plan", "Which?", "--epsilon", "1", "--size", "1", "--force"),
        ("plan", "Which?", "--epsilon", "1", "--answers", "a,b", "--size", "2", "--force"),
        ("plan", "Which?", "--epsilon", "1", "--low", "3", "--high", "2", "--force"),
        ("plan", "Which?", "--epsilon", "1", "--answers", "a,b", "--most", "3", "--force"),
        ("plan", "", "--epsilon", "1", "--force"),
        ("plan", "Which?", "--epsilon", "1", "--every", "3", "--force"),
        ("plan", "Which?", "--epsilon", "1", "--low", "3", "--force"),
        ("plan", "Which?", "--epsilon", "1", "--most", "3", "--force"),
        ("show", "absent.toml"),
        ("collect", "survey.toml", "absent.jsonl"),
        ("collect", "survey.toml", "survey.toml"),
        ("collect", "survey.toml", "reports.jsonl", "--level", "1.5"),
        ("answer", "survey.toml", "perhaps"),
        ("vectors", "survey.toml", "perhaps"),
    ],
)
def test_refusals_have_a_code_and_do_not_repeat_the_answer(arguments: tuple[str, ...]) -> None:
    plan("--epsilon", "1")
    Path("reports.jsonl").write_text("")
    before = Path("survey.toml").read_bytes()
    refused = run("survey", *arguments)
    assert refused.returncode == 2 and "perhaps" not in refused.stderr and not refused.stdout
    assert Path("survey.toml").read_bytes() == before
    as_json: Any = json.loads(run("survey", *arguments, "--json-errors").stderr)
    assert as_json["error"]["code"].startswith("SF")


def test_one_answer_is_no_question() -> None:
    for words in (("--answers", "a"), ("--size", "1")):
        refused = run("survey", "plan", "Which?", "--epsilon", "1", *words)
        assert refused.returncode == 2 and words[0] in refused.stderr
        assert "two answers at least" in refused.stderr and "--answers yes,no" in refused.stderr
        assert not Path("survey.toml").exists()


def test_to_count_nothing_is_a_failure_that_says_why() -> None:
    plan("--epsilon", "1")
    Path("empty.jsonl").write_text("")
    Path("malformed.jsonl").write_text("{}\n" * 2)
    for file, why in (("empty.jsonl", "there are none"), ("malformed.jsonl", "dropped: 2 malformed")):
        refused = run("survey", "collect", "survey.toml", file, "-o", "result.txt")
        assert refused.returncode == 2 and not refused.stdout and not Path("result.txt").exists()
        assert "no report was counted" in refused.stderr and why in refused.stderr


def test_what_breaks_its_promise_is_neither_shown_nor_answered() -> None:
    survey = plan("--epsilon", "2")
    Path("survey.toml").write_text(survey.text.replace('epsilon = "2"', 'epsilon = "1"'))
    for command in ("show", "answer", "collect"):
        assert run("survey", command, "survey.toml", "yes").returncode == 2
    with pytest.raises(client.Refused):
        client.load(Path("survey.toml").read_bytes())
