"""What `connect` is given: one private source or several by name, and declarations of their columns."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sfumato.catalog import Column, DatabaseTable, KeyList, Unit, Value, is_address, is_spark_address
from sfumato.errors import InvalidArgument

__all__ = ["database_sources", "declared_columns", "declared_keys", "declared_units", "private_sources"]


def private_sources(
    source: Any,
    *,
    name: str | None,
    unit: str | Mapping[str, str] | None,
    public: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Return the private sources by the names of their tables.

    >>> sorted(private_sources({"visits": "v.csv", "orders": "o.csv"}, name=None, unit="person", public=None))
    ['orders', 'visits']
    """
    if not isinstance(source, Mapping):
        found = {name or _name_of(source): source}
    else:
        found = {str(each): given for each, given in source.items()}
        if not found:
            raise InvalidArgument("no table is given", place="source", hints=('{"visits": visits}',))
        if name is not None:
            hint = "leave it out: the keys of the mapping are the names"
            raise InvalidArgument("several tables have names already", place="name", hints=(hint,))
        if len(found) > 1 and unit is None:
            raise InvalidArgument(
                "several tables are about one unit, which all of them name",
                place="unit",
                hints=(
                    'unit="person_id": a column that each of them has',
                    'unit={"visits": "patient", "people": "id"}: the column of each',
                ),
            )
    known = {each.lower() for each in found}
    if both := [each for each in public or {} if each.lower() in known]:
        raise InvalidArgument(
            f"table `{both[0]}` is given twice, as private and as public",
            place="public",
            hints=("what is about people is private",),
        )
    return found


def database_sources(
    address: Any,
    table: str | Sequence[str] | Mapping[str, str] | None,
    name: str | None,
    public: Mapping[str, Any] | None,
) -> tuple[Any, str | None, Mapping[str, Any] | None]:
    """Return a private source, its name, and public ones; of a database, its tables.

    >>> source, *_ = database_sources("postgresql:///?service=clinic", "clinic.visits", None, None)
    >>> source
    {'visits': DatabaseTable(table='clinic.visits', environment=None)}
    """
    if not is_address(address) and not is_spark_address(address):
        if table is not None:
            hint = 'sf.connect("postgresql://reader@host/clinic", table="visits", ..)'
            raise InvalidArgument("`table` is for the address of a database", place="table", hints=(hint,))
        return address, name, public
    if not table:
        hint = 'table="visits", table=["clinic.visits", "people"], or table={"visits": "clinic.visits"}'
        raise InvalidArgument("say which table of the database", place="table", hints=(hint,))
    if name is not None and not isinstance(table, str):
        hint = 'table={"visits": "clinic.visits"} gives each its name'
        raise InvalidArgument("one name is for one table", place="name", hints=(hint,))
    given: list[tuple[str | None, Any]] = [(name, table)] if isinstance(table, str) else []
    given = given or (list(table.items()) if isinstance(table, Mapping) else [(None, one) for one in table])
    found: dict[str, Any] = {}
    for called, one in given:
        origin = DatabaseTable(table=one, address=address)
        if (called := called or origin.parts[-1]) in found:
            hint = 'table={"one": "a.visits", "other": "b.visits"} gives each its name'
            raise InvalidArgument("two tables have one name", place="table", hints=(hint,))
        found[called] = origin
    beside = {each: DatabaseTable(table=one, address=address) for each, one in (public or {}).items()}
    return found, None, beside or public


def declared_units(
    unit: str | Mapping[str, str] | None, protects: str | None, tables: Iterable[str]
) -> dict[str, Unit]:
    """Return the unit of each private table: one column for all of them, or a column or path for each.

    >>> declared_units({"visits": "patient", "people": "id"}, "patient", ["visits", "people"])["people"]
    Unit(name='patient', column='id', path=())
    """
    names = list(tables)
    if unit is None:
        return {name: Unit(name=protects or f"row of {names[0]}", column=None) for name in names}
    given = dict.fromkeys(names, unit) if not isinstance(unit, Mapping) else unit
    known = {name.lower(): text for name, text in given.items()}
    for name in names:
        if not isinstance(known.get(name.lower()), str):
            raise InvalidArgument(
                f"it is not said whose the rows of table `{name}` are",
                place="unit",
                hints=(f'unit={{"{name}": "person_id"}}: the column that names the person, or a path to it',),
            )
    if others := [name for name in given if name.lower() not in {one.lower() for one in names}]:
        hint = f"private tables are {', '.join(names)}"
        raise InvalidArgument(f"there is no private table `{others[0]}`", place="unit", hints=(hint,))
    units = {name: Unit.read(known[name.lower()], name=protects) for name in names}
    if len(columns := sorted({one.name for one in units.values()})) > 1:
        raise InvalidArgument(
            f"private tables name their units differently: {', '.join(columns)}",
            place="unit",
            hints=('they are the same people: say who, protects="customer"',),
        )
    return units


def declared_columns(
    columns: object, private: Mapping[str, Any], public: Mapping[str, Any] | None
) -> dict[str, dict[str, Column]]:
    """Return what is declared about the columns of each table.

    `column` is one of the private table; `table.column` is one of the table of that name, also of a public
    one: `{"cost": between(0, 500), "places.pop": between(0, 10**7)}`.
    """
    tables = {name.lower(): name for name in (*private, *(public or {}))}
    found: dict[str, dict[str, Column]] = {name: {} for name in tables.values()}
    columns = {} if columns is None else columns
    if not isinstance(columns, Mapping):
        hint = 'columns={"age": sf.between(0, 110)}'
        raise InvalidArgument("declarations are a mapping from columns", place="columns", hints=(hint,))
    for key, domain in columns.items():
        table, column = _divided(key, tables)
        if table is not None:
            found[table][column] = Column.of(key, domain)
        elif len(private) == 1:
            found[next(iter(private))][key] = Column.of(key, domain)
        else:
            raise InvalidArgument(
                f"it is not said which table `{key}` is a column of",
                place="columns",
                hints=(f"write {' or '.join(f'`{name}.{key}`' for name in private)}",),
            )
    return found


def declared_keys(
    keys: Mapping[Sequence[str], Iterable[Sequence[Value]]] | None, private: Mapping[str, Any]
) -> dict[str, tuple[KeyList, ...]]:
    """Return the lists of keys of each private table; their columns are named as in `declared_columns`."""
    tables = {name.lower(): name for name in private}
    found: dict[str, tuple[KeyList, ...]] = dict.fromkeys(private, ())
    for columns, given_rows in (keys or {}).items():
        rows = list(given_rows)
        if any(isinstance(one, str) or not isinstance(one, Sequence) for one in (columns, *rows)):
            hint = 'keys={("region", "kind"): [("north", "a"), ("south", "b")]}'
            raise InvalidArgument("a list of keys is about several columns", place="keys", hints=(hint,))
        named = [_divided(name, tables) for name in columns]
        known = {table for table, _ in named}
        if len(private) == 1 and known == {None}:
            table, names = next(iter(private)), tuple(columns)
        elif len(known) == 1 and (given := known.pop()) is not None:
            table, names = given, tuple(name for _, name in named)
        else:
            raise InvalidArgument(
                "it is not said which private table these columns are of",
                place="keys",
                hints=(f"write {' or '.join(f'`{name}.column`' for name in private)}, the same for all",),
            )
        found[table] += (KeyList(columns=names, rows=tuple(tuple(row) for row in rows)),)
    return found


def _divided(key: str, tables: Mapping[str, str]) -> tuple[str | None, str]:
    """Return the table, by its name in lower case, and the column that `table.column` names; None: no table.

    The longest name counts: a table may have a dot in its name, after its schema.
    """
    fitting = [name for name in tables if key.lower().startswith(f"{name}.")]
    longest = max(fitting, key=len, default=None)
    return (None, key) if longest is None else (tables[longest], key[len(longest) + 1 :])


def _name_of(source: Any) -> str:
    if isinstance(source, (str, os.PathLike)):
        return os.path.basename(os.fspath(source)).split(".")[0] or "data"
    return "data"
