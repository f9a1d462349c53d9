"""Refusals: a question that cannot be answered, with its place in the text and what to do instead."""

from __future__ import annotations

from typing import NoReturn

from sfumato.plan.hints import refusal
from sfumato.plan.tree import Span

__all__ = ["refuse"]


def refuse(text: str, message: str, *hints: str, at: Span | None = None, code: str = "SF405") -> NoReturn:
    """Raise the refusal of a question, with a caret under `at`."""
    raise refusal(text, message, code, at, *hints)
