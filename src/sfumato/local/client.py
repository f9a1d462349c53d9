"""The client: one true answer in, one report out. The only half that ever sees an answer.

Standard library only, one file, meant to be read and ported: copy it onto a phone, or rewrite it there.
It needs the published survey file and nothing else, and talks to nobody.

    python client.py survey.toml "bus"

Every choice is made by `below(n)`, a uniform integer from 0 to n - 1 of the operating system's randomness,
compared with integers from the survey file; no float is involved, so every probability is exact. A port
is right if, given the same draws, it makes the same reports: `sfumato survey vectors` writes pairs to check.
"""

import argparse
import hashlib
import json
import math
import os
import re
import secrets
import sys
import tomllib
import unicodedata
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from typing import Any

__all__ = [
    "BOUNDS", "KINDS", "RATIO", "Refused", "load", "opened_memory", "read_answer", "report",
]  # fmt: skip

_Below = Callable[[int], int]
_Table = dict[str, Any]  # a section of the survey file, or the fields of a report
_FORMAT = 2  # of what a memory keeps about a survey; the first had no number, and no question in its terms


class Refused(ValueError):
    """The survey breaks its promise, or the answer is not one of its answers. Nothing was sent."""


def load(data: bytes) -> _Table:
    """Read a survey file (its bytes); refuse one that costs more than it promises, or is not as it must be.

    Whoever wrote the file need not be trusted: nothing is done with it that was not checked here.
    """
    try:
        found = tomllib.loads(data.decode())
        survey = _checked(found)
    except Refused:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise Refused(f"not a survey file: {type(error).__name__}") from None
    ratio, limits = _max_ratio(survey["protocol"]), survey["limits"]
    if ratio < 1 or _log(ratio) > _decimal(survey["epsilon"]):
        raise Refused("the protocol of this survey costs more than the survey promises")
    if "cap" in limits:
        kind, drawn = survey["survey"]["kind"], limits["cap"]
        if "every" not in limits and kind in ("yes_no", "one_of"):  # kept by value: one for each
            drawn = min(drawn, survey["protocol"]["size"])
        if _log(_kept_ratio(survey["protocol"])) * drawn > _decimal(survey["lifetime"]):
            raise Refused("all reports together cost more than the survey promises")
    survey["fingerprint"] = hashlib.sha256(data).hexdigest()[:32]
    return survey


def report(
    survey: _Table, answer: Any, memory: _Table | None = None, day: int = 0, below: _Below = secrets.randbelow
) -> _Table:
    """Return the report for a true answer: a dict, to be sent as one line of JSON.

    Where a survey is repeated, pass the same `memory` (a dict that never leaves the respondent) and the
    number of the day each time. What was drawn once is kept, by answer or by period, and sent again; once
    the survey's cap on drawn reports is reached, the last one is.

    Only comments of the file may change meanwhile. A report that was drawn for one question is never sent
    for another, which it could answer with certainty: a memory of this name and other terms is refused.
    """
    protocol, limits, name = survey["protocol"], survey["limits"], survey["survey"]["name"]
    place = read_answer(survey["survey"], answer)
    if memory and name in memory:
        _check_terms(memory[name], survey["terms"])
    draw, _ = _PROTOCOLS[protocol["name"]]
    head = {"survey": survey["fingerprint"], "id": secrets.token_hex(16)}
    if "cap" not in limits:
        return {**head, **draw(protocol, place, below)}
    if memory is None or type(day) is not int or not 0 <= day < 10**9:
        raise Refused("this survey is repeated: keep a memory, or every day costs anew; count days from 0")
    mine = memory.setdefault(name, {"format": _FORMAT, "terms": survey["terms"], "kept": {}, "last": None})
    key = str(day // limits["every"]) if "every" in limits else json.dumps(place, default=str)
    if key not in mine["kept"]:
        if len(mine["kept"]) < limits["cap"]:
            mine["kept"][key] = draw(protocol, place, below)
        else:
            key = mine["last"]
    mine["last"], fields = key, mine["kept"][key]
    if protocol["name"] in _FRESH:
        fields = _FRESH[protocol["name"]](protocol, fields, below)
    return {**head, "day": day, **fields}


def _check_terms(mine: _Table, terms: str) -> None:
    """Refuse what was kept for other terms, or by a client that did not note all of them."""
    if mine.get("format") != _FORMAT:
        raise Refused(
            "this memory is of another format, which does not say what question was asked: put it aside and "
            "name a new memory; what you tell from now on adds to what you told before"
        )
    if mine["terms"] != terms:
        raise Refused(
            "this survey has changed since you answered it: only comments may, and a new version is another "
            "survey; naming another memory costs anew, and both add up"
        )


@contextmanager
def opened_memory(path: str) -> Iterator[_Table]:
    """Yield what a file keeps, to report with; the file is written on leaving, before the report may be sent.

    It is written whole or not at all, where nobody else can read it: it holds true answers. One program at a
    time has it open. Two that draw for one answer at once would send two reports, and forget one of them.
    """
    path = os.path.realpath(path)
    draft = f"{path}.new"
    try:
        file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise Refused(
            "this memory is open for another answer: try again after it; if there is none, one was cut off "
            "before anything was sent: delete the file with the name of the memory and .new"
        ) from None
    try:
        with os.fdopen(file, "w", encoding="utf-8") as text:
            memory = _read_memory(path)
            yield memory
            json.dump(memory, text)
            text.flush()
            os.fsync(text.fileno())
        os.replace(draft, path)
    except BaseException:
        os.unlink(draft)
        raise
    if os.name == "posix":  # elsewhere a folder cannot be synced
        folder = os.open(os.path.dirname(path), os.O_RDONLY)
        try:
            os.fsync(folder)  # or a power cut could bring the older file back
        finally:
            os.close(folder)


def _read_memory(path: str) -> _Table:
    """Read the file that keeps what was drawn; without one, nothing was."""
    if not os.path.lexists(path):
        return {}
    try:
        with open(path, encoding="utf-8") as file:
            memory: _Table = json.load(file)
        if not all(_is_kept(mine) for mine in memory.values()):
            raise ValueError("another file")
    except (ValueError, AttributeError, TypeError, RecursionError):
        raise Refused("this is not a memory that was kept here; starting afresh costs anew") from None
    return memory


def _is_kept(mine: _Table) -> bool:
    """Return whether this is what is kept of one survey; of another format, its sections are enough."""
    if set(mine) - {"format"} != {"terms", "kept", "last"} or not isinstance(mine["kept"], dict):
        return False
    whole = all(isinstance(fields, dict) for fields in mine["kept"].values())
    return mine.get("format") != _FORMAT or (whole and mine["last"] in (mine["kept"] or (None,)))


# -- answers ------------------------------------------------------------------------------------


def read_answer(question: _Table, answer: Any) -> Any:
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
        text = answer.strip() if isinstance(answer, str) else ""
        known = isinstance(answer, (int, float, Fraction)) and math.isfinite(answer)
        if not known and not RATIO.fullmatch(text):
            raise Refused("the answer is not a number, such as 12, -3.5 or 1/3")
        return min(max(Fraction(text or answer), question["low"]), question["high"])
    if kind == "text" and isinstance(answer, str):
        octets, length = answer.encode(errors="surrogatepass"), question["length"]
        while len(octets) > length and octets[length] & 0xC0 == 0x80:  # not inside a character
            length -= 1
        return octets[:length].ljust(question["length"], b"\0")
    raise Refused("the answer is not of the kind that is asked for")


def _one(names: list[str] | None, size: int, answer: Any) -> int:
    if isinstance(answer, bool) and names == ["no", "yes"]:
        return int(answer)
    if names is None and type(answer) in (int, str):
        digits = str(answer) if type(answer) is str or 0 <= answer < size else ""
        if digits.isascii() and digits.isdecimal() and len(digits) < 20 and int(digits) < size:
            return int(digits)
    plain = [unicodedata.normalize("NFC", name) for name in names or ()]  # one way to write é, of two
    if not isinstance(answer, str) or unicodedata.normalize("NFC", answer) not in plain:
        raise Refused("that is not one of the answers")
    return plain.index(unicodedata.normalize("NFC", answer))


# -- protocols: each takes its parameters, what it is about, and `below` ------------------------------


def _response(protocol: _Table, place: int, below: _Below, odds: str = "odds") -> _Table:
    return {"value": _tell(place, protocol["size"], protocol[odds], below)}


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
    own, other = protocol["own"], protocol["other"]
    chances = (own if place in held else other for place in range(protocol["size"]))
    chosen = [place for place, one in enumerate(chances) if below(one.denominator) < one.numerator]
    return {"bits": _bits(chosen, protocol["size"])}


def _subset(protocol: _Table, place: int, below: _Below) -> _Table:
    size, chosen, odds = protocol["size"], protocol["chosen"], protocol["odds"]
    a, b = odds.numerator, odds.denominator
    inside = below(chosen * a + (size - chosen) * b) < chosen * a
    return {"bits": _bits(_filled({place} if inside else set(), {place}, chosen, size, below), size)}


def _set(protocol: _Table, places: list[int], below: _Below) -> _Table:
    size, most, chosen, odds = (protocol[name] for name in ("size", "most", "chosen", "odds"))
    own = _at_most(list(places), most, below)
    own += range(size + len(own), size + most)
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
    drawn = below(max(protocol["most"], len(places)))
    place = places[drawn] if drawn < len(places) else protocol["size"] + drawn
    draw, _ = _PROTOCOLS[protocol["inner"]["name"]]
    return draw(protocol["inner"], place, below)


def _hashing(protocol: _Table, place: int, below: _Below) -> _Table:
    """A hash function of one's own, and a noisy hash of the answer under it."""
    digits = _digits(place, _base(protocol["hashes"]), protocol["size"])
    return _hashed(protocol, digits, len(digits), below)


def _prefixes(protocol: _Table, octets: bytes, below: _Below) -> _Table:
    """The same about a beginning of a text; chance decides how long a one."""
    digits = _digits(int.from_bytes(octets, "big"), protocol["hashes"], 256 ** len(octets))
    level = below(len(protocol["lengths"]))
    word = _word(protocol, digits, level)
    return {"level": level, **_hashed(protocol, word + [0] * (len(digits) - len(word)), len(word), below)}


def _word(protocol: _Table, digits: list[int], level: int) -> list[int]:
    """What a report of a level is about: a beginning, or its last digits and checks of those before."""
    g, length, size = protocol["hashes"], protocol["lengths"][level], protocol["words"][level]
    if size == length:
        return digits[:length]
    shorter = max(other for other in protocol["lengths"] if other < length)
    checks = size - (length - shorter)
    drawn = hashlib.shake_256(f"{g} {length}".encode()).digest(2 * checks * shorter)
    numbers = [int.from_bytes(drawn[i : i + 2], "big") for i in range(0, len(drawn), 2)]
    rows = [numbers[row * shorter : (row + 1) * shorter] for row in range(checks)]
    made = [sum(c * x for c, x in zip(row, digits, strict=False)) % g for row in rows]
    return made + digits[shorter:length]


def _hashed(protocol: _Table, digits: list[int], length: int, below: _Below) -> _Table:
    g = protocol["hashes"]
    seed = [below(g) if place < length else 0 for place in range(len(digits))]
    value = sum(a * x for a, x in zip(seed, digits, strict=True)) % g
    width, packed = (g - 1).bit_length(), 0
    for residue in seed:
        packed = packed << width | residue
    octets = (width * len(seed) + 7) // 8
    packed <<= 8 * octets - width * len(seed)
    told = _tell(value, g, protocol["odds"], below)
    return {"seed": packed.to_bytes(octets, "big").hex(), "value": told}


def _digits(number: int, base: int, size: int) -> list[int]:
    """Write a number below `size` with as many digits as size - 1 has, the highest first."""
    digits: list[int] = []
    while size > 1 or not digits:
        digits.insert(0, number % base)
        number, size = number // base, (size - 1) // base + 1
    return digits


def _base(g: int) -> int:
    """The smallest prime factor, or 32 if that is less: digits below it have inverses modulo g."""
    return next((d for d in range(2, 32) if g % d == 0), 32)


def _hadamard(protocol: _Table, place: int, below: _Below) -> _Table:
    odds, rows = protocol["odds"], 1 << protocol["size"].bit_length()
    row = below(rows)
    bit = (row & place + 1).bit_count() % 2
    return {"row": row, "bit": _tell(bit, 2, odds, below)}


def _kept_response(protocol: _Table, place: int, below: _Below) -> _Table:
    return _response(protocol, place, below, "permanent")


def _fresh_response(protocol: _Table, kept: _Table, below: _Below) -> _Table:
    return _response(protocol, kept["value"], below, "instant")


def _fresh_bits(protocol: _Table, kept: _Table, below: _Below) -> _Table:
    octets = bytes.fromhex(kept["bits"])
    held = [place for place in range(protocol["size"]) if octets[place // 8] & 128 >> place % 8]
    return _coins({**protocol, "own": protocol["if_set"], "other": protocol["if_unset"]}, held, below)


def _geometry(protocol: _Table, place: int, below: _Below) -> _Table:
    """A point of a finite geometry that is orthogonal to the answer's point more often than others."""
    q, t, odds = protocol["prime"], protocol["dimension"], protocol["odds"]
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
    return {"value": _tell(_rounded(protocol, number, 1, below), 2, protocol["odds"], below)}


def _piecewise(protocol: _Table, number: Fraction, below: _Below) -> _Table:
    odds, outputs, window = protocol["odds"], protocol["outputs"], protocol["window"]
    start = _rounded(protocol, number, outputs - window, below)
    a, b = odds.numerator, odds.denominator
    if below((a - b) * window + b * outputs) < (a - b) * window:
        return {"value": start + below(window)}
    return {"value": below(outputs)}


def _hybrid(protocol: _Table, number: Fraction, below: _Below) -> _Table:
    chance = protocol["chance"]
    if below(chance.denominator) < chance.numerator:
        return _piecewise(protocol, number, below)
    return {"value": protocol["outputs"] + _duchi(protocol, number, below)["value"]}


def _rounded(protocol: _Table, number: Fraction, cells: int, below: _Below) -> int:
    """Round to one of the two nearest points of a grid, at random and without bias."""
    low, high = protocol["low"], protocol["high"]
    place = Fraction((number - low) * cells / (high - low))
    point = place.numerator // place.denominator
    return point + (below(place.denominator) < place.numerator % place.denominator)


_PROTOCOLS: dict[str, tuple[Callable[[_Table, Any, _Below], _Table], tuple[str, ...]]] = {
    "duchi": (_duchi, ("low", "high", "odds")),
    "geometry": (_geometry, ("size", "prime", "dimension", "odds")),
    "hadamard": (_hadamard, ("size", "odds")),
    "hashing": (_hashing, ("size", "hashes", "odds")),
    "hybrid": (_hybrid, ("low", "high", "odds", "outputs", "window", "chance")),
    "piecewise": (_piecewise, ("low", "high", "odds", "outputs", "window")),
    "prefixes": (_prefixes, ("length", "hashes", "odds", "lengths", "words")),
    "response": (_response, ("size", "odds")),
    "set": (_set, ("size", "most", "odds", "chosen")),
    "several": (_several, ("size", "most")),  # and those of the protocol that it goes around
    "subset": (_subset, ("size", "odds", "chosen")),
    "two-stage-response": (_kept_response, ("size", "permanent", "instant")),
    "two-stage-unary": (_unary, ("size", "own", "other", "if_set", "if_unset")),
    "unary": (_unary, ("size", "own", "other")),
    "unary_set": (_unary_set, ("size", "most", "own", "other")),
}

_FRESH = {  # over what is kept, each day
    "two-stage-response": _fresh_response,
    "two-stage-unary": _fresh_bits,
}

# -- reading a survey file ----------------------------------------------------------------------

RATIO = re.compile(r"-?[0-9]{1,60}(\.[0-9]{1,60}|/[0-9]{0,59}[1-9][0-9]{0,59})?")
BOUNDS = {  # the least and the largest that a phone will work with
    "chosen": (1, 10**7), "dimension": (2, 64), "hashes": (2, 2**31), "length": (1, 64), "most": (1, 10**4),
    "outputs": (2, 2**31), "prime": (2, 10**5), "size": (1, 2**62), "window": (1, 2**31),
}  # fmt: skip
_BY_BIT = ("set", "subset", "two-stage-unary", "unary", "unary_set")  # whose reports have a bit per answer
_INSIDE = ("geometry", "hadamard", "hashing", "response", "subset", "unary")  # what "several" may go around
_SINGLES = (*_INSIDE, "two-stage-response", "two-stage-unary")
KINDS = {  # what describes the answers of a question, and the protocols for it
    "yes_no": ((), _SINGLES),
    "one_of": (("answers", "size"), _SINGLES),
    "several_of": (("answers", "size", "most"), ("set", "several", "unary_set")),
    "number": (("low", "high"), ("duchi", "hybrid", "piecewise")),
    "text": (("length",), ("prefixes",)),
}


def _checked(found: _Table) -> _Table:
    """Return the sections; every value is known, of its kind and within its bounds."""
    _need(set(found) <= {"survey", "protocol", "limits"}, "the sections")
    head, limits = dict(found["survey"]), dict(found.get("limits", {}))
    domain, protocols = KINDS[head["kind"]]
    _need(set(head) <= {"name", "version", "question", "kind", "epsilon", *domain}, "[survey]")
    _need(isinstance(head["name"], str) and 0 < len(head["name"].strip()) <= len(head["name"]) <= 200, "name")
    _need(isinstance(head["question"], str) and bool(head["question"].strip()), "question")
    _need(type(head["version"]) is int and head["version"] > 0, "version")
    protocol = _read(dict(found["protocol"]), protocols)
    for shared in ("most", "low", "high", "length"):
        if shared in domain:
            head[shared] = _value(shared, head[shared])
            _need(head[shared] == protocol[shared], shared)
    if "answers" in head:
        names = head["answers"]
        _need(isinstance(names, list) and all(isinstance(name, str) and name for name in names), "answers")
        _need(0 < len(set(names)) == len(names) <= 10**6 and "size" not in head, "answers")
    if "size" in protocol:
        size = 2 if head["kind"] == "yes_no" else len(head.get("answers", ())) or _value("size", head["size"])
        _need(protocol["size"] == size, "size")
    _need(set(limits) <= {"reports", "honest", "cap", "every", "lifetime"}, "[limits]")
    lifetime = limits.pop("lifetime", None)
    _need(all(type(value) is int and 0 < value < 10**18 for value in limits.values()), "[limits]")
    kept = "every" in limits or protocol["name"].startswith("two-stage")
    _need("cap" in limits or not kept, "cap: what is repeated needs one")
    _need(("cap" in limits) == (lifetime is not None), "lifetime")
    _need(0 < _ratio(head["epsilon"]) <= 100, "epsilon: beyond 100 nothing is promised")
    terms = json.dumps(found, sort_keys=True)  # all but comments and the order of entries
    return {
        "survey": head,
        "protocol": protocol,
        "limits": limits,
        "epsilon": _ratio(head["epsilon"]),
        "lifetime": None if lifetime is None else _ratio(lifetime),
        "terms": hashlib.sha256(terms.encode()).hexdigest(),
    }


def _read(protocol: _Table, allowed: Collection[str]) -> _Table:
    """Return a protocol with its ratios as fractions, if its parameters are those of its proof."""
    name = protocol.pop("name")
    _need(name in allowed, "the protocol")
    if name == "several":
        inside = {key[6:]: protocol.pop(key) for key in list(protocol) if key.startswith("inner_")}
        inner = _read({**inside, "name": protocol.pop("inner")}, _INSIDE)
    _need(set(protocol) == set(_PROTOCOLS[name][1]), "the parameters")
    told = {"name": name, **{key: _value(key, value) for key, value in protocol.items()}}
    size, most = told.get("size", 1), told.get("most", 1)
    if name == "several":
        _need("name" not in inside and inner["size"] == size + most, "the inner protocol")
        told["inner"] = inner
    _need(name not in _BY_BIT or size <= 10**7, "size")
    _need(most <= size and 2 * told.get("chosen", 0) <= size + 1, "chosen, or most")
    _need(all(told[odds] > 1 for odds in ("odds", "permanent", "instant") if odds in told), "odds")
    for likely, rare in (("own", "other"), ("if_set", "if_unset")):
        _need(likely not in told or 0 < told[rare] < told[likely] < 1, likely)
    _need("low" not in told or told["low"] < told["high"], "low")
    _need("window" not in told or told["window"] < told["outputs"], "window")
    _need(0 <= told.get("chance", 0) <= 1, "chance")
    if name == "geometry":  # without a prime, points are not equally likely
        q, t = told["prime"], told["dimension"]
        _need(all(q % d for d in range(2, int(q**0.5) + 1)) and size <= (q**t - 1) // (q - 1), "prime")
    if name == "prefixes":
        digits = len(_digits(0, told["hashes"], 256 ** told["length"]))
        lengths, words = told["lengths"], told["words"]
        _need(all(1 <= length <= digits for length in lengths), "lengths")
        _need(len(words) == len(lengths), "words")
        for length, word in zip(lengths, words, strict=True):
            shorter = max((other for other in lengths if other < length), default=0)
            _need(word == length or 0 < length - shorter < word < length, "words")
    return told


def _value(name: str, value: Any) -> Any:
    if name in ("lengths", "words"):
        _need(isinstance(value, list) and 0 < len(value) <= 1000, name)
        _need(all(type(length) is int for length in value), name)
        return value
    if name in BOUNDS:
        _need(type(value) is int and BOUNDS[name][0] <= value <= BOUNDS[name][1], name)
        return value
    return _ratio(value)


def _ratio(value: Any) -> Fraction:
    """Read a ratio that is written out: '3/4', '0.75', 3."""
    text = str(value) if type(value) in (int, float, str) else ""
    _need(RATIO.fullmatch(text) is not None, "a ratio")
    return Fraction(text)


def _need(fine: bool, what: str) -> None:
    if not fine:
        raise Refused(f"the survey file is not as it must be: {what}")


# -- what it costs ------------------------------------------------------------------------------


def _max_ratio(protocol: _Table) -> Fraction:
    """Return the largest ratio of one report's probabilities under two answers: e^epsilon, or a bound."""
    match protocol["name"]:
        case "two-stage-response":
            r, s, others = protocol["permanent"], protocol["instant"], protocol["size"] - 1
            return Fraction((r * s + others) / (r + s + others - 1))
        case "two-stage-unary":
            one, none = protocol["if_set"], protocol["if_unset"]
            own, other = (first * one + (1 - first) * none for first in (protocol["own"], protocol["other"]))
            return _bits_ratio(own, other, 1, protocol["size"])
        case _:
            return _kept_ratio(protocol)


def _kept_ratio(protocol: _Table) -> Fraction:
    """Return the same of a report that is kept: what all days together say of one answer."""
    match protocol["name"]:
        case "several":
            return _kept_ratio(protocol["inner"])
        case "two-stage-response":
            return Fraction(protocol["permanent"])
        case "two-stage-unary" | "unary" | "unary_set":
            return _bits_ratio(protocol["own"], protocol["other"], protocol.get("most", 1), protocol["size"])
        case _:
            return Fraction(protocol["odds"])


def _bits_ratio(own: Fraction, other: Fraction, most: int, size: int) -> Fraction:
    gained, lost = own / other, (1 - other) / (1 - own)
    return Fraction(max(gained, lost) ** most * min(gained, lost) ** min(most, size - most))


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _log(ratio: Fraction) -> Decimal:
    context = Context(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN)
    return context.ln(context.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)))


def _bits(places: Collection[int], size: int) -> str:
    """The first answer is the highest bit of the first byte."""
    octets = bytearray((size + 7) // 8)
    for place in places:
        octets[place // 8] |= 128 >> place % 8
    return octets.hex()


def _main() -> None:
    """One answer from the command line, one report to standard output."""
    parser = argparse.ArgumentParser(description="Randomise one true answer; it goes no further.")
    parser.add_argument("survey", help="the published survey file")
    parser.add_argument("answer", nargs="+", help="the true answer, or several where several may be given")
    parser.add_argument("--memory", help="of a repeated survey: a file that keeps what was drawn")
    parser.add_argument("--day", type=int, default=0, help="of a repeated survey: the day's number")
    given = parser.parse_args()
    try:
        with open(given.survey, "rb") as file:
            asked = load(file.read())
        several = asked["survey"]["kind"] == "several_of"
        with nullcontext() if given.memory is None else opened_memory(given.memory) as memory:
            told = report(asked, given.answer if several else " ".join(given.answer), memory, given.day)
        print(json.dumps(told))  # noqa: T201
    except (Refused, OSError) as refusal:
        sys.exit(f"refused: {refusal}")


if __name__ == "__main__":
    _main()
