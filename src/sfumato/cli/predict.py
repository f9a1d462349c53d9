"""`sfumato predict`: what a saved model says about public rows. Free."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from sfumato.cli.options import ProjectOption
from sfumato.cli.outputs import can_write, check_apart, kept, write
from sfumato.errors import InvalidArgument, ProjectRefused

__all__ = ["predict"]


def predict(
    *,
    model: Annotated[str, Argument(help="The file of a model that `sfumato train` wrote.")],
    data: Annotated[str, Argument(help="Public rows: a CSV or Parquet file with the columns of the model.")],
    output: Annotated[
        str | None,
        Option("--output", "-o", help="A CSV file, instead of standard output."),
    ] = None,
    project: ProjectOption = "sfumato.toml",
) -> None:
    """Predict about public rows with a saved model: a CSV file of a prediction for each. Spends nothing."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    from sfumato.learn import SelectedModel
    from sfumato.learn.fitted_model import FittedModel, LabelledModel
    from sfumato.learn.stored import read_stored

    can_write(output, {model: "the model", data: "the public rows"})
    check_apart(data, _private_files(project), "data")
    wrong = f"the model cannot be read: {model}"
    try:
        text = Path(model).read_text(encoding="utf-8")
        wrong = f"the rows cannot be read: {data}"
        rows = parquet.read_table(data) if data.lower().endswith(".parquet") else csv.read_csv(data)
    except (OSError, UnicodeDecodeError, pa.ArrowInvalid):
        raise InvalidArgument(wrong, place="predict", hints=("predict model.json rows.csv",)) from None
    found = read_stored(text)
    found = found.model if isinstance(found, SelectedModel) else found
    if not isinstance(found, FittedModel):
        raise InvalidArgument("this is not a model", place="model", hints=("`sfumato train` writes one",))
    name = found.label.name if isinstance(found, LabelledModel) else "cluster"
    table = pa.table({name: found.predict(rows).tolist()})
    sink = pa.BufferOutputStream()
    csv.write_csv(table, sink)
    write(bytes(sink.getvalue()), output, paid=False)


def _private_files(project: str) -> dict[str, str]:
    """Return the files of the project's private tables, if there is a project: no row of them is public."""
    from sfumato.catalog import read_project

    try:
        declared = read_project(project)
    except ProjectRefused:
        return {}
    private = tuple(table for table in declared.tables if table.declaration.unit is not None)
    return kept(replace(declared, tables=private))
