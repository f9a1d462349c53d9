"""Reports as they arrive: lines of JSON, Parquet or Arrow, batch by batch, whoever wrote them.

Nothing that a sender writes stops the collector. A report is a flat object: `survey` (the fingerprint of
the file it answers), `id` (128 random bits, in 32 hexadecimal digits), `day` where a survey is repeated, and
the fields of the protocol: integers, or bits as hexadecimal digits. In Parquet and Arrow the same columns,
where `id` and bits may be binary. Other columns are ignored.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pyarrow
from pyarrow import compute, ipc
from pyarrow import json as reading
from pyarrow.parquet import ParquetFile

from sfumato.errors import InvalidArgument
from sfumato.local.arrays import Array, Flags, Octets
from sfumato.local.protocol import Protocol

__all__ = ["Batch", "Reader", "array_of", "arrow_of"]

_BLOCK = 1 << 23  # bytes of text at once
_ROWS = 1 << 16  # or rows, fewer if they are long
_LONGEST = 1 << 24  # a line beyond this is no report
_LONGEST_NESTED = 1 << 16  # nor is one beyond this that holds lists or objects: they grow when read
_ID_OCTETS = 16
_LINES = (".jsonl", ".ndjson", ".json")
_ENDINGS = (*_LINES, ".parquet", ".arrow", ".feather", ".ipc")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batch:
    """Reports that could be read: fields, numbers, whether they answer this survey; how many could not."""

    fields: dict[str, Array]
    numbers: npt.NDArray[np.uint64]
    ours: Flags
    today: Flags
    malformed: int

    def __len__(self) -> int:
        return len(self.numbers)


class Reader:
    """What one survey's reports look like; of a repeated one, those of one `day`.

    `unread` counts files in folders that hold no reports, or that are broken.
    """

    def __init__(self, protocol: Protocol, fingerprint: str, day: int | None = None) -> None:
        self.unread = 0
        self._protocol = protocol
        self._fingerprint = fingerprint
        self._day = day
        kinds = {"integer": pyarrow.int64(), "bits": pyarrow.string()}
        names = {"survey": pyarrow.string(), "id": pyarrow.string()}
        names |= {} if day is None else {"day": pyarrow.int64()}
        names |= {name: kinds[kind] for name, kind in protocol.fields.items()}
        self._schema = pyarrow.schema(list(names.items()))
        self._wanted = tuple(names)
        bits = sum(protocol.octets(name) for name, kind in protocol.fields.items() if kind == "bits")
        self._rows = max(1, min(_ROWS, 4 * _BLOCK // (bits + _ID_OCTETS)))

    def read(self, source: Any) -> Iterator[Batch]:
        """Yield the reports of a file, by its ending; of a folder; of Arrow data; of '-', standard input."""
        if isinstance(source, dict):
            source = [source]
        if isinstance(source, (list, tuple)):
            yield from self._lines(io.BytesIO("\n".join(map(json.dumps, source)).encode()))
        elif isinstance(source, (pyarrow.Table, pyarrow.RecordBatch)):
            yield from self._tables([source])
        elif isinstance(source, pyarrow.RecordBatchReader):
            yield from self._tables(source)
        elif hasattr(source, "__arrow_c_stream__"):  # a frame
            yield from self._tables([pyarrow.table(source)])
        elif isinstance(source, str) and source == "-":
            yield from self._lines(sys.stdin.buffer)
        elif not isinstance(source, (str, os.PathLike)):
            raise InvalidArgument(
                "reports are in files, folders, Arrow data, frames, or dicts", place="reports"
            )
        elif Path(source).is_dir():
            yield from self._folder(Path(source))
        else:
            yield from self._file(Path(source))

    def _folder(self, folder: Path) -> Iterator[Batch]:
        """Yield the reports of all files; one that cannot be read does not stop the others."""
        for path in sorted(folder.iterdir()):
            if path.suffix.lower() not in _ENDINGS:
                self.unread += 1
                continue
            try:
                yield from self._file(path)
            except InvalidArgument:
                self.unread += 1

    def _file(self, path: Path) -> Iterator[Batch]:
        ending = path.suffix.lower()
        if ending not in _ENDINGS and path.exists():
            raise InvalidArgument(
                "the ending of a file says what it holds",
                place=str(path),
                hints=("reports are in .jsonl, .parquet or .arrow files",),
            )
        try:
            with path.open("rb") as file:
                if ending in _LINES:
                    yield from self._lines(file)
                elif ending == ".parquet":
                    parquet = ParquetFile(file)
                    names = [name for name in parquet.schema_arrow.names if name in self._wanted]
                    yield from self._tables(parquet.iter_batches(batch_size=self._rows, columns=names))
                else:
                    yield from self._tables(_arrow(file))
        except (OSError, ValueError, pyarrow.ArrowException) as error:
            if isinstance(error, InvalidArgument):
                raise
            reason = getattr(error, "strerror", None) or "it is not what its ending says"
            raise InvalidArgument(
                f"reports cannot be read: {reason}",
                place=str(path),
                hints=("name other files, or leave this one out",),
            ) from None

    # -- lines --------------------------------------------------------------------------------

    def _lines(self, file: IO[bytes]) -> Iterator[Batch]:
        rest, too_long = b"", False
        while block := file.read(_BLOCK):
            whole, newline, tail = block.rpartition(b"\n")
            if not newline:
                rest = b"" if too_long or len(rest) > _LONGEST else rest + block
                too_long = too_long or not rest
                continue
            if too_long:  # what is left of a line that no report is as long as
                _, _, whole = whole.partition(b"\n")
                yield self._nothing(1)
            yield self._parsed((rest if not too_long else b"") + whole)
            rest, too_long = tail, False
        if too_long:
            yield self._nothing(1)
        elif rest.strip():
            yield self._parsed(rest)

    def _parsed(self, text: bytes) -> Batch:
        """Read lines at once; where one of them is not as it should be, one by one.

        Arrow's reader ends the process on a bare `null`, so it is given lines of flat objects only.
        """
        lines = [line for line in text.split(b"\n") if line.strip()]
        flat = text.count(b"{") == len(lines) and b"[" not in text
        if lines and flat and all(line.startswith(b"{") for line in lines):
            table = self._at_once(text)
            if table is not None and table.num_rows == len(lines):
                return self._batch(table)
        rows = [row for row in map(self._row, lines) if row is not None]
        found = self._batch(pyarrow.Table.from_pylist(rows, schema=self._schema))
        return replace(found, malformed=found.malformed + len(lines) - len(rows))

    def _at_once(self, text: bytes) -> pyarrow.Table | None:
        """Return a table of lines of objects, None if Arrow does not read them."""
        options = reading.ParseOptions(explicit_schema=self._schema, unexpected_field_behavior="ignore")
        try:
            table = reading.read_json(
                pyarrow.BufferReader(text),
                read_options=reading.ReadOptions(block_size=max(len(text) + 1, 1 << 10)),
                parse_options=options,
            )
            table.validate(full=True)
        except (pyarrow.ArrowException, ValueError):
            return None
        return table

    def _row(self, line: bytes) -> dict[str, Any] | None:
        if len(line) > _LONGEST_NESTED and (b"[" in line or line.count(b"{") > 1):
            return None
        try:
            pairs = json.loads(line.decode("utf-8-sig", "replace"), object_pairs_hook=tuple)
        except (ValueError, RecursionError):
            return None
        if not isinstance(pairs, tuple):  # an object, for a list is a list
            return None
        names = [name for name, _ in pairs]
        if any(names.count(name) != 1 for name in self._wanted):
            return None
        row = dict(pairs)
        found = {name: row[name] for name in self._wanted}
        for field in self._schema:
            value = found[field.name]
            if field.type == pyarrow.int64():
                if type(value) is not int or not -(2**63) <= value < 2**63:
                    return None
            elif not isinstance(value, str) or not value.isascii():
                return None
        return found

    # -- tables -------------------------------------------------------------------------------

    def _tables(self, tables: Iterable[Any]) -> Iterator[Batch]:
        for table in tables:
            whole = pyarrow.Table.from_batches([table]) if isinstance(table, pyarrow.RecordBatch) else table
            try:
                whole.validate(full=True)  # offsets that point anywhere would be followed there
            except (pyarrow.ArrowException, ValueError):
                yield self._nothing(whole.num_rows)
                continue
            for start in range(0, whole.num_rows, self._rows):
                piece = whole.slice(start, self._rows)
                try:
                    yield self._batch(piece)
                except (pyarrow.ArrowException, ValueError):  # a type that Arrow cannot turn into another
                    yield self._nothing(piece.num_rows)

    def _batch(self, table: pyarrow.Table) -> Batch:
        rows = table.num_rows
        good = np.ones(rows, dtype=np.bool_)
        arrays: dict[str, Array] = {}
        for name in self._wanted:
            if table.column_names.count(name) != 1:
                return self._nothing(rows)
            column = _decoded(table.column(name).combine_chunks())
            if name == "survey":
                read = _same(column, self._fingerprint)
            elif name == "day" or self._protocol.fields.get(name) == "integer":
                read = _integers(column)
            else:
                read = _octets(column, _ID_OCTETS if name == "id" else self._protocol.octets(name))
            if read is None:
                return self._nothing(rows)
            arrays[name], known = read
            good &= known
        kept = {name: array[good] for name, array in arrays.items()}
        numbers = np.ascontiguousarray(kept.pop("id")).view(np.uint64)
        ours = kept.pop("survey")
        return Batch(
            ours=ours,
            today=kept.pop("day") == self._day
            if self._day is not None
            else np.ones(len(ours), dtype=np.bool_),
            fields=kept,
            numbers=numbers[:, 0] ^ numbers[:, 1],
            malformed=rows - int(np.count_nonzero(good)),
        )

    def empty(self) -> dict[str, Array]:
        """Return the fields of no reports."""
        return {
            name: np.zeros(0, dtype=np.int64)
            if kind == "integer"
            else np.zeros((0, self._protocol.octets(name)), dtype=np.uint8)
            for name, kind in self._protocol.fields.items()
        }

    def _nothing(self, malformed: int) -> Batch:
        return Batch(
            fields=self.empty(),
            numbers=np.zeros(0, dtype=np.uint64),
            ours=np.zeros(0, dtype=np.bool_),
            today=np.zeros(0, dtype=np.bool_),
            malformed=malformed,
        )


_Read = tuple[Array, Flags]


def _hex_values() -> Octets:
    """Return what each byte is worth as a hexadecimal digit, 255 if it is none."""
    worth = np.full(256, 255, dtype=np.uint8)
    for digits in (b"0123456789abcdef", b"0123456789ABCDEF"):
        worth[np.frombuffer(digits, dtype=np.uint8)] = np.arange(16)
    return worth


def _arrow(file: IO[bytes]) -> Iterator[Any]:
    try:
        reader = ipc.open_file(file)
    except pyarrow.ArrowInvalid:
        file.seek(0)
        yield from ipc.open_stream(file)
        return
    for number in range(reader.num_record_batches):
        yield reader.get_batch(number)


def _decoded(column: Any) -> Any:
    """Return a column that is written as a dictionary, or as views, as what it stands for."""
    if pyarrow.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if column.type == pyarrow.string_view():
        return column.cast(pyarrow.large_string())
    return column.cast(pyarrow.large_binary()) if column.type == pyarrow.binary_view() else column


def _same(column: Any, wanted: str) -> _Read | None:
    if not (pyarrow.types.is_string(column.type) or pyarrow.types.is_large_string(column.type)):
        return None
    known = column.is_valid().to_numpy(zero_copy_only=False)
    same = compute.fill_null(compute.equal(column, wanted), False).to_numpy(zero_copy_only=False)
    return same, known


def _integers(column: Any) -> _Read | None:
    if not pyarrow.types.is_integer(column.type) or column.type == pyarrow.uint64():
        return None
    known = column.is_valid().to_numpy(zero_copy_only=False)
    values = compute.fill_null(column.cast(pyarrow.int64()), 0).to_numpy(zero_copy_only=False)
    return values, known


def _octets(column: Any, width: int) -> _Read | None:
    """Read bytes of one width: binary, or text of hexadecimal digits; what has another width is not known."""
    kinds = pyarrow.types
    text = kinds.is_string(column.type) or kinds.is_large_string(column.type)
    if not text and not (
        kinds.is_binary(column.type)
        or kinds.is_large_binary(column.type)
        or kinds.is_fixed_size_binary(column.type)
    ):
        return None
    column = column.cast(pyarrow.large_binary())
    letters = 2 * width if text else width
    known = compute.fill_null(compute.equal(compute.binary_length(column), letters), False)
    flags = np.array(known.to_numpy(zero_copy_only=False))
    kept = column.filter(known)
    ends = np.frombuffer(kept.buffers()[1], dtype=np.int64)[kept.offset : kept.offset + len(kept) + 1]
    raw = np.zeros(0, dtype=np.uint8)
    if len(kept):
        raw = np.frombuffer(kept.buffers()[2], dtype=np.uint8)[ends[0] : ends[-1]]
    found = raw.reshape(len(kept), letters)
    if text:
        digits = _hex_values()[found]
        fine = (digits != 255).all(axis=1)
        found = ((digits[:, ::2] << 4) | (digits[:, 1::2] & 15)).astype(np.uint8)
        flags[np.flatnonzero(flags)[~fine]] = False
    octets = np.zeros((len(flags), width), dtype=np.uint8)
    octets[flags] = found[fine] if text else found
    return octets, flags


def arrow_of(values: Array) -> Any:
    """Return a column of a report table: integers, or rows of bytes."""
    if values.ndim == 1:
        return pyarrow.array(values)
    kind, buffer = pyarrow.binary(values.shape[1]), pyarrow.py_buffer(np.ascontiguousarray(values))
    return pyarrow.FixedSizeBinaryArray.from_buffers(kind, len(values), [None, buffer])


def array_of(column: Any) -> Array:
    """Return what `arrow_of` was given."""
    if not pyarrow.types.is_fixed_size_binary(column.type):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    width = column.type.byte_width
    octets = np.frombuffer(column.buffers()[1], dtype=np.uint8)
    return octets[column.offset * width : (column.offset + len(column)) * width].reshape(-1, width)
