"""The attack lab on the command line: every attack has its command, and the page needs no other file."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

import pandas as pd
import pytest
from typer.main import get_command
from typer.testing import CliRunner

from sfumato import attacks
from sfumato.attacks import AttackResult
from sfumato.cli import app
from tests.cli.programs import sfumato

ATTACKS = {name for name in attacks.__all__ if callable(getattr(attacks, name)) and name.islower()} - {
    "bit_bound",
    "html_report",
}


def test_every_attack_has_a_command() -> None:
    group = get_command(app).commands["attack"]  # type: ignore[attr-defined]
    assert set(group.commands) == ATTACKS | {"all"}


def test_an_attack_on_ones_own_table(tmp_path: Path) -> None:
    """False alarm below 1e-9: each of 20 averages is wrong in 0.25% of all cases, and six have to be."""
    pd.DataFrame({"sick": [True, False] * 30}).to_parquet(tmp_path / "staff.parquet")
    run = sfumato(
        tmp_path, "attack", "averaging", "--data", "staff.parquet", "--trait", "sick", "-e", "0.5",
        "--format", "json", "--html", "page.html",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    [found] = json.loads(run.stdout)
    assert found["attack"] == "averaging"
    assert [point["epsilon"] for point in found["curve"]] == [0.5]
    assert found["naive"]["success"] > 0.7
    page = (tmp_path / "page.html").read_text()
    assert page.count("<figure>") == 2 and found["title"] in page
    assert not re.search(r"(src|href)=[\"']?(https?:|//)|@import|url\((?!#)", page)


@pytest.mark.parametrize(
    ("words", "about"),
    [
        (("averaging", "--data", "nobody.parquet", "--trait", "sick"), "no file"),
        (("averaging", "--data", "staff.parquet", "--trait", "ill"), "no column"),
        (("averaging", "--data", "staff.parquet"), "which column"),
        (("reconstruction", "--people", "0"), "people"),
        (("reconstruction", "--people", "20", "--method", "magic"), "method"),
        (("averaging", "--epsilon", "-1"), "epsilon"),
        (("differencing", "--html", "nowhere/page.html"), "written"),
    ],
)
def test_bad_input_is_refused_with_a_hint(tmp_path: Path, words: tuple[str, ...], about: str) -> None:
    pd.DataFrame({"sick": [True, False] * 5}).to_parquet(tmp_path / "staff.parquet")
    run = sfumato(tmp_path, "attack", *words)
    assert run.returncode == 2, run.stderr
    assert about in run.stderr and "Traceback" not in run.stderr


def test_results_are_printed_as_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also into a pipe: when the second attack begins, the first result is out."""
    shown = io.StringIO()
    seen = []

    def attack(name: str) -> str:
        seen.append(shown.getvalue())
        return f"result of {name}"

    for name in ATTACKS:
        monkeypatch.setattr(attacks, name, lambda name=name: attack(name))
    monkeypatch.setattr(sys, "stdout", shown)
    get_command(app).main(["attack", "all"], standalone_mode=False)
    assert seen[:2] == ["", "result of linkage\n"]
    assert [text.count("result of") for text in seen] == list(range(len(ATTACKS)))
    assert shown.getvalue().startswith("result of linkage\n\nresult of ratings\n\n")


@pytest.mark.soak
def test_all_of_them_on_one_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each with its story and its pictures. Made small: what they find is tested where they are."""
    small = {
        "averaging": {"firms": 200, "people": 3, "questions": 50, "epsilons": (1.0,)},
        "census": {"blocks": 6, "epsilons": (1.0,)},
        "differencing": {"firms": 200, "people": 3, "epsilons": (1.0,)},
        "homogeneity": {"people": 3000, "ks": (2,), "epsilons": (1.0,), "victims": 100},
        "linkage": {"people": 20_000, "victims": 200, "epsilons": (1.0,)},
        "membership": {"studies": 40, "people": 3, "traits": 10, "epsilons": (1.0,)},
        "ratings": {"viewers": 1500, "films": 300, "epsilons": (1.0,)},
        "reconstruction": {"people": 40, "epsilons": (1.0,)},
        "refusing": {"threes": 60, "epsilons": (1.0,)},
    }
    assert set(small) == ATTACKS
    for name, sizes in small.items():
        real = getattr(attacks, name)

        def run(real=real, sizes=sizes) -> AttackResult:
            return real(**sizes)

        monkeypatch.setattr(attacks, name, run)
    page = tmp_path / "attacks.html"
    shown = CliRunner().invoke(app, ["attack", "all", "--html", str(page)])
    assert shown.exit_code == 0, shown.output
    text = page.read_text()
    for name in ATTACKS:
        assert f'<h2 id="{name}">' in text
    assert text.count("<svg") >= 2 * len(ATTACKS) - 2
    assert not re.search(r"(src|href)=[\"']?(https?:|//)|@import|url\((?!#)|<script", text)
