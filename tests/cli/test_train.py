"""`sfumato train`: the price first, a model as JSON, a fairness report as a page."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sfumato.learn import LinearModel
from tests.cli.programs import make_project, sfumato
from tests.cli.terminal import Terminal

COMMON = ("train", "logistic", "--table", "people", "--label", "region", "--epsilon", "0.5")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("train")
    make_project(made)
    return made


def spent(folder: Path) -> float:
    return float(json.loads(sfumato(folder, "budget", "--format", "json").stdout)["spent"])


def test_the_price_is_shown_and_nothing_is_spent_before_somebody_agrees(folder: Path) -> None:
    shown = sfumato(folder, *COMMON, "--fairness", "region", "--dry-run")
    assert shown.returncode == 0, shown.stderr
    assert "a training at epsilon 0.5, and a fairness report at epsilon 0.5, on 3 groups" in shown.stdout
    assert "nothing was spent" in shown.stdout
    asked = sfumato(folder, *COMMON)
    assert asked.returncode != 0 and "--yes" in asked.stderr
    assert spent(folder) == 0


def test_on_a_terminal_it_asks_and_a_no_spends_nothing(folder: Path) -> None:
    with Terminal(folder, *COMMON) as terminal:
        assert "of the budget" in terminal.expect("spend? [y/N]")
        terminal.send("n\n")
        terminal.expect("nothing was spent")
        assert terminal.wait() != 0
    assert spent(folder) == 0


def test_a_model_and_its_report_are_written(folder: Path) -> None:
    files = ("--output", "model.json", "--fairness", "region", "--report", "fairness.html")
    files = (*files, "--weight", "region=South:2")
    done = sfumato(folder, *COMMON, *files, "--key", "model", "--yes")
    assert done.returncode == 0, done.stderr
    assert "epsilon 1:" in done.stderr and "everyone" in done.stdout
    model = LinearModel.from_json((folder / "model.json").read_text())
    assert model.classes == ("north", "south") and model.features.names == ("age",)
    assert "Fairness report" in (folder / "fairness.html").read_text()
    once = spent(folder)
    again = sfumato(folder, *COMMON, *files, "--key", "model", "--yes", "--format", "json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["fairness"]["groups"][0]["group"] == "everyone"
    assert spent(folder) == once > 0
    (folder / "public.csv").write_text("age\n20\n70\n")
    told = sfumato(folder, "predict", "model.json", "public.csv")
    assert told.returncode == 0 and told.stdout.splitlines()[0] == '"region"' and told.stdout.count("\n") == 3


def test_the_steps_of_a_training_are_shown(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    @contextmanager
    def working(step: str) -> Iterator[Callable[[str], object]]:
        yield told.append

    monkeypatch.setattr("sfumato.cli.spending.working", working)
    assert sfumato(folder, *COMMON, "--yes").returncode == 0
    assert {"step 1 of 100", "step 100 of 100"} <= set(told)


def test_what_was_learned_is_kept(folder: Path) -> None:
    done = sfumato(folder, *COMMON, "--fairness", "region", "-o", "m.json", "--yes", "--format", "json")
    record = json.loads(done.stdout)
    model, report = (one["receipt"]["reservation"] for one in (record, record["fairness"]))
    assert "everyone" in sfumato(folder, "ledger", "show", report).stdout
    stored = sfumato(folder, "ledger", "show", model, "--format", "json")
    assert stored.stdout == (folder / "m.json").read_text()
    assert sfumato(folder, "ledger", "receipt", "m.json").returncode == 0
    assert "no csv file" in sfumato(folder, "ledger", "show", model, "--format", "csv").stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train", "forest", "--table", "people", "--label", "region", "-e", "1"), "no kind of model"),
        (("train", "logistic", "--table", "people", "--label", "region"), "needs a price"),
        ((*COMMON, "--report", "page.html"), "--fairness"),
        ((*COMMON, "--fairness", "region", "--report", "page.txt"), "HTML"),
        ((*COMMON, "--output", "people.parquet"), "the data of table"),
        ((*COMMON, "--fairness", "age", "--yes"), "is a number"),
        ((*COMMON, "--features", "name", "--yes"), "no declared bounds"),
        ((*COMMON[:-1], "50", "--yes"), "budget"),
        ((*COMMON, "--weight", "region=east:3", "--yes"), "one of its declared values"),
        (("train", "linear", *COMMON[2:4], "--label", "age", "-e", "1", "--fairness", "region"), "classes"),
        ((*COMMON[:2], *COMMON[4:]), "which of the private tables"),
        (("predict", "nothing.json", "regions.csv"), "the model cannot be read: nothing.json"),
        (("predict", "regions.csv", "nothing.csv"), "the rows cannot be read: nothing.csv"),
        (("predict", "model.json", "people.parquet"), "the data of table `people`"),
    ],
)
def test_what_cannot_be_is_refused_before_the_charge(
    folder: Path, arguments: tuple[str, ...], message: str
) -> None:
    before = spent(folder)
    refused = sfumato(folder, *arguments)
    assert refused.returncode != 0 and message in refused.stderr
    assert spent(folder) == before


def test_an_additive_model_is_trained_shown_and_used(folder: Path) -> None:
    given = ("train", "additive", *COMMON[2:])
    refused = sfumato(folder, *given, "--weight", "region=South:2", "--yes")
    assert refused.returncode != 0 and "not for additive models" in refused.stderr
    done = sfumato(folder, *given, "--output", "curves.json", "--yes")
    assert done.returncode == 0, done.stderr
    (folder / "rows.csv").write_text("age\n30\n60\n")
    predicted = sfumato(folder, "predict", "curves.json", "rows.csv")
    assert predicted.returncode == 0 and len(predicted.stdout.split()) == 3, predicted.stderr
