"""A choice among models: nobody is in both parts, scores stay in their box, one charge, and refusals."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.backends import Exact, UnitRows
from sfumato.core.events import Parallel
from sfumato.core.gaussian import GaussianNoise
from sfumato.errors import InvalidArgument, SfumatoError, Unsupported
from sfumato.learn import (
    AdditiveClassifier,
    AdditiveModel,
    LinearRegression,
    LogisticRegression,
    ModelSelection,
    SelectedModel,
    priced_selection,
    select_model,
)
from sfumato.learn.priced_selection import DividedRows, score_sums
from sfumato.learn.selected_model import GRID
from sfumato.learn.stored import read_stored
from sfumato.learn.training import PricedTraining

COLUMNS = {"age": sf.between(0, 100), "job": sf.one_of("baker", "cook", "smith"), "cost": sf.between(0, 10)}


def people(number: int) -> pa.Table:
    """Return people with two rows each, of whom old ones are ill; one of them has many rows."""
    rng = np.random.default_rng(3)
    who = np.concatenate([np.repeat(np.arange(number), 2), np.full(50, number - 1)])
    age = rng.uniform(0, 100, len(who))
    return pa.table(
        {
            "who": who,
            "age": age,
            "job": pa.array(np.array(["baker", "cook", "smith"])[rng.integers(0, 3, len(who))].tolist()),
            "cost": age / 10,
            "ill": age > 50,
        }
    )


@pytest.fixture(scope="module")
def db() -> sf.Database:
    budget = sf.Budget(epsilon=200, delta=1e-5)
    return sf.connect(people(600), name="people", unit="who", columns=COLUMNS, budget=budget)


def logistic(*steps: int) -> list[LogisticRegression]:
    return [LogisticRegression(label="ill", features=["age", "job"], steps=one) for one in steps]


def asked(db: sf.Database, **options: Any) -> ModelSelection:
    good = LogisticRegression(label="ill", features=["age"], steps=20)
    useless = LogisticRegression(label="ill", features=["job"], steps=5)
    return select_model([useless, good], db.table("people"), **{"epsilon": 5, **options})


@pytest.mark.parametrize("all_folds", [False, True])
def test_the_better_model_is_chosen_and_charged_once(db: sf.Database, all_folds: bool) -> None:
    """False alarm below 1e-9: the gap is 40 units at least, at a range of losses above 1: e^-40."""
    question = asked(db, epsilon=20, folds=4, all_folds=all_folds)
    before, price = db.balance.spent_units, question.price()
    chosen = question.release(key=f"all folds: {all_folds}")
    assert chosen.winner == 1 and db.balance.spent_units - before == price.units
    assert chosen.model.score({"age": [10, 90], "ill": [False, True]}) == 1
    low, high = chosen.interval(1 - 1e-9)
    assert low <= chosen.score <= high and low > 0.6
    assert chosen.receipt and chosen.model.receipt == chosen.receipt and chosen.model.cost == chosen.cost
    text = chosen.to_json()
    assert SelectedModel.from_json(text).to_json() == read_stored(text).to_json() == text
    again = question.release(key=f"all folds: {all_folds}")
    assert again.to_json() == text and db.balance.spent_units - before == price.units


@pytest.mark.parametrize("all_folds", [False, True])
def test_what_is_charged_covers_what_one_unit_meets(db: sf.Database, all_folds: bool) -> None:
    priced, rule = asked(db, folds=4, all_folds=all_folds).priced(), db.terms.rule
    trainings = sum((Fraction(rule.price(one.event)) for one in priced.trainings), Fraction(0))
    choice, score = priced_selection._scoring()
    scoring = Fraction(rule.price(choice.event(priced.laws[0]))) + Fraction(
        rule.price(score.event(priced.laws[1]))
    )
    charged, allowed = Fraction(rule.price(priced.event)), db.terms.allowance(5)
    assert charged <= allowed and float(charged / allowed) > 0.999
    if all_folds:  # three of four folds are trained on with a unit, its score counts, and so does the refit
        refit = max(Fraction(rule.price(one.event)) for one in priced.refits)
        assert charged >= 3 * trainings + scoring + refit - Fraction(1, 10**9)
    else:
        assert charged >= max(trainings, scoring) - Fraction(1, 10**9)
        assert isinstance(priced.event, Parallel)


@pytest.mark.parametrize("all_folds", [False, True])
def test_nobody_is_judged_by_a_model_that_saw_them(
    db: sf.Database, all_folds: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Record which rows each training and each judgement sees; a planted training on all rows fails here."""
    trained: list[UnitRows] = []
    judged: list[UnitRows] = []
    train, judge = PricedTraining.trained, priced_selection.score_sums

    def recorded(self: PricedTraining, exact: Exact[UnitRows]) -> Any:
        trained.append(exact.reveal())
        return train(self, exact)

    def recorded_score(model: Any, rows: UnitRows) -> Any:
        judged.append(rows)
        return judge(model, rows)

    monkeypatch.setattr(PricedTraining, "trained", recorded)
    monkeypatch.setattr(priced_selection, "score_sums", recorded_score)
    asked(db, folds=3, all_folds=all_folds).release()
    everybody = set(db.backend.training_rows(asked(db).priced().rows.relation).reveal().columns["age"])
    rounds = 3 if all_folds else 1
    assert len(trained) == 2 * rounds + all_folds and len(judged) == 4 * rounds
    for place in range(rounds):
        for one in trained[2 * place : 2 * place + 2]:
            seen, held = set(one.columns["age"]), set(judged[2 * place].columns["age"])
            assert not seen & held and seen | held == everybody
    if all_folds:  # each unit is judged once, and the winner is trained on all
        assert sum(len(one.sizes) for one in judged[0:6:2]) == 600
        assert set(trained[-1].columns["age"]) == everybody


def test_one_unit_moves_scores_by_at_most_one(db: sf.Database) -> None:
    """Neighbours with frozen folds and models: each sum rises by 0 to GRID, both by GRID together."""
    whole = db.backend.training_rows(asked(db).priced().rows.relation).reveal()
    models = [one.trained(Exact(whole)) for one in asked(db, epsilon=20).priced().trainings]
    ways = LinearRegression(label="cost", features=["age"], epsilon=5).priced(db.table("people"))
    number = db.backend.training_rows(ways.rows.relation).reveal()
    for model, rows in [*((one, whole) for one in models), (ways.trained(Exact(number)), number)]:
        everybody = score_sums(model, rows)
        for gone in (0, 17, len(rows.sizes) - 1):  # the last has 52 rows
            flags = np.ones(len(rows.sizes), dtype=np.bool_)
            flags[gone] = False
            moved = everybody - score_sums(model, rows.of_units(flags))
            assert (moved >= 0).all() and moved.sum() <= GRID
    nobody = whole.of_units(np.zeros(len(whole.sizes), dtype=np.bool_))
    assert score_sums(models[0], nobody).tolist() == [0, 0]


def test_folds_are_coins_of_units_and_rows_stay_together() -> None:
    """False alarm below 1e-9: 8 standard deviations of a binomial."""
    rows = UnitRows(columns={"x": np.repeat(np.arange(9000.0), 2)}, sizes=np.full(9000, 2))
    divided = DividedRows.of(rows, 3)
    for fold in range(3):
        inside = divided.inside(fold)
        assert abs(len(inside.sizes) - 3000) < 8 * np.sqrt(9000 * 2 / 9)
        assert len(inside.columns["x"]) == 2 * len(inside.sizes) == 2 * len(np.unique(inside.columns["x"]))
    assert "hidden" in repr(divided)


def test_intervals_cover_the_noise() -> None:
    """At level 1 - 1e-9 with the largest noise that half of it covers, on both sides."""
    law = GaussianNoise(Fraction((40 * GRID) ** 2))
    half = law.half_width(Fraction(1) - Fraction(1, 2 * 10**9))
    for right, wrong in ((900, 100), (3, 0), (0, 0)):
        for sign in (-1, 1):
            noisy = np.array([right * GRID + sign * half, wrong * GRID - sign * half])
            chosen = SelectedModel(winner=0, candidates=("a", "b"), model=None, measured=noisy, law=law)  # type: ignore[arg-type]
            low, high = chosen.interval(1 - 1e-9)
            exact = right / (right + wrong) if right + wrong else 0.5
            assert 0 <= low <= exact <= high <= 1 and 0 <= chosen.score <= 1


def test_additive_models_are_candidates_too(db: sf.Database) -> None:
    """False alarm below 1e-9, as above: the middle ages are no line's business."""
    line = LogisticRegression(label="ill", features=["job"], steps=5)
    curves = AdditiveClassifier(label="ill", features=["age"], bins=8, rounds=4)
    chosen = select_model([line, curves], db.table("people"), epsilon=20, folds=4).release()
    assert chosen.winner == 1 and isinstance(chosen.model, AdditiveModel) and "bins 8" in repr(chosen)
    assert SelectedModel.from_json(chosen.to_json()).to_json() == chosen.to_json()
    assert chosen.model.predict({"age": [5, 95]}).tolist() == [False, True]


def test_what_cannot_be_chosen_is_refused_before_anything_is_charged(db: sf.Database) -> None:
    rows, before = db.table("people"), db.balance.spent_units
    one, other = logistic(5, 6)
    for wrong, what in [
        (([one],), "two linear, logistic"),
        ((one,), "a list of estimators"),
        (([one, "other"],), "two linear, logistic"),
        ((logistic(*range(1, 102)),), "100 models at most"),
        (([one, LinearRegression(label="cost")],), "one label"),
        (([one, LogisticRegression(label="ill", epsilon=1)],), "no epsilon of their own"),
    ]:
        with pytest.raises(InvalidArgument, match=what):
            select_model(*wrong, rows, epsilon=1)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="folds"):
        select_model([one, other], rows, epsilon=1, folds=1)
    with pytest.raises(InvalidArgument, match="table of a session"):
        select_model([one, other], people(5), epsilon=1)  # type: ignore[arg-type]
    pure = sf.connect(people(5), name="p", unit="who", columns=COLUMNS, budget=sf.Budget(epsilon=1))
    with pytest.raises(Unsupported, match="Gaussian"):
        select_model([one, other], pure.table("p"), epsilon=1)
    assert db.balance.spent_units == before
    assert "not asked yet" in repr(select_model([one, other], rows, epsilon=1))


def test_searches_of_scikit_learn_are_refused(db: sf.Database) -> None:
    from sklearn.base import clone
    from sklearn.model_selection import GridSearchCV, cross_val_score

    model, before = LogisticRegression(label="ill", epsilon=1), db.balance.spent_units
    assert clone(model).get_params() == model.get_params()
    arrays = np.zeros((20, 1)), np.arange(20) % 2
    search = GridSearchCV(model, {"steps": [5, 10]})
    for refused in (
        lambda: search.fit(*arrays),
        lambda: search.fit(db.table("people")),
        lambda: cross_val_score(model, *arrays),
        lambda: cross_val_score(model, db.table("people")),
        lambda: model.fit(*arrays),  # type: ignore[arg-type]
    ):
        with pytest.raises(SfumatoError) as refusal:
            refused()
        assert any("select_model" in hint for hint in refusal.value.hints)
    assert db.balance.spent_units == before
