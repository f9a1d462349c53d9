"""Fingerprints: equal for what is equal, different for whatever is asked or declared, and without grants."""

from __future__ import annotations

import datetime
from dataclasses import field, fields, make_dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from sfumato.catalog import Analyst, Catalog, Field, Kind, Policy, between, one_of
from sfumato.catalog.canonical import canonical, fingerprint
from sfumato.core.accountant import PrivacyBudget
from sfumato.errors import Unsupported
from sfumato.plan.options import Options
from sfumato.plan.request import Request
from sfumato.plan.sql import parse
from sfumato.plan.tree import Span
from tests.plan.example import CATALOG, accepted


def test_the_text_of_a_record_is_fixed() -> None:
    """A change of this text is a change of every fingerprint: it needs a new version."""
    record = {"f": Field("x", Kind.REAL, between(0, 2)), "e": Fraction(1, 2), "d": datetime.date(2024, 2, 1)}
    assert canonical(record).startswith('{"d":{"date":"2024-02-01"},"e":{"ratio":["1","2"]},"f":{"of":')
    assert fingerprint(a=1) == "7fda64e3dae946022e22457da8467d8b9ef86193f1c5eccc15bc0a5007a84618"


@pytest.mark.parametrize(
    "values",
    [
        [1, True, 1.0, "1", Fraction(1), Decimal(1), None, (1,)],
        [0.0, -0.0, float("nan"), float("inf")],
        [datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1), "2024-01-01"],
        [Decimal("1.0"), Decimal("1.00")],
        [2**53, float(2**53), 2**53 + 1],
        [frozenset("ab"), ("a", "b"), frozenset("abc")],
        [{"a": 1}, {"a": 2}, {"b": 1}, {"a": {"a": 1}}],
    ],
)
def test_different_values_have_different_texts(values: list[Any]) -> None:
    assert len({canonical(value) for value in values}) == len(values)


def test_order_does_not_count_where_there_is_none() -> None:
    assert canonical({"a": 1, "b": 2}) == canonical({"b": 2, "a": 1})
    assert canonical(frozenset("abcdef")) == canonical(frozenset("fedcba"))


@pytest.mark.parametrize("default", [None, False, 0.0, ()])
def test_a_field_that_is_added_later_keeps_old_texts(default: Any) -> None:
    """Else no option could be added: every key of every ledger would belong to another request."""
    later = field(default=default, metadata={"later": True})
    old = make_dataclass("Asked", [("n", int)])
    new = make_dataclass("Asked", [("n", int), ("more", Any, later)])
    assert canonical(new(1)) == canonical(old(1)) == canonical(new(1, default))
    values = [None, False, 0, 0.0, -0.0, "", (), 1]
    assert len({canonical(new(1, more)) for more in values}) == len(values)


def test_what_has_no_canonical_form_is_refused() -> None:
    for value in (object(), lambda: 1, {1: 2}, b"x", complex(1)):
        with pytest.raises(Unsupported):
            canonical(value)


def test_grants_are_not_in_the_catalog_s_fingerprint() -> None:
    def granted(*names: str, epsilon: int = 1, ceiling: int = 5) -> str:
        analysts = tuple(Analyst(name=name, budget=PrivacyBudget(epsilon=epsilon)) for name in names)
        return replace(CATALOG, policy=Policy(ceiling=Fraction(ceiling), analysts=analysts)).fingerprint()

    assert granted("ann", "bob") == granted("ann", epsilon=3) == granted()
    assert granted() != granted(ceiling=6)


def test_every_declaration_is_in_the_catalog_s_fingerprint() -> None:
    first, *rest = CATALOG.tables
    age, turned = first.fields[1], replace(first.fields[3], domain=one_of("south", "north"))
    changed = [
        *(replace(first, fields=(first.fields[0], replace(age, **one), *first.fields[2:])) for one in (
            {"name": "years"}, {"kind": Kind.REAL}, {"domain": between(0, 111)}, {"nullable": False},
        )),
        replace(first, max_groups=3), replace(first, max_rows=3), replace(first, name="persons"),
        replace(first, partition="region"),
        replace(first, fields=(*first.fields[:3], turned, *first.fields[4:])),
    ]  # fmt: skip
    prints = {Catalog((one, *rest)).fingerprint() for one in changed}
    assert len(prints | {CATALOG.fingerprint()}) == len(changed) + 1


def test_every_part_of_a_request_is_in_its_fingerprint() -> None:
    request = parse("SELECT region, COUNT(*) FROM people GROUP BY region", CATALOG)
    other = parse("SELECT job, SUM(age) AS s FROM people, regions GROUP BY job", CATALOG)
    given: dict[str, Any] = {
        "text": "x", "queries": other.queries, "postprocessing": None, "options": Options(min_units=3),
        "public": ("regions",), "notes": ("a",), "sought": "x",
    }  # fmt: skip
    assert given.keys() == {field.name for field in fields(Request)}
    prints = {fingerprint(request=replace(request, **{name: value})) for name, value in given.items()}
    assert len(prints | {fingerprint(request=request)}) == len(given) + 1


def test_equal_requests_have_equal_fingerprints_and_others_have_not() -> None:
    prints = {text: fingerprint(request=parse(text, CATALOG)) for text, _ in accepted()}
    assert all(fingerprint(request=parse(text, CATALOG)) == known for text, known in prints.items())
    assert len(set(prints.values())) == len(prints)


def test_places_in_the_text_do_not_count() -> None:
    request = parse("SELECT COUNT(*) FROM people WHERE age > 3", CATALOG)
    [named] = request.queries
    source: Any = named.query.source
    moved = replace(source, condition=replace(source.condition, span=Span(0, 1)))
    again = replace(request, queries=(replace(named, query=replace(named.query, source=moved)),))
    assert fingerprint(request=request) == fingerprint(request=again)
