"""`sfumato demo --basics`: simulated people, real noise, and what each answer costs."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from rich.console import Console
from rich.table import Table

from sfumato.core import (
    Composition,
    GaussianMechanism,
    Grid,
    LaplaceMechanism,
    PrivacyBudget,
    PrivacyFilter,
    RandomizedResponseMechanism,
    Sensitivity,
    bernoulli,
    uniform_below,
)

__all__ = ["run"]

_PEOPLE = 10_000
_DELTA = Fraction(1, 10**6)
_REGIONS = 4


def run(console: Console | None = None) -> None:
    """Print the demonstration; every number in it is drawn afresh, for there is no seed."""
    out = Console(highlight=False) if console is None else console
    out.print(f"{_PEOPLE:,} simulated people. Every run draws new noise: there is no seed.")
    _noised_count(out)
    _coin_toss_survey(out)
    _three_releases(out)


def _noised_count(out: Console) -> None:
    """Publish one count with its interval."""
    _title(out, "1. A noised count")
    mechanism = LaplaceMechanism.from_epsilon(Fraction(1, 5))
    smokers = int(bernoulli(Fraction(23, 100), size=_PEOPLE).sum())
    published = mechanism.release(smokers)
    low, high = mechanism.interval(published)
    cost = float(mechanism.event.epsilon())
    out.print(f"How many smoke?   [bold]{published:,}[/]   95% interval: {low:,} to {high:,}")
    out.print(f"[dim]The exact count was {smokers:,}. It is shown here because these people do not exist.[/]")
    out.print(
        f"Cost: epsilon = {cost:g}. Whether or not any one person is in the data, the odds of seeing this "
        f"very number change by a factor of at most e^{cost:g} = {math.exp(cost):.2f}."
    )


def _coin_toss_survey(out: Console) -> None:
    """Ask a sensitive question that nobody has to answer truthfully."""
    _title(out, "2. A survey by coin toss")
    survey = RandomizedResponseMechanism.coin_toss()
    truth = bernoulli(Fraction(3, 10), size=_PEOPLE)
    reports = survey.release(truth)
    estimate = survey.estimate(reports)
    share, error = float(estimate.values[1]), float(estimate.standard_errors[1])
    low, high = (float(limits[1]) for limits in survey.interval(reports))
    out.print(
        "Have you ever evaded tax? Toss a coin: heads, tell the truth; tails, let a second coin answer."
    )
    out.print(
        f"{int(reports.sum()):,} of {_PEOPLE:,} said yes, so about [bold]{share:.1%}[/] ± {error:.1%} have; "
        f"95% interval: {low:.1%} to {high:.1%}."
    )
    out.print(f"[dim]The exact share was {float(truth.mean()):.1%}.[/]")
    out.print(
        f"Cost to each person: epsilon = ln {survey.max_ratio} = {survey.epsilon:.4f}, and no one is trusted."
    )
    said_yes = share * survey.truth + (1 - share) * survey.lie
    innocent = (1 - share) * survey.lie / said_yes
    out.print(
        f"Deniability: {innocent:.0%} of those who said yes did so only because of a coin. "
        "A yes proves nothing about the person who said it."
    )


def _three_releases(out: Console) -> None:
    """Publish three statistics of the same people, and price them together."""
    _title(out, "3. Three releases about the same people")
    ages = Grid(lower=0, upper=110)
    years = int(ages.to_integers(18 + uniform_below(73, size=_PEOPLE)).sum())
    homes = np.bincount(uniform_below(_REGIONS, size=_PEOPLE), minlength=_REGIONS)
    ill = int(bernoulli(Fraction(8, 100), size=_PEOPLE).sum())

    count = LaplaceMechanism.from_epsilon(Fraction(1, 4))
    regions = GaussianMechanism(6, sensitivity=Sensitivity.of_counts())  # everyone lives in one region
    total = GaussianMechanism(4 * ages.sensitivity, sensitivity=ages.sensitivity)
    released = total.release(years)
    places = " / ".join(f"{number:,}" for number in regions.release(homes).tolist())
    answers = [
        ("how many are ill", f"{count.release(ill):,}", f"± {count.error():,}", count.event),
        ("people per region", places, f"± {regions.error():,} each", regions.event),
        ("mean age", f"{released / _PEOPLE:.2f}", f"± {total.error() / _PEOPLE:.2f}", total.event),
    ]
    alone = [Composition([event]).epsilon(_DELTA / len(answers)) for *_, event in answers]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("", "published", "95% error", "epsilon alone"):
        table.add_column(heading, justify="left" if heading in {"", "published"} else "right")
    for (name, value, error, _), epsilon in zip(answers, alone, strict=True):
        table.add_row(name, value, error, f"{epsilon:.3f}")
    out.print(table)

    events = [event for *_, event in answers]
    naive, together = sum(alone), Composition(events).epsilon(_DELTA)
    out.print(
        f"Together, at delta = {float(_DELTA):g}: adding up gives epsilon = {naive:.3f}; composing the loss "
        f"distributions gives [bold]{together:.3f}[/], {1 - together / naive:.0%} less for the same answers."
    )
    purse = PrivacyFilter(PrivacyBudget(epsilon=Fraction(3), delta=_DELTA, people=_PEOPLE))
    for event in events:
        purse.spend(event)
    left = purse.remaining / (purse.remaining + purse.spent)
    out.print(
        "Charged to a budget of epsilon = 3, which also covers questions chosen after seeing answers, "
        f"the three leave {float(left):.0%} of it."
    )


def _title(out: Console, text: str) -> None:
    out.print(f"\n[bold cyan]{text}[/]")
