"""Cases of which a few run each time, more of them in CI, and all of them in the soak."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

__all__ = ["later", "rest_soaked"]


def rest_soaked(cases: Iterable[Any], every: int, of_soak: int = 1) -> list[Any]:
    """Return cases of which every so many-th, from the first on, runs each time; the rest is marked.

    CI runs every `of_soak`-th of the rest.
    """
    return [
        case if place % every == 0 else pytest.param(case, marks=later(place, of_soak))
        for place, case in enumerate(cases)
    ]


def later(place: int, of_soak: int) -> pytest.MarkDecorator:
    """Return the mark of a case that does not run each time: CI runs every so many-th of them."""
    return pytest.mark.soak if place % of_soak == of_soak - 1 else pytest.mark.night
