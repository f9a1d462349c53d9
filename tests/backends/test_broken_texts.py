"""Texts of Parquet files that are not UTF-8: no question fails at them, and nobody else's rows change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

import sfumato as sf
from sfumato.errors import InvalidArgument
from tests.soaked import rest_soaked

FINE = [b"bz", b"c", b"??", b"q", b"r", b"", None, "ä".encode(), b"A"]
BROKEN = [b"\xff\xfe", b"b\xff", b"\xed\xa0\x80", b"x" * 30 + b"\xc3"]


def texts(values: list[bytes | None]) -> Any:
    return pyarrow.Array.from_buffers(
        pyarrow.string(), len(values), pyarrow.array(values, pyarrow.binary()).buffers()
    )


def written(path: Path, words: list[bytes | None], **options: Any) -> sf.Database:
    """Return people with a word each, in row groups of two of which the file says much."""
    size = len(words)
    table = pyarrow.table(
        {
            "person": list(range(size)),
            "word": texts(words),
            "fine": ["a", "b"] * (size // 2) + ["a"] * (size % 2),
        }
    )
    parquet.write_table(table, path, row_group_size=2, bloom_filter_options={"word": True}, **options)
    return sf.connect(
        path,
        name="people",
        unit="person",
        max_groups=1,
        max_rows=1,
        columns={"word": sf.one_of("??", "b?", "bz", "A")},
        budget=sf.Budget(epsilon=10**9),
    )


CONDITIONS = (
    "word = '??'", "word IN ('??', 'b?', 'q')", "word < 'bz'", "word >= 'bz'", "word LIKE '%?'",
    "word IS NULL", "word <> 'A'", "STARTS_WITH(word, '?')", "LENGTH(word) > 2",
)  # fmt: skip


def counts(database: sf.Database) -> list[int]:
    """Return exact answers, as good as: an epsilon of a million leaves no noise."""
    listed = ", ".join(f"COUNT(*) FILTER (WHERE {test})" for test in CONDITIONS)
    found = [int(one) for one in database.sql(f"SELECT {listed} FROM people", epsilon=1e6).release().rows[0]]
    for test in CONDITIONS:  # by themselves: then the engine may ask the file which rows it need not read
        found.append(
            database.sql(f"SELECT COUNT(*) AS n FROM people WHERE {test}", epsilon=1e6).release().rows[0][0]
        )
    found += (
        database.sql("SELECT word, COUNT(*) AS n FROM people GROUP BY word", epsilon=1e6)
        .release()
        .column("n")
    )
    return found


def as_read(word: bytes | None) -> bytes | None:
    """Return a text in which each byte that is not UTF-8 is a question mark."""
    return (
        None
        if word is None
        else word.decode("utf-8", "surrogateescape")
        .translate(dict.fromkeys(range(56448, 56576), "?"))
        .encode()
    )


@pytest.mark.parametrize("dictionary", rest_soaked([False, True], 2))
def test_they_count_as_question_marks_and_nobody_else_does(tmp_path: Path, dictionary: bool) -> None:
    """Wherever the broken texts stand, and whatever the file says of the rows beside them."""
    mixed = [one for pair in zip(FINE[:8], BROKEN * 2, strict=True) for one in pair]
    for place, order in enumerate((FINE + BROKEN, BROKEN + FINE, [*mixed, b"A"])):
        broken = written(tmp_path / f"{place}.parquet", order, use_dictionary=dictionary)
        clean = written(
            tmp_path / f"{place}c.parquet", [as_read(one) for one in order], use_dictionary=dictionary
        )
        assert counts(broken) == counts(clean)
        assert len(broken.ledger.history()) == len(clean.ledger.history()) == len(CONDITIONS) + 2


def test_a_broken_text_is_found_where_the_file_does_not_tell_of_it(tmp_path: Path) -> None:
    """Smallest and largest text of these rows are fine."""
    database = written(tmp_path / "people.parquet", [b"bz", b"b\xff", b"c", b"d"])
    assert database.sql("SELECT COUNT(*) AS n FROM people WHERE word = 'b?'", epsilon=1e6).release().rows == (
        (1,),
    )


def test_names_of_people_are_looked_through_when_a_table_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    parquet.write_table(pyarrow.table({"name": texts([b"J\xf6rg", b"J\xfcrg"]), "x": [1, 2]}), path)
    budget = sf.Budget(epsilon=1)
    with pytest.raises(InvalidArgument, match="names people by it") as refusal:
        sf.connect(path, name="t", unit="name", budget=budget)
    assert "xf6" not in repr(refusal.value) and refusal.value.__context__ is None
    people = pyarrow.table({"id": ["a"], "who": [1]})
    with pytest.raises(InvalidArgument, match="names people by it"):
        sf.connect(
            {"t": path, "people": people},
            unit={"t": "name -> people.id -> who", "people": "who"},
            budget=budget,
        )


def test_texts_of_public_files_are_read_likewise(tmp_path: Path) -> None:
    path = tmp_path / "words.parquet"
    parquet.write_table(pyarrow.table({"n": [1, 2], "word": texts([b"fine", b"\xff\xfe"])}), path)
    people = pyarrow.table({"person": [1, 2], "n": [1, 2]})
    database = sf.connect(
        people, name="people", unit="person", public={"words": path}, max_groups=1, max_rows=1,
        budget=sf.Budget(epsilon=10**9),
    )  # fmt: skip
    text = "SELECT word, COUNT(*) AS n FROM people JOIN words USING (n) GROUP BY word"
    assert database.sql(text, epsilon=1e6).release().column("word") == ["??", "fine"]


def test_people_whose_names_are_rounded_are_refused(tmp_path: Path) -> None:
    """Ten moments of one microsecond would be one person, and each of them changes what counts of others."""
    path, budget = tmp_path / "people.parquet", sf.Budget(epsilon=1)
    moments = pyarrow.array(range(10), pyarrow.timestamp("ns"))
    table = pyarrow.table({"name": moments, "at": moments.cast(pyarrow.timestamp("us"), safe=False)})
    parquet.write_table(table, path)
    days = pyarrow.table({"name": pyarrow.array(range(10), pyarrow.date64())})
    for given in (table, table.to_pandas(), path, days):
        with pytest.raises(InvalidArgument, match="less precision"):
            sf.connect(given, name="t", unit="name", budget=budget)
    sf.connect(table, name="t", unit="at", budget=budget)
