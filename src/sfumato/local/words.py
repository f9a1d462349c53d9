"""Strings as bytes and as digits, and what a report about a beginning is about: a short word of digits.

Words are short so that all of them can be counted at once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.core.scientific import scientific
from sfumato.errors import InvalidArgument
from sfumato.local.arrays import Array, Octets, slices

__all__ = ["Spectrum", "Word", "WordLevels", "digits_of_octets", "octets_of", "octets_of_digits", "text_of"]

_WORDS = 1 << 26  # at most this many words: all are counted at once
_STEPS = 400  # continuations of a beginning, if the prime is not larger
_SHORTER, _WHOLE, _LOOK, _TEST = 2, 3, 1, 4  # levels of each length, of whole strings, and to test these
_PIECE = 1 << 14


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """The last `kept` digits of a beginning, and before them `checks` digits that follow from the others.

    If checks + kept is the length, the word is the beginning itself. Else check i is the sum of c_ij x_j
    modulo the prime over the digits x_j before those kept, where c_11, c_12 .. c_21 .. are the numbers, two
    bytes each, that SHAKE-256 makes of "prime length", modulo the prime: nobody chose them.

    Theorem: words of beginnings that differ in a kept digit differ. Others agree if all checks of their
    difference are 0; if the checks are linearly independent, which random ones nearly always are, that is
    one in prime^checks of the differences. Each length has checks of its own, so that two that agree at
    one length need not at the next. Only the search relies on it: what is tested is the string itself.
    """

    prime: int
    length: int
    checks: int
    kept: int

    @property
    def digits(self) -> int:
        """How many digits a word has."""
        return self.checks + self.kept

    def of(self, digits: Array) -> Octets:
        """Return the words of strings, given by a row per digit: again a row per digit."""
        before = digits[: self.length - self.kept]
        kept = digits[self.length - self.kept : self.length]
        return np.concatenate([self.heads(before), kept]).astype(np.uint8)

    def heads(self, before: Array) -> Octets:
        """Return the checks of what comes before the kept digits, a row per digit."""
        if self.digits == self.length:
            return before.astype(np.uint8)
        size = self.checks * len(before)
        drawn = hashlib.shake_256(f"{self.prime} {self.length}".encode()).digest(2 * size)
        coefficients = np.frombuffer(drawn, dtype=">u2").reshape(self.checks, -1) % self.prime
        total = np.zeros((self.checks, before.shape[1]), dtype=np.int64)
        for column, digit in zip(coefficients.T.astype(np.int64), before, strict=True):
            total += column[:, None] * digit  # each below 2^14, and digits are few
        return np.asarray(total % self.prime).astype(np.uint8)


@dataclass(frozen=True, slots=True, kw_only=True)
class WordLevels:
    """How long beginnings are, in rising order, and how many of the equally likely levels have each length.

    With g the prime and m the digits of a whole string: a word has w digits, the most with g^w <= 2^26; the
    step s is the largest with g^s <= 400, or 1. If m <= w - s there is one level, of m digits, and all
    strings are tested. Else lengths are w - s, w, w + s .. while below m, then m, then m twice more. Reports
    of at most w digits, and the last two, which test whole strings, are about the digits themselves;
    the others are about a word of w, of which the digits since the next shorter length are kept.

    Each length below m has two levels, the search among whole strings three, the test of what was found
    five: one to give up on most, four for the rest. Of some forty plans that were simulated, for a million
    people, 48 bits and epsilon 2, this is among those that lose the fewest strings of one percent.
    """

    prime: int
    lengths: tuple[int, ...]
    weights: tuple[int, ...]

    @classmethod
    def of(cls, prime: int, *, digits: int) -> WordLevels:
        """Return the levels for strings of `digits` digits."""
        step = max(1, _power(prime, _STEPS))
        first = _power(prime, _WORDS) - step
        if digits <= first:
            return cls(prime=prime, lengths=(digits,), weights=(1,))
        lengths = [*range(first, digits, step), digits]
        weights = [_SHORTER] * (len(lengths) - 1)
        return cls(prime=prime, lengths=(*lengths, digits, digits), weights=(*weights, _WHOLE, _LOOK, _TEST))

    @property
    def tests(self) -> int:
        """How many of the lengths, the last, test whole strings."""
        return 1 if len(self.lengths) == 1 else 2

    @property
    def words(self) -> tuple[Word, ...]:
        """What reports of each length are about."""
        longest = _power(self.prime, _WORDS)
        words = []
        for length, shorter in zip(self.lengths, (0, *self.lengths), strict=False):
            kept = length - shorter
            plain = length <= longest or not kept
            words.append(
                Word(prime=self.prime, length=length, checks=shorter if plain else longest - kept, kept=kept)
            )
        return tuple(words)

    @property
    def slots(self) -> tuple[int, ...]:
        """Which of the lengths each level asks for."""
        return tuple(place for place, weight in enumerate(self.weights) for _ in range(weight))


class Spectrum:
    """The supports of all words together, by one Fourier transform over digits modulo a prime.

    Theorem: with w = exp(2 pi i / g), a report of seed a and value v supports y, that is a y = v modulo g,
    if w^(t (a y - v)) is 1 for all t, and these sum to 0 over t = 0 .. g - 1 if it does not. So g times the
    supports of y, less the number of reports, is the transform at y of H, to which each report adds
    w^(-t v) at t a, for t = 1 .. g - 1. As H(-b) is the conjugate of H(b), half of it is enough.
    Rounds: to single precision, errors of some 1e-7 of the square root of the number of reports.
    """

    def __init__(self, prime: int, digits: int) -> None:
        self.prime, self.digits, self.reports = prime, digits, 0
        self._half = prime // 2 + 1
        self._sums = np.zeros(prime ** (digits - 1) * self._half, dtype=np.complex64)

    def add(self, seeds: Array, value: Array) -> None:
        """Add reports: a row of seeds per digit of the word."""
        prime = self.prime
        times = np.arange(1, prime)
        roots = np.exp(-2j * np.pi * np.arange(prime) / prime).astype(np.complex64)
        self.reports += len(value)
        for piece in slices(len(value), _PIECE):
            place = np.zeros((len(value[piece]), prime - 1), dtype=np.int64)
            for residues in seeds[: self.digits - 1, piece]:
                place = place * prime + residues.astype(np.int64)[:, None] * times % prime
            last = seeds[self.digits - 1, piece].astype(np.int64)[:, None] * times % prime
            turned = roots[value[piece].astype(np.int64)[:, None] * times % prime]
            mine = last < self._half
            np.add.at(self._sums, (place * self._half + last)[mine], turned[mine])

    def deviations(self) -> npt.NDArray[np.float32]:
        """Return by how many deviations of noise each word's supports are above their mean, and be empty."""
        irfftn = scientific("fft").irfftn
        shape = (self.prime,) * self.digits
        sums = self._sums.reshape(*shape[:-1], self._half)
        self._sums = np.zeros(0, dtype=np.complex64)
        excess = np.asarray(irfftn(sums, s=shape, norm="forward", overwrite_x=True, workers=-1)).ravel()
        excess *= np.float32(1 / np.sqrt(max(1, self.reports) * (self.prime - 1)))
        return excess


def _power(base: int, bound: int) -> int:
    """Return the largest power of the base, as an exponent, that is at most the bound."""
    exponent = 0
    while base ** (exponent + 1) <= bound:
        exponent += 1
    return exponent


_LIMB = 32


def octets_of(texts: Iterable[str | bytes], length: int) -> Octets:
    """Write texts as rows of `length` bytes: UTF-8, filled up with zeros; longer ones are cut, and merge.

    >>> octets_of(["abc", "d"], 2).tolist()
    [[97, 98], [100, 0]]
    """
    rows = []
    for text in texts:
        if not isinstance(text, (str, bytes)):
            raise InvalidArgument("strings must be text or bytes", place="texts")
        octets = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        rows.append(octets[:length].ljust(length, b"\0"))
    return np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(len(rows), length).copy()


def text_of(octets: bytes) -> str:
    """Read bytes as text, without the zeros at the end; what is not UTF-8 is shown as escapes."""
    return octets.rstrip(b"\0").decode("utf-8", "backslashreplace")


def digits_of_octets(octets: Octets, base: int, digits: int) -> Octets:
    """Write rows of bytes, read as numbers, in a base of at most 256: one row per digit, the highest first.

    Long division, 32 bits and as many digits at a time as fit beside them in 63.
    """
    people, length = octets.shape
    padded = np.zeros((people, -length % 4 + length), dtype=np.uint8)
    padded[:, -length % 4 :] = octets
    limbs = padded.view(">u4").astype(np.int64).T.copy()
    out = np.zeros((digits, people), dtype=np.uint8)
    at_once = 1
    while base ** (at_once + 1) < 2 ** (63 - _LIMB):
        at_once += 1
    divisor = base**at_once
    row = digits
    while row > 0:
        rest = np.zeros(people, dtype=np.int64)
        for limb in limbs:
            carried = (rest << _LIMB) + limb
            limb[:], rest = np.divmod(carried, divisor)
        for _ in range(min(at_once, row)):
            row -= 1
            rest, out[row] = np.divmod(rest, base)
    return out


def octets_of_digits(digits: Sequence[int], base: int, length: int) -> bytes:
    """Return the string of `length` bytes that digits spell.

    >>> octets_of_digits([1, 0, 1], 16, 2)
    b'\\x01\\x01'
    """
    number = 0
    for digit in digits:
        number = number * base + digit
    return number.to_bytes(length, "big")
