"""Broken accounts and choices: many at the price of one, a rate without its half, noise used twice."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.audit.black_box import Pair
from sfumato.audit.neighbours import answers, numbers
from sfumato.audit.subject import Animal, Claim, Subject
from sfumato.core.noise import discrete_laplace
from sfumato.core.response import RandomizedResponseMechanism
from sfumato.core.selection import ExponentialMechanism

__all__ = ["ANIMALS", "fork_workers"]

_REPORTS = 20
_COIN = RandomizedResponseMechanism.coin_toss()
_BIT = (Pair(name="a person who says no, and one who says yes", left=0, right=1),)


def _reports(bit: Any, trials: int) -> Any:
    return _COIN.release(np.full((trials, _REPORTS), bit))


def _chosen(utilities: Any, trials: int, *, monotone: bool) -> Any:
    mechanism = ExponentialMechanism(1, monotone=monotone)
    return mechanism.release_each(np.tile(np.array(utilities, dtype=np.int64), (trials, 1)))


def fork_workers(people: int, young: int, trials: int, *, buffered: bool) -> npt.NDArray[np.int64]:
    """Fork two workers, which answer one question each: how many people, and how many of them are young.

    `buffered` noise was drawn before the fork, so both have the same. Must run in a process of one thread.
    """
    buffer = discrete_laplace(2, size=trials)
    answered = []
    for exact in (people, young):
        reading, writing = os.pipe()
        child = os.fork()
        if not child:  # the worker: nothing but its answers may leave it
            try:
                os.close(reading)
                noise = buffer if buffered else discrete_laplace(2, size=trials)
                with os.fdopen(writing, "wb") as pipe:
                    pipe.write((exact + noise).astype(np.int64).tobytes())
            finally:
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            answered.append(np.frombuffer(pipe.read(), dtype=np.int64))
        os.waitpid(child, 0)
    return np.stack(answered, axis=1)


_FORK = """
import sys
from sfumato.audit.zoo.accounts import fork_workers
people, young, trials, buffered = map(int, sys.argv[1:])
sys.stdout.buffer.write(fork_workers(people, young, trials, buffered=bool(buffered)).tobytes())
"""


def _forked(data: Any, trials: int, *, buffered: bool) -> Any:
    """Answer in two forked workers of a process of its own, which has no other threads."""
    people, young = len(data), sum(1 for value in data if value < 0.5)
    source = str(Path(__file__).parents[3])
    done = subprocess.run(
        [sys.executable, "-c", _FORK, str(people), str(young), str(trials), str(int(buffered))],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])},
    )
    return np.frombuffer(done.stdout, dtype=np.int64).reshape(trials, 2)


_FEW = numbers(0, 1)[:1]  # each takes a new process


def _subject(name: str, run: Any, neighbours: tuple[Pair, ...], epsilon: float = 1) -> Subject:
    return Subject(name=name, claim=Claim(epsilon=epsilon), run=run, neighbours=neighbours)


ANIMALS = (
    Animal(
        subject=_subject("many responses at the price of one", _reports, _BIT, _COIN.epsilon),
        twin=_subject("many responses at the price of all", _reports, _BIT, _REPORTS * _COIN.epsilon),
        mistake="twenty randomized responses of one person are priced as one: a count that is ignored",
        source="a peer's accountant, whose chain of type checks forgot the count of one event",
    ),
    Animal(
        subject=_subject("a choice without its half", partial(_chosen, monotone=True), answers(8)),
        twin=_subject("a choice with its half", partial(_chosen, monotone=False), answers(8)),
        mistake="the exponential mechanism takes epsilon, not epsilon / 2, though utilities go up and down",
        source="McSherry and Talwar 2007 state the factor of two; it may be left out for counts alone",
    ),
    Animal(
        subject=_subject("noise repeated after a fork", partial(_forked, buffered=True), _FEW),
        twin=_subject("noise drawn after a fork", partial(_forked, buffered=False), _FEW),
        mistake="workers inherit one buffer of noise: the difference of their answers has none",
        source="forked servers whose generators go on from one state; a peer's workers repeated noise",
    ),
)
