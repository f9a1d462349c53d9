"""Keys that appear while a stream runs: the noise of each from period 1 on, and values that are held back.

The keys of a stream are those of which some row counted so far; they, their noise and their noisy values are
part of the protected state. An output has the keys that are shown, in the order of their values, and of keys
that are new in it what they were in earlier periods. `continual.key_selection` proves what this costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.analysis.selection import Selection
from sfumato.backends.exact import Exact, ExactGroups
from sfumato.catalog.kind import Value
from sfumato.continual.correlated_noise import CorrelatedNoise
from sfumato.continual.pricing import PricedStream
from sfumato.release.noise import add_noise_to_keys, key_order
from sfumato.release.storage import decode, dump, encode, load

__all__ = ["AppearingKeys", "with_earlier"]

_Integers = npt.NDArray[Any]
_Key = tuple[Value, ...]


class AppearingKeys:
    """All keys of a stream so far; `kept` are the periods that the state holds, in order.

    Arrays have a row for each key, in the order in which they appeared, and a column for each number of it.
    """

    def __init__(self, stream: PricedStream, rule: Selection, kept: Iterable[bytes]) -> None:
        self._stream, self._rule = stream, rule
        self._names = tuple(stream.numbers)
        self._deciding = self._names.index(stream.deciding)
        self._places: dict[tuple[Any, ...], int] = {}
        self._keys: list[_Key] = []
        self._shown = np.zeros(0, dtype=np.bool_)
        self._values: list[_Integers] = []  # by period: noisy values, of one that failed the noise alone
        self._totals: _Integers = np.zeros(0, dtype=object)  # of the numbers that decide
        self._failed: set[int] = set()
        self._noise = CorrelatedNoise(stream.factorisation)
        self._resume(kept)

    def failed(self) -> bytes:
        """Return what the state keeps of a period that failed: its noise, and nothing that is published."""
        noise = self._next()
        self._failed.add(len(self._values) + 1)
        self._count(noise)
        return _stored([], [], noise, None, np.zeros(0, dtype=np.int64))

    def period(self, exact: Exact[tuple[ExactGroups, ...]]) -> tuple[bytes, Mapping[str, Any]]:
        """Return what the state keeps of the next period, and what is published of it."""
        stream, known = self._stream, len(self._keys)
        before: list[_Integers] = []
        noise = np.zeros((0, 0))

        def noise_of(keys: Sequence[_Key]) -> tuple[_Integers, Mapping[str, _Integers]]:
            nonlocal before, noise
            before = self._appear([key for key in keys if key_order(key) not in self._places])
            noise = self._next()
            places = np.array([self._places[key_order(key)] for key in keys], dtype=np.int64)
            return places, dict(zip(self._names, noise.T, strict=True))

        number = len(self._values) + 1
        steps = {name: stream.steps(name, number) for name in self._names}
        noisy = add_noise_to_keys(exact, stream.bounding, self._rule, steps, noise_of)
        values = np.stack([noisy[name] for name in self._names], axis=1)
        self._count(values)
        above = (self._totals > stream.thresholds[number - 1]).astype(np.bool_)
        found = np.flatnonzero(above & ~self._shown)
        self._shown[found] = True
        kept = _stored(self._keys[known:], before, noise, values, found)
        return kept, self._published(found)

    def _published(self, found: _Integers) -> Mapping[str, Any]:
        """Return the newest values of the keys that are shown, and all earlier ones of those found now."""
        shown, new = self._ordered(np.flatnonzero(self._shown)), self._ordered(found)
        *earlier, newest = self._values
        known = {number: one for number, one in enumerate(earlier, 1) if number not in self._failed}
        return {
            "keys": encode(tuple(self._keys[place] for place in shown)),
            "measures": self._of_measures(newest, shown),
            "found": encode(tuple(self._keys[place] for place in new)),
            "earlier": {str(number): self._of_measures(one, new) for number, one in known.items()}
            if new
            else {},
        }

    def _of_measures(self, values: _Integers, places: Sequence[int]) -> dict[str, list[int]]:
        pairs = zip(self._names, values[places].T, strict=True)
        return {name: column.tolist() for name, column in pairs if name in self._stream.laws}

    def _ordered(self, places: _Integers) -> list[int]:
        """Return places in the order of their keys, which says nothing of when they appeared."""
        return sorted(places.tolist(), key=lambda place: key_order(self._keys[place]))

    def _appear(self, new: Sequence[_Key]) -> list[_Integers]:
        """Draw the noise that new keys have in all periods so far, as if they had always been there."""
        if not new:
            return []
        drawn = CorrelatedNoise(self._stream.factorisation)
        before = [
            self._table(drawn.next(self._fresh(number, len(new))))
            for number in range(1, len(self._values) + 1)
        ]
        self._noise.join(drawn)
        self._add(new, before)
        return before

    def _add(self, new: Sequence[_Key], before: Sequence[_Integers]) -> None:
        for key in new:
            self._places[key_order(key)] = len(self._keys)
            self._keys.append(key)
        self._shown = np.concatenate((self._shown, np.zeros(len(new), dtype=np.bool_)))
        if new:
            pairs = zip(self._values, before, strict=True)
            self._values = [np.concatenate(pair) for pair in pairs]
            totals = sum((one[:, self._deciding] for one in before), np.zeros(len(new), dtype=object))
            self._totals = np.concatenate((self._totals, totals))

    def _count(self, values: _Integers) -> None:
        self._values.append(values)
        self._totals = self._totals + values[:, self._deciding]

    def _next(self) -> _Integers:
        return self._table(self._noise.next(self._fresh(len(self._values) + 1, len(self._keys))))

    def _fresh(self, number: int, keys: int) -> _Integers:
        """Return fresh noise of as many keys in a period, the numbers of one key beside each other."""
        return np.stack([self._stream.fresh(name, number, keys) for name in self._names], axis=1).ravel()

    def _table(self, numbers: _Integers) -> _Integers:
        return numbers.reshape(-1, len(self._names))

    def _resume(self, kept: Iterable[bytes]) -> None:
        noises: list[_Integers] = []
        for number, stored in enumerate(kept, 1):
            said = load(stored.decode())
            before = [self._table(np.array(one, dtype=object)) for one in said["before"]]
            self._add(decode(said["keys"]), before)
            if before:
                noises = [np.concatenate(pair) for pair in zip(noises, before, strict=True)]
            noise = self._table(np.array(said["noise"], dtype=object))
            noises.append(noise)
            if said["values"] is None:
                self._failed.add(number)
            values = noise if said["values"] is None else np.array(said["values"], dtype=object)
            self._count(self._table(values))
            self._shown[said["found"]] = True
        self._noise.resume([one.ravel() for one in noises], len(noises))


def _stored(
    keys: Sequence[_Key],
    before: Sequence[_Integers],
    noise: _Integers,
    values: _Integers | None,
    found: _Integers,
) -> bytes:
    """Return one period as the state keeps it; `found` are places of keys that are shown from then on."""
    return dump(
        {
            "keys": encode(tuple(keys)),
            "before": [one.ravel().tolist() for one in before],
            "noise": noise.ravel().tolist(),
            "values": None if values is None else values.ravel().tolist(),
            "found": found.tolist(),
        }
    ).encode()


def with_earlier(outputs: Mapping[int, Mapping[str, Any]]) -> dict[int, Mapping[str, Any]]:
    """Return outputs in which every period has all keys that are shown by now, in the order of their values.

    >>> first = {"keys": [["a"]], "measures": {"m": [1]}, "found": [["a"]], "earlier": {}}
    >>> second = {"keys": [["a"], ["b"]], "measures": {"m": [2, 3]}, "found": [["b"]],
    ...     "earlier": {"1": {"m": [4]}}}
    >>> [one["measures"] for one in with_earlier({1: first, 2: second}).values()]
    [{'m': [1, 4]}, {'m': [2, 3]}]
    """
    if not outputs:
        return {}
    newest = outputs[max(outputs)]
    order = [key_order(key) for key in decode(newest["keys"])]
    values: dict[int, dict[str, dict[Any, int]]] = {
        number: {name: {} for name in newest["measures"]} for number in outputs
    }

    def note(number: int, keys: Any, measures: Mapping[str, Sequence[int]]) -> None:
        ranks = [key_order(key) for key in decode(keys)]
        for name, column in measures.items():
            values[number][name].update(zip(ranks, column, strict=True))

    for number, output in outputs.items():
        note(number, output["keys"], output["measures"])
        for earlier, measures in output["earlier"].items():
            note(int(earlier), output["found"], measures)
    return {
        number: {
            **output,
            "keys": newest["keys"],
            "measures": {name: [column[rank] for rank in order] for name, column in values[number].items()},
        }
        for number, output in outputs.items()
    }
