"""Contributions: which groups of a unit count, and with how much, decided by sorting packed rows.

The engine hands over one row per private row: the unit, the code of its group, and small
integers. A row is packed into one 64-bit word

    | fingerprint of the unit | code of the group | integers of the row |

and sorting the words brings the rows of a unit and group together. Sums of integers that do not
fit beside each other are made of further words with the same upper part, so that their order is
the same. Where all units fit above the rest, the fingerprint is the unit itself. Otherwise it is
the upper part of a keyed one-to-one function of the unit; the few units that share one are found
and numbered instead, so no two units are ever taken for one. Where codes and integers leave fewer
than 32 bits, all units are numbered, and as many at a time are worked on as have a number there.

Where bits are left between the unit itself and the code, and there is a cap on groups, the upper bits of
the group's priority lie there: then the first groups of a unit are those that count.

Theorem: what a unit contributes is a function of its own rows and the salt alone. A group's
priority for a unit is a hash of unit, key and salt; ties go to the smaller key. Where the upper bits
of it in the words leave the choice open, all bits make it. Codes stand for
keys in the order of the keys, so which other keys exist does not change the order of two of
them; fingerprints, words, parts and threads only decide where the computation happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from sfumato.backends.bounding.one_group import count_one_group
from sfumato.backends.bounding.packing import Kept, PackedChoice, PackedRows, Packing, Run, joined
from sfumato.backends.bounding.priorities import different_pairs, mixed, most_per_owner, starts_of
from sfumato.backends.bounding.row_weights import RowWeights

__all__ = ["bound_contributions"]

_Words = npt.NDArray[np.uint64]
_Integers = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.bool_]

_FINGERPRINT = 32  # bits: with fewer, units that share one might be more than there are numbers for them
_PRIORITY = 12  # bits of a priority that are worth sorting by: with fewer, too many are equal
_LOOKED_UP = 16  # upper bits of a fingerprint that are looked up first
_BLOCK = 1 << 17  # rows that fit into a cache with all that is made of them
_TABLE = 1 << 16  # codes and cells that are counted in a table


def bound_contributions(
    rows: PackedRows, packing: Packing, choice: PackedChoice, *, threads: int = 1, fingerprint_bits: int = 64
) -> list[Kept]:
    """Choose the groups of each unit that count and add up its rows in them, in parts without an order.

    Rows are scrambled and dealt out to as many parts as there are threads, sorted, and then worked
    on in blocks that fit into a processor's cache. `fingerprint_bits` shortens fingerprints: for
    tests, which want units to share them.
    """
    found = []
    if len(rows.units) and (counted := count_one_group(rows, packing, choice)) is not None:
        kept, rows = counted
        found.append(kept)
    if not len(rows.units):
        return found
    if 64 - packing.low_bits >= _FINGERPRINT:
        return found + _bound(rows, packing, choice, threads, fingerprint_bits)
    for some in _few_units(rows, 1 << min(64 - packing.low_bits, fingerprint_bits)):
        found += _bound(some, packing, choice, threads, 64)
    return found


def _few_units(rows: PackedRows, most: int) -> Iterator[PackedRows]:
    """Number units, and yield the rows of as many at a time as have numbers below `most`."""
    own, numbers = np.unique(rows.units, return_inverse=True)
    hashes = own.view(np.uint64) if rows.unit_hashes is None else rows.unit_hashes[own]
    order = np.argsort(numbers, kind="stable")
    firsts = np.arange(0, len(own), most)
    begins = np.searchsorted(numbers, firsts, sorter=order)
    for first, places in zip(firsts.tolist(), np.split(order, begins[1:]), strict=True):
        own_numbers, own_hashes = numbers[places] - first, hashes[first : first + most]
        yield replace(rows.some(places), units=own_numbers, unit_hashes=own_hashes)


def _bound(
    rows: PackedRows, packing: Packing, choice: PackedChoice, threads: int, fingerprint_bits: int
) -> list[Kept]:
    least, most = int(rows.units.min()), int(rows.units.max())
    narrow = most - least < 1 << min(64 - packing.low_bits, fingerprint_bits)
    left = 64 - packing.low_bits - (most - least).bit_length()
    ranked = narrow and left >= _PRIORITY and choice.max_groups is not None and not rows.values
    deal = _Deal(
        rows=rows,
        packing=packing,
        choice=choice,
        parts=1 << (threads - 1).bit_length(),
        cut=max(packing.low_bits, 64 - fingerprint_bits),
        least=least if narrow else None,
        priority_bits=left if ranked else 0,
    )
    with ThreadPoolExecutor(threads) as pool:
        cuts = [len(rows.units) * i // threads for i in range(threads + 1)]
        hands = list(pool.map(deal.hands, cuts[:-1], cuts[1:]))
        parts = [[pieces for hand in hands for pieces in hand[i]] for i in range(deal.parts)]
        del hands
        return [kept for some in pool.map(deal.part, parts) for kept in some]


def _gathered(pieces: list[PackedRows]) -> PackedRows:
    return PackedRows(
        units=np.concatenate([piece.units for piece in pieces]),
        words=tuple(map(np.concatenate, zip(*(piece.words for piece in pieces), strict=True))),
        values=tuple(map(np.concatenate, zip(*(piece.values for piece in pieces), strict=True))),
    )


@dataclass(slots=True, kw_only=True, eq=False)
class _Deal:
    """Deals rows out to parts by their units, and works on a part."""

    rows: PackedRows
    packing: Packing
    choice: PackedChoice
    parts: int
    cut: int  # bits below a fingerprint
    least: int | None  # where the units themselves fit above the words: the least of them
    priority_bits: int = 0  # of a group's priority, between the unit and the code

    def hands(self, begin: int, end: int) -> list[list[PackedRows]]:
        """Return pieces of rows for each part: their units scrambled one-to-one, their words whole."""
        dealt: list[list[PackedRows]] = [[] for _ in range(self.parts)]
        for start in range(begin, end, _BLOCK):
            hand = self._scrambled(slice(start, min(start + _BLOCK, end)))
            if self.parts == 1:
                dealt[0].append(hand)
                continue
            if self.least is None:
                owner = hand.units >> np.uint64(65 - self.parts.bit_length())
            else:
                owner = (hand.words[0] >> np.uint64(self._unit_shift)) & np.uint64(self.parts - 1)
            for part in range(self.parts):
                dealt[part].append(hand.some(np.flatnonzero(owner == np.uint64(part))))
        return dealt

    def _scrambled(self, block: slice) -> PackedRows:
        rows = self.rows.some(block)
        units = rows.units.view(np.uint64)
        if self.least is None:
            units = mixed(units ^ np.uint64(self.choice.salt))
            upper = (units >> np.uint64(self.cut)) << np.uint64(self.cut)
        else:
            owners = units - self._origin
            upper = owners << np.uint64(self._unit_shift)
            if self.priority_bits:
                codes = (rows.words[0] >> np.uint64(self.packing.value_bits)).view(np.int64)
                first = self._priorities(owners, codes) >> np.uint64(64 - self.priority_bits)
                upper |= first << np.uint64(self.packing.low_bits)
            units = units[:0]
        return replace(rows, units=units, words=tuple(upper | word for word in rows.words))

    def part(self, pieces: list[PackedRows]) -> list[Kept]:
        """Return what is kept of the units of one part."""
        hand = _gathered(pieces)
        pieces.clear()
        if not len(hand.words[0]):
            return []
        if self.least is not None:
            return [self._kept(hand, self._hashes)]
        ordered = np.sort(hand.units)
        change = ordered[1:] ^ ordered[:-1]
        shared = np.unique(
            ordered[1:][(change != 0) & (change < np.uint64(1 << self.cut))] >> np.uint64(self.cut)
        )
        first = np.concatenate(([True], change >= np.uint64(1 << self.cut)))
        own = ordered[np.flatnonzero(first)]
        del ordered, change, first
        shift = np.uint64(self.cut - self.packing.low_bits)
        found = []
        if len(shared):
            found.append(self._numbered(hand, shared))
        # Units come in the order of their fingerprints, here and in the words.
        names = own >> np.uint64(self.packing.low_bits) >> shift << shift

        def hashes_of(owners: _Words) -> _Words:
            begin = int(np.searchsorted(names, owners[0]))
            return own[begin : begin + len(owners)]

        found.append(self._kept(hand, hashes_of, without=shared << shift))
        return found

    @property
    def _unit_shift(self) -> int:
        """The bits below the unit, where it is in the words itself."""
        return self.packing.low_bits + self.priority_bits

    @property
    def _origin(self) -> np.uint64:
        return np.uint64((self.least or 0) % 2**64)

    def _hashes(self, owners: _Words) -> _Words:
        """Return the hashes of units by what stands for them in the words."""
        units = owners + self._origin
        hashes = self.rows.unit_hashes
        return mixed((units if hashes is None else hashes[units]) ^ np.uint64(self.choice.salt))

    def _priorities(self, owners: _Words, codes: _Integers) -> _Words:
        """Return the priorities of groups, by what stands for their units in the words."""
        return mixed(self._hashes(owners) ^ self.choice.key_hashes[codes])

    def _numbered(self, hand: PackedRows, shared: _Words) -> Kept:
        """Return what is kept of the few units that share a fingerprint, by numbers of their own."""
        bits = min(_LOOKED_UP, 64 - self.cut)
        table = np.zeros(1 << bits, dtype=np.bool_)
        table[shared << np.uint64(self.cut) >> np.uint64(64 - bits)] = True
        seen = np.flatnonzero(table[hand.units >> np.uint64(64 - bits)])
        seen = seen[np.isin(hand.units[seen] >> np.uint64(self.cut), shared)]
        whose, numbers = np.unique(hand.units[seen], return_inverse=True)
        upper = numbers.astype(np.uint64) << np.uint64(self.packing.low_bits)
        below = np.uint64((1 << self.packing.low_bits) - 1)
        few = hand.some(seen)
        few = replace(few, words=tuple(upper | (word & below) for word in few.words))
        return self._kept(few, lambda owners: whose[owners])

    def _kept(
        self, rows: PackedRows, hashes_of: Callable[[_Words], _Words], without: _Words | None = None
    ) -> Kept:
        """Sort the rows, and return what is kept of the units whose names are not in `without`."""
        words, values = list(rows.words), list(rows.values)
        if values:
            places = np.argsort(words[0])
            words[0] = words[0][places]
            values = [column[places] for column in values]
        for word in words[1 if values else 0 :]:
            word.sort()
        chunks = []
        size = len(words[0])
        begin = 0
        while begin < size:
            end = self._end(words[0], begin)
            chunk = [word[begin:end] for word in words]
            columns = [column[begin:end] for column in values]
            chunks.append(self._block(chunk, columns, hashes_of, without))
            begin = end
        return joined(chunks, self.choice)

    def _end(self, word: _Words, begin: int) -> int:
        """Return where a block may end: at the first row of a unit."""
        end = begin + _BLOCK
        if end >= len(word):
            return len(word)
        low = np.uint64(self._unit_shift)
        unit = (word[end] >> low) << low  # the unit that the cut would divide goes to the next block,
        start = begin + int(np.searchsorted(word[begin:end], unit))
        if start > begin:
            return start
        last = unit | np.uint64((1 << self._unit_shift) - 1)  # unless it is all there is
        return begin + int(np.searchsorted(word[begin:], last, side="right"))

    def _block(
        self,
        words: list[_Words],
        values: list[_Integers],
        hashes_of: Callable[[_Words], _Words],
        without: _Words | None,
    ) -> Kept:
        packing, choice = self.packing, self.choice
        pairs = words[0] >> np.uint64(packing.value_bits)
        starts = starts_of(pairs)
        entries = pairs[starts]
        codes = (entries & np.uint64((1 << packing.code_bits) - 1)).view(np.int64)
        owners = entries >> np.uint64(packing.code_bits + self.priority_bits)
        unit_starts = starts_of(owners)
        names = owners[unit_starts]
        groups = np.diff(unit_starts, append=len(entries))
        rows = np.diff(starts, append=len(pairs))
        priorities = np.zeros(0, dtype=np.uint64)
        keep = np.ones(len(entries), dtype=np.bool_)
        limited = choice.max_groups is not None and int(groups.max()) > choice.max_groups
        if values or (limited and not self.priority_bits):
            priorities = mixed(np.repeat(hashes_of(names), groups) ^ choice.key_hashes[codes])
        if limited and choice.max_groups is not None:
            if self.priority_bits:
                keep = self._first(entries, unit_starts, groups, choice.max_groups)
            else:
                keep = most_per_owner(priorities, unit_starts, choice.max_groups)
        if without is not None and len(without) and _overlap(names, without):
            keep &= np.repeat(~np.isin(names, without), groups)
        everything = bool(keep.all())

        def taken(column: _Integers) -> _Integers:
            return column if everything else column[keep]

        sums = {}
        for slot in choice.sums:
            limbs = (words[slot.word] >> np.uint64(slot.shift)) & np.uint64((1 << slot.bits) - 1)
            sums[slot] = taken(np.add.reduceat(limbs, starts).view(np.int64))
        unit = np.repeat(np.arange(len(names)), groups)
        runs = {}
        if choice.runs:
            weights = RowWeights.of(unit, rows, most=choice.max_rows, total=choice.max_total, keep=keep)
            runs = {
                run.slot: self._run(run, words[run.slot.word], keep, codes, rows, weights)
                for run in choice.runs
            }
        found = []
        if values:
            owner = np.repeat(np.arange(len(entries)), rows)
            for column, most, hashes in zip(values, choice.distinct, choice.value_hashes, strict=True):
                of, value = _distinct(owner, column, keep, priorities, hashes, most)
                found.append(((np.cumsum(keep) - 1)[of], value))
        return Kept(
            unit=taken(unit), code=taken(codes), rows=taken(rows), sums=sums, runs=runs, values=tuple(found)
        )

    def _first(self, entries: _Words, starts: _Integers, groups: _Integers, most: int) -> _Flags:
        """Flag the `most` entries of smallest priority of each unit: the first, as entries are sorted.

        Where the bits of the priority that are in the words do not decide between the last entry that is kept
        and the next, all bits do; of equal priorities, the smaller code.
        """
        code_bits = np.uint64(self.packing.code_bits)
        ends = starts + np.minimum(groups, most)
        keep: _Flags = np.arange(len(entries)) < np.repeat(ends, groups)
        over = np.flatnonzero(groups > most)
        last = ends[over] - 1
        undecided = over[(entries[last] ^ entries[last + 1]) >> code_bits == 0]
        for owner in undecided.tolist():
            own = slice(int(starts[owner]), int(starts[owner] + groups[owner]))
            codes = (entries[own] & ((np.uint64(1) << code_bits) - np.uint64(1))).view(np.int64)
            units = entries[own] >> (code_bits + np.uint64(self.priority_bits))
            order = np.lexsort((codes, self._priorities(units, codes)))
            keep[own] = False
            keep[own.start + order[:most]] = True
        return keep

    def _run(
        self, run: Run, word: _Words, keep: _Flags, codes: _Integers, rows: _Integers, weights: RowWeights
    ) -> tuple[_Integers, _Integers]:
        """Return what a block adds to each cell of each group, as places and values."""
        low, bits = self.packing.low_bits, self.packing.value_bits
        places, added = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        if 1 << low <= _TABLE:
            # Units with no more rows than count are told apart by nothing: their rows are counted together.
            light = weights.light & keep
            together = word if light.all() else word[np.repeat(light, rows)]
            below = together & np.uint64((1 << low) - 1)
            table = np.bincount(below.view(np.int64), minlength=1 << low)
            table = table.reshape(-1, 1 << bits)[: len(self.choice.key_hashes), 1 : run.width + 1]
            places = np.flatnonzero(table)
            added = table.ravel()[places] * run.weight
            keep = keep & ~light
        if not keep.any():
            return places, added
        # The others one by one: cells of each unit and group are counted, and have its weight.
        word = word[np.repeat(keep, rows)]
        codes, weights = codes[keep], weights.some(keep)
        starts = starts_of(word)
        first = word[starts]
        many = np.diff(starts, append=len(word))
        pairs = first >> np.uint64(bits)
        entry = np.cumsum(np.concatenate(([False], pairs[1:] != pairs[:-1])))
        cells = (first - (pairs << np.uint64(bits))).view(np.int64) - 1
        wanted = np.flatnonzero(cells >= 0)
        cells, many, entry = cells[wanted], many[wanted], entry[wanted]
        more = weights.some(entry).applied(many * run.weight)
        return np.append(places, codes[entry] * run.width + cells), np.append(added, more)


def _overlap(names: _Words, few: _Words) -> bool:
    return bool(np.searchsorted(few, names[0]) < np.searchsorted(few, names[-1], side="right"))


def _distinct(
    owner: _Integers, values: _Integers, keep: _Flags, priorities: _Words, hashes: _Words, most: int
) -> tuple[_Integers, _Integers]:
    """Return at most `most` different values of each kept entry, by a hash of unit, key, value and salt."""
    wanted = (values >= 0) & keep[owner]
    owner, values = owner[wanted], values[wanted]
    if not len(values):
        return owner, values
    owner, values = different_pairs(owner, values)
    chosen = most_per_owner(mixed(priorities[owner] ^ hashes[values]), starts_of(owner), most)
    return owner[chosen], values[chosen]
