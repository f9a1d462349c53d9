"""Time local hashing and heavy hitters of two public libraries, in the rivals' environment; print JSON.

Both walk over all reports for every answer in Python, so they get ten thousand reports and 64 answers;
a million reports and 1,024 answers take that, times the number of pairs. Only the collector is timed.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

PEOPLE, ANSWERS, EPSILON = 10_000, 64, 1.0
STRINGS, BITS, STRING_EPSILON, WANTED = 20_000, 12, 2.0, 5


def main() -> None:
    """Measure everything and print one JSON object."""
    record: dict[str, Any] = {
        "versions": {name: version(name) for name in ("multi-freq-ldpy", "pure-ldp")},
        "people": PEOPLE,
        "answers": ANSWERS,
        "seconds": {"multi-freq-ldpy": multi_freq(), "pure-ldp": pure()},
        "hitters": hitters(),
    }
    json.dump(record, sys.stdout)


def timed(work: Callable[[], Any]) -> float:
    """Return the seconds that it takes once: seconds, not moments, so that noise is small beside them."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def multi_freq() -> float:
    """Time the aggregator of multi-freq-ldpy."""
    from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Aggregator_MI, LH_Client

    reports = [LH_Client(person % ANSWERS, ANSWERS, EPSILON) for person in range(PEOPLE)]
    return timed(lambda: LH_Aggregator_MI(reports, ANSWERS, EPSILON))


def pure() -> float:
    """Time the server of pure-ldp."""
    from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer

    client = LHClient(EPSILON, ANSWERS, use_olh=True)
    server = LHServer(EPSILON, ANSWERS, use_olh=True)
    reports = [client.privatise(person % ANSWERS + 1) for person in range(PEOPLE)]

    def collect() -> None:
        for report in reports:
            server.aggregate(report)
        server.estimate_all(range(1, ANSWERS + 1), suppress_warnings=True)

    return timed(collect)


def hitters() -> dict[str, float]:
    """Time the prefix-extending method of pure-ldp; strings are held by 1/2, 1/4, 1/8 .. of people."""
    from pure_ldp.heavy_hitters.prefix_extending import PEMClient, PEMServer

    strings = [format(number * 2657 % 2**BITS, f"0{BITS}b") for number in range(1, WANTED + 1)]
    people = [string for rank, string in enumerate(strings, 1) for _ in range(STRINGS // 2**rank)]
    rest = [format(number * 7919 % 2**BITS, f"0{BITS}b") for number in range(STRINGS - len(people))]
    options = {"epsilon": STRING_EPSILON, "start_length": 2, "max_string_length": BITS, "fragment_length": 2}
    client, server = PEMClient(**options), PEMServer(**options)
    reports = [client.privatise(string) for string in people + rest]
    found: list[str] = []

    def collect() -> None:
        for report in reports:
            server.aggregate(report)
        found.extend(server.find_heavy_hitters(k=WANTED)[0])

    return {"seconds": timed(collect), "found": len(set(found) & set(strings)), "wanted": WANTED}


if __name__ == "__main__":
    main()
