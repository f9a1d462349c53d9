"""What all kinds of questions share: one way to be shown, priced once, and never from what has changed."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import learn
from sfumato.core.steps import limited, steps_taken
from sfumato.errors import InvalidArgument, QueryRefused
from sfumato.learn.fit_question import FitQuestion
from sfumato.session import Database, Question, SqlQuestion

ILL = "SELECT COUNT(*) AS n FROM people WHERE ill"
BY_AREA = "SELECT area, COUNT(*) AS n FROM people JOIN areas USING (place) GROUP BY area"


def people() -> pa.Table:
    days = [datetime.date(2026, 1, 1 + one % 5) for one in range(600)]
    return pa.table(
        {
            "who": range(600),
            "place": [one % 3 for one in range(600)],
            "age": [20 + one % 50 for one in range(600)],
            "ill": [one % 2 == 0 for one in range(600)],
            "day": days,
        }
    )


def database(**options: Any) -> Database:
    given = {
        "name": "people",
        "unit": "who",
        "max_rows": 1,
        "max_groups": 1,
        "columns": {"age": sf.between(18, 80)},
        "budget": sf.Budget(epsilon=50, delta=1e-5),
    }
    return sf.connect(people(), **{**given, **options})


def asked(db: Database) -> dict[str, Question[Any, Any]]:
    """Return a question of each kind."""
    model = learn.LogisticRegression(label="ill", features=["age"], epsilon=1)
    stream = db.stream(ILL, name="daily", by="day", every="day", start="2026-01-01", horizon=9, epsilon=1)
    fitted = model.fit(db.table("people"), key="model")
    return {
        "sql": db.sql(ILL, epsilon=1),
        "workload": db.workload({"ill": ILL, "mean": "SELECT AVG(age) AS m FROM people"}, epsilon=1),
        "marginals": db.marginals(["ill"], ways=1, epsilon=1),
        "stream": stream,
        "fit": model.question(db.table("people")),
        "network": learn.NeuralNetwork(label="ill", epsilon=1, steps=2).question(db.table("people")),
        "fairness": learn.fairness_report(fitted, db.table("people"), groups=["ill"], epsilon=1),
        "selection": learn.select_model(
            [learn.LogisticRegression(label="ill", features=["age"], steps=one) for one in (2, 3)],
            db.table("people"),
            epsilon=1,
        ),
    }


@pytest.fixture(scope="module")
def db() -> Iterator[Database]:
    found = database()
    yield found
    found.ledger.close()


@pytest.fixture(scope="module")
def questions(db: Database) -> dict[str, Question[Any, Any]]:
    return asked(db)


KINDS = ("sql", "workload", "marginals", "stream", "fit", "network", "fairness", "selection")


# -- one shape --------------------------------------------------------------------------------


def test_what_is_written_once_is_written_once(questions: dict[str, Question[Any, Any]]) -> None:
    """A data class that is made with a repr of its own would be shown in another way: it is planted below."""
    once = {"__repr__", "_repr_html_", "advise", "errors", "priced", "release", "release_async"}
    kinds = {type(one) for one in questions.values()}
    assert {SqlQuestion, FitQuestion} < kinds and len(kinds) == len(KINDS)
    assert not {(one.__name__, name) for one in kinds for name in once & set(vars(one))}

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Planted(SqlQuestion):
        """A kind that forgot `repr=False`."""

    assert "__repr__" in vars(Planted)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_says_the_same_things_and_spends_nothing(
    kind: str, db: Database, questions: dict[str, Question[Any, Any]]
) -> None:
    question, before = questions[kind], db.balance.spent_units
    price = question.price()
    assert 0 < price.epsilon <= 1 and 0 < price.share < 1 and price.times > 1 and price.refusal is None
    assert {"epsilon", "share_of_budget", "errors"} <= price.record().keys()
    assert "nothing" in price.lines()[-1] and repr(price) == "\n".join(price.lines())
    assert "<p>" in price._repr_html_()
    assert all(one.said and one.name for one in question.errors())
    assert "private" in question.explain() and "charged" in question.explain()
    advice = question.advise(advantage=0.1)
    assert advice.epsilon < 1 and advice.name == question.called
    assert "refused" not in repr(question) and question._repr_html_().startswith("<")
    assert replace(question, epsilon=Fraction(2)).priced().epsilon > question.priced().epsilon
    assert db.balance.spent_units == before


@pytest.mark.parametrize("kind", ["sql", "workload", "marginals", "stream", "fairness", "selection"])
def test_a_wanted_error_is_reached_by_about_the_least_epsilon(
    kind: str, questions: dict[str, Question[Any, Any]]
) -> None:
    name = "ill" if kind == "workload" else None
    least = max(one.error for one in questions[kind].errors(size=500) if one.error is not None)
    wanted = least / 2 if name is None else {name: least / 2}
    found = questions[kind].within(wanted, size=500)
    assert found.epsilon is not None and found.epsilon > 1
    errors = [one for one in found.errors(size=500) if name is None or one.name.startswith(f"{name}.")]
    assert all(one.error is None or one.error <= least / 2 * 1.001 for one in errors)
    with pytest.raises(InvalidArgument, match="no error of its own"):
        questions["fit"].within(1)


@pytest.mark.parametrize("kind", ["sql", "workload", "marginals", "stream"])
def test_names_that_are_no_texts_are_refused_and_any_error_can_be_wanted(
    kind: str, questions: dict[str, Question[Any, Any]]
) -> None:
    for error in ({5: 1, "b": 1}, {None: 1}, {("a", 3): 1}):
        with pytest.raises(InvalidArgument):
            questions[kind].within(error, size=500)
    found = questions[kind].within(1e300, size=500)
    assert found.epsilon is not None and 0 < found.epsilon < 1


def test_refusals_are_shown_and_name_the_kind() -> None:
    db = database()
    frame = db.table("people")
    workload = db.workload([ILL])
    assert repr(workload).startswith("workload that will be refused:\n") and "<pre>" in workload._repr_html_()
    fit = learn.LogisticRegression(label="ill").question(frame)
    assert repr(fit).startswith("a fit that will be refused:\n")
    with pytest.raises(InvalidArgument, match="a table of a session"):
        learn.LogisticRegression(label="ill", epsilon=1).question({"age": [1]})  # type: ignore[arg-type]


def test_a_stream_is_released_like_any_question_and_has_no_key() -> None:
    db = database()
    stream = db.stream(ILL, name="daily", by="day", every="day", start="2026-01-01", horizon=9, epsilon=1)
    with pytest.raises(InvalidArgument, match="goes by its name"):
        stream.release(key="mine")
    assert db.balance.spent_units == 0
    assert len(stream.release(purpose="report")) == len(stream.show())
    assert db.balance.spent_units == stream.price().units
    [text] = db.ledger.query_texts(db.ledger.history()).values()
    assert text.purpose == "report"


def test_a_fit_is_of_the_estimator_as_it_was() -> None:
    db = database()
    estimator = learn.LogisticRegression(label="ill", features=["age"], epsilon=1, steps=2)
    question = estimator.question(db.table("people"))
    estimator.set_params(epsilon=2, steps=3)
    assert question.price().epsilon == 1 and question.title.endswith("steps=2)")
    assert estimator.price(db.table("people")).epsilon == 2
    assert question.release(key="k").to_json() == question.release(key="k").to_json()
    assert not hasattr(estimator, "release_")


def test_two_networks_of_one_question_have_their_own_parameters() -> None:
    question = learn.NeuralNetwork(label="ill", epsilon=5, steps=2, hidden=(2,)).question(
        database().table("people")
    )
    first = question.release()
    before = [one.detach().clone() for one in first.module.parameters()]
    second = question.release()
    assert first.to_json() != second.to_json()
    assert all((one == two).all() for one, two in zip(before, first.module.parameters(), strict=True))


# -- priced once ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_price_is_made_once(kind: str, questions: dict[str, Question[Any, Any]]) -> None:
    question = questions[kind]
    assert question.priced() is question.priced() is question.priced(question.epsilon)
    assert question.priced(3) is question.priced(3) is not question.priced()
    assert replace(question, epsilon=question.epsilon).priced() is not question.priced()


def test_repr_price_explanation_and_release_share_one_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    import sfumato.session.sql_question as module

    made: list[Any] = []
    whole = module.plan
    monkeypatch.setattr(module, "plan", lambda *given, **more: made.append(more) or whole(*given, **more))
    question = database().sql(ILL, epsilon=1)
    assert repr(question) and question.explain() and question.price() and question.release()
    assert len(made) == 1


def test_many_epsilons_are_not_all_kept() -> None:
    question = database().sql(ILL, epsilon=1)
    first = question.priced(Fraction(1, 3))
    for one in range(1, 20):
        question.priced(one)
    assert question.priced(19) is question.priced(19)
    assert question.priced(Fraction(1, 3)) is not first


@pytest.mark.parametrize("door", [repr, lambda one: one.price(), lambda one: one.explain()])
@pytest.mark.parametrize("kind", ["sql", "workload", "marginals", "stream", "fit"])
def test_every_showing_takes_as_many_steps_as_the_first(kind: str, door: Callable[[Any], object]) -> None:
    """Whether a question is refused must not depend on how often it was shown."""
    question = asked(database())[kind]
    taken = []
    for _ in range(3):
        with limited(10**6) as steps:
            door(question)
        taken.append(steps.taken)
    assert len(set(taken)) == 1, taken


@pytest.mark.parametrize("kind", ["sql", "workload"])
def test_a_price_that_is_remembered_takes_as_many_steps(kind: str) -> None:
    """Otherwise a question would be refused or not by what was shown before."""

    def taken() -> int:
        with limited(10**9):
            question.priced()
            return steps_taken()

    question = asked(database())[kind]
    first = taken()
    assert taken() == first > 0
    few = replace(question.database, steps=first - 1)
    fresh = replace(question, database=few)
    with pytest.raises(QueryRefused, match="steps"):
        fresh.priced()


# -- and never from what has changed ----------------------------------------------------------


class Changing:
    """An engine whose public tables change: `state` is their version, and the name of the last area."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self.state: str | None = "south"

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def data_version(self) -> str:
        if self.state is None:
            raise InvalidArgument("opened for prices", place="tables")
        return f"{self._backend.data_version()} {self.state}"

    def public_keys(self, *given: Any) -> Any:
        found = self._backend.public_keys(*given)
        return (*found[:-1], (self.state or "none",))


@pytest.fixture
def changing() -> Iterator[tuple[Database, Changing]]:
    areas = pa.table({"place": [0, 1, 2], "area": ["east", "north", "south"]})
    opened = sf.connect(
        people(),
        name="people",
        public={"areas": areas},
        unit="who",
        max_rows=1,
        max_groups=1,
        budget=sf.Budget(epsilon=9, delta=1e-6),
    )
    backend = Changing(opened.backend)
    yield replace(opened, backend=backend), backend  # type: ignore[arg-type]
    opened.ledger.close()


def groups(question: Question[Any, Any]) -> list[str]:
    [bounding] = question.priced().boundings
    return [key for (key,) in bounding.query.declared]


def test_a_price_is_made_anew_when_a_public_table_has_changed(changing: tuple[Database, Changing]) -> None:
    """Without the version in the memory, the old groups would be priced, charged and shown."""
    db, backend = changing
    question = db.sql(BY_AREA, epsilon=1)
    before = question.priced()
    assert groups(question) == ["east", "north", "south"] and question.priced() is before
    backend.state = "west"
    assert groups(question) == ["east", "north", "west"] and question.priced() is question.priced()
    backend.state = "south"
    assert groups(question) == ["east", "north", "south"] and question.priced() is not before


def test_nothing_is_remembered_where_no_version_is_told(changing: tuple[Database, Changing]) -> None:
    db, backend = changing
    backend.state = None
    question = db.sql(BY_AREA, epsilon=1)
    assert question.priced() is not question.priced()
    assert groups(question) == ["east", "north", "none"]
    private = db.sql(ILL, epsilon=1)
    assert private.priced() is private.priced() and not private.reads_public
    several = db.workload([ILL, BY_AREA], epsilon=1)
    assert several.reads_public and several.priced() is not several.priced()
    assert not db.marginals(["ill"], ways=1, epsilon=1).reads_public
    assert learn.LogisticRegression(label="ill", epsilon=1).question(db.table("people")).reads_public
    assert db.balance.spent_units == 0


def test_what_is_left_and_what_is_kept_is_looked_up_each_time() -> None:
    db = database()
    question = db.sql(ILL, epsilon=1)
    fits, shown = question.price().times, repr(question)
    assert "free=True" not in shown
    question.release()
    assert question.price().times == fits - 1
    assert "free=True: it follows from release " in repr(question)
    stream = db.stream(ILL, name="s", by="day", every="day", start="2026-01-01", horizon=9, epsilon=1)
    assert "nothing is spent until it begins" in repr(stream)
    stream.start()
    assert "it has begun" in repr(stream)


def test_other_declarations_and_another_budget_are_other_prices() -> None:
    db = database()
    question = db.sql("SELECT SUM(age) AS s FROM people", epsilon=1)
    wider = replace(question, database=db.declare(age=sf.between(18, 800)))
    assert wider.errors()[0].error > 5 * question.errors()[0].error
