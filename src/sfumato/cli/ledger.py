"""`sfumato ledger ..`: begin it, check it, look at it, and take parts of it elsewhere."""

from __future__ import annotations

import datetime
import io
import json
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

from sfumato.catalog import Project, read_project
from sfumato.cli.options import LedgerOptions
from sfumato.cli.outputs import can_write, kept, write, writing
from sfumato.cli.project import book_of, open_ledger
from sfumato.cli.screen import say, screen, working
from sfumato.core.rules import UNITS
from sfumato.errors import InvalidArgument, LedgerError, ProjectRefused, SfumatoError
from sfumato.ledger import Head, Ledger, verify_receipt
from sfumato.release import Release
from sfumato.release.formats import rendered
from sfumato.session import propose

__all__ = ["anchor", "create", "export", "grant", "history", "receipt", "show", "verify"]


def create(options: LedgerOptions) -> None:
    """Begin a ledger where there is none."""
    target = read_project(options.project).ledger if options.ledger is None else Path(options.ledger)
    if target.exists():
        raise LedgerError(
            "there is a ledger already", code="SF601", place=str(target), hints=("it goes on; nothing to do",)
        )
    with Ledger.open(target) as ledger:
        head = ledger.head()
    screen().print(f"begun: {target}\nanchor: {head}")


def grant(file: str, name: str) -> None:
    """Put an analyst's grant on record, as the project file states it."""
    project = read_project(file)
    analyst = project.policy.analyst(name)
    if analyst is None:
        raise project.written.refusal(
            f"the project file has no grant of `{name}`",
            ("policy", "analysts"),
            code="SF705",
            hints=("add it: [policy.analysts.<name>] with an epsilon",),
        )
    with book_of(project) as ledger:
        propose(project, ledger)
        ledger.grant(project.unit, name, analyst.budget)
        screen().print(f"on record: {ledger.grant_balance(project.unit, name)}")


def verify(options: LedgerOptions, noted: str | None, *, as_json: bool) -> None:
    """Walk the chain."""
    head = None if noted is None else _head(noted)
    with open_ledger(options) as ledger, working("walking the chain"):
        found = ledger.verify(anchor=head)
    held = "" if noted is None else "; the anchor is in it"
    text = f"{found.sequence:,} records, every one in its place{held}\nanchor: {found}"
    say({"records": found.sequence, "anchor": str(found), "against": noted}, text, as_json=as_json)


def anchor(options: LedgerOptions) -> None:
    """Print the head."""
    with open_ledger(options) as ledger:
        screen().print(str(ledger.head()))


def history(options: LedgerOptions, limit: int, *, as_json: bool) -> None:
    """List charges."""
    if limit < 0:
        raise InvalidArgument("limit must be 0 or more", place="--limit")
    with open_ledger(options) as ledger:
        entries = ledger.newest(limit) if limit else tuple(ledger.entries())
        wholes = {unit: ledger.balance(unit).limit for unit in {entry.unit for entry in entries}}
    records = [_entry(entry, wholes[entry.unit]) for entry in entries]
    text = "\n".join(map(_line, records)) or "nothing was charged yet"
    say(records, text, as_json=as_json)


def _line(one: dict[str, Any]) -> str:
    state = "answered" if one["answered"] else "no answer stored"
    if one["steps"] is not None:
        state = f"{one['taken']} of {one['steps']} steps, {'ended' if one['answered'] else 'not ended'}"
    more = "".join(f"  {name} {one[name]}" for name in ("analyst", "key") if one.get(name))
    return (
        f"{one['number']:>6}  {one['at']}  {one['unit']}  {one['share_of_budget']:>7.2%}  "
        f"{one['request'][:12]}  {state}{more}"
    )


def _entry(entry: Any, limit: int) -> dict[str, Any]:
    at = datetime.datetime.fromtimestamp(entry.at / 1000, datetime.UTC)
    return {
        "number": entry.sequence,
        "at": at.isoformat(timespec="seconds"),
        "unit": entry.unit,
        "analyst": entry.analyst,
        "parts": None if entry.parts is None else list(entry.parts),
        "share_of_budget": float(entry.cost / Fraction(max(1, limit), UNITS)),
        "keys_delta": float(entry.keys_delta),
        "request": entry.request_hash,
        "key": entry.key,
        "answered": entry.committed,
        "steps": entry.steps,
        "taken": entry.taken,
    }


def show(options: LedgerOptions, number: int, style: str, output: str | None, step: int | None) -> None:
    """Show a stored release, or that of one step."""
    can_write(output, kept(_project(options.project), options.ledger), style=style)
    with open_ledger(options) as ledger:
        release = _released(ledger, number, step)
    write(rendered(release, style, 0.95), output)


def _released(ledger: Ledger, number: int, step: int | None = None) -> Release:
    try:
        stored = ledger.release(number, step=step)
    except LedgerError as error:
        if error.code != "SF608":
            raise
        raise LedgerError(
            f"charge {number} has no answer",
            code="SF608",
            sequence=number,
            hints=("`sfumato ledger history` lists the numbers of those that were answered",),
        ) from None
    if not stored:
        raise LedgerError(
            f"charge {number} was answered in steps",
            code="SF608",
            sequence=number,
            hints=("--step 1 shows the first of them",),
        )
    return Release.from_json(stored.decode())


def _project(file: str) -> Project | None:
    """Return the project, None where there is none: a ledger can be looked at by itself."""
    try:
        return read_project(file)
    except ProjectRefused:
        return None


def receipt(options: LedgerOptions, given: str) -> None:
    """Print a stored receipt, or check one that somebody holds, and the answer that came with it."""
    with open_ledger(options) as ledger:
        if given.isascii() and given.isdecimal():
            number = int(given) if len(given) < 20 else 0  # more digits than any charge has
            stored = _released(ledger, number).receipt
            write(f"{json.dumps(dict(stored), indent=2)}\n".encode(), None, paid=False)
            return
        held = _held(given)
        answered = "receipt" in held
        release = _check_receipt(ledger, held["receipt"] if answered else held)
        if answered and not _same_answer(release, held):
            raise LedgerError(
                "the receipt is genuine, but the answer beside it is not the one that the ledger holds",
                code="SF611",
                place=given,
                hints=(f"`sfumato ledger show {release.receipt['reservation']}` shows the one it holds",),
            )
    if answered:
        screen().print("the answer is genuine: this ledger signed its receipt, and holds the same answer")
    else:
        screen().print("the receipt is genuine: this ledger signed it, and holds the answer it is for")


def _check_receipt(ledger: Ledger, held: Any) -> Release:
    """Return the stored release that a receipt is for."""
    keys = ledger.public_keys()
    if not isinstance(held, dict) or held.get("public_key") not in keys:
        raise LedgerError("the receipt was signed by a key that this ledger does not have", code="SF611")
    verify_receipt(held, held["public_key"])
    step = int(held["step"].split()[0]) if "step" in held else None
    stored = _released(ledger, int(held["reservation"]), step)
    if dict(stored.receipt) != held:
        raise LedgerError("the ledger holds another receipt for this answer", code="SF611")
    return stored


def _same_answer(stored: Release, held: dict[str, Any]) -> bool:
    """Return whether a file holds this answer: as a command wrote it, or as Python stores it."""
    if held == json.loads(stored.to_json()):
        return True
    try:
        return bool(held == json.loads(rendered(stored, "json", held["level"])))
    except (KeyError, TypeError, SfumatoError):
        return False


def _held(given: str) -> dict[str, Any]:
    try:
        text = sys.stdin.read() if given == "-" else Path(given).read_text()
        held = json.loads(text)
    except (OSError, RecursionError, ValueError):
        held = None
    if not isinstance(held, dict):
        raise InvalidArgument(
            "there is no receipt in this",
            place=given,
            hints=("give the number of a charge, or a file that holds a receipt or an answer as JSON",),
        )
    return held


def export(options: LedgerOptions, output: str, *, releases: bool) -> None:
    """Write every record as JSON Lines."""
    target = None if output == "-" else output
    with open_ledger(options) as ledger:
        can_write(target, kept(_project(options.project), ledger.path))
        with working("writing the records"), writing(target, paid=False) as out:
            text = io.TextIOWrapper(out, encoding="ascii", newline="\n", write_through=True)
            count = ledger.export(text, releases=releases)
            text.detach()
    if target is not None:
        screen(error=True).print(f"written: {output}, {count:,} records")


def _head(noted: str) -> Head:
    sequence, _, digest = noted.strip().partition(":")
    sound = sequence.isascii() and sequence.isdecimal() and len(digest) == 64
    if not sound or not set(digest) <= set("0123456789abcdef"):
        raise InvalidArgument(
            "this is not an anchor",
            place="--anchor",
            hints=("as `sfumato ledger anchor` printed it: 12:9f3c..",),
        )
    return Head(sequence=int(sequence), hash=digest)
