"""Texts of every kind of question and answer stay as they are; what an earlier version charged is free.

The ledger in `tests/data/golden` is kept: an earlier version made its keys, its steps and its hashes.
Each answer is read from it, free. A change that means to change texts writes them anew by
`python -m tests.golden.write`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sfumato.session import Database
from tests.golden.asked import ASKED, DATA, copy_kept, opened, texts


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    folder: Path = tmp_path_factory.mktemp("golden")
    copy_kept(DATA, folder)
    with opened(folder) as found:
        yield found


@pytest.mark.parametrize("name", ASKED)
def test_texts_stay_and_answers_are_free(name: str, database: Database) -> None:
    spent = database.budget.spent_units
    assert texts(name, database) == (DATA / f"{name}.txt").read_text(encoding="utf-8")
    assert database.budget.spent_units == spent


def test_every_kind_that_is_kept_is_asked() -> None:
    assert {path.stem for path in DATA.glob("*.txt")} == set(ASKED)


def test_the_ledger_is_whole(database: Database) -> None:
    """Its chain was written by an earlier version; reading answers adds no record."""
    assert database.ledger.verify() == database.ledger.head()
