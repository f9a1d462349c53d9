"""Shuffling: reports that nobody can link to their senders protect them better than each does by itself.

A shuffler takes everybody's report, strips what could tell senders apart and passes the reports on in
random order. What a collector then learns about one person is measured by a *central* epsilon, far below
the *local* one of a single report, where enough honest people take part. Nothing here adds noise: it is
the same reports, and a guarantee that holds only while the shuffler does what it says.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from sfumato.core.arguments import Number, budget_quantity, count, delta_quantity, upper_float
from sfumato.core.exponential import exp_bounds
from sfumato.core.search import lower_float
from sfumato.errors import InvalidArgument
from sfumato.local.clones import Clones
from sfumato.local.protocol import Protocol
from sfumato.local.response import KaryResponse

__all__ = ["Amplification", "amplification", "central_epsilon", "closed_form", "local_epsilon", "shown_above"]

_LARGEST = 100
_LARGEST_LOCAL = 20.0  # what protocols offer
_RESOLUTION = 2.0**-32
_BITS = 64
_NO_DELTA = Fraction(1, 10**60)  # so small a delta is as good as zero, where shuffling cannot help


@dataclass(frozen=True, slots=True, kw_only=True)
class Amplification:
    """What shuffling makes of a local epsilon, and what that rests on.

    >>> print(amplification(4, minimum=100_000, delta=1e-6))
    One report gives away epsilon 4 to whoever sees it. Shuffled with at least 99,999 other honest
    reports it gives away epsilon 0.1698 at delta 1e-06, if the shuffler is trusted, nothing that comes
    with a report tells its sender, and every person sends one.
    """

    local: float
    """The epsilon of one report, which holds whatever the shuffler does."""
    minimum: int
    delta: float
    central: float
    """The epsilon of all shuffled reports, when one person's answer is replaced. Rounds: up."""
    central_low: float
    """No number below this follows from the same analysis: how much of `central` is our rounding."""

    def __str__(self) -> str:
        alone = f"One report gives away epsilon {shown_above(self.local)} to whoever sees it."
        if self.central == self.local:
            return f"{alone} Shuffling adds no protection here."
        return textwrap.fill(
            f"{alone} Shuffled with at least {self.minimum - 1:,} other honest reports it gives away epsilon "
            f"{shown_above(self.central)} at delta {self.delta:.4g}, if the shuffler is trusted, nothing "
            "that comes with a report tells its sender, and every person sends one.",
            width=100,
        )


def amplification(local: Number | Protocol, minimum: int, delta: Number) -> Amplification:
    """Return what the shuffled reports of at least `minimum` honest people give away about one of them.

    `local` is the epsilon of one report, or the protocol that makes it: of k-ary response more is known
    than its epsilon, and its reports hide each other better. `minimum` is a promise made before reports
    come in: how many people, the one protected among them, send reports made by the rules, *whatever
    else arrives*. Reports that an adversary sent, or knows, are no cover; counting those received
    would let a flood of forged ones make the number look better.

    Theorem: the pair of `clones` dominates; more honest reports only help, for they could be shuffled in
    later. Replace-one neighbours, both directions alike.
    Assumes: a trusted shuffler; nothing else (no address, no order, no time) tells who sent a report;
    one report a person.
    Rounds: up, and never above the local epsilon.

    >>> round(amplification(2, minimum=10_000, delta=1e-6).central, 3)
    0.155
    """
    people, allowed = count(minimum, "minimum"), delta_quantity(delta)
    odds, own, clones = _read(local)
    least, most = lower_float(allowed), upper_float(allowed)
    central = low = own
    if people > 1 and allowed > _NO_DELTA and odds > 1:
        pair = clones(odds, people - 1)
        guess = _crossing(pair.typical, least, 0.0, own, 2.0**-10)[1]
        central = _crossing(pair.at_most, least, 0.0, own, guess=guess)[1]
        low = _crossing(pair.at_least, most, 0.0, central, guess=central)[0]
    return Amplification(local=own, minimum=people, delta=float(allowed), central=central, central_low=low)


def central_epsilon(local: Number | Protocol, minimum: int, delta: Number) -> float:
    """Return the central epsilon of `amplification`.

    >>> round(central_epsilon(4, minimum=100_000, delta=1e-6), 4)
    0.1698
    """
    return amplification(local, minimum, delta).central


def local_epsilon(central: Number, minimum: int, delta: Number, *, response: bool = False) -> float:
    """Return the largest local epsilon, at most 20, whose shuffled reports keep to a central one.

    With `response` it is that of k-ary response. Rounds: down; what is returned has been checked, and is
    at least the central epsilon itself, for shuffling never harms.

    >>> round(local_epsilon(0.1698, minimum=100_000, delta=1e-6), 2)
    4.0
    """
    goal = budget_quantity(central, "central")
    people, allowed = count(minimum, "minimum"), delta_quantity(delta)
    own, least = lower_float(goal), lower_float(allowed)
    if own >= _LARGEST_LOCAL:
        return _LARGEST_LOCAL
    if people == 1 or allowed <= _NO_DELTA:
        return own
    clones = Clones.of_response if response else Clones.of_any

    def delta_at(less: float) -> float:
        return clones(_odds_above(Fraction(_LARGEST_LOCAL - less)), people - 1).at_most(own)

    less = _crossing(delta_at, least, 0.0, _LARGEST_LOCAL - own)[1]
    return own if less == _LARGEST_LOCAL - own else _LARGEST_LOCAL - less


def closed_form(local: Number, minimum: int, delta: Number) -> float:
    """Return the bound that is written on paper, for comparison: never use it where `central_epsilon` is.

    Theorem (Feldman, McMillan and Talwar 2021): for a local epsilon of at most ln(n/(16 ln(4/delta)))
    with s = 8 sqrt(e^local ln(4/delta)/n) + 8 e^local/n, the central one is at most
    ln(1 + s (1 - e^-local)/(1 + e^-local/(1 + s))). Elsewhere it says nothing, and the local one stays.

    >>> round(closed_form(4, minimum=100_000, delta=1e-6), 5)
    0.5378
    """
    own, people = float(budget_quantity(local, "local")), count(minimum, "minimum")
    allowed = delta_quantity(delta)
    if allowed == 0:
        return own
    logarithm = math.log(4 / allowed)
    if own > math.log(people / (16 * logarithm)):
        return own
    grown = math.exp(own)
    s = 8 * math.sqrt(grown * logarithm / people) + 8 * grown / people
    return min(own, math.log1p(s * (1 - 1 / grown) / (1 + 1 / (grown * (1 + s)))))


def shown_above(epsilon: float) -> str:
    """Write four digits of a bound. Rounds: up, for what people read is a promise too.

    >>> shown_above(3.29584)
    '3.296'
    """
    places = 3 - math.floor(math.log10(epsilon)) if epsilon > 0 else 0
    shown = Fraction(math.ceil(Fraction(epsilon) * Fraction(10) ** places), 1) / Fraction(10) ** places
    return f"{float(shown):.12g}"


def _read(local: Number | Protocol) -> tuple[Fraction, float, Callable[[Fraction, int], Clones]]:
    """Return odds that are not below those of a report, its epsilon, and how its reports hide each other."""
    if isinstance(local, KaryResponse):
        return local.max_ratio, local.epsilon, Clones.of_response
    if isinstance(local, Protocol):
        return local.max_ratio, local.epsilon, Clones.of_any
    epsilon = budget_quantity(local, "local")
    if epsilon > _LARGEST:
        raise InvalidArgument(
            f"local must be at most {_LARGEST} here",
            place="local",
            hints=("reports that say so much have nothing to hide among",),
        )
    return _odds_above(epsilon), float(epsilon), Clones.of_any


def _crossing(
    function: Callable[[float], float], level: float, low: float, high: float,
    resolution: float = _RESOLUTION, guess: float | None = None,
) -> tuple[float, float]:  # fmt: skip
    """Return two neighbouring numbers; a falling function is above the level at the first only.

    It is taken for granted that the function is at most `level` at `high`, and everything else is looked
    at: the second number is `high` or was seen to be so, the first is `low` or was seen not to be.
    The logarithm is nearly a parabola, and a few secants find what bisection needs thirty looks for.
    """

    def above(x: float) -> float:
        return math.log(max(function(x), 1e-320) / level)

    at_low = at_high = math.nan
    if guess is not None:
        step = max(guess, resolution) * 2.0**-10
        while low < guess - step and math.isnan(at_low):
            if (found := above(guess - step)) > 0:
                low, at_low = guess - step, found
            else:
                high, at_high, step = guess - step, found, 8 * step
        step = max(guess, resolution) * 2.0**-10
        while guess + step < high and math.isnan(at_high):
            if (found := above(guess + step)) <= 0:
                high, at_high = guess + step, found
            else:
                low, at_low, step = guess + step, found, 8 * step
    if math.isnan(at_low) and (at_low := above(low)) <= 0:
        return low, low
    if math.isnan(at_high):
        at_high = above(high)
    width, bisect = high - low, False
    while high - low > high * resolution:
        x = low + (high - low) / 2
        if not bisect and at_high < 0:
            # Past the secant's root by a little, so that both ends close in.
            reach = (high - low) * at_low / (at_low - at_high)
            x = low + min(max(reach, high * resolution / 4), high - low - high * resolution / 4)
        if not low < x < high:
            break
        if (found := above(x)) > 0:
            low, at_low, at_high = x, found, at_high / 2
        else:
            high, at_high, at_low = x, found, at_low / 2
        bisect, width = high - low > width / 2, high - low
    return low, high


def _odds_above(epsilon: Fraction) -> Fraction:
    """Return a short rational just above e^epsilon. Rounds: up."""
    bits = 2 * _BITS + math.ceil(epsilon * 3 / 2)
    above = Fraction(2**bits, exp_bounds(epsilon, bits)[0])
    return Fraction(math.ceil(above * 2**_BITS), 2**_BITS)
