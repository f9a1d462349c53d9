"""The chooser: which protocol answers a question with the least error, within what a report may weigh.

Candidates are compared by the variance of an estimate per person, exactly; for shares, of an answer that
hardly anybody gives, which is where protocols differ. Of all that are within 1% of the best, the one
with the shortest report is taken. What takes too long to send or to count is left out first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from sfumato.core.arguments import Number, budget_quantity, count, positive, upper_float
from sfumato.errors import InvalidArgument
from sfumato.local.ballots import Ballot, SubsetSelection, UnaryEncoding
from sfumato.local.geometry import ProjectiveGeometry
from sfumato.local.hadamard import HadamardResponse
from sfumato.local.hashing import LocalHashing
from sfumato.local.means import Duchi, MeanProtocol
from sfumato.local.piecewise import Hybrid, Piecewise
from sfumato.local.prefix_tree import PrefixTree
from sfumato.local.protocol import FrequencyProtocol, Protocol
from sfumato.local.questions import NumberIn, OneAnswer, SeveralOf, SurveyQuestion, Text, YesNo
from sfumato.local.response import KaryResponse
from sfumato.local.sets import SetSelection, SeveralAnswers, UnarySets

__all__ = ["Candidate", "ProtocolChoice", "choose", "share_tested"]

_CLOSE = Fraction(101, 100)
_MESSAGE = 1 << 16  # bits: eight kilobytes
_SECONDS = 60
_LARGEST = 1 << 28  # answers whose counts a collector keeps in memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A protocol, and what speaks for and against it."""

    protocol: Protocol
    variance: float
    """Of one person's estimate: divide by the number of people."""
    message_bits: int
    seconds: float
    """About how long a collector takes for everybody's reports, on one core."""
    refused: str = ""
    """Why it was left out, if it was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolChoice:
    """The protocol that was chosen, and those that were not."""

    protocol: Protocol
    people: int
    candidates: tuple[Candidate, ...]

    def explain(self) -> str:
        """Say what was compared, and why this one was taken."""
        chosen = next(one for one in self.candidates if one.protocol is self.protocol)
        lines = [f"{'protocol':<12}  {'error (95%)':>11}  {'variance':>9}  {'bits':>9}  {'seconds':>8}"]
        for one in sorted(self.candidates, key=lambda one: one.variance):
            error = 1.96 * math.sqrt(one.variance / self.people)
            mark = "chosen" if one is chosen else one.refused
            lines.append(
                f"{_title(one.protocol):<12}  {f'±{error:.3g}':>11}  {one.variance:>9.4g}"
                f"  {one.message_bits:>9,}  {one.seconds:>8.2g}  {mark}".rstrip()
            )
        best = min(one.variance for one in self.candidates if not one.refused)
        why = "" if chosen.variance == best else "the shortest report within 1% of "
        lines.append(f"-- {_title(chosen.protocol)} has {why}the least variance")
        lines.append(f"-- errors are for {self.people:,} people{self._of_what(chosen)}")
        return "\n".join(lines)

    def _of_what(self, chosen: Candidate) -> str:
        if isinstance(chosen.protocol, FrequencyProtocol):
            half = 1.96 * math.sqrt(chosen.protocol.variance(Fraction(1, 2), self.people))
            sampled = 1.96 * math.sqrt(0.25 / self.people)
            return f", of a rare answer; of one that half give ±{math.hypot(half, sampled):.3g}"
        if isinstance(chosen.protocol, MeanProtocol):
            return ", in the number's own units, before what sampling people adds"
        return ", of a rare text"


def choose(
    question: SurveyQuestion,
    *,
    epsilon: Number,
    people: int,
    message_bits: int = _MESSAGE,
    seconds: Number = _SECONDS,
) -> ProtocolChoice:
    """Return the protocol of least variance for a question, n people and an epsilon each.

    >>> choice = choose(OneAnswer(words="Which?", size=1000), epsilon=1, people=100_000)
    >>> choice.protocol.name, choice.protocol.message_bits
    ('hashing', 22)
    >>> choose(NumberIn(words="How old?", low=0, high=110), epsilon=1, people=1000).protocol.name
    'hybrid'
    """
    promised, n = budget_quantity(epsilon, "epsilon"), count(people, "people", most=10**15)
    most_bits, most_seconds = count(message_bits, "message_bits"), upper_float(positive(seconds, "seconds"))
    found = []
    for protocol in _protocols(question, promised):
        bits, time = protocol.message_bits, _seconds(protocol, n)
        slow = "takes too long to count" if time > most_seconds else ""
        found.append(
            Candidate(
                protocol=protocol, variance=_variance(protocol), message_bits=bits, seconds=time,
                refused="report too long" if bits > most_bits else slow,
            )
        )  # fmt: skip
    able = [one for one in found if not one.refused]
    if not able:
        quickest = min((one.seconds for one in found if one.message_bits <= most_bits), default=None)
        shortest = min(one.message_bits for one in found)
        place = "message_bits" if quickest is None else "seconds"
        least = shortest if quickest is None else math.ceil(quickest)
        raise InvalidArgument(
            "no protocol keeps within the limits",
            place=place,
            hints=(f"allow {least:,} {place}: nothing takes less", "group answers, or cut texts shorter"),
        )
    smallest = min(one.variance for one in able)
    close = [one for one in able if one.variance <= smallest * _CLOSE]
    best = min(close, key=lambda one: (one.message_bits, one.variance, one.seconds))
    return ProtocolChoice(protocol=best.protocol, people=n, candidates=tuple(found))


def _protocols(question: SurveyQuestion, epsilon: Fraction) -> Iterator[Protocol]:
    match question:
        case SeveralOf(size=size, most=most):
            yield SetSelection.from_epsilon(epsilon, size=size, most=most)
            yield UnarySets.from_epsilon(epsilon, size=size, most=most)
            for make in (KaryResponse.from_epsilon, SubsetSelection.from_epsilon, LocalHashing.from_epsilon):
                yield SeveralAnswers.from_epsilon(epsilon, size=size, most=most, inner=make)
        case YesNo():
            yield KaryResponse.from_epsilon(epsilon, size=2)
        case OneAnswer(size=size):
            yield KaryResponse.from_epsilon(epsilon, size=size)
            yield UnaryEncoding.from_epsilon(epsilon, size=size, symmetric=True)
            yield UnaryEncoding.from_epsilon(epsilon, size=size)
            yield SubsetSelection.from_epsilon(epsilon, size=size)
            yield LocalHashing.from_epsilon(epsilon, size=size)
            if size < _LARGEST:
                yield HadamardResponse.from_epsilon(epsilon, size=size)
                yield ProjectiveGeometry.from_epsilon(epsilon, size=size)
        case NumberIn(low=low, high=high):
            yield Duchi.from_epsilon(epsilon, low=low, high=high)
            yield Piecewise.tuned(epsilon, low=low, high=high)
            yield Hybrid.tuned(epsilon, low=low, high=high)
        case Text(length=length):
            yield PrefixTree.from_epsilon(epsilon, octets=length)
        case _:
            raise InvalidArgument("there is no protocol for a question of this kind", place="question")


def _variance(protocol: Protocol) -> float:
    if isinstance(protocol, MeanProtocol):  # in the number's own units
        return protocol.worst_variance * float((protocol.high - protocol.low) / 2) ** 2
    if isinstance(protocol, PrefixTree):  # of a whole text, which some of the reports are about
        return float(protocol.q * (1 - protocol.q) / (protocol.p - protocol.q) ** 2) / share_tested(protocol)
    assert isinstance(protocol, FrequencyProtocol)
    return protocol.variance(0, 1)


def share_tested(protocol: PrefixTree) -> float:
    """Return the share of reports that whole texts are tested by."""
    return protocol.words.count(protocol.lengths[-1]) / len(protocol.words)


def _seconds(protocol: Protocol, people: int) -> float:
    """About what one core of today does: a few nanoseconds for each byte, or entry, that is looked at."""
    match protocol:
        case LocalHashing(size=size):
            return people * size * 1e-9
        case Ballot(size=size):
            return people * size / 8 * 4e-9
        case SeveralAnswers(inner=inner):
            return _seconds(inner, people)
        case HadamardResponse() | ProjectiveGeometry():
            return people * 2e-8 + protocol.size * 2e-6
        case PrefixTree(hashes=g, levels=levels):  # all words of a length, or reports by beginnings kept
            pairs = people * 2 / len(protocol.words) * max(1 << 12, min(people << 4, 1 << 21))
            words = (float(g**word.digits) for word in levels.words if word.digits < levels.lengths[-1])
            tested = people * share_tested(protocol) * min(people, 1 << 17)
            return sum(min(each * 5e-8, pairs * 5e-9) for each in words) + tested * 3e-10
        case _:
            return people * 2e-8


def _title(protocol: Protocol) -> str:
    if isinstance(protocol, SeveralAnswers):
        return f"one of {protocol.inner.name}"
    if isinstance(protocol, UnaryEncoding) and protocol.own == 1 - protocol.other:
        return "symmetric"
    return protocol.name
