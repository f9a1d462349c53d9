"""Reports: an audit as a page to file, as text, or as data.

    report.html   one page that needs no other file; with pictures where `sfumato[plots]` is installed
    report.md     the same as text
    report.json   every number

The page is for whoever answers for the data: what was examined, what was found, what that means, and what it
does not mean.
"""

from __future__ import annotations

import html
import json
import math
import os
from collections.abc import Iterator
from pathlib import Path

from sfumato.audit.subject import Verdict
from sfumato.audit.suites import Report
from sfumato.errors import InvalidArgument, Unsupported
from sfumato.plots import Axis, Line, Picture, Points, svg

__all__ = ["LIMITS", "pictures", "to_html", "to_markdown", "write_report"]

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
    """Write a report; the ending of the name says how: .html, .md or .json."""
    file = Path(path)
    match file.suffix.lower():
        case ".html":
            text = to_html(report)
        case ".md":
            text = to_markdown(report)
        case ".json":
            text = json.dumps(report.to_dict(), indent=1, allow_nan=False) + "\n"
        case _:
            raise InvalidArgument(
                "a report is written as .html, .md or .json", place="output", hints=("name it audit.html",)
            )
    file.write_text(text, encoding="utf-8")


# -- words ------------------------------------------------------------------------------------


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
    computed = "" if exact is None else _epsilon(exact.high)
    where = exact.pair if exact is not None else verdict.evidence.pair if verdict.evidence else ""
    if exact is not None and exact.wrongs:
        where = "; ".join(exact.wrongs)
    return (
        str(number),
        verdict.name,
        str(verdict.claim),
        "" if verdict.evidence is None else _epsilon(verdict.evidence.epsilon),
        computed,
        where,
        "FALSE" if verdict.caught else "stands",
    )


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _epsilon(value: float) -> str:
    return "unbounded" if math.isinf(value) else f"{value:.3f}"


_HEAD = ("", "what", "claimed", "sampled: at least", "computed", "neighbours", "claim")
_ZOO_HEAD = ("", "broken mechanism", "the mistake", "claimed", "at least", "seen by", "recognised")


def _zoo_rows(report: Report) -> Iterator[tuple[str, ...]]:
    for number, (animal, verdict) in enumerate(report.zoo, 1):
        assert verdict.evidence is not None
        yield (
            str(number),
            animal.name,
            f"{animal.mistake} ({animal.source})",
            str(verdict.claim),
            _epsilon(verdict.evidence.epsilon),
            f"{verdict.evidence.pair}: {verdict.evidence.event}",
            "yes" if verdict.caught else "NO",
        )


# -- pictures ---------------------------------------------------------------------------------


def pictures(report: Report) -> tuple[Picture, ...]:
    """Return what the tables show, as shares of what is claimed."""
    shown = [verdict for part in report.parts for verdict in part.verdicts]
    sampled = [(at, _share(one.evidence.epsilon, one)) for at, one in enumerate(shown, 1) if one.evidence]
    computed = [(at, _share(one.exact.high, one)) for at, one in enumerate(shown, 1) if one.exact]
    zoo = [
        (at, min(100.0, _share(one.evidence.epsilon, one)))
        for at, (_, one) in enumerate(report.zoo, 1)
        if one.evidence
    ]
    return (
        Picture(
            title="This system, claim by claim",
            caption="Shares of what is claimed, by the numbers of the tables. Above the line is false.",
            x=Axis(title="claims", low=0, high=len(shown) + 1),
            y=Axis(title="epsilon / claimed epsilon", low=0, high=1.2),
            marks=(
                _points("sampled: at least", [(at, min(1.2, share)) for at, share in sampled]),
                _points("computed", [(at, min(1.2, share)) for at, share in computed]),
                Line(label="the claim", points=((0, 1), (len(shown) + 1, 1)), dashed=True),
            ),
        ),
        Picture(
            title="The zoo, animal by animal",
            caption="Multiples of what is claimed. What is below the line was not recognised.",
            x=Axis(title="broken mechanisms", low=0, high=len(zoo) + 1),
            y=Axis(title="epsilon / claimed epsilon", low=0, high=8),
            marks=(
                _points("sampled: at least", zoo),
                Line(label="the claim", points=((0, 1), (len(zoo) + 1, 1)), dashed=True),
            ),
        ),
    )


def _share(epsilon: float, verdict: Verdict) -> float:
    claimed = verdict.claim.epsilon
    return epsilon / claimed if claimed else (math.inf if epsilon else 0.0)


def _points(label: str, points: list[tuple[int, float]]) -> Points:
    return Points(label=label, points=tuple((float(at), share, share, share) for at, share in points))


# -- pages ------------------------------------------------------------------------------------

_STYLE = """
body { font: 16px/1.5 Georgia, serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
h1, h2 { font-weight: normal; } table { border-collapse: collapse; width: 100%; font-size: 0.8rem; }
th, td { text-align: left; vertical-align: top; border-bottom: 1px solid #ddd; padding: 0.25rem 0.5rem; }
.result { border-left: 4px solid #2e933c; padding: 0.5rem 1rem; background: #f4f8f4; }
.failed { border-color: #d1495b; background: #fbf3f4; } .FALSE, .NO { color: #d1495b; font-weight: bold; }
.sign td { height: 3rem; width: 33%; } @media print { body { margin: 0; } }
"""


def to_html(report: Report) -> str:
    """Return the report as one page."""
    versions = ", ".join(f"{name} {version}" for name, version in report.versions)
    mood = "result" if report.passed else "result failed"
    lines = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8"><title>Privacy audit</title>',
        f"<style>{_STYLE}</style></head><body>",
        "<h1>Privacy audit of sfumato</h1>",
        f"<p>{html.escape(report.date)} &middot; {html.escape(versions)}</p>",
        f'<p class="{mood}">{html.escape(_result(report))}</p>',
        "<h2>What was done</h2>",
        *(f"<p>{html.escape(text)}</p>" for text in _method(report)),
        *_drawn(report),
    ]
    number = 1
    for part in report.parts:
        lines += [f"<h2>{html.escape(part.name)}</h2>", f"<p>{html.escape(_sentence(part.about))}</p>"]
        rows = [_row(number + at, verdict) for at, verdict in enumerate(part.verdicts)]
        number += len(rows)
        lines.append(_table(_HEAD, rows))
    lines += [
        "<h2>The zoo: what this auditor recognises</h2>",
        "<p>Mistakes made in earnest, rebuilt. Had one gone unnoticed, the rest would mean less.</p>",
        _table(_ZOO_HEAD, list(_zoo_rows(report))),
        "<h2>What this cannot show</h2>",
        "<ul>",
        *(f"<li>{html.escape(text)}</li>" for text in LIMITS),
        "</ul>",
        '<table class="sign"><tr><td>Examined by</td><td>On</td><td>Signature</td></tr></table>',
        "</body></html>\n",
    ]
    return "\n".join(lines)


def _drawn(report: Report) -> Iterator[str]:
    try:
        for picture in pictures(report):
            yield f"<figure>{svg(picture)}<figcaption>{html.escape(picture.caption)}</figcaption></figure>"
    except Unsupported:
        yield "<p>(Pictures need the extra <code>sfumato[plots]</code>.)</p>"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = ["<table><tr>" + "".join(f"<th>{html.escape(cell)}</th>" for cell in head) + "</tr>"]
    for row in rows:
        cells = "".join(f"<td>{html.escape(cell)}</td>" for cell in row[:-1])
        lines.append(f'<tr>{cells}<td class="{html.escape(row[-1])}">{html.escape(row[-1])}</td></tr>')
    return "\n".join([*lines, "</table>"])


def to_markdown(report: Report) -> str:
    """Return the report as text."""
    versions = ", ".join(f"{name} {version}" for name, version in report.versions)
    lines = ["# Privacy audit of sfumato", "", f"{report.date}; {versions}", "", f"**{_result(report)}**", ""]
    lines += [line for text in _method(report) for line in (text, "")]
    number = 1
    for part in report.parts:
        lines += [f"## {part.name}", "", _sentence(part.about), ""]
        rows = [_row(number + at, verdict) for at, verdict in enumerate(part.verdicts)]
        number += len(rows)
        lines += [*_lines(_HEAD, rows), ""]
    lines += ["## The zoo: what this auditor recognises", "", *_lines(_ZOO_HEAD, list(_zoo_rows(report))), ""]
    lines += ["## What this cannot show", "", *(f"- {text}" for text in LIMITS), ""]
    return "\n".join(lines)


def _lines(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[str]:
    for row in (head, ("---",) * len(head), *rows):
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
