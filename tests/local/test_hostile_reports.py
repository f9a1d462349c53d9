"""Files of reports that someone wrote to break the collector: read in a process of their own.

A crash of the reader's C++ code would end the tests' process without a word, so another one reads the
files and says after each what it counted. Every line is counted or dropped, and no error is untyped.
"""

from __future__ import annotations

import io
import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from pyarrow import ipc

from sfumato.local import client
from sfumato.local.ballots import SubsetSelection
from sfumato.local.questions import OneAnswer
from sfumato.local.response import KaryResponse
from sfumato.local.survey import Survey

QUESTION = OneAnswer(words="How do you get to work?", answers=("walk", "bike", "bus", "car"))
SURVEYS = {
    "integers": Survey.plan("s", QUESTION, epsilon=1, protocol=KaryResponse.from_epsilon(1, size=4)),
    "bits": Survey.plan("s", QUESTION, epsilon=1, protocol=SubsetSelection.from_epsilon(1, size=4)),
}

READER = """
import json, sys
from pathlib import Path
from sfumato.errors import SfumatoError
from sfumato.local.collector import Collector
from sfumato.local.survey import Survey

survey = Survey.read(sys.argv[1])
for path in sorted(Path(sys.argv[2]).iterdir()):
    print(path.name, end=" ", flush=True)
    collector = Collector(survey)
    try:
        collector.add(path)
    except SfumatoError as error:
        print(json.dumps({"error": error.code}), flush=True)
    else:
        dropped = sum(collector.dropped.values())
        print(json.dumps({"counted": collector.counted, "dropped": dropped}), flush=True)
"""


def read_apart(survey: Survey, files: dict[str, bytes], folder: Path) -> dict[str, dict[str, Any]]:
    """Return what a process of its own makes of some files; fail with the one that ended it."""
    reports, plan = folder / "reports", folder / "survey.toml"
    reports.mkdir()
    plan.write_text(survey.text)
    for name, content in files.items():
        (reports / name).write_bytes(content)
    run = subprocess.run(
        [sys.executable, "-c", READER, str(plan), str(reports)], capture_output=True, timeout=300, check=False
    )
    said = run.stdout.decode().splitlines()
    assert run.returncode == 0, (
        f"ended by {said[-1] if said else 'the first file'}: {run.stderr.decode()[-500:]}"
    )
    found = {line.split(" ", 1)[0]: json.loads(line.split(" ", 1)[1]) for line in said}
    assert set(found) == set(files)
    return found


def report(survey: Survey, number: int = 0) -> dict[str, Any]:
    """Return a report as a phone writes it, of a known number, which seeds its draws too.

    So every run reads the same bytes, and none meets by chance what no run before it has met.
    """
    drawn = client.report(client.load(survey.text.encode()), "bus", below=random.Random(number).randrange)
    return {**drawn, "id": f"{number:032x}"}


def hostile_lines(survey: Survey) -> dict[str, bytes]:
    """Return lines that are no report; none of them holds a newline."""
    good = json.dumps(report(survey)).encode()
    name = next(iter(survey.protocol.fields))

    def instead(value: bytes) -> bytes:
        marked = json.dumps({**report(survey), name: "@"}).encode()
        return marked.replace(b'"@"', value)

    def beside(value: bytes) -> bytes:
        return good[:-1] + b', "other": ' + value + b"}"

    return {
        **{
            f"bare-{text.strip()}": text.encode()
            for text in ("null", " null", "true", "1", '"a"', "[]", "NaN")
        },
        "bare-object": b"{}",
        "bare-list-of-reports": b"[" + good + b"]",
        "cut": good[: len(good) // 2],
        "cut-name": b'{"survey',
        "twice-on-a-line": good + good,
        "report-and-null": good + b" null",
        "null-and-report": b"null " + good,
        "only-brackets": b"[" * 1_000_000,
        "only-braces": b'{"a":' * 300_000,
        "deep-list": instead(b"[" * 100_000 + b"]" * 100_000),
        "deep-list-beside": beside(b"[" * 100_000 + b"]" * 100_000),
        "deep-object-beside": beside(b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
        "wide-list-beside": beside(b"[" + b"[]," * 1_000_000 + b"[]]"),
        "huge-exponent": instead(b"1e999999999"),
        "tiny-exponent": instead(b"1e-999999999"),
        "many-digits": instead(b"9" * 1_000_000),
        "beyond-64-bits": instead(b"9223372036854775808"),
        "fraction": instead(b"1.0"),
        "not-a-number": instead(b"NaN"),
        "minus": instead(b"-"),
        "null-value": instead(b"null"),
        "object-value": instead(b"{}"),
        "nul": instead(b'"\0"'),
        "nul-after": good + b"\0",
        "escaped-nul": instead(b'"\\u0000"'),
        "lone-surrogate": instead(b'"\\ud800"'),
        "latin-1": instead(b'"\xe9"'),
        "overlong": instead(b'"\xc0\x80"'),
        "long-text": instead(b'"' + b"0" * 3_000_000 + b'"'),
        "name-twice": good[:-1] + f', "{name}": 1}}'.encode(),
        "name-twice-escaped": good[:-1] + f', "\\u{ord(name[0]):04x}{name[1:]}": 1}}'.encode(),
        "many-names": b"{" + b",".join(b'"%d": 0' % number for number in range(100_000)) + b"}",
        "no-names": b"{1: 2}",
        "comment": good + b" // yes",
        "carriage-return-inside": good.replace(b", ", b",\r") + b" x",
        "utf-16": good.decode().encode("utf-16").replace(b"\n", b""),
        "utf-32": good.decode().encode("utf-32").replace(b"\n", b""),
        "control": b"\x01\x02\x1b[0m",
        "gzip": b"\x1f\x8b\x08\x00\x00\x00\x00\x00",
    }


@pytest.mark.parametrize("kind", SURVEYS)
def test_every_hostile_line_is_dropped_and_counted(kind: str, tmp_path: Path) -> None:
    """Each line alone, and each between reports, which are counted all the same."""
    survey = SURVEYS[kind]
    files: dict[str, bytes] = {}
    for name, line in hostile_lines(survey).items():
        label = "".join(letter if letter.isalnum() else "-" for letter in name)
        between = [json.dumps(report(survey, number)).encode() for number in (1, 2)]
        files[f"{label}.alone.jsonl"] = line + b"\n"
        files[f"{label}.uncut.jsonl"] = line
        files[f"{label}.between.jsonl"] = b"\n".join([between[0], line, between[1]]) + b"\n"
    for name, found in read_apart(survey, files, tmp_path).items():
        good = 2 if ".between." in name else 0
        assert "error" not in found, name
        assert (found["counted"], found["dropped"]) == (good, 1), name


def mutated(rng: random.Random, text: bytes) -> bytes:
    """Return text with a few bytes changed, cut out, doubled or moved."""
    changed = bytearray(text)
    for _ in range(rng.randrange(1, 6)):
        at, length = rng.randrange(len(changed)), rng.randrange(1, 40)
        match rng.randrange(5):
            case 0:
                changed[at] = rng.randrange(256)
            case 1:
                del changed[at : at + length]
            case 2:
                changed[at:at] = changed[at : at + length]
            case 3:
                changed[at:at] = rng.choice([b"null", b"{", b"}", b"[", b'"', b"\n", b"1e400", b"\0", b"\\u"])
            case _:
                other = rng.randrange(len(changed))
                changed[at : at + length], changed[other : other + length] = (
                    changed[other : other + length],
                    changed[at : at + length],
                )
        changed = changed or bytearray(b"{")
    return bytes(changed)


@pytest.mark.parametrize("kind", SURVEYS)
def test_mutated_lines(kind: str, tmp_path: Path) -> None:
    survey, rng = SURVEYS[kind], random.Random(12)
    text = "".join(json.dumps(report(survey, number)) + "\n" for number in range(4)).encode()
    files = {f"{number:04}.jsonl": mutated(rng, text) for number in range(800)}
    for name, found in read_apart(survey, files, tmp_path).items():
        lines = sum(bool(line.strip()) for line in files[name].split(b"\n"))
        assert "error" not in found, name
        assert found["counted"] + found["dropped"] == lines, name


# -- tables -----------------------------------------------------------------------------------


def arrow_bytes(table: pyarrow.Table) -> bytes:
    sink = io.BytesIO()
    with ipc.new_file(sink, table.schema) as file:
        file.write_table(table)
    return sink.getvalue()


def parquet_bytes(table: pyarrow.Table) -> bytes:
    sink = io.BytesIO()
    pyarrow.parquet.write_table(table, sink)
    return sink.getvalue()


def odd_columns() -> Iterator[tuple[str, pyarrow.Array]]:
    """Yield columns of three values of every type that could stand where an integer or a text is wanted."""
    plain = pyarrow.array([1, 0, None])
    text = pyarrow.array(["a", "00", None])
    yield "null", pyarrow.nulls(3)
    yield "boolean", pyarrow.array([True, False, None])
    yield "dictionary", text.dictionary_encode()
    yield "dictionary-of-integers", plain.dictionary_encode()
    yield (
        "run-ends",
        pyarrow.RunEndEncodedArray.from_arrays(pyarrow.array([1, 3], pyarrow.int32()), ["a", "b"]),
    )
    yield "text-view", text.cast(pyarrow.string_view())
    yield "binary-view", text.cast(pyarrow.binary()).cast(pyarrow.binary_view())
    yield "list", pyarrow.array([[1], [], None])
    yield "list-view", pyarrow.array([[1], [], None], pyarrow.list_view(pyarrow.int64()))
    yield "struct", pyarrow.array([{"a": 1}, {}, None])
    yield "map", pyarrow.array([[("a", 1)], [], None], pyarrow.map_(pyarrow.string(), pyarrow.int64()))
    yield "decimal", pyarrow.array([Decimal("1.5"), Decimal(0), None])
    yield "decimal-256", pyarrow.array([Decimal(10) ** 60, Decimal(0), None], pyarrow.decimal256(76))
    yield "half", pyarrow.array([1.0, float("nan"), None], pyarrow.float16())
    yield "double", pyarrow.array([float("inf"), -0.0, None])
    yield "unsigned", pyarrow.array([2**64 - 1, 0, None], pyarrow.uint64())
    yield "time", pyarrow.array([1, 0, None], pyarrow.time64("ns"))
    yield "timestamp", pyarrow.array([2**62, -(2**62), None], pyarrow.timestamp("s", "UTC"))
    yield "duration", pyarrow.array([1, 0, None], pyarrow.duration("ns"))
    yield "interval", pyarrow.array([(1, 2, 3), (0, 0, 0), None], pyarrow.month_day_nano_interval())
    yield "union", pyarrow.UnionArray.from_sparse(pyarrow.array([0, 1, 0], pyarrow.int8()), [plain, text])
    yield "fixed-of-none", pyarrow.array([b"", b"", None], pyarrow.binary(0))
    yield (
        "extension",
        pyarrow.ExtensionArray.from_storage(
            pyarrow.uuid(), pyarrow.array([b"0" * 16] * 3, pyarrow.binary(16))
        ),
    )


@pytest.mark.parametrize("kind", SURVEYS)
def test_tables_of_odd_types(kind: str, tmp_path: Path) -> None:
    """Every type in every column: rows are counted or dropped, or the file is refused by name."""
    survey = SURVEYS[kind]
    good = pyarrow.Table.from_pylist([report(survey, number) for number in range(3)])
    files: dict[str, bytes] = {}
    writers: dict[str, Callable[[pyarrow.Table], bytes]] = {"arrow": arrow_bytes, "parquet": parquet_bytes}
    for name in good.column_names:
        for label, column in odd_columns():
            table = good.set_column(good.column_names.index(name), name, column)
            for ending, write in writers.items():
                try:
                    files[f"{name}-{label}.{ending}"] = write(table)
                except (pyarrow.ArrowException, ValueError, OSError):
                    continue  # this type cannot be written so
    files["twice.arrow"] = arrow_bytes(good.append_column("id", good["id"]))
    files["none.arrow"] = arrow_bytes(good.slice(0, 0))
    files["nothing.arrow"] = arrow_bytes(pyarrow.table({}))
    found = read_apart(survey, files, tmp_path)
    assert len(found) > 60
    for name, outcome in found.items():
        rows = 0 if name.startswith(("none.", "nothing.")) else 3
        assert "error" in outcome or outcome["counted"] + outcome["dropped"] == rows, (name, outcome)


@pytest.mark.parametrize("ending", ["arrow", "parquet"])
def test_mutated_tables(ending: str, tmp_path: Path) -> None:
    survey, rng = SURVEYS["bits"], random.Random(7)
    good = pyarrow.Table.from_pylist([report(survey, number) for number in range(20)])
    whole = arrow_bytes(good) if ending == "arrow" else parquet_bytes(good)
    files = {f"{number:04}.{ending}": mutated(rng, whole) for number in range(400)}
    for name, found in read_apart(survey, files, tmp_path).items():
        assert "error" in found or found["counted"] <= 20 * 100, name
