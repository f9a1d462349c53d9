"""Bits are fresh in every process and thread, and nobody can seed them."""

from __future__ import annotations

import inspect
import os
import threading

import numpy as np
import pytest
from scipy import stats

from sfumato.core import coins, entropy, noise, uniform
from sfumato.core.entropy import random_bits, random_words
from sfumato.core.noise import discrete_gaussian
from tests.processes import said


def draws() -> list[bytes]:
    """A few draws of each kind, each wide enough that two equal ones cannot be chance."""
    return [
        random_words(4).tobytes(),
        random_bits(256).to_bytes(32, "little"),
        discrete_gaussian(2.0**45, size=8).tobytes(),
        str(discrete_gaussian(2**200)).encode(),
    ]


FORKED_DRAWS = """
import os
from tests.core.test_entropy import draws

def tell():
    print(*(draw.hex() for draw in draws()), sep="\\n", flush=True)

tell()
for _ in range(3):
    child = os.fork()
    if child == 0:
        tell()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
tell()
"""


def test_parent_children_and_threads_never_share_a_draw():
    """P(two equal draws by chance) is below 2^-190 for each pair. Catches buffered or inherited state."""
    seen = [bytes.fromhex(line) for line in said(FORKED_DRAWS)]
    lock = threading.Lock()

    def work() -> None:
        for _ in range(20):
            mine = draws()
            with lock:
                seen.extend(mine)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 4 * (1 + 3 + 1 + 160)
    assert len(set(seen)) == len(seen)


def test_there_is_no_seed():
    """No function of the samplers takes a seed, a generator or a state; NumPy's own seed changes nothing."""
    for module in (coins, entropy, noise, uniform):
        for name in module.__all__:
            parameters = inspect.signature(getattr(module, name)).parameters
            assert not {"seed", "rng", "generator", "random_state", "state"} & set(parameters)
    np.random.seed(1)
    first = random_words(4)
    np.random.seed(1)
    assert (first != random_words(4)).any()


def test_bits_are_balanced():
    """Each of the 64 bit positions is fair over 10^6 words; false alarm below 1e-9; power: a bias of 0.5%."""
    words = random_words(1_000_000)
    limit = stats.norm.isf(1e-9 / 256)
    for position in range(64):
        ones = int(((words >> np.uint64(position)) & np.uint64(1)).sum())
        assert abs(ones - 500_000) / 500 <= limit


@pytest.mark.parametrize("bits", [0, 1, 7, 8, 9, 63, 64, 65, 300])
def test_random_bits_fill_their_range(bits):
    """The top and the lowest bit are both seen set and clear in 100 draws; false alarm 2^-98."""
    drawn = [random_bits(bits) for _ in range(100)]
    assert all(0 <= d < 1 << bits for d in drawn)
    if bits:
        assert {d >> (bits - 1) for d in drawn} == {0, 1}
        assert {d & 1 for d in drawn} == {0, 1}


def test_sizes():
    assert random_words(0).shape == (0,)
    entropy_words = random_words(100_003)
    assert len(np.unique(entropy_words)) == 100_003  # a repeat has probability below 3e-10


def test_a_long_draw_takes_several_keys(monkeypatch):
    keys = []
    original = os.urandom
    monkeypatch.setattr(entropy.os, "urandom", lambda n: keys.append(n) or original(n))
    monkeypatch.setattr(entropy, "_KEY_BYTES", 64)
    words = random_words(20)
    assert keys == [32, 32, 32]
    assert len(np.unique(words)) == 20
