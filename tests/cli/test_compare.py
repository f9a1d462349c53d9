"""`sfumato compare`: the table, JSON, a page that needs no other file, and refusals with a hint."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.programs import sfumato

ROWS = "age,way,secret\n" + "".join(
    f"{20 + place % 60},{'bus' if place % 3 else 'car'},canary-4711\n" for place in range(120)
)


def test_ones_own_numbers_as_json_and_as_a_page(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(f"{ROWS},bus,canary-4711\n")
    run = sfumato(
        tmp_path, "compare", "people.csv", "--column", "age", "--low", "0", "--high", "110",
        "--repetitions", "2", "--format", "json", "--html", "page.html",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert found["people"] == 120 and found["dropped"] == 1 and not found["invented"]
    assert {one["model"] for one in found["by_epsilon"]} == {"central", "shuffled", "local"}
    assert [one["epsilon"] for one in found["by_epsilon"][::3]] == [0.1, 0.2, 0.5, 1, 2, 5]
    assert found["by_people"][-1]["people"] == 120
    page = (tmp_path / "page.html").read_text()
    assert page.count("<figure>") == page.count("<svg") == 2
    assert found["sentence"] in page and "never a release" in page
    assert not re.search(r"(src|href)=[\"']?(https?:|//)|@import|url\((?!#)|<script", page)
    assert "canary" not in run.stdout + page


def test_invented_answers_as_a_table(tmp_path: Path) -> None:
    run = sfumato(
        tmp_path, "compare", "--answers", "yes, no", "--people", "50", "--repetitions", "2", "-e", "2"
    )
    assert run.returncode == 0, run.stderr
    assert "Shares of answer, one of yes, no" in run.stdout
    assert "The people are invented." in run.stdout and "never a release" in run.stdout
    assert re.search(r"^ *epsilon +people +central +shuffled +local +each report$", run.stdout, re.MULTILINE)
    assert not run.stderr


@pytest.mark.parametrize(
    ("words", "about"),
    [
        (("nobody.csv", "--column", "age", "--low", "0", "--high", "9"), "no file"),
        (("people.csv", "--column", "height", "--low", "0", "--high", "9"), "no column `height`"),
        (("people.csv", "--column", "way", "--low", "0", "--high", "9"), "not of numbers"),
        (("people.csv", "--low", "0", "--high", "9"), "which column"),
        (("people.csv", "--column", "age"), "needs its bounds"),
        (("people.csv", "--column", "age", "--low", "9", "--high", "9"), "low must be below high"),
        (("people.csv", "--column", "way", "--answers", "bus"), "different answers"),
        (("people.csv", "--column", "way", "--answers", "train,ship"), "no value"),
        (("--epsilon", "0"), "epsilon must be above zero"),
        (("--delta", "1"), "delta must be below 1"),
        (("--people", "0"), "people must be at least 1"),
        (("--repetitions", "1"), "repetitions must be at least 2"),
        (("--low", "3"), "need a table"),
        (("--html", "nowhere/page.html"), "cannot be written"),
        (
            ("people.csv", "--column", "age", "--low", "0", "--high", "9", "--html", "people.csv"),
            "is the table",
        ),
    ],
)
def test_bad_input_is_refused_with_a_message(tmp_path: Path, words: tuple[str, ...], about: str) -> None:
    (tmp_path / "people.csv").write_text(ROWS)
    run = sfumato(tmp_path, "compare", *words)
    assert run.returncode == 2, run.stderr
    assert about in run.stderr and "Traceback" not in run.stderr and "canary" not in run.stderr
    assert (tmp_path / "people.csv").read_text() == ROWS
