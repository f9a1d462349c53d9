"""Steps of results that are kept: a known result takes the steps that finding it took."""

from __future__ import annotations

import pytest

from sfumato.core.steps import limited, remembered, spend
from sfumato.errors import QueryRefused


class Search:
    """A function that takes ten steps, and counts how often it runs."""

    def __init__(self, most: int = 8) -> None:
        self.runs = 0
        self.find = remembered(most)(self._find)

    def _find(self, number: int) -> int:
        self.runs += 1
        spend(10)
        return number * number


def test_a_known_result_takes_the_same_steps() -> None:
    search = Search()
    for _ in range(3):
        with limited(100) as steps:
            assert search.find(4) == 16
        assert steps.taken == 10
    assert search.runs == 1


def test_steps_are_known_of_a_result_that_was_found_while_none_were_counted() -> None:
    search = Search()
    assert search.find(4) == 16
    with limited(100) as steps:
        search.find(4)
    assert steps.taken == 10 and search.runs == 1


def test_what_is_refused_is_refused_again() -> None:
    search = Search()
    for _ in range(2):
        with limited(9), pytest.raises(QueryRefused, match="at least 10 steps"):
            search.find(4)
    with limited(10):
        assert search.find(4) == 16
    with limited(9), pytest.raises(QueryRefused, match="at least 10 steps"):
        search.find(4)


def test_few_results_are_kept() -> None:
    search = Search(most=2)
    for number in (1, 2, 3, 3, 1):
        search.find(number)
    assert search.runs == 4  # 3 pushed out the others
