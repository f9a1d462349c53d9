"""`sfumato check`: does the project file fit the tables, and what is missing? Reads no values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from sfumato.backends import open_tables
from sfumato.backends.files import Files
from sfumato.catalog import Kind, Project, ProjectTable, Table, read_project
from sfumato.catalog.declaration import nearest
from sfumato.catalog.project import ProjectStream
from sfumato.cli.project import book_of, role_notes
from sfumato.cli.schema import Schema, schema_of
from sfumato.cli.screen import say, working
from sfumato.cli.stream import declared_stream
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.arguments import LARGE_DELTA
from sfumato.errors import InvalidArgument, SfumatoError
from sfumato.ledger import Binding, Ledger
from sfumato.session import Database, open_project, propose
from sfumato.session.price import charge_of, shortage

__all__ = ["run"]


@dataclass(slots=True, kw_only=True)
class _Findings:
    """What a check found. Missing things are allowed, and say what they cost."""

    tables: list[dict[str, Any]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    role: list[str] = field(default_factory=list)  # what the role in a database may do beyond reading
    ledger: str = ""
    grants: list[str] = field(default_factory=list)  # where the ledger says something else than the file
    streams: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """Yield what was found, as text."""
        for each in self.tables:
            whose = f"private, unit `{each['unit']}`" if each["unit"] else "public"
            yield f"{each['name']}: {whose}, {each['columns']} columns, {each['declared']} declared"
        yield from (f"role: {line}" for line in self.role)
        yield f"ledger: {self.ledger}"
        yield from (f"grant: {line}" for line in self.grants)
        yield from (f"stream {line}" for line in self.streams)
        yield from (f"missing: {line}" for line in self.missing)
        yield from (f"left out {line}" for line in self.left_out)


def run(file: str, *, as_json: bool) -> None:
    """Check a project; the first thing that is wrong is refused with its line."""
    project = read_project(file)
    found = _Findings()
    with working("reading the schemas"):
        schemas = {table.name: _table(project, table, found) for table in project.tables}
        databases = {table.name: table.database for table in project.tables if table.database}
        with role_notes() as found.role:
            if databases:
                open_tables(databases)
    delta = float(project.budget.delta)
    if project.people is None and delta > LARGE_DELTA:
        found.missing.append(f"people of [budget]: delta {delta:g} must be far below 1 in their number")
    _ledger(project, schemas, found)
    text = "\n".join([*found.lines(), f"{file} fits its tables"])
    say(asdict(found), text, as_json=as_json)


def _table(project: Project, table: ProjectTable, found: _Findings) -> Schema:
    try:
        schema = schema_of(table.name, table.database or table.paths)
    except InvalidArgument as error:
        raise project.written.refusal(
            error.message, ("tables", table.name, table.key), code="SF706", hints=error.hints
        ) from None
    declared = table.declaration
    found.tables.append(
        {
            "name": table.name,
            "unit": project.unit if declared.unit else None,
            "columns": len(schema.names),
            "declared": len(declared.columns),
        }
    )
    if schema.fields is None:
        _names(project, table, schema)
        private = declared.unit is not None
        kinds = "columns without bounds or values are text" if private else "they are read when it is opened"
        found.missing.append(f"kinds of `{table.name}`: a CSV file states none; {kinds}")
        return schema
    made = project.table(table, schema.fields, schema.unsupported)
    found.left_out += [f"of `{table.name}`: {one.refusal}" for one in schema.unsupported]
    if declared.unit is not None:
        found.missing += _missing(table, made)
    return schema


def _names(project: Project, table: ProjectTable, schema: Schema) -> None:
    """Check names alone, where there are no kinds to check."""
    declared = table.declaration
    wanted = {column: ("columns", column) for column in declared.columns}
    if declared.unit is not None and declared.unit.first_column is not None:
        wanted[declared.unit.first_column] = ("unit",)  # type: ignore[assignment]
    for column, key in wanted.items():
        if column not in schema.names:
            raise project.written.refusal(
                f"table `{table.name}` has no column `{column}`",
                ("tables", table.name, *key),
                code="SF706",
                hints=(nearest(column, schema.names) or f"its columns are {', '.join(schema.names)}",),
            )


def _missing(table: ProjectTable, made: Table) -> list[str]:
    """Say what questions will be refused for."""
    declared = table.declaration
    lines = []
    if declared.unit is not None and declared.unit.column is not None:
        for cap in ("max_groups", "max_rows"):
            if getattr(declared, cap) is None:
                lines.append(f"{cap} of `{table.name}`: questions bring their own; `sfumato caps` finds one")
    for each in made.fields:
        if each.domain is not None or (made.unit and each.name == made.unit.own_column):
            continue
        column = f"of `{table.name}.{each.name}`"
        if each.kind.numeric:
            lines.append(f"bounds {column}: SUM, AVG and quantiles of it are refused")
        elif each.kind in (Kind.TEXT, Kind.BOOLEAN):
            lines.append(f"values {column}: groups by it are found privately, small ones not")
        else:
            lines.append(f"bounds {column}: quantiles of it are refused")
    return lines


def _ledger(project: Project, schemas: Mapping[str, Schema], findings: _Findings) -> None:
    """Hold the project and its files against the record of its ledger, as opening them would."""
    found: dict[bool, list[Binding]] = {True: [], False: []}
    for table in project.tables:
        schema, unit = schemas[table.name], table.declaration.unit
        sources = schema.sources
        if table.database is None:
            sources = Files.at(schema.files, table.name, whole=False).identities(schema.fields or ())
        column = None if unit is None else unit.text
        found[unit is not None].append(Binding(table=table.name, sources=sources, column=column))
    with book_of(project) as ledger:
        propose(project, ledger, private=tuple(found[True]), public=tuple(found[False]))
        findings.ledger = "begun; the first question that is charged fixes the budget"
        if project.unit in ledger.units():
            findings.ledger = str(ledger.balance(project.unit))
        findings.grants = _grants(project, ledger)
        if project.streams:
            database = open_project(project, ledger=ledger, read=False)
            findings.streams = [_stream(project, one.name, database) for one in project.streams]


def _stream(project: Project, name: str, database: Database) -> str:
    """Say what a stream is, and how far it is; refuse one that makes no sense, with its line."""
    keys = {one.name for one in fields(ProjectStream)}
    try:
        stream = declared_stream(name, project, database)
        priced = stream.priced()
        if stream.begun:
            state = f"{stream.periods.said(len(stream.show()))} are published"
        elif (refusal := shortage(database.balance, *charge_of(database, priced.question))) is not None:
            state = f"it would be refused now: {refusal.message}"
        else:
            state = "it has not begun"
    except SfumatoError as error:
        key = error.place if error.place in keys else "question"
        said = error.message.removeprefix(f"stream `{name}` ")
        raise project.written.refusal(
            f"stream `{name}`: {said}", ("streams", name, key), code="SF706", hints=error.hints
        ) from None
    return f"`{name}`: epsilon {float(priced.epsilon):g} for all {stream.periods.every}s together; {state}"


def _grants(project: Project, ledger: Ledger) -> list[str]:
    """Say where the ledger has other grants than the file, which it had from the file only at first."""
    stated = {each.name: each.budget for each in project.policy.analysts}
    lines = []
    for grant in ledger.grants(project.unit):
        name, held = grant.analyst, _limits(grant.budget)
        if name not in stated:
            lines.append(f"`{name}` has {held} on record, and is not in the file; the ledger rules")
        elif stated[name] != grant.budget:
            lines.append(
                f"`{name}` has {held} on record, the file says {_limits(stated[name])}; the ledger rules "
                f"(`sfumato ledger grant {name}` puts the file's on record)"
            )
    return lines


def _limits(budget: PrivacyBudget) -> str:
    return f"epsilon {float(budget.epsilon):g}, delta {float(budget.delta):g}"
