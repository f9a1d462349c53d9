"""The database: tables that can be asked about, and the budget of the people in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Unpack

from sfumato.backends import Backend
from sfumato.catalog import Catalog, Column, Declaration, Domain
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.arguments import Number, budget_quantity
from sfumato.core.steps import MOST_STEPS
from sfumato.errors import InvalidArgument
from sfumato.ledger import OWNER, Balance, Ledger, Owner
from sfumato.plan.options import QUESTION_OPTIONS, Options, QuestionOptions, options_explained
from sfumato.plan.request import Request, with_options
from sfumato.release.lineage import shown_columns
from sfumato.session.counting import counted
from sfumato.session.sql_question import Asked, SqlQuestion

if TYPE_CHECKING:
    from sfumato.advise.advice import Advice, AdviceOptions
    from sfumato.advise.choice import Choice
    from sfumato.continual.participation import Participation
    from sfumato.continual.periods import Moment
    from sfumato.plan.builder import Frame
    from sfumato.plan.values import Val
    from sfumato.session.marginals import MarginalsQuestion, Tables, Weights
    from sfumato.session.stream import Stream
    from sfumato.session.workload import Target, Workload
    from sfumato.workloads.marginal_columns import Bins, QueryMatrix

__all__ = ["Database"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """Tables that can be asked about, and the budget of the people in them.

    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> people = pa.table({"person": range(900)})
    >>> db = sf.connect(people, name="people", unit="person", max_rows=1, budget=sf.Budget(epsilon=3))
    >>> release = db.sql("SELECT COUNT(*) AS n FROM people", epsilon=1).release()
    >>> db.balance.spent_units == db.balance.limit // 3
    True
    """

    catalog: Catalog
    terms: PrivacyBudget
    ledger: Ledger
    backend: Backend
    unit: str
    analyst: str | Owner = OWNER
    steps: int = MOST_STEPS  # that pricing one question may take

    def __repr__(self) -> str:
        tables = (f"{one.name} ({'private' if one.unit else 'public'})" for one in self.catalog.tables)
        return f"<database of {', '.join(tables)}; unit `{self.unit}`>"

    @counted
    @options_explained
    def sql(
        self,
        text: str,
        *,
        epsilon: Number | None = None,
        purpose: str | None = None,
        free: bool = False,
        **options: Unpack[QuestionOptions],
    ) -> SqlQuestion:
        """Ask in SQL. Free: shows what it would cost and how far off it would be.

        - `epsilon`: what this question may give away by itself; `release(error=..)` finds one.
        - `purpose`: what it is for; the ledger keeps it with the charge, for the owner alone.
        - `free`: answer from old releases, without a charge, or refuse.

        The other options are listed in docs/queries.md. An option that is None is as the statement, and then
        the catalog, says.
        """
        from sfumato.plan.sql import parse

        if unknown := [name for name in options if name not in QUESTION_OPTIONS]:
            raise TypeError(f"Database.sql() got an unexpected keyword argument {unknown[0]!r}")
        request = parse(text, self.catalog)
        return self.ask(request, epsilon=epsilon, purpose=purpose, free=free, **options)

    def table(self, name: str, *, alias: str | None = None) -> Frame[Asked]:
        """Begin a question in Python: `db.table("visits").where(..).group_by("region").agg(n=sf.count())`.

        It is asked like one in SQL: `.ask(epsilon=0.5)` shows the price, `.release(epsilon=0.5)` spends.
        """
        from sfumato.plan.builder import table

        return table(name, self.catalog, lambda built: Asked(database=self, request=built), alias=alias)

    @counted
    def ask(
        self,
        request: Request | Asked,
        *,
        epsilon: Number | None = None,
        purpose: str | None = None,
        free: bool = False,
        **options: Unpack[QuestionOptions],
    ) -> SqlQuestion:
        """Ask what was built already; takes the options that `sql` takes."""
        if isinstance(request, Asked):
            request = request.request
        if not isinstance(request, Request):
            raise InvalidArgument(
                "this is not a question",
                place="ask",
                hints=("db.ask(db.table('people').agg(n=sf.count())), or db.sql('SELECT ..')",),
            )
        if isinstance(weights := options.get("weights"), Mapping):
            shown = shown_columns(request)
            options["weights"] = {shown.get(name, name): weight for name, weight in weights.items()}
        request = with_options(request, options)
        cost = request.options.epsilon if epsilon is None else budget_quantity(epsilon, "epsilon")
        return SqlQuestion(database=self, request=request, epsilon=cost, purpose=purpose, only_free=free)

    # -- many statistics at once -------------------------------------------------------------

    def workload(
        self,
        questions: Mapping[str, str | Asked | SqlQuestion] | Sequence[str | Asked | SqlQuestion],
        *,
        epsilon: Number | None = None,
        errors: Mapping[str, Target] | None = None,
        size: Number | None = None,
        purpose: str | None = None,
    ) -> Workload:
        """Ask many questions at once, under one budget. Free: shows the total cost and every error.

        What they have in common is measured once. `questions` are SQL, or what `sql`, `table` and `ask`
        return; a list, or a dictionary by name. A question that was asked with an epsilon of its own keeps
        it. `errors` says for others, by name, the 95% error that they may have; the cheapest noise for it
        is found, for averages in groups of `size` rows. All that is left of `epsilon` is shared by the rest.
        """
        from sfumato.session.workload import workload_of

        return workload_of(self, questions, epsilon=epsilon, errors=errors, size=size, purpose=purpose)

    def marginals(
        self,
        columns: Tables,
        *,
        ways: int | Sequence[int] | None = None,
        epsilon: Number | None = None,
        table: str | None = None,
        weights: Weights = "cells",
        bins: Mapping[str, Bins] | None = None,
        bases: Mapping[str, QueryMatrix] | None = None,
        missing: bool | Sequence[str] = False,
        where: Val | None = None,
        purpose: str | None = None,
        max_groups: int | None = None,
        max_rows: int | None = None,
        max_rows_total: int | None = None,
    ) -> MarginalsQuestion:
        """Ask for contingency tables over sets of columns, all together: free, and shows price and errors.

        `columns` are names, and `ways=2` asks for all tables of two of them, `ways=(1, 2)` also for those of
        one; or the tables themselves: `[("age", "sex"), ("job",)]`. All tables agree with each other, and the
        noise is the least that any Gaussian mechanism has for their sum of variances.

        - `weights`: "cells" has the sum of the variances of all cells least, which large tables decide;
          "tables" that of the mean variances of tables; `{("age", "sex"): 10}` counts a table ten times.
        - `bins`: of numbers and dates: `{"age": 10}` equal steps between declared bounds, or their edges.
        - `bases`: what is asked about a column: "cells", "prefixes", "ranges", or a matrix.
        - `missing`: True, or columns, that have a cell for rows with no value; else those are in no table.
        - `where`: a condition on rows. `max_groups`: in how many combinations of cells a unit counts;
          `max_rows`: with how many rows in each of them.
        """
        from sfumato.session.marginals import MarginalsQuestion, marginal_workload

        options = Options(max_groups=max_groups, max_rows=max_rows, max_rows_total=max_rows_total)
        workload = marginal_workload(
            self,
            columns,
            ways=ways,
            table=table,
            weights=weights,
            bins=bins,
            bases=bases,
            missing=missing,
            where=where,
        )
        cost = None if epsilon is None else budget_quantity(epsilon, "epsilon")
        return MarginalsQuestion(
            database=self, workload=workload, epsilon=cost, options=options, purpose=purpose
        )

    @counted
    def hierarchy(
        self,
        levels: Sequence[str],
        *,
        cells: str | None = None,
        places: str | None = None,
        table: str | None = None,
        epsilon: Number | None = None,
        level_shares: Sequence[Number] = (),
        non_negative: bool | None = None,
        purpose: str | None = None,
    ) -> SqlQuestion:
        """Ask how many rows each group of each level has: one release, in which groups add up.

        `db.hierarchy(["state", "county", "block"], places="blocks", cells="age", epsilon=1)`: `places` is a
        public table with a column for each level; without it, levels are columns with declared values.
        With `cells`, each group has a count for each value of that column. Three levels have four
        `level_shares`, for the total comes first. Totals that the policy declares public are kept exactly,
        and named as unprotected.
        """
        from sfumato.plan.hierarchies import hierarchy_request

        request = hierarchy_request(
            self.catalog, levels, cells=cells, places=places, table=table, shares=level_shares
        )
        return self.ask(request, epsilon=epsilon, purpose=purpose, non_negative=non_negative)

    # -- statistics period after period ------------------------------------------------------

    def stream(
        self,
        question: str | Asked | SqlQuestion,
        *,
        name: str,
        by: str,
        every: str,
        start: Moment,
        horizon: int | None = None,
        design: int | None = None,
        epsilon: Number | None = None,
        participation: Participation | None = None,
        late: int = 7,
        duplicates: str = "count",
        row_id: str | None = None,
        purpose: str | None = None,
    ) -> Stream:
        """Ask a question about each period, for one charge over all of them. Free: shows what it would cost.

        A period is an `every` ("hour", "day", "week" or "month") in UTC, from `start` on; its rows are those
        whose date or timestamp `by` lies in it. There are `horizon` of them, or without one no end of them:
        totals are then accurate up to `design` periods, and err more past these; the guarantee never ends.
        `name` is what the ledger calls the stream: whoever asks the same under the same name goes on with it.
        One person counts in as many periods as `participation` says, in one unless it is given, and the
        engine holds everybody to it.
        Rows that come up to `late` periods after their own count in the next one. `duplicates` of a row of
        one person, told by the column `row_id` or by all that is asked about, "count", or count "once".
        """
        from sfumato.continual.row_rules import RowRules
        from sfumato.session.stream import stream_of

        return stream_of(
            self,
            question,
            name=name,
            by=by,
            every=every,
            start=start,
            horizon=horizon,
            design=design,
            epsilon=epsilon,
            participation=participation,
            rows=RowRules(late=late, duplicates=duplicates, row_id=row_id),
            purpose=purpose,
        )

    # -- what is not known beforehand --------------------------------------------------------

    @counted
    def bounds(
        self,
        column: str,
        *,
        table: str | None = None,
        epsilon: Number | None = None,
        share: float = 0.0,
        false_alarm: float = 0.05,
    ) -> SqlQuestion:
        """Ask between which powers of two about all values of a column lie, or all but a `share`.

        `db.declare(income=db.bounds("income", epsilon=0.1).release().between())` puts it to use.
        NULLs if nothing can be told from noise. `false_alarm` is the chance that a bound is too wide.
        """
        from sfumato.plan.estimates import bounds_request

        request = bounds_request(self.catalog, column, table=table, share=share, false_alarm=false_alarm)
        return self.ask(request, epsilon=epsilon)

    @counted
    def caps(
        self,
        table: str | None = None,
        *,
        by: str | Sequence[str] | None = None,
        epsilon: Number | None = None,
        share: float = 0.95,
        limit: int = 100,
    ) -> SqlQuestion:
        """Ask for the `max_rows`, and with `by` the `max_groups`, that leave a share of units whole.

        `db.sql(.., **db.caps(by="region", epsilon=0.1).release().one())` puts it to use.
        """
        from sfumato.plan.estimates import caps_request

        return self.ask(caps_request(self.catalog, table, by=by, share=share, limit=limit), epsilon=epsilon)

    def declare(
        self, columns: Mapping[str, Domain] | None = None, /, *, table: str | None = None, **named: Domain
    ) -> Database:
        """Return the same data and the same budget, with more declared about its columns."""
        from sfumato.plan.estimates import declared_table

        given = {name: Column.of(name, domain) for name, domain in {**(columns or {}), **named}.items()}
        known = declared_table(self.catalog, table, "declare(..)", columns=tuple(given))
        declared = Declaration(name=known.name, unit=None, columns=given)
        declared.table(known.fields, known.unsupported)  # refuses what does not fit
        fields = tuple(
            replace(field, domain=given[field.name].domain) if field.name in given else field
            for field in known.fields
        )
        tables = [replace(one, fields=fields) if one == known else one for one in self.catalog.tables]
        catalog = replace(self.catalog, tables=tuple(tables))
        return replace(self, catalog=catalog, backend=self.backend.under(catalog))

    @counted
    def advise(
        self,
        *questions: str | Asked | SqlQuestion,
        epsilon: Number | None = None,
        size: float | None = None,
        **options: Unpack[AdviceOptions],
    ) -> Advice:
        """Say what the whole budget tells about a person once it is spent, and what else could be had. Free.

        With `questions`, also how far off they would be if all of the budget went to them, in groups of
        `size` rows. `epsilon` is another one than the budget's. The options are those of `Question.advise`.
        """
        from sfumato.advise.advice import advise

        asked = [self.sql(one) if isinstance(one, str) else one for one in questions]
        several = [self.ask(one) if isinstance(one, Asked) else one for one in asked]
        return advise(self.choice(*several, epsilon=epsilon, size=size), **options)

    def choice(self, *asked: SqlQuestion, epsilon: Number | None = None, size: float | None = None) -> Choice:
        """Return the choice of the budget's epsilon, which advice is about: its risk if all of it is spent.

        The errors are those of the questions `asked`, if all of the budget went to them.
        """
        from sfumato.advise.choice import choice_of_budget

        whole = self.terms.epsilon if epsilon is None else budget_quantity(epsilon, "epsilon")
        budget = replace(choice_of_budget(self.terms), epsilon=whole)
        if not asked:
            return budget
        own = asked[0] if len(asked) == 1 else self.workload(asked, epsilon=whole, size=size)
        return budget.spent_on(own.choice(size=size))

    @property
    def balance(self) -> Balance:
        """What was spent and what is left of the budget; `terms` is the budget itself."""
        return self.ledger.balance(self.unit)

    budget = balance
