"""One training run with canaries: honest training stands, a unit that is not clipped as one is caught."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sfumato.audit import examine_training
from sfumato.audit.training_runs import LOOSE
from sfumato.cli import audit as command
from sfumato.errors import InvalidArgument
from sfumato.learn import LogisticRegression, NeuralNetwork
from sfumato.learn.gradients import EncodedRows
from sfumato.learn.networks.clipping import ClippedSums

_FEW = LogisticRegression(label="any", epsilon=1, steps=4)


@pytest.fixture
def unclipped() -> Iterator[None]:
    """Let each row of a unit count in full: many rows move the sum as many times as far as is claimed."""
    honest = EncodedRows.of
    patch = pytest.MonkeyPatch()
    patch.setattr(EncodedRows, "of", lambda *given: replace(honest(*given), shares=np.ones(len(given[0]))))
    yield
    patch.undo()


def test_honest_training_stands() -> None:
    """False alarm: at most 1e-9, the miss of the bound."""
    verdict = examine_training(_FEW, canaries=40, rows=3)
    assert verdict.passed and verdict.evidence is not None and verdict.evidence.miss == 1e-9
    assert verdict.claim.epsilon == 1 and LOOSE in str(verdict)


def test_a_unit_that_is_not_clipped_as_one_is_caught(unclipped: None) -> None:
    """Power: with 50 rows all of 2,000 guesses were right, and 97 of 100 are enough; here are 120."""
    verdict = examine_training(_FEW, rows=120)
    assert verdict.caught and "epsilon is at least" in str(verdict)


@pytest.mark.soak
def test_honest_bounds_do_not_pass_the_claim() -> None:
    """A bound that may err in one of ten runs stays below the claim in all but a few of forty.

    False alarm: more than 20 of 40 runs above the claim have a probability below 1e-9 at 0.1 each.
    """
    over = [examine_training(_FEW, canaries=100, rows=3, miss=0.1).caught for _ in range(40)]
    assert sum(over) <= 20


@pytest.mark.soak
def test_a_network_stands_and_one_that_clips_row_by_row_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """False alarm: at most 1e-9. Power: 97 right guesses of 100 are enough; all of 300 were right."""
    given = {"label": "any", "epsilon": 1, "steps": 10, "hidden": (16,), "rows_per_unit": 120}
    for sampling in (1, 0.5):
        assert examine_training(NeuralNetwork(sampling=sampling, **given), canaries=40, rows=3).passed
    clipped = ClippedSums._weights
    monkeypatch.setattr(
        ClippedSums,
        "_weights",
        lambda self, norms, sizes: clipped(self, norms, np.ones(int(sizes.sum()), dtype=np.int64)),
    )
    assert examine_training(NeuralNetwork(sampling=1, **given), rows=120).caught


def test_a_training_without_a_claim_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="claims an epsilon"):
        examine_training(LogisticRegression(label="any"))
    with pytest.raises(InvalidArgument, match="built in"):
        examine_training(NeuralNetwork(label="any", epsilon=1, module=object()))


def test_the_command_files_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "examine_training", lambda given: examine_training(_FEW, canaries=8, rows=2))
    page = tmp_path / "one.html"
    assert command.run_training(output=str(page), epsilon=None, as_json=False) == 0
    assert LOOSE in capsys.readouterr().out and "never an epsilon" in page.read_text()
