"""Writing a new project file: text that `read_project` reads back as what was declared."""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from sfumato.catalog.declaration import Column
from sfumato.catalog.domain import Between, OneOf
from sfumato.catalog.kind import Kind
from sfumato.catalog.project import ProjectTable
from sfumato.catalog.server_address import is_address
from sfumato.catalog.table import Field
from sfumato.core.accountant import PrivacyBudget
from sfumato.errors import InvalidArgument

__all__ = ["project_text"]

_HEAD = """\
# What is protected, how much may be learned about it, and who may ask. See docs/project-file.md.
# Bounds and values are declared from public knowledge: a law, a code book, common sense.
# Never read them off the data: that would be a disclosure that no budget paid for.
"""
_DATABASE = "database"  # the name of the only source of a new file
_HINTS = {
    Kind.TEXT: 'one_of = ["..", ".."]',
    Kind.BOOLEAN: "one_of = [true, false]",
    Kind.DATE: "between = [1900-01-01, 2030-12-31]",
    Kind.TIMESTAMP: "between = [2000-01-01T00:00:00, 2030-12-31T00:00:00]",
}


def project_text(
    tables: Iterable[ProjectTable],
    *,
    budget: PrivacyBudget,
    ledger: Path | str,
    people: int | None,
    ceiling: Fraction | None,
    folder: Path,
    fields: Mapping[str, tuple[Field, ...]],
    protects: str | None = None,
) -> str:
    """Return the text of a project file in `folder`; columns nobody declared become comments.

    `fields` are the columns of each table, where they are known. `protects` is the name of the unit, which is
    written if it is not the name of its column in all tables.
    """
    tables = list(tables)
    place = str(ledger)
    parts = [_HEAD, f"ledger = {_text(place if is_address(place) else _relative(place, folder))}"]
    units = [table.declaration.unit for table in tables if table.declaration.unit is not None]
    if protects is not None and any(unit.column not in (None, protects) for unit in units):
        parts.append(f"protects = {_text(protects)}  # who the units are, under whatever column")
    parts.append("")
    addresses = {table.database.address: None for table in tables if table.database is not None}
    for address in addresses:
        parts += [
            f"[sources.{_DATABASE}]  # no password stands here",
            f"address = {_text(address or '')}",
            "",
        ]
    parts += [_table(table, folder, fields.get(table.name, ())) for table in tables]
    parts += ["[budget]  # for these people, for ever, whoever asks", f"epsilon = {_number(budget.epsilon)}"]
    if budget.delta:
        parts += [f"delta = {_number(budget.delta)}", f"keys_delta = {_number(budget.keys_delta)}"]
    if people is not None:
        parts.append(
            f"people = {people}  # how many there are, which is public: delta is below one in so many"
        )
    record = budget.rule.to_dict()
    parts.append(f"rule = {_text(record.pop('rule'))}")
    parts += [*(f"{name} = {value}" for name, value in record.items()), ""]
    parts += ["[policy]"]
    if ceiling is not None:
        parts.append(f"ceiling = {_number(ceiling)}  # the largest epsilon of one question")
    parts += ["keep_questions = true  # the ledger keeps what is asked, for the owner of its file alone", ""]
    return "\n".join(parts)


def _table(table: ProjectTable, folder: Path, fields: tuple[Field, ...]) -> str:
    declared = table.declaration
    lines = [f"[tables.{_key(table.name)}]"]
    if table.database is not None:
        lines += [f"source = {_text(_DATABASE)}", f"table = {_text(table.database.table)}"]
    else:
        paths = [_relative(path, folder) for path in table.paths]
        lines.append(f"path = {_value(paths if len(paths) > 1 else paths[0])}")
    if declared.unit is None:
        lines.append("public = true")
    elif declared.unit.column is None:
        lines.append("each_row = true  # every row is a unit by itself")
    else:
        lines.append(f"unit = {_text(declared.unit.text or '')}  # whose each row is")
    caps = {
        "max_groups": "one unit counts in at most this many groups",
        "max_rows": "and in each group with the weight of at most this many rows",
        "max_rows_total": "and in all groups together with at most this many rows",
    }
    for cap, why in caps.items():
        if getattr(declared, cap) is not None:
            lines.append(f"{cap} = {getattr(declared, cap)}  # {why}")
        elif declared.unit is not None and declared.unit.column is not None and cap != "max_rows_total":
            lines.append(f"# {cap} = ..  # {why}; `sfumato caps` finds it privately")
    if declared.partition is not None:
        lines.append(f"partition = {_text(declared.partition)}  # every unit has one value of it, for ever")
    unit = declared.unit.own_column if declared.unit else None
    listed = [field for field in fields if field.name != unit]
    names = dict.fromkeys([*(field.name for field in listed), *declared.columns])
    if names:
        kinds = {field.name: field.kind for field in listed}
        lines += ["", f"[tables.{_key(table.name)}.columns]"]
        for name in names:
            if name in declared.columns:
                lines.append(f"{_key(name)} = {_column(declared.columns[name])}")
            else:
                hint = _HINTS.get(kinds[name], "between = [0, 100]")
                lines.append(f"# {_key(name)} = {{ {hint} }}  # {kinds[name].value}")
    for one in declared.keys:
        lines += ["", f"[[tables.{_key(table.name)}.keys]]  # all groups that these columns have together"]
        lines.append(f"columns = {_value(list(one.columns))}")
        lines.append(f"values = {_value([list(row) for row in one.rows])}")
    return "\n".join([*lines, ""])


def _column(column: Column) -> str:
    inner = []
    match column.domain:
        case Between(lower=lower, upper=upper, bins=bins):
            inner.append(f"between = [{_value(lower)}, {_value(upper)}]")
            if bins is not None:
                inner.append(f"bins = {_value(list(bins) if isinstance(bins, tuple) else bins)}")
        case OneOf(values=values):
            inner.append(f"one_of = {_value(list(values))}")
    if not column.nullable:
        inner.append("nullable = false")
    return f"{{ {', '.join(inner)} }}"


def _relative(path: str, folder: Path) -> str:
    relative = os.path.relpath(path, folder)
    return path if relative.startswith("..") else relative


def _value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case Fraction():
            return _number(value)
        case Decimal():
            return _number(Fraction(value))
        case int() | float():
            return repr(value)
        case datetime.datetime() | datetime.date():
            return value.isoformat()
        case list():
            return f"[{', '.join(_value(each) for each in value)}]"
        case _:
            return _text(str(value))


def _number(value: Fraction) -> str:
    """Return a decimal that is exactly this number.

    >>> _number(Fraction(1, 8)), _number(Fraction(3)), _number(Fraction(1, 10**7))
    ('0.125', '3', '1e-07')
    """
    if value.denominator == 1:
        return str(value.numerator)
    for form in (repr(float(value)), f"{float(value):.30f}"):
        if Fraction(form) == value:
            return form
    places = 0
    while places < 60 and (value * 10**places).denominator != 1:
        places += 1
    if (value * 10**places).denominator != 1:
        raise InvalidArgument("a project file holds decimals, and this number is none", place="number")
    return f"{(value * 10**places).numerator}e-{places}"


def _text(value: str) -> str:
    """Return a basic TOML string; JSON's escapes are a part of TOML's."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if bare else _text(name)
