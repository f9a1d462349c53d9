"""The report of a ledger: one page per project, to file and to sign."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sfumato import __version__
from sfumato.catalog import Project, ProjectTable
from sfumato.catalog.table import CAPS
from sfumato.cli.budget import record_of
from sfumato.cli.history import charges, state_of
from sfumato.cli.odds import EPSILON, delta_in_words, epsilon_in_words
from sfumato.ledger import Head, Ledger
from sfumato.pages import BulletList, CodeBlock, Facts, Page, PageTable, Paragraph, Section, SignatureLines

__all__ = ["page_of"]

_NOT_COVERED = (
    "What is true of a whole group: who is known to belong to it shares its fate, and need not take part.",
    "Several people together: the promise for k people has k times the epsilon.",
    "The same person under two names, and people whom a row names besides the one it is about.",
    "The same people in data that this ledger has never seen, or in another ledger: only the owner can know.",
    "Public tables, and everything that was published by other means.",
    (
        "What was declared was taken as given: bounds, values, caps, the number of people. "
        "One that was read off the data was a disclosure that no budget paid for."
    ),
    "How long a question takes, and whether it fails for want of time or memory.",
    (
        "The curator: whoever can read the tables can read the tables, and whoever keeps the ledger can "
        "rewrite it, unless an anchor is kept where they cannot write."
    ),
)


def page_of(
    project: Project,
    ledger: Ledger,
    *,
    anchor: str | None,
    questions: bool,
    limit: int,
    now: datetime.datetime,
) -> Page:
    """Return the page of a project whose ledger was checked; a ledger that is not sound is refused."""
    head = ledger.verify(anchor)
    begun = project.unit in ledger.units()
    every = charges(ledger, ledger.entries(project.unit), texts=questions) if begun else []
    name = Path(project.written.file).resolve()
    where = project.ledger.name if isinstance(project.ledger, Path) else "a ledger on a server"
    return Page(
        title=f"Privacy record of {name.parent.name or name.stem}",
        made=f"Made {now:%Y-%m-%d %H:%M} UTC by sfumato {__version__}: {name.name}, {where}",
        sections=(
            _protected(project),
            _promise(project),
            _budget(project, ledger),
            _spent(every),
            _charges(every, limit),
            _anchors(ledger, head, anchor),
            Section(
                "What is not covered",
                BulletList(_NOT_COVERED),
                Paragraph("The threat model in the documentation says what each of these means."),
            ),
            Section("Signed", SignatureLines(("Owner of the data", "Privacy officer", "Place and date"))),
        ),
    )


def _protected(project: Project) -> Section:
    people = f"{project.people:,}, which is public" if project.people is not None else "not said to be public"
    neighbours = "whether all rows of one unit are in the data, or none"
    facts = (("unit", project.unit), ("number of units", people), ("what must not show", neighbours))
    rows = [_table(table) for table in project.tables]
    heads = ("table", "files", "whose rows", "of one unit count at most")
    return Section("What is protected", Facts(facts), PageTable(heads=heads, rows=rows))


def _table(table: ProjectTable) -> list[str]:
    declared = table.declaration
    files = ", ".join(Path(path).name for path in table.paths)
    files = files if table.database is None else f"table {table.database.table} of a database"
    if declared.unit is None:
        return [table.name, files, "public: not protected", "everything"]
    column = declared.unit.text  # with the path to it, where there is one
    caps = [f"{cap} = {getattr(declared, cap)}" for cap in CAPS if getattr(declared, cap) is not None]
    whose = "every row is a unit" if column is None else f"column {column}"
    return [
        table.name,
        files,
        whose,
        ", ".join(caps) or ("the row" if column is None else "as each question says"),
    ]


def _promise(project: Project) -> Section:
    budget = project.budget
    return Section(
        "What is promised",
        Paragraph(f"{EPSILON[0].upper()}{EPSILON[1:]}, for ever."),
        BulletList(
            (epsilon_in_words(float(budget.epsilon)), delta_in_words(float(budget.delta), project.people))
        ),
    )


def _budget(project: Project, ledger: Ledger) -> Section:
    record, policy = record_of(project, ledger), project.policy
    facts = [
        ("epsilon, delta", f"{record['epsilon']:g}, {record['delta']:g}"),
        ("costs add up by", f"the {record['rule']} rule"),
        (
            "spent",
            f"{record['spent']:.2%}; all answers together have cost epsilon {record['spent_epsilon']:.3g}",
        ),
    ]
    if not record["begun"]:
        facts[-1] = ("spent", "nothing; the first question fixes the budget")
    if "period" in record:
        period = record["period"]
        facts.append(("of that each", f"{period['every']} epsilon {period['epsilon']:g} at most"))
    if policy.ceiling is not None:
        facts.append(("one question", f"epsilon {float(policy.ceiling):g} at most"))
    blocks = [Facts(tuple(facts))]
    rows = [
        [name, f"{grant['epsilon']:g}", f"{grant['spent']:.2%}"]
        for name, grant in record.get("analysts", {}).items()
    ]
    if rows:
        heads = ("analyst", "may spend epsilon", "has spent of it")
        return Section(
            "The budget", *blocks, PageTable(heads=heads, rows=rows, caption="Grants under the budget")
        )
    return Section("The budget", *blocks)


def _spent(every: Iterable[dict[str, Any]]) -> Section:
    """Sum up who spent on what: by analyst and purpose."""
    totals: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for one in every:
        totals.setdefault((one["analyst"] or "the owner", _purpose(one)), []).append(one)
    rows = [
        [
            who,
            purpose,
            f"{len(found):,}",
            f"{sum(one['share_of_budget'] for one in found):.2%}",
            f"{found[0]['at'][:10]} to {found[-1]['at'][:10]}",
        ]
        for (who, purpose), found in sorted(totals.items())
    ]
    heads = ("who", "what for", "charges", "of budget", "when")
    return Section(
        "Spent by whom, and what for", PageTable(heads=heads, rows=rows, empty="nothing was charged")
    )


def _purpose(one: dict[str, Any]) -> str:
    return one["purpose"] or ("not stated" if one["text"] in ("kept", "not kept") else f"({one['text']})")


def _charges(every: list[dict[str, Any]], limit: int) -> Section:
    """List the newest charges, and what each of them asked."""
    shown = every[-limit:] if limit else every
    left = len(every) - len(shown)
    costs = [
        [
            str(one["number"]),
            one["at"][:16].replace("T", " "),
            one["analyst"] or "the owner",
            f"{one['epsilon']:.3g}",
            f"{one['share_of_budget']:.2%}",
            state_of(one),
        ]
        for one in shown
    ]
    asked = [[str(one["number"]), _purpose(one), one["question"] or f"({one['text']})"] for one in shown]
    heads = ("no.", "when (UTC)", "who", "epsilon", "of budget", "answer")
    costs_of = (
        f"The newest {len(shown):,} charges; {left:,} older ones are left out" if left else "What each cost"
    )
    return Section(
        "Every charge",
        PageTable(heads=heads, rows=costs, caption=costs_of, empty="nothing was charged"),
        PageTable(heads=("no.", "what for", "question"), rows=asked, caption="What each asked"),
    )


def _anchors(ledger: Ledger, head: Head, anchor: str | None) -> Section:
    noted = None if anchor is None else Head.parse(anchor).sequence
    held = (
        "no anchor was given to compare with" if noted is None else f"the anchor of record {noted:,} is in it"
    )
    return Section(
        "Anchors",
        Paragraph(
            f"When this page was made the whole chain was walked: {head.sequence:,} records, every one in "
            f"its place; {held}. Keep this page, or the line below, where the keeper of the ledger cannot "
            "write: it shows later whether anything was cut off or rewritten."
        ),
        CodeBlock(str(head)),
        Paragraph("Receipts of this ledger are signed with"),
        CodeBlock("\n".join(ledger.public_keys()) or "(no key yet)"),
    )
