"""No short question may make a row so large that whether it fits into memory tells what the row holds."""

from __future__ import annotations

import pandas as pd
import pytest

import sfumato as sf

BUDGET = sf.Budget(epsilon=9, delta=1e-6)


def opened() -> sf.Database:
    frame = pd.DataFrame({"person": range(50), "x": [1.0] * 49 + [2.0]})
    return sf.connect(frame, name="people", unit="person", max_groups=1, max_rows=1, budget=BUDGET)


def grown(times: int) -> str:
    """A text of 64^times code points, for the people of whom a condition is true."""
    text = "CASE WHEN x = 2 THEN 'a' ELSE '' END"
    for _ in range(times):
        text = f"REPLACE({text}, 'a', '{'a' * 64}')"
    return text


def longest(text: str) -> int:
    """The length that the engine gives the text, read from the exact sum of one row."""
    frame = pd.DataFrame({"person": [1], "x": [2.0]})
    database = sf.connect(frame, name="people", unit="person", max_groups=1, max_rows=1, budget=BUDGET)
    asked = f"SELECT SUM(LEAST(GREATEST(LENGTH({text}), 0), 1000000)) FROM people"
    [one] = database.backend.run(database.sql(asked, epsilon=1).priced().boundings[0].query).reveal()
    return int(one.measures["m0"][0])


@pytest.mark.parametrize(
    "text",
    [
        grown(2),
        grown(6),
        " || ".join([f"({grown(2)})"] * 40),
        f"CONCAT({', '.join([grown(2)] * 40)})",
        f"REPLACE({grown(2)}, 'a', '{'b' * 70_000}')",
        f"REGEXP_REPLACE({grown(2)}, 'x*', '{'b' * 64}', 'g')",
        f"CONCAT_WS({grown(2)}, {', '.join([grown(2)] * 40)})",
        f"LPAD({grown(2)}, 65536, 'b')",
    ],
)
def test_texts_that_are_put_together_stay_short(text: str) -> None:
    assert longest(text) <= 2**16


def test_short_texts_are_left_alone() -> None:
    assert longest("REPLACE(REPLACE('a-b', '-', '--'), 'b', 'cde') || 'xyz'") == 9
    assert longest(grown(2)) == 64**2


def test_what_a_person_is_does_not_decide_whether_the_engine_finishes() -> None:
    database = opened()
    asked = f"SELECT SUM(LEAST(LENGTH({grown(8)}), 5)) AS n FROM people"
    assert len(database.sql(asked, epsilon=1).release().rows) == 1


def test_what_is_put_in_is_a_constant() -> None:
    frame = pd.DataFrame({"person": [1], "name": ["a"]})
    database = sf.connect(frame, name="people", unit="person", max_groups=1, max_rows=1, budget=BUDGET)
    with pytest.raises(sf.errors.QueryRefused, match="must be a constant"):
        database.sql("SELECT COUNT(*) FROM people WHERE REPLACE(name, 'a', name || name) = 'b'", epsilon=1)


def test_a_text_of_more_than_a_mebibyte_is_null_and_as_a_name_nobody() -> None:
    """Two long names that begin alike are not one person: either would change what the other adds."""
    names = ["ä" * 2**19, "ä" * 2**19 + "b", "ä" * 2**19 + "c", "d"]
    frame = pd.DataFrame({"person": names, "text": names})
    for unit, lengths in (("person", [2**19, 1]), (None, [2**19, None, None, 1])):
        database = sf.connect(frame, name="people", unit=unit, max_groups=9, max_rows=9, budget=BUDGET)
        asked = "SELECT LENGTH(text) AS n, COUNT(*) FROM people GROUP BY n"
        [found] = database.backend.run(database.sql(asked, epsilon=1).priced().boundings[0].query).reveal()
        counts = {key[0]: int(n) for key, n in zip(found.keys, found.measures["m0"], strict=True)}
        assert counts == {one: lengths.count(one) for one in lengths}
