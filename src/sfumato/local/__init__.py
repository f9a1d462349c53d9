"""No trusted collector: every person randomises their own answer before anyone sees it."""

from __future__ import annotations

__all__: list[str] = []
