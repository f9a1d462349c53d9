"""Cases of which a few run each time, and the rest in the soak."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

__all__ = ["rest_soaked"]


def rest_soaked(cases: Iterable[Any], every: int) -> list[Any]:
    """Return cases of which every so many-th, from the first on, runs each time; the rest is marked."""
    return [
        case if place % every == 0 else pytest.param(case, marks=pytest.mark.soak)
        for place, case in enumerate(cases)
    ]
