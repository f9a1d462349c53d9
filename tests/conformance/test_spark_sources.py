"""Generated files and frames of every type, as Spark reads them, with a person of extreme values and without.

They are those of DuckDB's openings. Whatever the types and the differences between files: every question has
the same status, the same charge and the same shape with the person and without. Questions reach the block of
rows that has the person, or do not. One thing may differ: a table with a value that Spark cannot read is not
opened. Which types have such values is written down here.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sfumato.catalog import Table
from tests.backends.specimens import SPECIMENS, Case, Specimen, generated
from tests.backends.test_generated_sources import functions, outcome
from tests.conformance.spark_session import Spark

FORMS = ("parquet", "parquets", "arrow")
_UNREADABLE = ("timestamp[s", "timestamp[ms", "date64")
"""Types that have values beyond the range of the microseconds that Spark reads them as."""
_REACHED = (" WHERE ordinary", " WHERE NOT ordinary")
_REFUSED_BY_SPARK = ("LN({})",)
_CASES = 4
_CANNOT = "cannot be read"


def asked(table: Table) -> list[str]:
    """Return questions about all columns that compute every function of Spark, of some rows or of all."""
    columns = [field for field in table.fields if field.name not in ("id", "ordinary")]
    computed = []
    for field in columns:
        forms = [form for form in functions(field.kind) if form not in _REFUSED_BY_SPARK]
        if field.kind.binary:
            forms = [form for form in forms if "AS TEXT" not in form]
        filled = (form.format(field.name, field.name) for form in forms)
        told = " + ".join(f"CASE WHEN {one} IS NULL THEN 0 ELSE 1 END" for one in filled)
        computed.append(f"SUM(LEAST(GREATEST({told}, 0), 99))")
    listed = ", ".join(["COUNT(*)", *computed])
    questions = [f"SELECT {listed} FROM t{where}" for where in ("", *_REACHED)]
    if len(columns) > 4:
        name = columns[0].name
        questions.append(f"SELECT {name}, COUNT(DISTINCT {name}) FROM t GROUP BY {name}")
    return questions


def _frame(session: Any, source: Any) -> Any:
    """Return a source as a frame: paths are read, and rows are held in memory."""
    if isinstance(source, pa.Table):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return session.createDataFrame(source)
    return session.read.parquet(*map(str, source if isinstance(source, list) else [source]))


def _is_read(session: Any, one: Specimen, form: str, folder: Path) -> bool:
    """Return whether Spark takes a type at all, by its schema; rows in memory are converted by pyspark."""
    try:
        source = generated(0, folder, forms=(form,), specimens=(one,)).absent
        if form == "arrow":
            source = pa.table({"x": one.make([*one.ordinary, *one.extremes])})
        return bool(_frame(session, source).schema)
    except Exception:
        return False


def compare(session: Any, case: Case) -> list[Any]:
    """Return what can be seen without the extreme person; with the person it is the same, or no opening."""
    frames = (_frame(session, source) for source in (case.there, case.absent))
    there, absent = (outcome(frame, case, asked) for frame in frames)
    if len(there) == 1 and _CANNOT in there[0] and len(absent) > 1:
        assert any(of_type in case.label for of_type in _UNREADABLE), f"{case.label}: {there}"
        return absent
    assert len(there) == len(absent), f"{case.label}: {there[0]}, {absent[0]}"
    for one, other in zip(there, absent, strict=True):
        assert one == other, case.label
    assert len(there) == 1 or any(isinstance(status, tuple) for _, status, _ in there[1:]), there
    return there


def test_neighbours_cannot_be_told_apart_on_spark(spark: Spark, tmp_path: Path) -> None:
    """Values far off, in a row group of their own, and two files of which one has another type."""
    names = ("date32", "timestamp[us, tz=UTC]")
    chosen = tuple(one for one in SPECIMENS if one.name in names)
    _, *answered = compare(spark.session, generated(1, tmp_path, forms=("parquet",), specimens=chosen))
    assert len(answered) == 3 and all(isinstance(status, tuple) for _, status, _ in answered)
    [refused] = compare(spark.session, generated(0, tmp_path, forms=("parquets",), specimens=chosen[:1]))
    assert "differ: file 2" in refused


@pytest.mark.soak
@pytest.mark.parametrize("form", FORMS)
def test_more_neighbours_cannot_be_told_apart_on_spark(
    spark: Spark, form: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    session = spark.session
    taken = [one for one in SPECIMENS if _is_read(session, one, form, tmp_path_factory.mktemp("one"))]
    assert len(taken) > len(SPECIMENS) // 3
    for seed in range(_CASES):
        compare(session, generated(seed, tmp_path_factory.mktemp("case"), forms=(form,), specimens=taken))
