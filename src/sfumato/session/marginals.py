"""The question for marginals: many tables with one price tag; nothing is spent until `release`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from sfumato.analysis.expected_error import ExpectedError
from sfumato.core.arguments import Number, positive
from sfumato.core.gaussian import GaussianNoise
from sfumato.errors import InvalidArgument
from sfumato.pages import Notes, fragment
from sfumato.plan.estimates import known_field, private_table
from sfumato.plan.options import Options
from sfumato.plan.values import Val
from sfumato.session.counting import counted
from sfumato.session.question import Question
from sfumato.workloads.marginal_columns import Bins, QueryMatrix, marginal_column
from sfumato.workloads.marginal_display import error_blocks, error_figures
from sfumato.workloads.marginal_release import Marginals
from sfumato.workloads.marginals import MarginalWorkload, PricedMarginals, plan_marginals
from sfumato.workloads.residuals import Subset, all_ways

if TYPE_CHECKING:
    from sfumato.advise.choice import Choice
    from sfumato.session.database import Database

__all__ = ["MarginalsQuestion", "Tables", "Weights", "marginal_workload"]

Tables = Sequence[str] | Sequence[Sequence[str]]
"""Names of columns, of which `ways` makes tables; or tables, each as the names of its columns."""


_UNSPENT = "nothing is spent until .release()"
_CLOSER = 1.0005  # a search that misses goes on so much further
_LARGEST_ERROR = 1e15  # of a count; whoever can live with more is given this
_LEAST_EPSILON = 1e-4

Weights = Literal["cells", "tables"] | Mapping[Any, Number]
"""How much variances matter: of all cells alike, of all tables alike, or of tables by their columns."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MarginalsQuestion(Question[PricedMarginals, Marginals]):
    """Many tables with one price tag; nothing is spent until `release`.

    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> people = pa.table({"who": range(900), "sex": ["f", "m", "f"] * 300, "old": [True, False] * 450})
    >>> columns = {"sex": sf.one_of("f", "m")}
    >>> budget = sf.Budget(epsilon=3, delta=1e-6)
    >>> db = sf.connect(
    ...     people, name="people", unit="who", columns=columns, max_rows=1, max_groups=1, budget=budget
    ... )
    >>> question = db.marginals(["sex", "old"], ways=2, epsilon=1)  # free: shows price and error
    >>> question.cells, db.balance.spent_units
    (4, 0)
    """

    workload: MarginalWorkload
    options: Options

    refused_as = "tables"

    @property
    def called(self) -> str:
        """What advice calls it."""
        return "the tables"

    @property
    def title(self) -> str:
        """The line above its price."""
        return f"{self._size}, not asked yet"

    @property
    def _size(self) -> str:
        number = len(self.workload.weights)
        return f"{number:,} table{'s' * (number != 1)}, {self.cells:,} cells"

    @property
    def cells(self) -> int:
        """How many cells all tables have together."""
        return self.workload.cells

    @property
    def reads_public(self) -> bool:
        """It does not: its rows are those of one private table, and its cells are declared."""
        return False

    def _plan(self, epsilon: Fraction | None) -> PricedMarginals:
        if epsilon is None:
            raise InvalidArgument(
                "it is not said what these tables may cost",
                place="epsilon",
                hints=("give epsilon, for example epsilon=0.5", "or a wanted error: release(error=20)"),
            )
        database = self.database
        priced = plan_marginals(
            self.workload,
            catalog=database.catalog,
            budget=database.terms,
            epsilon=epsilon,
            options=self.options,
            backend=database.backend,
        )
        _ = priced.noise, priced.event  # are kept: their steps are those of the price, and the same each time
        return priced

    def _expected(self, priced: PricedMarginals, size: float | None) -> tuple[ExpectedError, ...]:
        widths = priced.half_widths()
        return tuple(ExpectedError.within(_called(names), width) for names, width in widths.items())

    def tables(self) -> list[tuple[str, ...]]:
        """Return the tables, each by the names of its columns."""
        return [self.workload.names(table) for table in self._tables()]

    def check_table(self, names: Sequence[str]) -> None:
        """Refuse a table that will not be part of the release. Free."""
        known = [column.name for column in self.workload.columns]
        places = {known.index(name) for name in names if name in known}
        if len(places) < len(names) or not any(places <= set(table) for table in self._tables()):
            raise InvalidArgument(
                f"no table of the workload has {' and '.join(names)}",
                place="columns",
                hints=("ask for tables of more columns: ways=3, or --ways 3",),
            )

    @counted
    def within(self, error: Number | Mapping[Any, Any], *, size: float | None = None) -> MarginalsQuestion:
        """Return this question at about the smallest epsilon whose 95% error is no larger. Free.

        `error` is for the cells of each table, or by table: `{("age", "sex"): 20, "age": 5}`; tables without
        one have the largest. Noise is divided anew among the tables, so that none has less than it needs.
        Cells are counts, whose error depends on no `size`.
        """
        wanted = self._wanted(error)
        targets = {one: width / GaussianNoise.standard_quantile(0.05) for one, width in wanted.items()}
        while True:
            found = self._within(targets)
            noise = found.priced().noise
            ratios = {one: noise.half_width(one) / width for one, width in wanted.items()}
            if max(ratios.values()) <= 1:
                return found
            # Small noise is not normal: its 95% interval is wider than the deviation says.
            targets = {one: target / max(1.0, ratios[one] * _CLOSER) for one, target in targets.items()}

    def _within(self, targets: Mapping[Subset, float]) -> MarginalsQuestion:
        """Return this question at about the smallest epsilon whose deviations are no larger than these."""
        aimed = self._divided(targets)
        most = self.database.terms.epsilon
        whole = aimed.priced(most)
        best = whole.deviations()
        missed = [one for one, target in targets.items() if best[one] > target]
        if missed:
            alone = {one: whole.deviation_alone(one) for one in missed}
            worse = [one for one in missed if alone[one] > targets[one]]
            self._refuse_targets(worse or missed, best if not worse else alone, together=not worse)
        wider = min((target / best[one]) ** 2 for one, target in targets.items())
        budget, needed = self.database.terms, whole.price(self.database.terms.rule, wider=wider)
        low, high = 0.0, float(most)
        while high > max(low * (1 + 1e-4), _LEAST_EPSILON):  # a ten-thousandth more is not seen
            middle = high / 2 if low == 0.0 else math.sqrt(low * high)
            low, high = (low, middle) if budget.allowance(middle) >= needed else (middle, high)
        return replace(aimed, epsilon=min(most, Fraction(high * (1 + 1e-5))))

    @counted
    def aimed(self, error: Number | Mapping[Any, Number]) -> MarginalsQuestion:
        """Return this question with noise divided so that wanted errors are reached together. Free."""
        return self._divided(self._wanted(error))

    def _divided(self, targets: Mapping[Subset, float]) -> MarginalsQuestion:
        """Return this question with noise divided by how far off tables may be, in any unit."""
        plan = self.workload.plan.within({one: target**2 for one, target in targets.items()})
        return replace(self, workload=replace(self.workload, weights=tuple(plan.weights.items())))

    def _refuse_targets(
        self, missed: Sequence[Subset], reached: Mapping[Subset, float], *, together: bool
    ) -> NoReturn:
        """Refuse errors that no epsilon of the budget reaches, and name the tables."""
        named = [f"`{_called(self.workload.names(one))}`" for one in missed]
        said = ", ".join(named[:3]) + (f" and {len(named) - 3} more tables" if len(named) > 3 else "")
        about = reached[missed[0]] * GaussianNoise.standard_quantile(0.05)
        raise InvalidArgument(
            f"no epsilon of this budget reaches the error wanted of {said}{' together' * together}",
            place="error",
            hints=(
                f"with all of it, {named[0]} {'' if together else 'alone '}has about {about:.4g}",
                "ask for fewer tables, wider bins, or a larger error",
            ),
        )

    def _wanted(self, error: Number | Mapping[Any, Number]) -> dict[Subset, float]:
        """Return the 95% error that is wanted of each table."""
        if not isinstance(error, Mapping):
            given = dict.fromkeys(self._tables(), positive(error, "error"))
        else:
            given = {self._table(names, "error"): positive(one, "error") for names, one in error.items()}
        if not given:
            raise InvalidArgument("a wanted error is of one table at least", place="error")
        largest = max(given.values())
        return {one: min(float(given.get(one, largest)), _LARGEST_ERROR) for one in self._tables()}

    def _tables(self) -> list[Subset]:
        return [table for table, _ in self.workload.weights]

    def _table(self, names: Any, place: str) -> Subset:
        return _subset(names, [column.name for column in self.workload.columns], self._tables(), place)

    def choice(self, *, size: float | None = None) -> Choice:
        """Return the choice of its epsilon; noise is divided anew for a wanted error of tables. Free."""

        def aimed(wanted: Mapping[str, float]) -> Choice:
            tables = {_called(names): names for names in self.tables()}
            return self.aimed({tables[name]: one for name, one in wanted.items()}).choice()

        return replace(Question.choice(self), aimed=aimed)

    def _lines(self) -> list[str]:
        if self.epsilon is None:
            return [f"<{self._size}: give epsilon to see their price, or release(error=..)>"]
        head = f"{self.title}: epsilon = {float(self.epsilon):g}"
        blocks = error_blocks(head, self.priced().half_widths())
        return [*(block.text() for block in blocks), _UNSPENT]

    def _html(self) -> str:
        errors = self.priced().half_widths()
        columns = [column.name for column in self.workload.columns]
        return fragment(
            *error_blocks(self.title, errors), Notes((_UNSPENT,)), *error_figures(columns, errors)
        )


@counted
def marginal_workload(
    database: Database,
    columns: Tables,
    *,
    ways: int | Sequence[int] | None,
    table: str | None,
    weights: Weights,
    bins: Mapping[str, Bins] | None,
    bases: Mapping[str, QueryMatrix] | None,
    missing: bool | Sequence[str],
    where: Val | None,
) -> MarginalWorkload:
    """Return the tables that are asked for; refuse what makes no sense, before anything is charged."""
    names, tables = _chosen(columns, ways)
    found = private_table(database.catalog, table, "marginals(..)", columns=names)
    bins, bases = dict(bins or {}), dict(bases or {})
    absent = (names if missing else []) if isinstance(missing, bool) else list(missing)
    for given, place in ((bins, "bins"), (bases, "bases"), (absent, "missing")):
        if unknown := [name for name in given if name not in names]:
            raise InvalidArgument(
                f"{place} name `{unknown[0]}`, which is no column of the tables", place=place
            )
    chosen = tuple(
        marginal_column(
            known_field(found, name, f"marginals({name!r})"),
            bins.get(name),
            bases.get(name, "cells"),
            missing=name in absent,
        )
        for name in names
    )
    return MarginalWorkload(
        table=found.name,
        columns=chosen,
        weights=tuple(_weighted(weights, names, tables, [column.base.queries for column in chosen])),
        condition=where,
    ).tuned()


def _weighted(
    weights: Any, names: Sequence[str], tables: Sequence[Subset], sizes: Sequence[int]
) -> Iterator[tuple[Subset, float]]:
    """Yield the weight of the sum of variances of each table."""
    if isinstance(weights, str):
        if weights not in ("cells", "tables"):
            raise InvalidArgument(
                "weights are by table, or 'cells', or 'tables'", place="weights", hints=("weights='tables'",)
            )
        yield from (
            (one, 1 / math.prod(sizes[i] for i in one) if weights == "tables" else 1.0) for one in tables
        )
        return
    if not isinstance(weights, Mapping):
        hint = "weights={('age', 'sex'): 10}"
        raise InvalidArgument("weights say of tables how much they matter", place="weights", hints=(hint,))
    given = {
        _subset(one, names, tables, "weights"): float(positive(weight, "weights"))
        for one, weight in weights.items()
    }
    yield from ((one, given.get(one, 1.0)) for one in tables)


def _chosen(columns: Tables, ways: int | Sequence[int] | None) -> tuple[list[str], list[Subset]]:
    """Return the names of all columns, and the tables as places among them."""
    example = ("marginals(['age', 'sex', 'job'], ways=2)", "marginals([('age', 'sex'), ('job',)])")
    if isinstance(columns, str) or not isinstance(columns, Sequence) or not columns:
        raise InvalidArgument("marginals are of a list of columns", place="columns", hints=example)
    if all(isinstance(one, str) for one in columns):
        names = [str(one) for one in columns]
        if len(set(names)) < len(names):
            raise InvalidArgument("a column is named twice", place="columns")
        sizes = [2] if ways is None else [ways] if isinstance(ways, int) else list(ways)
        if not sizes or any(isinstance(one, bool) or not isinstance(one, int) for one in sizes):
            raise InvalidArgument("ways is how many columns a table has", place="ways", hints=("ways=2",))
        if any(not 0 <= one <= len(names) for one in sizes):
            raise InvalidArgument(
                f"ways is between 0 and the number of columns, {len(names)}", place="ways", hints=("ways=1",)
            )
        if sum(math.comb(len(names), one) for one in sizes) > _MOST_TABLES:
            raise InvalidArgument(
                f"these are more than {_MOST_TABLES:,} tables", place="ways", hints=("use fewer columns",)
            )
        return names, list(chain.from_iterable(all_ways(len(names), one) for one in sorted(set(sizes))))
    if ways is not None or any(isinstance(one, str) or not isinstance(one, Sequence) for one in columns):
        raise InvalidArgument(
            "columns are names, of which `ways` makes tables, or tables of names",
            place="columns",
            hints=example,
        )
    names = list(dict.fromkeys(str(name) for one in columns for name in one))
    tables = [tuple(sorted(names.index(name) for name in one)) for one in columns]
    if len(set(tables)) < len(tables) or any(len(set(one)) < len(one) for one in tables):
        raise InvalidArgument("a table is named once, and has each column once", place="columns")
    return names, tables


_MOST_TABLES = 20_000


def _called(table: Sequence[str]) -> str:
    return " x ".join(table) or "total"


def _subset(given: Any, names: Sequence[str], tables: Sequence[Subset], place: str) -> Subset:
    """Return the table that is named by its columns, or by its only column."""
    wanted = (given,) if isinstance(given, str) else given
    known = isinstance(wanted, (tuple, frozenset)) and all(name in names for name in wanted)
    found = tuple(sorted(names.index(name) for name in wanted)) if known else None
    if found is None or found not in tables:
        raise InvalidArgument(
            f"{place} name a table that is not asked for",
            place=place,
            hints=("a table is named by its columns: ('age', 'sex')",),
        )
    return found
