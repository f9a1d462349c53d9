"""Hierarchies: nation, state, county, block, as an ordinary request: a ROLLUP whose answers add up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sfumato.catalog.catalog import Catalog
from sfumato.errors import InvalidArgument
from sfumato.plan.builder import table as rows_of
from sfumato.plan.estimates import private_table
from sfumato.plan.options import Options
from sfumato.plan.request import Request
from sfumato.plan.summaries import count, histogram
from sfumato.plan.values import col

__all__ = ["hierarchy_request"]


def hierarchy_request(
    catalog: Catalog,
    levels: Sequence[str],
    *,
    cells: str | None = None,
    places: str | None = None,
    table: str | None = None,
    shares: Sequence[object] = (),
) -> Request:
    """Ask how many rows are in each group of each level, the coarsest first; with `cells`, in each cell.

    `places` is a public table that says which groups there are: it has a column for each level, and rows are
    matched by the last one. Without it, levels are columns of the private table, whose lists say so.
    """
    if isinstance(levels, str) or not levels or not all(isinstance(one, str) for one in levels):
        hint = "db.hierarchy(['state', 'county', 'block'])"
        raise InvalidArgument("a hierarchy has levels, the coarsest first", place="levels", hints=(hint,))
    if len(set(levels)) != len(levels):
        raise InvalidArgument("a level is named twice", place="levels")
    *_, finest = levels
    own = (finest,) if places is not None else tuple(levels)
    found = private_table(catalog, table, f"hierarchy({', '.join(levels)})", columns=own)
    rows = rows_of(found.name, catalog, lambda request: request)
    home = found.name
    if places is not None:
        public = catalog.table(places)
        if public is None or public.private:
            hint = "a table of all places is no secret: connect with public={'blocks': ..}"
            raise InvalidArgument(f"there is no public table `{places}`", place="places", hints=(hint,))
        home = public.name
        listed = rows_of(home, catalog, lambda request: request)
        rows = rows.join(listed, on=col(f"{found.name}.{finest}") == col(f"{home}.{finest}"))
    named = {level: col(f"{home}.{level}") for level in levels}
    counted = count() if cells is None else histogram(f"{found.name}.{cells}")
    request = rows.rollup(**named).agg(n=counted)
    return replace(request, options=Options(consistent=True, level_shares=tuple(shares)))  # type: ignore[arg-type]
