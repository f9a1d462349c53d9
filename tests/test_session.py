"""The public entry: asking is free, releasing spends once, and refusals cost nothing."""

from __future__ import annotations

import asyncio
import io
import re
import threading
from dataclasses import fields
from fractions import Fraction
from inspect import signature
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pytest

import sfumato as sf
from sfumato.errors import BudgetExceeded, InvalidArgument, LedgerError, QueryRefused
from sfumato.plan.options import QUESTION_OPTIONS, Options, QuestionOptions
from sfumato.session.sql_question import Asked

PEOPLE = pd.DataFrame(
    {
        "person": [i // 3 for i in range(900)],
        "region": [("north", "south", "west")[i % 3] for i in range(900)],
        "age": [20 + i % 60 for i in range(900)],
    }
)


def database(**changes):
    arguments = {
        "unit": "person",
        "name": "people",
        "columns": {"age": sf.between(0, 110), "region": sf.one_of("north", "south", "west")},
        "budget": sf.Budget(epsilon=3, delta=1e-7),
        "max_groups": 3,
        "max_rows": 1,
    }
    return sf.connect(PEOPLE, **{**arguments, **changes})


QUESTION = "SELECT region, COUNT(*) AS n, AVG(age) AS age FROM people GROUP BY region ORDER BY region"


def test_a_question_shows_its_price_and_spends_nothing():
    db = database()
    question = db.sql(QUESTION, epsilon=0.5)
    assert "n: ±" in repr(question) and "nothing is spent" in repr(question)
    assert "one unit can change" in question.explain() and "a0" not in question.explain()
    assert db.budget.spent == 0


def test_a_release_spends_and_covers():
    """Each of six intervals of level 1 - 1e-10 misses with probability 1e-10."""
    db = database()
    release = db.sql(QUESTION, epsilon=1).release()
    assert release.columns == ("region", "n", "age") and release.column("region") == [
        "north",
        "south",
        "west",
    ]
    ends = release.intervals(1 - 1e-10)
    assert all(low <= 300 <= high for low, high in ends["n"])
    assert all(type(value) is int for value in release.column("n"))
    assert 0 < db.budget.spent < Fraction(db.budget.limit, 10**20)
    assert release.receipt["unit"] == "person" and float(release.cost["epsilon"]) == 1
    assert list(release.to_pandas().columns) == ["region", "n", "age"]


def test_ten_half_questions_cost_less_than_five():
    db = database()
    for _ in range(10):
        db.sql("SELECT COUNT(*) FROM people", epsilon=0.5).release()
    with pytest.raises(BudgetExceeded):
        for _ in range(40):
            db.sql("SELECT COUNT(*) FROM people", epsilon=0.5).release()


def test_a_key_returns_the_same_release_for_free(tmp_path):
    path = tmp_path / "people.ledger"
    db = database(ledger=path)
    first = db.sql(QUESTION, epsilon=0.5).release(key="monday")
    spent = db.budget.spent
    again = database(ledger=path)
    assert again.sql(QUESTION, epsilon=0.5).release(key="monday").to_json() == first.to_json()
    assert again.budget.spent == spent
    with pytest.raises(LedgerError):
        again.sql(QUESTION, epsilon=0.25).release(key="monday")


def test_a_budget_is_fixed_once(tmp_path):
    database(ledger=tmp_path / "people.ledger")
    with pytest.raises(LedgerError):
        database(ledger=tmp_path / "people.ledger", budget=sf.Budget(epsilon=30, delta=1e-7))


def test_the_cheapest_epsilon_for_an_error():
    db = database()
    question = db.sql("SELECT COUNT(*) AS n FROM people")
    release = question.release(error=25)
    [(low, high)] = release.intervals()["n"]
    assert high - low <= 50 and float(release.cost["epsilon"]) < 3


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT * FROM people", "SF404"),
        ("SELECT region FROM people GROUP BY region", "SF404"),
        ("SELECT SUM(person) FROM people", "SF406"),
        ("SELECT COUNT(*) FROM nobody", "SF402"),
        ("SELECT COUNT(*), 1/'a' FROM people HAVING nonsense(1)", "SF403"),
        ("DROP TABLE people", "SF407"),
    ],
)
def test_refusals_cost_nothing(text, code):
    db = database()
    with pytest.raises(QueryRefused) as caught:
        db.sql(text, epsilon=0.5).release()
    assert caught.value.code == code
    assert db.budget.spent == 0


def test_python_asks_the_same():
    db = database()
    request = db.table("people").where(sf.col("age") > 30).group_by("region").agg(n=sf.count())
    release = db.ask(request, epsilon=0.5).release()
    assert release.columns == ("region", "n") and len(release) == 3


def test_bad_arguments_are_refused():
    with pytest.raises(InvalidArgument):
        database(columns={"aeg": sf.between(0, 1)})
    with pytest.raises(InvalidArgument):
        database(unit="nobody")
    with pytest.raises(InvalidArgument):
        database().sql(QUESTION).release()
    with pytest.raises(InvalidArgument):
        database().sql(QUESTION, epsilon=float("nan"))
    with pytest.raises(InvalidArgument):
        sf.connect("no such file.parquet", unit=None, budget=sf.Budget(epsilon=1))


def test_counts_can_be_made_non_negative_and_say_so(tmp_path):
    """A count of nobody: shown as zero or more, here, when stored, and in its intervals."""
    db = database(ledger=tmp_path / "ledger")
    question = db.sql(
        "SELECT region, COUNT(*) AS n FROM people WHERE age < 0 GROUP BY region",
        epsilon=0.01,
        non_negative=True,
    )
    for release in (question.release(key="a"), question.release(key="a")):
        assert all(value >= 0 for value in release.column("n"))
        assert all(low >= 0 for low, _ in release.intervals()["n"])
        assert "raised to zero" in repr(release) and release.tables[0].non_negative
    with pytest.raises(LedgerError):  # another question: as the noise is
        db.sql(
            "SELECT region, COUNT(*) AS n FROM people WHERE age < 0 GROUP BY region", epsilon=0.01
        ).release(key="a")
    with pytest.raises(InvalidArgument):
        db.sql("SELECT COUNT(*) FROM people", epsilon=1, non_negative="yes")


def test_errors_and_weights_go_by_the_names_of_the_question():
    db = database()
    text = "SELECT COUNT(*) AS n, SUM(age) AS total FROM people"
    even, heavy = (db.sql(text, epsilon=1, **more) for more in ({}, {"weights": {"n": 100}}))
    widths = [question.priced().costs[0].noises[0].law.variance for question in (even, heavy)]
    assert widths[1] < widths[0]
    low, high = db.sql(text).release(error={"n": 30}).intervals()["n"][0]
    assert 50 <= high - low <= 60
    with pytest.raises(InvalidArgument, match="nobody"):
        db.sql(text).release(error={"nobody": 30})


def test_a_rule_has_a_name():
    assert sf.Budget(epsilon=3, delta=1e-7, rule="pure").keys_delta == Fraction(1, 10**7)
    assert sf.Budget(epsilon=3, delta=1e-7, rule="gaussian") == sf.Budget(epsilon=3, delta=1e-7)
    assert sf.Budget(epsilon=3, delta=1e-7, rule="zcdp").rule.name == "zero_concentrated"
    with pytest.raises(InvalidArgument, match="no rule"):
        sf.Budget(epsilon=3, delta=1e-7, rule="renyi")


def test_the_delta_of_googlesql_is_for_selecting_groups():
    db = database()
    text = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta={}, max_groups_contributed=1,"
        " group_selection_strategy=LAPLACE_THRESHOLD, privacy_unit_column=person)"
        " age, COUNT(DISTINCT person) AS n FROM people GROUP BY age"
    )
    costs = [db.sql(text.format(delta)).priced().costs[0] for delta in ("1e-9", "1e-12")]
    assert costs[0].keys_delta <= Fraction(1, 10**9) and costs[1].keys_delta <= Fraction(1, 10**12)
    assert costs[0].selections[0].threshold < costs[1].selections[0].threshold
    with pytest.raises(InvalidArgument, match="above the 1e-08"):
        db.sql(text.format("1e-7")).priced()


def test_a_question_from_calls_is_asked_like_one_in_sql():
    db = database()
    people = db.table("people")
    asked = people.where(sf.col("age") > 30).group_by("region").agg(n=sf.count(), age=sf.avg("age"))
    assert ".ask(epsilon=" in repr(asked)
    question = asked.ask(epsilon=0.5)
    same = db.sql(
        "SELECT region, COUNT(*) AS n, AVG(age) AS age FROM people WHERE age > 30 GROUP BY region",
        epsilon=0.5,
    )
    assert repr(question) == repr(same) == repr(db.ask(asked, epsilon=0.5)) and db.budget.spent == 0
    assert question.explain(size=100) == same.explain(size=100)
    release = asked.release(epsilon=0.5, non_negative=True, key="k")
    assert release.columns == ("region", "n", "age") and db.budget.spent > 0
    assert asked.release(error={"n": 100}, size=100).column("region") == ["north", "south", "west"]
    others = people.not_exists(people.where(sf.col("age") > 70), unit=True)
    assert others.agg(n=sf.count()).ask(epsilon=1).release().columns == ("n",)
    once = people.per_unit(n=sf.count()).group_by(many=sf.col("n") > 2).agg(people=sf.count_units())
    assert once.ask(epsilon=1).release().columns == ("many", "people")
    assert (
        people.rollup("region").agg(h=sf.histogram("region"), d=sf.sum_(sf.col("age") // 10)).ask(epsilon=1)
    )
    with pytest.raises(InvalidArgument, match="another table"):
        people.join(PEOPLE)


def test_a_question_that_will_be_refused_can_still_be_shown():
    """Notebooks, debuggers and crash reporters call repr, and must not fail for it."""
    shown = repr(database(columns={}).sql("SELECT SUM(age) AS total FROM people", epsilon=0.1))
    assert shown.startswith("question that will be refused:\nerror[SF405]"), shown


def test_several_questions_in_one_statement_share_one_epsilon() -> None:
    """So that the ceiling of one question is theirs together."""
    db = sf.connect(
        pd.DataFrame({"person": range(50), "age": range(50)}),
        name="people",
        unit="person",
        max_rows=1,
        budget=sf.Budget(epsilon=3, delta=1e-7),
    )
    text = "SELECT (SELECT COUNT(*) FROM people) AS n, (SELECT COUNT(*) FROM people WHERE age > 9) AS m"
    question = db.sql(text, epsilon=1)
    priced = question.priced()
    assert len(priced.costs) == 2
    assert priced.epsilon == 1
    assert question.release().cost["epsilon"] == 1


# -- what a newcomer meets -----------------------------------------------------------------------


def test_every_option_of_a_question_is_named_typed_and_documented():
    page = (Path(__file__).parent.parent / "docs" / "queries.md").read_text()
    known = {one.name for one in fields(Options)}
    assert known - {"epsilon"} == set(QUESTION_OPTIONS) == set(QuestionOptions.__annotations__)
    for name in (*known, "free", "purpose"):
        assert f"`{name}`" in sf.Database.sql.__doc__, name
        assert f"`{name}`" in page, name
    for door in (sf.Database.sql, sf.Database.ask, Asked.ask, Asked.release, sf.Budget, sf.Question.release):
        assert "Any" not in str(signature(door).parameters.get("options")), door
    for door in (sf.Database.sql, sf.Database.ask, Asked.ask, Asked.release):
        assert signature(door).parameters["options"].annotation == "Unpack[QuestionOptions]", door
    with pytest.raises(TypeError):
        database().sql(QUESTION, epsilon=1, max_group=3)
    with pytest.raises(InvalidArgument, match="did you mean `max_groups`"):
        database().table("people").agg(n=sf.count()).ask(epsilon=1, max_group=3)


@pytest.mark.parametrize(
    ("given", "cure"),
    [
        (["north", "south"], "sf.one_of('north', 'south')"),
        ((0, 110), "sf.between(0, 110)"),
        ([0.5, 1.5], "sf.between(0.5, 1.5)"),
        (range(111), "sf.between(0, 110)"),
        ({"x"}, "sf.one_of('x')"),
        (tuple(range(9)), "sf.one_of(0, 1, 2, 3, 4, 5, ..)"),
        ("north", "sf.between(0, 110), 'region': sf.one_of("),
        (int, "sf.one_of("),
        (None, "sf.one_of("),
    ],
)
def test_a_wrong_declaration_is_refused_with_the_right_one(given, cure):
    for declare in (
        lambda: database(columns={"region": given}),
        lambda: database().declare({"region": given}),
        lambda: database().declare(region=given),
    ):
        with pytest.raises(InvalidArgument) as refused:
            declare()
        assert cure in refused.value.hints[0] and refused.value.place == "columns['region']"


def test_reprs_are_one_short_line():
    db = database()
    people = db.table("people")
    shown = {
        "<database of people (private); unit `person`>": db,
        "<budget: epsilon 3, delta 1e-07, gaussian rule; of delta 1e-08 is for finding groups>": db.terms,
        "<budget of `person`: epsilon 3, delta 1e-07; 0.0% spent>": db.balance,
        "<private rows of person, region, age; .agg(n=sf.count()) asks>": people,
        "<groups by region; .agg(n=sf.count()) asks>": people.group_by("region"),
        "<rows that will be refused: no column `aeg` here>": people.where(sf.col("aeg") > 1),
    }
    for text, thing in shown.items():
        assert repr(thing) == text


def test_a_budget_that_is_spent_speaks_in_epsilon():
    db = database(budget=sf.Budget(epsilon=1, delta=1e-7))
    with pytest.raises(BudgetExceeded) as refused:
        for _ in range(100):
            db.sql("SELECT COUNT(*) AS n FROM people", epsilon=0.5).release()
    error = refused.value
    assert error.message.startswith("this costs epsilon 0.5, and what is left of epsilon 1 covers 0.")
    fitting = float(error.message.rsplit(" ", 1)[1])
    assert error.hints[0] == f"epsilon {fitting:g} fits, with more noise"
    assert "covers 3 like this one, by the gaussian rule" in error.hints[1]
    assert len(db.ledger.history()) == 3, "as many as it says"
    db.sql("SELECT COUNT(*) AS n FROM people", epsilon=fitting).release()


def test_a_release_can_be_awaited():
    db = database()

    async def both():
        questions = [db.sql(QUESTION, epsilon=epsilon) for epsilon in (0.25, 0.5)]
        return await asyncio.gather(*(question.release_async(key="a") for question in questions[:1]))

    [release] = asyncio.run(both())
    assert release.to_json() == db.sql(QUESTION, epsilon=0.25).release(key="a").to_json()


def test_steps_are_told_and_nothing_else():
    told = []
    database().sql(QUESTION, epsilon=0.5).release(progress=told.append)
    assert told == ["waiting for memory", "charging", "computing", "storing"]
    with pytest.raises(InvalidArgument, match="True, False or a function"):
        database().sql(QUESTION, epsilon=0.5).release(progress="yes")


def test_a_long_question_shows_its_step_and_clears_the_line(monkeypatch):
    """The question waits for the line, and not the test for a time."""
    written = threading.Event()

    class Stream(io.StringIO):
        def flush(self):
            written.set()

    stream = Stream()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr("sfumato.session.progress._PATIENCE", 0.0)
    db = database()
    whole = type(db.backend).run
    monkeypatch.setattr(
        type(db.backend), "run", lambda *given, **more: written.wait(60) and whole(*given, **more)
    )
    db.sql(QUESTION, epsilon=0.5).release(progress=True)
    assert re.match(r"\r[a-z ]+, \d+ s", stream.getvalue()) and stream.getvalue().endswith(" \r")


def test_what_happens_is_logged_without_a_value(caplog):
    with caplog.at_level("DEBUG", logger="sfumato"):
        database().sql(QUESTION, epsilon=0.5).release()
    told = [record.getMessage() for record in caplog.records if record.name == "sfumato"]
    assert told[0] == "opened private table 'people': 3 columns, 0 left out"
    assert [text for text in told if "charged epsilon 0.5" in text and "'person'" in text]
    assert told[-1].endswith(": answered")


def test_nothing_is_logged_where_nobody_listens(capsys):
    db = database(budget=sf.Budget(epsilon=1, delta=1e-7))
    db.sql(QUESTION, epsilon=0.5).release()
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("kind", ["reader", "dataset", "relation", "batch"])
def test_tables_of_other_libraries_are_taken(kind):
    table = pa.Table.from_pandas(PEOPLE)
    connection = duckdb.connect()
    source = {
        "reader": table.to_reader,
        "dataset": lambda: pyarrow.dataset.dataset(table),
        "relation": lambda: connection.from_arrow(table),
        "batch": lambda: table.combine_chunks().to_batches()[0],
    }[kind]()
    db = sf.connect(
        source, unit="person", name="people", max_rows=3, budget=sf.Budget(epsilon=10**6, delta=1e-7)
    )
    assert db.sql("SELECT COUNT(*) AS n FROM people", epsilon=10**5).release().rows == ((900,),)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (PEOPLE["age"], ("a Series", "whole frame")),
        (PEOPLE["age"].to_numpy(), ("a ndarray", "columns=")),
        ([{"person": 1}], ("a list", "from_pylist")),
        (duckdb.connect(), ("a DuckDBPyConnection", "connection.table")),
        (7, ("a int", "DataFrame")),
    ],
)
def test_what_is_no_table_is_refused_by_its_name(source, words):
    with pytest.raises(InvalidArgument) as refused:
        sf.connect(source, unit="person", budget=sf.Budget(epsilon=1))
    assert all(word in str(refused.value) for word in words)


def test_caps_propose_no_more_groups_than_are_declared():
    """Units are in more groups than are declared, and the noise at this epsilon is far below one rank."""
    frame = pd.DataFrame(
        {
            "person": [i // 12 for i in range(12_000)],
            "a": [f"a{i % 4}" for i in range(12_000)],
            "b": [f"b{i % 3}" for i in range(12_000)],
        }
    )

    def proposed(by, **declared):
        db = sf.connect(
            frame, unit="person", name="t", budget=sf.Budget(epsilon=10**5, delta=1e-7), **declared
        )
        return db.caps(by=by, epsilon=10**4).release().one()["max_groups"]

    one = {"a": sf.one_of("a0")}
    both = {"a": sf.one_of("a0", "a1"), "b": sf.one_of("b0", "b1")}
    pairs = {("a", "b"): [("a0", "b0"), ("a1", "b1"), ("a2", "b2")]}
    assert proposed("a") == 4 and proposed(["a", "b"]) == 12
    assert proposed("a", columns=one) == 1
    assert proposed(["a", "b"], columns=both) == 4
    assert proposed(["a", "b"], keys=pairs) == 3
