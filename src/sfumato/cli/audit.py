"""`sfumato audit`: examine this installation, a question or a training run, and write a report to file."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from sfumato.audit import Verdict, examine_query, examine_training, suite, write_report
from sfumato.audit.reports import renderer_of
from sfumato.audit.suites import TRAINING, Report, single_report
from sfumato.catalog import read_project
from sfumato.cli.outputs import can_write, kept
from sfumato.cli.project import open_tables
from sfumato.cli.query import question_text
from sfumato.cli.screen import say, working
from sfumato.learn import LogisticRegression

__all__ = ["FAILED", "run", "run_question", "run_training"]

FAILED = 3
"""The exit code where a claim of this system is false, or the auditor could not see."""


def run(*, output: str | None, quick: bool, as_json: bool) -> int:
    """Examine the whole system; return the exit code. Progress names steps, and says nothing else."""
    if output is not None:
        renderer_of(output)  # refuses a name before minutes of work, not after

    def tell(step: str) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\x1b[K{step}")
            sys.stderr.flush()

    report = suite(quick=quick, progress=tell)
    tell("")
    if output is not None:
        write_report(report, output)
    say(report.to_dict(), "\n".join(_summary(report, output)), as_json=as_json)
    return 0 if report.passed else FAILED


def run_question(text: str, *, output: str | None, project: str, epsilon: float | None, as_json: bool) -> int:
    """Examine one question of a project over invented neighbours; nothing is spent, no row is used."""
    if output is not None:
        renderer_of(output)
        can_write(output, kept(read_project(project)))
    _, database = open_tables(project, free=True)
    with working("examining"):
        verdict = examine_query(question_text(text), database, epsilon=epsilon)
    about = "one question, run by the engine on invented neighbours; no row of the data is used"
    return _told(verdict, "One question", about, output=output, as_json=as_json)


def run_training(*, output: str | None, epsilon: float | None, as_json: bool) -> int:
    """Examine one training run of logistic regression with canaries; no project is opened."""
    if output is not None:
        renderer_of(output)
    with working("training"):
        verdict = examine_training(LogisticRegression(label="any", epsilon=1 if epsilon is None else epsilon))
    return _told(verdict, "One training run", TRAINING, output=output, as_json=as_json)


def _told(verdict: Verdict, name: str, about: str, *, output: str | None, as_json: bool) -> int:
    if output is not None:
        write_report(single_report(name, about, verdict), output)
    told = str(verdict) if output is None else f"{verdict}\nreport: {output}"
    say(verdict.to_dict(), told, as_json=as_json)
    return FAILED if verdict.caught else 0


def _summary(report: Report, output: str | None) -> Iterator[str]:
    for part in report.parts:
        worst = [verdict for verdict in part.verdicts if verdict.caught]
        yield f"{part.name}: {len(part.verdicts)} claims, {f'{len(worst)} FALSE' if worst else 'passed'}"
        yield from map(str, worst)
    caught = sum(verdict.caught for _, verdict in report.zoo)
    yield f"The zoo: {caught} of {len(report.zoo)} broken mechanisms recognised"
    yield "passed" if report.passed else "FAILED"
    if output is not None:
        yield f"report: {output}"
