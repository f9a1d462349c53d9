"""Subjects: what is examined, and what is claimed of it. Verdicts: what the examination found."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sfumato.audit.black_box import Pair, Run, best_bound
from sfumato.audit.evidence import Evidence
from sfumato.audit.white_box import exact_epsilon
from sfumato.core.arguments import budget_quantity, delta_quantity
from sfumato.errors import InvalidArgument

__all__ = ["Animal", "Claim", "ExactEpsilon", "ONE", "Subject", "Verdict", "examine"]

_ROUNDING = 1e-9  # relative: exact values are computed in floats, and claims rounded to them
_SAMPLED = 2  # pairs that are sampled where the law says which are worst


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a mechanism says of itself: (epsilon, delta).

    >>> print(Claim(epsilon=1, delta=1e-6))
    epsilon 1, delta 1e-06
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", float(budget_quantity(self.epsilon, "epsilon", zero=True)))
        object.__setattr__(self, "delta", float(delta_quantity(self.delta)))

    def __str__(self) -> str:
        return f"epsilon {self.epsilon:.4g}" + (f", delta {self.delta:.3g}" if self.delta else "")


ONE = Claim(epsilon=1)
"""What most of the mechanisms here claim."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactEpsilon:
    """Epsilon at the claim's delta for the worst neighbours, computed from laws: between `low` and `high`.

    Of finite tables both are the exact value. Of questions it is the price of what one unit moved, with the
    noise as planned; where a release has several steps that depend on one another, from above. `wrongs` is
    what else a plan promised and did not keep; any is enough to be caught.
    """

    low: float
    high: float
    pair: str
    wrongs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subject:
    """Something that can be run on either of two neighbours, and what is claimed of it.

    With a `law` epsilon is computed for every pair as well, and samples are spent on the worst ones.

    >>> from sfumato.audit import numbers, repeated
    >>> total = Subject(
    ...     name="total",
    ...     claim=Claim(epsilon=1),
    ...     run=repeated(lambda ages: sum(ages)),
    ...     neighbours=numbers(0, 100),
    ... )
    >>> len(total.neighbours) > 5
    True
    """

    name: str
    claim: Claim
    run: Run
    neighbours: Sequence[Pair]
    trials: int = 40_000
    about: str = ""
    law: Callable[[Any], Mapping[Any, Any]] | None = None  # probabilities of all outputs, where they are few

    def __post_init__(self) -> None:
        if not self.neighbours:
            raise InvalidArgument("a subject needs pairs of neighbours", place="neighbours")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Animal:
    """A mistake that was made in earnest: a broken mechanism under a false claim, and a sound twin."""

    subject: Subject
    twin: Subject
    mistake: str
    source: str

    @property
    def name(self) -> str:
        """What it is called."""
        return self.subject.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A claim, and what speaks against it. No verdict is a proof that a claim is true.

    >>> from sfumato.audit import Pair
    >>> exact_sum = Subject(
    ...     name="a sum without noise",
    ...     claim=Claim(epsilon=1),
    ...     run=lambda data, n: [sum(data)] * n,
    ...     neighbours=(Pair(name="one more", left=[1], right=[1, 2]),),
    ... )
    >>> verdict = examine(exact_sum, trials=2_000)
    >>> verdict.caught, verdict.passed
    (True, False)
    """

    name: str
    claim: Claim
    evidence: Evidence | None = None
    exact: ExactEpsilon | None = None
    about: str = ""
    notes: tuple[str, ...] = ()

    @property
    def caught(self) -> bool:
        """Whether the claim is false: proved by the law, or by samples but for the stated probability."""
        limit = self.claim.epsilon * (1 + _ROUNDING)
        sampled = self.evidence is not None and self.evidence.epsilon > limit
        known = self.exact is not None and (self.exact.low > limit or bool(self.exact.wrongs))
        return sampled or known

    @property
    def passed(self) -> bool:
        """Whether nothing speaks against the claim."""
        return not self.caught

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, JSON-ready."""
        exact = None if self.exact is None else asdict(self.exact)
        if exact is not None:
            exact |= {end: "unbounded" for end in ("low", "high") if math.isinf(exact[end])}
        return {
            "name": self.name,
            "about": self.about,
            "claim": asdict(self.claim),
            "caught": self.caught,
            "sampled": None if self.evidence is None else self.evidence.to_dict(),
            "exact": exact,
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        lines = [f"{self.name}: {'CAUGHT' if self.caught else 'passed'}", f"  claimed: {self.claim}"]
        if self.evidence is not None:
            lines.append(f"  sampled: {self.evidence}")
        if self.exact is not None:
            lines.append(f"  computed: epsilon {self.exact.high:.4g}, between {self.exact.pair}")
            lines += [f"  broken promise: {wrong}" for wrong in self.exact.wrongs]
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(lines)


def examine(subject: Subject, *, trials: int | None = None, miss: float = 1e-9) -> Verdict:
    """Look for a false claim; a true one is called false with probability at most `miss`.

    >>> from sfumato.audit import Pair
    >>> from sfumato.core import discrete_laplace
    >>> count = Subject(
    ...     name="count",
    ...     claim=Claim(epsilon=1),
    ...     run=lambda data, n: len(data) + discrete_laplace(1, size=n),
    ...     neighbours=(Pair(name="nobody and Ada", left=[], right=["Ada"]),),
    ... )
    >>> examine(count, trials=2_000).passed
    True
    """
    pairs, exact = list(subject.neighbours), None
    if subject.law is not None:
        found = {at: _computed(subject.law, pair, subject.claim.delta) for at, pair in enumerate(pairs)}
        worst = sorted(found, key=lambda at: -found[at])[:_SAMPLED]
        exact = ExactEpsilon(low=found[worst[0]], high=found[worst[0]], pair=pairs[worst[0]].name)
        pairs = [pairs[at] for at in worst]
    evidence = best_bound(
        subject.run,
        pairs,
        delta=subject.claim.delta,
        trials=subject.trials if trials is None else trials,
        miss=miss,
    )
    return Verdict(
        name=subject.name, claim=subject.claim, evidence=evidence, exact=exact, about=subject.about
    )


def _computed(law: Callable[[Any], Mapping[Any, Any]], pair: Pair, delta: float) -> float:
    left, right = law(pair.left), law(pair.right)
    outputs = list(dict.fromkeys([*left, *right]))
    p, q = ([side.get(output, 0) for output in outputs] for side in (left, right))
    return exact_epsilon(p, q, delta=delta)
