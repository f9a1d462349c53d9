"""Survey files: what is written is read again, what is not meant is refused; bytes make the fingerprint."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidArgument
from sfumato.local import client
from sfumato.local.questions import NumberIn, OneAnswer, SeveralOf, SurveyQuestion, Text, YesNo
from sfumato.local.response import KaryResponse
from sfumato.local.stages import TwoStageResponse
from sfumato.local.survey import Survey

QUESTIONS = [
    YesNo(words="Really?"),
    OneAnswer(
        words="Which?", answers=("a", "b, c", 'd "e"', "é\N{SNOWMAN}", "back\\slash", "line\nbreak", "\x7f")
    ),
    OneAnswer(words="Which?", size=70_000),
    SeveralOf(words="Which?", answers=("a", "b", "c"), most=2),
    NumberIn(words="How many?", low=-0.5, high=Fraction(1, 3)),
    Text(words="What?", length=4),
]
SURVEY = Survey.plan(
    "s", OneAnswer(words="Which?", size=5), epsilon=2, protocol=KaryResponse.from_epsilon(2, size=5)
)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda one: one.kind)
@pytest.mark.parametrize("epsilon", [0.25, 1, 3.5])
def test_what_is_written_is_read_again(question: SurveyQuestion, epsilon: float, tmp_path: Path) -> None:
    """By both halves: and the file's own bytes make the fingerprint."""
    survey = Survey.plan("täglich", question, epsilon=epsilon, honest=500)
    survey.write(tmp_path / "survey.toml")
    data = (tmp_path / "survey.toml").read_bytes()
    assert Survey.read(tmp_path / "survey.toml") == survey
    assert survey.fingerprint == hashlib.sha256(data).hexdigest()[:32] == client.load(data)["fingerprint"]
    assert survey.protocol.max_ratio <= Fraction(10) ** 10 and survey.protocol.epsilon <= epsilon


@settings(max_examples=60, deadline=None)
@given(
    st.text(min_size=1).filter(str.strip), st.lists(st.text(min_size=1), min_size=2, max_size=5, unique=True)
)
def test_any_words_survive(words: str, answers: list[str]) -> None:
    try:
        survey = Survey.plan("s", OneAnswer(words=words, answers=tuple(answers)), epsilon=1)
    except UnicodeEncodeError:
        return  # a lone surrogate is no text
    assert Survey.parse(survey.text) == survey
    assert client.load(survey.text.encode())["survey"]["answers"] == answers


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ('epsilon = "2"', 'epsilon = "1.9"', "survey.epsilon"),
        ('epsilon = "2"', 'epsilon = "two"', "survey.epsilon"),
        ('epsilon = "2"', "epsilon = -1", "survey.epsilon"),
        ('epsilon = "2"\n', "", "survey.epsilon"),
        ("version = 1", "version = 0", "survey.version"),
        ("version = 1", 'version = "1"', "survey.version"),
        ('name = "s"', 'name = ""', "survey.name"),
        ('question = "Which?"', 'question = ""', "question"),
        ('kind = "one_of"', 'kind = "any"', "kind"),
        ('kind = "one_of"\nsize = 5', 'kind = "one_of"', "size"),
        ('kind = "one_of"\nsize = 5', 'kind = "one_of"\nsize = 6', "protocol"),
        ('kind = "one_of"\nsize = 5', 'kind = "yes_no"\nsize = 5', "survey"),
        ('name = "response"', 'name = "duchi"', "protocol.low"),
        ('name = "response"', 'name = "hadamard"\nrows = 8', "protocol.rows"),
        ('name = "response"\n', "", "protocol"),
        ("size = 5\nodds", 'size = "5"\nodds', "protocol.size"),
        ('odds = "', 'odds = "x', "protocol.odds"),
        ("reports = 10000000", "reports = 0", "limits.reports"),
        ("reports = 10000000", "report = 5", "report"),
        ("[limits]", "[limit]", "limit"),
        ("reports = 10000000", "every = 3", "limits.cap"),
        ("[survey]", "[survey", "survey"),
    ],
)
def test_what_is_not_meant_is_refused(old: str, new: str, place: str) -> None:
    assert old in SURVEY.text
    with pytest.raises(InvalidArgument) as refusal:
        Survey.parse(SURVEY.text.replace(old, new, 1))
    assert refusal.value.place == place


def test_a_changed_byte_is_another_survey() -> None:
    changed = Survey.parse(SURVEY.text + "# a remark\n")
    assert changed.fingerprint != SURVEY.fingerprint and changed.protocol == SURVEY.protocol
    assert replace(SURVEY, version=2, text="").fingerprint != SURVEY.fingerprint


def test_a_repeated_survey_says_what_a_lifetime_costs() -> None:
    once = KaryResponse(size=2, odds=Fraction(3))
    survey = Survey.plan("s", YesNo(words="Really?"), epsilon=1.1, protocol=once, cap=4, every=30)
    assert float(survey.lifetime or 0) == pytest.approx(4 * 1.0986122886681098) and SURVEY.lifetime is None
    by_value = Survey.plan("s", YesNo(words="Really?"), epsilon=1.1, protocol=once, cap=4)
    assert float(by_value.lifetime or 0) == pytest.approx(2 * 1.0986122886681098)  # there are two values
    with pytest.raises(InvalidArgument, match="promises"):
        Survey.plan("s", YesNo(words="Really?"), epsilon=1.1, protocol=once, cap=2, lifetime=2)
    kept = TwoStageResponse(size=2, permanent=Fraction(3), instant=Fraction(3))
    with pytest.raises(InvalidArgument, match="cap"):
        Survey.plan("s", YesNo(words="Really?"), epsilon=1, protocol=kept)
    staged = Survey.plan("s", YesNo(words="Really?"), epsilon=1, protocol=kept, cap=1)
    assert float(staged.lifetime or 0) == pytest.approx(1.0986122886681098) and staged.protocol.epsilon < 0.6


@pytest.mark.parametrize(
    "make",
    [
        lambda: OneAnswer(words="Which?", answers=("a", "a")),
        lambda: OneAnswer(words="Which?", answers=("",)),
        lambda: OneAnswer(words="Which?", answers=("a", "b"), size=3),
        lambda: OneAnswer(words="Which?"),
        lambda: SeveralOf(words="Which?", answers=("a", "b"), most=3),
        lambda: NumberIn(words="How many?", low=1, high=1),
        lambda: NumberIn(words="How many?", low="x", high=1),  # type: ignore[arg-type]
        lambda: Text(words="What?", length=0),
        lambda: YesNo(words=" "),
    ],
)
def test_questions_without_sense_are_refused(make: Any) -> None:
    with pytest.raises(InvalidArgument):
        make()
