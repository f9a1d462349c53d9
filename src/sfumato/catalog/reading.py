"""Reading a project file (`checks.KEYS` are its keys): every mistake is refused with its line and a hint."""

from __future__ import annotations

import datetime
import re
import tomllib
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from sfumato.catalog.checks import Checks, Place
from sfumato.catalog.database_table import DatabaseTable
from sfumato.catalog.declaration import Column, Declaration
from sfumato.catalog.domain import Between, Domain, KeyList, OneOf
from sfumato.catalog.kind import Kind, kind_of
from sfumato.catalog.positions import Written
from sfumato.catalog.project import Project, ProjectStream, ProjectTable
from sfumato.catalog.resources import Resources
from sfumato.catalog.server_address import has_password, is_address, looks_like_address, shown_line
from sfumato.catalog.table import CAPS
from sfumato.catalog.terms import Terms
from sfumato.catalog.unit import Unit
from sfumato.catalog.workloads import Workloads
from sfumato.core.arguments import budget_quantity, count
from sfumato.errors import ProjectRefused

__all__ = ["read_project"]

_AT = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*\Z")


def read_project(path: str | Path) -> Project:
    """Read a project file. Looks at no table: whether columns exist is for `Project.table` to say."""
    shown = str(path)
    try:
        text = Path(path).read_bytes().decode()
    except FileNotFoundError:
        raise ProjectRefused(
            "there is no project file here",
            code="SF701",
            file=shown,
            hints=("`sfumato init people.parquet` writes one; --project names another place",),
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        reason = "is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else "cannot be read"
        raise ProjectRefused(f"the project file {reason}", code="SF701", file=shown) from None
    try:
        values = tomllib.loads(text, parse_float=Decimal)
        written = Written.of(shown, text)
    except tomllib.TOMLDecodeError as error:
        raise _not_toml(error, shown, text.splitlines()) from None
    except (RecursionError, ValueError) as error:  # the reader's own limits
        deep = isinstance(error, RecursionError)
        raise ProjectRefused(
            f"the project file {'is nested too deeply' if deep else 'has a number that is too long'}",
            code="SF702",
            file=shown,
            hints=("a project file has a few levels, and numbers of a few digits",),
        ) from None
    return _Reader(written).project(values, Path(path).absolute().parent)


def _not_toml(error: tomllib.TOMLDecodeError, file: str, lines: list[str]) -> ProjectRefused:
    found = _AT.search(str(error))
    message = _AT.sub("", str(error))
    line = int(found[1]) if found and found[1] else max(1, len(lines))
    twice = "twice" in message or "overwrite" in message
    hint = "text stands in quotes; a name that is not letters and digits does, too"
    return ProjectRefused(
        f"this is not TOML: {message[:1].lower()}{message[1:]}",
        code="SF702",
        file=file,
        line=line,
        column=int(found[2]) if found and found[2] else None,
        text=shown_line(lines[line - 1]) if line <= len(lines) else None,
        hints=("each name stands once: give one of the two another name, or remove it" if twice else hint,),
    )


class _Reader(Checks):
    def project(self, values: dict[str, Any], folder: Path) -> Project:
        self._no_password(values)  # first: other refusals repeat a text of the file
        self.known(values, (), "", "")
        sources = self._sources(values.get("sources", {}))
        tables = self.need(values, (), "tables", "[tables.people] with a path and a unit declares one")
        self.mapping(tables, ("tables",), "tables are [tables.<name>]")
        if not tables:
            self.refuse("there are no tables", ("tables",), "declare one: [tables.people]", code="SF704")
        self._names(tables)
        protects = self.text(values, (), "protects", None)
        declared = [self._table(name, table, folder, sources) for name, table in tables.items()]
        unit = self._unit(declared, protects)
        declared = [self._protected(table, unit) for table in declared]
        private = [table.name for table in declared if table.declaration.unit is not None]
        ledger = self.text(
            values, (), "ledger", "a budget that nobody remembers protects nobody: ledger = 'people.ledger'"
        )
        if not is_address(str(ledger)) and looks_like_address(str(ledger)):
            hint = "an address begins so: postgresql://host/database, postgresql:///?service=name"
            self.refuse("the ledger is neither a file nor an address that is known", ("ledger",), hint)
        terms = self.need(values, (), "budget", "how much may be learned about one person, ever: [budget]")
        reads, workloads = Terms(self.written), Workloads(self.written)
        budget = reads.budget(terms)
        renew = terms.get("renew")
        return Project(
            written=self.written,
            tables=tuple(declared),
            unit=unit,
            budget=budget,
            people=reads.people(terms),
            period=None if renew is None else reads.period(renew, budget),
            ledger=str(ledger) if is_address(str(ledger)) else folder / str(ledger),
            policy=reads.policy(values.get("policy", {}), budget),
            engine=self._engine(values.get("engine", {})),
            workloads=workloads.questions(values.get("workloads", {}), folder),
            marginals=workloads.marginals(values.get("marginals", {}), private),
            streams=self._streams(values.get("streams", {})),
        )

    def _streams(self, streams: Any) -> tuple[ProjectStream, ...]:
        self.mapping(streams, ("streams",), "streams are [streams.<name>]")
        return tuple(self._stream(name, given) for name, given in streams.items())

    def _stream(self, name: str, given: Any) -> ProjectStream:
        at: Place = ("streams", name)
        self.known(given, at, "streams.<name>", "a stream has keys of its own: question, by, every, ..")
        start = self.need(given, at, "start", "the first period begins then: start = 2026-01-01")
        if not isinstance(start, datetime.date | str):
            self.refuse("start must be a date or a timestamp", (*at, "start"), "start = 2026-01-01")
        question = self.need(given, at, "question", 'question = "SELECT COUNT(*) AS n FROM visits"')
        if not isinstance(question, str):
            self.refuse("question must be text", (*at, "question"), "write it in quotes")
        counts = {
            key: self.attempt((*at, key), count, given[key], key)
            for key in ("horizon", "design", "periods", "apart")
            if key in given
        }
        epsilon = self.need(given, at, "epsilon", "what all periods together may give away: epsilon = 1")
        return ProjectStream(
            name=name,
            question=question,
            by=str(self.text(given, at, "by", 'the column that says when: by = "day"')),
            every=str(self.text(given, at, "every", 'how long a period is: every = "day"')),
            start=start,
            epsilon=self.attempt((*at, "epsilon"), budget_quantity, epsilon, "epsilon"),
            late=self.attempt((*at, "late"), count, given.get("late", 7), "late", least=0),
            duplicates=self.text(given, at, "duplicates", None) or "count",
            row_id=self.text(given, at, "row_id", None),
            purpose=self.text(given, at, "purpose", None),
            **counts,
        )

    def _engine(self, engine: Any) -> Resources:
        self.known(engine, ("engine",), "engine", 'the engine has keys of its own: memory = "8GB", ..')
        for name, value in engine.items():
            self.attempt(("engine", name), Resources, **{name: value})
        return Resources(**engine)

    # -- tables -------------------------------------------------------------------------------

    def _names(self, tables: dict[str, Any]) -> None:
        """Refuse two tables that a question could not tell apart."""
        known: dict[str, str] = {}
        for name in tables:
            first = known.setdefault(name.lower(), name)
            if first != name:
                self.refuse(
                    f"`{name}` and `{first}` are one name: questions do not tell capitals apart",
                    ("tables", name),
                    "rename one of them",
                )

    def _table(self, name: str, table: Any, folder: Path, sources: dict[str, Any]) -> ProjectTable:
        at = ("tables", name)
        self.known(table, at, "tables.<name>", "a table has keys of its own: path, unit, ..")
        if not _NAME.match(name):
            self.refuse(
                f"`{name}` is not a name for a table",
                at,
                "letters, digits and underscores; a dot after a schema",
            )
        ways = [way for way in ("unit", "each_row", "public") if table.get(way) not in (None, False)]
        if len(ways) != 1:
            hint = 'private: unit = "person_id", or each_row = true; no secret at all: public = true'
            words = "says two things about whom it is about" if ways else "does not say whom it is about"
            code = "SF705" if ways else "SF704"
            self.refuse(f"table `{name}` {words}", (*at, *ways[-1:]), hint, code=code)
        for flag in ("each_row", "public"):
            self.flag(table, at, flag)
        unit: Unit | None = None
        if ways == ["unit"]:
            unit = self.attempt((*at, "unit"), Unit.read, str(self.text(table, at, "unit", None)))
        elif ways == ["each_row"]:
            unit = Unit(name=f"row of {name}", column=None)
        caps = {cap: self.attempt((*at, cap), count, table[cap], cap) for cap in CAPS if cap in table}
        partition = self.text(table, at, "partition", None)
        if unit is None and caps:
            self.refuse(
                "caps are about people; a public table has none", (*at, next(iter(caps))), "leave it out"
            )
        columns = table.get("columns", {})
        self.mapping(columns, (*at, "columns"), "columns are a table: age = { between = [0, 110] }")
        return ProjectTable(
            declaration=Declaration(
                name=name,
                unit=unit,
                columns={each: self._column(columns[each], (*at, "columns", each)) for each in columns},
                partition=partition,
                keys=self._keys(table.get("keys", []), (*at, "keys")),
                **caps,
            ),
            **self._place(name, table, at, folder, sources),
        )

    def _place(
        self, name: str, table: dict[str, Any], at: Place, folder: Path, sources: dict[str, Any]
    ) -> dict[str, Any]:
        """Return where a table is: its files, or its name in a database."""
        if "source" not in table:
            if "table" in table:
                self.refuse("`table` is a table of a source", (*at, "table"), 'source = "<name of a source>"')
            return {"paths": self._paths(table, at, folder)}
        if "path" in table:
            self.refuse("a table has a path or a source, not both", (*at, "source"), "choose")
        source = self.text(table, at, "source", None)
        if source not in sources:
            hint = f"sources are {', '.join(sources)}" if sources else f"declare it: [sources.{source}]"
            self.refuse(f"there is no source `{source}`", (*at, "source"), hint)
        named = self.text(table, at, "table", None) or name
        return {"database": self.attempt((*at, "table"), DatabaseTable, table=named, **sources[str(source)])}

    def _no_password(self, given: Any, at: Place = ()) -> None:
        """Refuse a password, wherever it stands, without showing its line."""
        if isinstance(given, dict | list):
            for key, one in given.items() if isinstance(given, dict) else enumerate(given):
                self._no_password(one, (*at, key))
        elif isinstance(given, str) and (is_address(given) or "sources" in at) and has_password(given):
            raise ProjectRefused(
                "a project file holds no password",
                code="SF705",
                file=self.written.file,
                key=".".join(map(str, at)),
                hints=(
                    "leave it to PostgreSQL's own password file or service file: ~/.pgpass, service=clinic",
                    'or name a variable that holds the whole address: environment = "CLINIC"',
                ),
            )

    def _sources(self, sources: Any) -> dict[str, Any]:
        """Return the databases by name."""
        self.mapping(sources, ("sources",), "sources are [sources.<name>]")
        for name, given in sources.items():
            at: Place = ("sources", name)
            self.known(given, at, "sources.<name>", 'a source has an address: address = "service=clinic"')
            if len(given) != 1:
                hint = 'address = "service=clinic", or environment = "CLINIC": a variable that holds it'
                self.refuse(f"source `{name}` needs an address, and one alone", at, hint, code="SF704")
            for key in given:
                self.text(given, at, key, "")
        return dict(sources)

    def _paths(self, table: dict[str, Any], at: Place, folder: Path) -> tuple[str, ...]:
        given = self.need(table, at, "path", 'the file that holds it: path = "people.parquet"')
        several = given if isinstance(given, list) else [given]
        if not several or not all(isinstance(one, str) and one for one in several):
            self.refuse("path must be text, or a list of texts", (*at, "path"), "quote it")
        return tuple(str(folder / Path(one).expanduser()) for one in several)

    def _keys(self, lists: Any, at: Place) -> tuple[KeyList, ...]:
        if not isinstance(lists, list):
            self.refuse("keys are lists of combinations", at, "[[tables.<name>.keys]]")
        found = []
        for place, one in enumerate(lists):
            here = (*at, place)
            hint = 'a list of keys has columns = ["a", "b"] and values = [["x", 1], ..]'
            self.known(one, here, "tables.<name>.keys", hint)
            columns = self.need(one, here, "columns", 'columns = ["region", "kind"]')
            values = self.need(one, here, "values", 'values = [["north", "a"], ["south", "b"]]')
            if not isinstance(columns, list) or not all(isinstance(each, str) for each in columns):
                self.refuse("columns are a list of names", (*here, "columns"), "quote them")
            if not isinstance(values, list) or not all(isinstance(each, list) for each in values):
                self.refuse("values are a list of lists", (*here, "values"), '[["north", "a"]]')
            rows = tuple(tuple(self._listed(value, (*here, "values")) for value in each) for each in values)
            found.append(self.attempt(here, KeyList, columns=tuple(columns), rows=rows))
        return tuple(found)

    def _listed(self, value: Any, at: Place) -> Any:
        """Return a listed value as Python has it; a number with an exponent is a binary one, as in SQL."""
        if isinstance(value, list | dict | datetime.time):
            self.refuse("a value is text, a number, a date, true or false", at, "")
        return float(value) if isinstance(value, Decimal) and kind_of(value) is Kind.REAL else value

    def _column(self, column: Any, at: Place) -> Column:
        hint = "say { between = [0, 110] } or { one_of = ['north', 'south'] }"
        self.known(column, at, "tables.<name>.columns.<column>", hint)
        domain: Domain | None = None
        if "bins" in column and "between" not in column:
            self.refuse("bins divide what lies between bounds", (*at, "bins"), "between = [0, 110]")
        if "between" in column and "one_of" in column:
            self.refuse("a column has bounds or values, not both", (*at, "one_of"), "choose")
        if "between" in column:
            ends = column["between"]
            if not isinstance(ends, list) or len(ends) != 2:
                self.refuse("between needs two bounds", (*at, "between"), "between = [0, 110]")
            for place, end in enumerate(ends):
                if isinstance(end, bool) or not isinstance(end, int | Decimal | datetime.date):
                    self.refuse(
                        "bounds are numbers, dates or timestamps",
                        (*at, "between", place),
                        "dates are written without quotes: 1900-01-01",
                    )
            domain = self.attempt((*at, "between"), Between, *ends)
            if "bins" in column:
                domain = self.attempt((*at, "bins"), Between, *ends, column["bins"])
        elif "one_of" in column:
            values = column["one_of"]
            if not isinstance(values, list):
                self.refuse("one_of needs a list of values", (*at, "one_of"), 'one_of = ["a", "b"]')
            plain = tuple(self._listed(value, (*at, "one_of", place)) for place, value in enumerate(values))
            domain = self.attempt((*at, "one_of"), OneOf, plain)
        return Column(domain=domain, nullable=self.flag(column, at, "nullable", True))

    def _unit(self, tables: list[ProjectTable], protects: str | None) -> str:
        """Return who is protected. A project is about one unit: that is what its one budget is for."""
        private = [table for table in tables if table.declaration.unit is not None]
        if not private:
            self.refuse(
                "no table is private, so there is nothing to protect",
                ("tables",),
                'name whose the rows are: unit = "person_id"',
                code="SF704",
            )
        names = {table.declaration.unit.name for table in private if table.declaration.unit}
        rows = [t for t in private if t.declaration.unit and t.declaration.unit.column is None]
        if rows and len(private) > 1:
            self.refuse(
                f"`{rows[-1].name}` protects rows, and other tables protect somebody else",
                ("tables", rows[-1].name, "each_row"),
                "one project protects one kind of unit: give it a project file of its own",
            )
        if protects is not None:
            return protects
        if len(names) > 1:
            last = private[-1].name
            self.refuse(
                f"private tables name their units differently: {', '.join(sorted(names))}",
                ("tables", last, "unit"),
                'if they are the same people, say who, at the top: protects = "patient"',
                "if not, give the others a project file of their own",
            )
        return names.pop()

    @staticmethod
    def _protected(table: ProjectTable, unit: str) -> ProjectTable:
        declared = table.declaration
        if declared.unit is None:
            return table
        whose = replace(declared.unit, name=unit)
        return replace(table, declaration=replace(declared, unit=whose))
