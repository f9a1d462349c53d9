"""`sfumato anonymity`: what it says, what it writes, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from sfumato.anonymity import measure
from tests.cli.programs import CANARY, program, sfumato

HIERARCHIES = """\
[age]
intervals = [10, 20]
high = 120
[town.tree]
north = ["a", "b"]
south = ["c", "d"]
"""
AGE = ("people.parquet", "-q", "age", "-o", "o.csv")
ILL = (*AGE, "-s", "ill")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    draw = np.random.default_rng(4)
    columns = {
        "person": [CANARY if number == 17 else f"person {number}" for number in range(600)],
        "age": draw.integers(18, 90, 600),
        "town": draw.choice(list("abcd"), 600),
        "ill": draw.choice(["flu", "cold", "gout"], 600),
    }
    pq.write_table(pa.table(columns), tmp_path / "people.parquet")
    pq.write_table(pa.table(columns).slice(0, 0), tmp_path / "empty.parquet")
    (tmp_path / "h.toml").write_text(HIERARCHIES)
    return tmp_path


def measured(*more: str) -> tuple[str, ...]:
    return ("anonymity", "measure", "people.parquet", "--quasi", "age,town", *more)


def reached(*more: str) -> tuple[str, ...]:
    return ("anonymity", "reach", "people.parquet", "--quasi", "age, town", *more)


def test_measuring_says_what_the_table_gives_away(folder: Path) -> None:
    done = sfumato(folder, *measured("--sensitive", "ill"))
    assert done.returncode == 0, done.stderr
    assert "600 rows, told apart by age, town" in done.stdout and "entropy l" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("For the owner") and CANARY not in done.stdout
    as_json = json.loads(sfumato(folder, *measured("--format", "json", "--risk", "0.5")).stdout)
    found = measure(folder / "people.parquet", ["age", "town"], risk=0.5)
    assert as_json == json.loads(json.dumps(found.to_dict()))


@pytest.mark.parametrize("output", ["out.parquet", "out.csv"])
@pytest.mark.parametrize("method", ["mondrian", "recoding"])
def test_reaching_writes_a_table_that_is_as_wanted(folder: Path, output: str, method: str) -> None:
    more = ["--hierarchies", "h.toml", "--suppress", "0.1"] if method == "recoding" else []
    wanted = ("--k", "6", "--l", "2", "--t", "0.5", "--sensitive", "ill", "--method", method, *more)
    done = sfumato(folder, *reached(*wanted, "--output", output))
    assert done.returncode == 0, done.stderr
    assert f"generalised by {method}, to reach k = 6, l = 2, t = 0.5" in done.stdout
    assert "nor a release" in done.stdout
    path = folder / output
    table = pq.read_table(path) if output.endswith("parquet") else pyarrow.csv.read_csv(path)
    assert table.column_names == ["age", "town", "ill"] and table.num_rows >= 540
    found = measure(table, ["age", "town"], sensitive="ill")
    assert found.k >= 6 and found.diversity[0].distinct_l >= 2 and found.diversity[0].t <= 0.5
    assert CANARY.encode() not in path.read_bytes()
    assert not list(folder.glob(".sfumato-*"))


def test_a_page_holds_the_report_and_pictures(folder: Path) -> None:
    assert sfumato(folder, *measured("--html", "before.html")).returncode == 0
    done = sfumato(folder, *reached("--k", "5", "-o", "out.csv", "--html", "after.html", "-f", "json"))
    assert done.returncode == 0 and json.loads(done.stdout)["after"]["k"] >= 5
    assert (folder / "before.html").read_text().count("<svg") == 2
    page = (folder / "after.html").read_text()
    assert page.count("<svg") == 3 and "nor a release" in page and CANARY not in page


@pytest.mark.parametrize(
    ("words", "place", "says"),
    [
        (("measure", "people.parquet", "-q", "age,no"), "no", "no column `no`"),
        (("measure", "none.parquet", "-q", "age"), "none.parquet", "no file"),
        (("measure", "empty.parquet", "-q", "age"), "table", "no rows"),
        (("measure", "people.parquet", "-q", ""), "quasi", "no quasi-identifiers"),
        (("measure", "people.parquet", "-q", "age", "-s", "age"), "age", "named twice"),
        (("measure", "people.parquet", "-q", "age", "--risk", "7"), "risk", "between 0 and 1"),
        (("measure", "people.parquet", "-q", "age", "--html", "no/such.html"), "--html", "written"),
        (("reach", *AGE, "--k", "0"), "k", "at least 1"),
        (("reach", *AGE, "--k", "601"), "k", "more than the table"),
        (("reach", "empty.parquet", "-q", "age", "-o", "o.csv"), "table", "no rows"),
        (("reach", *AGE, "--l", "2"), "sensitive", "none is named"),
        (("reach", *ILL, "--l", "4"), "l", "more than"),
        (("reach", *ILL, "--t", "2"), "t", "[0, 1]"),
        (("reach", *ILL, "--entropy-l", "3"),
         "entropy_l", "as a whole"),
        (("reach", "people.parquet", "-q", "age", "-o", "o.xlsx"), "--output", ".parquet or .csv"),
        (("reach", "people.parquet", "-q", "age", "-o", "no/o.csv"), "--output", "written"),
        (("reach", *AGE, "--suppress", "0.1"), "suppress", "Mondrian"),
        (("reach", *AGE, "--hierarchies", "n.toml"), "n.toml", "read"),
        (("reach", *AGE, "--hierarchies", "h.toml"), "town", "no quasi"),
        (("reach", "people.parquet", "-q", "age,person", "-o", "o.csv", "--hierarchies", "p.toml"), "person",
         "does not cover"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(folder: Path, words: tuple[str, ...], place: str, says: str) -> None:
    (folder / "p.toml").write_text('[person.tree]\nsomebody = ["person 1"]\n')
    done = sfumato(folder, "anonymity", *words, "--json-errors")
    assert done.returncode == 2 and done.stdout == ""
    error: dict[str, Any] = json.loads(done.stderr)["error"]
    assert error["place"] == place and says in error["message"]
    assert CANARY not in done.stderr and "Traceback" not in done.stderr
    assert not (folder / "o.csv").exists()


def test_a_fresh_process_does_the_same(folder: Path) -> None:
    done = program(folder, *measured())
    assert done.returncode == 0 and "600 rows" in done.stdout, done.stderr
    refused = program(folder, "anonymity", "measure", "people.parquet", "-q", "no")
    assert refused.returncode == 2 and refused.stderr.startswith("error[SF101]")
    assert "hint: it has person, age, town, ill" in refused.stderr


def test_texts_in_csv_are_no_formulas() -> None:
    from sfumato.cli.anonymity import _without_formulas

    table = pa.table({"name": ["=1+1", None, "x", "-2", "\tq"], "n": [-1, 2, 3, 4, 5]})
    assert _without_formulas(table).to_pydict() == {
        "name": ["'=1+1", None, "x", "'-2", "'\tq"],
        "n": [-1, 2, 3, 4, 5],
    }
