"""Settings of every test: the same verdict on every run."""

from __future__ import annotations

import gc
import os
import sys

import pytest
from hypothesis import settings

# Some tests fork a worker in which others have spoken to Spark Connect. Unless told otherwise, gRPC wakes its
# threads in the child, too, where they abort it. Nothing there speaks to Spark.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "false"

# Derandomised: a property test tries the same examples each time, so a red run can be repeated.
settings.register_profile("repeatable", derandomize=True, database=None, deadline=None)
settings.load_profile("repeatable")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with tests that may take more than the usual minutes: at the end one core would wait for them."""
    items.sort(key=lambda item: item.get_closest_marker("timeout") is None)


def pytest_collection_finish() -> None:
    """Leave the thousands of tests that were collected out of each search for garbage."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Let go of all tests: some are given connections."""
    session.items = []


def pytest_unconfigure() -> None:
    """Let the interpreter free what tests hold: DuckDB's module lists each object that is left at the end.

    Where PyTorch is loaded, modules are not freed; so those of tests are emptied.
    """
    gc.unfreeze()
    for name, module in list(sys.modules.items()):
        if name.startswith("tests.") and not name.endswith("conftest"):
            vars(module).clear()
    gc.collect()
