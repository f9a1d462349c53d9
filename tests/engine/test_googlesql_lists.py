"""Google's own lists: as many documented examples and compliance queries are answered as the docs say.

They are read from a checkout of github.com/google/zetasql, which the variable GOOGLESQL names, and not kept.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

CHECKOUT = os.environ.get("GOOGLESQL", "")
pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not CHECKOUT, reason="GOOGLESQL names no checkout of google/zetasql"),
]


@pytest.fixture(scope="module")
def lists() -> ModuleType:
    path = Path(__file__).parents[2] / "bench" / "googlesql.py"
    spec = importlib.util.spec_from_file_location("bench_googlesql", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["bench_googlesql"] = module
    spec.loader.exec_module(module)
    return module


def test_documented_examples(lists: ModuleType) -> None:
    outcomes = [lists.outcome(example, lists.shop()) for example in lists.documented(CHECKOUT)]
    assert len(outcomes) == 38
    assert sum(said.startswith("answered") for said in outcomes) >= 34


def test_compliance_queries(lists: ModuleType) -> None:
    database = lists.laboratory(CHECKOUT)
    outcomes = [lists.outcome(example, database) for example in lists.compliance(CHECKOUT)]
    assert len(outcomes) == 97
    assert sum(said.startswith("answered") for said in outcomes) >= 90
