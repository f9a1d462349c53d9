"""Errors and keys beside OpenDP's, at equal epsilon, delta and caps, and formulas of other peers.

Every repetition connects anew, with a budget that is the question's, and spends all of it. There are
two kinds of it, as the rival has two forms of (epsilon, delta), and of each side the better one counts:

    default   Budget(epsilon, delta): a Gaussian's curve, a tenth of delta for keys
    pure      Budget(epsilon, delta, keys_delta=delta): losses have no delta, keys have all of it
    half      where keys count: half of delta for them, as the rival has it with Gaussian noise

A median is asked without an interval, for the rival's has none; what an interval costs is a row of its own.
So is a median of whole numbers, of people with 36 rows each, with its interval, and so are the groups that
are found among such people: there the rival's law is computed.

    python bench/accuracy.py --rivals <python>
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from report import Row, show

import sfumato as sf

__all__ = [
    "DELTA",
    "EPSILON",
    "accuracy_rows",
    "budgets",
    "group_rows",
    "key_rows",
    "labour_rows",
    "people_keys",
    "write_people",
]

HERE = Path(__file__).parent
EPSILON, DELTA = 1, 1e-7
REGIONS = tuple(f"r{number:02}" for number in range(10))
COLUMNS = {"region": sf.one_of(*REGIONS), "amount": sf.between(0, 100)}
PEOPLE = """
SELECT p AS user_id, 'r' || lpad(((hash(p) % 10 + g * 3) % 10)::VARCHAR, 2, '0') AS region,
       'w' || i || '_' || floor(pow(3000.0, (hash(p * 5 + i) % 100003) / 100003.0))::BIGINT AS word,
       ((hash(p * 17 + i * 29 + g) % 10001) / 100.0)::DOUBLE AS amount
FROM range(5000) AS people(p), range(2) AS groups(g), range(2) AS rows(i)
"""
"""People within all caps: two regions of ten each, two rows in each; two words, two rows of each."""
GROUPS, ROWS = 3, 2
HALF_RANGE = 50.0
"""What an answer that is NULL is off by: as far as the middle of the bounds can be."""
QUESTIONS = {
    "COUNT": "SELECT region, COUNT(*) AS x FROM people GROUP BY region",
    "SUM": "SELECT region, SUM(amount) AS x FROM people GROUP BY region",
    "AVG": "SELECT region, AVG(amount) AS x FROM people GROUP BY region",
    "MEDIAN by region": "SELECT region, MEDIAN(amount) AS x FROM people GROUP BY region",
    "MEDIAN": "SELECT MEDIAN(amount) AS x FROM people",
}
FORMS = {"default": "Gaussian", "half": "Gaussian", "pure": "Laplace"}
"""The rival's form that each budget is nearest to."""
FORMULAS = {
    "COUNT": GROUPS * ROWS / EPSILON,
    "SUM": GROUPS * ROWS * 100 / EPSILON,
}
"""The mean absolute value of Laplace noise is its scale: k * m * largest value / epsilon, as documented."""


def budgets(*, keys: bool = False, epsilon: float = EPSILON) -> dict[str, Any]:
    """Return the budgets of one question, by name."""
    found = {
        "default": sf.Budget(epsilon=epsilon, delta=DELTA),
        "pure": sf.Budget(epsilon=epsilon, delta=DELTA, keys_delta=DELTA),
    }
    if keys:
        found["half"] = sf.Budget(epsilon=epsilon, delta=DELTA, keys_delta=DELTA / 2)
    return found


def write_people(path: Path) -> None:
    """Write the table."""
    import duckdb

    duckdb.sql(PEOPLE).write_parquet(str(path))


def mean_error(values: Iterable[float]) -> tuple[float, float]:
    """Return a mean and its standard error."""
    found = list(values)
    return statistics.fmean(found), statistics.stdev(found) / math.sqrt(len(found))


# -- errors -----------------------------------------------------------------------------


def accuracy_rows(people: Path, rival: dict[str, Any], repetitions: int) -> Iterator[Row]:
    """Compare mean absolute errors, and allow for three standard errors of chance."""
    import duckdb

    plain = duckdb.connect()
    plain.read_parquet(str(people)).create_view("people")
    for name, text in QUESTIONS.items():
        exact = {row[:-1]: row[-1] for row in plain.execute(text).fetchall()}
        found = {kind: _errors(people, name, text, exact, repetitions, kind) for kind in budgets()}
        theirs = {form: tuple(numbers) for form, numbers in rival["errors"][name].items()}
        yield from _compared(f"{name}: mean absolute error", found, theirs)
        if name.startswith("MEDIAN"):
            shown = _errors(people, name, text, exact, repetitions, "pure", intervals=True)
            title, alone = (
                f"  with its interval, pure budget (± {shown[1] / shown[0]:.1%}): without",
                found["pure"],
            )
            yield Row(name=title, ours=shown[0], rival=alone[0], unit="", ratio=shown[0] / alone[0])
        if name in FORMULAS:
            best = min(error for error, _ in found.values())
            scale = FORMULAS[name]
            title = f"{name}: Laplace of PipelineDP and Tumult, by formula"
            yield Row(name=title, ours=best, rival=scale, unit="", ratio=best / scale, most=1.1)


def _compared(
    title: str, found: dict[str, tuple[float, float]], theirs: dict[str, tuple[float, float]]
) -> Iterator[Row]:
    """Return a row for the better of both sides, and one for each kind of budget that says its chance."""
    ours, doubt = min(found.values())
    other, others_doubt = min(theirs.values())
    chance = math.hypot(doubt / ours, others_doubt / other)
    yield Row(
        name=f"{title}, better kinds: OpenDP (chance {chance:.1%})",
        ours=ours,
        rival=other,
        unit="",
        ratio=ours / other,
        most=1 + 3 * chance,
    )
    for kind, (one, error) in found.items():
        another, _ = theirs.get(FORMS[kind], (math.nan, math.nan))
        name = f"  {kind} budget (± {error / one:.1%}): OpenDP, {FORMS[kind]}"
        yield Row(name=name, ours=one, rival=another, unit="", ratio=one / another)


def _errors(
    people: Path,
    name: str,
    text: str,
    exact: dict[Any, float],
    repetitions: int,
    kind: str,
    *,
    intervals: bool = False,
) -> tuple[float, float]:
    errors: list[float] = []
    for _ in range(repetitions * (4 if len(exact) == 1 else 1)):
        caps = {"max_rows": 4} if name == "MEDIAN" else {"max_groups": GROUPS, "max_rows": ROWS}
        for *key, value in _asked(people, text, kind, {**caps, "intervals": intervals}):
            errors.append(HALF_RANGE if value is None else abs(value - exact[tuple(key)]))
    return mean_error(errors)


def _asked(path: Path, text: str, kind: str, options: dict[str, int]) -> Sequence[Any]:
    database = sf.connect(
        path, name="people", unit="user_id", columns=COLUMNS, budget=budgets(keys=True)[kind]
    )
    release = database.sql(text, epsilon=EPSILON, **options).release()
    return list(zip(*(release.column(name) for name in release.columns), strict=True))


# -- whole numbers ----------------------------------------------------------------------


def labour_rows(
    repetitions: int, *, people: int = 500, rows: int = 36, epsilon: float = 0.2
) -> Iterator[Row]:
    """Compare the median of ages, with its interval, with OpenDP's among whole candidates, which has none.

    OpenDP chooses a candidate c with chances proportional to exp(-rate |#(x < c) - #(x > c)| / 2), where the
    rate is epsilon / rows: its expected error is computed from that.
    """
    import numpy as np
    import pyarrow

    ours, theirs = [], []
    for sample in range(12):
        draw = np.random.default_rng(sample)
        first = np.clip(draw.normal(44, 17, people), 15, 87).astype(np.int64)
        ages = np.repeat(first, rows) + np.tile(np.arange(rows) * 3 // rows, people)
        table = pyarrow.table({"person": np.repeat(np.arange(people), rows), "age": ages})
        exact = float(np.median(ages))
        candidates = np.arange(15, 90)
        below, above = ((test(ages, candidates[:, None])).sum(axis=1) for test in (np.less, np.greater))
        misses = np.abs(below - above) / 2
        chances = np.exp(-(misses - misses.min()) * epsilon / rows)
        theirs.append(float(np.abs(candidates - exact) @ chances / chances.sum()))
        for _ in range(repetitions):
            database = sf.connect(
                table,
                name="people",
                unit="person",
                columns={"age": sf.between(15, 89)},
                budget=sf.Budget(epsilon=epsilon, delta=DELTA, keys_delta=DELTA),
            )
            question = database.sql("SELECT MEDIAN(age) AS x FROM people", epsilon=epsilon, max_rows=rows)
            release = question.release()
            ours.append(abs(float(release.column("x")[0]) - exact))
    found, doubt = mean_error(ours)
    other = statistics.fmean(theirs)
    name = f"MEDIAN of ages, {rows} rows each, epsilon {epsilon}, with its interval: OpenDP's law, without"
    yield Row(name=name, ours=found, rival=other, unit="", ratio=found / other, most=1 + 3 * doubt / other)


# -- keys -------------------------------------------------------------------------------

AGES_BY_STATUS = (9063, 8433, 8094, 6982, 4565, 4041, 2671, 1790, 1290, 1072, 742, 564, 510, 163, 15, 5)
"""Rows by AGE and ILOSTAT of the French labour-force survey: Eurostat's public sample of 50,000 rows."""


def group_rows(repetitions: int, *, rows: int = 36, epsilon: float = 0.2) -> Iterator[Row]:
    """Compare the groups found among people with 36 rows each, and the errors of their counts.

    OpenDP (contributions=36) adds noise to each count of rows, and shows the counts from a threshold on; what
    it is expected to find is computed from that. Laplace: the scale is rows / epsilon, the threshold
    rows + scale ln(rows / (2 delta)). Gaussian: half of delta is for losses and says rho, the scale is
    rows / sqrt(2 rho), and the other half is divided over as many groups as rows. Each kind of budget is
    beside the form that promises the same: `analysis.keys` proves what a Gaussian promise costs.
    """
    import numpy as np
    import pyarrow
    from scipy import stats

    from sfumato.core.renyi import largest_rho

    groups = np.repeat(np.arange(len(AGES_BY_STATUS)), AGES_BY_STATUS)
    table = pyarrow.table({"person": np.arange(len(groups)) // rows, "place": groups})
    scale = rows / epsilon
    deviation = rows / math.sqrt(2 * largest_rho(epsilon, DELTA / 2))
    each = -math.expm1(math.log1p(-DELTA / 2) / rows)
    counts = np.array(AGES_BY_STATUS)
    theirs = {
        "Laplace": stats.laplace.sf(rows + scale * math.log(rows / (2 * DELTA)) - counts, scale=scale),
        "Gaussian": stats.norm.sf(rows + deviation * stats.norm.isf(each) - counts, scale=deviation),
    }
    found, errors = {}, {}
    for kind, budget in budgets(keys=True, epsilon=epsilon).items():
        releases = []
        for _ in range(repetitions):
            database = sf.connect(table, name="people", unit="person", budget=budget, max_rows_total=rows)
            text = "SELECT place, COUNT(*) AS x FROM people GROUP BY place"
            releases.append(database.sql(text, epsilon=epsilon).release().rows)
        found[kind] = mean_error(len(each) for each in releases)
        errors[kind] = mean_error(abs(x - AGES_BY_STATUS[at]) for each in releases for at, x in each)
    title = f"groups found, {rows} rows a person, epsilon {epsilon}"
    yield from key_rows(
        title, found, {form: float(shown.sum()) for form, shown in theirs.items()}, every=True
    )
    laplace = float(theirs["Laplace"].sum())
    yield from [  # without a limit: `analysis.keys` proves that a Gaussian promise cannot reach it
        Row(name=f"  {kind} budget: OpenDP, Laplace", ours=one, rival=laplace, unit="", ratio=one / laplace)
        for kind, (one, _) in found.items()
        if FORMS[kind] == "Gaussian"
    ]
    best, doubt = min(errors.values())
    name = "  mean absolute error of their counts, best budget: OpenDP, by formula"
    yield Row(name=name, ours=best, rival=scale, unit="", ratio=best / scale, most=1 + 3 * doubt / scale)


def key_rows(
    title: str, found: dict[str, tuple[float, float]], theirs: dict[str, float], *, every: bool = False
) -> Iterator[Row]:
    """Compare the numbers of keys found; more is better. `every`: no budget may be behind its form."""
    ours, doubt = max(found.values())
    other = max(theirs.values())
    yield Row(
        name=f"{title}, best budget: OpenDP, better form",
        ours=ours,
        rival=other,
        unit="",
        ratio=ours / other if other else math.inf,
        least=1 - 3 * doubt / ours if ours else 1,
    )
    for kind, (one, error) in found.items():
        another = theirs[FORMS[kind]]
        name = f"  {kind} budget (± {error:.1f}): OpenDP, {FORMS[kind]}"
        ratio = one / another if another else math.inf
        least = 1 - 3 * error / one if every and one else 0.0
        yield Row(name=name, ours=one, rival=another, unit="", ratio=ratio, least=least)


def people_keys(people: Path, repetitions: int) -> dict[str, tuple[float, float]]:
    """Return how many words are found in the small table, by kind of budget."""
    text = "SELECT word, COUNT(*) AS n FROM people GROUP BY word"
    caps = {"max_groups": 5, "max_rows": ROWS}
    return {
        kind: mean_error(len(_asked(people, text, kind, caps)) for _ in range(repetitions))
        for kind in budgets(keys=True)
    }


def main() -> int:
    """Measure and print; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rivals", required=True, help="the Python of the rivals' environment")
    parser.add_argument("--repetitions", type=int, default=120)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        people = Path(folder) / "people.parquet"
        write_people(people)
        command = [options.rivals, str(HERE / "rival_queries.py"), str(people)]
        command += ["--repetitions", str(options.repetitions)]
        answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        rival = json.loads(answer.stdout)
        measured = chain(
            accuracy_rows(people, rival, options.repetitions),
            labour_rows(max(1, options.repetitions // 6)),
            group_rows(options.repetitions),
            key_rows("keys found, small table", people_keys(people, options.repetitions), rival["keys"]),
        )
        rows = show(measured, rival["versions"])
    return 0 if all(row.passed for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
