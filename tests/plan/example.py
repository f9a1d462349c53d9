"""A catalog to ask about, and readers of the fixture files."""

from __future__ import annotations

from pathlib import Path

from sfumato.catalog import Catalog, Field, Kind, Table, Unit, between, one_of

FIXTURES = Path(__file__).parent / "fixtures"

PERSON = Unit(name="person", column="uid")

CATALOG = Catalog(
    (
        Table(
            name="people",
            unit=PERSON,
            fields=(
                Field("uid", Kind.INTEGER),
                Field("age", Kind.INTEGER, between(0, 110)),
                Field("income", Kind.REAL, between(0, 200_000)),
                Field("region", Kind.TEXT, one_of("north", "south")),
                Field("job", Kind.TEXT),
                Field("member", Kind.BOOLEAN),
                Field("born", Kind.DATE),
            ),
        ),
        Table(
            name="visits",
            unit=Unit(name="person", column="pid"),
            fields=(
                Field("pid", Kind.INTEGER),
                Field("cost", Kind.REAL, between(0, 1000)),
                Field("clinic", Kind.TEXT),
                Field("at", Kind.TIMESTAMP),
            ),
            max_rows=4,
        ),
        Table(
            name="cars",
            unit=Unit(name="car", column="plate"),
            fields=(Field("plate", Kind.TEXT), Field("km", Kind.REAL)),
        ),
        Table(
            name="sales",
            unit=Unit(name="sale", column=None),
            fields=(Field("price", Kind.REAL), Field("item", Kind.TEXT)),
        ),
        Table(
            name="regions",
            unit=None,
            fields=(Field("region", Kind.TEXT), Field("zone", Kind.TEXT), Field("size", Kind.INTEGER)),
        ),
    )
)


def accepted() -> list[tuple[str, str]]:
    """Return (question, rendering) pairs."""
    blocks = (FIXTURES / "accepted.txt").read_text().strip().split("\n\n")
    return [(block.split("\n", 1)[0], block.split("\n", 1)[1]) for block in blocks]


def refused() -> list[tuple[str, str, str]]:
    """Return (question, line of carets, code and message) triples."""
    blocks = (FIXTURES / "refused.txt").read_text().strip("\n").split("\n\n")
    triples = []
    for block in blocks:
        question, carets, message = block.split("\n")
        triples.append((question, carets, message))
    return triples
