"""Settings of every test: the same verdict on every run."""

from __future__ import annotations

from hypothesis import settings

# Derandomised: a property test tries the same examples each time, so a red run can be repeated.
settings.register_profile("repeatable", derandomize=True, database=None, deadline=None)
settings.load_profile("repeatable")
