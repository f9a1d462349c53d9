"""A survey: one question, one protocol, one promise, in a published file that binds both sides.

The file is `survey.toml`. Its fingerprint, a hash of its very bytes, is in every report: what was
answered under another version is not counted. All that decides about a respondent's privacy is in
it, as integers and exact ratios, and both halves refuse a file that promises less than it costs.
"""

from __future__ import annotations

import hashlib
import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from sfumato.core.arguments import Number, budget_quantity, count
from sfumato.core.exponential import exp_below, log_above
from sfumato.errors import InvalidArgument
from sfumato.local import client
from sfumato.local.protocol import Protocol
from sfumato.local.questions import (
    OneAnswer,
    SeveralOf,
    SurveyQuestion,
    YesNo,
    read_question,
    written_ratio,
)  # fmt: skip
from sfumato.local.registry import read_protocol

if TYPE_CHECKING:
    from sfumato.advise.advice import Advice, AdviceOptions

__all__ = ["Survey"]

_REPORTS = 10_000_000
_LIMITS = ("reports", "honest", "cap", "every", "lifetime")
_SIXTH = 10**6
_MOST = 100
_FIRST_LINES = (
    "# A survey in which every answer is randomised before it leaves the respondent's hands.\n"
    "# Published as it is: a single changed byte makes it another survey, whose reports are counted apart.\n"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What is asked and how it is answered.

    `reports` is how many are counted at most, `honest` how many are sure to be sent by people who keep to
    the protocol (for shuffling), `text` the file. `cap` is how many reports of one person are ever drawn
    from their answers, None where everyone is asked once; they are kept by value or, with `every`, drawn
    anew every `every` days (`longitudinal`). `lifetime` is the epsilon promised of all of them together:
    between any two lives with `every`; kept by value, between lives in which the same days have the same
    value as each other, whichever it is. Unless given, it is what the cap makes it.

    >>> survey = Survey.plan("cheating", YesNo(words="Have you ever cheated in an exam?"), epsilon=1)
    >>> survey.protocol.name, round(survey.protocol.epsilon, 6)
    ('response', 1.0)
    >>> Survey.parse(survey.text) == survey
    True
    """

    name: str
    version: int
    question: SurveyQuestion
    epsilon: Fraction
    protocol: Protocol
    reports: int = _REPORTS
    honest: int | None = None
    cap: int | None = None
    every: int | None = None
    lifetime: Fraction | None = None
    text: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip() or len(self.name) > 200:
            raise InvalidArgument("a survey needs a short name", place="survey.name")
        object.__setattr__(self, "version", count(self.version, "survey.version"))
        object.__setattr__(self, "reports", count(self.reports, "limits.reports"))
        for limit in ("honest", "cap", "every"):
            if getattr(self, limit) is not None:
                object.__setattr__(self, limit, count(getattr(self, limit), f"limits.{limit}"))
        if self.cap is None and (self.every is not None or self.protocol.name.startswith("two-stage")):
            raise InvalidArgument(
                "a survey that is repeated needs a cap on the reports that a person ever draws",
                place="limits.cap",
                hints=("without one there is no bound on what all days together give away",),
            )
        object.__setattr__(self, "epsilon", budget_quantity(self.epsilon, "survey.epsilon"))
        if not self.epsilon <= _MOST:
            raise InvalidArgument(f"epsilon must be above 0, and at most {_MOST}", place="survey.epsilon")
        self._promise_a_lifetime()
        if self.protocol.max_ratio > exp_below(self.epsilon):
            raise InvalidArgument(
                "the protocol costs more than the survey promises",
                place="survey.epsilon",
                hints=(f"one report costs {self.protocol.epsilon:.6g}", "plan the survey anew"),
            )
        _check_domain(self.question, self.protocol)
        if not self.text:
            object.__setattr__(self, "text", _written(self))
        try:
            client.load(self.text.encode())  # what phones refuse is no survey
        except client.Refused as refusal:
            raise InvalidArgument(str(refusal), place="survey") from None

    @classmethod
    def plan(
        cls,
        name: str,
        question: SurveyQuestion,
        *,
        epsilon: Number,
        people: int = 10_000,
        version: int = 1,
        protocol: Protocol | None = None,
        **limits: Any,
    ) -> Survey:
        """Return a survey with the protocol of least error, unless one is given; see `chooser.choose`."""
        promised = budget_quantity(epsilon, "epsilon")
        if protocol is None:
            from sfumato.local.chooser import choose  # knows every protocol there is

            protocol = choose(question, epsilon=promised, people=people).protocol
        return cls(
            name=name, version=version, question=question, epsilon=promised, protocol=protocol, **limits
        )

    def advise(self, **options: Unpack[AdviceOptions]) -> Advice:
        """Say what a report tells about an answer, how far off the result is, and what else could be had.

        The options are those of `sfumato.advise.advise`; without `people`, 10,000 answer. The error is that
        of a share, or of the mean, whatever people answer: of noise and of who happens to be asked. The risk
        of a survey that asks again is that of a year.
        """
        from sfumato.advise.advice import advise
        from sfumato.local.choices import choice_of_survey

        return advise(choice_of_survey(self, people=options.get("people") or 10_000), **options)

    @classmethod
    def read(cls, path: str | Path) -> Survey:
        """Read a file."""
        try:
            text = Path(path).read_bytes().decode()
        except OSError as error:
            raise InvalidArgument(
                f"the survey cannot be read: {error.strerror or type(error).__name__}", place=str(path)
            ) from None
        except UnicodeDecodeError:
            raise InvalidArgument("the survey is not UTF-8 text", place=str(path)) from None
        return cls.parse(text)

    @classmethod
    def parse(cls, text: str) -> Survey:
        """Read the text of a file; unknown words are refused, for they might have been meant."""
        try:
            found = tomllib.loads(text)
        except (ValueError, RecursionError) as error:  # also a number that is too long for Python
            raise InvalidArgument(f"the survey is not TOML: {error}", place="survey") from None
        _known(found, ("survey", "protocol", "limits"), "the file")
        head, protocol, limits = (_section(found, name) for name in ("survey", "protocol", "limits"))
        _known(limits, _LIMITS, "[limits]")
        try:
            name, version, words, kind, epsilon = (
                head.pop(key) for key in ("name", "version", "question", "kind", "epsilon")
            )
        except KeyError as missing:
            raise InvalidArgument("[survey] is incomplete", place=f"survey.{missing.args[0]}") from None
        if "lifetime" in limits:
            limits["lifetime"] = written_ratio(limits["lifetime"], "limits.lifetime")
        return cls(
            name=name,
            version=version,
            question=read_question(kind, words, head),
            epsilon=budget_quantity(written_ratio(epsilon, "survey.epsilon"), "survey.epsilon"),
            protocol=read_protocol(protocol.pop("name", None), protocol),
            text=text,
            **limits,
        )

    def write(self, path: str | Path) -> None:
        """Write the file, byte for byte."""
        Path(path).write_bytes(self.text.encode())

    @property
    def fingerprint(self) -> str:
        """What reports carry: the first 32 hexadecimal digits of the SHA-256 of the file."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:32]

    def draws(self, days: int | None = None) -> int:
        """Return how many reports are drawn from one person's answers at most: ever, or on so many days.

        By the calendar, `days` in a row may begin with the last day of a period. Kept by value, there is one
        report for each value at most.

        >>> Survey.plan("daily", YesNo(words="Today?"), epsilon=1, cap=100, every=30).draws(365)
        14
        """
        if self.cap is None:
            return 1
        drawn = self.cap if days is None else min(self.cap, days)
        if self.every is not None:
            return drawn if days is None else min(drawn, 1 + (days + self.every - 2) // self.every)
        single = isinstance(self.question, (YesNo, OneAnswer)) and not isinstance(self.question, SeveralOf)
        return min(drawn, self.question.size) if single else drawn  # type: ignore[attr-defined]

    def _promise_a_lifetime(self) -> None:
        if self.cap is None:
            if self.lifetime is not None:
                raise InvalidArgument("a lifetime is promised, and no cap keeps it", place="limits.lifetime")
            return
        drawn = self.draws()
        cost = Fraction(log_above(self.protocol.lifetime_ratio)) * drawn  # from above
        if self.lifetime is None:
            object.__setattr__(self, "lifetime", Fraction(math.ceil(cost * _SIXTH), _SIXTH))
            return
        object.__setattr__(self, "lifetime", budget_quantity(self.lifetime, "limits.lifetime"))
        if cost > self.lifetime:
            raise InvalidArgument(
                "all reports together cost more than the survey promises",
                place="limits.lifetime",
                hints=(f"{drawn} reports cost {float(cost):.6g}", "lower the cap"),
            )


def _written(survey: Survey) -> str:
    limits = {name: getattr(survey, name) for name in _LIMITS}
    limits["lifetime"] = None if survey.lifetime is None else _decimal(survey.lifetime)
    sections: dict[str, Mapping[str, Any]] = {
        "survey": {
            "name": survey.name,
            "version": survey.version,
            "question": survey.question.words,
            "kind": survey.question.kind,
            **survey.question.domain(),
            "epsilon": str(survey.epsilon),
        },
        "protocol": {"name": survey.protocol.name, **survey.protocol.parameters()},
        "limits": {name: value for name, value in limits.items() if value is not None},
    }
    parts = [
        "\n".join([f"[{title}]", *(f"{name} = {_value(value)}" for name, value in section.items()), ""])
        for title, section in sections.items()
    ]
    return _FIRST_LINES + "\n" + "\n".join(parts)


def _value(value: Any) -> str:
    """Write a value: strings, integers and lists are those of JSON, but for one letter that JSON leaves."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _decimal(value: Fraction) -> str:
    """Write 2.5 as it is, and 1/3 as a ratio."""
    whole, rest = divmod(value * _SIXTH, _SIXTH)
    text = f"{whole}.{int(rest):06}".rstrip("0").rstrip(".") if rest.denominator == 1 else str(value)
    return text if Fraction(text) == value else str(value)


def _section(found: Mapping[str, Any], name: str) -> dict[str, Any]:
    section = found.get(name, {})
    if not isinstance(section, dict):
        raise InvalidArgument(f"[{name}] is not a section", place=name)
    return dict(section)


def _known(found: Mapping[str, Any], names: tuple[str, ...], where: str) -> None:
    if unknown := sorted(found.keys() - set(names)):
        raise InvalidArgument(
            f"{where} has no entry of this name", place=unknown[0], hints=(f"it has {', '.join(names)}",)
        )


def _check_domain(question: SurveyQuestion, protocol: Protocol) -> None:
    """Refuse a protocol that is about other answers than the question."""
    _, names = client.KINDS[question.kind]
    fits = protocol.name in names
    for name in ("size", "most", "low", "high", "length"):
        if hasattr(question, name) and hasattr(protocol, name):
            fits = fits and getattr(question, name) == getattr(protocol, name)
    if not fits:
        raise InvalidArgument(
            f"protocol {protocol.name} is not about the answers of this question",
            place="protocol",
            hints=(f"for a {question.kind} question it is one of {', '.join(names)}, over the same answers",),
        )
