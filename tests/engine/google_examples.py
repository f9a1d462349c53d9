"""The examples of GoogleSQL's documentation, and what its words say that they mean: without the engine.

The examples are facts about github.com/google/zetasql (Apache License 2.0), read in November 2025:
docs/differential-privacy.md (1 to 5), docs/aggregate-dp-functions.md (6 to 31), docs/query-syntax.md (32 to
38). `bench/googlesql.py --check` compares them with a checkout.

The meaning follows the steps of "How differential privacy works on queries": aggregate per unit and group;
let each unit count in at most `max_groups_contributed` of its groups, chosen by chance; clamp; aggregate over
units. Here that choice is made in all ways: on the small table each way by itself (`possible`), and on cloned
units as the share of clones that choose each way (`on_clones`).
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

__all__ = [
    "EXAMPLES",
    "Example",
    "Meaning",
    "OTHER_ROWS",
    "PROFESSORS",
    "REFUSED",
    "STUDENTS",
]

Row = tuple[int, str, int]

PROFESSORS: list[Row] = [
    (101, "pencil", 24), (123, "pen", 16), (123, "pencil", 10), (123, "pencil", 38), (101, "pen", 19),
    (101, "pen", 23), (130, "scissors", 8), (150, "pencil", 72),
]  # fmt: skip
STUDENTS: list[Row] = [(1, "pencil", 5), (1, "pen", 2), (2, "pen", 1), (3, "pen", 4)]
OTHER_ROWS: list[Row] = [(1, "a", 1), (2, "a", 2), (3, "b", 3), (3, "b", 4)]
"""The rows of `table_a`, which the documentation does not show."""

_SHAPE = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({}) {}, {} FROM {} GROUP BY {};"
_CALL = re.compile(r"(\w+)\((?:\*|\w+)(?:, 0\.5)?(?:, \w+ => \((\d+), ?(\d+)\))?\)")
_MOST_ROWS = 5  # of a unit in each group, of variances and quantiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One printed example; `printed` are the values that the page shows without noise, if it does."""

    number: int
    options: str
    call: str
    alias: str
    table: str
    printed: Mapping[str, float] | None = None
    rows: tuple[Row, ...] = tuple(PROFESSORS)

    @property
    def text(self) -> str:
        """The example as it is printed, but for blanks."""
        key = "column_a" if self.table == "table_a" else "item"
        call = f"{self.call} {self.alias}" if self.alias else self.call
        return _SHAPE.format(self.options, key, call, self.table, key)

    @property
    def exact(self) -> bool:
        """Whether it is asked without noise."""
        return "1e20" in self.options

    @property
    def cap(self) -> int | None:
        """Groups that one unit counts in; None: all of them."""
        found = re.search(r"max_groups_contributed=(\d+)", self.options)
        return None if found is None else int(found[1])

    @property
    def meaning(self) -> Meaning:
        """What it asks for."""
        found = _CALL.fullmatch(self.call)
        assert found is not None, self.call
        name, low, high = found.groups()
        bounds = (-math.inf, math.inf) if low is None else (float(low), float(high))
        return Meaning(function=name, bounds=bounds, cap=self.cap, rows=self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """An aggregate by item over rows of units, in the words of the documentation."""

    function: str
    bounds: tuple[float, float]
    cap: int | None
    rows: tuple[Row, ...]

    def possible(self) -> list[dict[str, float]]:
        """Return all answers on the small table, one for each way in which units choose their groups."""
        return [self._answer([(1.0, kept) for kept in way]) for way in itertools.product(*self._choices())]

    def on_clones(self, slack: float = 0.0) -> dict[str, tuple[float, float]]:
        """Return the least and the largest answer per clone, where each unit is there many times.

        Each clone chooses for itself. `slack` is how far the share of a unit's clones that choose one of two
        ways may be from a half.
        """
        shares = {-slack, 0.0, slack}
        mixed = [
            [((1.0, ways[0]),)] if len(ways) == 1 else [_mixture(ways, share) for share in shares]
            for ways in self._choices()
        ]
        answers = [self._answer(list(itertools.chain(*one))) for one in itertools.product(*mixed)]
        return {
            item: (min(one[item] for one in answers), max(one[item] for one in answers))
            for item in answers[0]
        }

    def _choices(self) -> Iterator[list[dict[str, list[int]]]]:
        """Return, for each unit, the ways in which it may keep its groups."""
        for unit in dict.fromkeys(unit for unit, _, _ in self.rows):
            own: dict[str, list[int]] = {}
            for one, item, value in self.rows:
                if one == unit:
                    own.setdefault(item, []).append(value)
            most = len(own) if self.cap is None else min(self.cap, len(own))
            yield [{item: own[item] for item in kept} for kept in itertools.combinations(own, most)]

    def _answer(self, units: list[tuple[float, dict[str, list[int]]]]) -> dict[str, float]:
        items = dict.fromkeys(item for _, kept in units for item in kept)
        return {
            item: self._aggregated([(weight, kept[item]) for weight, kept in units if item in kept])
            for item in items
        }

    def _aggregated(self, units: list[tuple[float, list[int]]]) -> float:
        """Return the aggregate of one group: of units, by weight, with the values of each."""
        match self.function:
            case "COUNT":
                return sum(weight * self._clamped(len(values)) for weight, values in units)
            case "SUM":
                return sum(weight * self._clamped(sum(values)) for weight, values in units)
            case "AVG":  # of each unit first, then over units
                total = sum(weight * self._clamped(sum(values) / len(values)) for weight, values in units)
                return total / sum(weight for weight, _ in units)
        assert all(len(values) <= _MOST_ROWS for _, values in units)
        rows = sorted((self._clamped(value), weight) for weight, values in units for value in values)
        whole = sum(weight for _, weight in rows)
        if self.function == "VAR_POP":
            mean = sum(weight * value for value, weight in rows) / whole
            return sum(weight * (value - mean) ** 2 for value, weight in rows) / whole
        assert self.function == "PERCENTILE_CONT"  # without noise, one of the values
        below = itertools.accumulate(weight for _, weight in rows)
        return next(value for (value, _), sofar in zip(rows, below, strict=True) if sofar >= whole / 2)

    def _clamped(self, value: float) -> float:
        low, high = self.bounds
        return min(max(value, low), high)


def _mixture(ways: list[dict[str, list[int]]], more: float) -> tuple[tuple[float, dict[str, list[int]]], ...]:
    first, second = ways  # no unit of these tables has more than two
    return (0.5 + more, first), (0.5 - more, second)


# -- the examples ---------------------------------------------------------------------------

_UNIT = "privacy_unit_column=id"
_NOISY, _EXACT = "epsilon=10, delta=.01", "epsilon=1e20, delta=.01"
_ONE, _TWO = "max_groups_contributed=1", "max_groups_contributed=2"
_AVG = "AVG(quantity, contribution_bounds_per_group => (0,100))"
_FAR = "AVG(quantity, contribution_bounds_per_group => (50,100))"
_VALUES = {"scissors": 8.0, "pencil": 40.0, "pen": 18.5}
_CHOSEN = {**_VALUES, "pencil": 72.0}
_CLAMPED = {"scissors": 54.0, "pencil": 58.0, "pen": 51.0}
_COUNTS = {"scissors": 1.0, "pencil": 4.0, "pen": 3.0}
_SUMS = {"scissors": 8.0, "pencil": 144.0, "pen": 58.0}
_PAGE: list[tuple[int, str, str, str, str, Mapping[str, float] | None]] = [
    (4, f"epsilon=1, delta=1e-10, {_UNIT}", "COUNT(column_b)", "", "table_a", None),
    (5, f"epsilon=1, delta=1e-10, {_UNIT}", "COUNT(column_b)", "", "table_a", None),
    (26, f"{_EXACT}, {_UNIT}", "AVG(quantity)", "average_quantity", "view_on_professors", _CHOSEN),
    (27, f"{_EXACT}, {_ONE}", "AVG(quantity)", "AS average_quantity", "view_on_professors", _CHOSEN),
    (28, f"{_EXACT}, {_UNIT}", _AVG, "AS average_quantity", "view_on_professors", _VALUES),
    (29, f"{_EXACT}, {_UNIT}", _FAR, "AS average_quantity", "view_on_professors", _CLAMPED),
    (30, f"{_EXACT}, {_ONE}", _AVG, "AS average_quantity", "view_on_professors", _VALUES),
    (31, f"{_EXACT}, {_ONE}", _FAR, "AS average_quantity", "view_on_professors", _CLAMPED),
    (32, f"{_NOISY}, {_TWO}", _AVG, "AS average_quantity", "view_on_professors", None),
    (33, f"{_NOISY}, {_TWO}, {_UNIT}", _AVG, "AS average_quantity", "professors", None),
    (34, f"{_EXACT}, {_TWO}", _AVG, "AS average_quantity", "view_on_professors", _VALUES),
    (35, f"{_EXACT}, {_TWO}, {_UNIT}", _AVG, "AS average_quantity", "professors", _VALUES),
    (36, f"{_EXACT}, {_ONE}", _AVG, "AS average_quantity", "view_on_professors", _VALUES),
    (37, f"{_EXACT}, {_UNIT}", _AVG, "AS average_quantity", "professors", _VALUES),
]
_COUNT = "COUNT({}, contribution_bounds_per_group => (0,100))"
_BY_FUNCTION: list[tuple[tuple[int, int], str, str, Mapping[str, float] | None]] = [
    ((6, 8), _AVG, "average_quantity", None),
    ((7, 9), "AVG(quantity)", "average_quantity", _VALUES),
    ((10, 12), _COUNT.format("*"), "times_requested", None),
    ((11, 13), _COUNT.format("*"), "times_requested", _COUNTS),
    ((14, 16), _COUNT.format("item"), "times_requested", None),
    ((15, 17), _COUNT.format("item"), "times_requested", _COUNTS),
    ((18, 19), "PERCENTILE_CONT(quantity, 0.5, contribution_bounds_per_row => (0,100))",
     "percentile_requested", None),
    ((20, 22), "SUM(quantity, contribution_bounds_per_group => (0,100))", "quantity", None),
    ((21, 23), "SUM(quantity)", "quantity", _SUMS),
    ((24, 25), "VAR_POP(quantity, contribution_bounds_per_row => (0,100))", "pop_variance", None),
]  # fmt: skip


def _examples() -> Iterator[Example]:
    for number, options, call, alias, table, printed in _PAGE:
        rows = tuple(OTHER_ROWS if table == "table_a" else PROFESSORS)
        yield Example(
            number=number, options=options, call=call, alias=alias, table=table, printed=printed, rows=rows
        )
    for numbers, call, alias, printed in _BY_FUNCTION:  # each about the table, and about the view
        options = f"{_EXACT if printed else _NOISY}, {_ONE}"
        for number, own, table in zip(
            numbers, (f"{options}, {_UNIT}", options), ("professors", "view_on_professors"), strict=True
        ):
            yield Example(number=number, options=own, call=call, alias=alias, table=table, printed=printed)


EXAMPLES = sorted(_examples(), key=lambda example: example.number)
"""The examples that are answered."""

REFUSED = {
    1: f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({_NOISY}, {_UNIT}) item, {_COUNT.format('*')}"
    " FROM students;",
    2: f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({_NOISY}, privacy_unit_column=members.id) item,"
    f" {_COUNT.format('*')} FROM (SELECT * FROM students) AS members;",
    3: f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({_NOISY}, {_TWO}) item, {_AVG} average_quantity"
    " FROM view_on_professors, view_on_students GROUP BY item;",
    38: f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({_EXACT}, {_ONE}, group_selection_strategy=PUBLIC_GROUPS)"
    " item, AVG(quantity) AS average_quantity FROM view_on_professors RIGHT OUTER JOIN"
    " (SELECT DISTINCT item FROM UNNEST(['pen', 'pencil', 'book'])) USING (item) GROUP BY item;",
}
"""The others; of 38, which creates its tables first, the last statement."""
