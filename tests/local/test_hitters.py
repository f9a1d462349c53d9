"""Heavy hitters: exact privacy, exact counts, what is held is found, what nobody holds is not."""

from __future__ import annotations

import hashlib
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sfumato.errors import InvalidArgument
from sfumato.local import client, hitters, supports, words
from sfumato.local.hitters import Growth
from sfumato.local.prefix_tree import PrefixTree
from sfumato.local.questions import Text
from sfumato.local.registry import read_protocol
from sfumato.local.survey import Survey
from sfumato.local.words import Spectrum, WordLevels, digits_of_octets, octets_of, octets_of_digits, text_of

from .laws import exact_law
from .matrices import check_draws, largest_ratio

F = Fraction


def spelled(string, base, digits):
    number = int.from_bytes(string, "big")
    return [number // base**place % base for place in range(digits - 1, -1, -1)]


def word(tree, level, x):
    """What a level is about, by the docstrings, written again."""
    g, r, w = tree.hashes, tree.lengths[level], tree.words[level]
    if w == r:
        return x[:r]
    b = sorted(set(tree.lengths))[sorted(set(tree.lengths)).index(r) - 1]
    stream = hashlib.shake_256(b"%d %d" % (g, r)).digest(10_000)
    checks = w - (r - b)
    return [
        sum((256 * stream[2 * (i * b + j)] + stream[2 * (i * b + j) + 1]) * x[j] for j in range(b)) % g
        for i in range(checks)
    ] + x[b:r]


def phone(tree, string):
    """The procedure of the docstring, written again."""
    g, m, odds = tree.hashes, tree.family.digits, tree.odds
    x = spelled(string, g, m)

    def procedure(below):
        level = below(len(tree.lengths))
        y = word(tree, level, x)
        seed = tuple(below(g) for _ in y) + (0,) * (m - len(y))
        h = sum(a * d for a, d in zip(seed, y, strict=False)) % g
        honest = below(odds.numerator + (g - 1) * odds.denominator) < odds.numerator
        return level, seed, h if honest else (h + 1 + below(g - 1)) % g

    return procedure


@pytest.fixture
def short_steps(monkeypatch):
    """Several levels even of strings of one byte."""
    monkeypatch.setattr(words, "_WORDS", 32)
    monkeypatch.setattr(words, "_STEPS", 4)
    monkeypatch.setattr(words, "_WHOLE", 1)
    monkeypatch.setattr(words, "_TEST", 1)
    tree = PrefixTree(length=1, hashes=2, odds=F(3))
    assert tree.lengths == (3, 3, 5, 5, 7, 7, 8, 8, 8)
    assert tree.words == (3, 3, 5, 5, 5, 5, 5, 8, 8)
    return tree


@pytest.mark.soak
def test_the_exact_law_of_reports(short_steps):
    """Every report of some strings; then draws. False alarm 1e-9; power: chances off by a third."""
    tree = short_steps
    strings = [bytes([octet]) for octet in (0, 29, 87, 203, 255)]
    laws = {string: exact_law(phone(tree, string)) for string in strings}
    assert largest_ratio(laws) == tree.max_ratio == 3
    assert tree.epsilon == pytest.approx(math.log(3), rel=1e-14)
    for string in strings[:2]:
        for other in strings:
            for level in range(len(tree.lengths)):
                near, far = (word(tree, level, spelled(each, 2, 8)) for each in (string, other))
                of_level = {report: p for report, p in laws[string].items() if report[0] == level}
                hit = sum(
                    p
                    for (_, seed, value), p in of_level.items()
                    if sum(a * d for a, d in zip(seed, far, strict=False)) % 2 == value
                )
                assert hit / sum(of_level.values()) == (tree.p if near == far else tree.q)
                assert string == other or tree.words[level] < 8 or near != far
    reports = tree.randomise(tree.encode([strings[3]] * 100_000))
    assert tree.valid(reports).all()
    numbers = {report: i for i, report in enumerate(laws[strings[3]])}
    rows = np.unpackbits(reports["seed"], axis=1, count=8).tolist()
    codes = [
        numbers[level, tuple(row), value]
        for level, row, value in zip(reports["level"].tolist(), rows, reports["value"].tolist(), strict=True)
    ]
    check_draws(np.array(codes), {numbers[report]: p for report, p in laws[strings[3]].items()})


@pytest.mark.soak
def test_a_phone_reports_by_exactly_that_law(short_steps):
    """The client itself, through a survey file: every draw there is, of some texts."""
    tree = short_steps
    plan = Survey.plan("texts", Text(words="What?", length=1), epsilon=2, protocol=tree)
    survey = client.load(plan.text.encode())
    for text in ("\0", "\x1d", "W"):

        def told(below, text=text):
            report = client.report(survey, text, below=below)
            return report["level"], tuple(spelled(bytes.fromhex(report["seed"]), 2, 8)), report["value"]

        assert exact_law(told) == exact_law(phone(tree, text.encode()))


@pytest.mark.parametrize(
    ("epsilon", "length"), [(0.1, 8), (2, 6), pytest.param(5, 64, marks=pytest.mark.soak)]
)
def test_both_halves_take_the_same_words(epsilon, length):
    tree = PrefixTree.from_epsilon(epsilon, octets=length)
    told = {"name": "prefixes", **tree.parameters()}
    strings = np.random.default_rng(1).integers(0, 256, (3, length), dtype=np.uint8)
    m = tree.family.digits
    rows = digits_of_octets(strings, tree.hashes, m)
    for place, about in enumerate(tree.levels.words):
        level, made = tree.levels.slots.index(place), about.of(rows).T.tolist()
        for string, row in zip(strings, made, strict=True):
            x = spelled(bytes(string), tree.hashes, m)
            assert row == client._word(told, x, level) == word(tree, level, x)
            assert len(row) == tree.words[level]


@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 1, 2, 5, 20])
@pytest.mark.parametrize("length", [1, 6, 64])
def test_any_length_and_epsilon(epsilon, length):
    tree = PrefixTree.from_epsilon(epsilon, octets=length)
    assert epsilon - 1e-9 < tree.epsilon <= epsilon
    strings = np.array([[255] * length, [0] * length], dtype=np.uint8)
    reports = tree.randomise(strings)
    assert tree.valid(reports).all() and reports["seed"].shape[1] == tree.octets("seed")
    assert read_protocol(tree.name, tree.parameters()) == tree
    nothing = tree.randomise(strings[:0])
    assert not tree.valid(nothing).size and tree.collect(nothing).sum() == 0
    assert tree.collect(reports).sum() == 2
    assert tree.hashes**tree.family.digits >= 256**length > tree.hashes ** (tree.family.digits - 1)
    assert tree.lengths[-1] == tree.family.digits and list(tree.lengths) == sorted(tree.lengths)


def test_variance_is_within_three_percent_of_the_best_hash():
    """A prime number of hashes costs little, up to the largest prime, which epsilon 5 asks for."""
    for epsilon in (0.5, 1, 2, 3, 4, 4.8):
        tree = PrefixTree.from_epsilon(epsilon, octets=6)
        nearest = round(tree.odds) + 1

        def variance(g, odds=tree.odds):
            return (odds + g - 1) ** 2 / (g - 1)

        assert variance(tree.hashes) <= F(103, 100) * variance(nearest)


@given(st.integers(2, 127), st.integers(1, 20), st.data())
def test_digits_are_those_of_the_number(base, length, data):
    strings = [data.draw(st.binary(min_size=length, max_size=length)) for _ in range(3)]
    m = next(m for m in range(1, 200) if base**m >= 256**length)
    rows = digits_of_octets(octets_of(strings, length), base, m).T.tolist()
    assert rows == [spelled(string, base, m) for string in strings]
    assert [octets_of_digits(row, base, length) for row in rows] == strings
    with pytest.raises(OverflowError):
        octets_of_digits([base - 1] * (m + 1), base, length)


def test_texts_are_cut_and_filled_up():
    tree = PrefixTree.from_epsilon(1, octets=3)
    rows = tree.encode(["ab", "abcdef", "ä€", b"\xff", ""])
    assert [bytes(row) for row in rows] == [b"ab\0", b"abc", b"\xc3\xa4\xe2", b"\xff\0\0", b"\0\0\0"]
    assert [text_of(bytes(row)) for row in rows] == ["ab", "abc", "ä\\xe2", "\\xff", ""]
    assert tree.encode([]).shape == (0, 3)
    with pytest.raises(InvalidArgument, match="text or bytes"):
        tree.encode([3])  # type: ignore[list-item]


@pytest.mark.parametrize(("hashes", "length"), [(2, 1), (3, 2), (7, 1), (7, 3)])
@pytest.mark.parametrize("pairs", [0, 1 << 27])
def test_every_continuation_is_counted_exactly(hashes, length, pairs, monkeypatch):
    """Against a walk over all reports, at every level, for some beginnings and all their continuations.

    One by one, and by the transform; the most deviations that rounding may be off by are 1e-4.
    """
    monkeypatch.setattr(words, "_WORDS", hashes**4)
    monkeypatch.setattr(words, "_STEPS", hashes**2)
    monkeypatch.setattr(words, "_PIECE", 70)
    monkeypatch.setattr(supports, "_PIECE", 100)
    monkeypatch.setattr(hitters, "_BUFFER", 150)
    monkeypatch.setattr(hitters, "_PAIRS", pairs)
    tree = PrefixTree(length=length, hashes=hashes, odds=F(5))
    reports = tree.randomise(np.arange(400 * length, dtype=np.int64).astype(np.uint8).reshape(400, length))
    seeds = tree.family.unpack(reports["seed"]).astype(np.int64)
    largest = spelled(b"\xff" * length, hashes, tree.family.digits)
    grown = Growth(
        family=tree.family, levels=tree.levels, largest=np.array(largest), p=tree.p, q=tree.q, candidates=16
    )
    slots = np.array(tree.levels.slots)
    while not grown.complete:
        place, about = grown.done, grown.word
        mine = slots[reports["level"]] == place

        def walk(x, place=place, about=about, mine=mine):
            y = word(tree, tree.levels.slots.index(place), x)
            return int(((np.array(y) @ seeds[: about.digits] % hashes == reports["value"]) & mine).sum())

        before = grown
        if about.kept:
            z, rows, size = grown._deviations([reports])
            assert size == mine.sum()
            for row, beginning in zip(rows, grown.beginnings.tolist(), strict=True):
                for ending in range(hashes**about.kept):
                    digits = [ending // hashes**i % hashes for i in range(about.kept - 1, -1, -1)]
                    wanted = (walk([*beginning, *digits]) - size / hashes) / math.sqrt(
                        size * (hashes - 1) / hashes**2
                    )
                    assert z[row, ending] == pytest.approx(wanted, abs=1e-4)
        grown = grown.longer([reports])
        assert len(grown.beginnings) <= 16 or len(tree.levels.lengths) == 1
        assert grown.beginnings.tolist() == sorted(grown.beginnings.tolist())
        assert grown.beginnings.tolist()[-1] <= largest[: about.length]
        kept = {tuple(row[: before.beginnings.shape[1]]) for row in grown.beginnings.tolist()}
        assert kept <= {tuple(row) for row in before.beginnings.tolist()}
    tests = slots[reports["level"]] >= len(tree.levels.lengths) - tree.levels.tests
    assert grown.counts.tolist() == [walk(x, mine=tests) for x in grown.beginnings.tolist()]


@pytest.mark.parametrize("prime", [2, 3, 7, 127])
def test_supports_of_long_strings(prime):
    """Sums of many digits, beyond a byte, are still counted modulo the prime."""
    generator = np.random.default_rng(3)
    strings = generator.integers(0, prime, (5, 90)).astype(np.uint8)
    seeds, value = generator.integers(0, prime, (90, 500)), generator.integers(0, prime, 500)
    counted = supports.supports_of_strings(prime, strings, seeds.astype(np.uint8), value.astype(np.uint8))
    assert counted.tolist() == ((strings.astype(np.int64) @ seeds - value) % prime == 0).sum(axis=1).tolist()


def test_the_transform_of_nothing():
    spectrum = Spectrum(5, 3)
    assert not spectrum.deviations().any() and spectrum.reports == 0


def test_the_best_are_kept(monkeypatch):
    """Against a full sort; if there are very many, by a sample, no more and not many fewer."""
    generator = np.random.default_rng(2)
    held = -generator.exponential(3, 3_000).astype(np.float32)
    shares = -generator.exponential(3, (70, 20)).astype(np.float32)
    rows = generator.integers(0, 70, 3_000)
    sums = (held[:, None] + shares[rows]).ravel()[:59_990]
    for at_once in (4096, 128):
        monkeypatch.setattr(hitters, "_ROWS", at_once)
        parent, ending, total = hitters._best(held, rows, shares, 500, 59_990)
        place = parent * 20 + ending
        assert (np.diff(place) > 0).all() and place[-1] < 59_990 and (sums[place] == total).all()
        assert len(place) == 500 and total.min() == np.sort(sums)[-500]
    assert len(hitters._best(held, rows, shares, 70_000, 59_990)[0]) == 59_990


def grown_to(scores, levels):
    tree = PrefixTree.from_epsilon(2, octets=6)
    return Growth(
        family=tree.family, levels=levels, p=tree.p, q=tree.q, candidates=16, largest=np.zeros(18, np.uint8),
        done=len(levels.lengths), beginnings=np.zeros((len(scores), 18), np.uint8), counts=None,
        scores=np.array(scores), sizes=(),
    )  # fmt: skip


def test_chances_of_an_error_add_up_and_are_shared_well():
    """No other way to share them out finds more of what is looked for, among those by a power of the chance
    that something is held; and what is likelier takes more."""
    grown = grown_to([-0.01] * 10 + [-3.0] * 10 + [-15.0] * 10_000, WordLevels.of(7, digits=18))
    shift, held = grown._shift(5), np.exp(grown.scores)  # five levels test

    def expected(chances):
        return (held * stats.norm.sf(stats.norm.isf(chances) - shift)).sum()

    for total in (0.2, 0.05, 1e-9):
        chances = grown._chances(total)
        assert total * (1 - 1e-9) < chances.sum() <= total and (np.diff(chances) <= 0).all()
        for power in np.linspace(0, 1.5, 16):
            other = held**power
            assert expected(chances) >= expected(total * other / other.sum())
    even = grown_to([0.0] * 50, WordLevels.of(7, digits=18))._chances(0.05)
    assert even == pytest.approx(np.full(50, 0.001), rel=1e-9)


def population(n, shares, length, tree):
    """The strings named in `shares`, and for the others random ones, which hardly any two share."""
    rows = np.random.default_rng(5).integers(0, 256, (n, length), dtype=np.uint8)
    start = 0
    for text, share in shares.items():
        stop = start + round(share * n)
        rows[start:stop] = tree.encode([text])
        start = stop
    return rows


@pytest.mark.soak
def test_what_many_hold_is_found(monkeypatch):
    """Shares of 5% and more of a hundred thousand, of 32 bits. False alarm below 1e-9: the least is
    13 deviations from zero where the fewest are asked, and no test takes more than 8. Power: a level,
    digit or seed that is read wrongly loses everything.
    """
    tree = PrefixTree.from_epsilon(3, octets=4)
    shares = {"anna": 0.2, "bern": 0.1, "annb": 0.05, "ä": 0.05}
    reports = tree.randomise(population(100_000, shares, 4, tree))
    calls = []

    def read(step):
        calls.append(step)
        return ({k: v[i : i + step] for k, v in reports.items()} for i in range(0, 100_000, step))

    found = tree.find(lambda: read(100_000), candidates=256)
    assert len(calls) == len(tree.levels.lengths)
    assert found.texts[:2] == ("anna", "bern") and set(shares) <= set(found.texts)
    assert found.reports == 100_000 and found.shares.reports < 60_000
    # Random strings of 32 bits are held by one person each at most: none can pass but by a false alarm,
    # whose chance, 1e-10, is asked for here.
    strict = tree.find(lambda: read(7_777), candidates=256, level=1 - 2e-10)
    assert set(strict.texts) == set(shares)
    for text, value, low, high in zip(
        strict.texts, strict.shares.values, strict.shares.low, strict.shares.high, strict=True
    ):
        assert low <= shares[text] <= high and low <= value <= high  # all hold but with chance 2e-10
    again = tree.find(lambda: read(1_001), candidates=256)
    assert again.strings == found.strings and (again.shares.values == found.shares.values).all()
    monkeypatch.setattr(hitters, "_PAIRS", 0)  # by the transform
    monkeypatch.setattr(hitters, "_FEWEST", 8)  # and giving up on most after a fifth of the test
    by_transform = tree.find(lambda: read(33_333), candidates=256, level=1 - 2e-10)
    assert by_transform.strings == strict.strings
    assert (by_transform.shares.values == strict.shares.values).all()


def test_estimates_and_deviations_are_those_of_local_hashing():
    """The last length alone; the deviation is the formula's. False alarm 1e-9, by normal quantiles of 7.
    Power: an estimate off by half of a share of one tenth."""
    tree = PrefixTree.from_epsilon(2, octets=3)
    reports = tree.randomise(population(60_000, {"abc": 0.3}, 3, tree))
    found = tree.find(lambda: [reports], candidates=64)
    assert found.texts[0] == "abc"
    n = int(tree.collect(reports)[-sum(tree.levels.weights[-2:]) :].sum())
    p, q = float(tree.p), float(tree.q)
    assert found.shares.reports == n
    f = float(found.shares.values[0])
    assert abs(f - 0.3) < 7 * found.shares.deviations[0] + 7 * math.sqrt(0.21 / n)
    wanted = math.sqrt((f * p * (1 - p) + (1 - f) * q * (1 - q)) / n) / (p - q)
    assert found.shares.deviations[0] == pytest.approx(wanted, rel=1e-9)


@pytest.mark.soak
def test_what_nobody_holds_is_hardly_ever_reported():
    """At level 0.8 a string that nobody holds is reported in at most a tenth of 60 surveys.

    False alarm 1e-9; power: a test that forgets how many strings were tested, which reports some always.
    """
    tree = PrefixTree.from_epsilon(2, octets=3)
    people = population(3_000, {"abc": 0.5}, 3, tree)
    held = {bytes(row) for row in people}
    wrong = 0
    for _ in range(60):
        reports = tree.randomise(people)
        wrong += not set(tree.find(lambda r=reports: [r], candidates=32, level=0.8).strings) <= held
    assert wrong <= stats.binom.isf(1e-9, 60, 0.1)


def test_forged_reports_lift_a_share_by_no_more_than_is_said():
    """The worst that forgers can do: reports of whole strings, all of which support one."""
    tree = PrefixTree.from_epsilon(2, octets=3)
    reports = tree.randomise(population(40_000, {"abc": 0.3}, 3, tree))
    honest = tree.find(lambda: [reports], candidates=64)
    forged = 2_000
    # The seed of zeros hashes every string to 0.
    lies = {
        "level": np.full(forged, len(tree.lengths) - 1),
        "seed": np.zeros((forged, tree.octets("seed")), dtype=np.uint8),
        "value": np.zeros(forged, dtype=np.int64),
    }
    assert tree.valid(lies).all()
    lied = tree.find(lambda: [reports, lies], candidates=64)
    lift = lied.shares.values[0] - honest.shares.values[0]
    assert lied.texts[0] == honest.texts[0] == "abc"
    assert lied.shares.reports == honest.shares.reports + forged
    assert 0 < lift <= forged * lied.one_report
    p, q, n = tree.p, tree.q, honest.shares.reports
    assert lied.one_report == pytest.approx(1 / float((n + forged) * (p - q)))
    share = honest.shares.values[0]
    count = (share * float(p - q) + float(q)) * n
    exact = ((count + forged) / (n + forged) - count / n) / float(p - q)
    assert lift == pytest.approx(exact, rel=1e-6)
    assert 0.5 < exact / (forged * lied.one_report) <= 1  # the bound is not idle


def test_without_reports_nothing_is_found():
    tree = PrefixTree.from_epsilon(2, octets=4)
    nothing = tree.find(list, candidates=64)
    assert nothing.strings == () and nothing.reports == 0 and nothing.one_report == math.inf
    one = tree.randomise(tree.encode(["abcd"]))
    assert tree.find(lambda: [one], candidates=64).strings == ()
    assert tree.find(lambda: [one, tree.randomise(tree.encode([]))], candidates=64).reports == 1


def test_what_no_phone_can_have_sent(short_steps):
    tree = short_steps
    good = tree.randomise(tree.encode(["a"] * 6))
    level = np.array([-1, len(tree.lengths), 2**62, 0, 0, 0])
    value = np.array([0, 0, 0, -1, 2, 2**62])
    assert not tree.valid({**good, "level": level, "value": value}).any()
    seed = np.array([[0b00010000], [0b00100000], [0b11111111], [0b11100000]], dtype=np.uint8)
    levels = np.array([0, 0, len(tree.lengths) - 1, 0])  # the first asks for three digits, the last for all
    flags = tree.valid({"level": levels, "seed": seed, "value": np.zeros(4, dtype=np.int64)})
    assert flags.tolist() == [False, True, True, True]
    # Such reports are left out, whatever they claim.
    mixed = {
        "level": np.append(good["level"], 99),
        "seed": np.vstack([good["seed"], np.uint8([[255]])]),
        "value": np.append(good["value"], 0),
    }
    assert tree.find(lambda: [mixed], candidates=64).reports == 6
    with pytest.raises(InvalidArgument, match="encode"):
        tree.randomise(np.array([1, 2, 3]))


def test_levels():
    assert WordLevels.of(7, digits=18).lengths == (6, 9, 12, 15, 18, 18, 18)
    assert [word.digits for word in WordLevels.of(7, digits=17).words] == [6, 9, 9, 9, 9, 17, 17]
    assert [word.kept for word in WordLevels.of(7, digits=17).words] == [6, 3, 3, 3, 2, 0, 0]
    assert WordLevels.of(7, digits=6).slots == (0,)
    for prime in (2, 3, 5, 7, 23, 31, 127):
        for digits in range(1, 60):
            levels = WordLevels.of(prime, digits=digits)
            assert levels.lengths[-1] == digits and sorted(levels.lengths) == list(levels.lengths)
            assert len(set(levels.lengths)) >= len(levels.lengths) - 2
            assert min(levels.weights) >= 1 and len(levels.weights) == len(levels.lengths)
            assert len(levels.slots) == sum(levels.weights) <= 1000
            assert all(word.kept + word.checks <= word.length for word in levels.words)
            assert levels.words[-1].digits == digits and prime ** levels.words[0].digits <= 2**26


def test_parameters_that_make_no_sense():
    for wrong in (
        {"length": 0},
        {"length": 65},
        {"hashes": 8},
        {"hashes": 131},
        {"hashes": 1},
        {"odds": F(1)},
    ):
        with pytest.raises(InvalidArgument):
            PrefixTree(**{"length": 3, "hashes": 7, "odds": F(3), **wrong})
