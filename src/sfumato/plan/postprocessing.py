"""Queries over released tables: FROM, names and subqueries of post-processing."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from sfumato.plan.context import Context, Released, Source
from sfumato.plan.hints import did_you_mean
from sfumato.plan.postprocessing_rules import check, output_names, rebuilt, unique
from sfumato.plan.question import Statement
from sfumato.plan.syntax import has_aggregate, within

__all__ = ["post_processing", "post_processing_union", "released_subquery"]

_Names = dict[str, tuple[str, ...]]


def released_subquery(node: exp.Expr, context: Context, parents: tuple[_Names, ...] = ()) -> exp.Expr:
    """Return a subquery of post-processing, itself over released or public tables."""
    from sfumato.plan.selects import plan

    if isinstance(node, exp.Subquery):
        context.question.only(node, "this", "alias")
        if node.args.get("alias") is not None:
            context.question.refuse("an alias cannot stand here", "SF404", node)
        return exp.Subquery(this=released_subquery(node.this, context, parents))
    if not context.private(node) and isinstance(node, exp.Select):
        return post_processing(node, context, parents).query
    result = plan(node, context, context.question.alias("subquery"))
    if not isinstance(result, Released):
        hint = "aggregate in it: its noisy result can be used here"
        context.question.refuse("a subquery would show private rows", "SF404", node, hint)
    return result.query


def post_processing(
    select: exp.Select, context: Context, parents: tuple[_Names, ...] = (), found: list[Source] | None = None
) -> Released:
    """Return a SELECT over released and public tables; `found` is its FROM, if that was read before."""
    return _Post(select, context, parents, found).read()


def post_processing_union(
    query: exp.SetOperation, context: Context, done: dict[int, Released] | None = None
) -> Released:
    """Return a set operation between queries over released and public tables."""
    check(query, context.question)
    sides = []
    for side in (query.this, query.expression):
        if done and id(side) in done:
            sides.append(done[id(side)])
        elif isinstance(side, exp.SetOperation) and side.args.get("with_") is None:
            sides.append(post_processing_union(side, context, done))
        else:
            rewritten = released_subquery(side, context)
            names = rewritten.named_selects if isinstance(rewritten, exp.Query) else []
            sides.append(Released(rewritten, tuple(names)))  # type: ignore[arg-type]
    allowed = ("this", "expression", "distinct", "by_name", "order", "limit", "offset", "with_")
    context.question.only(query, *allowed)
    columns = sides[0].columns
    scope: _Names = {"": columns}
    new = type(query)(
        this=sides[0].query,
        expression=sides[1].query,
        distinct=query.args.get("distinct"),
        by_name=query.args.get("by_name"),
    )
    for name in ("order", "limit", "offset"):
        clause = query.args.get(name)
        if clause is not None:
            new.set(name, _changed(clause, context, (scope,), set()))
    return Released(new, columns)


@dataclass(frozen=True, slots=True)
class _Post:
    select: exp.Select
    context: Context
    parents: tuple[_Names, ...]
    found: list[Source] | None
    names: _Names = field(default_factory=dict)

    @property
    def question(self) -> Statement:
        return self.context.question

    def read(self) -> Released:
        from sfumato.plan.selects import from_nodes, read_source

        select = self.select
        new = exp.Select()
        nodes = from_nodes(select, self.context)
        found = self.found if self.found is not None else [read_source(node, self.context) for node in nodes]
        tables = [self._table(node, source) for node, source in zip(nodes, found, strict=True)]
        if tables:
            new.set("from_", exp.From(this=tables[0]))
        scopes = (self.names, *self.parents)
        aliases = {item.alias.lower() for item in select.expressions if isinstance(item, exp.Alias)}

        def change(node: exp.Expr) -> exp.Expr:
            return _changed(node, self.context, scopes, aliases)

        if select.args.get("joins"):
            pairs = zip(select.args["joins"], tables[1:], strict=True)
            new.set("joins", [self._join(join, table) for join, table in pairs])
        columns = self._columns()
        new.set("expressions", self._named([change(item) for item in select.expressions], columns))
        for name in ("where", "group", "having", "qualify", "order", "limit", "offset", "distinct"):
            clause = select.args.get(name)
            if clause is None:
                continue
            windows = any(isinstance(part, exp.Window) for part in within(clause))
            if (name == "where" and (windows or has_aggregate(clause))) or (name == "having" and windows):
                hint = "use HAVING for aggregates, QUALIFY for windows"
                self.question.refuse("this comes later than its clause", "SF404", clause, hint)
            new.set(name, change(clause))
        if select.args.get("windows"):
            new.set("windows", [change(one) for one in select.args["windows"]])
        return Released(new, columns)

    def _join(self, join: exp.Join, table: exp.Expr) -> exp.Expr:
        def change(child: exp.Expr) -> exp.Expr:
            if child is join.this:
                return table
            if isinstance(child, exp.Identifier):  # of USING
                if sum(child.name.lower() in map(str.lower, names) for names in self.names.values()) < 2:
                    self.question.refuse(f"no column `{child.name}` on both sides", "SF402", child)
                return child.copy()
            return _changed(child, self.context, (self.names, *self.parents), set())

        return rebuilt(join, change)

    def _named(self, items: list[exp.Expr], columns: tuple[str, ...]) -> list[exp.Expr]:
        """Return the SELECT list with every column under its own name, unless `*` stands in it."""
        if any(item.is_star for item in self.select.expressions):
            return items
        return [
            exp.Alias(this=item.unalias(), alias=exp.to_identifier(name, quoted=True))
            for item, name in zip(items, columns, strict=True)
        ]

    def _columns(self) -> tuple[str, ...]:
        names: list[str] = []
        for item, name in zip(self.select.expressions, output_names(self.select.expressions), strict=True):
            if isinstance(item, exp.Star):
                names.extend(name for columns in self.names.values() for name in columns)
            elif isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
                names.extend(self.names.get(item.table.lower(), ()))
            else:
                names.append(name)
        return tuple(unique(names))

    def _table(self, node: exp.Expr, source: Source) -> exp.Expr:
        """Return an entry of FROM over released or public tables, and note its columns."""
        question = self.question
        if isinstance(source, tuple):
            question.refuse("a subquery would show private rows", "SF404", node)
        name = node.alias or (node.name if isinstance(node, exp.Table) else "")
        if name.lower() in self.names and name:
            question.refuse(f"`{name}` is in FROM twice", "SF402", node)
        if isinstance(node, exp.Subquery):
            if source is None:
                source = self._public(node.this)
            self.names[name.lower() or f"({len(self.names)})"] = source.columns
            return exp.Subquery(this=source.query, alias=_table_alias(name) if name else None)
        if not isinstance(node, exp.Table):
            hint = "join the list with the private rows, or do it in Python to the noisy result"
            question.refuse("a list of constants cannot stand beside noisy results", "SF404", node, hint)
        cte = self.context.ctes.get(node.name.lower())
        if cte is not None:
            if cte.released is None:
                cte.released = self._public(cte.query, cte.context)
            self.names[name.lower()] = cte.released.columns
            known = node.name
        else:
            table = question.catalog.table(node.name)
            assert table is not None and not table.private
            question.use_public(table.name)
            self.names[name.lower()] = tuple(field.name for field in table.fields)
            known = table.name
        identifier = exp.to_identifier(known, quoted=True)
        return exp.Table(this=identifier, alias=_table_alias(node.alias) if node.alias else None)

    def _public(self, query: exp.Expr, context: Context | None = None) -> Released:
        context = context or self.context
        if isinstance(query, exp.Subquery):
            return self._public(query.this, context)
        if isinstance(query, exp.SetOperation):
            return post_processing_union(query, context)
        if not isinstance(query, exp.Select) or query.args.get("with_") is not None:
            self.question.refuse("only a plain SELECT can stand here", "SF404", query)
        return post_processing(query, context)


def _changed(node: exp.Expr, context: Context, scopes: tuple[_Names, ...], aliases: set[str]) -> exp.Expr:
    question = context.question
    if isinstance(node, exp.Query):
        return released_subquery(node, context, scopes)
    star = isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star))
    if star and not isinstance(node.parent, (exp.Select, exp.Count)):
        hint = "list the columns, or write SELECT * with nothing around it"
        question.refuse("`*` stands for columns, not for a value", "SF404", node, hint)
    if isinstance(node, exp.Column):
        _check_name(node, context, scopes, aliases)
        return node.copy()
    check(node, question)
    return rebuilt(node, lambda child: _changed(child, context, scopes, aliases))


def _check_name(node: exp.Column, context: Context, scopes: tuple[_Names, ...], aliases: set[str]) -> None:
    name, table = node.name.lower(), node.table.lower()
    if isinstance(node.this, exp.Star):
        if table and not any(table in scope for scope in scopes):
            context.question.refuse(f"no table `{node.table}` here", "SF402", node)
        return
    for scope in scopes:
        for alias, columns in scope.items():
            if (not table or table == alias) and name in (column.lower() for column in columns):
                return
    if not table and name in aliases:
        return
    hints = did_you_mean(name, (one for scope in scopes for columns in scope.values() for one in columns))
    whole = f"{node.table}.{node.name}" if table else node.name
    context.question.refuse(f"no column `{whole}` here", "SF402", node, *hints)


def _table_alias(name: str) -> exp.TableAlias:
    return exp.TableAlias(this=exp.to_identifier(name, quoted=True))
