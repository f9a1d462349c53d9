"""Estimates: questions about what an owner does not know beforehand, as ordinary requests.

Bounds of a column are asked as a histogram over public buckets; caps as quantiles of what each unit
has. Neither is a way of its own to the data: both are requests like any other, bounded, priced,
charged and answered on the one path.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

from sfumato.catalog.catalog import Catalog
from sfumato.catalog.domain import OneOf
from sfumato.catalog.kind import Kind
from sfumato.catalog.table import Field, Table, cap
from sfumato.core.arguments import exact
from sfumato.errors import InvalidArgument
from sfumato.plan.buckets import Buckets, SoughtBounds
from sfumato.plan.builder import table as rows_of
from sfumato.plan.hints import did_you_mean, refuse
from sfumato.plan.options import Options
from sfumato.plan.request import Request
from sfumato.plan.summaries import count, histogram, max_, quantile
from sfumato.plan.tree import Span
from sfumato.plan.values import Val, col

__all__ = ["bounds_request", "caps_request", "declared_table", "known_field", "private_table"]

_CELLS = "people"
_ROWS = "rows of a group"


def bounds_request(
    catalog: Catalog, column: str, *, table: str | None = None, share: float = 0.0, false_alarm: float = 0.05
) -> Request:
    """Ask how many units have values in each bucket of a column.

    A unit's rows weigh 1 together (`max_rows=1`), whatever caps are declared. Theorem: that is never
    worse than a cap of m. With it, noise of the same cost is m times as large in every bucket, and a unit
    with n rows weighs min(n, m) <= m instead of 1: relative to the noise, no more than 1.
    Rows without a value do not dilute it: they are left out first.
    """
    text = f"bounds({column!r})"
    found = private_table(catalog, table, text, columns=(column,))
    field = known_field(found, column, text)
    if not field.kind.numeric:
        hint = "groups by it are found privately; columns of CSV files are text until bounds are declared"
        if field.kind in (Kind.DATE, Kind.TIMESTAMP):
            hint = "declare it: between(date(2020, 1, 1), date(2025, 1, 1))"
        message = f"bounds are of numbers, and `{field.name}` is a {field.kind.value}"
        _refuse(message, "SF403", text, column, hint)
    if not 0 <= exact(share, "share") < 1:
        raise InvalidArgument("the share to leave outside lies between 0 and 1", place="share")
    if not 0 < exact(false_alarm, "false_alarm") < 1:
        raise InvalidArgument("a chance lies between 0 and 1", place="false_alarm")
    buckets = Buckets.of(field.kind)
    value = col(field.name)
    frame = rows_of(found.name, catalog, lambda request: request).where(~value.is_null())
    place = Val(lambda find: buckets.index(find(field.name)))
    request = frame.select(bucket=place).agg(**{_CELLS: histogram("bucket")})
    sought = SoughtBounds(
        buckets=buckets, column=field.name, share=float(share), false_alarm=float(false_alarm)
    )
    return replace(request, options=Options(max_rows=1), sought=sought)


def caps_request(
    catalog: Catalog,
    table: str | None = None,
    *,
    by: str | Sequence[str] | None = None,
    share: float = 0.95,
    limit: int = 100,
) -> Request:
    """Ask how many rows per group, and how many groups, hold all of a share of the units.

    First one row per unit and group, then one row per unit: the number of its groups, and of its rows
    in the group where it has most. Each unit adds one number to each of both quantiles. Where all keys
    are declared, no more groups are proposed than are declared.
    """
    text = f"caps({table!r})" if table is not None else "caps()"
    found = private_table(catalog, table, text)
    if found.unit is None or found.unit.column is None:
        message = f"each row of `{found.name}` is a unit by itself, so that no caps are needed"
        _refuse(message, "SF405", text, found.name, "ask without max_rows and max_groups: it costs nothing")
    if not 0 < exact(share, "share") <= 1:
        raise InvalidArgument("the share of units to keep whole lies between 0 and 1", place="share")
    most = cap(limit, "limit")
    keys = (by,) if isinstance(by, str) else tuple(by or ())
    fields = [known_field(found, key, f"caps(by={key!r})") for key in keys]
    if len({field.name for field in fields}) != len(fields):
        raise InvalidArgument("a column to group by is named twice", place="by")
    frame = rows_of(found.name, catalog, lambda request: request)
    for field in fields:
        if isinstance(field.domain, OneOf):  # groups beyond the list are not there to be counted
            frame = frame.where(col(field.name).is_in(*field.domain.values))
    declared = _declared_groups(found, fields) or most
    groups = frame.per_unit(*(field.name for field in fields), alias="groups", **{_ROWS: count()})
    units = groups.per_unit(alias="units", groups=count(), rows=max_(_ROWS))
    asked = {"max_rows": quantile("rows", share).clamp_rows(1, most)}
    if fields:
        asked["max_groups"] = quantile("groups", share).clamp_rows(1, min(most, declared))
    about = "groups by " + ", ".join(f"`{field.name}`" for field in fields) if fields else "the whole table"
    notes = (
        f"with these caps about {share:g} of the units lose nothing, in questions over {about}",
        "intervals cover the caps that do so exactly, not what the other units lose",
        f"no cap above {most:,} is told: that limit was chosen in public",
    )
    return replace(units.agg(**asked), notes=notes)


def _declared_groups(table: Table, fields: Sequence[Field]) -> int | None:
    """Return how many groups by these columns are declared, at most; None where they are not."""
    sizes = [len(field.domain.values) for field in fields if isinstance(field.domain, OneOf)]
    found = [math.prod(sizes)] if len(sizes) == len(fields) else []
    names = [field.name for field in fields]
    for listed in table.keys:
        places = [place for place, name in enumerate(listed.columns) if name in names]
        if found and len(places) > 1:
            combined = len({tuple(row[place] for place in places) for row in listed.rows})
            apart = [size for name, size in zip(names, sizes, strict=True) if name not in listed.columns]
            found.append(combined * math.prod(apart))
    return min(found, default=None)


# -- names ----------------------------------------------------------------------------------


def private_table(catalog: Catalog, name: str | None, text: str, *, columns: Sequence[str] = ()) -> Table:
    """Return the private table of that name, or the only one with these columns; refusals show `text`."""
    private = [table for table in catalog.tables if table.private]
    having = [table for table in private if all(table.field(column) for column in columns)]
    fitting = private if len(private) == 1 else having
    if name is None and len(fitting) == 1:
        return fitting[0]
    known = ", ".join(f"`{table.name}`" for table in private)
    if name is None and not having:
        message = f"no private table has {', '.join(f'`{one}`' for one in columns)}"
        _refuse(message, "SF402", text, columns[0], f"private tables: {known}")
    if name is None:
        hint = f"name one, table=.. or --table: {known}"
        _refuse("it is not said which table this is about", "SF402", text, "", hint)
    found = catalog.table(name)
    if found is None:
        _refuse(f"no table `{name}`", "SF402", text, name, f"known tables: {known}")
    if not found.private:
        hints = ("look at it: that is free", "its bounds can be read off it, and declared")
        _refuse(f"`{found.name}` is public", "SF407", text, name, *hints)
    return found


def declared_table(catalog: Catalog, name: str | None, text: str, *, columns: Sequence[str] = ()) -> Table:
    """Return the table that a declaration is about: a public one too, if named or alone with the columns."""
    found = None if name is None else catalog.table(name)
    having = [table for table in catalog.tables if all(table.field(column) for column in columns)]
    if name is None and columns and len(having) == 1:
        found = having[0]
    if found is not None and not found.private:
        return found
    return private_table(catalog, name, text, columns=columns)


def known_field(table: Table, name: str, text: str) -> Field:
    """Return a column of a table that may be read; refusals show `text`."""
    field = table.field(name)
    if field is None:
        if (unsupported := table.unsupported_column(name)) is not None:
            _refuse(unsupported.refusal, "SF402", text, name, *unsupported.hints)
        hints = did_you_mean(name, (one.name for one in table.fields))
        _refuse(f"table `{table.name}` has no column `{name}`", "SF402", text, name, *hints)
    if table.unit is not None and table.unit.own_column == field.name:
        hint = "it says whose each row is; nothing else is told of it"
        _refuse(f"`{field.name}` names the unit of protection and cannot be read", "SF406", text, name, hint)
    return field


def _refuse(message: str, code: str, text: str, at: str, *hints: str) -> NoReturn:
    start = text.find(at) if at else -1
    refuse(text, message, *hints, at=Span(start, start + len(at)) if start >= 0 else None, code=code)
