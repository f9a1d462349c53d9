"""Settings of the tests of streams: the machine's clock does not matter."""

from __future__ import annotations

import datetime

import pytest


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every period of a test is over by now."""
    late = datetime.datetime(2060, 1, 1, tzinfo=datetime.UTC)
    monkeypatch.setattr("sfumato.session.stream._clock", lambda: late)
