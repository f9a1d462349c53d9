"""GoogleSQL as printed: how many of Google's documented examples and compliance queries are answered.

    GOOGLESQL=path/to/zetasql python bench/googlesql.py [--all]

reads them from a checkout (or a bare repository) of github.com/google/zetasql, and keeps none. Their tables
have a handful of units, so each unit is there CLONES times, under names of its own; a budget of a huge
epsilon answers with hardly any noise. Values are compared with those that Google prints: averages as they
are, counts and sums in relation to the number of clones.
"""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import sfumato as sf
from sfumato.errors import SfumatoError

CLONES = 200
PAGES = ("docs/differential-privacy.md", "docs/aggregate-dp-functions.md", "docs/query-syntax.md")
COMPLIANCE = "zetasql/compliance/testdata/differential_privacy.test"
BUDGET = sf.Budget(epsilon=10**24, delta=0.95, keys_delta=0.9)

_PROFESSORS = [
    (101, "pencil", 24), (123, "pen", 16), (123, "pencil", 10), (123, "pencil", 38), (101, "pen", 19),
    (101, "pen", 23), (130, "scissors", 8), (150, "pencil", 72),
]  # fmt: skip
_STUDENTS = [(1, "pencil", 5), (1, "pen", 2), (2, "pen", 1), (3, "pen", 4)]
_BLOCK = re.compile(r"```zetasql[^\n]*\n(.*?)```", re.DOTALL)
_CLAUSE = re.compile(r"SELECT\s+WITH\s+DIFFERENTIAL_PRIVACY")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One query, whether Google refuses it, and the numbers that Google prints for it, row by row."""

    name: str
    text: str
    refused: bool
    rows: tuple[tuple[Any, ...], ...] = ()


def documented(checkout: str) -> list[Example]:
    """Return the examples of the documentation that have the privacy clause."""
    found = []
    for page in PAGES:
        for block in _BLOCK.findall(_read(checkout, page)):
            if _CLAUSE.search(block) is None:
                continue
            text = re.sub(r"/\*.*?\*/", "", block, flags=re.DOTALL).replace("{{USERNAME}}.", "")
            exact = "1e20" in text
            rows = [line.split("|")[1:-1] for line in block.splitlines() if re.match(r"\s*\| ", line)]
            values = tuple(tuple(_value(cell.strip()) for cell in row) for row in rows[1:]) if exact else ()
            name = f"{Path(page).stem} {len(found) + 1}"
            found.append(Example(name=name, text=text, refused="produces an error" in block, rows=values))
    return found


def compliance(checkout: str) -> list[Example]:
    """Return the compliance queries."""
    found = []
    for part in re.split(r"^==\s*$", _read(checkout, COMPLIANCE), flags=re.MULTILINE):
        name = re.search(r"\[name=(.*?)\]", part)
        if name is None:
            continue
        asked, _, answer = part.partition("\n--")
        text = "\n".join(line for line in asked.splitlines() if not re.match(r"\s*(\[|#|$)", line))
        body = answer.partition("]\n")[0].partition(">>[")[2]
        # reports show their noise, and numbers of units grow with the clones: neither is compared
        compared = '"' not in body and "{{" not in body and "min_privacy_units" not in text
        rows = re.findall(r"\{([^{}]*)\}", body) if compared else []
        values = tuple(tuple(_value(cell.strip()) for cell in row.split(",")) for row in rows)
        found.append(Example(name=name[1], text=text, refused="ERROR:" in answer, rows=values))
    return found


def _read(checkout: str, path: str) -> str:
    shown = subprocess.run(
        ["git", "-C", checkout, "show", f"HEAD:{path}"], capture_output=True, text=True, check=True
    )
    return shown.stdout


def _value(cell: str) -> Any:
    if cell == "NULL":
        return None
    if cell in ("true", "false"):
        return cell == "true"
    return float(cell) if _NUMBER.fullmatch(cell) else cell


# -- tables ---------------------------------------------------------------------------------


def _cloned(rows: list[tuple[Any, ...]], names: tuple[str, ...], unit: str) -> pa.Table:
    place = names.index(unit)
    many = [
        tuple(clone * 1000 + value if at == place else value for at, value in enumerate(row))
        for clone in range(CLONES)
        for row in rows
    ]
    types = {"item": pa.string(), "column_a": pa.string(), "double_val": pa.float64()}
    columns = {name: [row[at] for row in many] for at, name in enumerate(names)}
    return pa.table({name: pa.array(each, types.get(name, pa.int64())) for name, each in columns.items()})


def shop() -> sf.Database:
    """Return the tables of the documentation."""
    names = ("id", "item", "quantity")
    professors, students = _cloned(_PROFESSORS, names, "id"), _cloned(_STUDENTS, names, "id")
    other = _cloned([(1, "a", 1), (2, "a", 2), (3, "b", 3)], ("id", "column_a", "column_b"), "id")
    tables = {
        "professors": professors,
        "view_on_professors": professors,
        "students": students,
        "view_on_students": students,
        "table_a": other,
    }
    return sf.connect(tables, unit="id", budget=BUDGET)


def laboratory(checkout: str) -> sf.Database:
    """Return the tables of the compliance queries."""
    private: dict[str, Any] = {}
    public: dict[str, Any] = {}
    for name, body in re.findall(
        r"CREATE TABLE (\w+).*?ARRAY<STRUCT<(.*?)\]\n==", _read(checkout, COMPLIANCE), re.DOTALL
    ):
        columns = tuple(re.findall(r"(\w+) (?:INT64|DOUBLE)", body.partition(">>")[0]))
        rows = [
            tuple(_value(cell.strip()) for cell in row.split(",")) for row in re.findall(r"\{(.*?)\}", body)
        ]
        typed = [
            tuple(
                value if value is None or column == "double_val" else int(value)
                for value, column in zip(row, columns, strict=True)
            )
            for row in rows
        ]
        if "uid" in columns:
            private[name] = _cloned(typed, columns, "uid")
        else:
            public[name] = pa.table({name: [row[at] for row in typed] for at, name in enumerate(columns)})
    return sf.connect(private, unit="uid", public=public, budget=BUDGET)


# -- answers --------------------------------------------------------------------------------


def outcome(example: Example, database: sf.Database) -> str:
    """Return what became of an example: answered, refused as by Google, or refused."""
    try:
        release = database.sql(example.text).release()
        if not example.rows:
            return "answered"
        if _agree(example.rows, release.rows):
            return "answered, with Google's values"
        wider = re.sub(r"(max_groups_contributed\s*=\s*)1\b", r"\g<1>2", example.text)
        if wider != example.text and _agree(example.rows, database.sql(wider).release().rows):
            return "answered, with a cap that keeps all groups with Google's values"  # which ignore it
    except SfumatoError as error:
        return f"refused, as by Google: {error.message}" if example.refused else f"refused: {error.message}"
    return f"answered with other values: {release.rows}"


def _agree(expected: tuple[tuple[Any, ...], ...], found: tuple[tuple[Any, ...], ...]) -> bool:
    rows = list(found)
    for row in expected:
        match = next((one for one in rows if len(one) == len(row) and all(map(_same, row, one))), None)
        if match is None:
            return False
        rows.remove(match)
    return not rows


def _same(expected: Any, found: Any) -> bool:
    if not isinstance(expected, float) or isinstance(found, (bool, str)) or found is None:
        return bool(expected == found)
    return any(math.isclose(expected, float(found) / by, rel_tol=2e-3, abs_tol=2e-3) for by in (1, CLONES))


def main(arguments: list[str]) -> None:
    """Print how many are answered, and why the others are not."""
    checkout = os.environ.get("GOOGLESQL")
    if checkout is None:
        sys.exit("set GOOGLESQL to a checkout of github.com/google/zetasql")
    lists = (("documented examples", documented(checkout), shop()),)
    lists += (("compliance queries", compliance(checkout), laboratory(checkout)),)
    for title, examples, database in lists:
        outcomes = [(example, outcome(example, database)) for example in examples]
        answered = sum(said.startswith("answered") for _, said in outcomes)
        agreed = sum(said.startswith("refused, as by Google") for _, said in outcomes)
        same = sum(said == "answered, with Google's values" for _, said in outcomes)
        wider = sum("cap that keeps all groups" in said for _, said in outcomes)
        other = sum("other values" in said for _, said in outcomes)
        lenient = sum(example.refused and said.startswith("answered") for example, said in outcomes)
        print(f"{title}: {answered} of {len(examples)} answered, {lenient} of them refused by Google;")
        print(f"  {agreed} refused as by Google, {len(examples) - answered - agreed} refused;")
        print(
            f"  values: {same} as Google's, {wider} with a cap of 2 for 1, {other} other, others not compared"
        )
        for example, said in outcomes:
            expected = said == "answered" or said.startswith(("answered, with", "refused, as"))
            if "--all" in arguments or not expected:
                print(f"  {example.name}: {said[:200]}")


if __name__ == "__main__":
    main(sys.argv[1:])
