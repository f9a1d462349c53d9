"""Reports of every kind stay as they are: pages, texts and records."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sfumato.session import Database
from tests.golden.asked import DATA, copy_kept, opened
from tests.golden.pages import PAGES, page_texts

WRITTEN = DATA / "pages"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    folder: Path = tmp_path_factory.mktemp("pages")
    copy_kept(DATA, folder)
    with opened(folder) as found:
        yield found


@pytest.mark.parametrize("name", PAGES)
def test_reports_stay_and_charge_nothing(name: str, database: Database) -> None:
    spent = database.budget.spent_units
    assert page_texts(name, database) == (WRITTEN / f"{name}.txt").read_text(encoding="utf-8")
    assert database.budget.spent_units == spent


def test_every_report_that_is_kept_is_made() -> None:
    assert {path.stem for path in WRITTEN.glob("*.txt")} == set(PAGES)
