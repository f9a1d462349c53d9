"""What cannot be estimated is refused: with a code, the place and a hint, and before data is read."""

from __future__ import annotations

from typing import Any

import pytest

from sfumato.errors import InvalidArgument, QueryRefused
from tests.engine.doors import locked

EPSILON: dict[str, Any] = {"epsilon": 0.1}

REFUSED = [
    ("bounds", ("nothing",), {"table": "visits"}, "SF402"),
    ("bounds", ("amont",), {"table": "visits"}, "SF402"),
    ("bounds", ("amount",), {}, "SF402"),
    ("bounds", ("amount",), {"table": "nobody"}, "SF402"),
    ("bounds", ("size",), {"table": "places"}, "SF407"),
    ("bounds", ("word",), {"table": "visits"}, "SF403"),
    ("bounds", ("member",), {"table": "visits"}, "SF403"),
    ("bounds", ("day",), {"table": "visits"}, "SF403"),
    ("bounds", ("person",), {"table": "visits"}, "SF406"),
    ("caps", ("lone",), {}, "SF405"),
    ("caps", (), {}, "SF402"),
    ("caps", ("visits",), {"by": "person"}, "SF406"),
    ("caps", ("visits",), {"by": ["region", "nothing"]}, "SF402"),
]


@pytest.mark.parametrize(("method", "given", "named", "code"), REFUSED)
def test_refusals(method: str, given: tuple[str, ...], named: dict[str, Any], code: str) -> None:
    db = locked()
    with pytest.raises(QueryRefused) as caught:
        getattr(db, method)(*given, **named, **EPSILON)
    assert caught.value.code == code
    assert caught.value.hints or caught.value.start is not None
    assert db.budget.spent == 0


@pytest.mark.parametrize(
    ("method", "given", "named", "place"),
    [
        ("bounds", ("amount",), {"table": "visits", "share": 1}, "share"),
        ("bounds", ("amount",), {"table": "visits", "share": -0.1}, "share"),
        ("bounds", ("amount",), {"table": "visits", "false_alarm": 0}, "false_alarm"),
        ("caps", ("visits",), {"share": 0}, "share"),
        ("caps", ("visits",), {"limit": 0}, "limit"),
        ("caps", ("visits",), {"by": ["region", "REGION"]}, "by"),
    ],
)
def test_senseless_arguments(method: str, given: Any, named: dict[str, Any], place: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        getattr(locked(), method)(*given, **named, **EPSILON)
    assert caught.value.place == place


def test_a_misspelt_column_has_a_caret_and_a_hint() -> None:
    with pytest.raises(QueryRefused) as caught:
        locked().bounds("amont", table="visits", epsilon=0.1)
    assert "did you mean `amount`" in str(caught.value) and "^^^^^" in str(caught.value)


def test_nothing_is_released_without_a_price() -> None:
    db = locked()
    asked = db.sql("SELECT SUM(amount) FROM visits", epsilon=1, max_rows=2)
    for question in (db.bounds("amount", table="visits"), db.caps("visits"), asked.losses()):
        with pytest.raises(InvalidArgument) as caught:
            question.release()
        assert caught.value.place == "epsilon"


def test_prices_are_shown_without_data() -> None:
    db = locked()
    for question in (
        db.bounds("amount", table="visits", epsilon=0.1),
        db.caps("visits", by=["region", "member"], epsilon=0.1),
        db.sql("SELECT SUM(amount) FROM visits", epsilon=1, max_rows=2).losses(epsilon=0.1),
    ):
        assert "nothing is spent" in repr(question)
        assert "one unit can change" in question.explain()
    assert db.budget.spent == 0
