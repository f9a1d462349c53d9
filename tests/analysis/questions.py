"""Small trees, written briefly: a table of visits, and questions about it."""

from __future__ import annotations

from sfumato.aggregates.registry import Function
from sfumato.catalog import Catalog, Field, Kind, Table, Unit, between, one_of
from sfumato.plan.tree import Aggregate, Call, ColumnRef, Expression, Literal, Query, Relation, Scan, Span

FIELDS = (
    Field("person", Kind.INTEGER),
    Field("age", Kind.INTEGER, between(0, 110)),
    Field("amount", Kind.REAL, between(-20, 100)),
    Field("score", Kind.REAL, between(0, 1), nullable=False),
    Field("income", Kind.REAL),
    Field("region", Kind.TEXT, one_of("north", "south", "east")),
    Field("member", Kind.BOOLEAN, one_of(False, True)),
    Field("word", Kind.TEXT),
)


def catalog(**caps: int) -> Catalog:
    """People's visits, a list of people that is about the same units, rows that stand for themselves."""
    person = Unit(name="person", column="person")
    return Catalog(
        (
            Table(name="visits", fields=FIELDS, unit=person, **caps),
            Table(name="rows", fields=FIELDS, unit=Unit(name="row", column=None)),
            Table(name="others", fields=FIELDS, unit=Unit(name="household", column="person")),
            Table(name="public", fields=FIELDS, unit=None),
        )
    )


def column(name: str, alias: str = "v") -> ColumnRef:
    kind = next(field.kind for field in FIELDS if field.name == name)
    return ColumnRef(name=f"{alias}.{name}", kind=kind, span=Span(11, 11 + len(name)))


def scan(table: str = "visits", alias: str = "v") -> Scan:
    return Scan(table=table, alias=alias, columns=tuple(column(field.name, alias) for field in FIELDS))


AGE, AMOUNT, SCORE, INCOME = column("age"), column("amount"), column("score"), column("income")
REGION, MEMBER, WORD = column("region"), column("member"), column("word")
ROWS = Aggregate(function=Function.COUNT_ROWS)


def literal(value: float) -> Literal:
    return Literal(value=value, kind=Kind.INTEGER if isinstance(value, int) else Kind.REAL)


def call(function: str, *arguments: Expression, kind: Kind = Kind.REAL) -> Call:
    return Call(function=function, arguments=arguments, kind=kind)


def aggregate(function: Function, *arguments: Expression, **more: object) -> Aggregate:
    return Aggregate(function=function, arguments=arguments, span=Span(7, 10), **more)  # type: ignore[arg-type]


def question(
    *aggregates: Aggregate,
    by: tuple[Expression, ...] = (),
    sets: tuple[tuple[int, ...], ...] | None = None,
    source: Relation | None = None,
    text: str = "SELECT SUM(income) FROM visits",
) -> Query:
    return Query(
        source=scan() if source is None else source,
        keys=tuple((f"k{place}", key) for place, key in enumerate(by)),
        grouping_sets=(tuple(range(len(by))),) if sets is None else sets,
        aggregates=tuple((f"a{place}", one) for place, one in enumerate(aggregates)),
        text=text,
    )
