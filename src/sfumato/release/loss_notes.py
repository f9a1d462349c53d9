"""Loss notes: what is said under an answer of how much its caps and bounds took. Post-processing."""

from __future__ import annotations

import math

from sfumato.aggregates.answer import Answer
from sfumato.analysis.limits import SEEN
from sfumato.analysis.loss_measurement import MEASURED_PART, QuestionLoss
from sfumato.release.answers import NoisyTable, tabulate
from sfumato.release.noise import NoisyGroups

__all__ = ["loss_note"]

_LEVEL = 0.95


def loss_note(loss: QuestionLoss, noisy: tuple[NoisyGroups, ...]) -> str:
    """Return the sentence that tells measured losses, each share with its interval."""
    assert loss.bounding is not None and loss.cost is not None
    table = tabulate("losses", noisy, loss.bounding, loss.cost)
    answers = {answer.name: answer for answer in table.answers}
    said = []
    if "kept" in answers:
        kept = _share(table, answers["kept"], answers["found"])
        left = None if kept is None else (1 - kept[0], 1 - kept[2], 1 - kept[1])
        what = "rows" if "rows" in answers or loss.limits.caps_rows else "places of units in groups"
        said.append(f"{_told(left)} of the {what} are left out by {loss.limits.said_caps}")
    for name, answer in answers.items():
        if name.startswith("outside_"):
            share = _share(table, answer, answers["rows"])
            said.append(
                f"{_told(share)} of the values of `{name.removeprefix('outside_')}` lie beyond bounds"
            )
    said.append(
        f"measured for {float(MEASURED_PART):.0%} of the cost, over at most {SEEN} times what caps leave of a"
        " unit; not covered by the intervals of answers"
    )
    return "; ".join(said)


def _share(table: NoisyTable, part: Answer, whole: Answer) -> tuple[float, float, float] | None:
    """Return a share between 0 and 1, and the ends of its interval; None where they say nothing."""
    [top], [bottom] = table.aggregate(part, None).values, table.aggregate(whole, None).values
    ratio = table.ratio(part, whole, _LEVEL)
    if ratio is None or bottom <= 0:
        return None
    low, high = (min(1.0, max(0.0, end)) for end in (ratio.low[0], ratio.high[0]))
    if math.isnan(low + high) or high - low >= 1:
        return None
    return min(1.0, max(0.0, top / bottom)), low, high


def _told(share: tuple[float, ...] | None) -> str:
    if share is None:
        return "an unknown share (there is too little budget, or too little data, to tell)"
    value, low, high = share
    return f"about {value:.1%} ({low:.1%}..{high:.1%})"
