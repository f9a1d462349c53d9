"""Asking from the command line: answers, formats, prices, keys, exit codes and errors that programs read."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sfumato.backends.duckdb import by_unit
from sfumato.cli.exits import EXITS, exit_of
from sfumato.errors import (
    BudgetExceeded,
    EngineFailure,
    InvalidArgument,
    LedgerError,
    QueryRefused,
    Unsupported,
)
from tests.cli.programs import CANARY, PROJECT, destroy_values, make_project, program, sfumato

COUNT = "SELECT COUNT(*) AS n FROM people"
REGIONS = "SELECT region, COUNT(*) AS n, AVG(age) AS age FROM people GROUP BY region ORDER BY region"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("asking")
    make_project(home)
    return home


def budget(folder: Path) -> dict[str, object]:
    shown = sfumato(folder, "budget", "--format", "json")
    assert shown.returncode == 0, shown.stderr
    record: dict[str, object] = json.loads(shown.stdout)
    return record


def test_one_question_as_text_a_file_and_standard_input_in_every_format(folder: Path) -> None:
    """The same key makes it one answer and one charge, so formats can be compared."""
    same = ("--epsilon", "0.2", "--key", "formats")
    (folder / "question.sql").write_text(f"{REGIONS};\n")
    first = program(folder, "query", REGIONS, *same, "--format", "json")
    assert first.returncode == 0 and first.stderr == "", first.stderr
    answer = json.loads(first.stdout)
    assert answer["columns"] == ["region", "n", "age"] and len(answer["rows"]) == 2
    assert answer["cost"]["epsilon"] == 0.2 and answer["receipt"]["unit"] == "person"
    spent = budget(folder)["spent"]

    shown = sfumato(folder, "query", "question.sql", *same)
    assert f"{answer['rows'][0]['n']} ±" in shown.stdout and "\x1b" not in shown.stdout
    read = program(folder, "query", "-", *same, "--format", "csv", given=REGIONS)
    rows = list(csv.DictReader(io.StringIO(read.stdout)))
    assert [int(row["n"]) for row in rows] == [row["n"] for row in answer["rows"]]
    assert [int(rows[0]["n_low"]), int(rows[0]["n_high"])] == answer["intervals"]["n"][0]
    marked = sfumato(folder, "query", REGIONS, *same, "--format", "markdown").stdout
    assert marked.startswith("| region | n | age |\n| --- | ---: | ---: |\n| north | ")
    kept = sfumato(folder, "query", REGIONS, *same, "--format", "parquet", "--output", "answer.parquet")
    assert kept.stdout == "" and "answer.parquet" in kept.stderr
    table = pq.read_table(folder / "answer.parquet")
    assert table.column("n").to_pylist() == [row["n"] for row in answer["rows"]]
    assert budget(folder)["spent"] == spent, "a key is charged once"


def test_dry_run_and_explain_spend_nothing_and_agree(tmp_path: Path) -> None:
    make_project(tmp_path)
    before = (tmp_path / "people.ledger").read_bytes()
    dry = sfumato(tmp_path, "query", COUNT, "--epsilon", "0.5", "--dry-run", "--format", "json")
    explained = sfumato(tmp_path, "explain", COUNT, "--epsilon", "0.5", "--format", "json")
    assert dry.returncode == explained.returncode == 0
    price = json.loads(dry.stdout)["price"]
    assert price == json.loads(explained.stdout)["price"]
    assert price["times"] > 3 and 0 < price["share_of_budget"] < 0.3 and "±" in price["errors"]["n"]
    assert "one unit can change" in json.loads(explained.stdout)["explanation"]
    assert not budget(tmp_path)["begun"], "looking at prices does not fix the budget"
    assert (tmp_path / "people.ledger").read_bytes() == before


def test_an_error_instead_of_epsilon(folder: Path) -> None:
    asked = sfumato(folder, "query", COUNT, "--error", "60", "--format", "json")
    assert asked.returncode == 0, asked.stderr
    [[low, high]] = json.loads(asked.stdout)["intervals"]["n"]
    assert high - low <= 120
    both = sfumato(folder, "query", COUNT, "--error", "60", "--epsilon", "1")
    neither = sfumato(folder, "query", COUNT)
    assert both.returncode == neither.returncode == 2


def test_how_many_more_fit_is_how_many_more_fit(tmp_path: Path) -> None:
    make_project(tmp_path)
    assert sfumato(tmp_path, "query", COUNT, "--epsilon", "1.2").returncode == 0
    times = budget(tmp_path)["last"]["times"]  # type: ignore[index]
    assert 0 < times < 10
    answered = 0
    while (asked := sfumato(tmp_path, "query", COUNT, "--epsilon", "1.2")).returncode == 0:
        answered += 1
    assert answered == times and asked.returncode == 4
    assert budget(tmp_path)["last"]["times"] == 0  # type: ignore[index]
    dry = sfumato(tmp_path, "query", COUNT, "--epsilon", "1.2", "--dry-run")
    assert dry.returncode == 4 and "does not fit" in dry.stdout


@pytest.mark.parametrize(
    ("arguments", "exit_code", "code"),
    [
        (("query", "SELECT name FROM people", "-e", "0.1"), 3, "SF404"),
        (("query", "SELECT COUNT(*) FROM people WHERE nome = 'x'", "-e", "0.1"), 3, "SF402"),
        (("explain", "DROP TABLE people", "-e", "0.1"), 3, "SF407"),
        (("query", COUNT, "-e", "40"), 4, "SF301"),
        (("query", COUNT, "-e", "-1"), 2, "SF101"),
        (("query", COUNT, "-e", "many"), 2, "SF101"),
        (("query", COUNT, "--nonsense"), 2, "SF101"),
        (("query", COUNT, "-e", "0.1", "--key", "formats"), 5, "SF606"),
        (("query", "nothing.sql", "-e", "0.1"), 2, "SF101"),
        (("query", COUNT, "-e", "0.1", "--output", "no/such/folder.csv"), 2, "SF101"),
        (("query", COUNT, "-e", "0.1", "--project", "other.toml"), 2, "SF701"),
        (("nonsense",), 2, "SF101"),
    ],
)
def test_refusals_have_stable_exits_and_are_json_on_request(
    folder: Path, arguments: tuple[str, ...], exit_code: int, code: str
) -> None:
    if "formats" in arguments:  # somebody else's request has this key
        sfumato(folder, "query", REGIONS, "--epsilon", "0.2", "--key", "formats")
    asked = sfumato(folder, *arguments, "--json-errors")
    assert asked.returncode == exit_code, asked.stderr
    assert asked.stdout == ""
    error = json.loads(asked.stderr)["error"]
    assert error["code"] == code and error["exit"] == exit_code
    assert {"code", "message", "place", "hints"} <= set(error)
    if code in ("SF402", "SF404"):
        assert error["text"][error["start"] : error["end"]]
    if code == "SF301":
        assert {"requested", "remaining"} <= set(error)


def test_errors_are_text_unless_asked_and_json_with_a_json_answer(folder: Path) -> None:
    asked = ("query", "SELECT nope FROM people", "-e", "0.1")
    text = sfumato(folder, *asked).stderr
    assert text.startswith("error[SF402]") and "^^^^" in text and "Traceback" not in text
    assert json.loads(sfumato(folder, *asked, "--format", "json").stderr)["error"]["code"] == "SF402"


def test_an_engine_that_fails_burns_the_cost_and_tells_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the engine says when it fails may quote the data."""

    def broken(*given: object, **named: object) -> None:
        raise RuntimeError(f"a private value: {CANARY}")

    make_project(tmp_path)
    monkeypatch.setattr(by_unit, "bound_contributions", broken)
    asked = sfumato(tmp_path, "query", REGIONS, "-e", "0.5", "--json-errors")
    assert asked.returncode == 6, asked.stderr
    assert json.loads(asked.stderr)["error"]["code"] == "SF501" and CANARY not in asked.stderr + asked.stdout
    assert float(budget(tmp_path)["spent"]) > 0  # type: ignore[arg-type]


def test_a_damaged_file_is_refused_before_any_charge(tmp_path: Path) -> None:
    """The pages are damaged, the schema is whole: whether a question reaches a page must not be told."""
    make_project(tmp_path)
    destroy_values(tmp_path / "people.parquet")
    asked = sfumato(tmp_path, "query", REGIONS, "-e", "0.5", "--json-errors")
    assert asked.returncode == 2, asked.stderr
    assert json.loads(asked.stderr)["error"]["code"] == "SF706"
    assert float(budget(tmp_path)["spent"]) == 0  # type: ignore[arg-type]


def test_a_policy_is_kept(tmp_path: Path) -> None:
    make_project(tmp_path, PROJECT + "\n[policy]\nceiling = 0.3\n")
    refused = sfumato(tmp_path, "query", COUNT, "-e", "0.31", "--json-errors")
    assert refused.returncode == 3 and json.loads(refused.stderr)["error"]["code"] == "SF408"
    assert sfumato(tmp_path, "query", COUNT, "-e", "0.31", "--dry-run").returncode == 3
    assert sfumato(tmp_path, "query", COUNT, "-e", "0.3").returncode == 0


def test_a_ledger_that_is_gone_is_not_begun_afresh(tmp_path: Path) -> None:
    make_project(tmp_path, ledger=False)
    for command in (("query", COUNT, "-e", "0.1"), ("budget",), ("ledger", "verify")):
        refused = sfumato(tmp_path, *command)
        assert refused.returncode == 5 and "ledger create" in refused.stderr
    assert not (tmp_path / "people.ledger").exists()
    assert sfumato(tmp_path, "ledger", "create").returncode == 0
    assert sfumato(tmp_path, "query", COUNT, "-e", "0.1").returncode == 0
    assert sfumato(tmp_path, "ledger", "create").returncode == 5


@pytest.mark.parametrize(
    ("arguments", "exit_code"),
    [
        (("query", COUNT, "-e", "0.01"), 0),
        (("query", COUNT), 2),
        (("query", "SELECT * FROM people", "-e", "0.1"), 3),
        (("query", COUNT, "-e", "40"), 4),
        (("ledger", "verify", "--ledger", "question.ledger"), 5),
    ],
)
def test_a_fresh_process_ends_with_the_same_exits(
    folder: Path, arguments: tuple[str, ...], exit_code: int
) -> None:
    done = program(folder, *arguments)
    assert done.returncode == exit_code and "Traceback" not in done.stderr, done.stderr


def test_every_error_has_an_exit() -> None:
    zero = {"requested": 1, "remaining": 0}
    errors = {
        2: InvalidArgument("x"),
        3: QueryRefused("x", code="SF404", text="x"),
        4: BudgetExceeded("x", **zero),  # type: ignore[arg-type]
        5: LedgerError("x", code="SF601"),
        6: EngineFailure(),
    }
    assert {exit_of(error): error for error in errors.values()} == errors
    assert exit_of(Unsupported("x")) == 3
    assert set(EXITS) == {0, 1, 130, *errors}


def test_no_private_value_is_ever_seen(folder: Path) -> None:
    """The canary is a value of a private column; asking about it in every wrong way shows it nowhere."""
    asked = [
        "SELECT CAST(name AS INTEGER) AS x, COUNT(*) FROM people GROUP BY x",
        "SELECT name, COUNT(*) AS n FROM people GROUP BY name",
        "SELECT MAX(name) FROM people",
        "SELECT SUM(CAST(name AS INTEGER)) FROM people",
    ]
    for sql in asked:
        for command in (("query",), ("query", "--dry-run"), ("explain",)):
            done = sfumato(folder, *command, sql, "-e", "0.05", "--json-errors")
            assert CANARY not in done.stdout + done.stderr
    for command in (("budget",), ("ledger", "history"), ("check",), ("ledger", "verify")):
        done = sfumato(folder, *command)
        assert done.returncode == 0 and CANARY not in done.stdout + done.stderr


def test_groups_are_selected_on_demand(folder: Path) -> None:
    declared = sfumato(folder, "explain", REGIONS, "--epsilon", "0.2")
    selected = sfumato(folder, "explain", REGIONS, "--epsilon", "0.2", "--selected")
    assert "2 declared" in declared.stdout and "selected privately" in selected.stdout


def test_an_answer_is_drawn_into_a_file(tmp_path: Path) -> None:
    make_project(tmp_path)
    asked = ("query", "SELECT region, COUNT(*) AS n FROM people GROUP BY region", "-e", "0.5")
    spent = (tmp_path / "people.ledger").read_bytes() if (tmp_path / "people.ledger").exists() else b""
    for wrong in ("n.pdf", "nowhere/n.svg", "people.parquet"):
        refused = sfumato(tmp_path, *asked, "--plot", wrong, "--json-errors")
        assert refused.returncode == 2, refused.stderr
    assert ((tmp_path / "people.ledger").read_bytes() if spent else b"") == spent
    done = sfumato(tmp_path, *asked, "--plot", "n.svg", "-o", "n.csv")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "n.svg").read_text().startswith("<svg")
    assert (tmp_path / "n.csv").read_text().startswith("region,n,")
    dry = sfumato(tmp_path, *asked, "--plot", "other.svg", "--dry-run")
    assert dry.returncode == 0 and not (tmp_path / "other.svg").exists()
