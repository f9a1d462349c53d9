"""ARG_MAX of groups: where only the group with the largest number is read, the numbers need not be told.

    SELECT ARG_MAX(region, n) FROM (SELECT region, COUNT(*) AS n FROM visits GROUP BY region)

reads a noisy count of every region and shows none of them. The same is asked by a choice of one group, which
costs less than the counts. Post-processing then reads nothing but the keys of that group:

    SELECT k0 AS "ARG_MAX(region, n)" FROM released

The rule: the inner query groups, and shows keys and one aggregate as they are. The outer one shows ARG_MAX
of keys by that aggregate (or ARG_MIN) and the keys that it groups by, with ORDER BY, LIMIT and OFFSET over
these. Whatever else is asked needs the numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import sqlglot
from sqlglot import exp

from sfumato.plan.request import NamedQuery, Request
from sfumato.plan.syntax import has_aggregate, is_aggregate
from sfumato.plan.tree import GroupChoice

__all__ = ["chosen_group"]

_LATER = ("order", "limit", "offset")
_OUTER = ("with_", "expressions", "from_", "group", *_LATER)


def chosen_group(request: Request) -> Request | None:
    """Return the request that chooses a group and counts in none; None: the numbers are needed."""
    if len(request.queries) != 1 or request.postprocessing is None or "ARG_M" not in request.postprocessing:
        return None
    [named] = request.queries
    everything = tuple(range(len(named.query.keys)))
    if len(named.query.aggregates) != 1 or named.query.grouping_sets != (everything,):
        return None
    outer = sqlglot.parse_one(request.postprocessing, read="duckdb")
    if not isinstance(outer, exp.Select) or not _says_only(outer, *_OUTER):
        return None
    columns = _inner_columns(outer, named)
    per = _grouped_by(outer, columns, named)
    calls = [call for item in outer.expressions for call in item.find_all(exp.ArgMax, exp.ArgMin)]
    if per is None or len({type(call) for call in calls}) != 1:
        return None
    if not _reads_keys(outer, calls, columns, named, per):
        return None
    outer.set("from_", exp.From(this=exp.Table(this=exp.to_identifier(named.name, quoted=True))))
    outer.set("with_", None)
    outer.set("group", None)
    choice = GroupChoice(per=per, largest=isinstance(calls[0], exp.ArgMax))
    return replace(
        request,
        queries=(replace(named, query=replace(named.query, choice=choice)),),
        postprocessing=outer.sql(dialect="duckdb", comments=False, identify=True),
    )


def _says_only(select: exp.Expr, *parts: str) -> bool:
    return all(name in parts for name, value in select.args.items() if value)


def _inner_columns(outer: exp.Select, named: NamedQuery) -> dict[str, str]:
    """Return which noisy column each column of the inner query is; nothing, unless it only shows columns."""
    source, with_ = _source(outer), outer.args.get("with_") or exp.With(expressions=[])
    inner = source.this if isinstance(source, exp.Subquery) else None
    for cte in with_.expressions:
        if isinstance(source, exp.Table) and source.name.lower() == cte.alias.lower():
            inner = cte.this
    if not isinstance(inner, exp.Select) or not _says_only(inner, "expressions", "from_"):
        return {}
    table, values = _source(inner), [item.unalias() for item in inner.expressions]
    if not isinstance(table, exp.Table) or table.name != named.name:
        return {}
    if not all(isinstance(value, exp.Column) for value in values):
        return {}
    pairs = zip(inner.expressions, values, strict=True)
    return {item.alias_or_name.lower(): value.name for item, value in pairs}


def _source(select: exp.Select) -> exp.Expr | None:
    from_ = select.args.get("from_")
    return None if from_ is None else from_.this


def _grouped_by(outer: exp.Select, columns: Mapping[str, str], named: NamedQuery) -> tuple[int, ...] | None:
    """Return the places of the keys that the outer query groups by, None if it groups by anything else."""
    group = outer.args.get("group") or exp.Group()
    if not _says_only(group, "expressions", "all"):
        return None
    items = outer.expressions
    shown = {item.alias.lower(): item.unalias() for item in items}
    found = [item.unalias() for item in items if not has_aggregate(item)] if group.args.get("all") else []
    for one in group.expressions:
        number = int(one.name) if isinstance(one, exp.Literal) and one.name.isdecimal() else 0
        if isinstance(one, exp.Column) and one.name.lower() not in columns:
            found.append(shown.get(one.name.lower(), one))
        else:
            found.append(items[number - 1].unalias() if 0 < number <= len(items) else one)
    keys = [name for name, _ in named.query.keys]
    named_keys = [columns.get(one.name.lower()) for one in found if isinstance(one, exp.Column)]
    if len(named_keys) < len(found) or not {*named_keys} <= {*keys}:
        return None
    return tuple(place for place, name in enumerate(keys) if name in named_keys)


def _reads_keys(
    outer: exp.Select,
    calls: Sequence[exp.Expr],
    columns: Mapping[str, str],
    named: NamedQuery,
    per: tuple[int, ...],
) -> bool:
    """Replace ARG_MAX and columns of the inner query by keys; return whether nothing else is read."""
    keys, [(score, _)] = [name for name, _ in named.query.keys], named.query.aggregates
    known = {keys[place] for place in per}
    shown = {item.alias.lower() for item in outer.expressions}
    inside = {id(part) for call in calls for part in call.walk()}
    replaced = []
    for call in calls:
        if not all(isinstance(one, exp.Column) for one in (call.this, call.expression)):
            return False
        chosen, by = (columns.get(one.name.lower(), "") for one in (call.this, call.expression))
        if call.args.get("count") or chosen not in keys or by != score:
            return False
        replaced.append((call, chosen))
    clauses = [(item, set[str]()) for item in outer.expressions]
    clauses += [(outer.args[name], shown) for name in _LATER if outer.args.get(name)]
    for clause, aliases in clauses:
        for part in clause.walk():
            if id(part) in inside:
                continue
            if is_aggregate(part) or isinstance(part, (exp.Query, exp.Star, exp.Window)):
                return False
            if isinstance(part, exp.Column):
                name = part.name.lower()
                if name in aliases and not part.table:
                    continue
                if columns.get(name) not in known:
                    return False
                replaced.append((part, columns[name]))
    for part, name in replaced:
        table = exp.to_identifier(named.name, quoted=True)
        part.replace(exp.Column(this=exp.to_identifier(name, quoted=True), table=table))
    return True
