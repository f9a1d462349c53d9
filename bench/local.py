"""Time the local model: a million reports over 1,024 answers, ten million answers, heavy hitters.

A rival's time is extrapolated from ten thousand reports over 64 answers, in proportion to the number of
pairs of report and answer, of which it looks at every one.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
from report import Row, show

from sfumato.local.ballots import SubsetSelection, UnaryEncoding
from sfumato.local.collector import collect
from sfumato.local.geometry import ProjectiveGeometry
from sfumato.local.hadamard import HadamardResponse
from sfumato.local.hashing import LocalHashing
from sfumato.local.prefix_tree import PrefixTree
from sfumato.local.questions import OneAnswer
from sfumato.local.simulation import report_table
from sfumato.local.survey import Survey

__all__ = ["local_rows"]

HERE = Path(__file__).parent
PEOPLE, ANSWERS, MANY = 1_000_000, 1024, 10_000_000
DECODE_SECONDS, MANY_SECONDS, FIND_SECONDS = 2.0, 10.0, 60.0
CANDIDATES, LEVEL_PEOPLE, CANDIDATE_SECONDS = 10_000, 170_000, 2.0
OCTETS, STRING_EPSILON, BATCH = 6, 2, 100_000
TOP = {"from 12% to 1.2%": 0.12 / np.arange(1, 11), "1% each": np.full(10, 0.01)}


def local_rows(rivals: str | None, rival: dict[str, Any], *, times: int = 5) -> Iterator[Row]:
    """Return all comparisons; the measurements of the rivals are added to `rival`."""
    if rivals is not None:
        command = [rivals, str(HERE / "rival_local.py")]
        answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        rival |= json.loads(answer.stdout)
    yield from _decoding(rival, times)
    yield from _bits(times)
    yield from _candidates()
    yield from _many()
    yield from _hitters()
    yield from _beside(rival)


def _decoding(rival: dict[str, Any], times: int) -> Iterator[Row]:
    answers = np.arange(PEOPLE) % ANSWERS
    for epsilon in (0.5, 1, 3, 5):
        protocol = LocalHashing.from_epsilon(epsilon, size=ANSWERS)
        reports = protocol.randomise(answers)
        seconds = min(_timed(lambda p=protocol, r=reports: p.collect(r)) for _ in range(times))
        title = f"local hashing, {PEOPLE:,} reports, {ANSWERS:,} answers, epsilon {epsilon}"
        yield _within(f"{title}, share of {DECODE_SECONDS:g} s", seconds, DECODE_SECONDS)
        for name, few in rival.get("seconds", {}).items() if epsilon == 1 else ():
            theirs = few * PEOPLE * ANSWERS / (rival["people"] * rival["answers"])
            yield Row(
                name=f"{title}: {name}",
                ours=seconds,
                rival=theirs,
                unit="s",
                ratio=theirs / seconds,
                least=100,
            )


def _bits(times: int) -> Iterator[Row]:
    """Time reports of a bit per answer; and a whole collector, from a file to a table."""
    answers = np.arange(PEOPLE) % ANSWERS
    for protocol in (
        UnaryEncoding.from_epsilon(1, size=ANSWERS),
        SubsetSelection.from_epsilon(1, size=ANSWERS),
    ):
        reports = protocol.randomise(answers)
        seconds = min(_timed(lambda p=protocol, r=reports: p.collect(r)) for _ in range(times))
        title = f"{protocol.name}, {PEOPLE:,} reports, {ANSWERS:,} answers, epsilon 1"
        yield _within(f"{title}, share of {DECODE_SECONDS:g} s", seconds, DECODE_SECONDS)
    question = OneAnswer(words="Which?", size=ANSWERS)
    survey = Survey.plan("race", question, epsilon=1, protocol=LocalHashing.from_epsilon(1, size=ANSWERS))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "reports.parquet"
        pyarrow.parquet.write_table(report_table(survey, answers), file)
        seconds = _timed(lambda: collect(survey, file))
        yield Row(
            name=f"collector, {PEOPLE:,} hashed reports from Parquet to limits, duplicates and all",
            ours=seconds, rival=None, unit="s", ratio=seconds,
        )  # fmt: skip


def _candidates() -> Iterator[Row]:
    """Time strings that were chosen beforehand: 48 bits, in runs of 64 that differ at the end."""
    protocol = LocalHashing.from_epsilon(STRING_EPSILON, size=2 ** (8 * OCTETS), hashes=7)
    generator = np.random.default_rng()
    reports = protocol.randomise(generator.integers(0, protocol.size, LEVEL_PEOPLE))
    heads = generator.integers(0, protocol.size // 64, CANDIDATES // 64)
    wanted = (heads[:, None] * 64 + np.arange(64)).ravel()
    seconds = _timed(lambda: protocol.supports_of(reports, wanted))
    title = f"local hashing, {LEVEL_PEOPLE:,} reports, {len(wanted):,} candidates of 48 bits"
    yield _within(f"{title}, share of {CANDIDATE_SECONDS:g} s", seconds, CANDIDATE_SECONDS)


def _many() -> Iterator[Row]:
    """Time what keeps a number per answer, from reports to all counts."""
    answers = np.arange(PEOPLE) * 7919 % MANY
    for protocol in (
        HadamardResponse.from_epsilon(1, size=MANY),
        *(ProjectiveGeometry.from_epsilon(epsilon, size=MANY) for epsilon in (2, 3, 4)),
    ):
        reports = protocol.randomise(answers)
        seconds = _timed(lambda p=protocol, r=reports: p.supports(p.collect(r)))
        title = f"{protocol.name}, {MANY:,} answers, epsilon {protocol.epsilon:.0f}"
        yield _within(f"{title}, share of {MANY_SECONDS:g} s", seconds, MANY_SECONDS)


def _hitters() -> Iterator[Row]:
    """Find ten strings among a million people's; all others have strings of their own."""
    generator = np.random.default_rng()
    tree = PrefixTree.from_epsilon(STRING_EPSILON, octets=OCTETS)
    for kind, shares in TOP.items():
        strings = generator.integers(0, 256, (PEOPLE, OCTETS), dtype=np.uint8)
        top = generator.integers(0, 256, (len(shares), OCTETS), dtype=np.uint8)
        holders = np.repeat(np.arange(len(shares)), np.round(shares * PEOPLE).astype(np.int64))
        strings[: len(holders)] = top[holders]
        reports = tree.randomise(strings)
        found: list[bytes] = []
        seconds = _timed(lambda r=reports, f=found: f.extend(tree.find(lambda: _batches(r)).strings))
        hits = len({row.tobytes() for row in top} & set(found))
        title = f"heavy hitters, {PEOPLE:,} strings of {8 * OCTETS} bits, epsilon {STRING_EPSILON}, {kind}"
        yield _within(f"{title}, share of {FIND_SECONDS:g} s", seconds, FIND_SECONDS)
        yield Row(name=f"{title}: found of ten", ours=hits, rival=10, unit="", ratio=hits / 10, least=1)


def _beside(rival: dict[str, Any]) -> Iterator[Row]:
    """Find what pure-ldp is asked for: 20,000 people, shares of 1/2, 1/4 .. 1/32; 16 bits, it has 12."""
    if not rival:
        return
    tree, generator = PrefixTree.from_epsilon(STRING_EPSILON, octets=2), np.random.default_rng()
    strings = generator.integers(0, 256, (20_000, 2), dtype=np.uint8)
    top = generator.integers(0, 256, (5, 2), dtype=np.uint8)
    holders = np.repeat(np.arange(5), [len(strings) // 2**rank for rank in range(1, 6)])
    strings[: len(holders)] = top[holders]
    reports = tree.randomise(strings)
    found: list[bytes] = []
    seconds = _timed(lambda: found.extend(tree.find(lambda: [reports]).strings))
    hits, theirs = len({row.tobytes() for row in top} & set(found)), rival["hitters"]
    title = "heavy hitters, 20,000 people, epsilon 2"
    yield Row(
        name=f"{title}: pure-ldp", ours=seconds, rival=theirs["seconds"], unit="s",
        ratio=theirs["seconds"] / seconds, least=10,
    )  # fmt: skip
    yield Row(name=f"{title}: found of five", ours=hits, rival=theirs["found"], unit="", ratio=hits / 5)


def _batches(reports: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for start in range(0, PEOPLE, BATCH):
        yield {name: column[start : start + BATCH] for name, column in reports.items()}


def _timed(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _within(name: str, seconds: float, most: float) -> Row:
    return Row(name=name, ours=seconds, rival=most, unit="s", ratio=seconds / most, most=1)


if __name__ == "__main__":
    import sys

    measured: dict[str, Any] = {}
    rows = show(local_rows(sys.argv[1] if len(sys.argv) > 1 else None, measured), {})
    sys.exit(0 if all(row.passed for row in rows) else 1)
