"""`sfumato hierarchy`: counts of all levels of a hierarchy, from the total down, that add up."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from sfumato.cli.options import (
    AnalystOption,
    AnswerOptions,
    EpsilonOption,
    NonNegativeOption,
    ProjectOption,
    PurposeOption,
    SharesOption,
    names_of,
)
from sfumato.cli.query import one_price, with_price
from sfumato.cli.question_flags import shares_of
from sfumato.cli.spending import answer, opened

__all__ = ["hierarchy"]


def hierarchy(
    *,
    levels: Annotated[str, Argument(help="The levels, the coarsest first: state,county,block.")],
    places: Annotated[
        str | None, Option("--places", help="The public table that has a column for each level.")
    ] = None,
    cells: Annotated[
        str | None, Option("--cells", help="A column: one count for each of its values, in each group.")
    ] = None,
    table: Annotated[str | None, Option("--table", help="The private table, if there are several.")] = None,
    level_shares: SharesOption = "",
    non_negative: NonNegativeOption = False,
    epsilon: EpsilonOption = None,
    error: Annotated[
        float | None, Option("--error", help="Instead of epsilon: the 95% error of every level.")
    ] = None,
    analyst: AnalystOption = None,
    purpose: PurposeOption = None,
    project: ProjectOption = "sfumato.toml",
    options: AnswerOptions,
) -> None:
    """Ask how many rows each group of each level has, and spend: groups are the sums of their parts."""
    one_price(epsilon, error)
    _, database = opened(project, analyst, options, free=options.dry_run)
    question = database.hierarchy(
        names_of(levels),
        places=places,
        cells=cells,
        table=table,
        epsilon=epsilon,
        level_shares=shares_of(level_shares),
        non_negative=non_negative or None,
        purpose=purpose,
    )
    answer(with_price(question, error), options)
