"""Tests of what a ledger means run on both kinds: a file, and a database on a server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.conftest import server
from tests.ledger.places import Databases

__all__ = ["databases", "folder", "server", "soaked_folder"]


@pytest.fixture
def databases(request: pytest.FixtureRequest) -> Iterator[Databases]:
    """A server on which the test can have databases."""
    running = request.getfixturevalue("server")
    host = running.address.split()[0].removeprefix("host=")
    made = Databases(f"postgresql://postgres@/%s?host={host}")
    yield made
    made.clear()


def _folder(request: pytest.FixtureRequest) -> Path | Databases:
    found: Path | Databases = request.getfixturevalue("tmp_path" if request.param == "file" else "databases")
    return found


@pytest.fixture(params=["file", "server"])
def folder(request: pytest.FixtureRequest) -> Path | Databases:
    """Where the test may have ledgers, by name."""
    return _folder(request)


@pytest.fixture(params=["file", pytest.param("server", marks=pytest.mark.soak)])
def soaked_folder(request: pytest.FixtureRequest) -> Path | Databases:
    """The same, for tests that take long: on a server only where there is time."""
    return _folder(request)
