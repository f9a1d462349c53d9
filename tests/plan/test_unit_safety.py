"""Unit safety is one pass over the tree: what it refuses is refused whoever built the tree."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sfumato.aggregates.registry import Function
from sfumato.catalog import Kind
from sfumato.errors import QueryRefused
from sfumato.plan.tree import (
    Aggregate,
    ColumnRef,
    Filter,
    Join,
    Literal,
    PerUnit,
    Projection,
    PublicChoice,
    Query,
    Relation,
    Scan,
    SemiJoin,
    Span,
    Union,
)
from sfumato.plan.unit_safety import check_units, unit_of
from tests.plan.example import CATALOG

TRUE = Literal(value=True, kind=Kind.BOOLEAN)


def scan(table: str, alias: str | None = None) -> Scan:
    """Return a table with all columns but its unit."""
    found = CATALOG.table(table)
    assert found is not None
    hidden = found.unit.column if found.unit is not None else None
    name = alias or table
    columns = [ColumnRef(name=f"{name}.{one.name}", kind=one.kind) for one in found.fields]
    kept = tuple(column for column in columns if column.name != f"{name}.{hidden}")
    return Scan(table=table, alias=name, columns=kept)


PEOPLE, VISITS, CARS, SALES, REGIONS = (
    scan(name) for name in ("people", "visits", "cars", "sales", "regions")
)


def join(left: Relation, right: Relation, **given: bool) -> Join:
    return Join(left=left, right=right, condition=TRUE, **{"on_unit": False, "outer": False, **given})


def semi(source: Relation, other: Relation, **given: bool) -> SemiJoin:
    return SemiJoin(source=source, other=other, condition=TRUE, **{"on_unit": False, **given})


def per_unit(source: Relation) -> PerUnit:
    return PerUnit(source=source, keys=(), aggregates=(("n", Aggregate(function=Function.COUNT_ROWS)),))


SAFE: list[tuple[str, Relation]] = [
    ("person", PEOPLE),
    ("person", Filter(source=PEOPLE, condition=TRUE)),
    ("person", Projection(source=PEOPLE, columns=())),
    ("person", join(PEOPLE, REGIONS)),
    ("person", join(PEOPLE, REGIONS, outer=True)),
    ("person", join(PEOPLE, PublicChoice(source=REGIONS, limit=3))),
    ("person", join(PEOPLE, VISITS, on_unit=True)),
    ("person", join(PEOPLE, VISITS, on_unit=True, outer=True)),
    ("person", join(PEOPLE, join(REGIONS, scan("regions", "r")))),
    ("person", semi(PEOPLE, VISITS, on_unit=True)),
    ("person", semi(PEOPLE, VISITS, on_unit=True, negated=True)),
    ("person", semi(PEOPLE, REGIONS, negated=True)),
    ("person", Union(sources=(PEOPLE, scan("people", "p")))),
    ("person", per_unit(per_unit(VISITS))),
    ("sale", join(SALES, REGIONS)),
    ("sale", semi(SALES, REGIONS)),
]

UNSAFE: list[tuple[str, Relation]] = [
    ("RIGHT JOIN keeps rows", join(PEOPLE, REGIONS, keeps_right=True)),
    ("FULL JOIN keeps rows", join(PEOPLE, REGIONS, keeps_right=True, outer=True)),
    ("RIGHT JOIN keeps rows", join(REGIONS, PEOPLE, keeps_right=True)),
    ("tells who has no match", join(REGIONS, PEOPLE, outer=True)),
    ("comes first", join(REGIONS, PEOPLE)),
    ("only on their unit", join(PEOPLE, VISITS)),
    ("only on their unit", join(PEOPLE, VISITS, outer=True)),
    ("only on their unit", join(PEOPLE, scan("people", "p"))),
    ("not the same people", join(PEOPLE, CARS, on_unit=True)),
    ("not the same people", join(PEOPLE, CARS)),
    ("has no unit", join(PEOPLE, REGIONS, on_unit=True)),
    ("spread one unit", join(SALES, scan("sales", "s"))),
    ("spread one unit", join(SALES, scan("sales", "s"), on_unit=True)),
    ("spread one unit", join(PEOPLE, SALES, on_unit=True)),
    ("matched on the unit", semi(PEOPLE, VISITS)),
    ("matched on the unit", semi(PEOPLE, VISITS, negated=True)),
    ("matched on the unit", semi(PEOPLE, CARS, on_unit=True)),
    ("matched on the unit", semi(SALES, scan("sales", "s"), on_unit=True)),
    ("has no unit", semi(PEOPLE, REGIONS, on_unit=True)),
    ("chosen by private", semi(REGIONS, PEOPLE)),
    ("different units", Union(sources=(PEOPLE, CARS))),
    ("different units", Union(sources=(PEOPLE, REGIONS))),
    ("different units", Union(sources=(REGIONS, PEOPLE))),
    ("come in twice", Union(sources=(SALES, scan("sales", "s")))),
    ("pick some people's rows", PublicChoice(source=PEOPLE, limit=3)),
    ("pick some people's rows", PublicChoice(source=SALES, distinct=True)),
    ("pick some people's rows", PublicChoice(source=join(PEOPLE, REGIONS), distinct=True)),
    ("no unit to group by", per_unit(SALES)),
    ("no unit to group by", per_unit(REGIONS)),
    (
        "cannot be read",
        Scan(table="people", alias="p", columns=(ColumnRef(name="p.uid", kind=Kind.INTEGER),)),
    ),
    ("no table", Scan(table="elsewhere", alias="e", columns=())),
]

AROUND = (
    lambda below: below,
    lambda below: Filter(source=below, condition=TRUE),
    lambda below: Projection(source=below, columns=()),
    lambda below: join(scan("visits", "v"), below, on_unit=True),
    lambda below: join(below, scan("visits", "v"), on_unit=True),
    lambda below: semi(scan("visits", "v"), below, on_unit=True),
    lambda below: Union(sources=(scan("visits", "v"), below)),
    lambda below: per_unit(below),
)


@pytest.mark.parametrize(("unit", "relation"), SAFE)
def test_safe_rows_have_one_unit(unit: str, relation: Relation) -> None:
    found = unit_of(relation, CATALOG, "")
    assert found is not None and found.name == unit


def test_public_rows_have_none_and_are_no_question() -> None:
    public = join(REGIONS, scan("regions", "r"), outer=True)
    assert unit_of(public, CATALOG, "") is None
    assert unit_of(Union(sources=(public, REGIONS)), CATALOG, "") is None
    with pytest.raises(QueryRefused, match="nothing of a private table"):
        check_units(Query(source=public, keys=(), grouping_sets=((),), aggregates=(), text=""), CATALOG)


@pytest.mark.parametrize(("message", "relation"), UNSAFE)
def test_unsafe_rows_are_refused_wherever_they_stand(message: str, relation: Relation) -> None:
    for around in AROUND:
        with pytest.raises(QueryRefused, match=message) as caught:
            unit_of(around(relation), CATALOG, "")
        assert caught.value.code == "SF406" and caught.value.hints


def test_a_refusal_points_to_its_place() -> None:
    placed = replace(join(PEOPLE, VISITS), span=Span(2, 5))
    with pytest.raises(QueryRefused) as caught:
        unit_of(placed, CATALOG, "a join of two")
    assert (caught.value.start, caught.value.end) == (2, 5)


def test_a_node_that_nobody_knows_is_refused() -> None:
    with pytest.raises(QueryRefused, match="known to be safe"):
        unit_of(object(), CATALOG, "")  # type: ignore[arg-type]
