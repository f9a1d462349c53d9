"""Python calls build the trees that SQL builds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from sfumato.catalog import Catalog
from sfumato.errors import InvalidArgument, QueryRefused, SfumatoError
from sfumato.plan import builder
from sfumato.plan.builder import Frame
from sfumato.plan.request import Request
from sfumato.plan.sql import parse
from sfumato.plan.summaries import (
    avg,
    corr,
    count,
    count_distinct,
    count_units,
    covar_pop,
    covar_samp,
    histogram,
    max_,
    median,
    min_,
    quantile,
    stddev_pop,
    stddev_samp,
    sum_,
    var_pop,
    var_samp,
)
from sfumato.plan.values import call, col, lit, when
from tests.plan.example import CATALOG


def table(name: str, catalog: Catalog, *, alias: str | None = None) -> Frame[Request]:
    return builder.table(name, catalog, lambda request: request, alias=alias)


def people(alias: str | None = None) -> Frame[Request]:
    return table("people", CATALOG, alias=alias)


def visits(alias: str | None = None) -> Frame[Request]:
    return table("visits", CATALOG, alias=alias)


def regions() -> Frame[Request]:
    return table("regions", CATALOG)


def bare(request: Request) -> tuple[object, ...]:
    """Return a request without the text it came from."""
    queries = [replace(named, query=replace(named.query, text="")) for named in request.queries]
    return queries, request.postprocessing, request.options, request.public


UNITED = "(SELECT uid, age AS x FROM people UNION ALL SELECT pid, cost AS x FROM visits)"

SAME: list[tuple[str, Callable[[], Request]]] = [
    ("SELECT COUNT(*) AS n FROM people", lambda: people().agg(n=count())),
    (
        f"SELECT COUNT(*) AS n, AVG(x) AS m FROM {UNITED} AS u WHERE x > 3",
        lambda: (
            people()
            .select(x=col("age"), alias="u")
            .union_all(visits().select(x=col("cost"), alias="u"), alias="u")
            .where(col("x") > 3)
            .agg(n=count(), m=avg("x"))
        ),
    ),
    (
        "SELECT region, age, COUNT(*) AS n FROM people GROUP BY GROUPING SETS ((region, age), (age), ())",
        lambda: people().grouping_sets(["region", "age"], ["age"], []).agg(n=count()),
    ),
    (
        "SELECT region, age // 10 AS d, COUNT(*) AS n FROM people GROUP BY GROUPING SETS ((region), (d))",
        lambda: people().grouping_sets(["region"], ["d"], d=col("age") // 10).agg(n=count()),
    ),
    (
        "SELECT region, COUNT(*) AS n, SUM(income) AS total FROM people WHERE age > 30 GROUP BY region",
        lambda: people().where(col("age") > 30).group_by("region").agg(n=count(), total=sum_("income")),
    ),
    (
        "SELECT COUNT(*) AS n FROM people WHERE age > 30 AND member AND NOT job = 'x'",
        lambda: people().where(col("age") > 30).where(col("member"), ~(col("job") == "x")).agg(n=count()),
    ),
    (
        "SELECT floor(age / 10) AS decade, AVG(income) AS m FROM people GROUP BY decade",
        lambda: people().group_by(decade=call("floor", col("age") / 10)).agg(m=avg("income")),
    ),
    (
        "SELECT COUNT(job) AS a, COUNT(DISTINCT job) AS b, COUNT(DISTINCT uid) AS c FROM people",
        lambda: people().agg(a=count("job"), b=count_distinct("job"), c=count_units()),
    ),
    (
        "SELECT COUNT(*) FILTER (WHERE age > 3) AS a, SUM(age) FILTER (WHERE member) AS b FROM people",
        lambda: people().agg(a=count().where(col("age") > 3), b=sum_("age").where(col("member"))),
    ),
    (
        (
            "SELECT MEDIAN(age) AS a, QUANTILE(age, [0.1, 0.9]) AS b, MIN(age) AS c, MAX(age) AS d, "
            "HISTOGRAM(age) AS e FROM people"
        ),
        lambda: people().agg(
            a=median("age"), b=quantile("age", [0.1, 0.9]), c=min_("age"), d=max_("age"), e=histogram("age")
        ),
    ),
    (
        (
            "SELECT VAR_POP(age) AS a, VAR_SAMP(age) AS b, STDDEV_POP(age) AS c, STDDEV_SAMP(age) AS d, "
            "COVAR_POP(age, income) AS e, COVAR_SAMP(age, income) AS f, CORR(age, income) AS g FROM people"
        ),
        lambda: people().agg(
            a=var_pop("age"),
            b=var_samp("age"),
            c=stddev_pop("age"),
            d=stddev_samp("age"),
            e=covar_pop("age", "income"),
            f=covar_samp("age", "income"),
            g=corr("age", "income"),
        ),
    ),
    (
        "SELECT SUM(CASE WHEN age < 18 THEN income ELSE 0 END) AS s FROM people",
        lambda: people().agg(s=sum_(when((col("age") < 18, col("income")), otherwise=0))),
    ),
    (
        (
            "SELECT COUNT(*) AS n FROM people WHERE (age BETWEEN 1 AND 2 OR region IN ('a', 'b')) "
            "AND job LIKE 'x%' AND born >= '2000-01-01' AND job IS NULL"
        ),
        lambda: (
            people()
            .where(
                col("age").between(1, 2) | col("region").is_in("a", "b"),
                col("job").like("x%"),
                col("born") >= "2000-01-01",
                col("job").is_null(),
            )
            .agg(n=count())
        ),
    ),
    (
        "SELECT SUM(-age + 2 * income - age % 3 + age ** 2 + abs(age) + job::DOUBLE + 1 / age) s FROM people",
        lambda: people().agg(
            s=sum_(
                -col("age")
                + 2 * col("income")
                - col("age") % 3
                + col("age") ** 2
                + abs(col("age"))
                + col("job").cast("real")
                + 1 / col("age")
            )
        ),
    ),
    (
        "SELECT zone, COUNT(*) AS n FROM people JOIN regions ON people.region = regions.region GROUP BY zone",
        lambda: (
            people()
            .join(regions(), col("people.region") == col("regions.region"))
            .group_by("zone")
            .agg(n=count())
        ),
    ),
    (
        "SELECT COUNT(*) AS n FROM people p LEFT JOIN visits v ON p.uid = v.pid AND v.cost > p.income",
        lambda: (
            people("p")
            .join(visits("v"), col("v.cost") > col("p.income"), unit=True, how="left")
            .agg(n=count())
        ),
    ),
    (
        "SELECT zone, COUNT(*) AS n FROM regions JOIN people ON people.region = regions.region GROUP BY zone",
        lambda: (
            regions()
            .join(people(), col("people.region") == col("regions.region"))
            .group_by("zone")
            .agg(n=count())
        ),
    ),
    (
        "SELECT COUNT(*) AS n FROM people p WHERE EXISTS (FROM visits v WHERE pid = p.uid AND cost > 3)",
        lambda: people("p").exists(visits("v").where(col("cost") > 3), unit=True).agg(n=count()),
    ),
    (
        (
            "SELECT COUNT(*) AS k FROM (SELECT pid, clinic, COUNT(*) AS n, MAX(cost) AS top FROM visits "
            "GROUP BY pid, clinic) AS t WHERE n > 2"
        ),
        lambda: (
            visits()
            .per_unit("clinic", alias="t", n=count(), top=max_("cost"))
            .where(col("n") > 2)
            .agg(k=count())
        ),
    ),
    (
        "SELECT SUM(x) AS s FROM (SELECT income * 2 AS x FROM people WHERE age > 3) AS t",
        lambda: people().where(col("age") > 3).select(alias="t", x=col("income") * 2).agg(s=sum_("x")),
    ),
    (
        "SELECT region, job, COUNT(*) AS n FROM people GROUP BY ROLLUP(region, job)",
        lambda: people().rollup("region", "job").agg(n=count()),
    ),
    (
        "SELECT region, job, COUNT(*) AS n FROM people GROUP BY CUBE(region, job)",
        lambda: people().cube("region", "job").agg(n=count()),
    ),
    (
        (
            "SELECT SUM(age, contribution_bounds_per_row => (0, 9)) AS a, "
            "COUNT(*, contribution_bounds_per_group => (0, 3)) AS b FROM people"
        ),
        lambda: people().agg(a=sum_("age").clamp_rows(0, 9), b=count().clamp_groups(0, 3)),
    ),
    (
        "SELECT COUNT(*) AS a, COUNT(*) AS b FROM sales",
        lambda: table("sales", CATALOG).agg(a=count(), b=count()),
    ),
    (
        "SELECT region FROM people GROUP BY region",
        lambda: people().group_by("region").agg(),
    ),
]


@pytest.mark.parametrize(("text", "build"), SAME, ids=[text[:60] for text, _ in SAME])
def test_python_builds_what_sql_builds(text: str, build: Callable[[], Request]) -> None:
    assert bare(build()) == bare(parse(text, CATALOG))


REFUSED: list[tuple[str, Callable[[], object]]] = [
    ("SF402", lambda: table("nope", CATALOG)),
    ("SF402", lambda: people().agg(n=sum_("wage"))),
    ("SF402", lambda: people("p").join(people("p"), unit=True).agg(n=count())),
    ("SF402", lambda: people().join(regions()).group_by("region").agg(n=count())),
    ("SF403", lambda: people().agg(n=sum_("job"))),
    ("SF403", lambda: people().where(col("job")).agg(n=count())),
    ("SF403", lambda: people().where(col("age") == "x").agg(n=count())),
    ("SF404", lambda: regions().agg(n=count())),
    ("SF404", lambda: people().agg()),
    ("SF404", lambda: visits().per_unit(n=count().clamp_groups(0, 1)).agg(n=count())),
    ("SF404", lambda: visits().per_unit(n=quantile("cost", [0.5])).agg(n=count())),
    ("SF404", lambda: visits().per_unit(n=count_units()).agg(n=count())),
    ("SF404", lambda: people().select(x=lit(None)).agg(n=count())),
    ("SF406", lambda: people().where(col("uid") == 3).agg(n=count())),
    ("SF406", lambda: people().group_by("uid").agg(n=count())),
    ("SF406", lambda: people().join(visits()).agg(n=count())),
    ("SF406", lambda: people().join(visits(), col("age") == col("cost")).agg(n=count())),
    ("SF406", lambda: people().join(regions(), unit=True).agg(n=count())),
    ("SF406", lambda: people().join(table("cars", CATALOG), unit=True).agg(n=count())),
    ("SF406", lambda: people().join(regions(), how="full").agg(n=count())),
    ("SF406", lambda: regions().join(people(), how="right").agg(n=count())),
    ("SF101", lambda: people().join(regions(), how="cross").agg(n=count())),
    ("SF406", lambda: regions().join(people(), how="left").agg(n=count())),
    ("SF406", lambda: table("sales", CATALOG).join(table("sales", CATALOG, alias="t")).agg(n=count())),
    ("SF406", lambda: table("sales", CATALOG).union_all(table("sales", CATALOG)).agg(n=count())),
    ("SF404", lambda: people().union_all(regions()).agg(n=count())),
    ("SF404", lambda: people().union_all(visits()).agg(n=count())),
    ("SF404", lambda: people().select("region").union_all(people("p").select("age")).agg(n=count())),
    ("SF404", lambda: people().grouping_sets(["age"], ["age"]).agg(n=count())),
    ("SF101", lambda: people().grouping_sets("age").agg(n=count())),
    ("SF406", lambda: people().exists(visits()).agg(n=count())),
    ("SF406", lambda: people().exists(regions(), unit=True).agg(n=count())),
    ("SF406", lambda: table("sales", CATALOG).per_unit(n=count()).agg(n=count())),
    ("SF101", lambda: call("getenv", "x")),
    ("SF101", lambda: lit([1])),
    ("SF101", lambda: quantile("age", 2)),
    ("SF101", lambda: quantile("age", [])),
    ("SF101", lambda: sum_("age").clamp_rows(2, 1)),
    ("SF101", lambda: count().clamp_rows(0, 1)),
    ("SF101", lambda: median("age").clamp_groups(0, 1)),
    ("SF101", lambda: people().group_by(col("age")).agg(n=count())),
    ("SF101", lambda: people().agg(n=3)),  # type: ignore[arg-type]
    ("SF101", lambda: bool(col("age") > 3)),
]


@pytest.mark.parametrize(("code", "build"), REFUSED, ids=[str(n) for n in range(len(REFUSED))])
def test_python_is_refused_what_sql_is_refused(code: str, build: Callable[[], object]) -> None:
    with pytest.raises(SfumatoError) as caught:
        build()
    assert caught.value.code == code
    assert isinstance(caught.value, (QueryRefused, InvalidArgument))
    assert caught.value.hints


def test_frames_are_values() -> None:
    everyone = people()
    old = everyone.where(col("age") > 60)
    assert bare(everyone.agg(n=count())) == bare(people().agg(n=count()))
    assert bare(old.agg(n=count())) == bare(people().where(col("age") > 60).agg(n=count()))
