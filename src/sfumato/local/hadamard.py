"""Hadamard response: one noisy bit about the answer, and which question the bit answers.

Every answer has a column of a matrix of signs; a person is asked about one row, and tells with noise
whether their column has a plus or a minus there. A report is a row and a bit; the collector keeps one
number per row, and one fast transform at the end gives every answer's count.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sfumato.core.arguments import Number
from sfumato.core.coins import bernoulli
from sfumato.core.uniform import uniform_below
from sfumato.local.arrays import Array, Flags, Integers, slices
from sfumato.local.odds import odds_of
from sfumato.local.protocol import Columns, FieldKind, OddsProtocol, below

__all__ = ["HadamardResponse", "walsh_hadamard"]

_CACHE_NUMBERS = 1 << 16


def walsh_hadamard(values: Integers) -> Integers:
    """Return the sums of values with the signs of every column: out[c] = sum over r of (-1)^|r & c| in[r].

    Exact in integers; the number of values is a power of two.

    >>> walsh_hadamard(np.array([5, 1, 0, 0])).tolist()
    [6, 4, 6, 4]
    """
    bits = len(values).bit_length() - 1
    # A square: its columns first, then its rows as columns of the transpose, so that steps stay long.
    square = np.array(values, dtype=np.int64).reshape(1 << bits // 2, -1)
    _transform_columns(square)
    square = np.ascontiguousarray(square.T)
    _transform_columns(square)
    return np.ascontiguousarray(square.T).ravel()


def _transform_columns(table: Integers) -> None:
    """Transform every column in place, some columns at a time."""
    height, width = table.shape
    for columns in slices(width, max(64, _CACHE_NUMBERS // height)):
        block = np.ascontiguousarray(table[:, columns])
        half = 1
        while half < height:
            pairs = block.reshape(-1, 2, half, block.shape[1])
            first, second = pairs[:, 0], pairs[:, 1]
            first += second
            second *= -2
            second += first  # (a + b) - 2b
            half *= 2
        table[:, columns] = block


@dataclass(frozen=True, slots=True, kw_only=True)
class HadamardResponse(OddsProtocol):
    """A uniform row of a Hadamard matrix, and a noisy bit: the sign of the answer's column in that row.

    Answer x has column x + 1 of the matrix of signs (-1)^|row & column|, with `rows` rows: the smallest
    power of two above `size`. Column 0 has no minus and would tell nothing.

    A phone does:
      1. draw a row uniform below `rows`;
      2. bit = the parity of the ones that row and x + 1 have in common;
      3. with chance odds / (odds + 1) send the row and the bit, else the row and 1 - bit.

    Theorem: the row says nothing about the answer; the bit is odds to 1 for one value or the other: the
    largest ratio is the odds. A report supports the answers whose column has its bit in its row: its
    sender's with chance p = odds / (odds + 1), and any other with chance q = 1/2 exactly, for two
    different columns agree in exactly half of the rows (Acharya, Sun and Zhang 2019; one bit as in
    Bassily and Smith 2015).

    >>> HadamardResponse.from_epsilon(1, size=1000).message_bits
    11
    """

    size: int
    odds: Fraction

    name: ClassVar[str] = "hadamard"
    fields: ClassVar[dict[str, FieldKind]] = {"row": "integer", "bit": "integer"}
    largest_size: ClassVar[int] = 2**28 - 1  # the collector keeps a number per answer

    @classmethod
    def from_epsilon(cls, epsilon: Number, *, size: int) -> HadamardResponse:
        """Tell the true bit as often as epsilon allows."""
        return cls(size=size, odds=odds_of(epsilon))

    @property
    def rows(self) -> int:
        """The number of rows, a power of two."""
        return int(1 << self.size.bit_length())

    @property
    def p(self) -> Fraction:
        """The chance of the true bit."""
        return self.odds / (self.odds + 1)

    @property
    def q(self) -> Fraction:
        """The chance that another answer's column has the bit that was sent."""
        return Fraction(1, 2)

    @property
    def message_bits(self) -> int:
        """The bits of a row, and one."""
        return self.size.bit_length() + 1

    def randomise(self, answers: Array) -> dict[str, Array]:
        """Return one report per answer."""
        given = self._answers(answers)
        row = uniform_below(self.rows, size=len(given))
        bit = np.bitwise_count(row & (given + 1)).astype(np.int64) & 1
        lie = bernoulli(1 - self.p, size=len(given))
        return {"row": row, "bit": bit ^ lie}

    def valid(self, reports: Columns) -> Flags:
        """Flag the reports that name a row and a bit."""
        return below(reports["row"], self.rows) & below(reports["bit"], 2)

    def collect(self, reports: Columns) -> Integers:
        """Count, for every row, the zeros less the ones, and after the rows all reports."""
        row, bit = reports["row"], reports["bit"]
        totals = np.zeros(self.rows + 1, dtype=np.int64)
        np.add.at(totals, row, 1 - 2 * bit)
        totals[-1] = len(row)
        return totals

    def supports(self, totals: Array) -> Integers:
        """Add up signs: a report that agrees with a column counts 1, one that does not -1."""
        agreeing_less_others = walsh_hadamard(totals[:-1])[1 : self.size + 1]
        counts: Integers = (totals[-1] + agreeing_less_others) // 2
        return counts
