"""What an engine refuses, as its page lists it: examples, and the reasons that the engine gives for them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from sfumato.backends import open_tables
from sfumato.backends.engine_backend import EngineBackend
from sfumato.backends.postgres import PostgresBackend
from sfumato.backends.spark.backend import SparkBackend
from sfumato.catalog import Catalog, Field, Kind, Table, Unit
from sfumato.errors import Unsupported
from tests.engine.questions import Asked
from tests.engine.replay import planned

__all__ = [
    "CATALOG",
    "KINDS",
    "PAGES",
    "asked",
    "listed",
    "reason",
    "reasons",
    "refusal",
    "unopened",
]

_DOCS = Path(__file__).parents[2] / "docs"
PAGES = {"postgresql": _DOCS / "postgres.md", "spark": _DOCS / "spark.md"}
_BACKENDS: dict[str, type[EngineBackend]] = {"postgresql": PostgresBackend, "spark": SparkBackend}
KINDS = {
    "i": Kind.INTEGER, "d": Kind.decimal(15, 2), "f": Kind.FLOAT, "x": Kind.REAL, "s": Kind.TEXT,
    "b": Kind.BOOLEAN, "day": Kind.DATE, "ts": Kind.TIMESTAMP,
}  # fmt: skip
CATALOG = Catalog(
    (
        Table(
            name="t",
            unit=Unit(name="person", column="person"),
            fields=tuple(Field(name, kind) for name, kind in {"person": Kind.INTEGER, **KINDS}.items()),
        ),
    )
)
_ALL, _OWN = "### What is refused", "### What is refused of one person's rows"
_OF_ONE = "(SELECT person, {} AS a FROM t GROUP BY person)"
_CAPS = {"max_groups": 3, "max_rows": 4}


class _Opened:
    """Tables that are planned for, and never read."""

    stored = staticmethod(str)


def listed(engine: str) -> list[str]:
    """Return the examples of the tables of refusals on an engine's page: one row may have several.

    Of what is refused of one person's rows, the subquery that asks for it.
    """
    text = PAGES[engine].read_text(encoding="utf-8")
    return [*_examples(text, _ALL), *(_OF_ONE.format(one) for one in _examples(text, _OWN))]


def _examples(text: str, heading: str) -> list[str]:
    table = text.partition(f"{heading}\n")[2].partition("\n#")[0]
    cells = re.findall(r"^\| (.*?[^\\]) \| ", table, re.MULTILINE)
    return [one.replace("\\|", "|") for cell in cells for one in re.findall(r"`(.*?)`", cell)]


def asked(example: str) -> Asked:
    """Return a question with an example: a subquery about one person, or an expression."""
    if example.startswith("(SELECT "):
        return Asked(f"SELECT COUNT(u.a) FROM {example} AS u", _CAPS)
    shown = example if example.startswith("SAMPLE_AND_AGGREGATE") else f"COUNT({example})"
    return Asked(f"SELECT {shown} FROM t", _CAPS)


def reason(message: str) -> str:
    """Return why something is refused, whatever the numbers in it are."""
    return re.sub(r"(?<!\w)-?\d+", "#", message)


def unopened(engine: str, catalog: Catalog) -> EngineBackend:
    """Return a backend that plans, over tables that are never read; no public row has a copy."""
    made = _BACKENDS[engine](_Opened(), catalog)  # type: ignore[arg-type]
    made.public_copies = lambda name, columns: 1  # type: ignore[method-assign]
    return made


def refusal(engine: str, question: Asked) -> str | None:
    """Return why an engine refuses a question before it reads anything, None if it does not.

    DuckDB, whose meaning is that of the documentation, must know it.
    """
    query = planned(question, CATALOG).query
    _duckdb().check(query)
    try:
        unopened(engine, CATALOG).check(query)
    except Unsupported as refused:
        return reason(refused.message)
    return None


@cache
def _duckdb() -> Any:
    import pyarrow as pa

    from tests.conformance.engines import arrow

    (table,) = CATALOG.tables
    empty: pa.Table = arrow(table, [])
    return open_tables({"t": empty}).backend(CATALOG)


@cache
def reasons(engine: str) -> frozenset[str]:
    """Return the reasons of all examples on an engine's page."""
    found = (refusal(engine, asked(one)) for one in listed(engine) if "\\0" not in one)
    return frozenset(one for one in found if one is not None)
