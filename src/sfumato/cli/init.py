"""`sfumato init`: write a project file. Asks on a terminal; reads schemas, never values."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from sfumato.advise import usual_delta
from sfumato.catalog import (
    Catalog,
    Column,
    DatabaseTable,
    Declaration,
    Domain,
    Kind,
    Policy,
    Project,
    ProjectTable,
    Unit,
    has_password,
    is_address,
    is_spark_address,
    looks_like_address,
    read_project,
)
from sfumato.catalog.declaration import nearest
from sfumato.catalog.positions import Written
from sfumato.catalog.writing import project_text
from sfumato.cli.answers import ask, bounds_or_values, values_of
from sfumato.cli.nearby_projects import refuse_second_ledger
from sfumato.cli.odds import EPSILON, delta_in_words, epsilon_in_words, examples
from sfumato.cli.options import Wishes
from sfumato.cli.outputs import PROJECT_FILE, check_apart, kept, write
from sfumato.cli.schema import Schema, schema_of
from sfumato.cli.screen import screen
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.arguments import LARGE_DELTA, budget_quantity, delta_quantity
from sfumato.errors import InvalidArgument
from sfumato.ledger import Ledger
from sfumato.session.sources import declared_units

__all__ = ["run"]

_EPSILON = 3.0
_DELTA_WORDS = (
    "delta is the chance that this fails for a person. Keep it far below 1 in the number of people: "
    "at 1/n, publishing the records of one of them, drawn by lot, would count as private"
)
_LATER = "later"  # what is typed to leave a cap open
_CAPS = {
    "max_groups": "In how many groups may one of them count",
    "max_rows": "With the weight of how many rows in each",
}


@dataclass(slots=True, kw_only=True)
class _Draft:
    """What is known so far, table by table."""

    places: dict[str, tuple[str, ...] | DatabaseTable]
    schemas: dict[str, Schema]
    private: tuple[str, ...]
    domains: dict[str, dict[str, Domain]] = field(default_factory=dict)


def run(wishes: Wishes, *, project: str, ask: bool, force: bool) -> None:
    """Write the project file and begin the ledger."""
    target = Path(project)
    if target.exists() and not force:
        raise InvalidArgument(
            "there is a project file already", place=project, hints=("--force writes over it",)
        )
    folder = target.absolute().parent
    if target.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InvalidArgument(
            "the project file cannot be written there",
            place=project,
            hints=("name a file in a folder that exists and can be written to",),
        )
    draft = _drafted(wishes)
    talk = ask and sys.stdin.isatty()
    if ask and wishes.delta is not None:
        _delta(wishes.delta, wishes.people)  # before anything is asked
    wishes = _talk(wishes, draft) if talk else wishes
    _declare(wishes, draft)
    made = _project(wishes, draft, target)
    if wishes.ledger is None:
        known = [text for name in draft.private for text in draft.schemas[name].sources]
        refuse_second_ledger(made.tables, target=target, ledger=Path(made.ledger), known=known)
    keep = {path: what for path, what in kept(made).items() if what != PROJECT_FILE}
    check_apart(target, keep, "--project")
    fields = {name: schema.fields or () for name, schema in draft.schemas.items()}
    text = project_text(
        made.tables,
        budget=made.budget,
        ledger=made.ledger,
        people=made.people,
        ceiling=made.policy.ceiling,
        folder=folder,
        fields=fields,
        protects=made.unit,
    )
    place, begun = _begin(made.ledger)  # before the file is written: where this is refused, nothing is left
    write(text.encode(), project, paid=False)
    read_project(target)  # what was written is what will be read
    out = screen()
    out.print(f"written: {target}")
    state = "begun" if begun else "goes on: what was spent stays spent"
    out.print(f"ledger: {place}, {state}")
    if any(_uncapped(table.declaration) for table in made.tables):
        out.print(
            "caps are not set: until then questions bring their own, and streams are refused;"
            " --max-groups 1 --max-rows 1 counts each once, `sfumato caps` finds them privately"
        )
    out.print("next: look it through, then `sfumato check`; the first question fixes the budget, for ever")


def _begin(ledger: Path | str) -> tuple[str, bool]:
    """Begin a ledger, or find that there is one; return its place, and whether it is a new one."""
    if not is_address(ledger):
        begun = not Path(ledger).exists()
        Ledger.open(ledger).close()
        return os.path.relpath(ledger), begun
    with Ledger.open(ledger) as opened:
        return opened.place, opened.head().sequence == 1


def _uncapped(declared: Declaration) -> bool:
    several = declared.unit is not None and declared.unit.column is not None
    return several and None in (declared.max_groups, declared.max_rows)


def _drafted(wishes: Wishes) -> _Draft:
    address = next((one for one in wishes.files if is_address(one) or is_spark_address(one)), None)
    private = wishes.files if address is None else wishes.table or []
    _check_address(wishes, address)
    places: dict[str, tuple[str, ...] | DatabaseTable] = {}
    for given in (*private, *(wishes.public or ())):
        origin = None if address is None else DatabaseTable(table=given, address=address)
        called = _called(Path(given)) if origin is None else origin.parts[-1]
        name = re.sub(r"\W", "_", called, flags=re.ASCII) or "data"
        name = name if not name[0].isdigit() else f"_{name}"
        if name in places:
            what = "files" if origin is None else "tables"
            raise InvalidArgument(f"two {what} would be table `{name}`", place=given, hints=("rename one",))
        places[name] = origin or (os.path.abspath(given),)
    schemas = {name: schema_of(name, place) for name, place in places.items()}
    return _Draft(places=places, schemas=schemas, private=tuple(places)[: len(private)])


def _check_address(wishes: Wishes, address: str | None) -> None:
    """Refuse an address beside files, without tables, or with a password: it is never repeated."""
    if address is None:
        if wishes.table:
            raise InvalidArgument(
                "--table is for a database", place="--table", hints=("sfumato init postgresql://..",)
            )
        return
    if len(wishes.files) > 1:
        raise InvalidArgument("a project is about one database, or about files", place="files")
    if has_password(address):
        raise InvalidArgument(
            "a project file holds no password",
            place="address",
            hints=(
                "leave it to ~/.pgpass or a service file: postgresql:///?service=clinic",
                "a token of Spark Connect belongs in the environment: SPARK_CONNECT_AUTHENTICATE_TOKEN",
            ),
        )
    if not wishes.table:
        raise InvalidArgument(
            "say which tables of the database are about people",
            place="--table",
            hints=("--table visits, or with its schema: --table clinic.visits",),
        )


# -- what the options say ---------------------------------------------------------------------


def _declare(wishes: Wishes, draft: _Draft) -> None:
    for option, given in (("--between", wishes.between), ("--one-of", wishes.one_of)):
        for one in given or ():
            column, equals, text = one.partition("=")
            tables = [name for name in draft.private if column in draft.schemas[name].names]
            if not equals:
                example = "0,110" if option == "--between" else "north,south"
                raise InvalidArgument(
                    f"{option} needs column=..", place=one, hints=(f"{option} {column}={example}",)
                )
            if not tables:
                known = [each for name in draft.private for each in draft.schemas[name].names]
                raise InvalidArgument(
                    f"{option} does not name a column",
                    place=one,
                    hints=(nearest(column, known) or f"columns are {', '.join(known)}",),
                )
            for table in tables:
                draft.domains.setdefault(table, {})[column] = _given(option, one, text, draft, table, column)


def _given(option: str, one: str, text: str, draft: _Draft, table: str, column: str) -> Domain:
    try:
        return values_of(text, _kind(draft, table, column), bounds=option == "--between")
    except InvalidArgument as error:
        raise InvalidArgument(error.message, place=f"{option} {one}", hints=error.hints) from None


def _kind(draft: _Draft, table: str, column: str) -> Kind | None:
    fields = draft.schemas[table].fields
    return next((each.kind for each in fields or () if each.name == column), None)


def _project(wishes: Wishes, draft: _Draft, target: Path) -> Project:
    if not wishes.unit and not wishes.each_row:
        raise InvalidArgument(
            "whom are the rows about?",
            place="--unit",
            hints=("--unit person_id names the column; --each-row makes every row a unit by itself",),
        )
    if wishes.unit and wishes.each_row:
        raise InvalidArgument("give --unit or --each-row, not both", place="--each-row")
    if wishes.each_row and len(draft.private) > 1:
        raise InvalidArgument("--each-row is for one private table", place="--each-row")
    units = _units(wishes, draft)
    tables = [_table(name, wishes, draft, units.get(name)) for name in draft.places]
    epsilon = budget_quantity(_EPSILON if wishes.epsilon is None else wishes.epsilon, "epsilon")
    usual = usual_delta(wishes.people)
    delta = delta_quantity(usual if wishes.delta is None else wishes.delta, people=wishes.people)
    made = [
        table.declaration.table(fields, draft.schemas[table.name].unsupported)
        for table in tables
        if (fields := draft.schemas[table.name].fields) is not None
    ]
    if len(made) == len(tables):  # else kinds of columns are known when the files are opened
        Catalog(tuple(made))  # refuses what does not fit the columns
    ledger: Path | str = target.absolute().parent / (wishes.ledger or f"{target.stem}.ledger")
    if wishes.ledger is not None and is_address(wishes.ledger):
        ledger = wishes.ledger
        if has_password(ledger):
            raise InvalidArgument(
                "a project file holds no password",
                place="--ledger",
                hints=("set PGPASSWORD, or name a service: postgresql:///?service=ledger",),
            )
    elif wishes.ledger is not None and looks_like_address(wishes.ledger):
        raise InvalidArgument(
            "the ledger is neither a file nor an address that is known",
            place="--ledger",
            hints=("an address begins so: postgresql://host/database, postgresql:///?service=ledger",),
        )
    return Project(
        written=Written(str(target), (), {}),
        tables=tuple(tables),
        unit=units[draft.private[0]].name,
        budget=PrivacyBudget(epsilon=epsilon, delta=delta, keys_delta=delta / 10),
        people=wishes.people,
        ledger=ledger,
        policy=Policy(ceiling=None if wishes.ceiling is None else budget_quantity(wishes.ceiling, "ceiling")),
    )


def _units(wishes: Wishes, draft: _Draft) -> dict[str, Unit]:
    """Return the unit of each private table: `--unit column` is that of all, `--unit table=column` of one."""
    given: dict[str, str] = {}
    for one in wishes.unit or ():
        table, equals, text = one.partition("=")
        given |= {table: text} if equals else dict.fromkeys(draft.private, one)
    units = declared_units(given or None, wishes.protects, draft.private)
    for name, unit in units.items():
        known, first = draft.schemas[name].names, unit.first_column
        if first is not None and first not in known:
            raise InvalidArgument(
                f"table `{name}` has no column `{first}`",
                place="--unit",
                hints=(nearest(first, known) or f"its columns are {', '.join(known)}",),
            )
    return units


def _called(path: Path) -> str:
    """Return what files are called: `visits` of visits-*.parquet, and of visits/*.parquet."""
    named = re.sub(r"[\W_]*[*?\[].*", "", path.name.split(".")[0])
    return named or path.parent.name


def _table(name: str, wishes: Wishes, draft: _Draft, unit: Unit | None) -> ProjectTable:
    columns = {column: Column(domain=domain) for column, domain in draft.domains.get(name, {}).items()}
    capped = unit is not None and unit.column is not None
    declaration = Declaration(
        name=name,
        unit=unit,
        columns=columns,
        max_groups=wishes.max_groups if capped else None,
        max_rows=wishes.max_rows if capped else None,
        max_rows_total=wishes.max_rows_total if capped else None,
    )
    place = draft.places[name]
    if isinstance(place, DatabaseTable):
        return ProjectTable(declaration=declaration, database=place)
    return ProjectTable(declaration=declaration, paths=place)


# -- what the owner says ----------------------------------------------------------------------


def _talk(wishes: Wishes, draft: _Draft) -> Wishes:
    """Ask for what the options left open."""
    out = screen()
    out.print(
        "Declare what you know beforehand: a law, a code book, common sense. Never look at the data for it."
    )
    answered: dict[str, Any] = {}
    for name in draft.private:
        kinds = {each.name: each.kind.value for each in draft.schemas[name].fields or ()}
        shown = [f"{each} ({kinds[each]})" if each in kinds else each for each in draft.schemas[name].names]
        out.print(f"\n{name}: {', '.join(shown)}")
    if not wishes.unit and not wishes.each_row:
        columns = [draft.schemas[name].names for name in draft.private]
        common = [each for each in columns[0] if all(each in names for names in columns)]
        if common:
            asked = "Which column says whose each row is? (empty: every row is a unit)"
            found = ask(asked, "", lambda text: _column(text, common))
            answered = {"unit": [found]} if found else {"each_row": True}
        else:
            answered = {"unit": [_reached(name, draft) for name in draft.private]}
            if wishes.protects is None:
                answered["protects"] = ask("Who are they, in a word?", "person", str)
    wishes = replace(wishes, **answered)
    units = _units(wishes, draft) if wishes.unit else {}
    if units:
        if None in (wishes.max_groups, wishes.max_rows):
            out.print(
                f"With 1 and 1 each of them counts once; `sfumato caps` finds what is left for {_LATER}."
            )
        for cap, asked in _CAPS.items():
            if getattr(wishes, cap) is None:
                answered[cap] = ask(f"{asked}, or {_LATER}?", "1", _capped)
    said = {one.partition("=")[0] for one in (*(wishes.between or ()), *(wishes.one_of or ()))}
    for name in draft.private:
        for column in draft.schemas[name].names:
            if (name not in units or column != units[name].own_column) and column not in said:
                domain = _domain(column, _kind(draft, name, column))
                if domain is not None:
                    draft.domains.setdefault(name, {})[column] = domain
    answered |= _ask_budget(wishes)
    return replace(wishes, **answered)


def _ask_budget(wishes: Wishes) -> dict[str, Any]:
    """Ask for the budget, and say in words and odds what the numbers mean."""
    out = screen()
    answered: dict[str, Any] = {}
    epsilon, people, delta = wishes.epsilon, wishes.people, wishes.delta
    if epsilon is None:
        out.print("\n".join(["", f"{EPSILON}.", *(f"  {line}" for line in examples())]))
        asked = "The budget of these people, for ever: epsilon?"
        answered["epsilon"] = epsilon = ask(asked, f"{_EPSILON:g}", _epsilon)
    out.print(f"  {epsilon_in_words(epsilon)}")
    if people is None and delta is None:
        asked = "How many of them are there, if that is public? (empty: it is not)"
        answered["people"] = people = ask(asked, "", _cap)
    if delta is None:
        out.print(f"{_DELTA_WORDS}.")
        usual = f"{usual_delta(people):g}"
        answered["delta"] = delta = ask("And delta?", usual, lambda text: _delta(float(text), people))
    out.print(f"  {delta_in_words(delta, people)}")
    return answered


def _delta(delta: float, people: int | None) -> float:
    """Read a delta; refuse one that is large, where nobody says among how many people."""
    found = float(delta_quantity(delta, people=people))
    if people is None and found > LARGE_DELTA:
        raise InvalidArgument(
            f"delta = {delta:g} is above {LARGE_DELTA:g}, and nobody says how many people there are",
            place="--delta",
            hints=(
                "a usual choice is 1e-6 or less; --people 20000 says how many there are, if that is public",
                "--yes takes it as it is",
            ),
        )
    return found


def _domain(column: str, kind: Kind | None) -> Domain | None:
    """Ask what is known of a column."""
    if kind is None:  # a CSV file states none
        wanted, read = "between? low,high; or which values? a,b,c", bounds_or_values
    elif kind in (Kind.TEXT, Kind.BOOLEAN):
        wanted, read = "which values? a,b,c", partial(values_of, kind=kind, bounds=False)
    else:
        wanted, read = "between? low,high", partial(values_of, kind=kind, bounds=True)
    return ask(f"{column}: {wanted} (empty: not known)", "", lambda text: read(text) if text else None)


def _reached(name: str, draft: _Draft) -> str:
    """Ask how a table names its unit, where no column has the same name in all of them."""

    def read(text: str) -> str:
        if not _column(Unit.read(text).first_column or "", list(draft.schemas[name].names)):
            raise InvalidArgument("several tables are about one unit, which all of them name")
        return f"{name}={text}"

    return ask(
        f"Whose is each row of {name}? A column, or a path: order_id -> orders.id -> customer", "", read
    )


def _column(text: str, known: list[str]) -> str:
    if text and text not in known:
        raise InvalidArgument(f"there is no column `{text}`", hints=(nearest(text, known) or "",))
    return text


def _epsilon(text: str) -> float:
    return float(budget_quantity(float(text), "epsilon"))


def _capped(text: str) -> int | None:
    return None if text.lower() == _LATER else _cap(text)


def _cap(text: str) -> int | None:
    if not text:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise InvalidArgument("a whole number, at least 1")
    return int(text)
