"""Bounding: a question becomes integers, and it is known how far one unit can move each.

Groups are chosen once per query. A unit is kept in at most `max_groups` groups, and counts in each
with the weight of at most `max_rows` rows; both come from the question's options, else from its
tables, else the question is refused. Neither is needed where a unit has one row at most: where the
row itself is the unit, and after one unit's rows have been aggregated to one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NoReturn, get_args

from sfumato.analysis.asked import AskedAggregate
from sfumato.analysis.bounded import BoundedQuery, Bounding, MeasureKind
from sfumato.analysis.consistency import consistent_bounding
from sfumato.analysis.domains import columns_of
from sfumato.analysis.group_choice import chosen_answers
from sfumato.analysis.join_fanout import MOST_UNIT_JOINS, unit_joins
from sfumato.analysis.measures import Measures
from sfumato.analysis.public_keys import PublicTables, listed_groups
from sfumato.analysis.ranges import Known, known_of
from sfumato.analysis.remainder_group import check_others, declared_others
from sfumato.analysis.selection import MOST_WEIGHTS, deciding_measure
from sfumato.analysis.shapes import Cap, declared_cap, is_private, may_copy_rows, one_row_per_unit, scans
from sfumato.catalog.catalog import Catalog
from sfumato.catalog.kind import Kind
from sfumato.catalog.table import Table
from sfumato.core.steps import spend
from sfumato.plan.conditions import kept, one_of
from sfumato.plan.hints import refuse
from sfumato.plan.limits import size
from sfumato.plan.options import DEFAULT_OPTIONS, Options
from sfumato.plan.tree import Query, Relation, Span

__all__ = ["bound"]

_STEPS_PER_NODE = 3
_STEPS_PER_AGGREGATE = 30
_MOST_LISTED = 10_000  # values of a key in one condition
_MOST_CELLS = 2**27  # of all declared groups together: a table of a gigabyte, whatever the data


def bound(
    query: Query, catalog: Catalog, options: Options = DEFAULT_OPTIONS, tables: PublicTables | None = None
) -> Bounding:
    """Return what the engine computes for a question, and how its answer follows from that.

    `tables` reads public tables, for the groups that they list.
    """
    spend(_STEPS_PER_NODE * size(query) + _STEPS_PER_AGGREGATE * len(query.aggregates))
    return _Bounder(query, catalog, options, tables, _caps(query, catalog, options)).bounding()


def _caps(query: Query, catalog: Catalog, options: Options) -> dict[Cap, int | None]:
    """Return the caps that a question gives, else those that its tables declare."""
    caps: dict[Cap, int | None] = {
        name: getattr(options, name) or declared_cap(query.source, catalog, name) for name in get_args(Cap)
    }
    if (total := caps["max_rows_total"]) is not None:  # no group has more of a unit's rows
        caps = {name: min(found or total, total) for name, found in caps.items()}
    return caps


@dataclass(slots=True)
class _Bounder:
    query: Query
    catalog: Catalog
    options: Options
    tables: PublicTables | None
    caps: dict[Cap, int | None]

    def bounding(self) -> Bounding:
        query, options = self.query, self.options
        row_unit = self._row_unit()
        one_row = row_unit or one_row_per_unit(query.source)
        sets = query.grouping_sets or (tuple(range(len(query.keys))),)
        columns = columns_of(query.source, self.catalog)
        declared = listed_groups(query, self.catalog, options, self.tables)
        max_groups = max_total = None
        if query.keys and not one_row:
            max_groups = self._cap("max_groups", query.keys[0][1].span)
            if declared is not None:
                max_groups = min(max_groups, len(declared))
            max_total = self._total(max_groups)
        summed = len(sets) > 1 or (options.others and declared is None)  # a unit's groups meet, as rows do
        measures = Measures(
            one_row=one_row,
            rows=lambda span: 1 if one_row else self._cap("max_rows", span),
            grouped=bool(query.keys),
            units_are_rows=lambda: (
                not one_row and not summed and max_total is None and self.caps["max_rows"] == 1
            ),
            divided=max_total is not None,
        )
        multiplied = frozenset(
            argument
            for _, one in query.aggregates
            if one.function.record.multiplies
            for argument in one.arguments
        )
        answers = tuple(
            AskedAggregate(
                name=name,
                aggregate=one,
                query=query,
                catalog=self.catalog,
                columns=columns,
                measures=measures,
                multiplied=multiplied,
                max_distinct=options.max_distinct or self.caps["max_rows"],
            ).answer()
            for name, one in query.aggregates
        )
        if query.choice is not None:
            answers = chosen_answers(answers, query.choice, declared)
        if options.min_units is not None and (declared is not None or () in sets):
            measures.units(None)  # decides which groups, or whether the total, are shown
        bounded = BoundedQuery(
            source=query.source if declared is not None else self._of_listed_values(columns),
            row_unit=row_unit,
            keys=query.keys,
            grouping_sets=sets,
            declared=declared,
            max_groups=max_groups,
            max_rows=1 if one_row else self.caps["max_rows"],
            measures=measures.all(),
            max_total=max_total,
            choice=query.choice,
        )
        self._few_cells(bounded)
        if row_unit and any(one.kind is MeasureKind.BLOCKS for one in bounded.measures):
            self._refuse(
                "rows without names cannot be divided into blocks",
                "name a column that tells people apart as the unit of the table",
                code="SF406",
            )
        if unit_joins(query.source) > MOST_UNIT_JOINS:
            self._refuse(
                f"private tables are joined with each other at most {MOST_UNIT_JOINS} times in one question",
                "aggregate one side to one row per unit first: that join does not count",
                "or ask several questions",
                code="SF404",
            )
        if declared is None and 1 < (max_groups or 1) <= MOST_WEIGHTS and (options.min_units or 1) == 1:
            bounded = replace(bounded, members=deciding_measure(bounded, None) is None)
        if options.others:
            check_others(bounded, query.text)
            if declared is not None:
                bounded = declared_others(bounded)
                if max_groups is not None:
                    bounded = replace(bounded, max_groups=min(self._cap("max_groups", None), max_groups + 1))
            elif max_groups is not None and any(one.kind is MeasureKind.UNITS for one in bounded.measures):
                bounded = replace(bounded, members=True)
        bounding = Bounding(
            query=bounded,
            answers=answers,
            select_keys=declared is None,
            others=options.others and declared is None,
            min_units=options.min_units,
            intervals=options.intervals,
            shares=_shares(query),
            text=query.text,
            keys_span=query.keys[0][1].span if query.keys else None,
        )
        if not options.consistent:
            return bounding
        return consistent_bounding(bounding, query, self.catalog, self.tables, options)

    def _of_listed_values(self, columns: Mapping[str, Known]) -> Relation:
        """Return the rows whose keys have values of the owner's lists, beside keys that nobody listed.

        A row-wise condition: it reads a row's own values, so that what one unit moves is as before.
        """
        lists = [(key, known_of(key, columns)) for _, key in self.query.keys]
        conditions = []
        for key, known in lists:
            if not known.declared or not known.values or self.options.keys == "selected":
                continue
            if len(known.values) > _MOST_LISTED:
                self._refuse(
                    f"a list of more than {_MOST_LISTED:,} values beside a key that nobody listed",
                    "declare the values of the other keys, too",
                    at=key.span,
                )
            conditions.append(one_of([key], [(value,) for value in known.values]))
        return self.query.source if self.options.others else kept(self.query.source, conditions)

    # -- units and caps ---------------------------------------------------------------------

    def _row_unit(self) -> bool:
        tables = self._private_tables()
        names = {table.unit.name for table in tables if table.unit is not None}
        if not tables:
            self._refuse("this question is about no private table", code="SF407")
        if len(names) > 1:
            self._refuse(
                f"these tables protect different units: {', '.join(sorted(names))}",
                "ask about them one at a time",
                code="SF406",
            )
        kinds = {table.name: kind for table in tables if (kind := self.catalog.unit_kind(table)) is not None}
        found = set(kinds.values())
        if len(kinds) > 1 and (len(found) > 1 or found & _WRITTEN):
            self._refuse(
                f"the tables {', '.join(sorted(kinds))} may each write names of units in a way of its own",
                "1, 1.0 and '1.00' would be three people: let all of them be whole numbers, or all texts",
                code="SF406",
            )
        by_row = {table.unit is not None and table.unit.column is None for table in tables}
        if by_row == {False}:
            return False
        read = [is_private(scan, self.catalog) for scan in scans(self.query.source)]  # the leftmost is first
        if len(by_row) > 1 or sum(read) > 1 or not read[0] or may_copy_rows(self.query.source):
            self._refuse(
                f"a join or union may repeat rows of `{tables[0].name}`, whose rows are the units",
                f"name the column that says whom a row of `{tables[0].name}` is about as its unit",
                code="SF406",
            )
        return True

    def _private_tables(self) -> list[Table]:
        names = dict.fromkeys(scan.table for scan in scans(self.query.source))
        tables = [self.catalog.table(name) for name in names]
        return [table for table in tables if table is not None and table.private]

    def _total(self, max_groups: int) -> int | None:
        """Return the cap on a unit's rows over all groups, None where the other caps are as tight."""
        total, rows = self.caps["max_rows_total"], self.caps["max_rows"]
        if total is None or rows is None or total >= rows * max_groups:
            return None
        if self.options.others:
            self._refuse(
                "max_rows_total cannot be kept beside everything else",
                "leave out others, or cap rows by max_groups and max_rows alone",
                code="SF404",
            )
        return total

    def _cap(self, name: Cap, span: Span | None) -> int:
        if (found := self.caps[name]) is not None:
            return found
        table = self._private_tables()[0].name
        what = "groups one unit may be in" if name == "max_groups" else "rows one unit may have in a group"
        self._refuse(
            f"it is not known how many {what}",
            f"give {name} with the question, for example {name}=3; the rest of a unit is left out",
            f"or declare {name} for the table `{table}`; db.caps, or `sfumato caps`, finds one privately",
            at=span,
        )

    # -- keys -------------------------------------------------------------------------------

    def _few_cells(self, query: BoundedQuery) -> None:
        """Refuse histograms of more declared groups than memory might hold: a public number."""
        cells = sum(len(measure.edges) - 1 for measure in query.measures if measure.edges)
        if query.keys and query.declared is not None and cells * len(query.declared) > _MOST_CELLS:
            self._refuse(
                f"quantiles and histograms of {len(query.declared):,} declared groups are too many numbers",
                "group by fewer keys, or ask for counts, sums and averages",
                "or have groups selected privately: keys='selected'",
                at=query.keys[0][1].span,
            )

    def _refuse(self, message: str, *hints: str, at: Span | None = None, code: str = "SF405") -> NoReturn:
        refuse(self.query.text, message, *hints, at=at, code=code)


def _shares(query: Query) -> dict[str | None, Fraction]:
    """Return the shares of epsilon that the question itself gives to aggregates, and to selecting groups."""
    said: dict[str | None, Fraction | None] = {
        None: query.keys_share,
        **{name: one.share for name, one in query.aggregates},
    }
    return {name: share for name, share in said.items() if share is not None}


_WRITTEN = {Kind.FLOAT, Kind.REAL, Kind.TIMESTAMP}  # types of these kinds write equal values differently
