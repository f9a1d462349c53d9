"""What a plan says is what is charged, and no option makes planning endless."""

from __future__ import annotations

import re

import pandas as pd
import pytest

import sfumato as sf


@pytest.fixture
def database() -> sf.Database:
    return sf.connect(
        pd.DataFrame({"person": [1, 2], "a": ["p", "q"], "b": ["r", "s"], "x": [1.0, 2.0]}),
        name="visits",
        unit="person",
        columns={"x": sf.between(0, 20)},
        budget=sf.Budget(epsilon=5, delta=1e-5),
        max_groups=3,
        max_rows=1,
    )


def test_several_questions_explain_the_delta_that_they_are_charged(database: sf.Database) -> None:
    text = """
        WITH first AS (SELECT a, SUM(x) AS s FROM visits GROUP BY a),
             second AS (SELECT b, SUM(x) AS s FROM visits GROUP BY b)
        SELECT first.s, second.s FROM first, second
    """
    question = database.sql(text, epsilon=1, delta=5e-7)
    told = [float(found) for found in re.findall(r"and (\S+) of the delta for keys", question.explain())]
    assert told == pytest.approx([float(cost.keys_delta) for cost in question.priced().costs], rel=1e-2)
    assert sum(told) <= 5e-7


def test_a_cap_of_any_size_can_be_priced(database: sf.Database) -> None:
    # A weight for each of 2^31 - 1 numbers of groups would not fit into any memory.
    text = "SELECT a, SUM(x) AS s FROM visits GROUP BY a"
    [cost] = database.sql(text, epsilon=1, max_groups=2**31 - 1).priced().costs
    [selection] = cost.selections
    assert not selection.rounds and selection.grid == 1


def test_expected_errors_stand_under_their_epsilons(database: sf.Database) -> None:
    text = "SELECT COUNT(*) AS n, SUM(x) AS the_sum_of_all_that_was_measured FROM visits"
    lines = database.sql(text, epsilon=1).explain().splitlines()
    head = lines.index("expected error (95%)") + 1
    assert lines[head].strip().startswith("epsilon 0.5")
    assert len({len(line) for line in lines[head : head + 3]}) == 1
