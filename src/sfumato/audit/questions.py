"""Questions of every kind that this system answers, over a small catalog, for the suite."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from sfumato.audit.laboratory import Laboratory
from sfumato.audit.queries import BUDGET, PURE, examine_query
from sfumato.audit.subject import Claim, Subject, Verdict, examine
from sfumato.audit.worlds import CATALOG, Rows, arrow_tables, tables
from sfumato.core.accountant import PrivacyBudget
from sfumato.session import connect

__all__ = ["AuditQuestion", "PUBLIC", "QUESTIONS", "WHOLE", "examine_questions", "released"]

PUBLIC = {
    "places": [
        {"place": "north", "zone": "inner"},
        {"place": "south", "zone": "outer"},
        {"place": "south", "zone": "inner"},  # a row that matches becomes two
        {"place": "nowhere", "zone": "outer"},
    ]
}


@dataclass(frozen=True, slots=True)
class AuditQuestion:
    """A question, what it is an example of, and the options it comes with."""

    kind: str
    text: str
    options: dict[str, Any] = field(default_factory=dict)
    budget: PrivacyBudget = BUDGET


_PER_PERSON = (
    "WITH p AS (SELECT person, COUNT(*) AS n, SUM(amount) AS s FROM visits GROUP BY person) "
    "SELECT COUNT(*), AVG(least(n, 20)), SUM(least(s, 50)) FROM p"
)

QUESTIONS: tuple[AuditQuestion, ...] = (
    AuditQuestion("a count", "SELECT COUNT(*) FROM visits"),
    AuditQuestion("a count, pure epsilon", "SELECT COUNT(*) FROM visits", budget=PURE),
    AuditQuestion("people", "SELECT region, COUNT(DISTINCT person) FROM visits GROUP BY region"),
    AuditQuestion(
        "counts and sums by group", "SELECT region, COUNT(*), SUM(amount) FROM visits GROUP BY region"
    ),
    AuditQuestion(
        "sums by group, pure epsilon", "SELECT region, SUM(amount) FROM visits GROUP BY region", budget=PURE
    ),
    AuditQuestion(
        "a sum clamped per person", "SELECT SUM(amount, contribution_bounds_per_group => (0, 15)) FROM visits"
    ),
    AuditQuestion("an average", "SELECT region, AVG(amount) FROM visits GROUP BY region"),
    AuditQuestion("variance and correlation", "SELECT VAR_SAMP(amount), CORR(amount, age) FROM visits"),
    AuditQuestion("an expression", "SELECT SUM(CASE WHEN member THEN 3 * amount ELSE -age END) FROM visits"),
    AuditQuestion(
        "a filter", "SELECT COUNT(*) FILTER (WHERE age > 50), SUM(age) FROM visits WHERE amount > 2"
    ),
    AuditQuestion("a median", "SELECT region, MEDIAN(age) FROM visits GROUP BY region"),
    AuditQuestion("quantiles", "SELECT QUANTILE(amount, [0.1, 0.5, 0.9]) FROM visits", budget=PURE),
    AuditQuestion("a histogram", "SELECT HISTOGRAM(member), HISTOGRAM(age) FROM visits"),
    AuditQuestion("dates", "SELECT MEDIAN(day), QUANTILE(day, [0.2, 0.8]) FROM visits"),
    AuditQuestion("distinct values", "SELECT COUNT(DISTINCT word) FROM visits", options={"max_distinct": 2}),
    AuditQuestion(
        "a sum of distinct values", "SELECT SUM(DISTINCT age) FROM visits", options={"max_distinct": 2}
    ),
    AuditQuestion("the most frequent value", "SELECT region, MODE(member) FROM visits GROUP BY region"),
    AuditQuestion("the most frequent value, pure epsilon", "SELECT MODE(age) FROM visits", budget=PURE),
    AuditQuestion(
        "the group of the largest sum",
        "SELECT ARG_MAX(region, s) FROM (SELECT region, SUM(amount - 10) AS s FROM visits GROUP BY region)",
    ),
    AuditQuestion("keys that nobody declared", "SELECT word, COUNT(*) FROM visits GROUP BY word"),
    AuditQuestion(
        "keys that nobody declared, pure epsilon",
        "SELECT word, SUM(amount) FROM visits GROUP BY word",
        budget=PURE,
    ),
    AuditQuestion(
        "keys by numbers of people",
        "SELECT word, COUNT(DISTINCT person) FROM visits GROUP BY word",
        options={"max_groups": 1},
    ),
    AuditQuestion(
        "everything else", "SELECT word, COUNT(*) FROM visits GROUP BY word", options={"others": True}
    ),
    AuditQuestion(
        "a least number of people",
        "SELECT region, COUNT(*) FROM visits GROUP BY region",
        options={"min_units": 3},
    ),
    AuditQuestion("subtotals", "SELECT region, member, COUNT(*) FROM visits GROUP BY ROLLUP(region, member)"),
    AuditQuestion(
        "a join with a public table",
        "SELECT zone, COUNT(*), SUM(amount) FROM visits JOIN places ON region = place GROUP BY zone",
    ),
    AuditQuestion(
        "a join of one person's tables",
        "SELECT COUNT(*), SUM(minutes) FROM visits JOIN calls ON person = caller",
    ),
    AuditQuestion(
        "people without something",
        "SELECT COUNT(*) FROM visits WHERE NOT EXISTS"
        " (SELECT 1 FROM calls WHERE caller = person AND minutes > 59)",
    ),
    AuditQuestion(
        "a union",
        "SELECT SUM(x) FROM (SELECT person AS who, amount AS x FROM visits"
        " UNION ALL SELECT caller, minutes / 6 FROM calls)",
    ),
    AuditQuestion("one row per person", _PER_PERSON),
    AuditQuestion("rows that are units", "SELECT shop, COUNT(*), AVG(price) FROM sales GROUP BY shop"),
    AuditQuestion(
        "two questions in one",
        "SELECT (SELECT COUNT(*) FROM visits) AS a, (SELECT SUM(minutes) FROM calls) AS b",
        options={"max_rows": 2},
    ),
    AuditQuestion(
        "a cap over all groups",
        "SELECT region, COUNT(*), SUM(amount) FROM visits GROUP BY region",
        options={"max_groups": 2, "max_rows": 3, "max_rows_total": 4},
    ),
    AuditQuestion(
        "what caps take", "SELECT region, SUM(amount) FROM visits GROUP BY region", options={"losses": True}
    ),
)


def examine_questions(
    asked: tuple[AuditQuestion, ...] = QUESTIONS, *, trials: int = 20_000, miss: float = 1e-9
) -> Iterator[Verdict]:
    """Examine questions over neighbours that the catalog alone proposes."""
    laboratory = Laboratory(CATALOG, public=PUBLIC)
    for one in asked:
        yield examine_query(
            one.text,
            CATALOG,
            budget=one.budget,
            laboratory=laboratory,
            name=one.kind,
            trials=trials,
            miss=miss,
            **one.options,
        )
    laboratory.close()


WHOLE: tuple[tuple[str, str, str], ...] = (
    ("counts", "SELECT region, COUNT(*) AS n FROM visits GROUP BY region", "a crowd and somebody: upper"),
    (
        "keys that nobody declared",
        "SELECT word, COUNT(*) AS n FROM visits GROUP BY word",
        "nobody and somebody: rare keys",
    ),
)
"""Kinds, questions and neighbours of whole releases: few, for each takes milliseconds."""


def released(
    kind: str, text: str, neighbours: str, *, epsilon: float = 1, trials: int = 160, miss: float = 1e-9
) -> Verdict:
    """Examine whole releases: through the session, the ledger and the engine, with a fresh salt each.

    So few trials can only see what is badly wrong: noise that is missing, keys that are simply shown.
    """
    [pair] = [pair for pair in tables(CATALOG, public=PUBLIC) if pair.name == neighbours]
    table = CATALOG.table("visits")
    assert table is not None

    def run(rows: Rows, number: int) -> list[dict[Any, Any]]:
        database = connect(
            arrow_tables(rows, CATALOG)["visits"],
            name="visits",
            unit="person",
            columns={one.name: one.domain for one in table.fields if one.domain is not None},
            max_groups=table.max_groups,
            max_rows=table.max_rows,
            max_rows_total=table.max_rows_total,
            budget=_WHOLE,
        )
        question = database.sql(text, epsilon=epsilon)
        answers = (question.release() for _ in range(number))
        return [{row[:1] if len(row) > 1 else (): row[-1] for row in answer} for answer in answers]

    delta = float(_WHOLE.delta_loss + _WHOLE.keys_delta)
    subject = Subject(
        name=f"whole releases: {kind}",
        claim=Claim(epsilon=epsilon, delta=delta),
        run=run,
        neighbours=(pair,),
        trials=trials,
        about=text,
    )
    return examine(subject, miss=miss)


_WHOLE = PrivacyBudget(epsilon=10**6, delta=0.02, keys_delta=0.01)
"""Enough for an audit of invented people."""
