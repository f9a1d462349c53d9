"""Contributions by sorting words equal those by sorting rows one unit at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.backends.bounding import contributions
from sfumato.backends.bounding.contributions import bound_contributions
from sfumato.backends.bounding.packing import Kept, PackedChoice, PackedRows, Packing, Run, Slot
from sfumato.backends.bounding.priorities import mixed, most_per_owner

from .reference import mix

SLOTS = (Slot(word=0, shift=0, bits=3), Slot(word=0, shift=3, bits=5))
RUN = Run(slot=Slot(word=1, shift=0, bits=3), width=5, weight=10)
KEY_HASHES = np.array([3, 3, 5, 7, 11, 13, 17, 19], dtype=np.uint64)  # two keys share a hash
VALUE_HASHES = np.array([1, 1, 2, 3], dtype=np.uint64)


def slowly(
    units: list[int], codes: list[int], values: list[list[int]], max_groups: int, max_rows: int, salt: int
) -> tuple[list[tuple[int, ...]], dict[tuple[int, int], int], set[tuple[int, int, int]]]:
    entries = []
    cells: dict[tuple[int, int], int] = {}
    distinct: set[tuple[int, int, int]] = set()
    for unit in set(units):
        own = mix(unit % 2**64 ^ salt)
        mine = {code for u, code in zip(units, codes, strict=True) if u == unit}
        ranked = sorted(mine, key=lambda code: (mix(own ^ int(KEY_HASHES[code])), code))
        for code in ranked[:max_groups]:
            rows = [value for u, c, value in zip(units, codes, values, strict=True) if (u, c) == (unit, code)]
            n = len(rows)
            entries.append((code, n, sum(row[0] for row in rows), sum(row[1] for row in rows)))
            for cell in {row[2] for row in rows} - {0}:
                many = sum(row[2] == cell for row in rows)
                place = code, cell - 1
                cells[place] = cells.get(place, 0) + many * 10 * min(n, max_rows) // n
            priority = mix(own ^ int(KEY_HASHES[code]))
            different = {row[3] for row in rows} - {-1}
            best = sorted(different, key=lambda value: (mix(priority ^ int(VALUE_HASHES[value])), value))[:2]
            distinct |= {(unit, code, value) for value in best}
    return sorted(entries), {place: added for place, added in cells.items() if added}, distinct


def gathered(kept: list[Kept]) -> tuple[list[tuple[int, ...]], dict[tuple[int, int], int], int]:
    entries = []
    cells: dict[tuple[int, int], int] = {}
    distinct = 0
    for one in kept:
        columns = (one.code, one.rows, one.sums[SLOTS[0]], one.sums[SLOTS[1]])
        entries += list(zip(*(column.tolist() for column in columns), strict=True))
        for place, added in zip(*(column.tolist() for column in one.runs[RUN.slot]), strict=True):
            where = place // 5, place % 5
            cells[where] = cells.get(where, 0) + added
        for entry, value in one.values:
            pairs = set(zip(entry.tolist(), value.tolist(), strict=True))
            assert len(pairs) == len(entry)
            distinct += len(pairs)
        assert len(set(zip(one.unit.tolist(), one.code.tolist(), strict=True))) == len(one.code)
    return sorted(entries), {place: added for place, added in cells.items() if added}, distinct


UNIT = st.one_of(st.integers(0, 9), st.integers(-(2**63), 2**63 - 1))
VALUE = st.tuples(st.integers(0, 7), st.integers(0, 31), st.integers(0, 5), st.integers(-1, 3))


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(UNIT, st.integers(0, 7), VALUE), min_size=1, max_size=80),
    st.integers(0, 2**64 - 1),
    st.sampled_from([1, 2, 3, 4]),
    st.sampled_from([64, 34, 5, 1]),
    st.booleans(),
    st.sampled_from([2, 7, 1 << 17]),
    st.sampled_from([3, 30, 50, 55]),
    st.booleans(),
)
def test_packed_words_give_what_rows_give(
    rows: list[tuple[int, int, tuple[int, int, int, int]]],
    salt: int,
    threads: int,
    bits: int,
    numbered: bool,
    block: int,
    code_bits: int,
    with_values: bool,
) -> None:
    units = [row[0] for row in rows]
    codes = [row[1] for row in rows]
    values = [list(row[2]) for row in rows]
    words = (
        np.array([c << 8 | v[1] << 3 | v[0] for c, v in zip(codes, values, strict=True)], dtype=np.uint64),
        np.array([c << 8 | v[2] for c, v in zip(codes, values, strict=True)], dtype=np.uint64),
    )
    given_units, hashes = np.array(units, dtype=np.int64), None
    if numbered:
        own, given_units = np.unique(given_units, return_inverse=True)
        hashes = own.view(np.uint64)
    choice = PackedChoice(
        max_groups=2,
        max_rows=3,
        salt=salt,
        key_hashes=KEY_HASHES,
        sums=SLOTS,
        runs=(RUN,),
        distinct=(2,) if with_values else (),
        value_hashes=(VALUE_HASHES,) if with_values else (),
    )
    given_rows = PackedRows(
        units=given_units,
        words=words,
        values=(np.array([value[3] for value in values], dtype=np.int64),) if with_values else (),
        unit_hashes=hashes,
    )
    packing = Packing(code_bits=code_bits, value_bits=8)  # up to 63 bits: then two units at a time
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contributions, "_BLOCK", block)
        kept = bound_contributions(
            given_rows, packing, choice, threads=threads, fingerprint_bits=64 if numbered else bits
        )
    entries, cells, distinct = slowly(units, codes, values, 2, 3, salt)
    assert gathered(kept) == (entries, cells, len(distinct) if with_values else 0)


@pytest.mark.parametrize("code_bits", [40, 55])
@pytest.mark.parametrize("numbered", [True, False])
def test_units_some_at_a_time_are_units_all_at_once(code_bits: int, numbered: bool) -> None:
    """Every unit is in every group, so that what is kept of it is up to its own hash, batch or no batch."""
    units = np.repeat(np.arange(700, dtype=np.int64) * 3, 8)
    codes = np.tile(np.arange(8, dtype=np.uint64), 700)
    values = np.arange(len(units), dtype=np.uint64) % np.uint64(32)
    words = (codes << np.uint64(8) | values << np.uint64(3), codes << np.uint64(8) | values % np.uint64(6))
    hashes = mixed(np.arange(2100, dtype=np.uint64)) if numbered else None
    choice = PackedChoice(
        max_groups=2, max_rows=3, salt=9, key_hashes=KEY_HASHES, sums=SLOTS, runs=(RUN,), distinct=(2,),
        value_hashes=(VALUE_HASHES,),
    )  # fmt: skip
    rows = PackedRows(units=units, words=words, values=((values % 4).astype(np.int64),), unit_hashes=hashes)
    once, parts = (
        bound_contributions(rows, Packing(code_bits=bits, value_bits=8), choice, threads=2)
        for bits in (3, code_bits)
    )
    assert gathered(parts) == gathered(once)
    assert len(gathered(once)[0]) == 1400


@pytest.mark.parametrize("priority_bits", [1, 4, 40])
def test_priorities_in_the_words_decide_what_priorities_decide(priority_bits: int) -> None:
    """Of few bits of a priority many groups have the same; two groups have all of them."""
    units = [unit for unit in range(200, 456) for code in range(8) for _ in range(1 + (unit + code) % 3)]
    codes = [code for unit in range(200, 456) for code in range(8) for _ in range(1 + (unit + code) % 3)]
    values = [[place % 8, place % 32, 0, -1] for place in range(len(units))]
    word = [c << 8 | v[1] << 3 | v[0] for c, v in zip(codes, values, strict=True)]
    words = (np.array(word, dtype=np.uint64), np.array(codes, dtype=np.uint64) << np.uint64(8))
    choice = PackedChoice(max_groups=2, max_rows=3, salt=5, key_hashes=KEY_HASHES, sums=SLOTS, runs=(RUN,))
    rows = PackedRows(units=np.array(units, dtype=np.int64), words=words)
    packing = Packing(code_bits=64 - 8 - 8 - priority_bits, value_bits=8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contributions, "_BLOCK", 7)
        patch.setattr(contributions, "_FINGERPRINT", 1)
        patch.setattr(contributions, "_PRIORITY", 1)
        kept = bound_contributions(rows, packing, choice, threads=2)
    assert gathered(kept)[:2] == slowly(units, codes, values, 2, 3, 5)[:2]


@given(
    st.lists(st.lists(st.sampled_from([0, 1, 2, 3, 2**64 - 1]), min_size=1, max_size=6), min_size=1),
    st.integers(1, 4),
)
def test_ties_go_to_the_earlier_entry(owners: list[list[int]], most: int) -> None:
    flat = np.array([priority for own in owners for priority in own], dtype=np.uint64)
    starts = np.cumsum([0, *(len(own) for own in owners[:-1])])
    expected = []
    for own in owners:
        best = sorted(range(len(own)), key=lambda place: (own[place], place))[:most]
        expected += [place in best for place in range(len(own))]
    assert most_per_owner(flat, starts, most).tolist() == expected


def test_mixing_is_one_to_one() -> None:
    words = [0, 1, 2**31, 2**63, 2**64 - 1, 123456789]
    mixed_words = mixed(np.array(words, dtype=np.uint64)).tolist()
    assert mixed_words == [mix(word) for word in words]
    inverse = pow(0xD6E8FEB86659FD93, -1, 2**64)
    for word, found in zip(words, mixed_words, strict=True):
        found ^= found >> 32
        for _ in range(2):
            found = found * inverse % 2**64
            found ^= found >> 32
        assert found == word
