"""The join that names patients: what it gets from a table without names, and what from this system."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.attacks.attack_result import AttackResult, MeasuredRate, bit_bound
from sfumato.attacks.joined import Linked, Tables, alone, cells_of
from sfumato.attacks.linkage import linkage
from sfumato.attacks.population import invent_people
from sfumato.attacks.victims import TARGET, fair_sample, guess_bits
from sfumato.core import laplace
from sfumato.errors import InvalidArgument
from sfumato.plots import Bars, svg
from tests.attacks.chances import above, below

EPSILONS = (0.25, 1.0, 3.0)
SMALL: dict[str, Any] = {"people": 40_000, "victims": 2_000}


@pytest.fixture(scope="module")
def found() -> AttackResult:
    return linkage(epsilons=EPSILONS, **SMALL)


@pytest.fixture
def noiseless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant the worst bug of all: noise that is none."""
    monkeypatch.setattr(laplace, "discrete_laplace", lambda scale, size=None: np.zeros(size, dtype=np.int64))


# -- the claims of the page --------------------------------------------------------------------


def test_the_naive_release_names_nearly_all_who_are_unique(found: AttackResult) -> None:
    """All but the 2% whom the roll lists where they no longer live.

    False alarm below 1e-9: about 990 victims are drawn, and 600 or fewer with probability below 1e-14. Each
    is named with probability 0.98, and fewer than 93% are with probability below 1e-11. Power: a join that
    loses one victim in ten.
    """
    assert found.naive.trials > 600
    assert found.naive.share > 0.93


def test_through_this_system_the_attacker_is_as_good_as_epsilon_allows_and_no_better(
    found: AttackResult,
) -> None:
    """Every rate agrees with e^epsilon / (1 + e^epsilon).

    False alarm: six comparisons at 1e-10 each. Power: with 600 victims or more a rate that is off by 0.15 is
    seen, as noise of half the scale makes it at epsilon 1; smaller mistakes are seen below, with more people.
    """
    assert [point.epsilon for point in found.curve] == list(EPSILONS)
    for point in found.curve:
        assert point.bound == pytest.approx(math.exp(point.epsilon) / (1 + math.exp(point.epsilon)))
        assert point.rate.trials > 600
        assert not above(point), point
        assert not below(point), point


def test_a_planted_lack_of_noise_is_seen(noiseless: None) -> None:
    """Without noise the attacker is always right, and the comparison above fails."""
    [point] = linkage(epsilons=(1.0,), **SMALL).curve
    assert point.rate.share == 1
    assert above(point)


@pytest.mark.parametrize("factor", [0.4, 2.5])
def test_a_planted_wrong_scale_is_seen(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
    """Too little noise is above the bound, too much below it.

    False alarm, the planted bug going unseen, below 1e-9: with 4000 victims the rates at epsilon 1 are 0.92
    and 0.60, 19 and 17 deviations from 0.73, where 6.4 are enough.
    """
    real = laplace.discrete_laplace
    monkeypatch.setattr(laplace, "discrete_laplace", lambda scale, size=None: real(scale * factor, size=size))
    [point] = _many(1.0)
    assert above(point) if factor < 1 else below(point)


def test_the_bound_is_met_for_many_people() -> None:
    """At three epsilons 4000 people, each of them one group.

    False alarm: six comparisons at 1e-10. Power: a scale that is wrong by a fifth at epsilon 1.
    """
    for point in (*_many(0.1), *_many(1.0), *_many(2.0)):
        assert not above(point) and not below(point), point


def _many(epsilon: float, people: int = 4000) -> list[MeasuredRate]:
    who = np.arange(people)
    bits = who % 2 == 0
    table = pa.table({"person": who, "cell": who, "sick": bits})
    text = f'SELECT t."{TARGET}", COUNT(*) AS n FROM p JOIN r t ON t.cell = p.cell WHERE sick GROUP BY 1'
    public = {"r": pa.table({"cell": who, TARGET: who})}
    return [guess_bits(table, text, bits, epsilon, name="p", unit="person", public=public)]


def test_what_is_published_is_of_use(found: AttackResult) -> None:
    """The number of sick people is told to within 60. False alarm below 1e-25 at scale 1."""
    [told] = [text for label, text in found.facts if label.startswith("how many")]
    noisy, truth = told.replace(",", "").split(" ±")[0], told.replace(",", "").split("truth is ")[1]
    assert int(truth) > 0
    assert abs(int(noisy) - int(truth)) < 60


def test_there_are_two_pictures_that_can_be_drawn(found: AttackResult) -> None:
    success, known = found.pictures
    assert "no attacker can do better" in {mark.label for mark in success.marks}
    [bars] = known.marks
    assert isinstance(bars, Bars) and len(bars.bars) == 5
    assert all(svg(picture).startswith("<svg") for picture in found.pictures)
    assert "73.1%" in str(found)


# -- the invented population -------------------------------------------------------------------


def test_about_as_many_are_unique_as_in_the_united_states() -> None:
    """Of 200,000 people 63% are alone with ZIP code, birth date and sex, as Golle (2006) found.

    False alarm below 1e-12: the share has a deviation of about 0.1%, and the law's own value is 62.7%. Power:
    areas that are all of one size (87% would be alone), or birth days on half of the days.
    """
    world = invent_people(200_000)
    days = world.born.astype("datetime64[D]").astype(np.int64)
    _, cells = np.unique((world.zip * 100_000 + days - days.min()) * 2 + world.sex, return_inverse=True)
    assert 0.615 < alone(cells).mean() < 0.64
    sizes = np.bincount(world.zip)
    assert sizes.sum() == 200_000 and len(sizes) == 23
    assert np.median(sizes) < sizes.mean() / 2  # most areas are small, most people live in large ones


def test_fewer_are_alone_with_less(found: AttackResult) -> None:
    [bars] = found.pictures[1].marks
    assert isinstance(bars, Bars)
    shares = dict(bars.bars)
    assert shares["ZIP, birth date, sex"] > shares["ZIP, birth date"] > shares["ZIP, month, sex"]
    assert shares["ZIP, month, sex"] > shares["ZIP, year, sex"]


def test_a_roll_has_adults_only_and_a_table_has_no_names() -> None:
    world = invent_people(5_000)
    voters, patients = world.voters(), world.patients()
    assert world.adults[voters["person"].to_numpy()].all()
    assert "diagnosis" not in voters.column_names and patients.column_names[-1] == "diagnosis"


# -- the pieces, against slow and obvious ones -------------------------------------------------


def test_cells_are_those_of_a_dictionary() -> None:
    draw = np.random.default_rng(3)
    a = pa.table({"x": pa.array(draw.integers(0, 4, 60)), "y": pa.array(list("abc") * 20)})
    b = pa.table({"x": pa.array([1, 9, None], pa.int64()), "y": pa.array(["a", "z", "a"])})
    mine, theirs = cells_of([a, b], ["x", "y"])
    keys = [tuple(row.values()) for row in (*a.to_pylist(), *b.to_pylist())]
    cells = [*mine.tolist(), *theirs.tolist()]
    for i, key in enumerate(keys):
        for j, other in enumerate(keys):
            if None not in key and None not in other:
                assert (cells[i] == cells[j]) == (key == other)
    assert theirs[2] == -1
    assert alone(np.array([0, 1, 1, -1, 2])).tolist() == [True, False, False, False, True]


def test_claims_are_those_of_a_loop() -> None:
    """The join, and who is alone among everyone, against loops over small tables."""
    draw = np.random.default_rng(5)
    for _ in range(20):
        data = pa.table(
            {
                "zip": draw.integers(0, 12, 25),
                "who": draw.permutation(40)[:25],
                "ill": draw.choice(["a", "b"], 25),
            }
        )
        roll = pa.table({"zip": draw.integers(0, 12, 20), "who": draw.permutation(40)[:20]})
        linked = Linked.of(Tables.read(data, roll, on=("zip",), secret="ill", identity="who"))
        rows, names = data.to_pylist(), roll.to_pylist()
        for i, row in enumerate(rows):
            same = [name for name in names if name["zip"] == row["zip"]]
            twins = [one for one in rows if one["zip"] == row["zip"]]
            claim = len(same) == len(twins) == 1
            assert linked.claims[i] == claim
            assert linked.right is not None
            assert linked.right[i] == (claim and same[0]["who"] == row["who"])
            listed = row["who"] in {name["who"] for name in names}
            crowd = {one["who"] for one in (*same, *twins)}
            assert (i in linked.victims) == (listed and len(crowd) == 1)


def test_victims_are_a_fair_coin_each() -> None:
    """Of rare secrets too; and it ends where either kind runs out.

    False alarm below 1e-9: 2000 coins stay within 150 of half (6.7 deviations), and ten of a rare kind are
    used up within 200 coins. Power: a sample that takes people as they come has one in twenty.
    """
    rare = np.arange(60_000) % 20 == 0
    chosen = fair_sample(rare, 2000)
    assert len(chosen) == len(set(chosen.tolist())) == 2000
    assert abs(int(rare[chosen].sum()) - 1000) < 150
    few = np.arange(1000) < 10
    ended = fair_sample(few, 900)
    assert 10 <= len(ended) < 200
    assert few[ended].sum() <= 10
    assert not any(len(fair_sample(np.zeros(50, dtype=bool), 40)) for _ in range(40))


# -- one's own data ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def own() -> tuple[pa.Table, pa.Table]:
    world = invent_people(8_000)
    return world.patients(0.5), world.voters(0.9)


@pytest.mark.parametrize("form", ["arrow", "pandas", "polars", "parquet", "csv"])
def test_own_tables_are_taken_in_any_form(own: tuple[pa.Table, pa.Table], form: str, tmp_path: Path) -> None:
    given: list[Any] = []
    for i, table in enumerate(own):
        match form:
            case "arrow":
                given.append(table)
            case "pandas":
                given.append(table.to_pandas())
            case "polars":
                given.append(pl.DataFrame(table))
            case "parquet":
                pq.write_table(table, tmp_path / f"{i}.parquet")
                given.append(tmp_path / f"{i}.parquet")
            case _:
                table.to_pandas().to_csv(tmp_path / f"{i}.csv", index=False)
                given.append(str(tmp_path / f"{i}.csv"))
    found = linkage(*given, identity="person", value="hypertension", epsilons=(1.0,), victims=200)
    assert found.naive.share > 0.8  # 98% expected of 200
    assert found.curve[0].rate.trials == 200
    assert not above(found.curve[0])


def test_without_an_identity_claims_are_counted_and_not_checked(own: tuple[pa.Table, pa.Table]) -> None:
    patients, voters = (table.drop_columns(["person"]) for table in own)
    found = linkage(patients, voters, epsilons=(2.0,), victims=100)
    rows = [tuple(row.values())[:3] for row in patients.to_pylist()]
    names = [tuple(row.values())[:3] for row in voters.to_pylist()]
    assert found.naive.trials == len(_once(rows))
    assert found.naive.hits == len(_once(rows) & _once(names))
    assert any("without an identity" in text for _, text in found.facts)


def _once(rows: list[tuple[Any, ...]]) -> set[tuple[Any, ...]]:
    seen: dict[tuple[Any, ...], int] = {}
    for row in rows:
        seen[row] = seen.get(row, 0) + 1
    return {row for row, times in seen.items() if times == 1}


def test_without_a_roll_everybody_is_on_a_list(own: tuple[pa.Table, pa.Table]) -> None:
    patients, _ = own
    found = linkage(patients, on=("zip", "birth_date"), epsilons=(1.0,), victims=100, value="injury")
    assert found.naive.share == 1  # whoever is alone is named
    [bars] = found.pictures[1].marks
    assert isinstance(bars, Bars)
    assert [label for label, _ in bars.bars] == ["zip, birth_date", "birth_date", "zip"]


def test_names_and_values_that_need_quoting() -> None:
    frame = pd.DataFrame(
        {'the "place"': np.arange(200), "SELECT": np.arange(200) % 3, "it's": ["a'b", 'c"d'] * 100}
    )
    found = linkage(frame, on=('the "place"', "SELECT"), secret="it's", epsilons=(4.0,), victims=60)
    assert not above(found.curve[0])


# -- what is refused ---------------------------------------------------------------------------


def refused(*given: Any, **options: Any) -> InvalidArgument:
    with pytest.raises(InvalidArgument) as caught:
        linkage(*given, epsilons=(1.0,), **options)
    assert "37003" not in str(caught.value) and "hypertension" not in str(caught.value)
    return caught.value


def test_bad_input_is_refused_with_a_hint(own: tuple[pa.Table, pa.Table]) -> None:
    patients, voters = own
    assert refused(None, voters).hints
    assert "`nope`" in refused(patients, voters, on=("zip", "nope")).message
    assert "birth_date" in refused(patients, voters, secret="nope").hints[0]
    assert "different columns" in refused(patients, voters, on=("zip", "diagnosis")).message
    assert "different columns" in refused(patients, voters, on=()).message
    assert "no rows" in refused(patients.slice(0, 0), voters).message
    assert refused(patients, voters.slice(0, 0)).place == "roll"
    elsewhere = voters.set_column(1, "zip", pa.array(["99999"] * voters.num_rows))
    assert "nobody on the roll" in refused(patients, elsewhere).message
    assert "another kind" in refused(patients, voters.set_column(2, "birth_date", voters["sex"])).message
    twice = pa.concat_tables([patients, patients.slice(0, 1)])
    assert "twice" in refused(twice, voters, identity="person").message
    assert "another kind" in refused(patients, voters, value=3.5).message
    assert "fewer than" in refused(patients, voters, on=("sex",)).message
    assert "fewer than" in refused(patients, voters, value="nothing like it").message
    assert refused(people=3).place == "people"


def test_the_attainable_rate_is_the_formula() -> None:
    """P(noise >= 0) of a discrete Laplace law, summed, is the bound: the attacker could not do better."""
    for epsilon in (0.1, 1.0, 5.0):
        p = math.exp(-epsilon)
        mass = (1 - p) / (1 + p)
        tail = mass * sum(p**k for k in range(2000))
        assert tail == pytest.approx(bit_bound(epsilon), abs=1e-12)
