"""Names with a schema: `main.people`, `"db"."schema".people`, and columns of theirs.

The catalog has one name for each table. What stands before it is taken away here, before anything else reads
the statement, or is the first part of a name that was declared with it: `Catalog.named` says which. A name
with a schema is never one of WITH.
"""

from __future__ import annotations

from sqlglot import exp

from sfumato.plan.question import Statement

__all__ = ["resolve_names"]


def resolve_names(statement: exp.Expr, question: Statement) -> None:
    """Write the catalog's own name wherever a statement names a table in another way; change it in place."""
    queries = {cte.alias.lower() for cte in statement.find_all(exp.CTE)}
    before: dict[str, str] = {}  # what stood before each table's name: two schemas would be two tables
    known: set[tuple[str, ...]] = set()
    for node in list(statement.find_all(exp.Table)):
        named = [node.args[part] for part in ("catalog", "db", "this") if node.args.get(part) is not None]
        parts = [part.name for part in named if isinstance(part, exp.Identifier)]
        qualified = len(named) > 1
        if len(parts) != len(named) or not (qualified or parts[0].lower() not in queries):
            continue
        table = question.catalog.named(*parts)
        if table is None:
            continue
        if qualified:
            schema = ".".join(parts[:-1]).lower()
            if before.setdefault(table.name, schema) != schema:
                hint = "tables of the catalog have a single name: leave out what stands before it"
                question.refuse(f"`{table.name}` stands here under two schemas", "SF402", node, hint)
            known |= {tuple(part.lower() for part in parts[start:]) for start in range(len(parts) - 1)}
        if table.name.lower() != parts[-1].lower():
            name = exp.to_identifier(table.name, quoted=True)
            name.meta.update(node.this.meta)
            if not node.alias:
                node.set("alias", exp.TableAlias(this=exp.to_identifier(parts[-1], quoted=True)))
            node.set("this", name)
        node.set("db", None)
        node.set("catalog", None)
    for column in list(statement.find_all(exp.Column)):
        if tuple(part.name.lower() for part in column.parts[:-1]) in known:
            column.set("db", None)
            column.set("catalog", None)
