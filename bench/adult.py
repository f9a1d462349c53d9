"""Twenty questions about the Adult data, their answers, and the truth beside them.

The 32,561 people of the 1994 census extract are public, so here the truth may be shown: it is what
DuckDB answers to the very same text. The page docs/adult.md is printed by

    python bench/adult.py <adult.parquet>  > docs/adult.md

and how often intervals cover the truth is counted, question by question, over fresh runs, by

    python bench/adult.py <adult.parquet> <runs>
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import sfumato as sf

__all__ = ["COLUMNS", "EPSILON", "QUESTIONS", "Cell", "Question", "cells", "connect", "coverage", "truth"]

EPSILON = Fraction(1, 4)
COLUMNS = {
    "age": sf.between(17, 90),
    "education_num": sf.between(1, 16),
    "hours_per_week": sf.between(1, 99),
    "capital_gain": sf.between(0, 99_999),
    "capital_loss": sf.between(0, 9_999),
    "sex": sf.one_of("Female", "Male"),
    "income": sf.one_of("<=50K", ">50K"),
    "race": sf.one_of("White", "Black", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other"),
}
"""What was known beforehand: the code book of the census, not its records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question: in words, in SQL, and in SQL for the truth where that differs."""

    words: str
    sql: str
    plain: str | None = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One published number: where it stands, its ends, and the truth."""

    key: tuple[Any, ...]
    column: str
    value: Any
    low: Any
    high: Any
    truth: Any

    @property
    def covered(self) -> bool:
        """Whether the interval covers the truth."""
        return bool(self.low <= self.truth <= self.high)


QUESTIONS = (
    Question(words="How many people are there?", sql="SELECT COUNT(*) AS people FROM adult"),
    Question(
        words="How many women and men?",
        sql="SELECT sex, COUNT(*) AS people FROM adult GROUP BY sex",
        note="The two values were declared, so both are shown whatever the data.",
    ),
    Question(
        words="How many did not say what they work as?",
        sql="SELECT COUNT(*) AS people FROM adult WHERE occupation IS NULL",
    ),
    Question(
        words="How many work in each class?",
        sql="SELECT workclass, COUNT(*) AS people FROM adult GROUP BY workclass ORDER BY people DESC",
        note="Not declared: a class is shown only if enough people are in it. Two classes have 14 and 7.",
    ),
    Question(
        words="Where do people come from?",
        sql="SELECT native_country, COUNT(*) AS people FROM adult "
        "GROUP BY native_country ORDER BY people DESC LIMIT 6",
        note="ORDER BY and LIMIT look at noisy numbers only, and are free.",
    ),
    Question(
        words="How many different sampling weights occur?",
        sql="SELECT COUNT(DISTINCT fnlwgt) AS weights FROM adult",
    ),
    Question(
        words="What share earns more than 50,000?",
        sql="SELECT COUNT(*) FILTER (WHERE income = '>50K') / COUNT(*) AS share FROM adult",
        note="A quotient of two noisy counts, with an interval of its own.",
    ),
    Question(
        words="What share of women, and of men?",
        sql="SELECT sex, AVG(CASE WHEN income = '>50K' THEN 1 ELSE 0 END) AS share FROM adult GROUP BY sex",
    ),
    Question(words="How old are they on average?", sql="SELECT AVG(age) AS age FROM adult"),
    Question(
        words="How much do ages and hours of work vary?",
        sql="SELECT STDDEV_POP(age) AS age, STDDEV_POP(hours_per_week) AS hours FROM adult",
    ),
    Question(
        words="What is the median age?",
        sql="SELECT MEDIAN(age) AS age FROM adult",
        plain="SELECT quantile_disc(age, 0.5) AS age FROM adult",
    ),
    Question(
        words="Five quantiles of age, please.",
        sql="SELECT QUANTILE(age, [0.1, 0.25, 0.5, 0.75, 0.9]) AS ages FROM adult",
        plain="SELECT quantile_disc(age, [0.1, 0.25, 0.5, 0.75, 0.9]) AS ages FROM adult",
        note="One mechanism for all five; they cost no more than one.",
    ),
    Question(
        words="How many hours a week are worked in all?",
        sql="SELECT SUM(hours_per_week) AS hours FROM adult",
    ),
    Question(
        words="What was gained and lost on capital?",
        sql="SELECT SUM(capital_gain - capital_loss) AS net FROM adult",
        note="The bounds of the difference follow from those of its parts. Both are wide; so is the noise.",
    ),
    Question(
        words="How many hours, by decade of age?",
        sql="SELECT CAST(floor(age / 10) * 10 AS INTEGER) AS decade, COUNT(*) AS people, "
        "AVG(hours_per_week) AS hours FROM adult GROUP BY decade ORDER BY decade",
    ),
    Question(
        words="Which common degrees work longest?",
        sql="SELECT education, AVG(hours_per_week) AS hours, COUNT(*) AS people FROM adult "
        "GROUP BY education HAVING people > 3000 ORDER BY hours DESC",
    ),
    Question(
        words="Sex and income, with all margins?",
        sql="SELECT sex, income, COUNT(*) AS people FROM adult GROUP BY CUBE (sex, income)",
        note="NULL stands for all.",
    ),
    Question(
        words="How do income groups differ?",
        sql="SELECT income, AVG(age) AS age, AVG(education_num) AS schooling, "
        "AVG(hours_per_week) AS hours FROM adult GROUP BY income",
    ),
    Question(
        words="Do the educated work longer? (covariance)",
        sql="SELECT COVAR_POP(education_num, hours_per_week) AS covariance FROM adult",
    ),
    Question(
        words="And the correlations?",
        sql="SELECT CORR(education_num, hours_per_week) AS schooling_hours, "
        "CORR(age, hours_per_week) AS age_hours FROM adult",
    ),
)


def connect(path: str, *, ledger: str | None = None) -> Any:
    """Return the data as a database in which each row is one person."""
    return sf.connect(
        path,
        name="adult",
        unit=None,
        columns=COLUMNS,
        budget=sf.Budget(epsilon=3, delta=1e-6),
        ledger=ledger,
    )


@cache
def truth(path: str, question: Question) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return what DuckDB says: columns and rows."""
    import duckdb

    with duckdb.connect() as connection:
        connection.read_parquet(path).create_view("adult")
        text = question.plain or question.sql.split(" HAVING ")[0].split(" LIMIT ")[0]
        found = connection.execute(text)
        return [column[0] for column in found.description], found.fetchall()


def cells(path: str, question: Question, release: Any, level: float) -> Iterator[Cell]:
    """Yield every number of a release that has an interval, beside the truth; lists give one cell each."""
    intervals = release.intervals(level)
    columns, rows = truth(path, question)
    keys = [place for place, name in enumerate(release.columns) if name not in intervals]
    known = {tuple(row[place] for place in keys): dict(zip(columns, row, strict=True)) for row in rows}
    for number, row in enumerate(release.rows):
        key = tuple(row[place] for place in keys)
        for name, ends in intervals.items():
            value, (low, high), exact = row[release.columns.index(name)], ends[number], known[key][name]
            several = isinstance(value, list)
            parts = zip(value, low, high, exact, strict=True) if several else [(value, low, high, exact)]
            for one in parts:
                yield Cell(key=key, column=name, value=one[0], low=one[1], high=one[2], truth=one[3])


# -- the page ---------------------------------------------------------------------------


_HEAD = """\
# Twenty questions about 32,561 people

The Adult data is an extract of the 1994 census of the United States: one row per person, public since long.
That is why the truth can stand beside the answers here. With real data it cannot: comparing is the owner's,
and what is compared is not published.

```py
db = sf.connect(
    "adult.parquet", unit=None,                    # each row is one person
    columns={                                      # from the code book, never from the records
        "age": sf.between(17, 90), "education_num": sf.between(1, 16), "hours_per_week": sf.between(1, 99),
        "capital_gain": sf.between(0, 99_999), "capital_loss": sf.between(0, 9_999),
        "sex": sf.one_of("Female", "Male"), "income": sf.one_of("<=50K", ">50K"), ..
    },
    budget=sf.Budget(epsilon=3, delta=1e-6),
)
db.sql(.., epsilon=0.25).release()
```

Every question below was asked with epsilon 0.25. "Truth" is what DuckDB answers to the same text. The column
± is the larger half of the 95% interval; one answer in twenty may lie outside its own, and those of one run
can be a few more or less: over 33 fresh runs 2,202 of 2,310 intervals (95.3%) had the truth inside. This page
is printed by `bench/adult.py`, whose noise is fresh on every run; a test asks the questions again each time.
"""


def page(path: str) -> Iterator[str]:
    """Yield the page, line by line."""
    yield _HEAD
    database = connect(path)
    inside = total = 0
    for number, question in enumerate(QUESTIONS, 1):
        release = database.sql(question.sql, epsilon=EPSILON).release()
        found = list(cells(path, question, release, 0.95))
        inside, total = inside + sum(cell.covered for cell in found), total + len(found)
        yield f"## {number}. {question.words}\n"
        yield f"```sql\n{_broken(question.sql)}\n```\n"
        yield from _table([name for name in release.columns if name not in release.intervals()], found)
        shown, known = len(release.rows), len(truth(path, question)[1])
        suppressed = shown < known and "LIMIT" not in question.sql and "HAVING" not in question.sql
        notes = [question.note, f"{known - shown} small groups are missing." if suppressed else ""]
        if any(notes):
            yield "\n" + " ".join(note for note in notes if note)
        yield ""
    yield "## What it cost\n"
    budget = database.budget
    yield (
        "Twenty times 0.25 is 5, but twenty answers together give away less than the sum of their costs:\n"
        f"they used {float(budget.spent / (budget.spent + budget.remaining)):.0%} of a budget of epsilon 3, "
        f"delta 1e-6. Of {total} numbers, {inside} have the truth inside their 95% interval."
    )


def coverage(path: str, runs: int) -> Iterator[str]:
    """Yield how many of the 95% intervals cover the truth, by question, and the chance of so few.

    Numbers of one answer depend on each other and runs do not; a question of several numbers counts by runs
    in which its first one is covered.
    """
    from scipy.stats import binom

    inside, total, first = [[0] * len(QUESTIONS) for _ in range(3)]
    for _ in range(runs):
        database = connect(path)
        for place, question in enumerate(QUESTIONS):
            release = database.sql(question.sql, epsilon=EPSILON).release()
            found = [cell.covered for cell in cells(path, question, release, 0.95)]
            inside[place] += sum(found)
            total[place] += len(found)
            first[place] += found[0]
    yield f"{'question':>8} {'covered':>8} {'of':>6} {'share':>7} {'chance':>9}"
    for place in range(len(QUESTIONS)):
        chance = binom.cdf(first[place], runs, 0.95)
        share = inside[place] / total[place]
        yield f"{place + 1:8} {inside[place]:8} {total[place]:6} {share:7.1%} {chance:9.2g}"
    chance = binom.cdf(sum(first), runs * len(QUESTIONS), 0.95)
    yield f"{'all':>8} {sum(inside):8} {sum(total):6} {sum(inside) / sum(total):7.1%} {chance:9.2g}"


def _table(keys: list[str], found: list[Cell]) -> Iterator[str]:
    columns = len({cell.column for cell in found}) > 1
    heading = [
        *keys,
        *(["what"] if columns else []),
        found[0].column if not columns else "answer",
        "±",
        "truth",
    ]
    yield "| " + " | ".join(heading) + " |"
    yield "|" + "|".join(["---"] * (len(heading) - 3) + ["---:"] * 3) + "|"
    for cell in found:
        half = max(cell.high - cell.value, cell.value - cell.low)
        texts = [_number(cell.value, half), _number(half, half), _number(cell.truth, half)]
        names = ["NULL" if part is None else str(part) for part in cell.key]
        yield "| " + " | ".join([*names, *([cell.column] if columns else []), *texts]) + " |"


def _number(value: Any, scale: float) -> str:
    """Return a number with two digits of its uncertainty."""
    if isinstance(value, int):
        return f"{value:,}"
    digits = 0
    while digits < 6 and scale * 10**digits < 10:
        digits += 1
    return f"{value:,.{digits}f}"


def _broken(sql: str) -> str:
    """Return SQL with a line for each clause."""
    for word in (" FROM ", " WHERE occ", " GROUP BY ", " HAVING ", " ORDER BY "):
        sql = sql.replace(word, "\n" + word[1:], 1)
    return sql


if __name__ == "__main__":
    for line in page(sys.argv[1]) if len(sys.argv) == 2 else coverage(sys.argv[1], int(sys.argv[2])):
        print(line)
