"""How much code there is, what of it looks alike, and what one release, advance, fit and charge go through.

    python bench/shape.py
    python bench/shape.py --top 20      # and the functions that each calls most, with all that they call

Counts are the same on every machine. A call is a Python function of the package that begins. What looks alike
is read from the source: the classes that derive from a base, and what a base has that is defined elsewhere.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pyarrow as pa

import sfumato as sf
from sfumato.core.events import DiscreteLaplace
from sfumato.learn import LogisticRegression

SOURCE = Path(sf.__file__).parent
BASES = ("Priced", "Published", "Question", "Presentable")
ALIKE = ("to_json", "from_json", "_repr_html_", "fingerprint", "cost_record", "lines")
"""What the bases have for all kinds."""

_DAYS = [datetime.date(2026, 1, 1 + one % 5) for one in range(900)]


def sizes() -> tuple[int, int, int]:
    """Return the files and the lines of the package, and how many files are longer than 350 lines."""
    lines = [len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCE.rglob("*.py")]
    return len(lines), sum(lines), sum(one > 350 for one in lines)


@dataclass(frozen=True, slots=True)
class Source:
    """All files as syntax trees, by their paths, and the names of the bases of each class."""

    trees: dict[str, ast.Module]
    classes: dict[str, set[str]]

    @staticmethod
    def read() -> Source:
        """Read the package."""
        paths = sorted(SOURCE.rglob("*.py"))
        trees = {str(one.relative_to(SOURCE)): ast.parse(one.read_text(encoding="utf-8")) for one in paths}
        found: dict[str, set[str]] = {}
        for node in (node for tree in trees.values() for node in ast.walk(tree)):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, set()).update(map(_name, node.bases))
        return Source(trees, found)

    def derived(self, base: str) -> list[str]:
        """Return the classes that derive from a base, by others or directly."""
        own = [name for name, bases in self.classes.items() if base in bases]
        return sorted({*own, *(one for name in own for one in self.derived(name))})

    def defined(self, name: str) -> list[str]:
        """Return where a function of a name is defined, but for bases and protocols."""
        return [place for path, tree in self.trees.items() for place in self._places(tree, name, path)]

    def _places(self, node: ast.AST, name: str, where: str) -> Iterator[str]:
        for inner in ast.iter_child_nodes(node):
            if isinstance(inner, ast.ClassDef):
                if inner.name not in BASES and "Protocol" not in self.classes[inner.name]:
                    yield from self._places(inner, name, f"{where}: {inner.name}")
            elif isinstance(inner, ast.FunctionDef):
                if inner.name == name:
                    yield where
            else:
                yield from self._places(inner, name, where)


def _name(base: ast.expr) -> str:
    """Return the name of a base class, without its module and its parameters."""
    match base:
        case ast.Subscript(value=inner):
            return _name(inner)
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


@dataclass(slots=True)
class Calls:
    """The calls of the package that an action makes: of each function alone, and with all that it calls."""

    own: Counter[CodeType] = field(default_factory=Counter)
    within: Counter[CodeType] = field(default_factory=Counter)
    _open: list[tuple[CodeType, int]] = field(default_factory=list)

    @property
    def files(self) -> int:
        """The number of files that the functions are in."""
        return len({code.co_filename for code in self.own})

    def seen(self, frame: FrameType, event: str, _: Any) -> None:
        """Count a function that begins; note what was called within one that ends."""
        code = frame.f_code
        if not code.co_filename.startswith(str(SOURCE)):
            return
        if event == "call":
            self._open.append((code, self.own.total()))
            self.own[code] += 1
        elif event == "return" and self._open:
            code, before = self._open.pop()
            if all(code is not outer for outer, _ in self._open):
                self.within[code] += self.own.total() - before

    def most(self, number: int) -> Iterator[str]:
        """Yield a line for each of the functions with the most calls."""
        for code, calls in self.own.most_common(number):
            place = Path(code.co_filename).relative_to(SOURCE)
            yield f"{calls:12,} {self.within[code]:8,} with what they call: {place}: {code.co_qualname}"


def through(action: Callable[[], object]) -> Calls:
    """Return the calls of the package that an action makes in this thread."""
    calls = Calls()
    sys.setprofile(calls.seen)
    try:
        action()
    finally:
        sys.setprofile(None)
    return calls


def opened() -> sf.Database:
    """Return a small table of 900 people."""
    people = pa.table(
        {
            "person": range(900),
            "region": ["north", "south", "west"] * 300,
            "age": [20 + one % 60 for one in range(900)],
            "ill": [one % 60 > 30 for one in range(900)],
            "day": _DAYS,
        }
    )
    columns: dict[str, Any] = {
        "age": sf.between(0, 100),
        "ill": sf.one_of(True, False),
        "region": sf.one_of("north", "south", "west"),
    }
    budget = sf.Budget(epsilon=100, delta=1e-6)
    return sf.connect(
        people, name="people", unit="person", max_rows=1, max_groups=1, columns=columns, budget=budget
    )


def actions(db: sf.Database) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield what is counted, each after the same was done once: modules are loaded, caches are warm."""
    text = "SELECT region, COUNT(*) AS n, AVG(age) AS age FROM people GROUP BY region"
    yield "ask and release a grouped COUNT and AVG", lambda: db.sql(text, epsilon=1).release()
    question = db.sql(text, epsilon=1)
    yield "release it", question.release
    stream = db.stream(
        "SELECT COUNT(*) AS n FROM people", name="daily", by="day", every="day", start="2026-01-01",
        horizon=30, epsilon=1,
    )  # fmt: skip
    days = iter(range(2, 9))
    yield "advance a stream by a day", lambda: stream.advance(now=f"2026-01-0{next(days)}")
    table = db.table("people")
    yield (
        "fit a logistic regression",
        lambda: LogisticRegression(label="ill", features=["age"], epsilon=1, steps=10).fit(table),
    )
    yield "show a question", lambda: repr(db.sql(text, epsilon=1))

    charge = ("person", DiscreteLaplace(scale=Fraction(100), sensitivity=1), 0, "request", "data", "policy")
    yield "charge an event", lambda: db.ledger.reserve(*charge, analyst=sf.OWNER).commit(b"answer")


def main() -> None:
    """Print all counts."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--top", type=int, default=0, help="show this many functions of each action")
    top = parser.parse_args().top
    files, lines, long = sizes()
    print(f"{lines:,} lines in {files} files, {long} of more than 350 lines")
    source = Source.read()
    for base in BASES:
        found = source.derived(base)
        print(f"{len(found):6} classes derive from {base}: {', '.join(found)}")
    for name in ALIKE:
        places = source.defined(name)
        print(f"{len(places):6} definitions of {name} outside of the bases: {', '.join(places)}")
    for title, action in actions(opened()):
        action()
        calls = through(action)
        print(f"{calls.own.total():6,} calls in {calls.files:3} files: {title}")
        for line in calls.most(top):
            print(line)


if __name__ == "__main__":
    main()
