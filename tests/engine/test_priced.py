"""What every price has in common: fingerprint and cost record are written once, and worked out once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.continual.pricing import PricedStream
from sfumato.core.gaussian import GaussianNoise
from sfumato.learn.networks.training import PricedNetwork
from sfumato.learn.priced_selection import PricedSelection
from sfumato.pipeline import Priced, PricedAnswer, PricedQuery, priced_query
from sfumato.session import Database
from sfumato.workloads.batch import PricedBatch
from sfumato.workloads.marginals import PricedMarginals

KNOWN = (PricedQuery, PricedBatch, PricedMarginals, PricedStream, PricedNetwork, PricedSelection)


@pytest.fixture
def db() -> Database:
    budget = sf.Budget(epsilon=10, delta=1e-6)
    people = pa.table({"person": range(400), "age": [number % 100 for number in range(400)]})
    return sf.connect(
        people, name="people", unit="person", columns={"age": sf.between(0, 110)}, max_rows=1, max_groups=1,
        budget=budget,
    )  # fmt: skip


def subclasses(base: type) -> Iterator[type]:
    for one in base.__subclasses__():
        yield one
        yield from subclasses(one)


def test_no_price_has_a_fingerprint_or_a_cost_record_of_its_own() -> None:
    found = set(subclasses(Priced))
    assert found >= set(KNOWN)
    own = {"fingerprint", "cost_record", "_fingerprint", "_cost_record"}
    assert not {one.__name__: own & vars(one).keys() for one in found if own & vars(one).keys()}


def test_what_looks_several_times_is_not_answered_in_one_look() -> None:
    assert not issubclass(PricedStream, PricedAnswer) and not issubclass(PricedNetwork, PricedAnswer)


def test_a_price_that_does_not_say_what_is_asked_cannot_be_made() -> None:
    class Forgetful(PricedAnswer[sf.Release]):
        event = None  # type: ignore[assignment]

        def computed(self, look: object) -> sf.Release:  # type: ignore[override]
            raise AssertionError

    with pytest.raises(TypeError, match="asked"):
        Forgetful()  # type: ignore[abstract]


def test_the_cost_record_of_a_release_is_made_once(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    plain = priced_query.cost_record
    monkeypatch.setattr(priced_query, "cost_record", lambda *costs: made.append(costs) or plain(*costs))
    db.sql("SELECT COUNT(*) AS n, AVG(age) AS age FROM people", epsilon=1).release()
    assert len(made) == 1


def test_a_price_with_other_noise_has_another_fingerprint_event_and_record(db: Database) -> None:
    """What was worked out is of one value: `replace` keeps none of it."""
    priced = db.sql("SELECT COUNT(*) AS n FROM people", epsilon=1, noise="gaussian").priced()
    known = priced.fingerprint(), priced.event, priced.cost_record(), priced.epsilon
    [cost] = priced.costs
    law = GaussianNoise(Fraction(10**6))
    noises = tuple(
        replace(one, law=law, event=law.event(1)) for one in cost.noises
    )  # of one count: it moves by 1
    other = replace(priced, costs=(replace(cost, noises=noises, epsilon=Fraction(1, 100)),))
    found = other.fingerprint(), other.event, other.cost_record(), other.epsilon
    assert all(one != before for one, before in zip(found, known, strict=True))
    assert known == (priced.fingerprint(), priced.event, priced.cost_record(), priced.epsilon)


def test_a_record_that_is_changed_by_its_reader_does_not_change_the_price(db: Database) -> None:
    priced = db.sql("SELECT COUNT(*) AS n FROM people", epsilon=1).priced()
    priced.cost_record()["epsilon"] = Fraction(0)
    assert priced.cost_record()["epsilon"] == priced.epsilon == 1
