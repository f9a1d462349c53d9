"""Buckets: numbers by sign and power of two, to find bounds that nobody knows beforehand.

    .. [-4, -2)  [-2, -1)  ..  zero  ..  [1, 2)  [2, 4)  [4, 8) ..        (of negative numbers, mirrored)

Whole numbers have a bucket for each power of two of 64 bits. Real ones have one for each from 2^-30
to 2^100; what is nearer to zero is in the bucket of zero, what is further out in the last one.
The buckets are public: they know the kind of a column and nothing else.

A row's bucket is found by comparing with powers of two, in a tree of CASEs eight deep. Both the powers
and the comparisons are exact, so that an edge is never on the wrong side. Were one wrong, bounds
would be too; privacy rests on how often a unit counts, not on where.
"""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.catalog.identifiers import identifier
from sfumato.catalog.kind import Kind
from sfumato.plan import functions
from sfumato.plan.tree import ColumnRef, Expression, Literal

__all__ = ["Buckets", "SoughtBounds"]

_SMALLEST, _LARGEST = -30, 100  # of real numbers: powers of two
_BITS = 63
_NEAR = 16  # an end that is this many times nearer to zero than the other becomes zero


@dataclass(frozen=True, slots=True, kw_only=True)
class Buckets:
    """The buckets of a kind of numbers, in ascending order.

    `edges[i]` divides bucket i from bucket i + 1: it is the smallest value of the latter. `lows` and
    `highs` are the bounds that hold the values of each bucket, for between(low, high).
    """

    kind: Kind
    edges: tuple[int | float, ...]
    lows: tuple[int | float, ...]
    highs: tuple[int | float, ...]

    @staticmethod
    def of(kind: Kind) -> Buckets:
        """Return the buckets of 64-bit integers or, for all other kinds, of binary numbers.

        >>> Buckets.of(Kind.INTEGER).highs[64:68]
        (1, 3, 7, 15)
        """
        if kind is Kind.INTEGER:
            powers = [1 << power for power in range(_BITS)]
            tops = [2 * power - 1 for power in powers]
            below = [-top for top in reversed(tops)]
            return Buckets(
                kind=kind,
                # negative numbers end at -1, -3, -7, ..: what is below -(2^62 - 1) shares the first bucket
                edges=(*(-(power - 1) for power in reversed(powers[1:])), 0, *powers),
                lows=(-(1 << _BITS), *below[1:], 0, *powers),
                highs=(*(-power for power in reversed(powers)), 0, *tops),
            )
        reals = [2.0**power for power in range(_SMALLEST, _LARGEST)]
        # a negative power of two itself is in the bucket above it, whose lower bound it is
        return Buckets(
            kind=Kind.REAL,
            edges=(*(-real for real in reversed(reals)), *reals),
            lows=(*(-2 * real for real in reversed(reals)), 0.0, *reals),
            highs=(*(-real for real in reversed(reals)), 0.0, *(2 * real for real in reals)),
        )

    def __len__(self) -> int:
        return len(self.lows)

    def index(self, column: ColumnRef) -> Expression:
        """Return the number of a value's bucket, counted from 0, as an expression."""

        def between(first: int, last: int) -> Expression:
            if first == last:
                return Literal(value=first, kind=Kind.INTEGER)
            middle = (first + last) // 2
            edge = Literal(value=self.edges[middle], kind=self.kind)
            below = functions.call("<", (column, edge))
            return functions.case(((below, between(first, middle)),), between(middle + 1, last))

        return between(0, len(self) - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SoughtBounds:
    """Bounds of a column that are to be read off noisy buckets, once it is known how large the noise is."""

    buckets: Buckets
    column: str
    share: float
    false_alarm: float

    @property
    def chances(self) -> tuple[float, float]:
        """How often noise may make an empty bucket seem full: away from others, and beside them."""
        return self.false_alarm / 10 / len(self.buckets), self.false_alarm * 9 / 20

    def postprocessing(self, *, released: str, cells: str, apart: int, beside: int) -> str:
        """Return the SQL that reads bounds off the noisy buckets, in the column `cells` of a table.

        A bucket that holds `apart` or more is surely one that has people. From the outermost such buckets
        it goes on outward as long as the next one holds `beside` or more. Then, of what was found,
        half of `share` is cut off at either end. No bucket of `apart`: both bounds are NULL. A lower
        bound above zero that is at most a sixteenth of the upper one becomes zero, and likewise for negative
        numbers: buckets near zero are narrow and hold few, and this widens the bounds by a fifteenth at most.

        Theorem: let noise alone reach `apart` in an empty bucket with a chance of at most p/10 divided by
        the number of buckets, and `beside` with at most 9p/20. Then a bound other than zero lies beyond all
        buckets that hold anybody with a chance of at most p: either some empty bucket reached `apart`,
        which has a chance of at most p/10; or one of the two empty buckets next to those with people
        reached `beside`, 9p/20 each, since without that the walk ends there at the latest. (A bound that is
        far out makes bounds useless, one next to the values twice as wide: hence the unequal parts.)
        """
        numbers = "BIGINT" if self.buckets.kind is Kind.INTEGER else "DOUBLE"
        # one text each, which is read faster than hundreds of numbers
        lows, highs = (" ".join(map(repr, ends)) for ends in (self.buckets.lows, self.buckets.highs))
        size, cut = len(self.buckets), repr(self.share / 2)
        return f"""
            WITH cells AS (
                SELECT unnest(range(1, {size + 1})) AS place, unnest({identifier(cells)}) AS n
                FROM {identifier(released)}
            ),
            sure AS (SELECT min(place) AS low, max(place) AS high FROM cells WHERE n >= {apart}),
            walked AS (
                SELECT coalesce(max(place) FILTER (WHERE place < low AND n < {beside}) + 1, 1) AS first,
                       coalesce(min(place) FILTER (WHERE place > high AND n < {beside}) - 1, {size}) AS last
                FROM cells, sure GROUP BY low, high HAVING low IS NOT NULL
            ),
            kept AS (
                SELECT place, sum(greatest(n, 0)) OVER (ORDER BY place) AS upto,
                       sum(greatest(n, 0)) OVER (ORDER BY place DESC) AS onward,
                       sum(greatest(n, 0)) OVER () AS everyone
                FROM cells, walked WHERE place BETWEEN first AND last
            ),
            ends AS (
                SELECT min(place) FILTER (WHERE upto > everyone * {cut}) AS first,
                       max(place) FILTER (WHERE onward > everyone * {cut}) AS last
                FROM kept
            ),
            bounds AS (
                SELECT CAST(string_split('{lows}', ' ')[first] AS {numbers}) AS low,
                       CAST(string_split('{highs}', ' ')[last] AS {numbers}) AS high
                FROM ends
            )
            SELECT CASE WHEN low > 0 AND low <= high / {_NEAR} THEN 0 ELSE low END AS low,
                   CASE WHEN high < 0 AND high >= low / {_NEAR} THEN 0 ELSE high END AS high
            FROM bounds
        """

    def notes(self, *, apart: int, beside: int) -> tuple[str, ...]:
        """Return what the bounds mean."""
        about = f"about all values of `{self.column}`"
        if self.share:
            about += f", less {self.share:g} of them,"
        empty = (
            f"one with fewer than {beside:,} units counts as empty, and so does one with fewer than {apart:,}"
        )
        wide = (
            f"with a chance of at most {self.false_alarm:g} low or high lies beyond all values, unless it is"
        )
        return (
            f"{about} lie between low and high, which are edges of buckets: numbers of one power of two",
            "buckets count units, not rows: the rows of one unit weigh 1 together",
            f"{empty} away from the rest: what so few units have may lie outside, and no interval covers it",
            f"{wide} zero: an end much nearer to zero than the other is put there",
            "both are NULL where nothing can be told from noise",
        )
