"""Opening tables, from Python or a project file: with the budget of the people in them, or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from sfumato.catalog import (
    Catalog,
    Column,
    Declaration,
    Domain,
    Field,
    Policy,
    Project,
    Table,
    Unit,
    read_project,
)
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.arguments import positive
from sfumato.errors import InvalidArgument, LedgerError, ProjectRefused
from sfumato.ledger import Ledger, Renewal
from sfumato.session.database import Database

__all__ = ["connect", "open", "open_project", "renewal_of", "unlike_record"]


def connect(
    source: Any,
    *,
    unit: str | None,
    budget: PrivacyBudget | None = None,
    columns: Mapping[str, Domain] | None = None,
    ledger: str | os.PathLike[str] | None = None,
    name: str | None = None,
    max_groups: int | None = None,
    max_rows: int | None = None,
    public: Mapping[str, Any] | None = None,
    renewal: Renewal | None = None,
    partition: str | None = None,
    analyst: str | None = None,
    distinct: bool = False,
    memory: str | None = None,
    seconds: float | None = None,
) -> Database:
    """Open a table about people, and public tables beside it.

    `source` is a Parquet, CSV or DuckDB file, an Arrow table, a pandas or polars DataFrame. `unit`
    names the column that says whose each row is; None makes every row a unit by itself. `columns`
    declares bounds and values, never read off the data. Without a `ledger` file the budget is
    forgotten when the process ends; without a `budget` the one on record there goes on.

    `renewal` says how much of the budget a day, week, month or year may use, `partition` names the
    column that divides units into parts, and `analyst` who asks, under a grant of the owner's. A ledger
    keeps one unit, and a source is about one unit: the same people under another name would be a fresh
    budget. `distinct` is the owner's word that a second unit is not that.

    `memory`, such as "8GB", and `seconds` are what one statement of the engine may take: by default four
    fifths of the machine's, and an hour.
    """
    table = name or _name_of(source)
    protected = Unit(name=unit or f"row of {table}", column=unit)
    declared = {each: Column(domain=domain) for each, domain in (columns or {}).items()}
    caps = {"max_groups": max_groups, "max_rows": max_rows}
    declarations = [Declaration(name=table, unit=protected, columns=declared, partition=partition, **caps)]
    declarations += [Declaration(name=each, unit=None) for each in public or {}]
    book = Ledger.open(ledger)
    return _database(
        {each.name: each.table for each in declarations},
        {table: source, **(public or {})},
        budget=budget,
        ledger=book,
        unit=protected.name,
        renewal=renewal,
        analyst=analyst,
        distinct=distinct,
        memory=memory,
        seconds=seconds,
    )


def open(
    path: str | os.PathLike[str] = "sfumato.toml",
    *,
    analyst: str | None = None,
    ledger: Ledger | None = None,
) -> Database:
    """Open the tables of a project file, private and public, with its budget, ledger and policy.

    The ledger must be there already, as `sfumato init` leaves it: one that is missing may have been
    moved, and a new one would begin with nothing spent. Where the policy names analysts, `analyst`
    says who asks. Another `ledger` can be given, to look at prices without touching the real one.
    """
    project = read_project(os.fspath(path))
    return open_project(project, analyst=analyst, ledger=ledger)


def open_project(project: Project, *, analyst: str | None = None, ledger: Ledger | None = None) -> Database:
    """Open the tables of a project that was read already; see `open`."""
    _check_analyst(project, analyst)
    book = Ledger.open(project.ledger, create=False) if ledger is None else ledger
    try:
        database = _opened(project, book, analyst)
    except LedgerError as error:
        if error.code != "SF605":
            raise
        raise unlike_record(project, book, error) from None
    _grant(book, project)
    return database


def unlike_record(project: Project, ledger: Ledger, error: LedgerError) -> ProjectRefused:
    """Return the refusal of a project whose terms are not those on record, at its budget."""
    known = ledger.budget(project.unit)
    terms = {"epsilon": known.epsilon, "delta": known.delta, "keys_delta": known.keys_delta}
    listed = ", ".join(f"{name} = {float(value):g}" for name, value in terms.items())
    return project.written.refusal(
        error.message,
        ("budget",),
        code="SF706",
        hints=(
            f"on record: {listed}, rule = {known.rule.name}",
            "its renewal and its partition are fixed with it, by the first question",
            "a budget is about people, not about a file: whoever edits one gives them no other",
        ),
    )


def _opened(project: Project, book: Ledger, analyst: str | None) -> Database:
    return _database(
        {table.name: partial(project.table, table) for table in project.tables},
        {table.name: table.source for table in project.tables},
        budget=project.budget,
        ledger=book,
        unit=project.unit,
        renewal=renewal_of(project),
        analyst=analyst,
        policy=project.policy,
    )


def renewal_of(project: Project) -> Renewal | None:
    """Return how the budget of a project is renewed, as the ledger has it."""
    period = project.period
    return None if period is None else Renewal(every=period.every, budget=period.budget)


def _grant(ledger: Ledger, project: Project) -> None:
    """Write into the ledger the grants that are new or changed since it was last opened."""
    known = {grant.analyst: grant.budget for grant in ledger.grants(project.unit)}
    for each in project.policy.analysts:
        if known.get(each.name) != each.budget:
            ledger.grant(project.unit, each.name, each.budget)


def _database(
    tables: Mapping[str, Callable[[tuple[Field, ...]], Table]],
    sources: Mapping[str, Any],
    *,
    budget: PrivacyBudget | None,
    ledger: Ledger,
    unit: str,
    renewal: Renewal | None = None,
    analyst: str | None = None,
    distinct: bool = False,
    policy: Policy | None = None,
    memory: str | None = None,
    seconds: float | None = None,
) -> Database:
    """Open sources, make of each the table it is declared to be, and see that its unit has a budget."""
    from sfumato.backends.duckdb import DuckDBBackend
    from sfumato.backends.identity import identities
    from sfumato.backends.source import SECONDS, open_tables

    limit = SECONDS if seconds is None else float(positive(seconds, "seconds"))
    opened = open_tables(sources, memory=memory, seconds=limit)
    made = tuple(make(opened.fields(name)) for name, make in tables.items())
    catalog = Catalog(made, policy or Policy())
    if budget is None:
        if renewal is not None:
            raise InvalidArgument("a renewal is registered together with a budget", place="renewal")
        budget = ledger.budget(unit)
    else:
        partition = next((each.partition for each in made if each.partition is not None), None)
        ledger.register(unit, budget, renewal=renewal, partition=partition, distinct=distinct)
    for table in made:
        if table.private:
            ledger.bind(unit, identities(opened, table.name))
        else:
            _check_public(ledger, table.name, identities(opened, table.name))
    backend = DuckDBBackend(opened, catalog)
    return Database(
        catalog=catalog, budget_of=budget, ledger=ledger, backend=backend, unit=unit, analyst=analyst
    )


def _check_public(ledger: Ledger, table: str, sources: tuple[str, ...]) -> None:
    """Refuse to treat as public what is on record as being about people."""
    unit = ledger.bound(sources)
    if unit is not None:
        raise LedgerError(
            f"table `{table}` is on record as being about unit `{unit}`; it cannot be public",
            code="SF610",
            place="public",
        )


def _name_of(source: Any) -> str:
    if isinstance(source, (str, os.PathLike)):
        return os.path.basename(os.fspath(source)).split(".")[0] or "data"
    return "data"


def _check_analyst(project: Project, analyst: str | None) -> None:
    """Refuse whoever the policy does not name, where it names anybody."""
    known = project.policy.analysts
    if known and (analyst is None or project.policy.analyst(analyst) is None):
        who = "this project says who may ask" if analyst is None else f"`{analyst}` may not ask here"
        raise project.written.refusal(
            who,
            ("policy", "analysts"),
            code="SF705",
            hints=("say who you are: --analyst NAME, or analyst= in Python",)
            if analyst is None
            else ("the owner can add a grant: [policy.analysts.<name>]",),
        )
