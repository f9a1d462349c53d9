"""Who is a neighbour of whom, and how far one person can move an answer, in exact numbers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from sfumato.core.arguments import Number, count, exact, positive
from sfumato.errors import InvalidArgument

__all__ = ["Adjacency", "Sensitivity"]


class Adjacency(Enum):
    """Which datasets count as neighbours.

    >>> from sfumato.core import Sensitivity
    >>> Sensitivity.of_counts(rows=1, groups=1).under(Adjacency.REPLACE_ONE).l1  # one leaves, one comes
    Fraction(2, 1)
    """

    ADD_REMOVE = "add_remove"  # the default: one person more or less; the number of people is private
    REPLACE_ONE = "replace_one"  # one person's records become another's; the number of people is public


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """How far adding or removing one person can move a vector: `coordinates` entries, by `each` at most.

    `l1_bound` and `l2_squared_bound` are tighter norms than those of the box, where the
    caller has proved them. `one_sided` says that all people push every entry the same
    way, as in counts and in sums of values of one sign.

    >>> Sensitivity(each=3, coordinates=4).l1, Sensitivity(each=3, coordinates=4).l2_squared
    (Fraction(12, 1), Fraction(36, 1))
    """

    each: Fraction
    coordinates: int = 1
    l1_bound: Fraction | None = None
    l2_squared_bound: Fraction | None = None
    one_sided: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "each", positive(self.each, "each"))
        count(self.coordinates, "coordinates")
        if not isinstance(self.one_sided, bool):
            raise InvalidArgument("one_sided must be True or False", place="one_sided")
        l1_box, l2_squared_box = self.each * self.coordinates, self.each**2 * self.coordinates
        for name, box in (("l1_bound", l1_box), ("l2_squared_bound", l2_squared_box)):
            given = getattr(self, name)
            if given is None:
                continue
            bound = positive(given, name)
            if bound > box:
                raise InvalidArgument(
                    f"{name} = {given} is above the {box} that the box already gives",
                    place=name,
                    hints=("leave it out, or correct `each` and `coordinates`",),
                )
            object.__setattr__(self, name, bound)

    @property
    def l1(self) -> Fraction:
        """The most that the absolute changes can add up to: what Laplace noise is scaled to."""
        return self.each * self.coordinates if self.l1_bound is None else self.l1_bound

    @property
    def l2_squared(self) -> Fraction:
        """The most that the squared changes can add up to: what Gaussian noise is scaled to."""
        return self.each**2 * self.coordinates if self.l2_squared_bound is None else self.l2_squared_bound

    @staticmethod
    def of_counts(*, rows: int = 1, groups: int = 1) -> Sensitivity:
        """Return that of counts per group: one person has at most `rows` rows in each of `groups` groups."""
        return Sensitivity.of_sums(0, 1, rows=rows, groups=groups)

    @staticmethod
    def of_sums(lower: Number, upper: Number, *, rows: int = 1, groups: int = 1) -> Sensitivity:
        """Return that of sums per group of values clamped to [lower, upper]."""
        low, high = exact(lower, "lower"), exact(upper, "upper")
        if low > high:
            raise InvalidArgument(f"lower = {lower} is above upper = {upper}", place="lower")
        return Sensitivity(
            each=max(abs(low), abs(high)) * count(rows, "rows"),
            coordinates=count(groups, "groups"),
            one_sided=low >= 0 or high <= 0,
        )

    def under(self, adjacency: Adjacency) -> Sensitivity:
        """Return the sensitivity under another adjacency than add/remove.

        Theorem: replacing is removing and adding, so changes add: the l1 norm doubles, the
        squared l2 norm grows fourfold when both people touch the same entries in opposite
        directions. If all push one way the changes oppose each other, |a - b| <= max(a, b)
        per entry and |a - b|^2 <= |a|^2 + |b|^2: entries keep their bound, the squared l2
        norm doubles only. The box covers the same entries or as many others: twice as many.
        Where only an event is known, `event.group(2)` covers a replacement.
        """
        match adjacency:
            case Adjacency.ADD_REMOVE:
                return self
            case Adjacency.REPLACE_ONE:
                return Sensitivity(
                    each=self.each if self.one_sided else self.each * 2,
                    coordinates=self.coordinates * 2,
                    l1_bound=self.l1 * 2,
                    l2_squared_bound=self.l2_squared * (2 if self.one_sided else 4),
                )
            case _:
                raise InvalidArgument(
                    f"adjacency must be an Adjacency, got {type(adjacency).__name__}", place="adjacency"
                )

    def group(self, size: int) -> Sensitivity:
        """Return the sensitivity to `size` people joining or leaving together.

        Theorem: the triangle inequality: norms grow by `size`, so the squared l2 norm by its square.
        """
        people = count(size, "size")
        return Sensitivity(
            each=self.each * people,
            coordinates=self.coordinates * people,
            l1_bound=self.l1 * people,
            l2_squared_bound=self.l2_squared * people**2,
            one_sided=self.one_sided,
        )
