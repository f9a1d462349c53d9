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
import numpy.typing as npt

from sfumato.attacks.attack_result import AttackResult, MeasuredRate
from sfumato.attacks.victims import flags_of
from sfumato.backends.owned import read_owned
from sfumato.catalog import between, one_of
from sfumato.core import Proportion, TradeOff, bernoulli, uniform_below
from sfumato.core.arguments import count
from sfumato.core.conversions import largest_mu
from sfumato.errors import InvalidArgument
from sfumato.plots import Axis, Line, Picture
from sfumato.session import Budget, connect

__all__ = ["Scores", "membership"]

_Floats = npt.NDArray[np.float64]
_Signs = npt.NDArray[np.int64]

_DELTA = 1e-6
_EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
_SHOWN = 1.0  # the epsilon of the picture of error rates, or the one nearest to it
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
    """
    if data is None:
        pool = _Population.invented(count(traits, "traits", least=2))
    else:
        pool = _Population.read(data, attributes)
    world = _Studies.drawn(pool, count(studies, "studies", least=2), count(people, "people", least=2))
    naive = world.realistic(world.exact)
    told = {epsilon: _Told.of(world, epsilon) for epsilon in epsilons}
    found = "{:.1%} of participants found at 5% false alarms"
    finding = AttackResult(
        name="membership",
        title=f"Membership: who was in the study, from {pool.attributes} means",
        story=_STORY,
        success="taking part or not told right",
        naive=naive.right(),
        curve=tuple(one.measured for one in told.values()),
        facts=(
            ("each study", f"{people} of the population, {pool.attributes} attributes each"),
            ("from exact means", found.format(naive.found(0.05))),
            *(
                (
                    f"who knows only the population, epsilon {epsilon:g}",
                    found.format(one.realistic.found(0.05)),
                )
                for epsilon, one in told.items()
            ),
        ),
    )
    shown = min(epsilons, key=lambda epsilon: abs(math.log(epsilon / _SHOWN)))
    return finding.illustrated(
        "The strongest attacker knows everybody else's attributes. Half of the people asked about took part. "
        f"{studies:,} studies, one person asked about in each; delta is 1e-6.",
        bound=False,
        before=(_roc(naive, told[shown]),),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scores:
    """A test's scores of people who took part, and of people who did not; each of a study of its own."""

    took_part: _Floats
    did_not: _Floats
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

    common: _Floats
    rows: npt.NDArray[np.bool_] | None = None

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

    @property
    def attributes(self) -> int:
        """How many attributes there are."""
        return len(self.common)

    def draw(self, people: int) -> _Signs:
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

    population: _Population
    members: _Signs  # study, person, attribute
    outsiders: _Signs  # attributes of those who did not take part, for the second half of the studies

    @classmethod
    def drawn(cls, population: _Population, studies: int, people: int) -> _Studies:
        members = population.draw(studies * people).reshape(studies, people, population.attributes)
        return cls(population=population, members=members, outsiders=population.draw(studies - studies // 2))

    @property
    def exact(self) -> _Floats:
        """The sums over those who took part: means, times their number."""
        return np.asarray(self.members.sum(axis=1), dtype=np.float64)

    def released(self, epsilon: float) -> _Floats:
        """Ask this system for the sums of all studies at once: everyone is in one of them."""
        import pyarrow

        studies, people, attributes = self.members.shape
        table = pyarrow.table(
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

    def realistic(self, sums: _Floats) -> Scores:
        """Score by the likelihood ratio of the person's attributes: study's shares to population's."""
        people = self.members.shape[1]
        share = np.clip((sums / people + 1) / 2, 0.5 / people, 1 - 0.5 / people)
        common = self.population.common
        have, have_not = np.log(share / common), np.log((1 - share) / (1 - common))

        def score(who: _Signs, studies: slice) -> _Floats:
            return np.asarray(np.where(who > 0, have[studies], have_not[studies]).sum(axis=1))

        first, second = self._halves
        return Scores(took_part=score(self.members[first, 0], first), did_not=score(self.outsiders, second))

    def strongest(self, sums: _Floats) -> Scores:
        """Score by what is left of the sums without all who are known, along the person's attributes.

        Theorem: if the person took part, what is left is x + noise, else noise, with x her attributes; for
        Gaussian noise of one size the likelihood ratio grows with the product with x (Neyman and Pearson).
        """
        first, second = self._halves
        inside = sums[first] - self.members[first, 1:].sum(axis=1)
        outside = sums[second] - self.members[second].sum(axis=1)
        return Scores(
            took_part=(inside * self.members[first, 0]).sum(axis=1),
            did_not=(outside * self.outsiders).sum(axis=1),
            threshold=self.population.attributes / 2,
        )

    @property
    def _halves(self) -> tuple[slice, slice]:
        half = len(self.members) // 2
        return slice(0, half), slice(half, None)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Told:
    """What both attackers make of a release; `bound` is the trade-off curve of its Gaussian noise."""

    epsilon: float
    realistic: Scores
    strongest: Scores
    bound: TradeOff

    @classmethod
    def of(cls, world: _Studies, epsilon: float) -> _Told:
        """Ask this system, and attack."""
        sums = world.released(epsilon)
        mu = largest_mu(epsilon, Budget(epsilon=epsilon, delta=_DELTA).delta_loss)
        return cls(
            epsilon=epsilon,
            realistic=world.realistic(sums),
            strongest=world.strongest(sums),
            bound=TradeOff.of_mu(mu),
        )

    @property
    def measured(self) -> MeasuredRate:
        """How often the strongest attacker is right, and anyone at most."""
        bound = (1 + self.bound.advantage()) / 2
        return MeasuredRate(epsilon=self.epsilon, rate=self.strongest.right(), bound=bound)


def _roc(naive: Scores, told: _Told) -> Picture:
    """Draw true against false positives: each test, beside what epsilon and delta allow any test."""
    stated = TradeOff.of_approximate(told.epsilon, _DELTA)
    return Picture(
        title=f"Who took part? Every test there is, at epsilon {told.epsilon:g}",
        caption="True positives against false alarms. From exact means the test is nearly perfect. Through "
        "this system even the strongest attacker stays below what its noise allows, and that is below what "
        "(epsilon, delta) states.",
        x=Axis(title="false alarms", percent=True, low=0, high=1),
        y=Axis(title="participants found", percent=True, low=0, high=1),
        marks=(
            Line(label="exact means", points=_thinned(naive)),
            Line(label="this system, who knows the population", points=_thinned(told.realistic)),
            Line(label="this system, who knows everybody else", points=_thinned(told.strongest)),
            _allowed("no test of this noise can do better", told.bound),
            _allowed(f"no test of any ({told.epsilon:g}, 1e-6)-private release can", stated),
        ),
    )


def _allowed(label: str, bound: TradeOff) -> Line:
    points = tuple((step / 100, bound.tpr(step / 100)) for step in range(101))
    return Line(label=label, points=points, dashed=True)


def _thinned(scores: Scores) -> tuple[tuple[float, float], ...]:
    """Return a curve of a few hundred points: more are not seen."""
    curve = scores.curve()
    step = max(1, len(curve) // 300)
    return (*curve[::step], curve[-1])
