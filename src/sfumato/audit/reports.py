"""Reports: an audit as a page to file, as text, or as data, for whoever answers for the data."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from sfumato.audit.subject import Verdict
from sfumato.audit.suites import Report
from sfumato.audit.zoo import Animal
from sfumato.errors import InvalidArgument
from sfumato.pages import (
    BulletList,
    Figure,
    Flag,
    Notice,
    Page,
    PageTable,
    Paragraph,
    Section,
    SignatureLines,
)
from sfumato.plots import Axis, Line, Picture, Points

__all__ = ["LIMITS", "pictures", "renderer_of", "report_page", "write_report"]

_TITLE = "Privacy audit of sfumato"

LIMITS = (
    "A lower bound can prove a claim false; it cannot prove one true.",
    "Nothing found means as much as the auditor can see, and the zoo shows how much that is.",
    "What happens once in a million releases is not seen in thousands: sampling uses large deltas.",
    "For the small deltas of real budgets, the computed values and the proofs in the code stand alone.",
    "Neighbours are proposed, not exhausted: of all datasets, a few that have broken systems before.",
    "Not examined: time and memory, the host, the operating system's random numbers, who may ask.",
    "Not examined either: whether the declared unit of protection is the right one.",
    "An audit of one run, with canaries in place of repetition, is loose: its number is never epsilon.",
)
"""What an audit cannot show."""


def write_report(report: Report, path: str | os.PathLike[str]) -> None:
    """Write a report; the ending of the name says how: .html, .md or .json.

    >>> import tempfile
    >>> empty = Report(date="2026-11-17", versions=(), miss=1e-6, quick=True, parts=(), zoo=())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(empty, f"{folder}/audit.json")
    """
    Path(path).write_text(renderer_of(path)(report), encoding="utf-8")


def renderer_of(path: str | os.PathLike[str]) -> Callable[[Report], str]:
    """Return what makes the text of a report for a file of this name."""
    known: dict[str, Callable[[Report], str]] = {
        ".html": lambda report: report.document().html(),
        ".md": lambda report: report.to_markdown(),
        ".json": _to_json,
    }
    found = known.get(Path(path).suffix.lower())
    if found is None:
        raise InvalidArgument(
            "a report is written as .html, .md or .json", place="output", hints=("name it audit.html",)
        )
    return found


def _to_json(report: Report) -> str:
    return json.dumps(report.to_dict(), indent=1, allow_nan=False) + "\n"


# -- words ------------------------------------------------------------------------------------


def _sections(report: Report) -> Iterator[tuple[str, str, list[tuple[str, ...]]]]:
    """Yield headings, a sentence about each, and tables whose first row is their head."""
    head = ("number", "what", "claimed", "sampled: at least", "computed", "neighbours", "claim")
    number = 1
    for part in report.parts:
        rows = [_row(at, verdict) for at, verdict in enumerate(part.verdicts, number)]
        number += len(rows)
        yield part.name, f"{part.about[:1].upper()}{part.about[1:]}.", [head, *rows]
    if not report.zoo:
        return
    head = ("number", "broken mechanism", "the mistake", "claimed", "at least", "seen by", "recognised")
    rows = [_zoo_row(at, animal, verdict) for at, (animal, verdict) in enumerate(report.zoo, 1)]
    about = "Mistakes made in earnest, rebuilt. Had one gone unnoticed, the rest would mean less."
    yield "The zoo: what this auditor recognises", about, [head, *rows]


def _result(report: Report) -> str:
    number = sum(len(part.verdicts) for part in report.parts)
    caught = sum(verdict.caught for _, verdict in report.zoo)
    failed = [verdict.name for part in report.parts for verdict in part.verdicts if verdict.caught]
    if failed:
        return f"FAILED. {len(failed)} of {number} claims are false: {'; '.join(failed)}."
    if not report.sighted:
        return (
            f"NOT VALID. Nothing was found, but only {caught} of {len(report.zoo)} broken mechanisms were"
            " recognised: this auditor did not see well enough."
        )
    if not report.zoo:
        return (
            "PASSED. Nothing was found against this claim; `sfumato audit` shows how well it would be seen."
        )
    return (
        f"PASSED. None of {number} claims was found false. In the same run, all {caught} of"
        f" {len(report.zoo)} deliberately broken mechanisms were recognised as broken."
    )


def _method(report: Report) -> tuple[str, ...]:
    promise = (
        "Differential privacy promises that one person more or less changes the odds of anything published"
        " by a factor of at most e^epsilon, but for a probability delta. Each line below is such a promise."
        " The auditor takes two datasets that differ by one person, draws many outputs of both, and looks"
        " for the event whose odds differ most."
    )
    figures = (
        "Sampled: a lower bound on epsilon. The event is chosen on one part of the outputs and tested on"
        f" others. All bounds of this system together are wrong with probability at most {report.miss:.0e}."
        " Computed: epsilon from the law of the output, for the worst of the neighbours examined; where a"
        " release has several steps, from above. A claim is false if either is above it."
    )
    return promise, figures


def _row(number: int, verdict: Verdict) -> tuple[str, ...]:
    exact = verdict.exact
    where = verdict.evidence.pair if verdict.evidence else ""
    if exact is not None:
        where = "; ".join(exact.wrongs) or exact.pair
    return (
        str(number),
        verdict.name,
        str(verdict.claim),
        "" if verdict.evidence is None else _epsilon(verdict.evidence.epsilon),
        "" if exact is None else _epsilon(exact.high),
        where,
        "FALSE" if verdict.caught else "stands",
    )


def _zoo_row(number: int, animal: Animal, verdict: Verdict) -> tuple[str, ...]:
    assert verdict.evidence is not None
    return (
        str(number),
        animal.name,
        f"{animal.mistake} ({animal.source})",
        str(verdict.claim),
        _epsilon(verdict.evidence.epsilon),
        f"{verdict.evidence.pair}: {verdict.evidence.event}",
        "yes" if verdict.caught else "NO",
    )


def _epsilon(value: float) -> str:
    return "unbounded" if math.isinf(value) else f"{value:.3f}"


def _made(report: Report) -> str:
    return f"{report.date}; {', '.join(f'{name} {version}' for name, version in report.versions)}"


# -- pictures ---------------------------------------------------------------------------------


def pictures(report: Report) -> tuple[Picture, ...]:
    """Return what the tables show, as shares of what is claimed."""
    system = [verdict for part in report.parts for verdict in part.verdicts]
    zoo = [verdict for _, verdict in report.zoo]
    shares = "Shares of what is claimed, by the numbers of the tables. Above the line is false."
    multiples = "Multiples of what is claimed. What is below the line was not recognised."
    found = _picture("This system, claim by claim", shares, "claims", system, 1.2)
    if not zoo:
        return (found,)
    return found, _picture("The zoo, animal by animal", multiples, "broken mechanisms", zoo, 8.0)


def _picture(title: str, caption: str, what: str, verdicts: list[Verdict], high: float) -> Picture:
    found: dict[str, list[tuple[int, float]]] = {"sampled: at least": [], "computed": []}
    beyond = set()
    for at, one in enumerate(verdicts, 1):
        sampled = None if one.evidence is None else one.evidence.epsilon
        computed = None if one.exact is None else one.exact.high
        for points, epsilon in zip(found.values(), (sampled, computed), strict=True):
            if epsilon is not None and (share := _share(epsilon, one)) <= high:
                points.append((at, share))
            elif epsilon is not None:
                beyond.add(at)
    end = len(verdicts) + 1
    marks = [_points(label, points) for label, points in found.items() if points]
    if beyond:
        marks.append(
            _points(f"more than {high:g} times the claim", [(at, high) for at in sorted(beyond)], True)
        )
    return Picture(
        title=title,
        caption=caption,
        x=Axis(title=what, low=0, high=end),
        y=Axis(title="epsilon / claimed epsilon", low=0, high=high),
        marks=(*marks, Line(label="the claim", points=((0, 1), (end, 1)), dashed=True)),
    )


def _share(epsilon: float, verdict: Verdict) -> float:
    claimed = verdict.claim.epsilon
    return epsilon / claimed if claimed else (math.inf if epsilon else 0.0)


def _points(label: str, points: list[tuple[int, float]], beyond: bool = False) -> Points:
    return Points(
        label=label, points=tuple((float(at), share, share, share) for at, share in points), beyond=beyond
    )


# -- pages ------------------------------------------------------------------------------------


def report_page(report: Report) -> Page:
    """Return the report as a page to file."""
    tables = (
        Section(title, Paragraph(about), PageTable(heads=head, rows=[_flagged(row) for row in rows]))
        for title, about, (head, *rows) in _sections(report)
    )
    return Page(
        title=_TITLE,
        made=_made(report),
        opening=(Notice(_result(report), tone="good" if report.passed else "bad"),),
        sections=(
            Section("What was done", *map(Paragraph, _method(report)), *map(Figure, pictures(report))),
            *tables,
            Section("What this cannot show", BulletList(LIMITS), SignatureLines()),
        ),
    )


def _flagged(row: tuple[str, ...]) -> tuple[str | Flag, ...]:
    return (*row[:-1], Flag(row[-1])) if row[-1] in ("FALSE", "NO") else row
