"""The client: exactly the law that each protocol claims, by enumerating every draw; what it refuses."""

from __future__ import annotations

import ast
import json
import os
import random
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import InvalidArgument
from sfumato.local import client
from sfumato.local.ballots import SubsetSelection, UnaryEncoding
from sfumato.local.examples import examples, replayed
from sfumato.local.geometry import ProjectiveGeometry
from sfumato.local.hadamard import HadamardResponse
from sfumato.local.hashing import LocalHashing
from sfumato.local.means import Duchi
from sfumato.local.piecewise import Hybrid, Piecewise
from sfumato.local.protocol import FrequencyProtocol, Protocol
from sfumato.local.questions import NumberIn, OneAnswer, SeveralOf, SurveyQuestion, YesNo
from sfumato.local.response import KaryResponse
from sfumato.local.sets import SetSelection, SeveralAnswers, UnarySets
from sfumato.local.stages import TwoStageResponse, TwoStageUnary
from sfumato.local.survey import Survey
from tests.local.laws import exact_law

FILE = Path(client.__file__)
THREE, HALF = Fraction(3), Fraction(1, 2)


def asked(question: SurveyQuestion, protocol: Protocol, epsilon: Any = 5, **limits: Any) -> dict[str, Any]:
    """Return the survey as the client reads it."""
    survey = Survey.plan("test", question, epsilon=epsilon, protocol=protocol, **limits)
    return client.load(survey.text.encode())


def fields(report: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(value for name, value in report.items() if name not in ("survey", "id"))


def law(survey: dict[str, Any], answer: Any, longest: int = 40) -> dict[Any, Fraction]:
    """Return the exact probabilities of an answer's reports."""
    found = exact_law(lambda below: fields(client.report(survey, answer, below=below)), longest)
    assert longest < 40 or sum(found.values()) == 1
    return found


def largest(laws: list[dict[Any, Fraction]]) -> Fraction:
    """Return the largest ratio of a report's probabilities under two answers; they have the same reports."""
    assert len({frozenset(one) for one in laws}) == 1
    return max(one[report] / other[report] for one in laws for other in laws for report in one)


def supporters(protocol: FrequencyProtocol, report: tuple[Any, ...]) -> set[int]:
    """Return what a report supports, asking the collector's half."""
    import numpy as np

    columns = {}
    for (name, kind), value in zip(protocol.fields.items(), report, strict=True):
        octets = np.frombuffer(bytes.fromhex(value), dtype=np.uint8)[None] if kind == "bits" else None
        columns[name] = np.array([value]) if octets is None else octets
    assert protocol.valid(columns).tolist() == [True]
    return set(np.flatnonzero(protocol.supports(protocol.collect(columns))).tolist())


SINGLES = [
    KaryResponse(size=4, odds=THREE),
    KaryResponse(size=2, odds=Fraction(5, 2)),
    UnaryEncoding(size=3, own=HALF, other=Fraction(1, 4)),
    UnaryEncoding(size=3, own=Fraction(2, 3), other=Fraction(1, 3)),
    SubsetSelection(size=5, odds=THREE, chosen=2),
    SubsetSelection(size=6, odds=Fraction(3, 2), chosen=3),
    LocalHashing(size=5, hashes=3, odds=THREE),
    LocalHashing(size=5, hashes=4, odds=THREE),
    LocalHashing(size=6, hashes=6, odds=Fraction(5)),
    HadamardResponse(size=5, odds=THREE),
]


@pytest.mark.parametrize("protocol", SINGLES, ids=lambda one: f"{one.name}-{one.size}")
def test_a_report_has_exactly_the_law_of_its_protocol(protocol: FrequencyProtocol) -> None:
    """Every draw there is: the largest ratio, and the chances p and q by which reports support answers."""
    survey = asked(OneAnswer(words="Which?", size=protocol.size), protocol)
    laws = [law(survey, answer) for answer in range(protocol.size)]
    assert largest(laws) == protocol.max_ratio
    support = {report: supporters(protocol, report) for report in laws[0]}
    for answer, one in enumerate(laws):
        for other in range(protocol.size):
            chance = sum(chance for report, chance in one.items() if other in support[report])
            assert chance == (protocol.p if other == answer else protocol.q)


def test_a_point_has_exactly_the_law_of_its_geometry() -> None:
    """Where all coordinates are drawn as 0 they are drawn again: after one try, what is left is the law."""
    protocol = ProjectiveGeometry(size=7, prime=2, dimension=3, odds=THREE)
    survey = asked(OneAnswer(words="Which?", size=7), protocol)
    support = {(point,): supporters(protocol, (point,)) for point in range(7)}
    for answer in range(7):
        found = law(survey, answer, longest=4)
        inside = {report: chance for report, chance in found.items() if answer in support[report]}
        assert set(inside.values()) == {protocol.p * Fraction(3, 4) / 3}  # a quarter is drawn again
        assert {found[one] for one in found if one not in inside} == {(1 - protocol.p) / 4}
    assert protocol.p / 3 / ((1 - protocol.p) / 4) == protocol.max_ratio == 3


SEVERAL = [
    SetSelection(size=4, most=2, odds=THREE, chosen=2),
    SetSelection(size=3, most=1, odds=Fraction(2), chosen=1),
    UnarySets(size=4, most=2, own=Fraction(2, 3), other=Fraction(1, 3)),
    SeveralAnswers(size=3, most=2, inner=KaryResponse(size=5, odds=THREE)),
    SeveralAnswers(size=3, most=2, inner=SubsetSelection(size=5, odds=THREE, chosen=2)),
]


@pytest.mark.parametrize("protocol", SEVERAL, ids=lambda one: f"{one.name}-{one.size}")
def test_sets_have_exactly_the_law_of_their_protocol(protocol: Any) -> None:
    survey = asked(SeveralOf(words="Which?", size=protocol.size, most=protocol.most), protocol)
    sets = [each for n in range(protocol.most + 1) for each in combinations(range(protocol.size), n)]
    laws = [law(survey, each) for each in sets]
    assert largest(laws) == protocol.max_ratio
    support = {report: supporters(protocol, report) for report in laws[0]}
    for held, one in zip(sets, laws, strict=True):
        for other in range(protocol.size):
            chance = sum(chance for report, chance in one.items() if other in support[report])
            assert chance == (protocol.p if other in held else protocol.q)
    everything = law(
        survey, range(protocol.size)
    )  # more than are heard: no report is likelier than it may be
    assert largest([*laws, everything]) == protocol.max_ratio


NUMBERS = [
    Duchi(low=Fraction(0), high=Fraction(10), odds=THREE),
    Piecewise(low=Fraction(0), high=Fraction(10), odds=THREE, outputs=11, window=3),
    Hybrid(low=Fraction(0), high=Fraction(10), odds=THREE, outputs=7, window=3, chance=Fraction(1, 3)),
]


@pytest.mark.parametrize("protocol", NUMBERS, ids=lambda one: one.name)
def test_numbers_have_exactly_the_law_of_their_protocol(protocol: Any) -> None:
    """No bias and the stated variance, as exact fractions, also between the points of the grid."""
    import numpy as np

    survey = asked(NumberIn(words="How many?", low=0, high=10), protocol)
    numbers = [Fraction(0), Fraction(10), Fraction(5), Fraction(17, 3), Fraction("0.1")]
    laws = [law(survey, number) for number in numbers]
    assert largest(laws) == protocol.max_ratio
    for number, one in zip(numbers, laws, strict=True):
        worth = {}
        for report in one:
            sums = protocol.sums(protocol.collect({"value": np.array(report)}))
            worth[report] = sums.total
        mean = sum(chance * worth[report] for report, chance in one.items())
        assert mean == number / 5 - 1
        square = sum(chance * worth[report] ** 2 for report, chance in one.items())
        exact = float((square - mean**2) * 25)
        assert protocol.variance(float(number), 1) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize(
    "protocol",
    [
        TwoStageResponse(size=3, permanent=THREE, instant=THREE),
        TwoStageUnary(size=2, own=HALF, other=Fraction(1, 4), if_set=Fraction(3, 4), if_unset=Fraction(1, 4)),
    ],
    ids=lambda one: one.name,
)
def test_two_days_cost_what_two_stages_say(protocol: Any) -> None:
    """The exact law of both days' reports together, of an answer that stays."""
    survey = asked(OneAnswer(words="Which?", size=protocol.size), protocol, cap=1)

    def days(answer: int, many: int) -> Callable[[Callable[[int], int]], Any]:
        def procedure(below: Callable[[int], int]) -> Any:
            memory: dict[str, Any] = {}
            return tuple(fields(client.report(survey, answer, memory, below=below)) for _ in range(many))

        return procedure

    one, two = (
        largest([exact_law(days(answer, many)) for answer in range(protocol.size)]) for many in (1, 2)
    )
    assert one == protocol.max_ratio < two < protocol.lifetime_ratio


def test_what_is_kept_is_sent_again_and_no_more_is_drawn_than_the_cap() -> None:
    """By value: three values, two draws. By the calendar: a draw every ten days, twice."""
    drawn: list[int] = []

    def below(bound: int) -> int:
        drawn.append(bound)
        return len(drawn) % bound

    question, protocol = OneAnswer(words="Which?", size=40), KaryResponse(size=40, odds=THREE)
    by_value = asked(question, protocol, cap=2)
    memory: dict[str, Any] = {}
    reports = [client.report(by_value, answer, memory, below=below) for answer in (3, 3, 9, 3, 20, 9, 20)]
    values = [report["value"] for report in reports]
    assert len(drawn) == 2 and values == [values[0]] * 2 + [values[2], values[0], values[0]] + [values[2]] * 2
    assert len({report["id"] for report in reports}) == 7
    drawn.clear()
    memory = json.loads(json.dumps(memory))  # what a phone stores
    assert client.report(by_value, 9, memory, below=below)["value"] == values[2] and not drawn
    calendar, memory = asked(question, protocol, cap=2, every=10), {}
    for day in range(50):
        client.report(calendar, day % 40, memory, day, below=below)
    assert len(drawn) == 2
    with pytest.raises(client.Refused, match="memory"):
        client.report(calendar, 3)


# -- surveys that change ----------------------------------------------------------------------

KEPT = [KaryResponse(size=2, odds=THREE), TwoStageResponse(size=2, permanent=Fraction(9), instant=THREE)]
ADULT = YesNo(words="Are you at least 18?")


def edited(survey: Survey, **changes: Any) -> dict[str, Any]:
    """Return the survey with other entries, as the client reads it."""
    return client.load(replace(survey, **changes, text="").text.encode())


def told(survey: dict[str, Any], answer: str, memory: dict[str, Any], below: Callable[[int], int]) -> Any:
    """Return what a phone sends of an answer, or that it refuses; a refusal leaves its memory alone."""
    before = json.dumps(memory)
    try:
        return fields(client.report(survey, answer, memory, 1, below))
    except client.Refused as refusal:
        assert json.dumps(memory) == before and "changed" in str(refusal)
        return "refused"


@pytest.mark.parametrize("protocol", KEPT, ids=lambda one: one.name)
@pytest.mark.parametrize("every", [None, 30])
def test_a_report_that_is_kept_answers_no_other_question(protocol: Any, every: int | None) -> None:
    """Exact laws: a changed survey gets the same from all people; a renamed one gets draws of its own.

    If a kept report were sent again, a second report that differs would prove that the answers differ.
    """
    survey = Survey.plan("s", ADULT, epsilon=3, protocol=protocol, cap=2, every=every)
    first = client.load(survey.text.encode())

    def both(answers: tuple[str, str], second: dict[str, Any]) -> dict[Any, Fraction]:
        def procedure(below: Callable[[int], int]) -> Any:
            memory: dict[str, Any] = {}
            return told(first, answers[0], memory, below), told(second, answers[1], memory, below)

        return exact_law(procedure)

    other = YesNo(words="Do you have HIV?")
    changed = [
        edited(survey, question=other),
        edited(survey, question=other, version=2),
        edited(survey, version=2),
        edited(survey, cap=1),
        edited(survey, epsilon=Fraction(4)),
        edited(survey, lifetime=Fraction(20)),
        client.load(Survey.plan("s", other, epsilon=3, protocol=KEPT[0]).text.encode()),  # asked only once
    ]
    for second in changed:
        for answers in product(("no", "yes"), repeat=2):
            assert {report for _, report in both(answers, second)} == {"refused"}
    renamed = edited(survey, name="another", question=other)
    alone = {answer: exact_law(lambda b, a=answer: told(renamed, a, {}, b)) for answer in ("no", "yes")}  # type: ignore[misc]
    for had, has in product(("no", "yes"), repeat=2):
        before = exact_law(lambda below, had=had: told(first, had, {}, below))  # type: ignore[misc]
        independent = {(a, b): before[a] * alone[has][b] for a in before for b in alone[has]}
        assert both((had, has), renamed) == independent
    laws = [both(answers, renamed) for answers in product(("no", "yes"), repeat=2)]
    assert largest(laws) == protocol.max_ratio**2  # one report for each survey: neither proves anything


def test_comments_may_change_and_the_order_of_entries() -> None:
    survey = Survey.plan("s", ADULT, epsilon=3, protocol=KEPT[0], cap=1)
    lines = survey.text.splitlines()
    at = lines.index("[survey]")
    lines[at + 1 : at + 3] = [f"{lines[at + 2]}  # a comment", "", f"  {lines[at + 1]}"]
    memory: dict[str, Any] = {}
    report = client.report(client.load(survey.text.encode()), "yes", memory)
    again = client.report(
        client.load("\n".join(lines).encode()), "yes", memory, below=lambda bound: bound // 0
    )
    assert fields(again) == fields(report) and again["survey"] != report["survey"]


def test_a_memory_of_another_format_is_refused_with_what_to_do(tmp_path: Path) -> None:
    """It does not say what was asked: nothing is sent of it, and nothing is drawn beside it."""
    survey = asked(ADULT, KEPT[0], cap=2)
    for kept in ({}, {"0": {"value": 1}}, {"1": {"value": 1}}):
        terms = {"terms": survey["terms"], "kept": kept, "last": None}
        (tmp_path / "memory.json").write_text(text := json.dumps({"test": terms}))
        for answer in ("no", "yes"):
            with (
                pytest.raises(client.Refused, match=r"another format.*new memory.*adds"),
                client.opened_memory(str(tmp_path / "memory.json")) as memory,
            ):
                client.report(survey, answer, memory, below=lambda bound: bound // 0)
        assert (tmp_path / "memory.json").read_text() == text
    client.report(survey, "yes", memory := {})
    client.report(survey, "yes", memory)  # the new one is refused no more


def test_a_memory_is_open_for_one_answer_at_a_time(tmp_path: Path) -> None:
    """Two that draw for one answer at once would send two reports, and the file would keep one of them.

    Two surveys that share a file are told apart in it, and neither forgets what the other one kept.
    """
    first, second = asked(ADULT, KEPT[0], cap=2), asked(ADULT, KEPT[0], cap=2, every=7)
    second["survey"]["name"] = "another"
    path = tmp_path / "memory.json"
    link = tmp_path / "link.json"
    link.symlink_to(path)
    for survey, name in ((first, path), (second, link)):
        with client.opened_memory(str(name)) as memory:
            told = client.report(survey, "yes", memory)
            for other in (path, link):
                with (
                    pytest.raises(client.Refused, match="open for another"),
                    client.opened_memory(str(other)),
                ):
                    pass
        with client.opened_memory(str(path)) as memory:
            assert fields(client.report(survey, "yes", memory, below=lambda bound: bound // 0)) == fields(
                told
            )
    assert set(json.loads(path.read_text())) == {"test", "another"} and link.is_symlink()
    before = path.read_text()
    with pytest.raises(ZeroDivisionError), client.opened_memory(str(path)) as memory:
        client.report(first, "no", memory, below=lambda bound: bound // 0)
    assert path.read_text() == before and set(tmp_path.iterdir()) == {path, link}


def test_a_memory_is_on_the_disk_before_anything_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file first, and then the folder that names it: or a power cut could bring the older one back."""
    synced: list[bool] = []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(stat.S_ISDIR(os.fstat(file).st_mode)))
    with client.opened_memory(str(tmp_path / "memory.json")):
        pass
    assert synced == [False, True]
    assert stat.S_IMODE((tmp_path / "memory.json").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "change",
    [
        {"last": None}, {"last": "7"}, {"last": ["1"]}, {"kept": []}, {"kept": {"1": "yes"}},
        {"kept": {"1": 1}}, {"kept": {}}, {"more": 1},
    ],
    ids=str,
)  # fmt: skip
def test_a_memory_that_was_edited_or_cut_off_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    path, survey = tmp_path / "memory.json", asked(ADULT, KEPT[0], cap=1)
    with client.opened_memory(str(path)) as memory:
        client.report(survey, "yes", memory)
    whole = path.read_text()
    kept = json.loads(whole)
    kept["test"] |= change
    for text in (json.dumps(kept), whole[:-1], "", "[]", json.dumps({"test": 1})):
        path.write_text(text)
        with (
            pytest.raises(client.Refused, match="afresh"),
            client.opened_memory(str(path)) as memory,
        ):
            client.report(survey, "no", memory)
        assert path.read_text() == text


# -- what a port needs ------------------------------------------------------------------------


def test_it_is_one_file_of_the_standard_library(tmp_path: Path) -> None:
    """Copied away, without site packages and without this package, it makes a report."""
    tree = ast.parse(FILE.read_text())
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    modules |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {module.split(".")[0] for module in modules} <= sys.stdlib_module_names
    alone = tmp_path / "client.py"
    alone.write_bytes(FILE.read_bytes())
    survey = Survey.plan(
        "s", YesNo(words="Really?"), epsilon=1, protocol=KaryResponse.from_epsilon(1, size=2)
    )
    survey.write(tmp_path / "survey.toml")
    command = [sys.executable, "-I", "-S", str(alone), str(tmp_path / "survey.toml")]
    told = subprocess.run([*command, "yes"], capture_output=True, text=True, check=True)
    assert json.loads(told.stdout)["survey"] == survey.fingerprint
    wrong = subprocess.run([*command, "perhaps"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 1 and wrong.stdout == "" and "perhaps" not in wrong.stderr


def test_a_port_that_draws_anew_every_day_is_told() -> None:
    """Examples of a repeated survey are of several days: what is kept must come again, and only there."""
    kept = TwoStageResponse(size=4, permanent=Fraction(9), instant=THREE)
    for protocol in (KaryResponse(size=4, odds=THREE), kept):
        survey = Survey.plan("s", OneAnswer(words="Which?", size=4), epsilon=5, protocol=protocol, cap=2)
        data = survey.text.encode()
        (example,) = examples(data, [1], 1)
        assert [one["day"] for one in example["reports"]] == [0, 0, 1, 2, 2] * 4
        assert len(example["draws"]) == 2 + 0 + 2 + 1 + (20 if protocol is kept else 0)
        assert replayed(data, example) == example["reports"]
        published, comment, *_ = example["files"]
        fresh = example["draws"][1:2] if protocol is kept else []
        assert published == survey.text and len(example["refused"]) == 3
        for text in (published, comment):
            with pytest.raises(InvalidArgument, match="has changed"):
                replayed(data, {**example, "draws": example["draws"] + fresh, "refused": [text]})
        with pytest.raises(Exception, match="draw"):
            replayed(data, {**example, "draws": [*example["draws"], *example["draws"]]})


@pytest.mark.parametrize(
    ("every", "wrong"),
    [
        (None, {"cap": 9}), (None, {"every": 1}), (None, {"every": 14}),
        (7, {"cap": 9}), (7, {"every": 1}), (7, {"every": 14}), (7, {"every": None}),
    ],
    ids=str,
)  # fmt: skip
def test_a_port_that_keeps_reports_by_another_rule_is_told(
    every: int | None, wrong: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps more reports than the cap, or by another calendar, or by the calendar instead of by value."""
    question, protocol = OneAnswer(words="Which?", answers=("a", "b", "c")), KaryResponse(size=3, odds=THREE)
    survey = Survey.plan("s", question, epsilon=5, protocol=protocol, cap=5, every=every)
    data, right = survey.text.encode(), client.report
    found = list(examples(data, ["a", "b"], 1))
    assert [replayed(data, example) for example in found] == [example["reports"] for example in found]

    def port(asked: dict[str, Any], *rest: Any) -> Any:
        limits = {key: value for key, value in {**asked["limits"], **wrong}.items() if value is not None}
        return right({**asked, "limits": limits}, *rest)

    monkeypatch.setattr(client, "report", port)
    for example in found:
        with pytest.raises(InvalidArgument, match="draw"):
            replayed(data, example)


def every_protocol() -> Iterator[tuple[SurveyQuestion, Protocol, Any]]:
    for single in SINGLES:
        yield OneAnswer(words="Which?", size=single.size), single, 1
    for several in SEVERAL:
        yield SeveralOf(words="Which?", size=several.size, most=several.most), several, [0, 2]  # type: ignore[attr-defined]
    for number in NUMBERS:
        yield NumberIn(words="How many?", low=0, high=10), number, "3.7"


def test_examples_are_reproduced_draw_by_draw() -> None:
    """And only so: a port that makes other draws, or other reports of them, is told."""
    for question, protocol, answer in every_protocol():
        data = Survey.plan("s", question, epsilon=5, protocol=protocol).text.encode()
        for example in json.loads(json.dumps(list(examples(data, [answer], 3)))):
            assert replayed(data, example) == example["reports"]
            if example["draws"]:
                with pytest.raises(Exception, match="another draw"):
                    replayed(data, {**example, "draws": [[n + 1, x] for n, x in example["draws"]]})


# -- what it refuses --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('epsilon = "2"', 'epsilon = "1"'),  # promises less than it costs
        ("size = 5\nodds", "size = 2\nodds"),  # an answer beyond the protocol's would be told as it is
        ('name = "response"', 'name = "nothing"'),
        ('odds = "', 'odds = "-'),
        ('name = "response"', 'name = "duchi"'),
        ("[protocol]", "[protocols]"),
        ('kind = "one_of"', 'kind = "one_from"'),
    ],
)
def test_a_survey_that_breaks_its_promise_is_refused(old: str, new: str) -> None:
    protocol = KaryResponse.from_epsilon(2, size=5)
    text = Survey.plan("s", OneAnswer(words="Which?", size=5), epsilon=2, protocol=protocol).text
    client.load(text.encode())
    assert old in text
    with pytest.raises(client.Refused):
        client.load(text.replace(old, new).encode())


@pytest.mark.parametrize(
    ("protocol", "old", "new"),
    [
        (ProjectiveGeometry(size=5, prime=5, dimension=2, odds=THREE), "prime = 5", "prime = 6"),
        (ProjectiveGeometry(size=5, prime=5, dimension=2, odds=THREE), "prime = 5", "prime = 2"),
        (SubsetSelection(size=5, odds=THREE, chosen=2), "chosen = 2", "chosen = 5"),
        (UnaryEncoding(size=5, own=HALF, other=Fraction(1, 4)), 'other = "1/4"', 'other = "0"'),
        (UnaryEncoding(size=5, own=HALF, other=Fraction(1, 4)), 'own = "1/2"', 'own = "1"'),
        (LocalHashing(size=5, hashes=3, odds=THREE), "hashes = 3", "hashes = 1"),
    ],
)
def test_parameters_that_break_a_proof_are_refused(protocol: Protocol, old: str, new: str) -> None:
    text = Survey.plan("s", OneAnswer(words="Which?", size=5), epsilon=5, protocol=protocol).text
    client.load(text.encode())
    assert old in text
    with pytest.raises(client.Refused):
        client.load(text.replace(old, new).encode())


HEAD = 'name = "x"\nversion = 1\nquestion = "q?"\n'
ANSWERS = HEAD + 'answers = ["a", "b", "c"]\n'
HOSTILE = {
    "the kept report of two stages would be sent as it is": (
        HEAD + 'kind = "yes_no"\nepsilon = "0.1"',
        'name = "two-stage-response"\nsize = 2\npermanent = "1000000000"\ninstant = "11/10"',
    ),
    "the same with bits": (
        HEAD + 'kind = "yes_no"\nepsilon = "0.5"',
        (
            'name = "two-stage-unary"\nsize = 2\nown = "999999/1000000"\nother = "1/1000000"\n'
            'if_set = "11/20"\nif_unset = "9/20"'
        ),
    ),
    "two stages inside, whose fresh coins nobody would toss": (
        ANSWERS + 'kind = "several_of"\nmost = 1\nepsilon = "0.1"',
        (
            'name = "several"\nsize = 3\nmost = 1\ninner = "two-stage-response"\ninner_size = 4\n'
            'inner_permanent = "1000000000"\ninner_instant = "11/10"'
        ),
    ),
    "one answer is told as it is, and there are two": (
        HEAD + 'kind = "yes_no"\nsize = 1\nepsilon = "0.1"',
        'name = "response"\nsize = 1\nodds = "11/10"',
    ),
    "a power of nothing": (
        HEAD + 'kind = "yes_no"\nmost = 0\nepsilon = "0.1"',
        'name = "unary"\nsize = 2\nmost = 0\nown = "999999/1000000"\nother = "1/1000000"',
    ),
    "fewer than none": (
        HEAD + 'kind = "several_of"\nsize = 2\nmost = -1\nepsilon = "0.1"',
        'name = "several"\nsize = 2\nmost = -1\ninner = "response"\ninner_size = 1\ninner_odds = "11/10"',
    ),
    "priced by one name and drawn by another": (
        ANSWERS + 'kind = "several_of"\nmost = 1\nepsilon = "0.1"',
        (
            'name = "several"\nsize = 3\nmost = 1\ninner = "unary"\ninner_name = "response"\ninner_size = 4\n'
            'inner_odds = "11/10"\ninner_own = "999999/1000000"\ninner_other = "1/1000000"'
        ),
    ),
    "a seed as long as the text": (
        HEAD + 'kind = "text"\nlength = -1\nepsilon = "1"',
        'name = "prefixes"\nlength = -1\nhashes = 3\nodds = "2"\nlengths = [1]\nwords = [1]',
    ),
    "a beginning longer than the text": (
        HEAD + 'kind = "text"\nlength = 1\nepsilon = "1"',
        'name = "prefixes"\nlength = 1\nhashes = 3\nodds = "2"\nlengths = [99]\nwords = [99]',
    ),
    "a word longer than its beginning": (
        HEAD + 'kind = "text"\nlength = 2\nepsilon = "1"',
        'name = "prefixes"\nlength = 2\nhashes = 3\nodds = "2"\nlengths = [2]\nwords = [3]',
    ),
    "a word of nothing new": (
        HEAD + 'kind = "text"\nlength = 2\nepsilon = "1"',
        'name = "prefixes"\nlength = 2\nhashes = 3\nodds = "2"\nlengths = [2, 8]\nwords = [2, 6]',
    ),
    "negative weights": (
        HEAD + 'kind = "yes_no"\nepsilon = "9"',
        'name = "two-stage-response"\nsize = 2\npermanent = "-1"\ninstant = "2"\n[limits]\ncap = 1',
    ),
    "a lifetime that costs more than it promises": (
        HEAD + 'kind = "yes_no"\nepsilon = "0.1"',
        (
            'name = "two-stage-response"\nsize = 2\npermanent = "1000000000"\ninstant = "11/10"\n'
            '[limits]\ncap = 1\nlifetime = "1"'
        ),
    ),
    "a lifetime without a promise": (
        HEAD + 'kind = "yes_no"\nepsilon = "2"',
        'name = "response"\nsize = 2\nodds = "3"\n[limits]\ncap = 2',
    ),
    "no day at all": (
        HEAD + 'kind = "yes_no"\nepsilon = "2"',
        'name = "response"\nsize = 2\nodds = "3"\n[limits]\ncap = 2\nevery = 0\nlifetime = "9"',
    ),
    "endless draws": (
        HEAD + 'kind = "yes_no"\nepsilon = "2"',
        'name = "response"\nsize = 2\nodds = "3"\n[limits]\ncap = inf\nlifetime = "9"',
    ),
    "a misspelt cap": (
        HEAD + 'kind = "yes_no"\nepsilon = "2"',
        'name = "response"\nsize = 2\nodds = "3"\n[limitz]\ncap = 2',
    ),
    "endless digits": (
        HEAD + 'kind = "yes_no"\nepsilon = "1e99999999"',
        'name = "response"\nsize = 2\nodds = "3"',
    ),
    "endless odds": (
        HEAD + 'kind = "yes_no"\nepsilon = "2"',
        'name = "response"\nsize = 2\nodds = "1e99999999"',
    ),
    "odds beyond floats": (
        HEAD + 'kind = "yes_no"\nepsilon = "2"',
        'name = "response"\nsize = 2\nodds = inf',
    ),
    "an endless geometry": (
        HEAD + 'kind = "one_of"\nsize = 5\nepsilon = "2"',
        'name = "geometry"\nsize = 5\nprime = 3\ndimension = 1000000000\nodds = "3"',
    ),
    "endless powers": (
        HEAD + 'kind = "several_of"\nsize = 1000000000\nmost = 1000000000\nepsilon = "2"',
        'name = "unary_set"\nsize = 1000000000\nmost = 1000000000\nown = "2/3"\nother = "1/3"',
    ),
    "endless bits": (
        HEAD + 'kind = "one_of"\nsize = 1000000000000\nepsilon = "2"',
        'name = "unary"\nsize = 1000000000000\nown = "1/2"\nother = "1/4"',
    ),
    "an endless text": (
        HEAD + 'kind = "text"\nlength = 100000000\nepsilon = "2"',
        'name = "prefixes"\nlength = 100000000\nhashes = 3\nodds = "2"\nlengths = [1]\nwords = [1]',
    ),
    "numbers whose range is nowhere": (
        HEAD + 'kind = "number"\nlow = "1"\nhigh = "0"\nepsilon = "2"',
        'name = "duchi"\nlow = "1"\nhigh = "0"\nodds = "2"',
    ),
    "answers that are alike": (
        HEAD + 'answers = ["a", "a"]\nkind = "one_of"\nepsilon = "2"',
        'name = "response"\nsize = 2\nodds = "3"',
    ),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_file_is_refused_by_both_halves(what: str) -> None:
    """Each of these would tell the truth, or more than it promises, or never end."""
    head, protocol = HOSTILE[what]
    text = f"[survey]\n{head}\n[protocol]\n{protocol}\n"
    with pytest.raises(client.Refused):
        client.load(text.encode())
    if what not in (
        "a lifetime without a promise",
        "endless bits",
    ):  # the collector's half completes, or waits
        with pytest.raises(InvalidArgument):
            Survey.parse(text)


def test_what_the_client_takes_the_collector_takes_at_no_higher_price() -> None:
    """4,000 files with entries changed at random: what passes has a ratio that both halves agree on."""
    texts = [Survey.plan("s", question, epsilon=5, protocol=one).text for question, one in _files()]
    source, passed = random.Random(7), 0
    for _ in range(4000):
        lines = source.choice(texts).splitlines()
        for _ in range(source.choice((1, 1, 2))):
            at = source.randrange(len(lines))
            key, equals, value = lines[at].partition(" = ")
            other = source.choice(lines).partition(" = ")[2] or "1"
            lines[at] = (
                source.choice(
                    [
                        f"{key} = {other}",
                        f"{key} = {source.choice((0, 1, 2, 3, -1, 7))}",
                        "",
                        f'{key} = "{source.choice((1, 2, 3))}/2"',
                        f"{value} = {key}",
                        lines[at],
                    ]
                )
                if equals
                else lines[at]
            )
        text = "\n".join(lines)
        try:
            survey = client.load(text.encode())
        except client.Refused:
            continue
        passed += 1
        found = Survey.parse(text)
        bound = client._max_ratio(survey["protocol"])
        assert found.protocol.max_ratio <= bound or found.protocol.size == 1  # type: ignore[attr-defined]
        assert bound <= Fraction(149)  # e^5
    assert passed > 200


def _files() -> Iterator[tuple[SurveyQuestion, Protocol]]:
    for question, protocol, _ in every_protocol():
        yield question, protocol


@pytest.mark.parametrize("data", [b"", b"\xff", b"[survey", b"survey = 1", b"[survey]\n[protocol]\n"])
def test_what_is_no_survey_is_refused(data: bytes) -> None:
    with pytest.raises(client.Refused):
        client.load(data)


@pytest.mark.parametrize("answer", ["", "5", 5, -1, None, 2.5, ["a"], True, "a ", {}])
def test_an_answer_that_is_none_is_refused_and_not_repeated(answer: Any) -> None:
    survey = asked(OneAnswer(words="Which?", answers=("a", "b")), KaryResponse.from_epsilon(1, size=2))
    with pytest.raises(client.Refused) as refusal:
        client.report(survey, answer)
    assert "answers" in str(refusal.value) or "kind" in str(refusal.value)
    number = asked(NumberIn(words="How many?", low=0, high=1), Duchi.from_epsilon(1, low=0, high=1))
    for wrong in ("x", None, float("nan"), float("inf"), [1]):
        with pytest.raises(client.Refused):
            client.report(number, wrong)
