"""Many statistics at once: what they have in common is measured once, under one reservation.

`bases` and `residuals` are the mathematics of marginals; `session` asks for workloads as for one question.
"""

from __future__ import annotations

__all__: list[str] = []
