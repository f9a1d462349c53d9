"""Membership: was this person in the study? From nothing but the means of many attributes.

So genome studies stopped publishing frequencies (Homer et al. 2008).
Two attackers are played. The *realistic* one knows the person's attributes and how common each is in the
population, and takes the likelihood ratio. The *strongest* one also knows everybody else's attributes,
which leaves the person's own pull and the noise. Against Gaussian noise its test is the best there is
(Neyman and Pearson 1933), and its curve that of the mechanism itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.anonymity.columns import Flags, Floats, Integers
from sfumato.attacks.attack_result import AttackResult, MeasuredRate
from sfumato.attacks.victims import flags_of
from sfumato.backends.owned import read_owned
from sfumato.catalog import between, one_of
from sfumato.core import Proportion, TradeOff, bernoulli, uniform_below
from sfumato.core.arguments import count
from sfumato.core.conversions import largest_mu
from sfumato.errors import InvalidArgument
from sfumato.plots import Axis, Line, Picture, thinned
from sfumato.session import Budget, connect

__all__ = ["Scores", "membership"]

_DELTA = 1e-6
_EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
_SHOWN = 1.0  # the epsilon of the picture of error rates, or the one nearest to it
_RATES = tuple(step / 100 for step in range(101))  # of false alarms, where curves are drawn
_STORY = """\
A study of an illness publishes means: of a hundred patients, this share has attribute one, that share
attribute two, and so on, hundreds of them. Whoever was in the study has the illness. Somebody who knows
Anna's attributes compares them with the means: if she took part, every mean leans a little towards her.
Hundreds of little leanings add up, and the sum tells. Publishing fewer digits does not help, for what leans
is larger than the last digit. This system publishes the same means with noise that hides any one person's
pull on all of them together."""


def membership(
    data: Any = None,
    *,
    attributes: Sequence[str] | None = None,
    epsilons: Sequence[float] = _EPSILONS,
    studies: int = 2000,
    people: int = 10,
    traits: int = 100,
) -> AttackResult:
    """Guess who took part from means of many attributes.

    Studies are invented, or drawn from one's own table, whose columns `attributes` are of true and false:
    then each takes `people` of its rows, and the table is the population. For an owner's eyes, and no
    release.

    >>> found = membership(studies=200, people=6, traits=60, epsilons=(1,))
    >>> found.naive.share > 0.7
    True
    """
    if data is None:
        pool = _Population.invented(count(traits, "traits", least=2))
    else:
        pool = _Population.read(data, attributes)
    world = _Studies.drawn(pool, count(studies, "studies", least=2), count(people, "people", least=2))
    naive = world.realistic(world.members.sum(axis=1))
    noisy = {epsilon: world.released(epsilon) for epsilon in epsilons}
    realistic = {epsilon: world.realistic(sums) for epsilon, sums in noisy.items()}
    strongest = {epsilon: world.strongest(sums) for epsilon, sums in noisy.items()}
    failures = {epsilon: Budget(epsilon=epsilon, delta=_DELTA).delta_loss for epsilon in epsilons}
    bounds = {epsilon: TradeOff.of_mu(largest_mu(epsilon, delta)) for epsilon, delta in failures.items()}
    curve = []
    for epsilon, scores in strongest.items():
        bound = (1 + bounds[epsilon].advantage()) / 2
        curve.append(MeasuredRate(epsilon=epsilon, rate=scores.right(), bound=bound))
    found = "{:.1%} of participants found at 5% false alarms"
    weaker = [
        (f"who knows only the population, epsilon {epsilon:g}", found.format(scores.found(0.05)))
        for epsilon, scores in realistic.items()
    ]
    finding = AttackResult(
        name="membership",
        title=f"Membership: who was in the study, from {len(pool.common)} means",
        story=_STORY,
        success="taking part or not told right",
        naive=naive.right(),
        curve=tuple(curve),
        facts=(
            ("each study", f"{people} of the population, {len(pool.common)} attributes each"),
            ("from exact means", found.format(naive.found(0.05))),
            *weaker,
        ),
    )
    shown = min(epsilons, key=lambda epsilon: abs(math.log(epsilon / _SHOWN)))
    return finding.illustrated(
        "The strongest attacker knows everybody else's attributes. Half of the people asked about took part. "
        f"{studies:,} studies, one person asked about in each; delta is 1e-6.",
        bound=False,
        before=(_roc(shown, naive, realistic[shown], strongest[shown], bounds[shown]),),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scores:
    """A test's scores of people who took part, and of people who did not; each of a study of its own."""

    took_part: Floats
    did_not: Floats
    threshold: float = 0.0

    def right(self) -> Proportion:
        """Return how often the test is right, at its own threshold."""
        hits = (self.took_part > self.threshold).sum() + (self.did_not <= self.threshold).sum()
        return Proportion(hits=int(hits), trials=len(self.took_part) + len(self.did_not))

    def found(self, false_alarms: float) -> float:
        """Return the share of participants that the test finds at a rate of false alarms."""
        return float((self.took_part > np.quantile(self.did_not, 1 - false_alarms)).mean())

    def curve(self) -> tuple[tuple[float, float], ...]:
        """Return false and true positive rates at every threshold, from (0, 0) to (1, 1)."""
        cuts = np.unique(np.concatenate([self.took_part, self.did_not]))[::-1]
        ordered = [np.sort(scores) for scores in (self.did_not, self.took_part)]
        rates = [1 - np.searchsorted(scores, cuts) / len(scores) for scores in ordered]
        points = zip(*(rate.tolist() for rate in rates), strict=True)
        return ((0.0, 0.0), *points, (1.0, 1.0))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Population:
    """How common each attribute is, and people: rows of true and false, where they are not invented."""

    common: Floats
    rows: Flags | None = None

    @classmethod
    def invented(cls, traits: int) -> _Population:
        """Return attributes that between a tenth and nine tenths of the people have."""
        steps = 1000
        return cls(common=0.1 + 0.8 * np.asarray(uniform_below(steps, size=traits)) / steps)

    @classmethod
    def read(cls, data: Any, attributes: Sequence[str] | None) -> _Population:
        if attributes is None or len(attributes) < 2:
            raise InvalidArgument(
                "which columns of true and false are published as means?",
                place="attributes",
                hints=("name at least two: attributes=['smoker', 'married']",),
            )
        table = read_owned(data, list(attributes))
        rows = np.column_stack([flags_of(table, name, place="attributes") for name in attributes])
        if len(rows) < 10:
            raise InvalidArgument("the table has too few rows to draw studies from", place="data")
        shares = rows.mean(axis=0)
        return cls(common=np.clip(shares, 1 / len(rows), 1 - 1 / len(rows)), rows=rows)

    def draw(self, people: int) -> Integers:
        """Draw people: +1 where they have an attribute, -1 where not."""
        if self.rows is None:
            have = [np.asarray(bernoulli(float(share), size=people), dtype=bool) for share in self.common]
            return np.where(np.column_stack(have), 1, -1)
        return np.where(self.rows[uniform_below(len(self.rows), size=people)], 1, -1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Studies:
    """Studies of some people each: in one half a participant is asked about, in the other an outsider.

    One person for each study, so that all guesses are independent of each other.
    """

    common: Floats
    members: Integers  # study, person, attribute
    asked: Integers  # attributes of the person asked about in each study
    took_part: Flags

    @classmethod
    def drawn(cls, population: _Population, studies: int, people: int) -> _Studies:
        members = population.draw(studies * people).reshape(studies, people, -1)
        took_part = np.arange(studies) < studies // 2
        asked = np.where(took_part[:, None], members[:, 0], population.draw(studies))
        return cls(common=population.common, members=members, asked=asked, took_part=took_part)

    def released(self, epsilon: float) -> Floats:
        """Ask this system for the sums of all studies at once: everyone is in one of them."""
        studies, people, attributes = self.members.shape
        table = pa.table(
            {
                "person": np.repeat(np.arange(studies * people), attributes),
                "study": np.repeat(np.arange(studies), people * attributes),
                "attribute": np.tile(np.arange(attributes), studies * people),
                "has": self.members.ravel(),
            }
        )
        db = connect(
            table,
            name="study",
            unit="person",
            columns={
                "study": one_of(*range(studies)),
                "attribute": one_of(*range(attributes)),
                "has": between(-1, 1),
            },
            max_groups=attributes,
            max_rows=1,
            budget=Budget(epsilon=epsilon, delta=_DELTA),
        )
        text = "SELECT study, attribute, SUM(has) AS s FROM study GROUP BY study, attribute"
        release = db.sql(text, epsilon=epsilon).release()
        sums = np.zeros((studies, attributes))
        sums[release.column("study"), release.column("attribute")] = release.column("s")
        return sums

    def realistic(self, sums: Floats) -> Scores:
        """Score by the likelihood ratio of the person's attributes: study's shares to population's."""
        people = self.members.shape[1]
        share = np.clip((sums / people + 1) / 2, 0.5 / people, 1 - 0.5 / people)
        have, have_not = np.log(share / self.common), np.log((1 - share) / (1 - self.common))
        return self._scores(np.where(self.asked > 0, have, have_not).sum(axis=1))

    def strongest(self, sums: Floats) -> Scores:
        """Score by what is left of the sums without all who are known, along the person's attributes.

        Theorem: if the person took part, what is left is x + noise, else noise, with x her attributes; for
        Gaussian noise of one size the likelihood ratio grows with the product with x (Neyman and Pearson).
        """
        known = self.members.sum(axis=1) - self.asked * self.took_part[:, None]
        return self._scores(((sums - known) * self.asked).sum(axis=1), threshold=len(self.common) / 2)

    def _scores(self, scores: Floats, threshold: float = 0.0) -> Scores:
        return Scores(took_part=scores[self.took_part], did_not=scores[~self.took_part], threshold=threshold)


def _roc(epsilon: float, naive: Scores, realistic: Scores, strongest: Scores, bound: TradeOff) -> Picture:
    """Draw true against false positives: each test, beside what epsilon and delta allow any test."""
    stated = TradeOff.of_approximate(epsilon, _DELTA)
    return Picture(
        title=f"Who took part? Every test there is, at epsilon {epsilon:g}",
        caption="True positives against false alarms. From exact means the test is nearly perfect. Through "
        "this system even the strongest attacker stays below what its noise allows, and that is below what "
        "(epsilon, delta) states.",
        x=Axis(title="false alarms", percent=True, low=0, high=1),
        y=Axis(title="participants found", percent=True, low=0, high=1),
        marks=(
            Line(label="exact means", points=thinned(naive.curve())),
            Line(label="this system, who knows the population", points=thinned(realistic.curve())),
            Line(label="this system, who knows everybody else", points=thinned(strongest.curve())),
            Line.curve("no test of this noise can do better", bound.tpr, _RATES, dashed=True),
            Line.curve(
                f"no test of any ({epsilon:g}, 1e-6)-private release can", stated.tpr, _RATES, dashed=True
            ),
        ),
    )
