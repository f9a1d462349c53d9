"""The suite: every mechanism, question and price of this system examined, and the zoo as proof of sight.

Theorem: a sound system fails the suite with probability at most `miss`: each of its samplings is allowed an
equal part of that, and what is computed from laws is not left to chance (union bound).
"""

from __future__ import annotations

import datetime
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from sfumato.audit.accounting import accounts
from sfumato.audit.evidence import read_miss
from sfumato.audit.mechanisms import mechanisms
from sfumato.audit.questions import QUESTIONS, WHOLE, examine_questions, released
from sfumato.audit.subject import Subject, Verdict, examine
from sfumato.audit.training_runs import examine_training
from sfumato.audit.zoo import ANIMALS, Animal
from sfumato.learn import LogisticRegression
from sfumato.pages import Page, Presentable

__all__ = ["Part", "Report", "TRAINING", "single_report", "suite"]

_PACKAGES = ("sfumato", "duckdb", "numpy", "scipy", "pyarrow", "sqlglot")
_ZOO_MISS = 1e-9

TRAINING = (
    "models are trained once on invented people, canaries among them by a coin each, and the canaries are"
    " guessed from the noisy sums; a loose lower bound, and never an epsilon"
)
"""What is said about the audit of a training run."""


@dataclass(frozen=True, slots=True)
class Part:
    """Verdicts on one part of the system."""

    name: str
    about: str
    verdicts: tuple[Verdict, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing speaks against any claim."""
        return all(verdict.passed for verdict in self.verdicts)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Report(Presentable):
    """What was examined, when and with what; and the zoo, each animal with the verdict on it.

    A report of one question has no zoo.

    >>> Report(date="2026-11-17", versions=(), miss=1e-6, quick=True, parts=(), zoo=()).date
    '2026-11-17'
    """

    date: str
    versions: tuple[tuple[str, str], ...]
    miss: float
    quick: bool
    parts: tuple[Part, ...]
    zoo: tuple[tuple[Animal, Verdict], ...]

    @property
    def sound(self) -> bool:
        """Whether everything of this system passed."""
        return all(part.passed for part in self.parts)

    @property
    def sighted(self) -> bool:
        """Whether every animal of the zoo was caught: only then is a pass worth something."""
        return all(verdict.caught for _, verdict in self.zoo)

    @property
    def passed(self) -> bool:
        """Whether the system passed before an auditor that can see."""
        return self.sound and self.sighted

    def document(self) -> Page:
        """Return the report as a page to file: `.html()` is one file that needs no other."""
        from sfumato.audit.reports import report_page

        return report_page(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the whole report, JSON-ready."""
        return {
            "date": self.date,
            "versions": dict(self.versions),
            "false_alarm": self.miss,
            "quick": self.quick,
            "passed": self.passed,
            "parts": [
                {
                    "name": part.name,
                    "passed": part.passed,
                    "verdicts": [verdict.to_dict() for verdict in part.verdicts],
                }
                for part in self.parts
            ],
            "zoo": [
                {**verdict.to_dict(), "mistake": animal.mistake, "source": animal.source}
                for animal, verdict in self.zoo
            ],
        }


def suite(
    *, quick: bool = False, miss: float = 1e-6, progress: Callable[[str], None] = lambda step: None
) -> Report:
    """Examine the whole system, in about a minute. `quick` draws a quarter of the samples.

    `progress` is told each step, and may stop it.

    >>> def stop(step: str) -> None:
    ...     raise TimeoutError(step)
    >>> suite(quick=True, progress=stop)
    Traceback (most recent call last):
        ...
    TimeoutError: ...
    """
    wrong = read_miss(miss)
    share = 4 if quick else 1
    core = mechanisms()
    known = {subject.name for subject in core}
    twins = tuple({each.twin.name: each.twin for each in ANIMALS if each.twin.name not in known}.values())
    each = wrong / (len(core) + len(QUESTIONS) + len(WHOLE) + len(twins) + 1)  # what each sampling may err by

    def subjects(listed: tuple[Subject, ...]) -> Iterator[Verdict]:
        for subject in listed:
            progress(subject.name)
            yield examine(subject, trials=subject.trials // share, miss=each)

    def questions() -> Iterator[Verdict]:
        found = examine_questions(trials=20_000 // share, miss=each)
        for asked in QUESTIONS:
            progress(asked.kind)
            yield next(found)

    def whole() -> Iterator[Verdict]:
        for kind, text, pair in WHOLE:
            progress(f"whole releases: {kind}")
            yield released(kind, text, pair, miss=each)

    def training() -> Verdict:
        progress("one training run")
        return examine_training(LogisticRegression(label="any", epsilon=1), miss=each)

    progress("the zoo")
    zoo = []
    for animal in ANIMALS:
        progress(animal.name)
        zoo.append((animal, examine(animal.subject, miss=_ZOO_MISS)))
    progress("prices")
    prices = accounts()
    parts = (
        Part(
            "Mechanisms",
            "noise, choices and answers by themselves: sampled, and computed where the law is a table",
            tuple(subjects(core)),
        ),
        Part(
            "Questions",
            "SQL of every kind, run by the engine on invented neighbours with one salt; what one person"
            " moved is priced with the noise that is added, and that noise is sampled",
            tuple(questions()),
        ),
        Part(
            "Whole releases",
            "questions as users ask them, through ledger and engine; few, so only gross faults show",
            tuple(whole()),
        ),
        Part("Training", TRAINING, (training(),)),
        Part(
            "Prices",
            "what batches cost and what budgets admit, beside the enumeration of all outcomes",
            prices,
        ),
        Part(
            "Sound twins",
            "the same tasks as in the zoo, done right: the auditor must not cry wolf",
            tuple(subjects(twins)),
        ),
    )
    return _report(parts, tuple(zoo), miss=wrong, quick=quick)


def single_report(name: str, about: str, verdict: Verdict, *, miss: float = 1e-9) -> Report:
    """Return the report of one verdict, with what it was allowed to err by."""
    return _report((Part(name, about, (verdict,)),), (), miss=miss, quick=False)


def _report(
    parts: tuple[Part, ...], zoo: tuple[tuple[Animal, Verdict], ...], *, miss: float, quick: bool
) -> Report:
    """Return a report of now, with the versions of what it rests on."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    found = [("python", platform.python_version()), ("system", f"{platform.system()} {platform.machine()}")]
    for name in _PACKAGES:
        try:
            found.append((name, metadata.version(name)))
        except metadata.PackageNotFoundError:
            found.append((name, "not installed as a package"))
    return Report(date=now, versions=tuple(found), miss=miss, quick=quick, parts=parts, zoo=zoo)
