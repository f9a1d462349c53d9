"""Choice of a unit's groups by a mask of 64 bits, where that many groups are declared at most.

Each group has a place among 64, in an order that is the unit's own. The mask of a unit has the places of all
groups that it is in; a group counts if fewer than `most` of them are before its own. That takes a sort by the
unit alone, which Spark does by radix. Ranks take a sort by unit, priority and key, and twice the time.

Theorem: the places of a unit are a permutation of 0 to 63. A place has two halves of three bits. Each round
adds to one half, modulo 2, what a table says about the other half, which stays: so each round can be undone
(a Feistel network). Two groups of a unit have two places, and no more than `most` groups of it count.
Tables are bits of `xxhash64` of the salt and the unit: which groups count is a function of the unit's own
rows and of the salt.
"""

from __future__ import annotations

__all__ = ["PLACES", "ROUNDS", "in_masked_groups"]

PLACES = 64
"""How many groups can be declared."""

ROUNDS = 4
"""How often each half is changed: after three rounds some sets of groups are still chosen 4% too often."""


def in_masked_groups(rows: str, salt: int, most: int) -> str:
    """Return the rows of groups that count; a row has the `__unit` and the number of its group, `code`."""
    mask = "bit_or(shiftleft(1L, place)) OVER (PARTITION BY __unit)"
    before = "bit_count(mask & ~shiftleft(-1L, place))"
    masked = f"SELECT *, {mask} AS mask FROM ({_placed(rows, salt)}) AS p"
    return f"SELECT * EXCEPT (place, mask) FROM ({masked}) AS m WHERE {before} < {most}"


def _placed(rows: str, salt: int) -> str:
    """Return rows with the place of their group."""
    left = "l ^ CAST(shiftright(h, 3 * r) & 7L AS INT)"
    right = "r ^ CAST(shiftright(h, 24 + 3 * l) & 7L AS INT)"
    text = f"SELECT *, shiftright(code, 3) AS l, code & 7 AS r FROM {rows}"
    for turn in range(ROUNDS):
        text = f"SELECT *, xxhash64('{salt}', __unit, {turn}) AS h FROM ({text}) AS p"
        text = f"SELECT * EXCEPT (l), {left} AS l FROM ({text}) AS p"
        text = f"SELECT * EXCEPT (h, r), {right} AS r FROM ({text}) AS p"
    return f"SELECT * EXCEPT (l, r), 8 * l + r AS place FROM ({text}) AS p"
