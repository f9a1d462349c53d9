"""Canaries: private values that nothing else looks like, a world that holds them, and a search for them.

Each canary is long enough not to occur by chance: hashes, keys and noise that are written down are some
millions of random characters, and the shortest form that is searched for has 64 bits.
"""

from __future__ import annotations

import base64
import contextlib
import datetime
import hashlib
import io
import logging
import struct
import traceback
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import sfumato

__all__ = ["CANARIES", "CITY", "PROJECT", "TEXT", "Watch", "forms", "make_world", "overheard"]

TEXT = "CANARY-7f3a-Quillfeather"  # in a column of texts: a person's name
CITY = "CANARY-9c41-Nether-Wallop"  # a group that only one person is in
NUMBER = 918273645546372.5  # far outside the declared bounds of incomes
INSIDE = 817263544536271.5  # within the declared bounds of weights
UNIT = 7712345678901234567  # whose the row is
DAY = datetime.date(1917, 3, 29)
MOMENT = datetime.datetime(1917, 3, 29, 4, 56, 7, 891234)
CODE = 6655443322110099887  # a whole number that is a group of one person

CANARIES: dict[str, Any] = {
    "text": TEXT,
    "city": CITY,
    "number": NUMBER,
    "inside": INSIDE,
    "unit": UNIT,
    "day": DAY,
    "moment": MOMENT,
    "code": CODE,
}

PEOPLE = 3_000

# The delta for keys is so small that a group of one person is shown by chance once in 10^11 budgets.
PROJECT = """\
ledger = "people.ledger"

[tables.people]
path = "people.parquet"
unit = "person"
max_groups = 1
max_rows = 1

[tables.people.columns]
age = { between = [0, 110] }
income = { between = [0, 200000] }
weight = { between = [0, 1000000000000000] }
region = { one_of = ["north", "south"] }

[tables.visits]
path = "visits.csv"
unit = "person"
max_groups = 2
max_rows = 3
columns.cost = { between = [0, 100] }

[tables.regions]
path = "regions.csv"
public = true

[budget]
epsilon = 60
delta = 1e-9
keys_delta = 1e-11
"""


def make_world(folder: Path, project: str = PROJECT) -> Path:
    """Write tables about invented people, one of whom has every canary, and a project with its ledger."""
    from sfumato.ledger import Ledger

    numbers = range(PEOPLE)

    def column(usual: list[Any], canary: Any) -> list[Any]:
        return [canary if number == 17 else usual[number % len(usual)] for number in numbers]

    people = {
        "person": [UNIT if number == 17 else number for number in numbers],
        "name": column(["someone", "anyone"], TEXT),
        "city": column(["Bergen", "Lund", "Turku"], CITY),
        "code": column([1, 2, 3], CODE),
        "age": [20 + number % 60 for number in numbers],
        "income": column([30_000.0, 40_000.0], NUMBER),
        "weight": column([70.0, 80.0], INSIDE),
        "born": column([datetime.date(1980, 5, 1), datetime.date(1990, 6, 2)], DAY),
        "seen": column([datetime.datetime(2024, 5, 1), datetime.datetime(2024, 6, 2)], MOMENT),
        "region": column(["north", "south"], "north"),
    }
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(people), folder / "people.parquet")
    whose = [UNIT, *(number // 2 for number in range(2 * PEOPLE))]
    notes = [TEXT, *("checked" for _ in range(2 * PEOPLE))]
    lines = [f"{person},50.5,{note}" for person, note in zip(whose, notes, strict=True)]
    (folder / "visits.csv").write_text("\n".join(["person,cost,note", *lines, ""]))
    (folder / "regions.csv").write_text("name,country\nnorth,A\nsouth,B\n")
    path = folder / "sfumato.toml"
    path.write_text(project)
    Ledger.open(folder / "people.ledger").close()
    return path


# -- what a canary looks like -----------------------------------------------------------------


def forms(value: Any) -> dict[str, bytes]:
    """Return every form in which a value is searched for, by name."""
    found: dict[str, bytes] = {}
    for number, text in enumerate(_texts(value)):
        plain = text.encode()
        coded = {
            "text": plain,
            "utf-16": text.encode("utf-16-le"),
            "utf-16, big end first": text.encode("utf-16-be"),
            "hex": plain.hex().encode(),
            **{name: hashlib.new(name, plain).hexdigest().encode() for name in ("md5", "sha1", "sha256")},
        }
        # In base64 the same bytes have three looks, by where they begin; the ends mix with what is beside.
        for shift in range(3):
            whole = (b"\0" * shift + plain)[3 if shift else 0 :]
            inner = base64.b64encode(whole[: len(whole) // 3 * 3])
            if len(inner) >= 12:
                coded[f"base64 at {shift}"] = inner
        found |= {f"{name} of spelling {number}": coded[name] for name in coded}
    return found | _bits(value)


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case float():
            yield from (repr(value), repr(int(value)), f"{value:,}", f"{2 * int(value) + 1}", f"{value:.6e}")
        case int():
            yield from (str(value), f"{value:,}")
        case datetime.datetime():
            yield from (str(value), value.isoformat(), repr(value)[9:], str(value.date()))
        case datetime.date():
            yield from (str(value), repr(value)[9:], value.strftime("%d.%m.%Y"))


def _bits(value: Any) -> dict[str, bytes]:
    """Return the eight bytes of a number, as engines and files have it."""
    match value:
        case datetime.datetime():
            micros = (value - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1)
            raw = struct.pack("<q", micros)
        case float():
            raw = struct.pack("<d", value)
        case int():
            raw = struct.pack("<q", value)
        case _:
            return {}
    return {"bits": raw, "bits, big end first": raw[::-1], "bits in hex": raw.hex().encode()}


_NEEDLES = [(name, form, needle) for name, value in CANARIES.items() for form, needle in forms(value).items()]


# -- what is searched -------------------------------------------------------------------------


class Watch:
    """What was said, shown and written, with where; `found` lists the canaries in it."""

    def __init__(self) -> None:
        self._said: list[tuple[str, bytes]] = []

    def see(self, place: str, *things: Any) -> None:
        """Keep things as they are, or as `str`, `repr` and `format` show them."""
        for thing in things:
            if isinstance(thing, bytes):
                self._said.append((place, thing))
                continue
            shown = {str(thing), repr(thing), f"{thing}"}
            self._said += [(place, each.encode("utf-8", "surrogateescape")) for each in sorted(shown)]

    def see_files(self, folder: Path, *, but: Iterable[str] = ()) -> int:
        """Keep the name and the contents of every file below a folder, but the private tables themselves."""
        files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name not in but]
        for path in files:
            self.see(f"the file {path.name}", str(path), path.read_bytes())
        return len(files)

    def see_error(self, place: str, error: BaseException | None, *, frames: bool = True) -> None:
        """Keep all that an error says and holds, and those that led to it, whether shown or suppressed.

        With `frames`, also what a crash reporter keeps: the variables of the functions of the package.
        """
        seen: list[BaseException] = []
        waiting = [error]
        while waiting:
            one = waiting.pop()
            if one is None or one in seen:
                continue
            seen.append(one)
            self.see(place, one, one.args, getattr(one, "__notes__", ()), vars(one))
            if isinstance(one, sfumato.errors.SfumatoError):
                self.see(place, one.to_dict())
            self.see(place, "".join(traceback.format_exception(one)))
            if frames:
                self._see_frames(place, one)
            waiting += [one.__cause__, one.__context__]

    def _see_frames(self, place: str, error: BaseException) -> None:
        home = str(Path(str(sfumato.__file__)).parent)
        for frame, _ in traceback.walk_tb(error.__traceback__):
            if frame.f_code.co_filename.startswith(home):
                for name, value in frame.f_locals.items():
                    self.see(f"{place}: `{name}` in {frame.f_code.co_name}", value)

    def found(self) -> list[tuple[str, str, str]]:
        """Return where a canary is, which one, and in what form."""
        hits = []
        for place, said in self._said:
            lower = said.lower()
            for name, form, needle in _NEEDLES:
                if needle in said or (
                    needle.lower() in lower and "base64" not in form and "bits" not in form
                ):
                    hits.append((place, name, form))
        return hits

    @property
    def places(self) -> set[str]:
        """Where something was said."""
        return {place for place, _ in self._said}

    def __contains__(self, text: str) -> bool:
        """Return whether something was said: a search that hears nothing finds nothing."""
        return any(text.encode() in said for _, said in self._said)


@contextlib.contextmanager
def overheard(watch: Watch) -> Iterator[None]:
    """Keep all log records of all libraries, however detailed, and all warnings."""
    root, stream = logging.getLogger(), io.StringIO()
    known = [root, *(logging.getLogger(name) for name in list(root.manager.loggerDict))]
    levels = {logger: (logger.level, logger.disabled, logger.propagate) for logger in known}
    handler = logging.StreamHandler(stream)
    handler.setLevel(logging.NOTSET)
    try:
        for logger in known:
            logger.setLevel(logging.DEBUG if logger is root else logging.NOTSET)
            logger.disabled, logger.propagate = False, True
        root.addHandler(handler)
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            yield
        watch.see("a warning", *(each.message for each in warned))
    finally:
        root.removeHandler(handler)
        for logger, (level, disabled, propagate) in levels.items():
            logger.setLevel(level)
            logger.disabled, logger.propagate = disabled, propagate
        watch.see("a log", stream.getvalue())
