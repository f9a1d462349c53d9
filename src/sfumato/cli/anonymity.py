"""The commands about k-anonymity: measure a table, generalise it. For its owner; none of it is a release."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any

from typer import Argument, Option

from sfumato.cli.options import Plain, PlainOption, command, group_of, names_of
from sfumato.cli.outputs import can_write, write
from sfumato.cli.screen import say, working
from sfumato.errors import InvalidArgument

__all__ = ["Method", "anonymity_app"]

anonymity_app = group_of("Measure and reach k-anonymity: for a table's owner, and no release.")


class Method(str, Enum):  # noqa: UP042 - typer shows the values of a str enum
    """How a goal is reached."""

    mondrian = "mondrian"
    recoding = "recoding"


_File = Annotated[str, Argument(help="The table: Parquet, CSV or a DuckDB file.")]
_Quasi = Annotated[
    str, Option("--quasi", "-q", help="What others may know of a person: columns, divided by commas.")
]
_Sensitive = Annotated[
    str, Option("--sensitive", "-s", help="What nobody should learn: columns, divided by commas.")
]
_Risk = Annotated[float, Option("--risk", help="The chance to be found above which a row counts as at risk.")]
_Html = Annotated[str | None, Option("--html", help="A page with the report and its pictures, in one file.")]


@command(anonymity_app, "measure")
def _measure(
    file: _File,
    quasi: _Quasi,
    sensitive: _Sensitive = "",
    risk: _Risk = 0.2,
    html: _Html = None,
    style: PlainOption = Plain.table,
) -> None:
    """Measure how well rows hide: k, uniqueness, risk, and with a sensitive column l and t."""
    from sfumato.anonymity import measure
    from sfumato.anonymity.report import measures_page

    can_write(html, {file: "the table"}, place="--html")
    with working("measuring"):
        found = measure(file, names_of(quasi), sensitive=names_of(sensitive), risk=risk)
    say(found.to_dict(), str(found), as_json=style is Plain.json)
    if html is not None:
        write(measures_page(found).html().encode(), html, paid=False, place="--html")


@command(anonymity_app, "reach")
def _reach(
    file: _File,
    quasi: _Quasi,
    output: Annotated[str, Option("--output", "-o", help="The generalised table: a .parquet or .csv file.")],
    k: Annotated[int, Option("--k", help="Rows that every class must have.")] = 5,
    l: Annotated[int | None, Option("--l", help="Distinct sensitive values in every class.")] = None,  # noqa: E741
    entropy_l: Annotated[
        float | None, Option("--entropy-l", help="Entropy of sensitive values in every class, as an l.")
    ] = None,
    t: Annotated[
        float | None, Option("--t", help="How far the values of a class may lie from the table's.")
    ] = None,
    sensitive: _Sensitive = "",
    keep: Annotated[
        str, Option("--keep", help="Further columns to keep as they are; all others are left out.")
    ] = "",
    method: Annotated[Method, Option("--method", "-m", help="How it is reached.")] = Method.mondrian,
    hierarchies: Annotated[
        str | None, Option("--hierarchies", help="A TOML file that says how values are generalised.")
    ] = None,
    suppress: Annotated[
        float, Option("--suppress", help="The share of rows that recoding may leave out.")
    ] = 0.0,
    risk: _Risk = 0.2,
    html: _Html = None,
    style: PlainOption = Plain.table,
) -> None:
    """Generalise a table until every class of rows has k, and l and t; write it, and say what it cost."""
    from sfumato.anonymity import Goal, reach
    from sfumato.anonymity.hierarchy_file import read_hierarchies
    from sfumato.anonymity.report import generalised_page

    goal = Goal(k=k, l=l, entropy_l=entropy_l, t=t)
    if not output.lower().endswith((".parquet", ".csv")):
        raise InvalidArgument(
            "the generalised table is a .parquet or .csv file", place="--output", hints=("-o table.parquet",)
        )
    can_write(output, {file: "the table"})
    can_write(html, {file: "the table"}, place="--html")
    with working("generalising"):
        found = reach(
            file,
            names_of(quasi),
            goal,
            sensitive=names_of(sensitive),
            keep=names_of(keep),
            method=method.value,
            hierarchies=None if hierarchies is None else read_hierarchies(hierarchies),
            suppress=suppress,
            risk=risk,
        )
        write(_bytes(found.table, output), output, paid=False)
    say(found.to_dict(), str(found), as_json=style is Plain.json)
    if html is not None:
        write(generalised_page(found).html().encode(), html, paid=False, place="--html")


def _bytes(table: Any, path: str) -> bytes:
    import pyarrow as pa
    from pyarrow import csv, parquet

    sink = pa.BufferOutputStream()
    if path.lower().endswith(".csv"):
        csv.write_csv(_without_formulas(table), sink)
    else:
        parquet.write_table(table, sink)
    return bytes(sink.getvalue())


def _without_formulas(table: Any) -> Any:
    """Return a table in which texts that a spreadsheet would run as a formula have a quote before them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for place, field in enumerate(table.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            column = table.column(place)
            live = pc.match_substring_regex(column, r"^[=+\-@\t\r]")
            quoted = pc.binary_join_element_wise("'", column, "")
            table = table.set_column(place, field, pc.if_else(live, quoted, column))
    return table
