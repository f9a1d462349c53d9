"""Put SmartNoise's own lists of queries to this system, as they are written, and count what is answered.

    SMARTNOISE_SDK=/path/to/smartnoise-sdk python bench/smartnoise.py

The queries are read from a checkout of opendp/smartnoise-sdk: the texts in `sql/tests/**/test_*.py` that ask
for aggregates or groups, and the statements of `sql/tests/query/queries` that SmartNoise calls valid. The
tables they speak of are made here, of invented people. Each query is released, with noise, or refused;
docs/smartnoise.md says why for each that stays refused.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import sfumato as sf

CHECKOUT = "SMARTNOISE_SDK"
VALID = ("validate/valid", "validate_pums/validate_pums", "run/run", "rewrite/rewrites", "compare/compare")
PEOPLE = 400
BUDGET = sf.Budget(epsilon=1e6, delta=1e-3)


def written_in_tests(root: Path) -> list[str]:
    """Return the different queries of the Python tests that ask for aggregates or groups, in order."""
    found: dict[str, None] = {}
    for path in sorted((root / "sql" / "tests").rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        parts = {
            id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values
        }
        glued = {
            id(side)
            for node in ast.walk(tree)
            if isinstance(node, ast.BinOp)
            for side in (node.left, node.right)
        }
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and id(node) not in parts | glued
            ):
                text = " ".join(node.value.split())
                if _asks(text):
                    found[text] = None
    return list(found)


def _asks(text: str) -> bool:
    if not re.match(r"(SELECT|WITH)\s.*\sFROM\s", text, re.IGNORECASE):
        return False
    return (
        re.search(r"\b(COUNT|SUM|AVG|VAR|VARIANCE|STD|STDDEV)\s*\(|GROUP BY", text, re.IGNORECASE) is not None
    )


def called_valid(root: Path) -> Iterator[str]:
    """Yield the statements that SmartNoise validates, rewrites, runs or compares; comments are none."""
    for name in VALID:
        text = (root / "sql" / "tests" / "query" / "queries" / f"{name}.sql").read_text(encoding="utf-8")
        for statement in re.sub(r"--.*", "", text).split(";"):
            if statement.strip():
                yield " ".join(statement.split())


def databases() -> dict[str, sf.Database]:
    """Return the tables that the queries speak of, about invented people, by a table's name in lower case."""
    draw = np.random.default_rng(5)
    ages, choices = draw.integers(18, 90, PEOPLE), draw.integers
    person = {
        "pid": range(PEOPLE), "age": ages, "sex": choices(0, 2, PEOPLE), "educ": choices(1, 17, PEOPLE),
        "race": choices(1, 7, PEOPLE), "income": draw.gamma(2, 20_000, PEOPLE),
        "married": choices(0, 2, PEOPLE),
        "start_date": pd.Timestamp("2018-01-01") + pd.to_timedelta(choices(0, 3, PEOPLE), "D"),
        "start_time": draw.choice(["10:40:07", "11:30:06"], PEOPLE), "sales": draw.gamma(2, 500, PEOPLE),
    }  # fmt: skip
    frame = pd.DataFrame(person)
    bounds = {"age": sf.between(0, 100), "income": sf.between(0, 500_000), "sales": sf.between(0, 10_000)}
    device = {"DeviceID": range(PEOPLE)}
    crashes = pd.DataFrame(
        {**device, "Refurbished": choices(0, 2, PEOPLE) == 1, "Temperature": draw.uniform(25, 65, PEOPLE),
         "Building": draw.choice(["A", "B"], PEOPLE), "Region": draw.choice(["LATAM", "EMEA"], PEOPLE),
         "Crashes": choices(0, 10, PEOPLE)}
    )  # fmt: skip
    census = pd.DataFrame(
        {**device, "OEM": draw.choice(["x", "y"], PEOPLE), "Disk": choices(100, 9_000, PEOPLE)}
    )
    rollouts = pd.DataFrame({**device, "RolloutID": 1, "TrialGroup": choices(0, 2, PEOPLE)})
    store = {
        "Store": range(PEOPLE),
        "Date": pd.Timestamp("2012-02-03"),
        "IsHoliday": choices(0, 2, PEOPLE) == 1,
    }
    features = pd.DataFrame({**store, "Temperature": draw.uniform(-50, 99, PEOPLE), "Fuel_Price": 3.5})
    sales = pd.DataFrame({**store, "Weekly_Sales": draw.gamma(2, 9_000, PEOPLE)})
    words = pd.DataFrame({"author": range(PEOPLE), "ngram": draw.choice(["of the", "in a"], PEOPLE)})
    mine = pd.DataFrame({"id": range(PEOPLE), "age": ages, "person-age": ages})
    opened: list[tuple[dict[str, pd.DataFrame], str, dict[str, Any]]] = [
        ({"PUMS": frame}, "pid", {f"PUMS.{name}": one for name, one in bounds.items()}),
        ({"PUMS_null": frame}, "pid", {"PUMS_null.age": bounds["age"]}),
        (
            {"Crashes": crashes, "Census": census, "Rollouts": rollouts},
            "DeviceID",
            {"Crashes.Temperature": sf.between(25, 65), "Crashes.Crashes": sf.between(0, 10)},
        ),
        (
            {"features": features, "sales": sales},
            "Store",
            {
                "features.Temperature": sf.between(-50, 100),
                "features.Fuel_Price": sf.between(0, 10),
                "sales.Weekly_Sales": sf.between(0, 100_000),
            },
        ),
        ({"reddit": words}, "author", {}),
        ({"my-table": mine}, "id", {"my-table.age": bounds["age"]}),
    ]
    found: dict[str, sf.Database] = {}
    for tables, unit, columns in opened:
        database = sf.connect(tables, unit=unit, columns=columns, max_groups=1, max_rows=1, budget=BUDGET)
        found |= dict.fromkeys((name.lower() for name in tables), database)
    return found


def ask(text: str, known: dict[str, sf.Database]) -> str:
    """Return why a query is refused, nothing if it is answered."""
    named = re.findall(r"(?:FROM|JOIN)\s+\(*([\w.\"-]+)", text, re.IGNORECASE)
    tables = [one.lower().rpartition(".")[2].strip('"') for one in named]
    database = known[next((table for table in tables if table in known), "pums")]
    try:
        database.sql(text, epsilon=1, max_distinct=1).release()
    except sf.errors.SfumatoError as error:
        return str(error).partition("\n")[0]
    return ""


def main() -> None:
    """Print the counts, and each query that is refused with the reason."""
    if not os.environ.get(CHECKOUT):
        sys.exit(f"set {CHECKOUT} to a checkout of opendp/smartnoise-sdk")
    root, known = Path(os.environ[CHECKOUT]), databases()
    lists = {"Python tests": written_in_tests(root), "valid .sql": list(called_valid(root))}
    for name, queries in lists.items():
        refused = {text: reason for text in queries if (reason := ask(text, known))}
        print(f"{name}: {len(queries) - len(refused)} of {len(queries)} answered as written")
        for text, reason in refused.items():
            print(f"  {reason}\n    {text}")


if __name__ == "__main__":
    main()
