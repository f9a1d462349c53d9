"""The lab's report: what attacks found, as text, as data, or as one page that a teacher can show a class."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.attacks.attack_result import LEVEL, AttackResult
from sfumato.pages import Facts, Figure, Page, PageTable, Paragraph, Section

__all__ = ["html_report"]

_TITLE = "What attackers do with what people publish"
_OPENING = """\
Every attack here was run, not quoted: against what people publish when they mean well, and against real
releases of a differentially private system. Each picture has the same three things in it: how often the
attack succeeds on the naive release, how often through the system, and what guessing gets.

Through the system the attacker is the strongest there can be: one who knows everybody else's record. For
one secret bit, epsilon says how often such an attacker can be right: at most e^epsilon / (1 + e^epsilon) of
the time, 73.1% at epsilon 1. A measured point on that curve is not a flaw. It is the promise, kept to the
letter."""
_CLOSING = (
    "The people are invented, unless a table was given: then this page is for its owner, and no release. "
    f"Intervals hold with {LEVEL:.1%} each. Nothing on this page is loaded from elsewhere."
)


def html_report(findings: Sequence[AttackResult]) -> str:
    """Return what was found as one page, with its pictures drawn into it.

    >>> from sfumato.core import Proportion
    >>> found = AttackResult(
    ...     name="guess", title="A guess", story="..", naive=Proportion(hits=98, trials=100), curve=()
    ... )
    >>> "A guess" in html_report([found])
    True
    """
    return Page(
        title=_TITLE,
        opening=tuple(Paragraph(text) for text in _OPENING.split("\n\n")),
        sections=tuple(_section(finding) for finding in findings),
        closing=_CLOSING,
    ).html()


def _section(finding: AttackResult) -> Section:
    return Section(
        finding.title,
        Paragraph(finding.story),
        *(Figure(picture) for picture in finding.pictures),
        PageTable(heads=("attacked", finding.success, "bound for anyone"), rows=finding.rows()),
        Facts(finding.facts),
        anchor=finding.name,
    )
