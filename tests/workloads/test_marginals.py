"""Marginals on the one path: what is counted, what one person moves, what is charged, and what is refused."""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import BudgetExceeded, InvalidArgument, QueryRefused, SfumatoError, Unsupported
from sfumato.plots import Tiles
from sfumato.session.marginals import MarginalsQuestion
from sfumato.workloads import marginal_columns
from sfumato.workloads.bases import Base
from sfumato.workloads.marginal_display import error_picture
from sfumato.workloads.marginal_release import Marginals

CELLS = {
    "place": ("a", "b", "c"),
    "cost": ((0, 10), (10, 20), (20, 51)),
    "old": (False, True),
    "day": (datetime.date(2020, 1, 1), datetime.date(2020, 7, 1)),
}
BINS = {
    "cost": [0, 10, 20, 50],
    "day": [datetime.date(2020, 1, 1), datetime.date(2020, 7, 1), datetime.date(2021, 1, 1)],
}
COLUMNS = ["place", "cost", "old", "day"]
CAPS = {"max_groups": 2, "max_rows": 3}


def rows_of(people: int, *, first: int = 0) -> list[dict[str, Any]]:
    """Rows of people with one to seven each; values at edges and beyond them, missing, and not listed."""
    rows = []
    for who in range(first, first + people):
        for visit in range(1 + who % 7):
            at = 3 * who + 5 * visit
            rows.append(
                {
                    "who": who,
                    "place": (None, "z", "a", "b", "c", "a", "b", "c", "a", "c", "b")[at % 11],
                    "cost": (0.0, 9.99, 10.0, 19.5, 20.0, 50.0, -3.0, 400.0, float("nan"), 5.0, 15.0, 44.0)[
                        at % 12
                    ],
                    "old": at % 3 == 0,
                    "day": datetime.date(2020, 1 + at % 12, 1 + at % 28),
                }
            )
    return rows


def connected(rows: list[dict[str, Any]], **more: Any) -> sf.Database:
    schema = pa.schema(
        [
            ("who", pa.int64()),
            ("place", pa.string()),
            ("cost", pa.float64()),
            ("old", pa.bool_()),
            ("day", pa.date32()),
        ]
    )
    given: dict[str, Any] = {"budget": sf.Budget(epsilon=10**12, delta=1e-6), **CAPS, **more}
    columns = {"place": sf.one_of("a", "b", "c"), "cost": sf.between(0, 50)}
    table = pa.Table.from_pylist(rows, schema=schema)
    return sf.connect(table, name="visits", unit="who", columns=columns, **given)


@pytest.fixture(scope="module")
def db() -> Iterator[sf.Database]:
    yield connected(rows_of(300))


def ask(db: sf.Database, columns: Any = None, **more: Any) -> MarginalsQuestion:
    return db.marginals(COLUMNS if columns is None else columns, **{"bins": BINS, "ways": 2, **more})


def cell_of(row: dict[str, Any]) -> tuple[int, ...] | None:
    """The cells of a row, by a second way; None if it is in no table."""
    if row["place"] not in CELLS["place"] or math.isnan(row["cost"]):
        return None
    cost = min(max(row["cost"], 0), 50)
    return (
        CELLS["place"].index(row["place"]),
        next(i for i, (low, high) in enumerate(CELLS["cost"]) if low <= cost < high),
        int(row["old"]),
        int(row["day"] >= CELLS["day"][1]),
    )


# -- what is counted ----------------------------------------------------------------------------


def test_with_next_to_no_noise_tables_are_those_of_the_rows() -> None:
    """No cap bites, and epsilon is huge: every cell of every table, with bins, edges, NULL and NaN."""
    rows = rows_of(300)
    db = connected(rows, max_groups=36, max_rows=7)
    release = ask(db, ways=3, epsilon=10**11).release()
    cells = [cell for row in rows if (cell := cell_of(row)) is not None]
    for names in release.tables:
        places = [COLUMNS.index(name) for name in names]
        wanted = Counter(tuple(cell[place] for place in places) for cell in cells)
        found = np.round(release.table(*names).counts)
        assert {cell: n for cell, n in np.ndenumerate(found) if n} == wanted
    assert release.table("cost", "place").counts.shape == (3, 3)
    assert np.allclose(release.table("cost", "place").counts, release.table("place", "cost").counts.T)
    frame = release.table("place", "old").to_pandas(0.95)
    assert list(frame.columns) == ["place", "old", "n", "deviation", "n_low", "n_high"]
    head, *lines = repr(release.table("place", "old")).splitlines()
    assert head.split() == ["place", "old", "n"] and len(lines) == len(frame)
    assert all(" ±" in line for line in lines)
    assert release.columns[1].labels == ("[0, 10)", "[10, 20)", "[20, 50]")


def test_missing_values_and_conditions_and_whole_numbers_have_their_cells() -> None:
    rows = rows_of(200)
    db = connected(rows, max_groups=99, max_rows=7).declare(place=sf.one_of("a", "b"))
    asked = db.marginals(
        ["place", "cost"],
        bins={"cost": 2},
        missing=True,
        where=sf.col("old") & (sf.col("place").is_null() | (sf.col("place") != "z")),
        epsilon=10**11,
    )
    table = asked.release().table("place", "cost")
    assert table.columns[0].labels == ("a", "b", None)
    assert table.columns[1].labels == ("[0, 25)", "[25, 50]", None)
    kept = [row for row in rows if row["old"] and row["place"] in ("a", "b", None)]
    wanted = Counter(
        (
            ("a", "b", None).index(row["place"]),
            2 if math.isnan(row["cost"]) else int(row["cost"] >= 25),
        )
        for row in kept
    )
    assert {cell: n for cell, n in np.ndenumerate(np.round(table.counts)) if n} == wanted


def test_declared_bins_are_used_unless_others_are_given() -> None:
    db = connected(rows_of(9)).declare(cost=sf.between(0, 50, bins=[0, 30, 50]))
    labels = db.marginals(["cost"], ways=1).workload.columns[0].labels
    assert labels == ("[0, 30)", "[30, 50]")
    assert len(db.marginals(["cost"], ways=1, bins={"cost": 5}).workload.columns[0].labels) == 5
    steps = db.declare(cost=sf.between(0, 50, bins=2)).marginals(["cost"], ways=1)
    assert steps.workload.columns[0].labels == ("[0, 25)", "[25, 50]")
    for wrong in (0, -1, True, [1], [3, 2], "ab", [0, datetime.date(2020, 1, 1)], 2.5):
        with pytest.raises(InvalidArgument, match="bins"):
            sf.between(0, 50, bins=wrong)  # type: ignore[arg-type]


def test_a_total_cap_divides_rows_and_counts_are_still_rows() -> None:
    """A cap over all combinations has counts in parts of a row; nobody has more rows than it leaves."""
    rows = [row for row in rows_of(300) if cell_of(row) is not None]
    first = list({row["who"]: row for row in rows}.values())  # one row of each
    db = connected(first, max_groups=4, max_rows=2, max_rows_total=5)
    release = ask(db, ways=2, epsilon=10**11).release()
    assert release.weight < 1 and abs(release.count().value - len(first)) < 0.01
    assert release.table("place", "old").deviations.max() < 0.01


def test_smaller_tables_sums_and_counts_follow_from_larger_ones(db: sf.Database) -> None:
    release = ask(db, epsilon=5).release()
    total = release.count()
    assert math.isclose(total.value, release.table("old").counts.sum(), abs_tol=1e-6)
    both = release.count(place=["a", "b"], old=True)
    table = release.table("place", "old")
    assert math.isclose(both.value, table.counts[:2, 1].sum(), abs_tol=1e-6)
    weights = np.zeros((2, 3))
    weights[1, :2] = 1
    turned = release.sum_of("old", "place", query=weights)
    assert math.isclose(turned.value, both.value, abs_tol=1e-6) and math.isclose(
        turned.deviation, both.deviation
    )
    low, high = both.interval(0.5)
    assert low < both.value < high and math.isclose(high - low, 2 * 0.67449 * both.deviation, rel_tol=0.03)
    assert math.isclose(release.count(place="a", old=False).deviation, table.deviations[0, 0])


def test_prefixes_have_less_error_where_they_are_asked_for(db: sf.Database) -> None:
    bins = {"cost": 30}
    plain, better = (
        db.marginals(["cost"], ways=1, bins=bins, bases=bases, epsilon=1).priced()
        for bases in ({}, {"cost": "prefixes"})
    )
    half = np.array([1.0] * 15 + [0.0] * 15)
    found = [
        Marginals(
            columns=one.workload.columns,
            weights=one.workload.weights,
            measured=tuple(
                np.zeros([base.rows for base in _bases(one, residual)], dtype=int)
                for residual in one.plan.residuals
            ),
            laws=one.laws,
        ).sum_of("cost", query=half)
        for one in (plain, better)
    ]
    assert found[1].deviation < 0.7 * found[0].deviation
    release = db.marginals(["cost", "old"], bins=bins, bases={"cost": "ranges"}, epsilon=1).release()
    assert np.allclose(release.table("cost", "old").counts.sum(axis=1), release.table("cost").counts)


def _bases(priced: Any, residual: tuple[int, ...]) -> list[Base]:
    return [priced.plan.bases[i] for i in residual]


# -- what one person moves ----------------------------------------------------------------------


def exact_residuals(db: sf.Database, question: MarginalsQuestion) -> list[np.ndarray]:
    """The exact integers of residuals, under a frozen salt. Opened here, in a test."""
    priced = question.priced()
    backend: Any = db.backend
    [groups] = backend.run(priced.bounding.query, _salt=7).reveal()
    return list(priced._residuals(groups))


@pytest.mark.parametrize("bases", [{}, {"cost": "prefixes"}], ids=("cells", "prefixes"))
@pytest.mark.parametrize(
    "caps",
    [{"max_groups": 1, "max_rows": 1}, CAPS, {"max_groups": 4, "max_rows": 2, "max_rows_total": 5}],
    ids=("one row", "groups and rows", "total"),
)
def test_neighbours_stay_within_what_is_charged(caps: dict[str, int], bases: dict[str, str]) -> None:
    """Replay with one of some people more, one of whom has many rows that are alike: norms are as claimed."""
    before = rows_of(40)
    crowd = {"who": 99, "place": "a", "cost": 5.0, "old": True, "day": datetime.date(2020, 2, 2)}
    alike = [crowd, {**crowd, "day": datetime.date(2020, 9, 9)}, {**crowd, "cost": 15.0}]
    newcomers = [rows_of(1, first=who) for who in (50, 53, 55)] + [[row for row in alike for _ in range(9)]]
    base = connected(before, **caps)
    exact = exact_residuals(base, ask(base, epsilon=1, bases=bases))
    closest = 0.0
    for newcomer in newcomers:
        other = connected(before + newcomer, **caps)
        question = ask(other, epsilon=1, bases=bases)
        priced = question.priced()
        for old, new, event in zip(exact, exact_residuals(other, question), priced.event.events, strict=True):
            moved = int(((new - old) ** 2).sum())
            assert moved <= event.l2_squared
            closest = max(closest, moved / event.l2_squared)
    assert closest > 0.95  # the claim is about what can happen, not far above it


def test_the_event_costs_what_epsilon_allows_and_all_residuals_are_in_it(db: sf.Database) -> None:
    priced = ask(db, epsilon=1).priced()
    terms = db.terms
    spent = sum(terms.rule.price(part) * times for part, times in priced.event.parts())
    allowed = terms.allowance(1)
    assert 0.9999 * allowed <= spent <= allowed
    assert len(priced.event.events) == len(priced.plan.residuals) == 1 + 4 + 6
    assert priced.event.delta(1.0) <= float(terms.delta_loss) * (1 + 1e-5)  # rounding of its own
    rows = 2 * 3
    wanted = [rows**2 * one for one in priced.plan.sensitivities_squared]
    assert [event.l2_squared for event in priced.event.events] == wanted
    assert [event.sigma_squared for event in priced.event.events] == [law.parameter for law in priced.laws]


def test_a_workload_is_one_charge_and_its_key_gives_the_stored_bytes(tmp_path: Path) -> None:
    rows = rows_of(30)
    given = {"budget": sf.Budget(epsilon=3, delta=1e-6), "ledger": str(tmp_path / "visits.ledger")}
    db = connected(rows, **given)
    question = ask(db, epsilon=1)
    assert db.balance.spent_units == 0
    release = question.release(key="tables")
    spent = db.balance.spent_units
    assert spent == db.terms.rule.charge(question.priced().event)
    assert question.release(key="tables").to_json() == release.to_json()
    assert db.balance.spent_units == spent
    db.ledger.verify()
    later = connected(rows, **given)  # after a restart
    assert ask(later, epsilon=1).release(key="tables").to_json() == release.to_json()
    with pytest.raises(SfumatoError, match="key"):
        ask(later, epsilon=1, weights="tables").release(key="tables")
    with pytest.raises(BudgetExceeded):
        ask(later, epsilon=3).release()
    assert later.balance.spent_units == spent
    restored = Marginals.from_json(release.to_json())
    assert restored.to_json() == release.to_json() and restored.receipt == release.receipt
    assert np.array_equal(restored.table("place", "cost").counts, release.table("place", "cost").counts)


def test_a_stored_release_is_read_with_the_matrix_that_was_measured(
    db: sf.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another machine may round another matrix: none is searched for when a release is read."""
    release = ask(db, ["cost", "old"], bins={"cost": 9}, bases={"cost": "prefixes"}, epsilon=1).release()
    monkeypatch.setattr(marginal_columns, "best_matrix", None)
    restored = Marginals.from_json(release.to_json())
    assert restored.columns[0].matrix == release.columns[0].matrix is not None
    assert np.array_equal(restored.table("cost", "old").counts, release.table("cost", "old").counts)


@pytest.mark.parametrize(
    "text", ["{}", '{"marginals":2}', '{"marginals":1}', '{"marginals":1,"columns":[]}', "x"]
)
def test_a_damaged_release_is_refused(text: str) -> None:
    with pytest.raises((InvalidArgument, Unsupported)):
        Marginals.from_json(text)


# -- errors -------------------------------------------------------------------------------------


def test_the_price_tag_shows_errors_and_touches_nothing(db: sf.Database) -> None:
    before = db.balance.spent_units
    shown = repr(ask(db, epsilon=1))
    assert "6 tables, 37 cells" in shown
    assert "place x cost: ±" in shown and "nothing is spent until" in shown
    assert "give epsilon" in repr(ask(db))
    assert "will be refused" in repr(ask(db, epsilon=1, where=sf.col("nothing") > 1))
    assert db.balance.spent_units == before


def test_wanted_errors_are_met_at_the_least_epsilon(db: sf.Database) -> None:
    wanted = {("place", "cost"): 40, ("old", "day"): 400}
    found = ask(db).within(wanted)
    errors = {names: 1.959964 * one for names, one in found.priced().errors().items()}
    assert errors["place", "cost"] <= 40 and all(error <= 400 for error in errors.values())
    assert found.epsilon is not None
    assert max(ask(db, epsilon=found.epsilon).priced().errors().values()) > 40 / 1.96  # even noise misses it
    less = found.priced(found.epsilon * 99 / 100)
    assert less.errors()["place", "cost"] * 1.959964 > 40
    even = ask(db).within(50)
    assert all(1.959964 * one <= 50 for one in even.priced().errors().values())


def test_tables_alike_and_heavier_tables() -> None:
    db = connected([])
    by_cells, by_tables = (ask(db, epsilon=1, weights=one).priced().errors() for one in ("cells", "tables"))
    assert by_tables["old", "day"] < by_cells["old", "day"]
    heavy = ask(db, epsilon=1, weights={("day", "old"): 50}).priced().errors()
    assert heavy["old", "day"] < by_tables["old", "day"]


# -- what makes no sense ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "more", "message"),
    [
        ([], {}, "list of columns"),
        ("place", {}, "list of columns"),
        (["place", "place"], {}, "named twice"),
        (["place", 3], {}, "columns are names"),
        ([("place",), ("place",)], {"ways": None}, "named once"),
        ([("place", "place")], {"ways": None}, "each column once"),
        ([("place", "old")], {"ways": 2}, "columns are names"),
        (["place", "old"], {"ways": 3}, "between 0 and the number of columns"),
        (["place", "old"], {"ways": "two"}, "how many columns"),
        (["place", "old"], {"ways": True}, "how many columns"),
        (["place", "nothing"], {}, "no column `nothing`"),
        (["place", "who"], {}, "unit of protection"),
        (["place", "old"], {"bins": {"cost": 3}}, "no column of the tables"),
        (["place", "old"], {"bins": {"place": 3}}, "bins are of numbers and dates"),
        (["cost", "old"], {"bins": {}}, "`cost` has no public cells"),
        (["day", "old"], {"bins": {}}, "`day` has no public cells"),
        (["day", "old"], {"bins": {"day": 4}}, "between declared bounds"),
        (["day", "old"], {"bins": {"day": [1, 2]}}, "are dates"),
        (["cost", "old"], {"bins": {"cost": [0]}}, "edges of the bins of `cost` rise"),
        (["cost", "old"], {"bins": {"cost": [3, 2, 1]}}, "rise"),
        (["cost", "old"], {"bins": {"cost": [0, math.nan]}}, "are numbers"),
        (["cost", "old"], {"bins": {"cost": 0}}, "from 1 to 10,000"),
        (["cost", "old"], {"bins": {"cost": "abc"}}, "a list of edges"),
        (["place", "old"], {"weights": {("place", "old"): 0}}, "weights"),
        (["place", "old"], {"weights": {("place", "old"): -1}}, "weights"),
        (["place", "old"], {"weights": {("place", "old"): math.inf}}, "weights"),
        (["place", "old"], {"weights": {("place",): 1}}, "not asked for"),
        (["place", "old"], {"weights": {7: 1}}, "not asked for"),
        (["place", "old"], {"weights": "rows"}, "by table"),
        (["place", "old"], {"weights": 3}, "of tables how much"),
        (["place", "old"], {"bases": {"place": "sums"}}, "cells, prefixes, ranges"),
        (["place", "old"], {"bases": {"place": [[1, 1]]}}, "about 2 cells, and it has 3"),
        (["place", "old"], {"bases": {"cost": "ranges"}}, "no column of the tables"),
        (["place", "old"], {"missing": ["cost"]}, "no column of the tables"),
        (["cost", "day", "old"], {"bins": {"cost": 10_000, "day": BINS["day"]}, "ways": 3}, None),
    ],
)
def test_bad_input_is_refused_before_the_charge(
    db: sf.Database, columns: Any, more: dict[str, Any], message: str | None
) -> None:
    before = db.balance.spent_units
    bins = {name: one for name, one in BINS.items() if name in columns}
    asked = {"bins": bins, "ways": 2, "epsilon": 1, **more}
    if message is None:
        db.marginals(columns, **asked)
    else:
        with pytest.raises((InvalidArgument, QueryRefused), match=message):
            db.marginals(columns, **asked)
    assert db.balance.spent_units == before


def test_too_many_cells_are_counted_in_public_and_refused(db: sf.Database) -> None:
    days = [datetime.date(2000, 1, 1) + datetime.timedelta(days=i) for i in range(9_000)]
    with pytest.raises(InvalidArgument, match=r"89,990,000 cells, and at most 50,000,000"):
        db.marginals(["cost", "day"], bins={"cost": 10_000, "day": days}, epsilon=1)


def test_a_target_that_no_budget_reaches_is_named() -> None:
    db = connected([], budget=sf.Budget(epsilon=1, delta=1e-6))
    whole = ask(db, epsilon=1).priced()
    alone = {whole.workload.names(one): 1.96 * whole.deviation_alone(one) for one in whole.plan.tables}
    with pytest.raises(InvalidArgument, match="reaches the error wanted of `place x cost`\n") as refusal:
        ask(db).release(error={("place", "cost"): 0.5, ("old", "day"): 1000})
    assert "`place x cost` alone has about" in refusal.value.hints[0]
    with pytest.raises(InvalidArgument, match=r"of `place x cost`, `place x old`, .* together"):
        ask(db).within({name: 1.3 * one for name, one in alone.items()})
    with pytest.raises(InvalidArgument, match="more tables"):
        ask(db).within(0.01)
    for wrong in (0, -1, math.nan, {}, {("old", "place", "day"): 3}):
        with pytest.raises(InvalidArgument):
            ask(db).within(wrong)
    assert db.balance.spent_units == 0


def test_what_needs_an_epsilon_or_a_delta_says_so(db: sf.Database) -> None:
    with pytest.raises(InvalidArgument, match="may cost"):
        ask(db).release()
    with pytest.raises(InvalidArgument, match="protects no one"):
        ask(db, epsilon=10**31).release()
    pure = connected([], budget=sf.Budget(epsilon=1))
    with pytest.raises(Unsupported, match="no pure epsilon"):
        ask(pure, epsilon=1).release()
    uncapped = connected([], max_groups=None)
    with pytest.raises(QueryRefused, match="how many groups"):
        ask(uncapped, epsilon=1).release()


def test_a_table_or_cell_that_is_not_there_is_refused(db: sf.Database) -> None:
    release = ask(db, epsilon=1).release()
    with pytest.raises(InvalidArgument, match="not part of the workload"):
        release.table("place", "cost", "old")
    with pytest.raises(InvalidArgument, match="no column `plac`"):
        release.table("plac")
    with pytest.raises(InvalidArgument, match="each column once"):
        release.table("place", "place")
    with pytest.raises(InvalidArgument, match="no such cell"):
        release.count(place="d")
    with pytest.raises(InvalidArgument, match="3 x 2 finite weights"):
        release.sum_of("place", "old", query=[1, 2])


def test_a_notebook_shows_the_errors_of_all_pairs(db: sf.Database) -> None:
    question = ask(db, ways=3, epsilon=1)
    before, after = question._repr_html_(), question.release()._repr_html_()
    assert "not asked yet" in before and "<svg" not in before  # tables of three columns have no pairs to show
    assert after.count("<svg") == 1 and "place x cost x old" in after
    errors = {(name,): 1.0 for name in COLUMNS} | {("place", "old"): 2.0, ("place", "cost", "day"): 9.0}
    picture = error_picture(COLUMNS, errors)
    assert picture is not None
    [mark] = picture.marks
    assert isinstance(mark, Tiles) and len(mark.tiles) == 4 + 2
    assert ("old", "place", 2.0) in mark.tiles
    assert error_picture(["place"], {("place",): 1.0}) is None
    assert "<pre>" in ask(db)._repr_html_()


def test_progress_names_residuals_and_nothing_of_the_data(db: sf.Database) -> None:
    told: list[str] = []
    ask(db, epsilon=1).release(progress=told.append)
    assert told[-2:] == ["adding noise to residual 11 of 11", "storing"] and "computing" in told


def test_the_price_says_how_many_more_fit() -> None:
    db = connected([], budget=sf.Budget(epsilon=3, delta=1e-6))
    price = ask(db, epsilon=1).price()
    assert price.times >= 3 and len(price.errors) == 6 and price.refusal is None
    assert ask(db, epsilon=4).price().refusal is not None
