"""`sfumato audit`: examine this installation, or one question, and write a report that can be filed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from sfumato.audit import examine_query, suite, write_report
from sfumato.audit.suites import Report
from sfumato.cli.asking import question_text
from sfumato.cli.project import open_tables
from sfumato.cli.screen import screen, working
from sfumato.errors import InvalidArgument

__all__ = ["FAILED", "run", "run_question"]

FAILED = 3
"""The exit code where a claim of this system is false, or the auditor could not see."""

_ENDINGS = (".html", ".md", ".json")


def run(*, output: str | None, quick: bool, as_json: bool) -> int:
    """Examine the whole system; return the exit code. Progress names steps, and says nothing else."""
    if output is not None and Path(output).suffix.lower() not in _ENDINGS:
        raise InvalidArgument(  # before minutes of work, not after
            "a report is written as .html, .md or .json", place="output", hints=("name it audit.html",)
        )

    def tell(step: str) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\x1b[K{step}")
            sys.stderr.flush()

    report = suite(quick=quick, progress=tell)
    tell("")
    if output is not None:
        write_report(report, output)
    if as_json:
        screen().print(json.dumps(report.to_dict()))
    else:
        _summary(report, output)
    return 0 if report.passed else FAILED


def run_question(text: str, *, project: str, epsilon: float | None, as_json: bool) -> int:
    """Examine one question of a project over invented neighbours; nothing is spent, no row is used."""
    _, database = open_tables(project, free=True)
    with working("examining"):
        verdict = examine_query(question_text(text), database, epsilon=epsilon)
    screen().print(json.dumps(verdict.to_dict()) if as_json else str(verdict))
    return FAILED if verdict.caught else 0


def _summary(report: Report, output: str | None) -> None:
    out = screen()
    for part in report.parts:
        worst = [verdict for verdict in part.verdicts if verdict.caught]
        state = "passed" if not worst else f"{len(worst)} FALSE"
        out.print(f"{part.name}: {len(part.verdicts)} claims, {state}")
        for verdict in worst:
            out.print(str(verdict))
    caught = sum(verdict.caught for _, verdict in report.zoo)
    out.print(f"The zoo: {caught} of {len(report.zoo)} broken mechanisms recognised")
    out.print("passed" if report.passed else "FAILED")
    if output is not None:
        out.print(f"report: {output}")
