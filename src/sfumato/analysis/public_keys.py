"""Public keys: the groups of a question that everybody can write down beforehand. All of them are shown.

A key is public if the owner listed its values, if the question itself lists them (CASE .. THEN 'young' ..),
or if it is computed from columns of public tables. Then the groups are the combinations that public tables,
lists and conditions allow (`public_rows`): columns of one public table are never crossed with each other,
and a group that the question's own conditions leave empty is not among them.

Theorem (privacy): the groups are a function of the question, the catalog and public tables, so neighbours
have the same groups in the same order. What they show is priced like any other list of declared groups.
Theorem (nothing is lost): a row of the question whose keys have values on their lists is in one of the
groups, whatever private tables hold: by the theorem of `public_rows`, its columns agree with one of the
combinations, of which the keys are computed. A condition that names a private column which is no key, and
equals nothing public, leaves all groups in. A key with known values is a list of them: in a
condition, the key's expression stands for the column of that list, which has the row's value.

Whether groups are listed or selected privately follows from the plan alone. A list that is too long is
refused: nobody is switched to selected groups without having asked for them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from operator import itemgetter
from typing import NoReturn, Protocol

from sfumato.analysis.constant_parts import ONE_ROW, with_constants
from sfumato.analysis.domains import columns_of
from sfumato.analysis.join_fanout import public_row_count
from sfumato.analysis.public_rows import components, public_rows
from sfumato.analysis.ranges import Known, known_of
from sfumato.catalog.catalog import Catalog
from sfumato.catalog.kind import Value
from sfumato.core.steps import spend
from sfumato.plan.columns import outputs, references, substituted, with_parts
from sfumato.plan.conditions import one_of
from sfumato.plan.hints import refuse
from sfumato.plan.options import Options
from sfumato.plan.tree import ColumnRef, Expression, Listed, Literal, Query, Relation

__all__ = ["MOST_GROUPS", "PublicTables", "listed_groups"]

MOST_GROUPS = 1_000_000
"""Groups that are listed at most."""

_MOST_ROWS = 10_000_000  # combinations of public rows that are looked through for them

_Groups = tuple[tuple[Value, ...], ...]


class PublicTables(Protocol):
    """What reads public tables: no private data, and nothing that costs."""

    def public_copies(self, table: str, columns: tuple[str, ...]) -> int:
        """Return the largest number of rows of a public table that agree in some columns; of none, all."""
        ...

    def public_keys(self, relation: Relation, keys: Sequence[Expression], most: int) -> _Groups | None:
        """Return the different values of keys over public rows, without NULL; None: more than `most`."""
        ...


def listed_groups(
    query: Query, catalog: Catalog, options: Options, tables: PublicTables | None
) -> _Groups | None:
    """Return all groups of a question, None if they must be selected privately.

    Without `tables`, only the owner's lists and the question's are known, and no condition narrows them.
    """
    if not query.keys:
        return ((),)
    if options.keys == "selected":
        return None
    return _Lister(query, catalog, options, tables).groups()


@dataclass(frozen=True, slots=True)
class _Lister:
    query: Query
    catalog: Catalog
    options: Options
    tables: PublicTables | None

    def groups(self) -> _Groups | None:
        keys = [key for _, key in self.query.keys]
        source = self.query.source
        if self.tables is not None:
            value = cache(partial(_constant, self.tables))
            source, keys = with_constants(source, value), [with_constants(key, value) for key in keys]
        columns = columns_of(source, self.catalog)
        read = {} if self.tables is None else self._read(keys, columns, self.tables)
        parts: list[tuple[tuple[int, ...], _Groups]] = [*read.items()]
        found = {place for places in read for place in places}
        for place, key in enumerate(keys):
            if place in found:
                continue
            known = known_of(key, columns)
            if not known.values or not _without_null(known):
                if self.options.keys == "declared":
                    hint = "declare them in the catalog: one_of('north', 'south', ..)"
                    refuse(self.query.text, "the values of this key are not declared", hint, at=key.span)
                return None
            parts.append(((place,), tuple((value,) for value in known.values)))
        if math.prod(len(values) for _, values in parts) > MOST_GROUPS:
            self._refuse_many()
        spend(math.prod(len(values) for _, values in parts) // 25)
        order = [place for places, _ in parts for place in places]
        where = [order.index(place) for place in range(len(keys))]
        products = itertools.product(*(values for _, values in parts))
        listed = tuple(map(tuple, map(itertools.chain.from_iterable, products)))
        if where != list(range(len(keys))):
            listed = tuple(map(itemgetter(*where), listed))
        if not listed:
            refuse(
                self.query.text,
                "no group is left: public tables and the question's own conditions say that all are empty",
                "look at the public tables, and at conditions that exclude each other",
                at=keys[0].span,
            )
        return listed

    def _read(
        self, keys: list[Expression], columns: Mapping[str, Known], tables: PublicTables
    ) -> dict[tuple[int, ...], _Groups]:
        """Return, by their places, the keys that follow from public rows, and the combinations of values.

        A computed key with known values is a list of them: a condition that names the key narrows it.
        """
        plain = [key.name for key in keys if isinstance(key, ColumnRef)]
        raw = public_rows(self.query.source, self.catalog, plain)
        facts, conditions = raw.with_equals(), []
        found: dict[tuple[int, ...], _Groups] = {}
        public: dict[int, Expression] = {}
        lists: dict[Expression, Listed] = {}
        for place, key in enumerate(keys):
            known, one = known_of(key, columns), substituted(key, facts.columns)
            names, column = set(references(one)), substituted(key, raw.columns)
            equal = isinstance(column, ColumnRef) and column.name not in raw.known  # to what is never NULL
            if names and facts.known >= names and (equal or _without_null(known)):
                public[place] = one
                if known.declared and known.values and not _is_listed(one, facts.rows):
                    conditions.append(one_of((one,), ((value,) for value in known.values)))
            elif known.values and key.kind is not None and _without_null(known):
                stand_in = ColumnRef(name=f"key {place}", kind=key.kind)
                rows = tuple((value,) for value in known.values)
                lists.setdefault(one, Listed(columns=(stand_in,), rows=rows))
                public[place] = lists[one].columns[0]
        of_lists: dict[Expression, Expression] = {
            one: listed.columns[0] for one, listed in lists.items() if not isinstance(one, Literal)
        }
        conditions += [with_parts(one, of_lists) for one in facts.conditions]
        wanted = [frozenset(references(one)) for one in public.values()]
        for relation in components((*facts.rows, *lists.values()), conditions, wanted):
            here = {column.name for column in outputs(relation)}
            places = tuple(place for place, one in public.items() if here.issuperset(references(one)))
            found[places] = self._values(relation, [public[place] for place in places], tables)
        return found

    def _values(self, relation: Relation, keys: list[Expression], tables: PublicTables) -> _Groups:
        if isinstance(relation, Listed) and keys == list(relation.columns):
            return relation.rows
        if public_row_count(relation, self.catalog, tables.public_copies) > _MOST_ROWS:
            refuse(
                self.query.text,
                f"public tables of this question meet in more than {_MOST_ROWS:,} rows",
                "join them by columns whose values are different in each of their rows",
                _SELECTED,
                at=keys[0].span,
            )
        values = tables.public_keys(relation, keys, MOST_GROUPS)
        return values if values is not None else self._refuse_many()

    def _refuse_many(self) -> NoReturn:
        refuse(
            self.query.text,
            f"the keys of this question make more than {MOST_GROUPS:,} groups",
            "group by fewer of them, or narrow them in WHERE: key IN (..)",
            "or list the combinations there are: keys={('region', 'kind'): [('north', 'a'), ..]}",
            _SELECTED,
            at=self.query.keys[0][1].span,
        )


def _constant(tables: PublicTables, expression: Expression) -> Value:
    """Return what the engine makes of an expression that reads no column."""
    found = tables.public_keys(ONE_ROW, (expression,), 1)
    return found[0][0] if found else None


_SELECTED = "or have groups selected privately, and small ones left out: keys='selected', or --selected"


def _without_null(known: Known) -> bool:
    """Whether a key has values only: what is not on an owner's list is in no group, and so is NULL.

    A computed key is not the owner's to list: where it may be NULL, NULL is a group like any other.
    """
    return known.declared or not known.nullable


def _is_listed(key: Expression, rows: Iterable[Relation]) -> bool:
    return any(isinstance(one, Listed) and key in one.columns for one in rows)
