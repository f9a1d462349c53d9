"""Refusing leaks: an auditor of queries that answers exactly, and refuses what would give somebody away.

Such an auditor looks at the data to decide, so its refusal is an answer too (Kenthapadi, Mishra and Nissim
2005, who also proved the cure: to refuse only by what is known to the one who asks). This system refuses by
schema, plan and policy alone, and answers with noise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from sfumato.anonymity.columns import Flags, Floats, Integers
from sfumato.attacks.attack_result import AttackResult, MeasuredRate, bit_bound, right
from sfumato.attacks.victims import one_row_each
from sfumato.catalog import between, one_of
from sfumato.core import Proportion, uniform_below
from sfumato.core.arguments import count

__all__ = ["MaxAuditor", "refusing"]

_MOST = 1_000_000
_STORY = """\
A careful server keeps a log of what it has told, and refuses any question whose exact answer would,
together with the log, pin one person down. It never says anything it should not. But it looks at the data
to decide, so its silence speaks: ask for the largest salary of Anna, Bert and Carla, then for the largest
of Anna and Bert. A refusal means that Carla's is the largest, and everybody has just been told how large
that is. This system decides what it refuses before it reads any data, from the question and the policy
alone: every firm gets the same status, and every answer carries noise."""


@dataclass(slots=True)
class MaxAuditor:
    """Answers questions for the largest of some values exactly, unless that would determine one of them.

    All values are different. So whoever has a released value is in every set that gave it, and a
    value is determined when all others there are known to be smaller.

    >>> auditor = MaxAuditor([50, 70, 90])
    >>> auditor.largest([0, 1, 2])
    90
    >>> auditor.largest([0, 1]) is None   # refused: so the third has 90
    True
    >>> MaxAuditor([50, 90, 70]).largest([0, 1])
    90
    """

    values: Sequence[int]
    told: list[tuple[frozenset[int], int]] = field(default_factory=list)

    def largest(self, members: Iterable[int]) -> int | None:
        """Return the largest value among members, or None: refused."""
        asked = frozenset(members)
        answer = max(self.values[one] for one in asked)
        log = [*self.told, (asked, answer)]
        if self._determines(log):
            return None
        self.told = log
        return answer

    @staticmethod
    def _determines(log: list[tuple[frozenset[int], int]]) -> bool:
        most: dict[int, int] = {}
        holders: dict[int, frozenset[int]] = {}  # who may have a value that was told
        for members, answer in log:
            holders[answer] = holders.get(answer, members) & members
            for one in members:
                most[one] = min(answer, most.get(one, answer))
        return any(sum(most[one] >= answer for one in members) == 1 for answer, members in holders.items())


def refusing(*, epsilons: Sequence[float] = (0.1, 0.5, 1.0, 2.0, 4.0), threes: int = 2000) -> AttackResult:
    """Attack an auditor that refuses, and ask the same two questions of this system.

    The secret is whether the third of three colleagues earns most. It does in one case of three, so
    guessing "no" is right twice in three times. Changing one salary is removing one person and adding
    another, so through this system the bound is that of twice epsilon.

    >>> found = refusing(epsilons=(1,), threes=200)
    >>> found.naive.share > found.guess
    True
    """
    drawn = np.asarray(uniform_below(_MOST // 3, size=3 * count(threes, "threes")), dtype=np.int64)
    salaries = drawn.reshape(threes, 3) * 3 + np.arange(3)  # no two of three are equal
    third = salaries.argmax(axis=1) == 2
    refused = np.array([_refuses(row.tolist()) for row in salaries])
    curve = []
    for epsilon in epsilons:
        rate, bound = _guessed(_asked(salaries, epsilon), third), max(2 / 3, bit_bound(2 * epsilon))
        curve.append(MeasuredRate(epsilon=epsilon, rate=rate, bound=bound))
    learnt = f"{int((refused & third).sum()):,} of {3 * threes:,}, each by a refusal"
    finding = AttackResult(
        name="refusing",
        title="Refusing leaks: the auditor that looks before it refuses",
        story=_STORY,
        success="told right whether the third earns most",
        guess=2 / 3,
        naive=right(refused, third),
        curve=tuple(curve),
        facts=(
            ("salaries learnt to the unit", learnt),
            ("questions refused by this system", "none: nothing that it refuses depends on data"),
        ),
    )
    return finding.illustrated(
        f"{threes:,} times three colleagues. The auditor gives exact answers or none. This system gives the "
        "largest as a private quantile, twice; the attacker says yes if it drops enough without the third.",
        bound=False,
    )


def _refuses(salaries: list[int]) -> bool:
    auditor = MaxAuditor(salaries)
    auditor.largest((0, 1, 2))
    return auditor.largest((0, 1)) is None


def _asked(salaries: Integers, epsilon: float) -> Floats:
    """Ask this system the same two questions of all threes; return by how much the largest drops."""
    threes = len(salaries)
    table = pa.table(
        {
            "three": np.repeat(np.arange(threes), 3),
            "person": np.arange(3 * threes),
            "seat": np.tile(np.array(["first", "second", "third"]), threes),
            "salary": salaries.ravel(),
        }
    )
    columns = {"three": one_of(*range(threes)), "salary": between(0, _MOST)}
    db = one_row_each(table, name="staff", unit="person", epsilon=epsilon, columns=columns)
    text = "SELECT three, MAX(salary) AS m FROM staff{} GROUP BY three"
    both = [
        db.sql(text.format(where), epsilon=epsilon / 2).release().column("m")
        for where in ("", " WHERE seat <> 'third'")
    ]
    of_all, of_two = (np.array([_MOST / 2 if m is None else m for m in column], float) for column in both)
    return np.asarray(of_all - of_two)


def _guessed(drops: Floats, third: Flags) -> Proportion:
    """Say yes where the largest drops by more than some amount; the amount is chosen on half of the threes.

    An attacker may practise as much as they like: the law of the noise is public.
    """
    half = len(drops) // 2
    amounts = [-np.inf, np.inf, *np.linspace(-_MOST, _MOST, 81)]
    best = max(amounts, key=lambda amount: right(drops[:half] > amount, third[:half]).hits)
    return right(drops[half:] > best, third[half:])
