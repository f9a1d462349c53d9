"""How many questions each engine is compared in: more than 500, apart from a thousand expressions.

The numbers are those of what the other suites ask: what the plan or an engine refuses is not compared. With
`-s` they are printed.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sfumato.catalog import Catalog
from tests.conformance.comparing import Compared, admitted
from tests.conformance.engines import ENGINES, PostgreSQL, Spark
from tests.conformance.forms import AGGREGATES, FORMS, ODD, ODD_FORMS
from tests.conformance.refusals import unopened
from tests.conformance.test_answers import ANSWERED
from tests.conformance.test_forms import _measures
from tests.conformance.test_queries import BATCHES
from tests.conformance.test_queries import asked as generated
from tests.engine.questions import Asked
from tests.engine.tpch import QUESTIONS
from tests.engine.worlds import CATALOG

CATALOGS = {"postgresql": PostgreSQL.known, "spark": Spark.known}


def _suites(engine: str) -> Iterator[tuple[str, list[Asked], Catalog]]:
    yield "aggregates", [_measures([one], 0) for one in AGGREGATES], CATALOG
    yield "written by hand", list(FORMS), CATALOG
    yield "odd tables", list(ODD_FORMS), ODD
    yield "generated", [one for batch in range(BATCHES) for one in generated(batch, engine)], CATALOG


@pytest.mark.soak
@pytest.mark.parametrize("engine", ENGINES)
def test_each_engine_is_compared_in_more_than_500_questions(engine: str) -> None:
    whole = len(QUESTIONS) + len(ANSWERED)
    print(f"\n{engine}: TPC-H and answers as users see them: {whole}")
    for name, asked, catalog in _suites(engine):
        known = CATALOGS[engine](None, catalog)  # type: ignore[arg-type]
        backend, found = unopened(engine, known), Compared()
        compared = sum(admitted(one, backend, known, found) is not None for one in asked)
        print(
            f"{engine}, {name}: {compared} compared, {found.refused.total()} refused by the engine,", end=" "
        )
        print(f"{found.planned} by the plan")
        assert compared > 80 and compared + found.refused.total() + found.planned == len(asked)
        whole += compared
    assert whole > 500
