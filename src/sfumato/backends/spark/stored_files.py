"""Files of Spark's frames: their schemas are compared, and all values are read, when a frame is opened.

Spark takes the columns of a frame from one file, from a catalog or from its user, and converts what other
files hold as it reads. Some values cannot be converted, or cannot be read at all: milliseconds beyond the
range of microseconds, decimals with more digits than their type, files in a codec that is not installed,
damaged pages. A question that met such a value would fail after its charge. One that did not would be
answered. Spark passes over columns, row groups and partitions that a question does not need, so that this
one bit would answer any condition about the person of that value, at nearly no cost.

Theorem: once a table is open, no stored value decides whether a question fails.
Assumes: files are what they were at opening (`SparkTables` looks before each charge and after each reading);
a reader decodes a column of a row group in the same way each time. Readers of a classic frame have the
settings of the session in which it was made, which stay as they were.
Proof: opening reads all columns that can be asked about, without a condition, so that no row group is left
out. Each value enters a hash, so that no column is pruned and no value stays undecoded. What fails on a
value fails then: the table is not opened, whatever anybody asks. A question decodes a part of what was
decoded at opening. Where a frame computes, a question may need rows that the frame leaves out: a reader of
ours reads all files of such a frame, too. A reader that is told to pass over errors (`ignoreCorruptFiles`,
an option that no plan shows) returns fewer rows than are read without any column, and is refused.

A frame may have conditions, and Spark passes over row groups by those. Statistics leave out NaN, and
dictionaries tell -0.0 from 0.0: it would depend on other people's rows whether a row is one of the frame's.
So conditions of frames on binary numbers are refused where they reach a reader. Of questions none does.
"""

from __future__ import annotations

import itertools
import re
import secrets
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from typing import Any

from sfumato.backends.files import refuse_drift, refuse_repeated
from sfumato.backends.spark.dialect import SPARK
from sfumato.backends.spark.frames import FILE, FramePlan, contents
from sfumato.errors import InvalidArgument

__all__ = ["StoredFiles", "compare_schemas", "read_whole"]

_RELATIONS = ("Relation", "HiveTableRelation")
_WITH_SCHEMAS = ("parquet", "orc", "avro")
_FORMAT = re.compile(r"(?:^RelationV2(\w+) |(?:^Relation|\s)(\w+)$)")
_LETTERS = re.compile(r"(?:var)?char\(\d+\)")
_UNHASHED = re.compile(r"\b(?:map|variant|void|interval)\b")
_BINARY = re.compile(r"([^<>,:]+):(?:float|double)\b")
_PUSHED = re.compile(r"PushedFilters: (.*?)ReadSchema: ([^\n]*)", re.DOTALL)
_WHETHER_NULL = re.compile(r"Is(?:Not)?Null\([^(),]*\)")
_PLACES = re.compile(r"Location: \w+\((\d+) paths\)\[(.*?)\], PartitionFilters: ", re.DOTALL)
_THREADS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFiles:
    """Files of one format that have the same columns and types."""

    of_format: str
    paths: tuple[str, ...]
    columns: dict[str, str]


def compare_schemas(
    session: Any, name: str, view: str, plan: FramePlan, paths: tuple[str, ...]
) -> tuple[StoredFiles, ...]:
    """Return the files of a frame; refuse those whose columns or types differ, from each other or the frame.

    Spark itself reads the schema of each file. Files of one relation are compared with each other. Of several
    relations the files of each folder are.
    """
    _refuse_repeated(session, name, view, paths)
    formats = {_format(leaf) for leaf in plan.leaves if leaf.startswith(_RELATIONS)}
    known = [(place, path, found) for place, path in enumerate(paths) if (found := _of_path(path, formats))]

    def columns(path: str, of_format: str) -> dict[str, str]:
        reader = session.read.format(of_format).option("__globPaths__", "false")
        return _columns(name, reader.load(path).schema)

    with ThreadPoolExecutor(_THREADS) as threads:
        jobs = [threads.submit(copy_context().run, columns, path, found) for _, path, found in known]
        schemas = [job.result() for job in jobs]  # each has the context of this thread: `quiet` is in it
    groups: dict[tuple[str, str], StoredFiles] = {}
    for (place, path, of_format), own in zip(known, schemas, strict=True):
        key = (of_format, "" if len(plan.leaves) == 1 else _folder(path))
        first = groups.get(key) or StoredFiles(of_format=of_format, paths=(), columns=own)
        refuse_drift(name, place, first.columns, own)
        groups[key] = replace(first, paths=(*first.paths, path))
    if not plan.plain:
        _refuse_pushed(session, name, view)
    elif groups:
        _compare_declared(session, name, view, next(iter(groups.values())))
    return tuple(groups.values())


def _refuse_repeated(session: Any, name: str, view: str, paths: Sequence[str]) -> None:
    """Refuse a frame that reads a file twice: each of its rows would be two.

    Spark lists a file once, and reads it as often as a path or folder that it was given has it.
    """
    refuse_repeated(name, [path.removeprefix("file:") for path in paths if path.startswith("file:")])
    [(text,)] = session.sql(f"EXPLAIN SELECT * FROM {view}").collect()
    for count, listed in _PLACES.findall(text):
        places = sorted(f"{one}/" for one in listed.split(", "))  # what lies in a folder comes behind it
        within = any(later.startswith(one) for one, later in itertools.pairwise(places))
        if int(count) != len(places) or within:
            raise _repeated(name)


def _repeated(name: str) -> InvalidArgument:
    return InvalidArgument(
        f"the frame of table `{name}` may read a file twice, so that its rows would count twice",
        place=name,
        hints=(
            "give its reader each file or folder once, no file of such a folder, and no comma",
            "give each partition of a table a folder of its own",
        ),
    )


def _compare_declared(session: Any, name: str, view: str, stored: StoredFiles) -> None:
    """Refuse a frame that declares another type than its files have; folders and defaults add columns."""
    own = {column.lower(): of_type for column, of_type in stored.columns.items()}
    for column, of_type in _columns(name, session.table(view).schema).items():
        if (found := own.get(column.lower(), of_type)) != of_type:
            raise InvalidArgument(
                f"the files of table `{name}` have `{column}` as {found}, and the frame as {of_type}",
                place=f"{name}.{column}",
                hints=(
                    "let Spark take the schema from the files: spark.read.parquet(..)",
                    "or write the frame as a table and give that: frame.write.saveAsTable(..)",
                ),
            )


def _refuse_pushed(session: Any, name: str, view: str) -> None:
    """Refuse a frame with a condition on a binary number that reaches a reader of files."""
    [(text,)] = session.sql(f"EXPLAIN SELECT * FROM {view}").collect()
    found = _PUSHED.findall(text.replace("`", ""))
    conditions = _WHETHER_NULL.sub("", " ".join(pushed for pushed, _ in found))
    for column in _BINARY.findall(" ".join(schema for _, schema in found)):
        if re.search(rf"(?<!\w){re.escape(column)}(?!\w)", conditions):
            raise InvalidArgument(
                f"the frame of table `{name}` has a condition on the binary number `{column}`",
                place=name,
                hints=(
                    "files say nothing of NaN: whether a row counts would depend on other rows",
                    "ask with the condition, or compare a computed value: frame.where('x + 0 > 5')",
                ),
            )


def read_whole(
    session: Any,
    name: str,
    view: str,
    selected: str,
    columns: Sequence[str],
    plan: FramePlan,
    stored: Sequence[StoredFiles],
) -> str:
    """Read all rows of a frame; return a hash of them if nothing else tells them from other rows.

    Rows that are computed are read twice. Their files are read by a reader of ours, too: rows that the frame
    leaves out may be reached by a question, and a reader with the options of the frame may hide errors.
    """
    if plan.plain:
        listed = ", ".join(map(SPARK.quoted, columns))
        reading = f"SELECT count(*), bit_xor(xxhash64({listed})) FROM {selected}"
        (rows, _), (counted,) = (
            session.sql(text).first() for text in (reading, f"SELECT count(*) FROM {view}")
        )
        if stored and rows != counted:
            raise InvalidArgument(
                f"the frame of table `{name}` passes over errors in its files",
                place=name,
                hints=("read the files without the option ignoreCorruptFiles",),
            )
        if stored and rows > sum(_reader(session, one).count() for one in stored):
            raise _repeated(name)
        return ""
    for one in stored:
        _read_files(session, one)
    first, again = (contents(session, selected, columns) for _ in range(2))
    if first != again:
        raise InvalidArgument(
            f"the frame of table `{name}` has other rows each time it is read",
            place=name,
            hints=("write it as a table and give that: frame.write.saveAsTable(..)",),
        )
    return first


def _read_files(session: Any, stored: StoredFiles) -> None:
    """Read all columns of files, by a reader whose options are Spark's own."""
    view = f"__sf_files_{secrets.token_hex(8)}"
    _reader(session, stored).createOrReplaceTempView(view)
    contents(session, view, [one for one, of_type in stored.columns.items() if not _UNHASHED.search(of_type)])
    session.catalog.dropTempView(view)


def _reader(session: Any, stored: StoredFiles) -> Any:
    """Return a frame of files, by a reader whose options are Spark's own."""
    reader = session.read.format(stored.of_format).option("__globPaths__", "false")
    return reader.load(list(stored.paths))


def _format(leaf: str) -> str | None:
    """Return the format of a relation of files, as the plan names it.

    >>> _format("Relationparquet"), _format("Relationspark_catalog.default.t orc"), _format("Range (0, 9)")
    ('parquet', 'orc', None)
    """
    found = _FORMAT.search(leaf)
    return (found[1] or found[2]).lower() if found else None


def _of_path(path: str, formats: Collection[str | None]) -> str | None:
    """Return the format of a file that says its schema; None: it has none, or its name does not tell.

    >>> _of_path("/t/part-0", {"orc"}), _of_path("/t/part-0.snappy.parquet", {"orc", "parquet", "csv"})
    ('orc', 'parquet')
    """
    if len(formats) > 1:
        endings = path.rpartition("/")[2].lower().split(".")
        formats = [one for one in formats if one in endings]
    return next((one for one in formats if one in _WITH_SCHEMAS), None)


def _folder(path: str) -> str:
    """Return the folder of a table, above folders that say a column's value.

    >>> _folder("/data/t/day=1/part-0.orc")
    '/data/t'
    """
    above = path.split("/")[:-1]
    while above and "=" in above[-1]:
        above.pop()
    return "/".join(above)


def _columns(name: str, schema: Any) -> dict[str, str]:
    """Return the types of columns as texts; texts of limited length are stored as texts."""
    columns = {one.name: _LETTERS.sub("string", one.dataType.simpleString()) for one in schema.fields}
    columns.pop(FILE, None)
    if len({column.lower() for column in columns}) != len(schema.fields) - (FILE in schema.names):
        raise InvalidArgument(f"the file of table `{name}` has two columns of one name", place=name)
    return columns
