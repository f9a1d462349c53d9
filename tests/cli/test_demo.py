"""The demonstrations: what it prints is right where it is certain, and plausible where it is drawn."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from sfumato.cli import app, basics, demo
from tests.cli.programs import sfumato


def shown(*, terminal: bool = False) -> str:
    screen = io.StringIO()
    colours = "standard" if terminal else None
    basics.run(
        Console(file=screen, width=120, highlight=False, force_terminal=terminal, color_system=colours)
    )
    return screen.getvalue()


def numbers(pattern: str, text: str) -> list[float]:
    match = re.search(pattern, text)
    assert match, f"{pattern!r} not found in:\n{text}"
    return [float(group.replace(",", "")) for group in match.groups()]


def test_the_count_lies_in_its_interval_and_near_the_truth() -> None:
    """False alarm e^-22 < 1e-9: the noise, of scale 5, exceeds 110. Power: noise of another unit."""
    text = shown()
    published, low, high = numbers(r"How many smoke\? +([\d,]+) +95% interval: ([\d,]+) to ([\d,]+)", text)
    (exact,) = numbers(r"exact count was ([\d,]+)", text)
    assert low == published - 15
    assert high == published + 15
    assert abs(published - exact) <= 110


def test_the_survey_finds_the_share_and_costs_ln_3() -> None:
    """False alarm below 1e-9: the estimate, of standard error 0.87%, is off by 6.5 of them. Power: p = Y
    instead of p = 2Y - 1/2 is off by ten percentage points."""
    text = " ".join(shown().split())
    (estimate,) = numbers(r"said yes, so about ([\d.]+)%", text)
    (exact,) = numbers(r"exact share was ([\d.]+)%", text)
    assert abs(estimate - exact) < 6.5 * 0.87 + 0.1
    assert "epsilon = ln 3 = 1.0986" in text
    (innocent,) = numbers(r"Deniability: (\d+)% of those who said yes", text)
    assert 35 <= innocent <= 55


def test_three_releases_cost_less_together_than_their_sum() -> None:
    text = " ".join(shown().split())
    naive, together = numbers(r"adding up gives epsilon = ([\d.]+); .* gives ([\d.]+),", text)
    assert 2.05 < naive < 2.15
    assert 1.45 < together < 1.55
    (left,) = numbers(r"the three leave (\d+)% of it", text)
    assert 0 < left < 100


def test_colours_are_for_terminals() -> None:
    piped = CliRunner().invoke(app, ["demo", "--basics"])
    assert piped.exit_code == 0
    assert "3. Three releases" in piped.output
    assert "\x1b[" not in piped.output
    assert "\x1b[" in shown(terminal=True)


def test_the_story_of_a_base_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without scipy the attack is left out, with the cure, and all the rest is shown."""
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    screen = io.StringIO()
    console = Console(file=screen, width=200, highlight=False, markup=False)
    demo.run(folder=str(tmp_path / "hospital"), people=2_000, days=2, console=console)
    text = screen.getvalue()
    assert "left out: this needs scipy; install it: pip install 'sfumato[lab]'" in text
    assert "A year of daily counts" in text and "all verified" in text


def test_the_story(tmp_path: Path) -> None:
    """Eight questions, each answered and charged; one refused, free; an attack that fails; a ledger verified;
    and days of a year, in the end.

    The districts add up to the people within 1e-9 bounds: five noises of deviation 21 exceed 600
    never. Of 2,000 firms the attacker is right in 73.1%, and beyond 66% to 80% with probability below 1e-11.
    """
    screen = io.StringIO()
    home = tmp_path / "hospital"
    demo.run(folder=str(home), people=5_000, days=4, console=Console(file=screen, width=200, highlight=False))
    text = screen.getvalue()
    assert len(demo.QUESTIONS) == 8 and all(f"\n{number}. " in text for number in range(1, 9))
    burnt = [float(share) for share in re.findall(r"budget [█░]+ ([\d.]+)% spent", text)]
    assert len(burnt) == 9 and burnt == sorted(burnt) and 50 < burnt[-1] <= 100
    assert "error[SF406]" in text and "the budget has not moved: True" in text
    assert "all verified" in text and "anchor, to be kept elsewhere: " in text
    assert "told right in 100% of 2,000 invented firms" in text and "can exceed 73.1%" in text
    (attacked,) = numbers(r"epsilon 1: in ([\d.]+)%", text)
    assert 66 < attacked < 80
    districts = text.split("\n1. ")[1].split("budget")[0]
    assert abs(sum(int(n) for n in re.findall(r"(-?\d+) ±", districts)) - 5_000) < 600
    year = text.split("A year of daily counts")[1]
    assert "this stream" in year and "(2.94 x)" in year and "2025-01-04" in year and "•" in year
    assert re.search(r"all days together: -?\d+ ±\d+\n", year) and "change per day, on average: " in year
    shown = sfumato(home, "budget", "--format", "json")
    assert abs(json.loads(shown.stdout)["spent"] - burnt[-1] / 100) < 1e-3, "the project can be used on"
    refused = sfumato(tmp_path, "demo", "hospital")
    assert refused.returncode == 2 and "already" in refused.stderr


def test_no_two_runs_are_alike() -> None:
    """False alarm below 1e-12: two runs share some thirty noise values. Power: any seed."""
    assert shown() != shown()
