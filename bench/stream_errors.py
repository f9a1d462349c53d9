"""Errors of a stream's running totals beside public implementations, in units of sigma of one release.

    python bench/stream_errors.py .venv-rivals/bin/python

Nothing is drawn: errors follow from the factorisations, the rivals' from their own. Where the environment of
the rivals has jax-privacy, its factorisations are measured as well; it takes half a gigabyte, so `make bench`
does not install it.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from report import Row, show

from sfumato.continual import Participation, buffers, square_root, total_deviations

__all__ = ["stream_error_rows"]

HERE = Path(__file__).parent
HORIZONS = (365, 1024)
# How much worse ours may be: not at all beside trees, by rounding beside the same matrix. Buffers are also
# charged for the time after their design horizon; a dense matrix is better by what theory says.
MOST = {
    ("square root", "Toeplitz"): 1.0001,
    ("square root", "buffered Toeplitz"): 1.0001,
    ("square root", "dense"): 1.06,
    ("buffers", "Toeplitz"): 1.02,
    ("buffers", "buffered Toeplitz"): 1.02,
    ("buffers", "dense"): 1.06,
}


def stream_error_rows(rivals: str) -> Iterator[Row]:
    """Compare the largest and the root mean squared error of running totals."""
    command = [rivals, str(HERE / "rival_streams.py"), *map(str, HORIZONS)]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    found = json.loads(answer.stdout)["errors"]
    for horizon in HORIZONS:
        fresh = np.sqrt(np.arange(1, horizon + 1))
        others = {name: known[str(horizon)] for name, known in found.items() if str(horizon) in known}
        others |= {"fresh noise": _both(fresh), "the bound for all": (_least(horizon),) * 2}
        for name, factorisation in (("square root", square_root(horizon)), ("buffers", buffers(horizon))):
            length = math.sqrt(factorisation.l2_squared(Participation()))
            ours = _both(length * total_deviations(factorisation, horizon))
            for rival, theirs in others.items():
                most = MOST.get((name, rival.rpartition(", ")[2]), 1.0)
                for what, one, other in zip(("largest", "RMS"), ours, theirs, strict=True):
                    yield Row(
                        name=f"{horizon} totals, {name}, {what} error (rival: {rival})",
                        ours=one,
                        rival=other,
                        unit="sigma",
                        ratio=one / other,
                        most=most if rival != "the bound for all" else math.inf,
                    )


def _both(errors: np.ndarray) -> tuple[float, float]:
    return float(errors.max()), float(np.sqrt((errors**2).mean()))


def _least(horizon: int) -> float:
    """Return what no factorisation is below: the mean singular value of the matrix that adds up."""
    odd = 2 * np.arange(1, horizon + 1) - 1
    return float((1 / (2 * np.sin(odd * math.pi / (4 * horizon + 2)))).mean())


if __name__ == "__main__":
    show(stream_error_rows(sys.argv[1]), {})
