"""Choice of a unit's groups by a mask of 64 bits: a sort by the unit alone, which Spark does by radix.

Each group has a place among 64. The mask of a unit has the places of all groups that it is in; a group may
count if fewer than `most` of the places in the mask are before its own. A sort by unit, priority and key
takes several times as long.

Where no more than 64 groups are declared, each has a place of its own, in an order that is the unit's own:
the mask decides which of them count.

Theorem: the places of a unit's declared groups are a permutation of 0 to 63. A place has two halves of three
bits. Each round adds to one half, modulo 2, what a table says about the other half, which stays: so each
round can be undone (a Feistel network). Two groups of a unit have two places, and no more than `most` groups
of it count. Tables are bits of `xxhash64` of the salt and the unit, hashed again for each round: which groups
count is a function of the unit's own rows and of the salt.

Otherwise the place is that of the priority, in 64 equal parts of its range, and groups may share it: the mask
leaves those that may be among the first `most`, and their ranks decide.

Theorem: no group that is among the first `most` by priority is left out. Before its place are places of
groups with smaller priorities alone, of which there are fewer than `most`; so fewer than `most` places are.
"""

from __future__ import annotations

__all__ = ["PLACES", "ROUNDS", "among_first_places", "in_masked_groups"]

PLACES = 64
"""Places in a mask."""

ROUNDS = 4
"""How often each half is changed: after three rounds some sets of groups are still chosen 4% too often."""


def in_masked_groups(rows: str, salt: int, most: int) -> str:
    """Return the rows of groups that count; a row has the `__unit` and the number of its group, `code`."""
    slots = f"SELECT * EXCEPT (code, place), 64 * place + code AS slot FROM ({_placed(rows, salt)}) AS p"
    chosen = _within_mask(slots, "shiftright(slot, 6)", most)
    return f"SELECT * EXCEPT (slot), slot & 63 AS code FROM ({chosen}) AS c"


def among_first_places(rows: str, most: int) -> str:
    """Return the rows of groups that may be among the first `most` of their unit, by their `priority`."""
    return _within_mask(rows, "CAST(shiftright(priority, 58) + 32L AS INT)", most)


def _within_mask(rows: str, place: str, most: int) -> str:
    """Return the rows of groups that may count, each with how many rows its unit has in all: `unit_rows`."""
    mask = f"bit_or(shiftleft(1L, {place})) OVER (PARTITION BY __unit) AS mask"
    number = "count(*) OVER (PARTITION BY __unit) AS unit_rows"
    before = f"bit_count(mask & ~shiftleft(-1L, {place}))"
    masked = f"SELECT *, {mask}, {number} FROM ({rows}) AS p"
    return f"SELECT * EXCEPT (mask) FROM ({masked}) AS m WHERE {before} < {most}"


def _placed(rows: str, salt: int) -> str:
    """Return rows with the place of their group."""
    left = "l ^ CAST(shiftright(h, 3 * r) & 7L AS INT)"
    right = "r ^ CAST(shiftright(h, 24 + 3 * l) & 7L AS INT)"
    text = f"SELECT *, xxhash64('{salt}', __unit) AS h, shiftright(code, 3) AS l, code & 7 AS r FROM {rows}"
    for _ in range(ROUNDS):
        text = f"SELECT * EXCEPT (l), {left} AS l FROM ({text}) AS p"
        text = f"SELECT * EXCEPT (h, r), xxhash64(h) AS h, {right} AS r FROM ({text}) AS p"
    return f"SELECT * EXCEPT (h, l, r), 8 * l + r AS place FROM ({text}) AS p"
