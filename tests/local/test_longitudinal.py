"""The same question again: exact costs of whole histories by enumeration, and estimates that are right.

The law of a sequence of reports is enumerated in Fractions from what a phone does (`walk`): its draws,
the reports it keeps, the coins it tosses over them. No formula of the package is used for that.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from sfumato.errors import InvalidArgument
from sfumato.local import client
from sfumato.local.ballots import UnaryEncoding
from sfumato.local.longitudinal import Memoised, Renewed, Rule
from sfumato.local.protocol import FrequencyProtocol
from sfumato.local.questions import OneAnswer
from sfumato.local.response import KaryResponse
from sfumato.local.shuffling import amplification
from sfumato.local.stages import TwoStage, TwoStageResponse, TwoStageUnary
from sfumato.local.survey import Survey
from tests.soaked import rest_soaked

F = Fraction
Law = dict[tuple[int, ...], Fraction]


# -- what a phone does, enumerated -----------------------------------------------------------


def first_law(protocol: FrequencyProtocol, answer: int) -> Law:
    """Return the law of a kept report, as a tuple: (value,) or bits."""
    match protocol:
        case KaryResponse(size=k, odds=r):
            return {(y,): (r if y == answer else F(1)) / (r + k - 1) for y in range(k)}
        case TwoStageResponse(size=k, permanent=r):
            return {(y,): (r if y == answer else F(1)) / (r + k - 1) for y in range(k)}
        case UnaryEncoding(size=k, own=own, other=other) | TwoStageUnary(size=k, own=own, other=other):
            chances = [own if y == answer else other for y in range(k)]
            return coins(chances)
    raise AssertionError


def coins(chances: list[Fraction]) -> Law:
    law = {}
    for bits in itertools.product((0, 1), repeat=len(chances)):
        law[bits] = math.prod((c if bit else 1 - c for c, bit in zip(chances, bits, strict=True)), start=F(1))
    return law


def day_law(protocol: FrequencyProtocol, kept: tuple[int, ...]) -> Law:
    """Return the law of what is sent, given what is kept."""
    match protocol:
        case TwoStageResponse(size=k, instant=s):
            return {(y,): (s if (y,) == kept else F(1)) / (s + k - 1) for y in range(k)}
        case TwoStageUnary(if_set=p, if_unset=q):
            return coins([p if bit else q for bit in kept])
    return {kept: F(1)}


def sequence_law(rule: Rule, history: tuple[int, ...], *, fresh: bool = False) -> Law:
    """Return the exact law of all days' reports. `fresh` plants the bug of drawing anew every day."""

    def walk(
        day: int, kept: dict[int, tuple[int, ...]], last: int, sent: tuple[int, ...]
    ) -> Iterator[tuple[tuple[int, ...], Fraction]]:
        if day == len(history):
            yield sent, F(1)
            return
        key = history[day] if isinstance(rule, Memoised) else day // rule.every
        if fresh:
            key = -1 - day
        if key in kept or len(kept) >= rule.cap:
            use = key if key in kept else last
            options = [(kept, use, F(1))]
        else:
            law = first_law(rule.protocol, history[day])
            options = [({**kept, key: drawn}, key, chance) for drawn, chance in law.items()]
        for now, use, chance in options:
            for report, coin in day_law(rule.protocol, now[use]).items():
                for rest, more in walk(day + 1, now, use, (*sent, *report)):
                    yield rest, chance * coin * more

    found: Law = defaultdict(F)
    for sent, chance in walk(0, {}, 0, ()):
        found[sent] += chance
    assert sum(found.values()) == 1
    return found


def ratio(p: Law, q: Law) -> Fraction | None:
    """Return the largest ratio of p to q, None where q is zero and p is not."""
    if any(chance and not q.get(y) for y, chance in p.items()):
        return None
    return max(chance / q[y] for y, chance in p.items() if chance)


def pattern(history: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(history.index(x) for x in history)


def worst(
    rule: Rule, days: int, same: Callable[[tuple[int, ...], tuple[int, ...]], bool], *, fresh: bool = False
) -> dict[int, Fraction | None]:
    """Return the largest ratio over pairs of histories, by how many values the first one holds."""
    size = rule.protocol.size
    histories = list(itertools.product(range(size), repeat=days))
    laws = {h: sequence_law(rule, h, fresh=fresh) for h in histories}
    found: dict[int, Fraction | None] = {}
    for a, b in itertools.permutations(histories, 2):
        if same(a, b):
            r, held = ratio(laws[a], laws[b]), len(set(a))
            before = found.get(held, F(1))
            found[held] = None if r is None or before is None else max(before, r)
    return found


def same_pattern(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return pattern(a) == pattern(b)


RESPONSES = [KaryResponse(size=2, odds=F(3)), KaryResponse(size=3, odds=F(5, 2))]
UNARY = UnaryEncoding(size=3, own=F(1, 2), other=F(1, 4))
TWO = [
    TwoStageResponse(size=2, permanent=F(3), instant=F(2)),
    TwoStageResponse(size=3, permanent=F(4), instant=F(3)),
    TwoStageUnary(size=2, own=F(1, 2), other=F(1, 5), if_set=F(3, 4), if_unset=F(1, 4)),
    TwoStageUnary(size=3, own=F(3, 4), other=F(1, 4), if_set=F(2, 3), if_unset=F(1, 5)),
]


# -- what it costs ---------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", [*RESPONSES, UNARY], ids=str)
@pytest.mark.parametrize("cap", [1, 2, 3])
def test_memoised_costs_an_epsilon_per_value_held(protocol, cap):
    """Exactly, between histories that change on the same days; and nothing bounds the others."""
    rule = Memoised(protocol=protocol, cap=cap)
    days = 3 if protocol is not UNARY else 2
    for held, found in worst(rule, days, same_pattern).items():
        plan = rule.plan(days, held - 1)
        assert plan.ratio == protocol.max_ratio ** min(held, cap)
        assert found == plan.ratio
    anything = worst(rule, days, lambda a, b: True)
    assert max((r for r in anything.values() if r is not None), default=F(0)) <= (
        rule.plan(days).worst_ratio or 10**9
    )
    assert (None in anything.values()) == (cap > 1) == math.isinf(rule.plan(days).worst_epsilon)


def test_drawing_afresh_is_caught():
    """The bug that memory is there to prevent: three days of one answer would cost three epsilons."""
    rule = Memoised(protocol=RESPONSES[0], cap=9)
    assert worst(rule, 3, same_pattern)[1] == rule.plan(3).ratio == 3
    assert worst(rule, 3, same_pattern, fresh=True)[1] == 27 > rule.plan(3).ratio


@pytest.mark.parametrize("protocol", [*RESPONSES, TWO[0], TWO[2]], ids=str)
@pytest.mark.parametrize(("cap", "every"), [(1, 1), (2, 1), (2, 2), (3, 1)])
def test_renewed_costs_an_epsilon_per_draw_whatever_the_histories(protocol, cap, every):
    rule = Renewed(protocol=protocol, cap=cap, every=every)
    plan = rule.plan(3)
    assert plan.draws == min(cap, -(-3 // every)) and plan.worst_ratio == plan.ratio
    found = max(r if r is not None else F(10**9) for r in worst(rule, 3, lambda a, b: True).values())
    if isinstance(protocol, TwoStage):
        assert protocol.max_ratio <= found <= plan.ratio
    else:
        assert found == plan.ratio


def ratio_after(two: TwoStage, days: int) -> Fraction:
    """Return what the theorems of both classes say of the ratio after some days of an answer that stays."""
    if isinstance(two, TwoStageResponse):  # all days told one answer: the odds of a day, with s^d for s
        r, s, others = two.permanent, two.instant**days, two.size - 1
        return (r * s + others) / (r + s + others - 1)
    p1, q1, p2, q2 = two.stages  # one bit was always sent as 1, the other never
    always, never = (p2**days, q2**days), ((1 - p2) ** days, (1 - q2) ** days)

    def sent(first: Fraction, chances: tuple[Fraction, Fraction]) -> Fraction:
        return first * chances[0] + (1 - first) * chances[1]

    return sent(p1, always) / sent(q1, always) * (sent(q1, never) / sent(p1, never))


@pytest.mark.parametrize("two", TWO, ids=str)
def test_two_stages_cost_exactly_what_they_say(two):
    """One answer that stays: the exact ratio after each number of days, growing to the lifetime's."""
    rule, before = Memoised(protocol=two, cap=5), F(1)
    for days in (1, 2, 3) if two.size == 2 or isinstance(two, TwoStageResponse) else (1, 2):
        laws = [sequence_law(rule, (x,) * days) for x in range(two.size)]
        found = max(ratio(a, b) for a, b in itertools.permutations(laws, 2))
        assert found == ratio_after(two, days) > before
        before = found
    assert ratio_after(two, 1) == two.max_ratio == two.single.max_ratio
    assert before < ratio_after(two, 60) < two.lifetime_ratio < ratio_after(two, 60) * F(1001, 1000)
    assert two.lifetime_ratio - ratio_after(two, 1000) < F(1, 10**100)


@pytest.mark.parametrize("two", [TWO[0], TWO[2]], ids=str)
def test_two_stages_when_answers_change(two):
    rule = Memoised(protocol=two, cap=2)
    for held, found in worst(rule, 3, same_pattern).items():
        assert found is not None and found <= rule.plan(3, held - 1).ratio
    anything = worst(rule, 3, lambda a, b: True)
    assert all(r is not None and r <= rule.plan(3).worst_ratio for r in anything.values())
    if isinstance(two, TwoStageUnary):  # the pattern itself does show
        assert max(anything.values()) > max(worst(rule, 3, same_pattern).values())


@pytest.mark.parametrize("two", TWO, ids=str)
def test_one_days_report_is_that_of_one_protocol(two):
    rule = Memoised(protocol=two, cap=1)
    for answer in range(two.size):
        law = sequence_law(rule, (answer,))
        assert law == first_law(two.single, answer)
        for y in range(two.size):
            supported = [
                chance for sent, chance in law.items() if (sent[y] if len(sent) > 1 else sent[0] == y)
            ]
            assert sum(supported) == (two.p if y == answer else two.q)
    assert two.p - two.q == (two.stages[0] - two.stages[1]) * (two.stages[2] - two.stages[3])


# -- what the code draws -----------------------------------------------------------------------


def check(counts: Counter[tuple[int, ...]], law: Law, n: int) -> None:
    """Nothing impossible occurs, and a chi-square test passes at 1e-12: room for small cells below 1e-10."""
    assert set(counts) <= {y for y, chance in law.items() if chance}
    expected = [float(chance) * n for chance in law.values() if chance]
    found = [counts[y] for y, chance in law.items() if chance]
    if len(found) > 1:
        assert stats.chisquare(found, expected, sum_check=False).pvalue > 1e-12


def drawn(rule: Rule, history: tuple[int, ...], n: int) -> Counter[tuple[int, ...]]:
    """Count the sequences of n phones of one history, drawn in arrays."""
    protocol, kept, last, sent = rule.protocol, {}, -1, []
    for day, answer in enumerate(history):
        key = answer if isinstance(rule, Memoised) else day // rule.every
        if key not in kept and len(kept) < rule.cap:
            answers = np.full(n, answer)
            two = isinstance(protocol, TwoStage)
            kept[key] = protocol.keep(answers) if two else protocol.randomise(answers)
        last = key if key in kept else last
        report = protocol.send(kept[last]) if isinstance(protocol, TwoStage) else kept[last]
        bits = report.get("bits")
        sent.append(
            report["value"][:, None] if bits is None else np.unpackbits(bits, axis=1, count=protocol.size)
        )
    return Counter(map(tuple, np.concatenate(sent, axis=1).tolist()))


def shortened(history: tuple[int, ...], protocol: FrequencyProtocol) -> tuple[int, ...]:
    """Return a history of the answers there are, as long as its law can be enumerated."""
    return tuple(min(x, protocol.size - 1) for x in history)[: 3 if len(first_law(protocol, 0)) < 8 else 2]


HISTORIES = [(0, 1, 0), (1, 1, 1), (0, 1, 2), (1, 0, 1)]


@pytest.mark.parametrize("protocol", [*RESPONSES, UNARY, *TWO[:3]], ids=str)
@pytest.mark.parametrize("history", rest_soaked(HISTORIES, 4, of_soak=3))
def test_many_phones_follow_the_enumerated_law(protocol, history):
    """False alarm at most 1e-9 (three tests of 1e-10); power: fresh draws, or a cap ignored, for sure."""
    history, n = shortened(history, protocol), 60_000
    for rule in (
        Memoised(protocol=protocol, cap=2),
        Memoised(protocol=protocol, cap=5),
        Renewed(protocol=protocol, cap=2),
    ):
        check(drawn(rule, history, n), sequence_law(rule, history), n)


@pytest.mark.parametrize("n", [3000, pytest.param(12_000, marks=pytest.mark.soak)])
@pytest.mark.parametrize("protocol", [RESPONSES[1], UNARY, *TWO[:3]], ids=str)
@pytest.mark.parametrize("history", rest_soaked(HISTORIES, 2, of_soak=2))
def test_phones_follow_the_enumerated_law(protocol, history, n):
    """False alarm at most 1e-9 (four tests of 1e-10); power: fresh draws, or a cap ignored, for sure."""
    history = shortened(history, protocol)
    question = OneAnswer(words="Which?", size=protocol.size)
    for rule in (
        Memoised(protocol=protocol, cap=1),
        Memoised(protocol=protocol, cap=2),
        Memoised(protocol=protocol, cap=5),
        Renewed(protocol=protocol, cap=2, every=2 if history[0] else 1),
    ):
        limits = {"cap": rule.cap, "every": getattr(rule, "every", None)}
        text = Survey.plan("s", question, epsilon=20, protocol=protocol, **limits).text.encode()
        survey, counts = client.load(text), Counter()
        for _ in range(n):
            memory, sent = {}, []
            for day, answer in enumerate(history):
                report = client.report(survey, answer, memory, day)
                if "value" in report:
                    sent.append(report["value"])
                else:
                    packed = np.frombuffer(bytes.fromhex(report["bits"]), dtype=np.uint8)
                    sent.extend(np.unpackbits(packed)[: protocol.size].tolist())
            assert len(memory["s"]["kept"]) <= rule.cap
            counts[tuple(sent)] += 1
        check(counts, sequence_law(rule, history), n)


@pytest.mark.parametrize(
    "two",
    [TwoStageResponse.from_epsilon(3, first=1, size=4), TwoStageUnary.from_epsilon(3, first=1, size=12)],
    ids=lambda t: t.name,
)
def test_estimates_are_unbiased_and_vary_as_stated(two):
    """400 surveys of 500 people over 6 days; answer 0 is held by 30%, by 0% the last answer.

    False alarm at most 1e-9: two z-tests and two chi-square tests of variances, each at 1e-10, for two
    answers and both kinds of estimate. Power: a bias of 0.6 standard deviations, a variance off by 60%.
    """
    surveys, people, days = 400, 500, 6
    one = np.repeat([0, 1, 2], [150, 200, 150])
    kept = two.keep(np.tile(one, surveys))
    columns = [two.send(kept) for _ in range(days)]
    estimates = np.empty((surveys, days, two.size))
    for day, sent in enumerate(columns):
        assert two.valid(sent).all()
        for s in range(surveys):
            part = {name: column[s * people : (s + 1) * people] for name, column in sent.items()}
            estimates[s, day] = two.shares(two.collect(part), people).values
    for answer, share in ((0, F(3, 10)), (two.size - 1, F(0))):
        for found, variance in (
            (estimates[:, 0, answer], two.variance(share, people)),
            (estimates[:, :, answer].mean(axis=1), two.mean_variance(share, people, days)),
        ):
            z = (found.mean() - float(share)) / math.sqrt(variance / surveys)
            assert abs(z) < stats.norm.isf(0.5e-10)
            scaled = ((found - float(share)) ** 2).sum() / variance
            assert stats.chi2.isf(1 - 0.5e-10, surveys) < scaled < stats.chi2.isf(0.5e-10, surveys)
    assert two.mean_variance(F(1, 3), 10, 1) == pytest.approx(two.variance(F(1, 3), 10), rel=1e-12)
    kept = two.mean_variance(0, 10, 10**9)
    _, q1, _, _ = two.stages
    assert kept == pytest.approx(float(q1 * (1 - q1) / (10 * (two.stages[0] - q1) ** 2)), rel=1e-6)


# -- making them, and refusing ------------------------------------------------------------------


@pytest.mark.parametrize("kind", [TwoStageResponse, TwoStageUnary])
@pytest.mark.parametrize(
    ("epsilon", "first"), [(1, 0.5), (4, 0.1), (20, 1), (20, 19.5), (1e-4, 1e-5), (2, 1.999)]
)
@pytest.mark.parametrize("size", [2, 3, 1000, 10**7])
def test_epsilons_are_kept_and_nearly_used_up(kind, epsilon, first, size):
    two = kind.from_epsilon(epsilon, first=first, size=size)
    assert two.lifetime <= epsilon and two.epsilon <= first
    assert two.lifetime == pytest.approx(epsilon, abs=2e-9)
    # Few digits of the second stage are lost most where many answers make each of them rare.
    assert two.epsilon == pytest.approx(
        first, abs=1e-8 * max(1, first) * (1 if kind is TwoStageUnary else 30)
    )
    again = kind(**{name: F(v) if isinstance(v, str) else v for name, v in two.parameters().items()})
    assert again == two and again.name == two.name


def test_two_stage_unary_has_the_variance_of_one_optimised_stage():
    two = TwoStageUnary.from_epsilon(4, first=1, size=50)
    assert two.variance(0, 1) == pytest.approx(4 * math.e / (math.e - 1) ** 2, rel=1e-6)  # 3.683
    assert two.p == F(1, 2)


@pytest.mark.parametrize("kind", [TwoStageResponse, TwoStageUnary])
def test_ends_of_two_stages(kind):
    with pytest.raises(InvalidArgument) as refused:
        kind.from_epsilon(1, first=1, size=3)
    assert refused.value.place == "first"
    with pytest.raises(InvalidArgument):
        kind.from_epsilon(1, first=1e-12, size=3)
    alone = kind.from_epsilon(2, first=1, size=1)
    assert alone.max_ratio == alone.lifetime_ratio == 1
    two = kind.from_epsilon(2, first=1, size=9)
    empty = two.randomise(np.array([], dtype=np.int64))
    assert two.valid(empty).shape == (0,) and not two.collect(empty).any()
    assert two.message_bits == two.single.message_bits
    sent = two.randomise(np.zeros(50, dtype=np.int64))
    assert two.valid(sent).all() and set(sent) == set(two.fields)
    bad = (
        {"value": np.array([-1, 9, 2**62])}
        if "value" in sent
        else {"bits": np.full((3, 2), 255, dtype=np.uint8)}
    )
    assert not two.valid(bad).any()
    with pytest.raises(InvalidArgument):
        two.mean_variance(2, 10, 10)


def test_the_chain_of_two_responses_is_shuffled_as_one():
    two = TwoStageResponse.from_epsilon(4, first=2, size=5)
    assert amplification(two.single, 10_000, 1e-8).central < amplification(two, 10_000, 1e-8).central < 2


def test_plans_and_their_sentences():
    coin = KaryResponse.coin_toss()
    plan = Memoised(protocol=coin, cap=5).plan(days=100, changes=1)
    assert plan.epsilon == pytest.approx(2 * math.log(3)) and plan.epsilon >= 2 * math.log(3) * (1 - 1e-16)
    assert "no bound" in str(plan) and "1 change " in str(plan) and "2 reports" in str(plan)
    one = Memoised(protocol=coin, cap=1).plan(days=100, changes=7)
    assert one.worst_ratio == one.ratio == 3 and "epsilon 1.099" in str(one)
    two = TwoStageResponse(size=2, permanent=F(3), instant=F(2))
    assert Memoised(protocol=two, cap=2).plan(days=4).worst_ratio == 16
    assert Renewed(protocol=coin, cap=99, every=4).plan(days=10).draws == 3
    for wrong in ({"days": 0}, {"changes": -1}):
        with pytest.raises(InvalidArgument):
            Memoised(protocol=coin, cap=3).plan(**({"days": 3} | wrong))
    for rule, limits in ((Memoised, {"cap": 0}), (Renewed, {"cap": 0}), (Renewed, {"cap": 1, "every": 0})):
        with pytest.raises(InvalidArgument):
            rule(protocol=coin, **limits)
