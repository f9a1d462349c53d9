"""What classes give away about a sensitive column: its values in each class, beside those of the table.

All are worked out for every class at once, from the values that occur; n is the size of a class,
q the share of a value in it, and p the share of that value in the table. NULL counts as a value;
among numbers it is the one after the largest.
"""

from __future__ import annotations

import numpy as np

from sfumato.anonymity.classes import Tally
from sfumato.anonymity.columns import Floats, Integers

__all__ = ["closeness", "disclosure", "distinct", "entropy", "likeness", "top_share"]


def distinct(tally: Tally, sizes: Integers) -> Integers:
    """Return how many values each class has: distinct l-diversity (Machanavajjhala et al. 2006)."""
    return np.bincount(tally.of_class, minlength=len(sizes))


def entropy(tally: Tally, sizes: Integers) -> Floats:
    """Return the entropy of each class in nats, -sum q ln q.

    A table is entropy l-diverse if that is at least ln l in every class (Machanavajjhala et al.
    2006), so its l is e to the least of them: a number between 1 and the distinct l.
    """
    share = tally.counts / sizes[tally.of_class]
    found = np.bincount(tally.of_class, weights=-share * np.log(share), minlength=len(sizes))
    return np.maximum(found, 0.0)


def top_share(tally: Tally, sizes: Integers) -> Floats:
    """Return the share of the commonest value in each class: the alpha of (alpha, k)-anonymity.

    It is how often whoever knows the class guesses right (Wong et al. 2006).
    """
    found = np.zeros(len(sizes))
    np.maximum.at(found, tally.of_class, tally.counts / sizes[tally.of_class])
    return found


def likeness(tally: Tally, sizes: Integers) -> Floats:
    """Return by what part of itself the share of a value grows at most in each class, max (q - p) / p.

    Theorem: that is the beta of basic beta-likeness (Cao and Karras 2012).
    """
    found = np.zeros(len(sizes))
    np.maximum.at(found, tally.of_class, _ratio(tally, sizes) - 1)
    return found


def disclosure(tally: Tally, sizes: Integers) -> Floats:
    """Return the largest |ln (q / p)| in each class over values that occur in it.

    Theorem: that is the delta of delta-disclosure (Brickell and Shmatikov 2008), which asks for all
    values of the table to occur; where some do not, no delta would do, and they are left aside here.
    """
    found = np.zeros(len(sizes))
    np.maximum.at(found, tally.of_class, np.abs(np.log(_ratio(tally, sizes))))
    return found


def closeness(tally: Tally, sizes: Integers, totals: Integers | None = None) -> Floats:
    """Return how far each class lies from the table: the earth mover's distance of t-closeness.

    `totals` are the counts of the values in the table; without them the classes are all of it.

    Theorem (Li, Li and Venkatasubramanian 2007): between categories, all equally far apart, it is
    sum |q - p| / 2. Between m values in order, neighbours 1/(m - 1) apart, it is the sum over values of the
    absolute difference of the cumulative shares, divided by m - 1.
    """
    totals = tally.totals if totals is None else totals
    return _ordered(tally, sizes, totals) if tally.ordered else _equal(tally, sizes, totals)


def _ratio(tally: Tally, sizes: Integers) -> Floats:
    totals = tally.totals
    shares = totals / max(totals.sum(), 1)
    return np.asarray(tally.counts / sizes[tally.of_class] / shares[tally.of_value])


def _equal(tally: Tally, sizes: Integers, totals: Integers) -> Floats:
    # Shares add up to 1 on both sides, so half the absolute differences are the positive ones.
    gain = tally.counts / sizes[tally.of_class] - (totals / max(totals.sum(), 1))[tally.of_value]
    return np.asarray(np.bincount(tally.of_class, weights=np.maximum(gain, 0), minlength=len(sizes)), float)


def _ordered(tally: Tally, sizes: Integers, totals: Integers) -> Floats:
    present = totals > 0
    many = int(present.sum())
    if many < 2:
        return np.zeros(len(sizes))
    value = (np.cumsum(present) - 1)[tally.of_value]
    table = np.cumsum(totals[present]) / totals.sum()  # cumulative shares
    below = np.concatenate([[0.0], np.cumsum(table)])  # and the sums of those of smaller values
    first = np.concatenate([[True], tally.of_class[1:] != tally.of_class[:-1]])
    last = np.concatenate([first[1:], [True]])
    total = np.cumsum(tally.counts)
    before = (total - tally.counts)[first][np.cumsum(first) - 1]
    inside = (total - before) / sizes[tally.of_class]
    # From one value of a class to its next the class stands still, at `inside`, while the table climbs.
    here, after = value, np.where(last, many, np.append(value[1:], many))
    cross = np.clip(np.searchsorted(table, inside, side="right"), here, after)
    under = inside * (cross - here) - (below[cross] - below[here])
    over = (below[after] - below[cross]) - inside * (after - cross)
    moved = np.abs(under) + np.abs(over) + np.where(first, below[here], 0.0)
    return np.bincount(tally.of_class, weights=moved, minlength=len(sizes)) / (many - 1)
