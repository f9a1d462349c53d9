"""Lines of Spark's plans that make a private frame refused; no Spark is needed to read them."""

from __future__ import annotations

import pytest

from sfumato.backends.spark.private_frames import check_rows
from sfumato.errors import InvalidArgument

FILES = ("Relation", " [person#1L,cost#2] parquet")


@pytest.mark.parametrize(
    ("node", "after", "said"),
    [
        ("Project", " [person#1L, f.invoke(cost#2) AS x#3]", "a function of a catalog"),
        ("Project", " [person#1L, *********(redacted) AS x#3]", "does not show"),
        ("Project", " [person#1L, ... 7 more fields]", "does not show"),
        ("Project", " [person#1L, _tmp_metadata_row_index#9L]", "where a row lies"),
        ("Project", " [person#1L, __metadata#9.file_size AS s#10L]", "where a row lies"),
        ("Filter", " NOT exists#7 [person#1L]", "a subquery"),
        ("Filter", " (person#1L > variablereference(system.session.v=3))", "`variablereference"),
        ("Relation", " [person#1L] JDBCRelation(visits) [numPartitions=1]", "a table without files"),
        ("Relation", " [person#1L] JDBCRelation((SELECT 1) t -- ] parquet", "`JDBCRelation"),
        ("Relation", " [path#1, length#2L] binaryFile", "a table without files"),
        ("RelationV2", "[person#1L] parquet", "a table without files"),
        ("Join", " Inner", "a join"),
        ("Expand", " [[person#1L], [cost#2]]", "`Expand`"),
    ],
)
def test_lines_that_say_more_than_one_row_are_refused(node: str, after: str, said: str) -> None:
    check_rows("t", [("Project", " [person#1L, upper(region#2) AS x#3]"), FILES])
    with pytest.raises(InvalidArgument, match="rows of several people") as raised:
        check_rows("t", [("Project", " [person#1L]"), (node, after), FILES])
    assert said in raised.value.message
