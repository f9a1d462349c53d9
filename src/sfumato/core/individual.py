"""Individual differential privacy: a weaker guarantee, for teaching and the attack lab.

Noise is calibrated to how far the answer moves between *this* dataset and its neighbours, instead of
between any two neighbours (Soria-Comas, Domingo-Ferrer, Sanchez, Megias 2017). The amount of noise is
then a function of the data and tells about it. It is not an `Event`: every filter refuses it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from sfumato.core.adjacency import Adjacency
from sfumato.core.arguments import Number, budget_quantity, exact, non_negative
from sfumato.errors import InvalidArgument

__all__ = ["IndividualPrivacy", "local_sensitivity"]

_Row = TypeVar("_Row")


@dataclass(frozen=True, slots=True, kw_only=True)
class IndividualPrivacy:
    """epsilon-individual DP: only *this* dataset is hard to tell from its own neighbours.

    Weaker than differential privacy. Composes by sum, like pure DP, and only with releases
    from the very same dataset.

    >>> IndividualPrivacy(epsilon=1).scale(3)
    Fraction(3, 1)
    """

    epsilon: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", budget_quantity(self.epsilon, "epsilon"))

    def scale(self, sensitivity: Number) -> Fraction:
        """Return the Laplace scale for a local sensitivity; zero means: publish without noise.

        Theorem: Soria-Comas et al. 2017, Theorem 1.
        Assumes: the scale stays secret, or everyone may know the local sensitivity.
        """
        return non_negative(sensitivity, "sensitivity") / self.epsilon

    def compose(self, other: IndividualPrivacy) -> IndividualPrivacy:
        """Return the guarantee of two releases from the same dataset."""
        if not isinstance(other, IndividualPrivacy):
            raise InvalidArgument(
                "individual differential privacy composes only with its own kind",
                place="other",
                hints=("it is weaker than every other guarantee, and implies none of them",),
            )
        return IndividualPrivacy(epsilon=self.epsilon + other.epsilon)


def local_sensitivity(
    query: Callable[[Sequence[_Row]], Number],
    rows: Sequence[_Row],
    domain: Sequence[_Row],
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
) -> Fraction:
    """Return how far the answer moves between these rows and any of their neighbours, by trying all.

    `domain` lists every value a row may take. The result is as private as the rows.

    >>> local_sensitivity(max, (0, 1, 9), range(10))
    Fraction(8, 1)
    """
    if not isinstance(adjacency, Adjacency):
        raise InvalidArgument("adjacency must be an Adjacency", place="adjacency")
    if not rows or not domain:
        raise InvalidArgument("local sensitivity needs at least one row and a domain", place="rows")
    present = list(rows)
    without = [present[:i] + present[i + 1 :] for i in range(len(present))]
    if adjacency is Adjacency.REPLACE_ONE:
        neighbours = [[*rest, row] for rest in without for row in domain]
    else:
        neighbours = [rest for rest in without if rest] + [[*present, row] for row in domain]
    answer = exact(query(present), "query")
    return max(abs(exact(query(other), "query") - answer) for other in neighbours)
