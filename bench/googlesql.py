"""GoogleSQL as printed: how many of Google's compliance queries are answered, and with which values.

    GOOGLESQL=path/to/zetasql python bench/googlesql.py [--all]
    GOOGLESQL=path/to/zetasql python bench/googlesql.py --check    fail unless docs/googlesql.md says so, too

reads them from a checkout (or a bare repository) of github.com/google/zetasql, and keeps none. Their tables
have a handful of units, so each unit is there CLONES times, under names of its own; a budget of a huge
epsilon answers with hardly any noise. Answers to compliance queries are compared with those that Google
prints: counts and sums are CLONES times as large, averages and the like are the same; of the least number of
units in a group CLONES times as many are asked for. The documented examples are read by `--check` alone:
`tests/engine/test_googlesql_examples.py` asks them, and compares what they mean.
"""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import sfumato as sf
from sfumato.errors import SfumatoError

PAGE = Path(__file__).parent.parent / "docs" / "googlesql.md"
CLONES = 200
PAGES = ("docs/differential-privacy.md", "docs/aggregate-dp-functions.md", "docs/query-syntax.md")
COMPLIANCE = "zetasql/compliance/testdata/differential_privacy.test"
BUDGET = sf.Budget(epsilon=10**24, delta=0.95, keys_delta=0.9)

_BLOCK = re.compile(r"```zetasql[^\n]*\n(.*?)```", re.DOTALL)
_CLAUSE = re.compile(r"SELECT\s+WITH\s+DIFFERENTIAL_PRIVACY")
_PREFIX = "differential_privacy_"
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_REPORT = re.compile(
    r'"confidence_level":0.95,"lower_bound":([^,]+),"upper_bound":([^}]+)\}(?:,"value":([^}]+)\})?'
    r"|(?:_value: (\S+)\s+noise_confidence_interval \{\s+)?lower_bound: (\S+)\s+upper_bound: (\S+)"
)
_AGGREGATE = re.compile(r"\b(COUNT|SUM|AVG|VAR_POP|STDDEV_POP|PERCENTILE_CONT|APPROX_QUANTILES)\(")
_LEAST = re.compile(r"(min_privacy_units_per_group=)(\d+)")

Rows = tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One query, whether Google refuses it, and what Google prints for it, row by row, if it does."""

    name: str
    text: str
    refused: bool
    rows: Rows | None = None


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
            values = tuple(tuple(_value(cell.strip()) for cell in row) for row in rows[1:]) if exact else None
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
        refused = "ERROR:" in answer
        rows = None if refused else _printed(answer.partition("\nNOTE")[0].partition(">>")[2])
        found.append(Example(name=name[1].removeprefix(_PREFIX), text=text, refused=refused, rows=rows))
    return found


def _printed(body: str) -> Rows:
    """Return the rows that are printed; a report is its value, if any, and the ends of its interval."""
    found = _REPORT.findall(body)
    if not found:
        plain = re.findall(r"\{([^{}]*)\}", body)
        return tuple(tuple(_value(cell.strip()) for cell in row.split(",")) for row in plain)
    reports = [(right or value, low or first, high or last) for low, high, right, value, first, last in found]
    cells = [tuple(float(part) for part in report if part) for report in reports]
    keys = re.findall(r"\{\s*(\d+),\s", body)
    return tuple(zip(map(float, keys), cells, strict=True)) if keys else tuple((cell,) for cell in cells)


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
    types = {"double_val": pa.float64()}
    columns = {name: [row[at] for row in many] for at, name in enumerate(names)}
    return pa.table({name: pa.array(each, types.get(name, pa.int64())) for name, each in columns.items()})


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
    """Return what became of an example: answered, with which values, or refused."""
    text = _LEAST.sub(lambda found: f"{found[1]}{int(found[2]) * CLONES - CLONES // 2}", example.text)
    try:
        release = database.sql(text).release()
    except SfumatoError as error:
        return f"refused, as by Google: {error.message}" if example.refused else f"refused: {error.message}"
    if example.refused:
        return "answered, and refused by Google"
    if _agree(example, release.rows):
        return "answered with Google's values"
    return f"answered with other values: {release.rows}"


def _agree(example: Example, found: Rows) -> bool:
    rows = [tuple(map(_cell, row)) for row in found]
    scales = [CLONES if name in ("COUNT", "SUM") else 1 for name in _shown(example.text)]
    for row in example.rows or ():
        each = [1] * (len(row) - len(scales)) + scales  # keys come first
        match = next((one for one in rows if len(one) == len(row) and all(map(_same, row, one, each))), None)
        if match is None:
            return False
        rows.remove(match)
    return not rows


def _shown(text: str) -> list[str]:
    """Return the aggregates of the outermost SELECT list."""
    return _AGGREGATE.findall(text.partition("FROM")[0])


def _cell(cell: Any) -> Any:
    """Return a report as its value, if it has one, and the ends of its interval."""
    if not (isinstance(cell, str) and cell.startswith("{")):
        return cell
    report = json.loads(cell)
    report = report.get("result", report.get("value", report))
    interval = report.get("noise_confidence_interval", report)
    values = [report[name] for name in ("value", "int_value", "float_value") if name in report]
    return (*values, interval["lower_bound"], interval["upper_bound"])


def _same(expected: Any, found: Any, scale: int) -> bool:
    """Whether a value is the one that is printed, `scale` times; the ends of intervals do not scale."""
    if isinstance(expected, tuple):
        scales = (scale, 1, 1)[-len(expected) :]
        return len(found) == len(expected) and all(map(_same, expected, found, scales))
    if not isinstance(expected, float) or isinstance(found, (bool, str)) or found is None:
        return bool(expected == found)
    return math.isclose(expected * scale, float(found), rel_tol=5e-3, abs_tol=5e-3)


def main(arguments: list[str]) -> None:
    """Print how many are answered with Google's values, and why the others are not."""
    checkout = os.environ.get("GOOGLESQL")
    if checkout is None:
        sys.exit("set GOOGLESQL to a checkout of github.com/google/zetasql")
    database, examples = laboratory(checkout), compliance(checkout)
    outcomes = {example.name: outcome(example, database) for example in examples}
    print(f"{len(outcomes)} compliance queries")
    for kind, many in Counter(said.partition(":")[0] for said in outcomes.values()).items():
        print(f"  {many} {kind}")
    for name, said in outcomes.items():
        if "--all" in arguments or _is_unlike_google(said):
            print(f"  {name}: {said[:200]}")
    if "--check" in arguments:
        check_page(outcomes)
        check_examples(checkout)


def _is_unlike_google(said: str) -> bool:
    return said.startswith(("refused:", "answered with other"))


# -- what this project says of them ---------------------------------------------------------


def check_page(outcomes: dict[str, str]) -> None:
    """Fail unless the page has these numbers, and names each query that is not answered as Google does."""
    kinds = Counter(said.partition(":")[0] for said in outcomes.values())
    answered = sum(many for kind, many in kinds.items() if kind.startswith("answered"))
    same = kinds["answered with Google's values"]
    page = " ".join(PAGE.read_text().split())
    numbers = (
        f"Of {len(outcomes)} compliance queries {answered} are answered,"
        f" {kinds['answered, and refused by Google']} of which Google refuses."
        f" {same} have Google's values and"
        f" {kinds['answered with other values']} other ones. Refused are"
        f" {kinds['refused, as by Google']} that Google refuses, too, and {kinds['refused']} others"
    )
    unnamed = [name for name, said in outcomes.items() if _is_unlike_google(said) and f"`{name}`" not in page]
    if numbers not in page or unnamed:
        sys.exit(f"docs/googlesql.md does not say: {numbers}; nor does it name {unnamed}")


def check_examples(checkout: str) -> None:
    """Fail unless the examples of our tests are those that Google prints."""
    sys.path.insert(0, str(Path(__file__).parent.parent))
    from tests.engine.google_examples import EXAMPLES, REFUSED

    ours = {one.number: (one.text, dict(one.printed or {})) for one in EXAMPLES}
    ours |= {number: (text, {}) for number, text in REFUSED.items()}
    printed = dict(enumerate(documented(checkout), start=1))
    if sorted(ours) != sorted(printed):
        sys.exit("the examples of our tests have other numbers than those that Google prints")
    for number, (text, values) in ours.items():
        theirs, mine = _plain(printed[number].text), _plain(text)
        whole = number in REFUSED and number != 38  # of which the SELECT alone is asked
        if not (theirs == mine if whole else theirs.endswith(mine)):
            sys.exit(f"example {number} is printed otherwise")
        if number not in REFUSED and dict(printed[number].rows or {}) != values:
            sys.exit(f"example {number} is printed with other values")


def _plain(text: str) -> str:
    """Return a text without comments and blanks."""
    return re.sub(r"--[^\n]*|\s", "", text)


if __name__ == "__main__":
    main(sys.argv[1:])
