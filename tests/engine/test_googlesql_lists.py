"""Google's own lists: as many documented examples and compliance queries are answered as the docs say.

They are read from a checkout of github.com/google/zetasql, which the variable GOOGLESQL names, and not kept.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from tests.engine.google_examples import EXAMPLES, REFUSED

PAGE = Path(__file__).parents[2] / "docs" / "googlesql.md"
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


def test_our_examples_are_those_that_are_printed(lists: ModuleType) -> None:
    ours = {one.number: (one.text, one.printed) for one in EXAMPLES}
    ours |= {number: (text, None) for number, text in REFUSED.items()}
    printed = dict(enumerate(lists.documented(CHECKOUT), start=1))
    assert sorted(ours) == sorted(printed)
    for number, (text, values) in ours.items():
        example = printed[number]
        assert _plain(example.text).endswith(_plain(text)), number
        if number in REFUSED:
            assert number == 38 or _plain(example.text) == _plain(text)
        else:
            assert dict(example.rows or {}) == (values or {}), number


def _plain(text: str) -> str:
    """Return a text without comments and blanks."""
    return re.sub(r"--[^\n]*|\s", "", text)


def test_compliance_queries_are_answered_as_the_page_says(lists: ModuleType) -> None:
    database = lists.laboratory(CHECKOUT)
    outcomes = {one.name: lists.outcome(one, database) for one in lists.compliance(CHECKOUT)}
    kinds = Counter(said.partition(":")[0] for said in outcomes.values())
    answered = sum(many for kind, many in kinds.items() if kind.startswith("answered"))
    same = "answered with Google's values"
    page = " ".join(PAGE.read_text().split())
    assert (
        f"Of {len(outcomes)} compliance queries {answered} are answered,"
        f" {kinds['answered, and refused by Google']} of which Google refuses."
        f" {kinds[same]} have Google's values and"
        f" {kinds['answered with other values']} other ones. Refused are"
        f" {kinds['refused, as by Google']} that Google refuses, too, and {kinds['refused']} others"
    ) in page
    for name, said in outcomes.items():
        if said.startswith(("refused:", "answered with other")):
            assert f"`{name}`" in page
