"""The ledger keeps what is asked in SQL and in Python, if it is to, and what for."""

from __future__ import annotations

import pandas as pd
import pytest

import sfumato as sf
from sfumato.errors import InvalidArgument

PEOPLE = pd.DataFrame({"person": range(50), "age": [20 + n for n in range(50)]})
COUNT = "SELECT COUNT(*) AS n FROM people"


def opened(**given: bool) -> sf.Database:
    return sf.connect(
        PEOPLE,
        name="people",
        unit="person",
        max_groups=1,
        max_rows=1,
        columns={"age": sf.between(0, 110)},
        budget=sf.Budget(epsilon=100, delta=1e-9),
        **given,
    )


def kept(db: sf.Database) -> list[tuple[str | None, str | None]]:
    texts = db.ledger.query_texts(db.ledger.history()).values()
    return [(text.question, text.purpose) for text in texts]


def test_every_way_of_asking_is_kept() -> None:
    db = opened(keep_questions=True)
    db.sql(COUNT, epsilon=1, purpose="asked for").release()
    db.sql(COUNT, epsilon=1, purpose="asked for").release(purpose="released for")
    older = db.table("people").where(sf.col("age") > 40).group_by("age").agg(n=sf.count())
    older.release(epsilon=1, purpose="in Python")
    db.bounds("age", epsilon=1).release()
    first, second, third, (bounds, _) = kept(db)
    assert (first, second) == ((COUNT, "asked for"), (COUNT, "released for"))
    assert third == ("count(*) of people where (age > 40) by age", "in Python")
    assert bounds is not None and "age" in bounds and "people" in bounds


def test_nothing_is_kept_unless_it_is_to_be() -> None:
    db = opened()
    db.sql(COUNT, epsilon=1).release()
    assert kept(db) == []
    db.sql(COUNT, epsilon=1, purpose="said").release()
    assert kept(db) == [(None, "said")], "a purpose is stated in order to be kept"


def test_a_purpose_does_not_make_another_request() -> None:
    db = opened(keep_questions=True)
    one = db.sql(COUNT, epsilon=1, purpose="first").release(key="k")
    two = db.sql(COUNT, epsilon=1, purpose="second").release(key="k")
    assert one.to_json() == two.to_json() and kept(db) == [(COUNT, "first")]


def test_a_purpose_that_is_no_line_is_refused_before_the_charge() -> None:
    db = opened()
    with pytest.raises(InvalidArgument):
        db.sql(COUNT, epsilon=1, purpose="two\nlines").release()
    assert db.ledger.history() == ()
