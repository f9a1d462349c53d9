"""Opening tables, from Python or a project file: with the budget of the people in them, or not at all."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from sfumato.backends import Backend
from sfumato.catalog import (
    Between,
    Catalog,
    Declaration,
    Domain,
    Field,
    Invariant,
    Kind,
    OneOf,
    Policy,
    Project,
    Resources,
    Table,
    UnsupportedColumn,
    Value,
    kind_of,
    read_project,
)
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.steps import MOST_STEPS
from sfumato.errors import InvalidArgument, LedgerError, ProjectRefused, SfumatoError
from sfumato.ledger import OWNER, Binding, Ledger, Owner, Proposal, Renewal
from sfumato.session.database import Database
from sfumato.session.sources import (
    database_sources,
    declared_columns,
    declared_keys,
    declared_units,
    private_sources,
)

__all__ = ["connect", "open", "open_project", "propose"]

_LOG = logging.getLogger("sfumato")


def connect(
    source: Any,
    *,
    unit: str | Mapping[str, str] | None,
    table: str | Sequence[str] | Mapping[str, str] | None = None,
    protects: str | None = None,
    budget: PrivacyBudget | None = None,
    columns: Mapping[str, Domain] | None = None,
    keys: Mapping[Sequence[str], Iterable[Sequence[Value]]] | None = None,
    ledger: str | os.PathLike[str] | None = None,
    name: str | None = None,
    max_groups: int | None = None,
    max_rows: int | None = None,
    max_rows_total: int | None = None,
    public: Mapping[str, Any] | None = None,
    renewal: Renewal | None = None,
    partition: str | None = None,
    analyst: str | Owner = OWNER,
    distinct: bool = False,
    keep_questions: bool = False,
    invariants: Sequence[Invariant] = (),
    memory: str | None = None,
    question_memory: str | None = None,
    seconds: float = 3600,
    steps: int = MOST_STEPS,
) -> Database:
    """Open a table about people, or several about the same people, and public tables beside them.

    `source` is a Parquet, CSV or DuckDB file, an Arrow table, reader or dataset, a pandas or polars
    DataFrame, a DuckDB relation; several are a mapping from their names. `unit` is the column that says whose
    each row is; None makes every row a unit by itself. Several tables may name the same people by columns of
    their own, or reach them through a key: `unit={"orders": "customer", "lines": "order_id -> orders.id ->
    customer"}`; where the names of these columns differ, `protects` says who they are. `columns` declares
    bounds and values, never read off the data, under `column` or `table.column`; `keys` the combinations of
    several: `{("region", "kind"): [("north", "a")]}`. Without a `ledger` file the budget is forgotten when
    the process ends; without a `budget` the one on record goes on.

    `source` may also be the address of a PostgreSQL database, `"postgresql://reader@host/clinic"`: then
    `table` names its table, several in a list, or each by the name that questions use, and so does `public`.
    It may be a frame of Spark, `spark.table("visits")`, or the address of one, `"sc://host"`.

    `max_groups`, `max_rows` and `max_rows_total` cap what one unit counts for: groups, the weight of rows in
    each of them, and in all.

    `renewal` says how much of the budget a day, week, month or year may use, `partition` names the column
    that divides units into parts, and `analyst` who asks, under a grant of the owner's. A ledger keeps one
    unit: `distinct` is the owner's word that a second one is not the same people under another name. With
    `keep_questions` it keeps the text of each question, for the owner alone. `invariants` are totals that are
    public: consistent answers keep them, and nothing protects them.

    `memory`, such as "8GB", is what all questions that run at a time may take, by default four fifths of the
    machine's; a question waits, before it is charged, until its `question_memory`, by default all of it, is
    free. `seconds` is what one statement of the engine may take: at most 2,000,000. `steps` is how much work
    pricing one question may take.

    >>> import pyarrow as pa
    >>> from sfumato import Budget, between, one_of
    >>> visits = pa.table({"person": [1, 1, 2], "region": ["north", "south", "north"], "cost": [9, 20, 3]})
    >>> db = connect(
    ...     visits,
    ...     name="visits",
    ...     unit="person",
    ...     columns={"region": one_of("north", "south"), "cost": between(0, 500)},
    ...     max_groups=2,
    ...     max_rows=5,
    ...     budget=Budget(epsilon=3, delta=1e-7),
    ... )
    >>> [table.name for table in db.catalog.tables]
    ['visits']
    """
    source, name, public = database_sources(source, table, name, public)
    tables = private_sources(source, name=name, unit=unit, public=public)
    units = declared_units(unit, protects, tables)
    protected = next(iter(units.values()))
    declared = declared_columns(columns, tables, public)
    listed = declared_keys(keys, tables)
    caps = {"max_groups": max_groups, "max_rows": max_rows, "max_rows_total": max_rows_total}
    shared: dict[str, Any] = {"partition": partition, **caps}
    declarations = [
        Declaration(name=each, unit=units[each], columns=declared[each], keys=listed[each], **shared)
        for each in tables
    ]
    declarations += [Declaration(name=each, unit=None, columns=declared[each]) for each in public or {}]
    if budget is None and renewal is not None:
        raise InvalidArgument("a renewal is registered together with a budget", place="renewal")
    sources = {**tables, **(public or {})}
    book = Ledger.open(ledger)
    policy = Policy(keep_questions=keep_questions, invariants=tuple(invariants))
    resources = Resources(memory=memory, question_memory=question_memory, seconds=seconds, steps=steps)
    catalog, backend, bindings = _opened(sources, declarations, Declaration.table, policy, resources)
    book.fix(
        Proposal(
            unit=protected.name,
            budget=budget,
            renewal=renewal,
            partition=None if budget is None else partition,
            distinct=distinct,
            **bindings,
        )
    )
    return Database(
        catalog=catalog,
        terms=book.budget(protected.name),
        ledger=book,
        backend=backend,
        unit=protected.name,
        analyst=analyst,
        steps=resources.steps,
    )


def open(
    path: str | os.PathLike[str] = "sfumato.toml",
    *,
    analyst: str | Owner = OWNER,
    ledger: Ledger | None = None,
) -> Database:
    """Open the tables of the project file at `path`, private and public, with its budget, ledger and policy.

    The ledger must be there already, as `sfumato init` leaves it: one that is missing may have been
    moved, and a new one would begin with nothing spent. The first question that is charged fixes in it
    what the file says; until then the file can be changed. Where the policy names analysts, `analyst`
    says who asks. Another `ledger` can be given, to look at prices without touching the real one.

    >>> open("missing.toml")
    Traceback (most recent call last):
        ...
    sfumato.errors.ProjectRefused: error[SF701]: there is no project file here
      at missing.toml
    hint: `sfumato init people.parquet` writes one; --project names another place
    """
    return open_project(read_project(os.fspath(path)), analyst=analyst, ledger=ledger)


def open_project(
    project: Project, *, analyst: str | Owner = OWNER, ledger: Ledger | None = None, read: bool = True
) -> Database:
    """Open the tables of a project that was read already; see `open`.

    Without `read` nothing can be asked, and no value is looked at, except in public CSV files, whose kinds
    of columns follow from them: for prices.
    """
    book = Ledger.open(project.ledger, create=False) if ledger is None else ledger
    _check_analyst(project, book, analyst)
    sources = {table.name: table.source for table in project.tables}
    known = {table.name: table for table in project.tables}
    declarations = [table.declaration for table in project.tables]

    def fits(declared: Declaration, *found: Any) -> Table:
        return project.table(known[declared.name], *found)

    try:
        opened = _opened(sources, declarations, fits, project.policy, project.engine, read=read)
    except InvalidArgument as error:
        raise _unopened(project, error) from None
    catalog, backend, bindings = opened
    propose(project, book, **bindings)
    return Database(
        catalog=catalog,
        terms=project.budget,
        ledger=book,
        backend=backend,
        unit=project.unit,
        analyst=analyst,
        steps=project.engine.steps,
    )


def propose(
    project: Project, ledger: Ledger, *, private: tuple[Binding, ...] = (), public: tuple[Binding, ...] = ()
) -> None:
    """Hold a project and its tables against the record of a ledger; what contradicts it is refused.

    Nothing is written before the first charge.
    """
    period = project.period
    proposal = Proposal(
        unit=project.unit,
        budget=project.budget,
        renewal=None if period is None else Renewal(every=period.every, budget=period.budget),
        partition=project.partition,
        private=private,
        public=public,
        grants=tuple((each.name, each.budget) for each in project.policy.analysts),
    )
    try:
        ledger.propose(proposal)
    except LedgerError as error:
        if error.code != "SF605":
            raise
        raise _unlike_record(project, ledger, error) from None


def _unlike_record(project: Project, ledger: Ledger, error: LedgerError) -> ProjectRefused:
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
            "its renewal and its partition are fixed with it, by the first question that was charged",
            "a budget is about people, not about a file: whoever edits one gives them no other",
        ),
    )


def _unopened(project: Project, error: InvalidArgument) -> SfumatoError:
    """Return a refusal of tables with the line of the one that it is about, if it is about one."""
    for table in project.tables:
        if f"table `{table.name}`" in error.message:
            key = "unit" if error.place == "unit" else table.key
            return project.written.refusal(
                error.message, ("tables", table.name, key), code="SF706", hints=error.hints
            )
    return error


def _opened(
    sources: Mapping[str, Any],
    declarations: Sequence[Declaration],
    fits: Callable[[Declaration, tuple[Field, ...], tuple[UnsupportedColumn, ...]], Table],
    policy: Policy,
    engine: Resources,
    *,
    read: bool = True,
) -> tuple[Catalog, Backend, dict[str, Any]]:
    """Open sources, and make of each the table that it is declared to be.

    Return also what identifies the private tables, and the public ones.
    """
    from sfumato.backends import open_tables

    opened = open_tables(
        sources,
        memory=engine.memory,
        question_memory=engine.question_memory,
        seconds=engine.seconds,
        read=read,
        kinds={each.name: _kinds(each) for each in declarations if each.unit is not None},
    )
    tables = (fits(each, opened.fields(each.name), opened.left_out(each.name)) for each in declarations)
    catalog = Catalog(tuple(tables), policy)
    bindings: dict[str, Any] = {"private": (), "public": ()}
    for table in catalog.tables:
        kind, number = "private" if table.private else "public", len(table.fields)
        _LOG.info(
            "opened %s table %r: %d columns, %d left out", kind, table.name, number, len(table.unsupported)
        )
        column = None if table.unit is None else table.unit.text
        binding = Binding(table=table.name, sources=opened.identities(table.name), column=column)
        bindings["private" if table.private else "public"] += (binding,)
    backend = opened.backend(catalog)
    if read:
        backend.check_names()
    return catalog, backend, bindings


def _kinds(declared: Declaration) -> dict[str, Kind]:
    """Return the kinds of columns that follow from what is declared: a bounded number may be any number."""
    found = {}
    for name, column in declared.known().items():
        match column.domain:
            case OneOf(values=(first, *_)):
                kind = kind_of(first) or Kind.TEXT
                found[name] = Kind.REAL if kind.digits else kind
            case Between(lower=lower):
                number = isinstance(lower, Fraction)
                found[name] = Kind.REAL if number else kind_of(lower) or Kind.TEXT  # type: ignore[arg-type]
    return found


def _check_analyst(project: Project, ledger: Ledger, analyst: str | Owner) -> None:
    """Refuse whoever neither the policy nor the ledger names, where the policy names anybody."""
    if analyst is None:
        raise InvalidArgument(
            "say who asks: the name of an analyst, or sf.OWNER",
            place="analyst",
            hints=("a missing name does not stand for the owner",),
        )
    known = {each.name for each in project.policy.analysts}
    if not known or analyst in known:
        return
    begun = project.unit in ledger.units()
    if begun and any(grant.analyst == analyst for grant in ledger.grants(project.unit)):
        return
    owner = isinstance(analyst, Owner)
    raise project.written.refusal(
        "this project says who may ask" if owner else f"`{analyst}` may not ask here",
        ("policy", "analysts"),
        code="SF705",
        hints=("say who you are: --analyst NAME, or analyst= in Python",)
        if owner
        else ("the owner can add a grant: [policy.analysts.<name>]",),
    )
