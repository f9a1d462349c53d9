"""Keys that appear while a stream runs: the noise of each from period 1 on, and values that are held back.

The keys of a stream are those of which some row counted so far; they, their noise and their noisy values are
part of the protected state. An output has the keys that are shown, in the order of their values, and of keys
that are new in it what they were in earlier periods. `continual.key_selection` proves what this costs.
"""

from __future__ import annotations

import base64
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.analysis.selection import Selection
from sfumato.backends.exact import Exact, ExactGroups
from sfumato.catalog.kind import Value
from sfumato.continual.correlated_noise import CorrelatedNoise
from sfumato.continual.pricing import PricedStream
from sfumato.continual.remembered import packed_integers, unpacked_integers
from sfumato.release.noise import add_noise_to_keys, key_order
from sfumato.release.storage import decode, dump, encode, load

__all__ = ["AppearingKeys", "WithEarlier"]

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
        # by period: noisy values of the keys that were there, of a period that failed the noise alone
        self._values: list[_Integers] = []
        # of keys that appeared together: the place of the first, and their noise in all periods before
        self._firsts: list[int] = []
        self._before: list[_Integers] = []
        self._failed: set[int] = set()
        self._totals: _Integers = np.zeros(0, dtype=object)  # of the numbers that decide, in the newest steps
        self._thresholds: tuple[int, ...] = ()
        self._noise = CorrelatedNoise(stream.factorisation)
        self._resume(kept)

    def failed(self) -> bytes:
        """Return what the state keeps of a period that failed: its noise, and nothing that is published."""
        noise = self._next()
        self._count(noise)
        self._failed.add(len(self._values))
        return self._stored([], noise, None, np.zeros(0, dtype=np.int64))

    def period(self, exact: Exact[tuple[ExactGroups, ...]]) -> tuple[bytes, Mapping[str, Any]]:
        """Return what the state keeps of the next period, and what is published of it."""
        stream, number = self._stream, len(self._values) + 1
        new: list[_Key] = []
        noise = np.zeros((0, 0))

        def noise_of(keys: Sequence[_Key]) -> tuple[_Integers, Mapping[str, _Integers]]:
            nonlocal new, noise
            new = [key for key in keys if key_order(key) not in self._places]
            self._appear(new)
            noise = self._next()
            places = np.array([self._places[key_order(key)] for key in keys], dtype=np.int64)
            return places, dict(zip(self._names, noise.T, strict=True))

        steps = {name: stream.steps(name, number) for name in self._names}
        noisy = add_noise_to_keys(exact, stream.bounding, self._rule, steps, noise_of)
        values = np.stack([noisy[name] for name in self._names], axis=1)
        self._count(values)
        above = (self._totals > self._threshold(number)).astype(np.bool_)
        found = np.flatnonzero(above & ~self._shown)
        self._shown[found] = True
        return self._stored(new, noise, values, found), self._published(found)

    def _threshold(self, number: int) -> int:
        """Return above which running total a key is shown in a period, in the steps of that period."""
        if number > len(self._thresholds):
            self._thresholds = self._stream.thresholds(2 * number)
        finer = self._stream.steps(self._stream.deciding, number) // self._stream.steps(self._stream.deciding)
        return self._thresholds[number - 1] * finer

    def _published(self, found: _Integers) -> Mapping[str, Any]:
        """Return the newest values of the keys that are shown, and all earlier ones of those found now."""
        shown, new = self._ordered(np.flatnonzero(self._shown)), self._ordered(found)
        earlier = enumerate(self._history(new)[:-1], 1) if new else ()
        return {
            "keys": encode(tuple(self._keys[place] for place in shown)),
            "measures": self._of_measures(self._values[-1][shown]),
            "found": encode(tuple(self._keys[place] for place in new)),
            "earlier": {
                str(number): self._of_measures(values)
                for number, values in earlier
                if number not in self._failed
            },
        }

    def _history(self, places: Sequence[int]) -> _Integers:
        """Return the values of keys in all periods so far, by period, key and number."""
        tables = []
        for place in places:
            batch = bisect_right(self._firsts, place) - 1
            before = self._before[batch][:, place - self._firsts[batch]]
            tables.append([*before, *(values[place] for values in self._values[len(before) :])])
        return np.array(tables, dtype=object).swapaxes(0, 1)

    def _of_measures(self, values: _Integers) -> dict[str, list[int]]:
        pairs = zip(self._names, values.T, strict=True)
        return {name: column.tolist() for name, column in pairs if name in self._stream.laws}

    def _ordered(self, places: _Integers) -> list[int]:
        """Return places in the order of their keys, which says nothing of when they appeared."""
        return sorted(places.tolist(), key=lambda place: key_order(self._keys[place]))

    def _appear(self, new: Sequence[_Key]) -> None:
        """Draw the noise that new keys have in all periods so far, as if they had always been there."""
        if new:
            own, before = CorrelatedNoise(self._stream.factorisation), []
            numbers = range(1, len(self._values) + 1)
            for _, alike in groupby(numbers, self._stream.factorisation.extra_bits):
                first, *more = alike  # periods of the same steps: their noise is drawn at once
                fresh = self._fresh(first, (1 + len(more)) * len(new))
                before += [own.next(one) for one in fresh.reshape(1 + len(more), -1)]
            self._noise.join(own)
            self._add(new, np.array(before, dtype=np.result_type(np.int64, *before)))

    def _add(self, new: Sequence[_Key], before: _Integers) -> None:
        self._firsts.append(len(self._keys))
        self._before.append(before.reshape(len(self._values), len(new), len(self._names)))
        for key in new:
            self._places[key_order(key)] = len(self._keys)
            self._keys.append(key)
        self._shown = np.concatenate((self._shown, np.zeros(len(new), dtype=np.bool_)))
        totals: _Integers = np.zeros(len(new), dtype=object)
        for number, noise in enumerate(self._before[-1], 1):
            totals = totals * self._finer(number) + noise[:, self._deciding].astype(object)
        self._totals = np.concatenate((self._totals, totals))

    def _count(self, values: _Integers) -> None:
        self._values.append(values)
        added = values[:, self._deciding].astype(object)
        self._totals = self._totals * self._finer(len(self._values)) + added

    def _finer(self, number: int) -> int:
        """Return how many steps of a period are one of the period before."""
        steps = self._stream.steps
        return steps(self._stream.deciding, number) // steps(self._stream.deciding, max(1, number - 1))

    def _next(self) -> _Integers:
        noise = self._noise.next(self._fresh(len(self._values) + 1, len(self._keys)))
        return noise.reshape(-1, len(self._names))

    def _fresh(self, number: int, keys: int) -> _Integers:
        """Return fresh noise of as many keys in a period, the numbers of one key beside each other."""
        return np.stack([self._stream.fresh(name, number, keys) for name in self._names], axis=1).ravel()

    def _stored(
        self, new: Sequence[_Key], noise: _Integers, values: _Integers | None, found: _Integers
    ) -> bytes:
        """Return one period as the state keeps it; `found` are places of keys that are shown from then on."""
        before = self._before[-1] if new else np.zeros(0, dtype=np.int64)
        return dump(
            {
                "keys": encode(tuple(new)),
                "before": _packed(before),
                "noise": _packed(noise),
                "values": None if values is None else _packed(values),
                "found": found.tolist(),
            }
        ).encode()

    def _resume(self, kept: Iterable[bytes]) -> None:
        noises = []
        for number, stored in enumerate(kept, 1):
            said = load(stored.decode())
            if new := decode(said["keys"]):
                self._add(new, _unpacked(said["before"]))
            noises.append(_unpacked(said["noise"]).reshape(-1, len(self._names)))
            if said["values"] is None:
                self._failed.add(number)
            values = noises[-1] if said["values"] is None else _unpacked(said["values"])
            self._count(values.reshape(-1, len(self._names)))
            self._shown[said["found"]] = True
        kind = np.result_type(np.int64, *noises, *self._before)
        whole = np.zeros((len(noises), len(self._keys), len(self._names)), dtype=kind)
        for place, noise in enumerate(noises):
            whole[place, : len(noise)] = noise
        for first, before in zip(self._firsts, self._before, strict=True):
            whole[: len(before), first : first + before.shape[1]] = before
        for noise in whole:
            self._noise.follow(noise.ravel())


def _packed(values: _Integers) -> str:
    return base64.b64encode(packed_integers(values.ravel())).decode()


def _unpacked(text: str) -> _Integers:
    return unpacked_integers(base64.b64decode(text))


class WithEarlier(Mapping[int, Mapping[str, Any]]):
    """Outputs in which every period has all keys that are shown by now, in the order of their values.

    They are read when one of them is first looked at.

    >>> first = {"keys": [["a"]], "measures": {"m": [1]}, "found": [["a"]], "earlier": {}}
    >>> second = {"keys": [["a"], ["b"]], "measures": {"m": [2, 3]}, "found": [["b"]],
    ...     "earlier": {"1": {"m": [4]}}}
    >>> [one["measures"] for one in WithEarlier({1: first, 2: second}).values()]
    [{'m': [1, 4]}, {'m': [2, 3]}]
    """

    def __init__(self, outputs: Mapping[int, Mapping[str, Any]]) -> None:
        self._outputs = outputs
        self._whole: dict[int, Mapping[str, Any]] = {}

    def __getitem__(self, number: int) -> Mapping[str, Any]:
        if not self._whole and self._outputs:
            self._whole = self._read()
        return self._whole[number]

    def __iter__(self) -> Iterator[int]:
        return iter(self._outputs)

    def __len__(self) -> int:
        return len(self._outputs)

    def __contains__(self, number: object) -> bool:
        return number in self._outputs

    def _read(self) -> dict[int, Mapping[str, Any]]:
        newest = self._outputs[max(self._outputs)]
        order = [key_order(key) for key in decode(newest["keys"])]
        values: dict[int, dict[str, dict[Any, int]]] = {
            number: {name: {} for name in newest["measures"]} for number in self._outputs
        }

        def note(number: int, keys: Any, measures: Mapping[str, Sequence[int]]) -> None:
            ranks = [key_order(key) for key in decode(keys)]
            for name, column in measures.items():
                values[number][name].update(zip(ranks, column, strict=True))

        for number, output in self._outputs.items():
            note(number, output["keys"], output["measures"])
            for earlier, measures in output["earlier"].items():
                note(int(earlier), output["found"], measures)
        return {
            number: {
                **output,
                "keys": newest["keys"],
                "measures": {name: [column[rank] for rank in order] for name, column in own.items()},
            }
            for (number, output), own in zip(self._outputs.items(), values.values(), strict=True)
        }
