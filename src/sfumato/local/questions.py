"""Questions: what a survey asks, and which answers there are."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar

from sfumato.core.arguments import Number, count
from sfumato.errors import InvalidArgument
from sfumato.local.rounding import bounds_of

__all__ = [
    "NumberIn", "OneAnswer", "SeveralOf", "SurveyQuestion", "Text", "YesNo", "read_question", "written_ratio",
]  # fmt: skip

_LARGEST_LIST = 1_000_000  # answers with names; more of them are numbered


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyQuestion:
    """What is asked, in the words that a respondent reads."""

    words: str
    kind: ClassVar[str]

    def __post_init__(self) -> None:
        if not isinstance(self.words, str) or not self.words.strip():
            raise InvalidArgument(
                "a question needs words", place="question", hints=("say what respondents are asked",)
            )

    def domain(self) -> dict[str, Any]:
        """Return what a survey file says about the answers; a list of them says how many there are."""
        told = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "words"}
        if "answers" in told:
            told["answers"] = list(told["answers"])
            del told["size" if told["answers"] else "answers"]
        return {name: str(value) if isinstance(value, Fraction) else value for name, value in told.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class YesNo(SurveyQuestion):
    """Answered by no or yes.

    >>> YesNo(words="Have you ever cheated in an exam?").answers
    ('no', 'yes')
    """

    kind: ClassVar[str] = "yes_no"
    answers: ClassVar[tuple[str, ...]] = ("no", "yes")
    size: ClassVar[int] = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class OneAnswer(SurveyQuestion):
    """Answered by exactly one of the listed answers; or, without a list, by a number below `size`.

    >>> OneAnswer(words="Which bus?", answers=("1", "7", "23")).size
    3
    """

    answers: tuple[str, ...] = ()
    size: int = 0

    kind: ClassVar[str] = "one_of"

    def __post_init__(self) -> None:
        SurveyQuestion.__post_init__(self)
        given: Any = self.answers
        if isinstance(given, str):
            raise InvalidArgument("answers are a list of texts", place="answers", hints=("('yes', 'no')",))
        object.__setattr__(self, "answers", tuple(self.answers))
        _check_list(self.answers)
        object.__setattr__(self, "size", count(self.size or len(self.answers), "size"))
        if self.answers and len(self.answers) != self.size:
            raise InvalidArgument(
                "size must be the number of answers", place="size", hints=("leave it out: the list says it",)
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class SeveralOf(OneAnswer):
    """Answered by any number of them; at most `most` are reported.

    >>> SeveralOf(words="Which languages?", answers=("Dutch", "French", "German"), most=2).most
    2
    """

    most: int

    kind: ClassVar[str] = "several_of"

    def __post_init__(self) -> None:
        OneAnswer.__post_init__(self)
        if count(self.most, "most") > self.size:
            raise InvalidArgument(
                "most must be at most the number of answers", place="most", hints=(f"give {self.size}",)
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberIn(SurveyQuestion):
    """Answered by a number; one outside of `low` to `high` counts as the nearer bound.

    >>> NumberIn(words="How many hours?", low=0, high=24).high
    Fraction(24, 1)
    """

    low: Number
    high: Number

    kind: ClassVar[str] = "number"

    def __post_init__(self) -> None:
        SurveyQuestion.__post_init__(self)
        low, high = bounds_of(written_ratio(self.low, "low"), written_ratio(self.high, "high"))
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Text(SurveyQuestion):
    """Answered by a text; its first `length` bytes in UTF-8 count, and common texts are found.

    >>> Text(words="Which word?", length=4).length
    4
    """

    length: int = 6

    kind: ClassVar[str] = "text"

    def __post_init__(self) -> None:
        SurveyQuestion.__post_init__(self)
        if count(self.length, "length") > 64:
            raise InvalidArgument(
                "length must be at most 64 bytes",
                place="length",
                hints=("a short prefix is found more surely",),
            )


_KINDS: dict[str, type[SurveyQuestion]] = {
    kind.kind: kind for kind in (YesNo, OneAnswer, SeveralOf, NumberIn, Text)
}


def read_question(kind: Any, words: Any, domain: Mapping[str, Any]) -> SurveyQuestion:
    """Return the question that a survey file describes."""
    if kind not in _KINDS:
        raise InvalidArgument(
            "a survey asks a question of an unknown kind",
            place="kind",
            hints=(f"it is one of {', '.join(_KINDS)}",),
        )
    try:
        return _KINDS[kind](words=words, **domain)
    except TypeError:
        known = [name for name in _KINDS[kind].__dataclass_fields__ if name != "words"]
        raise InvalidArgument(
            f"the answers of a {kind} question are not described as they should be",
            place="survey",
            hints=(f"they are described by {', '.join(known) or 'nothing else'}",),
        ) from None


def _check_list(answers: tuple[str, ...]) -> None:
    if len(answers) > _LARGEST_LIST:
        raise InvalidArgument(
            f"a list has at most {_LARGEST_LIST:,} answers",
            place="answers",
            hints=("number them, and give size instead",),
        )
    if not all(isinstance(answer, str) and answer for answer in answers):
        raise InvalidArgument("answers are texts that are not empty", place="answers")
    if len({unicodedata.normalize("NFC", answer) for answer in answers}) != len(answers):
        raise InvalidArgument("an answer is listed twice", place="answers", hints=("name each of them once",))


def written_ratio(value: Any, place: str) -> Any:
    """Read '3/4' or '0.75'; numbers are left as they are, and anything long is no number."""
    if not isinstance(value, str):
        return value
    try:
        if len(value) > 100 or "e" in value.lower():
            raise ValueError("too long to be meant")
        return Fraction(value)
    except (ValueError, ZeroDivisionError):
        raise InvalidArgument(
            "this is not a number", place=place, hints=("write it out: 0.5, or '3/4'",)
        ) from None
