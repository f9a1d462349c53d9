"""Odds: the exact ratio that stands for e^epsilon in every protocol here.

A person's privacy must not depend on how a float was rounded. Every probability of a protocol is a
ratio of integers made from one rational number, the odds, which lies just below e^epsilon: the
exact epsilon of a report is ln(odds), and never more than was promised.
"""

from __future__ import annotations

from fractions import Fraction

from sfumato.core.arguments import Number, budget_quantity, exact
from sfumato.core.exponential import exp_below
from sfumato.errors import InvalidArgument

__all__ = ["check_odds", "odds_of"]

_BITS = 32
_LARGEST = 20


def check_odds(
    odds: Fraction, what: str = "the truth must be likelier than a lie", place: str = "odds"
) -> None:
    """Refuse odds that are not above 1, or that are no rational number."""
    if exact(odds, place) <= 1:
        raise InvalidArgument(what, place=place)


def odds_of(epsilon: Number, parts: int = 1) -> Fraction:
    """Return a rational just below e^(epsilon / parts), short enough to publish and to draw with quickly.

    Rounds: down, to 32 binary digits after the point, and by less the more parts there are.

    >>> odds_of(1)
    Fraction(5837465777, 2147483648)
    """
    loss = budget_quantity(epsilon, "epsilon")
    if loss > _LARGEST:
        raise InvalidArgument(
            f"epsilon must be at most {_LARGEST} here",
            place="epsilon",
            hints=("with an epsilon that large nearly every report is the truth",),
        )
    scale = 2 ** (_BITS + 2 * (parts.bit_length() - 1))
    odds = Fraction(int(exp_below(loss / parts) * scale), scale)
    if odds <= 1:
        raise InvalidArgument(
            "epsilon is too small to leave any information in a report",
            place="epsilon",
            hints=(
                "an epsilon between 0.1 and 5 is usual" if parts == 1 else "let people hold fewer answers",
            ),
        )
    return odds
