"""scipy, for what needs it: limits of proportions, surveys, audits, attacks. Questions do not."""

from __future__ import annotations

import importlib
from typing import Any

from sfumato.errors import Unsupported

__all__ = ["scientific"]


def scientific(part: str) -> Any:
    """Return a part of scipy, which is a fourth of all that would be installed without the extra `lab`.

    >>> round(float(scientific("special").betainc(2, 3, 0.5)), 4)
    0.6875
    """
    try:
        return importlib.import_module(f"scipy.{part}")
    except ImportError:
        hint = "install it: pip install 'sfumato[lab]'"
        raise Unsupported("this needs scipy", hints=(hint,)) from None
