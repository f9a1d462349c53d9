"""The client: one true answer in, one report out. The only half that ever sees an answer.

Standard library only, one file, meant to be read and ported: copy it onto a phone, or rewrite it there.
It needs the published survey file and nothing else, and talks to nobody.

    python client.py survey.toml "bus"

Every choice is made by `below(n)`, a uniform integer from 0 to n - 1 of the operating system's randomness,
compared with integers from the survey file; no float is involved, so every probability is exact. A port
is right if, given the same draws, it makes the same reports: `sfumato survey vectors` writes pairs to check.
"""

import hashlib
import json
import secrets
import sys
import tomllib
from collections.abc import Callable, Collection
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from typing import Any

__all__ = ["Refused", "load", "report"]

_Below = Callable[[int], int]
_Table = dict[str, Any]  # a section of the survey file, or the fields of a report


class Refused(ValueError):
    """The survey breaks its promise, or the answer is not one of its answers. Nothing was sent."""


def load(data: bytes) -> _Table:
    """Read a survey file (its bytes), and check that its protocol costs no more than it promises."""
    try:
        survey = tomllib.loads(data.decode())
        protocol, epsilon = survey["protocol"], Fraction(str(survey["survey"]["epsilon"]))
        _check(survey["survey"], protocol)
        ratio = _max_ratio(protocol)
    except Refused:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError) as error:
        raise Refused(f"not a survey file: {type(error).__name__}") from None
    if ratio < 1 or _log(ratio) > Decimal(epsilon.numerator) / Decimal(epsilon.denominator):
        raise Refused("the protocol of this survey costs more than the survey promises")
    survey["fingerprint"] = hashlib.sha256(data).hexdigest()[:32]
    return survey


def report(
    survey: _Table, answer: Any, memory: _Table | None = None, day: int = 0, below: _Below = secrets.randbelow
) -> _Table:
    """Return the report for a true answer: a dict, to be sent as one line of JSON.

    Where a survey is repeated, pass the same `memory` (a dict that never leaves the respondent) and the
    number of the day each time. What was drawn once is kept, by answer or by period, and sent again; once
    the survey's cap on drawn reports is reached, the last one is.
    """
    protocol, limits = survey["protocol"], survey.get("limits", {})
    place = _place(survey["survey"], answer)
    draw = _PROTOCOLS[protocol["name"]]
    if "cap" not in limits:
        fields = draw(protocol, place, below)
    else:
        if memory is None:
            raise Refused("this survey is repeated: keep a memory, or every day costs anew")
        mine = memory.setdefault(survey["fingerprint"], {"kept": {}, "last": None})
        key = str(day // limits["every"]) if "every" in limits else json.dumps(place, default=str)
        if key not in mine["kept"]:
            if len(mine["kept"]) < limits["cap"]:
                mine["kept"][key] = draw(protocol, place, below)
            else:
                key = mine["last"]
        mine["last"], fields = key, mine["kept"][key]
        if protocol["name"] in _FRESH:
            fields = _FRESH[protocol["name"]](protocol, fields, below)
    return {"survey": survey["fingerprint"], "id": secrets.token_hex(16), **fields}


# -- answers ------------------------------------------------------------------------------------


def _place(question: _Table, answer: Any) -> Any:
    """Return what the protocol is about: the answer's place, a set of places, a number, or bytes."""
    kind = question["kind"]
    names = ["no", "yes"] if kind == "yes_no" else question.get("answers")
    if kind in ("yes_no", "one_of"):
        return _one(names, question.get("size", 0), answer)
    if kind == "several_of":
        if isinstance(answer, str) or not hasattr(answer, "__iter__"):
            raise Refused("give a list of answers")
        return sorted({_one(names, question.get("size", 0), each) for each in answer})
    if kind == "number":
        try:
            number = Fraction(answer)
        except (ValueError, TypeError, OverflowError, ZeroDivisionError):
            raise Refused("the answer is not a number") from None
        return min(max(number, Fraction(question["low"])), Fraction(question["high"]))
    if kind == "text" and isinstance(answer, str):
        octets, length = answer.encode(errors="surrogatepass"), question["length"]
        while len(octets) > length and octets[length] & 0xC0 == 0x80:  # not inside a character
            length -= 1
        return octets[:length].ljust(question["length"], b"\0")
    raise Refused("the answer is not of the kind that is asked for")


def _one(names: list[str] | None, size: int, answer: Any) -> int:
    if isinstance(answer, bool) and names == ["no", "yes"]:
        return int(answer)
    if names is None and isinstance(answer, (int, str)) and str(answer).isdecimal() and int(answer) < size:
        return int(answer)
    if names is None or answer not in names:
        raise Refused("that is not one of the answers")
    return names.index(answer)


# -- protocols: each takes its parameters, what it is about, and `below` ------------------------------


def _response(protocol: _Table, place: int, below: _Below) -> _Table:
    return {"value": _tell(place, protocol["size"], Fraction(protocol["odds"]), below)}


def _tell(place: int, size: int, odds: Fraction, below: _Below) -> int:
    """The truth weighs odds, every other of `size` values 1."""
    a, b = odds.numerator, odds.denominator
    if size == 1:
        return place
    drawn = below(a + (size - 1) * b)
    return place if drawn < a else (place + 1 + (drawn - a) // b) % size


def _unary(protocol: _Table, place: int, below: _Below) -> _Table:
    return _coins(protocol, [place], below)


def _unary_set(protocol: _Table, places: list[int], below: _Below) -> _Table:
    return _coins(protocol, _at_most(list(places), protocol["most"], below), below)


def _coins(protocol: _Table, held: Collection[int], below: _Below) -> _Table:
    own, other = Fraction(protocol["own"]), Fraction(protocol["other"])
    chances = (own if place in held else other for place in range(protocol["size"]))
    chosen = [place for place, one in enumerate(chances) if below(one.denominator) < one.numerator]
    return {"bits": _bits(chosen, protocol["size"])}


def _subset(protocol: _Table, place: int, below: _Below) -> _Table:
    size, chosen, odds = protocol["size"], protocol["chosen"], Fraction(protocol["odds"])
    a, b = odds.numerator, odds.denominator
    inside = below(chosen * a + (size - chosen) * b) < chosen * a
    return {"bits": _bits(_filled({place} if inside else set(), {place}, chosen, size, below), size)}


def _set(protocol: _Table, places: list[int], below: _Below) -> _Table:
    size, most, chosen, odds = (protocol[name] for name in ("size", "most", "chosen", "odds"))
    own = _at_most(list(places), most, below)
    own += range(size + len(own), size + most)
    odds = Fraction(odds)
    struck: set[int] = set()
    start: set[int] = set()
    for place in own:
        left, miss = most - len(struck), Fraction(1)
        for r in range(1, left + 1):
            miss *= Fraction(size + r - chosen, size + r)
        chance = odds * chosen / ((size + left) * (odds * (1 - miss) + miss))
        struck.add(place)
        if below(chance.denominator) < chance.numerator:
            start = {place}
            break
    return {"bits": _bits(_filled(start, struck, chosen, size + most, below), size + most)}


def _filled(start: set[int], not_these: set[int], chosen: int, size: int, below: _Below) -> set[int]:
    """Add uniform places to a set, none of `not_these`, until it has `chosen`, by Floyd's algorithm."""
    others: int = size - len(not_these)
    drawn: set[int] = set()
    for last in range(others - (chosen - len(start)), others):
        place = below(last + 1)
        drawn.add(last if place in drawn else place)
    for out in sorted(not_these):  # number the places without those
        drawn = {place + (place >= out) for place in drawn}
    return start | drawn


def _at_most(places: list[int], most: int, below: _Below) -> list[int]:
    """Keep `most` of some places, a uniformly random part."""
    while len(places) > most:
        places.pop(below(len(places)))
    return places


def _several(protocol: _Table, places: list[int], below: _Below) -> _Table:
    inner = {name[6:]: value for name, value in protocol.items() if name.startswith("inner_")}
    drawn = below(max(protocol["most"], len(places)))
    place = places[drawn] if drawn < len(places) else protocol["size"] + drawn
    return _PROTOCOLS[protocol["inner"]]({"name": protocol["inner"], **inner}, place, below)


def _hashing(protocol: _Table, place: int, below: _Below) -> _Table:
    """A hash function of one's own, and a noisy hash of the answer under it."""
    digits = _digits(place, _base(protocol["hashes"]), protocol["size"])
    return _hashed(protocol, digits, len(digits), below)


def _prefixes(protocol: _Table, octets: bytes, below: _Below) -> _Table:
    """The same about a beginning of a text; chance decides how long a one."""
    digits = _digits(int.from_bytes(octets, "big"), protocol["hashes"], 256 ** len(octets))
    level = below(len(protocol["lengths"]))
    return {"level": level, **_hashed(protocol, digits, protocol["lengths"][level], below)}


def _hashed(protocol: _Table, digits: list[int], length: int, below: _Below) -> _Table:
    g = protocol["hashes"]
    seed = [below(g) if place < length else 0 for place in range(len(digits))]
    value = sum(a * x for a, x in zip(seed, digits, strict=True)) % g
    width, packed = (g - 1).bit_length(), 0
    for residue in seed:
        packed = packed << width | residue
    octets = (width * len(seed) + 7) // 8
    packed <<= 8 * octets - width * len(seed)
    told = _tell(value, g, Fraction(protocol["odds"]), below)
    return {"seed": packed.to_bytes(octets, "big").hex(), "value": told}


def _digits(number: int, base: int, size: int) -> list[int]:
    """Write a number below `size` with as many digits as size - 1 has, the highest first."""
    digits: list[int] = []
    while size > 1 or not digits:
        digits.insert(0, number % base)
        number, size = number // base, (size - 1) // base + 1
    return digits


def _base(g: int) -> int:
    return min(32, next(d for d in range(2, g + 1) if g % d == 0))


def _hadamard(protocol: _Table, place: int, below: _Below) -> _Table:
    odds, rows = Fraction(protocol["odds"]), 1 << protocol["size"].bit_length()
    row = below(rows)
    bit = (row & place + 1).bit_count() % 2
    return {"row": row, "bit": _tell(bit, 2, odds, below)}


def _kept_response(protocol: _Table, place: int, below: _Below) -> _Table:
    return {"value": _tell(place, protocol["size"], Fraction(protocol["permanent"]), below)}


def _fresh_response(protocol: _Table, kept: _Table, below: _Below) -> _Table:
    return {"value": _tell(kept["value"], protocol["size"], Fraction(protocol["instant"]), below)}


def _fresh_bits(protocol: _Table, kept: _Table, below: _Below) -> _Table:
    octets = bytes.fromhex(kept["bits"])
    held = [place for place in range(protocol["size"]) if octets[place // 8] & 128 >> place % 8]
    return _coins({**protocol, "own": protocol["if_set"], "other": protocol["if_unset"]}, held, below)


def _geometry(protocol: _Table, place: int, below: _Below) -> _Table:
    """A point of a finite geometry that is orthogonal to the answer's point more often than others."""
    q, t, odds = protocol["prime"], protocol["dimension"], Fraction(protocol["odds"])
    points, orthogonal = (q**t - 1) // (q - 1), (q ** (t - 1) - 1) // (q - 1)
    after = next(r for r in range(t) if place < (q ** (r + 1) - 1) // (q - 1))
    rest = place - (q**after - 1) // (q - 1)
    own = [0] * (t - 1 - after) + [1] + [rest // q**power % q for power in reversed(range(after))]
    a, b = odds.numerator, odds.denominator
    product = 0 if below(orthogonal * a + (points - orthogonal) * b) < orthogonal * a else 1
    drawn = [0]
    while not any(drawn):
        drawn = [below(q) for _ in range(t)]
        first = t - 1 - after
        drawn[first] = (drawn[first] + product - sum(u * v for u, v in zip(drawn, own, strict=True))) % q
    first = next(j for j, u in enumerate(drawn) if u)
    scale, number = pow(drawn[first], -1, q), 0
    for coordinate in drawn[first + 1 :]:
        number = number * q + coordinate * scale % q
    return {"point": (q ** (t - 1 - first) - 1) // (q - 1) + number}


def _duchi(protocol: _Table, number: Fraction, below: _Below) -> _Table:
    return {"value": _end(protocol, number, below)}


def _piecewise(protocol: _Table, number: Fraction, below: _Below) -> _Table:
    return {"value": _near(protocol, number, below)}


def _hybrid(protocol: _Table, number: Fraction, below: _Below) -> _Table:
    chance = Fraction(protocol["chance"])
    if below(chance.denominator) < chance.numerator:
        return {"value": _near(protocol, number, below)}
    return {"value": protocol["outputs"] + _end(protocol, number, below)}


def _end(protocol: _Table, number: Fraction, below: _Below) -> int:
    return _tell(_rounded(protocol, number, 1, below), 2, Fraction(protocol["odds"]), below)


def _near(protocol: _Table, number: Fraction, below: _Below) -> int:
    odds, outputs, window = Fraction(protocol["odds"]), protocol["outputs"], protocol["window"]
    start = _rounded(protocol, number, outputs - window, below)
    a, b = odds.numerator, odds.denominator
    if below((a - b) * window + b * outputs) < (a - b) * window:
        return start + below(window)
    return below(outputs)


def _rounded(protocol: _Table, number: Fraction, cells: int, below: _Below) -> int:
    """Round to one of the two nearest points of a grid, at random and without bias."""
    low, high = Fraction(protocol["low"]), Fraction(protocol["high"])
    place = (number - low) * cells / (high - low)
    point = place.numerator // place.denominator
    return point + (below(place.denominator) < place.numerator % place.denominator)


_PROTOCOLS: dict[str, Callable[[_Table, Any, _Below], _Table]] = {
    "duchi": _duchi,
    "geometry": _geometry,
    "hadamard": _hadamard,
    "hashing": _hashing,
    "hybrid": _hybrid,
    "piecewise": _piecewise,
    "prefixes": _prefixes,
    "response": _response,
    "set": _set,
    "several": _several,
    "subset": _subset,
    "two-stage-response": _kept_response,
    "two-stage-unary": _unary,
    "unary": _unary,
    "unary_set": _unary_set,
}

_SETS = ("set", "several", "unary_set")
_NUMBERS = ("duchi", "hybrid", "piecewise")
_TEXTS = ("prefixes",)
_SINGLES = tuple(name for name in _PROTOCOLS if name not in (*_SETS, *_NUMBERS, *_TEXTS))
_FRESH = {
    "two-stage-response": _fresh_response,
    "two-stage-unary": _fresh_bits,
}  # over what is kept, each day


# -- what it costs ------------------------------------------------------------------------------


def _check(question: _Table, protocol: _Table) -> None:
    """Refuse a protocol about other answers than the question's, or with parameters that break its proof."""
    kind, size, name = question["kind"], question.get("size", 2), protocol["name"]
    answers = question.get("answers", [])
    kinds = {"several_of": _SETS, "number": _NUMBERS, "text": _TEXTS}
    fits = name in kinds.get(kind, _SINGLES) and kind in ("yes_no", "one_of", *kinds)
    if kind in ("yes_no", "one_of", "several_of"):
        fits = fits and protocol["size"] == (len(answers) or size) == len(set(answers) or range(size))
    for shared in ("most", "low", "high", "length"):
        fits = fits and (shared not in protocol or protocol[shared] == question[shared])
    inner = {key[6:]: value for key, value in protocol.items() if key.startswith("inner_")}
    if name == "several":
        inside = {"kind": "one_of", "size": protocol["size"] + protocol["most"]}
        _check(inside, {"name": protocol["inner"], **inner})
    if name in ("unary", "unary_set", "two-stage-unary"):
        fits = fits and 0 < Fraction(protocol["other"]) < Fraction(protocol["own"]) < 1
    if name == "two-stage-unary":
        fits = fits and 0 < Fraction(protocol["if_unset"]) < Fraction(protocol["if_set"]) < 1
    if name in ("subset", "set"):
        fits = fits and 0 < 2 * protocol["chosen"] <= protocol["size"] + 1
    if name == "geometry":  # without a prime, points are not equally likely
        q, t = protocol["prime"], protocol["dimension"]
        fits = fits and 1 < q < 10**9 and all(q % d for d in range(2, int(q**0.5) + 1))
        fits = fits and t > 1 and protocol["size"] <= (q**t - 1) // (q - 1)
    if name in ("piecewise", "hybrid"):
        fits = fits and 0 < protocol["window"] < protocol["outputs"]
    if name in ("hashing", "prefixes"):
        fits = fits and protocol["hashes"] > 1
    if not fits:
        raise Refused("the protocol of this survey does not suit its question")


def _max_ratio(protocol: _Table) -> Fraction:
    """Return the largest ratio of one report's probabilities under two answers: e^epsilon."""
    if protocol["name"] == "several":
        inner = {name[6:]: value for name, value in protocol.items() if name.startswith("inner_")}
        return _max_ratio({"name": protocol["inner"], **inner})
    if protocol["name"] not in _PROTOCOLS:
        raise KeyError("protocol")
    if protocol["name"] == "two-stage-response":
        r, s, others = Fraction(protocol["permanent"]), Fraction(protocol["instant"]), protocol["size"] - 1
        return Fraction((r * s + others) / (r + s + others - 1))
    if protocol["name"] not in ("unary", "unary_set", "two-stage-unary"):
        return Fraction(protocol["odds"])
    own, other = Fraction(protocol["own"]), Fraction(protocol["other"])
    if protocol["name"] == "two-stage-unary":
        one, none = Fraction(protocol["if_set"]), Fraction(protocol["if_unset"])
        own, other = own * one + (1 - own) * none, other * one + (1 - other) * none
    gained, lost = own / other, (1 - other) / (1 - own)
    most = protocol.get("most", 1)
    return Fraction(max(gained, lost) ** most * min(gained, lost) ** min(most, protocol["size"] - most))


def _log(ratio: Fraction) -> Decimal:
    context = Context(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN)
    return context.ln(context.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)))


def _bits(places: Collection[int], size: int) -> str:
    """The first answer is the highest bit of the first byte."""
    octets = bytearray((size + 7) // 8)
    for place in places:
        octets[place // 8] |= 128 >> place % 8
    return octets.hex()


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("usage: client.py survey.toml ANSWER [ANSWER ..]")
    try:
        with open(sys.argv[1], "rb") as file:
            asked = load(file.read())
        several = asked["survey"]["kind"] == "several_of"
        print(json.dumps(report(asked, sys.argv[2:] if several else sys.argv[2])))  # noqa: T201
    except (Refused, OSError) as refusal:
        sys.exit(f"refused: {refusal}")
