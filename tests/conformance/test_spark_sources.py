"""Generated files and frames of every type, as Spark reads them, with a person of extreme values and without.

They are those of DuckDB's openings. Whatever the types and the differences between files: every question has
the same status, the same charge and the same shape with the person and without. Questions reach the block of
rows that has the person, or do not. One thing may differ: a table with a value that Spark cannot read is not
opened. Which types have such values is written down here, and which types Spark does not take at all. All
others are dealt over the cases.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from sfumato.catalog import Table
from tests.backends.specimens import (
    DRIFTS,
    REFUSED_DRIFTS,
    SPECIMENS,
    Case,
    Hand,
    Specimen,
    dealt,
    generated,
    near,
)
from tests.backends.test_generated_sources import functions, outcome
from tests.conformance.spark_session import Spark
from tests.soaked import later

FORMS = ("parquet", "parquets", "arrow")
_UNREADABLE = ("timestamp[s", "timestamp[ms")
"""Types of Parquet that have values beyond the range of the microseconds that Spark reads them as."""
_NOT_TAKEN = {
    "parquet": ("float16", "decimal256(60", "timestamp[ns", "time32", "time64", "uuid"),
    "arrow": (
        *("uint", "float16", "decimal256(60", "string_view", "runs", "date64", "time32", "binary_view"),
        *("uuid", "interval"),
    ),
}
_NOT_WRITTEN = ("runs", "interval")
"""Types that no Parquet file has."""
_REACHED = (" WHERE ordinary", " WHERE NOT ordinary")
_REFUSED_BY_SPARK = ("LN({})",)
_HANDS = 4
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


def _taken(form: str, one: Specimen) -> bool:
    """Return whether Spark takes a type in a form, as it is written down above."""
    in_files = form.startswith("parquet")
    refused = _NOT_TAKEN["parquet"] + _NOT_WRITTEN if in_files else _NOT_TAKEN[form]
    return not one.name.startswith(refused)


def _hands(form: str) -> list[Hand]:
    """Return all types that Spark takes, dealt over cases; each of their values can be read."""
    return dealt(form, [near(one) for one in SPECIMENS if _taken(form, one)], _HANDS)


def _far_hands() -> list[Hand]:
    """Return a case for each type that has values that cannot be read, with one such value."""
    chosen = [one for one in SPECIMENS if one.name.startswith(_UNREADABLE)]
    far = [replace(one, extremes=(2**62 if "[ms" in one.name else 253402300800000,)) for one in chosen]
    return [Hand("parquet", place, (one,), "none") for place, one in enumerate(far)]


def _columns(source: Any) -> list[str]:
    """Return the columns of each file of a source, or of a table in memory."""
    if isinstance(source, pa.Table):
        return [*source.column_names]
    files = source if isinstance(source, list) else [source]
    return [name for file in files for name in parquet.read_schema(file).names]


def _is_read(session: Any, one: Specimen, form: str, folder: Path) -> bool:
    """Return whether Spark takes a type at all, by its schema; rows in memory are converted by pyspark."""
    try:
        return bool(_frame(session, Hand(form, 0, (near(one),), "none").case(folder).there).schema)
    except Exception:
        return False


def compare(session: Any, case: Case, asked: Callable[[Table], list[str]] = asked) -> tuple[list[Any], bool]:
    """Return what can be seen without the extreme person, and whether it is the same with the person."""
    frames = (_frame(session, source) for source in (case.there, case.absent))
    there, absent = (outcome(frame, case, asked) for frame in frames)
    if _CANNOT in there[0] and _CANNOT not in absent[0]:
        return absent, False
    assert len(there) == len(absent), f"{case.label}: {there[0]}, {absent[0]}"
    for one, other in zip(there, absent, strict=True):
        assert one == other, case.label
    return absent, True


@pytest.mark.parametrize("form", FORMS)
def test_every_specimen_and_every_drift_is_dealt(form: str, tmp_path: Path) -> None:
    """No type of the list is left out, and none is lost as files are written."""
    hands = _hands(form)
    opened = [one.name for hand in hands if hand.drift not in REFUSED_DRIFTS for one in hand.specimens]
    assert sorted(opened) == sorted(one.name for one in SPECIMENS if _taken(form, one))
    assert {hand.drift for hand in hands} == ({"none"} if form != "parquets" else {*DRIFTS} - {"header"})
    (tmp_path / "far").mkdir()
    written = [(hand, tmp_path) for hand in hands] + [(hand, tmp_path / "far") for hand in _far_hands()]
    for hand, folder in written:
        case = hand.case(folder)
        expected = {"id", "ordinary", *(f"x{place}" for place in range(len(hand.specimens)))}
        for source in (case.there, case.absent):
            assert {name.lower() for name in _columns(source)} == expected, case.label
    lost = {one.name for one in SPECIMENS if one.name.startswith(_UNREADABLE)}
    assert lost == {one.name for hand in _far_hands() for one in hand.specimens}


@pytest.mark.soak
def test_neighbours_cannot_be_told_apart_on_spark(spark: Spark, tmp_path: Path) -> None:
    """Values far off, in a row group of their own, and two files of which one has another type."""
    names = ("date32", "timestamp[us, tz=UTC]")
    chosen = tuple(one for one in SPECIMENS if one.name in names)
    (_, *answered), same = compare(
        spark.session, generated(1, tmp_path, forms=("parquet",), specimens=chosen)
    )
    assert same and len(answered) == 3 and all(isinstance(status, tuple) for _, status, _ in answered)
    [refused], _ = compare(spark.session, generated(0, tmp_path, forms=("parquets",), specimens=chosen[:1]))
    assert "differ: file 2" in refused


@pytest.mark.parametrize(
    "form", [pytest.param(form, marks=later(place, 3)) for place, form in enumerate(FORMS)]
)
def test_neighbours_of_every_type_cannot_be_told_apart_on_spark(
    spark: Spark, form: str, tmp_path: Path
) -> None:
    """All questions are answered, but about files that differ."""
    for hand in _hands(form):
        (seen, *answered), same = compare(spark.session, hand.case(tmp_path))
        assert same, hand
        if hand.drift in REFUSED_DRIFTS:
            assert "differ: file 2" in seen and not answered, hand
        else:
            assert answered and all(isinstance(status, tuple) for _, status, _ in answered), hand


@pytest.mark.soak
@pytest.mark.parametrize("form", _NOT_TAKEN)
def test_spark_takes_no_type_that_is_not_dealt(
    spark: Spark, form: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Nor does it read all values of the types that have a case of their own."""
    left = [one for one in SPECIMENS if one.name.startswith(_NOT_TAKEN[form])]
    taken = [one.name for one in left if _is_read(spark.session, one, form, tmp_path_factory.mktemp("one"))]
    assert left and not taken
    for hand in _far_hands() if form == "parquet" else ():
        seen, same = compare(spark.session, hand.case(tmp_path_factory.mktemp("far")), lambda table: [])
        assert seen and not same, hand
