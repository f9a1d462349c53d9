"""Ideas: what a mechanism does, what it gives away, and what becomes of several of them."""

from __future__ import annotations

import math
from fractions import Fraction

from sfumato.core import (
    GaussianMechanism,
    LaplaceMechanism,
    LossDistribution,
    RandomizedResponseMechanism,
    TradeOff,
    events,
)
from sfumato.core.arguments import Number, exact
from sfumato.lessons.noise import laplace_of, two_kinds
from sfumato.plots import Axis, Bars, Line, Picture, Points

__all__ = [
    "coin_toss",
    "composition",
    "group_privacy",
    "laplace_and_gaussian",
    "post_processing",
    "privacy_loss",
    "simplex",
]

_WORDS = ((1, "yes"), (0, "no"))


def coin_toss(truth: Number = Fraction(3, 4)) -> Picture:
    """Draw what a person says who tells the truth with probability `truth`, and lies otherwise.

    >>> coin_toss().marks[0].bars  # of those for whom it is true
    (('says yes', 0.75), ('says no', 0.25))
    """
    survey = RandomizedResponseMechanism(truth)
    ratio = float(survey.max_ratio)
    return Picture(
        title="A coin answers now and then",
        caption=f"No answer is more than {ratio:.3g} times as likely from one person as from another: "
        f"epsilon is ln {ratio:.3g}, {math.log(ratio):.3g}.",
        x=Axis(title="what is said"),
        y=Axis(title="how often", percent=True, low=0, high=1),
        marks=tuple(
            Bars(
                label=label,
                bars=tuple((f"says {word}", float(survey.pmf(said, true))) for said, word in _WORDS),
            )
            for label, true in (("it is true", 1), ("it is not true", 0))
        ),
    )


def simplex(
    law: tuple[float, float, float] = (0.5, 0.3, 0.2), epsilons: tuple[float, ...] = (0.25, 0.5, 1.0)
) -> Picture:
    """Draw the laws over three outputs, as a triangle, and around one of them its possible neighbours.

    A neighbour's probabilities are between e^-epsilon and e^epsilon times those of `law`.

    >>> [mark.label for mark in simplex(epsilons=(1,)).marks]
    ['all laws over three outputs', 'neighbours at epsilon 1', 'the law itself']
    """
    corners = tuple(_flat(corner) for corner in ((1, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0)))
    x, y = _flat(law)
    return Picture(
        title="Laws that may be neighbours",
        caption="Each point is a law over three outputs: the nearer a corner, the surer that output. "
        "The smaller epsilon, the closer must be what one person can change the law to.",
        x=Axis(title="left corner: surely A; right corner: surely B", low=0, high=1),
        y=Axis(title="top: surely C", low=0, high=1),
        marks=(
            Line(label="all laws over three outputs", points=corners),
            *(
                Line(label=f"neighbours at epsilon {epsilon:g}", points=_neighbours(law, epsilon))
                for epsilon in epsilons
            ),
            Points(label="the law itself", points=((x, y, y, y),)),
        ),
    )


def _flat(law: tuple[float, float, float]) -> tuple[float, float]:
    """Return where a law lies in the triangle."""
    return law[1] + law[2] / 2, law[2]


def _neighbours(law: tuple[float, float, float], epsilon: float) -> tuple[tuple[float, float], ...]:
    """Return the corners, in order, of the laws whose ratios to `law` are at most e^epsilon.

    At a corner two of the three probabilities are at a limit, and the third is what is left.
    """
    limits = [(p * math.exp(-epsilon), min(1.0, p * math.exp(epsilon))) for p in law]
    found = set()
    for free in range(3):
        first, second = (place for place in range(3) if place != free)
        for a in limits[first]:
            for b in limits[second]:
                rest = 1 - a - b
                if limits[free][0] - 1e-12 <= rest <= limits[free][1] + 1e-12:
                    corner = [0.0, 0.0, 0.0]
                    corner[first], corner[second], corner[free] = a, b, rest
                    found.add(_flat((corner[0], corner[1], corner[2])))
    x, y = (sum(point[place] for point in found) / len(found) for place in (0, 1))
    around = sorted(found, key=lambda point: math.atan2(point[1] - y, point[0] - x))
    return (*around, around[0])


def laplace_and_gaussian(deviation: int = 10) -> Picture:
    """Draw the two laws of noise, with the same standard deviation.

    >>> laplace, gaussian = laplace_and_gaussian().marks
    >>> len(laplace.points) == len(gaussian.points)
    True
    """
    laplace = LaplaceMechanism(laplace_of(deviation).scale)
    gaussian = GaussianMechanism(deviation)
    outputs = range(-4 * deviation, 4 * deviation + 1, max(1, deviation // 10))
    return Picture(
        title="Laplace and Gaussian noise",
        caption=f"Both have a standard deviation of about {deviation}. Laplace noise has a peak and long "
        "tails; its loss is bounded. Gaussian noise is rarely far off; its loss is rarely large.",
        x=Axis(title="noise"),
        y=Axis(title="probability", low=0),
        marks=(
            Line.curve("Laplace", lambda x: float(laplace.pmf(x, 0)), outputs),
            Line.curve("Gaussian", lambda x: float(gaussian.pmf(x, 0)), outputs),
        ),
    )


def privacy_loss(deviation: int = 2, step: float = 0.05) -> Picture:
    """Draw the law of the privacy loss: how much likelier the output was with the person, as a logarithm.

    >>> laplace, gaussian = privacy_loss().marks
    >>> round(sum(share for _, share in gaussian.points), 3)
    1.0
    """
    return Picture(
        title="The privacy loss is random",
        caption="Which loss it becomes, chance decides together with the noise. Laplace noise has two ends, "
        "where much of it lies; Gaussian noise has none. A loss below zero speaks against the person's "
        "presence.",
        x=Axis(title="privacy loss", low=-2, high=2.5),
        y=Axis(title="probability, in steps of " + format(step, "g"), low=0),
        marks=tuple(Line(label=label, points=_losses(event, step)) for label, event in two_kinds(deviation)),
    )


def _losses(event: events.Event, step: float) -> tuple[tuple[float, float], ...]:
    law = LossDistribution.pessimistic(event, step, events.Direction.REMOVE)
    return tuple(
        (float(loss), float(mass))
        for loss, mass in zip(law.losses, law.masses, strict=True)
        if mass > 1e-5 or abs(loss) < 1
    )


def composition(epsilon: Number = Fraction(1, 4), counts: tuple[int, ...] = (1, 2, 4, 8)) -> Picture:
    """Draw what several questions cost: about the same people, and about groups that share nobody.

    >>> series, parallel = composition().marks
    >>> series.bars[-1], parallel.bars[-1]
    (('8', 2.0), ('8', 0.25))
    """
    one = events.Pure(loss=exact(epsilon, "epsilon"))
    return Picture(
        title="In series and in parallel",
        caption="Questions about the same people add up. Where nobody is in two groups, one question to "
        "each group costs each person one question.",
        x=Axis(title="questions"),
        y=Axis(title="epsilon of all together", low=0),
        marks=(
            Bars(
                label="in series: the same people",
                bars=tuple((str(k), float(events.Repeated(event=one, times=k).epsilon())) for k in counts),
            ),
            Bars(
                label="in parallel: each about other people",
                bars=tuple((str(k), float(events.Parallel(events=(one,) * k).epsilon())) for k in counts),
            ),
        ),
    )


def group_privacy(epsilons: tuple[float, ...] = (0.1, 0.5, 1.0), most: int = 10) -> Picture:
    """Draw how sure one may become that a whole group took part, from even odds, against its size.

    >>> [round(mark.points[0][1], 3) for mark in group_privacy().marks]
    [0.525, 0.622, 0.731]
    """

    def belief(epsilon: float) -> Line:
        def after(size: int) -> float:
            return TradeOff.of_approximate(epsilon=epsilon * size).posterior(0.5)

        return Line.curve(f"epsilon {epsilon:g} for each", after, range(1, most + 1))

    return Picture(
        title="A group is protected less than one",
        caption="A family of k is protected by k times epsilon. What holds for one person at epsilon 1 holds "
        "for ten at 0.1 each.",
        x=Axis(title="people in the group", low=1, high=most),
        y=Axis(title="belief that they took part, at most", percent=True, low=0.5, high=1),
        marks=tuple(map(belief, epsilons)),
    )


def post_processing(count: int = 2, epsilon: Number = Fraction(1, 2)) -> Picture:
    """Draw a noisy count, and the same with negative numbers raised to zero.

    >>> noisy, raised = post_processing().marks
    >>> noisy.bars[0][0], raised.bars[0][1]
    ('-4', 0.0)
    """
    mechanism = LaplaceMechanism.from_epsilon(epsilon)
    low, high = count - 6, count + 6

    def share(output: int) -> float:
        return float(mechanism.pmf(output, count))

    below = 1 - sum(share(output) for output in range(1, 400))
    outputs = range(low, high + 1)
    return Picture(
        title="What is done afterwards is free",
        caption=f"The true count is {count}. Both have the same epsilon, {float(epsilon):g}: whoever sees "
        "the second learns no more than whoever sees the first.",
        x=Axis(title="published"),
        y=Axis(title="probability", low=0),
        marks=(
            Bars(label="noisy", bars=tuple((str(output), share(output)) for output in outputs)),
            Bars(
                label="and not below zero",
                bars=tuple(
                    (str(output), 0.0 if output < 0 else below if output == 0 else share(output))
                    for output in outputs
                ),
            ),
        ),
    )
