"""The public entry: connect to data, ask, look at the price, release.

Asking is free. Only `Question.release` spends, and it takes the one path of `pipeline.answer`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sfumato.analysis import cheapest, explain, forecasts
from sfumato.catalog import Catalog, Domain, Field, Table, Unit
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.arguments import Number, budget_quantity
from sfumato.errors import InvalidArgument
from sfumato.ledger import Balance, Ledger
from sfumato.pipeline import Backend, Priced, answer, plan
from sfumato.plan.request import Options, Request
from sfumato.release import Release
from sfumato.release.lineage import Origin, trace

__all__ = ["Budget", "Database", "Question", "connect"]


def Budget(
    epsilon: Number, delta: Number = 0, *, keys_delta: Number | None = None, **options: Any
) -> PrivacyBudget:
    """Return the budget of the people in a dataset, for ever: (epsilon, delta) over all answers together.

    A tenth of delta is set aside for finding groups that were not declared, unless said otherwise.
    """
    share = budget_quantity(delta, "delta", zero=True) / 10 if keys_delta is None else keys_delta
    return PrivacyBudget(epsilon=epsilon, delta=delta, keys_delta=share, **options)


def connect(
    source: Any,
    *,
    unit: str | None,
    budget: PrivacyBudget,
    columns: Mapping[str, Domain] | None = None,
    ledger: str | os.PathLike[str] | None = None,
    name: str | None = None,
    max_groups: int | None = None,
    max_rows: int | None = None,
    public: Mapping[str, Any] | None = None,
) -> Database:
    """Open a table about people, and public tables beside it.

    `source` is a Parquet, CSV or DuckDB file, an Arrow table, a pandas or polars DataFrame. `unit`
    names the column that says whose each row is; None makes every row a unit by itself. `columns`
    declares bounds and values, never read off the data. Without a `ledger` file the budget is
    forgotten when the process ends.
    """
    from sfumato.backends.duckdb import DuckDBBackend
    from sfumato.backends.source import open_tables

    table = name or _name_of(source)
    opened = open_tables({table: source, **(public or {})})
    fields = _declared(opened.fields(table), columns or {}, table)
    protected = Unit(name=unit or f"row of {table}", column=unit)
    tables = [Table(name=table, fields=fields, unit=protected, max_groups=max_groups, max_rows=max_rows)]
    tables += [Table(name=each, fields=opened.fields(each), unit=None) for each in public or {}]
    catalog = Catalog(tuple(tables))
    book = Ledger.open(ledger)
    book.register(protected.name, budget)
    return Database(
        catalog=catalog,
        budget_of=budget,
        ledger=book,
        backend=DuckDBBackend(opened, catalog),
        unit=protected.name,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """Tables that can be asked about, and the budget of the people in them."""

    catalog: Catalog
    budget_of: PrivacyBudget
    ledger: Ledger
    backend: Backend
    unit: str

    def sql(self, text: str, *, epsilon: Number | None = None, **options: Any) -> Question:
        """Ask in SQL. Free: shows what it would cost and how far off it would be."""
        from sfumato.plan.sql import parse

        return self.ask(parse(text, self.catalog), epsilon=epsilon, **options)

    def table(self, name: str, *, alias: str | None = None) -> Any:
        """Begin a question in Python: where, group_by, agg; pass the result to `ask`."""
        from sfumato.plan.builder import table

        return table(name, self.catalog, alias=alias)

    def ask(self, request: Request, *, epsilon: Number | None = None, **options: Any) -> Question:
        """Ask a request that was built already."""
        if options:
            given = {field: getattr(request.options, field) for field in Options.__slots__}
            request = replace(request, options=Options(**{**given, **options}))
        cost = None if epsilon is None else budget_quantity(epsilon, "epsilon")
        if cost is None:
            cost = request.options.epsilon
        return Question(database=self, request=request, epsilon=cost)

    @property
    def budget(self) -> Balance:
        """What was spent and what is left."""
        return self.ledger.balance(self.unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question with its price tag; nothing is spent until `release`."""

    database: Database
    request: Request
    epsilon: Fraction | None

    def priced(self, epsilon: Number | None = None) -> Priced:
        """Return what one unit can change, the noise that takes, and the cost. Free."""
        chosen = self.epsilon if epsilon is None else budget_quantity(epsilon, "epsilon")
        return plan(
            self.request, catalog=self.database.catalog, budget=self.database.budget_of, epsilon=chosen
        )

    def explain(self, *, size: float | None = None) -> str:
        """Explain the plan, the noise, the cost, and the error at half, the same and double epsilon. Free."""
        if self.epsilon is None:
            raise InvalidArgument(
                "explaining needs an epsilon", place="epsilon", hints=("ask with epsilon=0.5, for example",)
            )
        share = self.epsilon / len(self.request.queries)
        options = self.request.options
        texts = [
            explain(
                bounding,
                self.database.budget_of,
                epsilon=share,
                size=size,
                weights=options.weights,
                noise=options.noise,
            )
            for bounding in self.priced().boundings
        ]
        return self._named("\n\n".join(texts))

    def release(
        self,
        *,
        error: Number | Mapping[str, float] | None = None,
        size: float | None = None,
        key: str | None = None,
    ) -> Release:
        """Spend: charge the budget, compute, add noise, and return the answer with its intervals.

        With `error`, epsilon is the smallest at which the 95% error is no larger; for averages and
        other ratios it needs the `size` of a group. With a `key`, the same request asked again
        returns the stored release, free.
        """
        database = self.database
        epsilon = self.epsilon
        if error is not None:
            bounding = self.priced(database.budget_of.epsilon).boundings
            options = self.request.options
            epsilon = sum(
                (
                    cheapest(
                        each,
                        database.budget_of,
                        error=error,
                        size=size,
                        weights=options.weights,
                        noise=options.noise,
                    )
                    for each in bounding
                ),
                Fraction(0),
            )
        return answer(
            self.priced(epsilon),
            catalog=database.catalog,
            ledger=database.ledger,
            backend=database.backend,
            idempotency_key=key,
        )

    def __repr__(self) -> str:
        if self.epsilon is None:
            return "<question: give epsilon to see its price, or release(error=..)>"
        priced = self.priced()
        lines = [f"question, not asked yet: epsilon = {float(self.epsilon):g}"]
        for bounding, cost in zip(priced.boundings, priced.costs, strict=True):
            for one in forecasts(bounding, cost):
                depends = "depends on the group's size" if one.error is None else f"±{one.error:.4g} (95%)"
                lines.append(f"  {one.name}: {depends}")
        lines.append("nothing is spent until .release()")
        return self._named("\n".join(lines))

    def _named(self, text: str) -> str:
        """Call noisy columns what the question calls them, where it shows them as they are."""
        request = self.request
        if request.outer is None or len(request.queries) != 1:
            return text
        [named] = request.queries
        columns = tuple(name for name, _ in (*named.query.keys, *named.query.aggregates))
        found = trace(request.outer, {named.name: columns})
        if found is None:
            return text
        for name, origin in zip(found.names, found.origins, strict=True):
            if origin is not None and origin == Origin(column=origin.column):
                text = re.sub(rf"\b{re.escape(origin.column)}\b", name.replace("\\", r"\\"), text)
        return text


def _name_of(source: Any) -> str:
    if isinstance(source, (str, os.PathLike)):
        return os.path.basename(os.fspath(source)).split(".")[0] or "data"
    return "data"


def _declared(fields: tuple[Field, ...], columns: Mapping[str, Domain], table: str) -> tuple[Field, ...]:
    known = {field.name for field in fields}
    unknown = sorted(set(columns) - known)
    if unknown:
        raise InvalidArgument(
            f"table `{table}` has no column `{unknown[0]}`",
            place="columns",
            hints=(f"its columns are {', '.join(sorted(known))}",),
        )
    return tuple(replace(field, domain=columns.get(field.name)) for field in fields)
