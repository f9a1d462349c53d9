"""Bases that tests share: prefixes, ranges and matrices of queries, measured by the best matrix for them."""

from __future__ import annotations

from typing import Any

from sfumato.workloads.bases import Base, asked_rows, best_matrix, numeric_base

__all__ = ["custom", "prefixes", "ranges"]


def prefixes(size: int, evenness: float = 0.5) -> Base:
    """Ask for the sums of the first 1, 2, .., n cells."""
    return numeric_base("prefixes", size, best_matrix("prefixes", size, evenness))


def ranges(size: int) -> Base:
    """Ask for the sum of every range of neighbouring cells."""
    return numeric_base("ranges", size, best_matrix("ranges", size))


def custom(asked: Any) -> Base:
    """Ask for the rows of a matrix."""
    rows = asked_rows(asked)
    return numeric_base(rows, len(rows[0]), best_matrix(rows, len(rows[0])))
