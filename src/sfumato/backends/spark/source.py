"""Tables of a Spark session: frames, classic or Connect, each a view in a session of our own (`sessions`).

A frame is what it was when it was opened (`frames`): its plan, and the list of its files. Before each charge
the files are listed again. A file that is another by then, or gone, or new, is refused; what was paid for one
version is not answered from another. Where a frame has no files, and its rows are not in memory (a table
that is read through JDBC or a catalog's own reader), nothing tells when it changes.

    identity    the folders and files that rows come from, by the same texts as files that are opened without
                Spark; of rows in memory a hash; of anything else what the plan says of it: its name
    version     path, size and time of each file, and of a file of this machine its inode and a hash of both
                ends; of rows in memory, and of computed columns, a hash of all rows. Of anything else each
                opening is another version: what was paid for is not given again
"""

from __future__ import annotations

import hashlib
import importlib.util
import itertools
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import local
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote, urlsplit

from sfumato.backends.files import path_identity, state_here
from sfumato.backends.spark.columns import kind_of_type, read_column
from sfumato.backends.spark.dialect import SPARK
from sfumato.backends.spark.frames import FILE, FramePlan, contents, read_plan
from sfumato.backends.spark.sessions import (
    cloned,
    is_frame,
    of_address,
    pin,
    quiet,
    refuse_hiding,
    shorten_plans,
    stopped_after,
    take_over,
)
from sfumato.catalog.catalog import Catalog
from sfumato.catalog.database_table import DatabaseTable
from sfumato.catalog.kind import Kind
from sfumato.catalog.server_address import is_spark_address
from sfumato.catalog.table import Field, UnsupportedColumn
from sfumato.errors import EngineStopped, InvalidArgument, SfumatoError

if TYPE_CHECKING:
    from sfumato.backends.spark.backend import SparkBackend

__all__ = ["Cursor", "SparkTables", "open_source", "reads"]

_T = TypeVar("_T")
_NUMBERS = itertools.count()
_SURE_DIGITS = 18  # of a decimal: Spark fails at one with more digits than its type only above these
_PADDED = "__CHAR_VARCHAR_TYPE_STRING"  # where a frame says that a text is CHAR(n)


class SparkTables:
    """Open tables, by name: each is a frame of one session."""

    def __init__(
        self, session: Any, frames: Mapping[str, Any], *, seconds: float = 3600, asked: bool = True
    ) -> None:
        self._seconds = seconds
        self._asked = asked
        self._closed = False
        self._views: dict[str, str] = {name: f"__sf_{next(_NUMBERS)}" for name in frames}
        self._fields: dict[str, tuple[Field, ...]] = {}
        self._left_out: dict[str, tuple[UnsupportedColumn, ...]] = {}
        self._stored: dict[str, str] = {}
        self._plans: dict[str, FramePlan] = {}
        self._files: dict[str, tuple[str, ...]] = {}
        self._states: dict[str, str] = {}
        self._session: Any = None
        self._shared = local()
        opening: list[str] = []

        def open_all() -> None:
            self._session = cloned(session)
            refuse_hiding(self._session)
            for name, frame in frames.items():
                opening.append(name)
                take_over(self._session, frame() if callable(frame) else frame, self._views[name])
            pin(self._session)
            for name in frames:
                opening.append(name)
                self._open(name)
            shorten_plans(self._session)

        _typed(open_all, lambda: _unreadable(opening[-1] if opening else None))

    def _open(self, name: str) -> None:
        view = self._views[name]
        plan = self._plans[name] = read_plan(self._session, view, name)
        fields, left_out, selected = [], [], []
        for column in self._session.table(view).schema.fields:
            if column.name == FILE:
                continue
            of_type = (column.metadata or {}).get(_PADDED) or column.dataType.simpleString()
            kind = kind_of_type(of_type)
            if kind is None:
                left_out.append(
                    UnsupportedColumn(name=column.name, of_type=of_type.split("(")[0].split("<")[0])
                )
                continue
            fields.append(Field(name=column.name, kind=kind))
            selected.append(read_column(column.name, of_type))
        if not fields:
            raise InvalidArgument(f"table `{name}` has no column that can be asked about", place=name)
        self._fields[name], self._left_out[name] = tuple(fields), tuple(left_out)
        self._stored[name] = f"(SELECT {', '.join(selected)} FROM {view}) AS stored"
        self._session.sql(f"SELECT * FROM {self._stored[name]}").schema  # noqa: B018
        self._files[name] = self._listed(name)
        if plan.cached and not self._files[name] and not plan.held:
            raise InvalidArgument(
                f"the frame of table `{name}` reads rows that are cached",
                place=name,
                hints=("nothing tells when they change: frame.unpersist(), or spark.catalog.clearCache()",),
            )
        state = self._file_states([name])[name]
        if not plan.plain and self._asked:
            columns = [field.name for field in fields]
            first, again = (contents(self._session, self._stored[name], columns) for _ in range(2))
            if first != again:
                raise InvalidArgument(
                    f"the frame of table `{name}` has other rows each time it is read",
                    place=name,
                    hints=("write it as a table and give that: frame.write.saveAsTable(..)",),
                )
            state += first
        wide = [field.name for field in fields if field.kind.digits > _SURE_DIGITS]
        if plan.plain and self._asked and wide:
            contents(self._session, self._stored[name], wide)
        if not self._files[name] and not plan.held:
            state += secrets.token_hex()
        self._states[name] = state

    def __repr__(self) -> str:
        return f"<tables: {', '.join(self._fields)}>"

    def fields(self, table: str) -> tuple[Field, ...]:
        """Return the columns of a table that questions can use."""
        return self._fields[table]

    def left_out(self, table: str) -> tuple[UnsupportedColumn, ...]:
        """Return the columns of a table that questions cannot use."""
        return self._left_out[table]

    def stored(self, table: str) -> str:
        """Return what to read FROM for a table."""
        return self._stored[table]

    def identities(self, table: str) -> tuple[str, ...]:
        """Return texts that identify where the rows of a table come from."""
        plan, files = self._plans[table], self._files[table]
        if plan.held:
            return (f"contents {hashlib.sha256(self._states[table].encode()).hexdigest()}",)
        found = {_identity(text) for file in files for text in (file, _folder(file)) if text}
        if not files:
            found = {f"spark {leaf}" for leaf in plan.leaves}
        return tuple(sorted(found))

    def version(self) -> str:
        """Return a hash that differs where the data may differ; refuse what is gone, before any charge."""
        if not self._asked:
            raise InvalidArgument("these tables were opened for prices, not to be asked", place="tables")
        if self._closed:
            raise EngineStopped
        at: list[str] = []

        def look() -> None:
            self._session.sql("SELECT 1").collect()
            self._check_files(at)

        _typed(look, lambda: _changed(at[-1]) if at and self._answers() else EngineStopped())
        found = [
            repr((name, [(field.name, field.kind.value) for field in self._fields[name]], state))
            for name, state in self._states.items()
        ]
        return hashlib.sha256("\n".join(found).encode()).hexdigest()

    def _check_files(self, at: list[str]) -> None:
        """Refuse a table whose files are others than when it was opened; `at` gets the names of tables."""
        for name in self._views:
            at.append(name)
            if self._listed(name) != self._files[name]:
                raise _changed(name)
        files = self._file_states(self._views)
        for name, state in self._states.items():
            if not state.startswith(files[name]):
                raise _changed(name)

    def check_parts(self) -> None:
        """Refuse to divide units into parts where rows may change unnoticed.

        Questions about two parts cost as much as one of them only as long as nobody has gone from one part to
        the other.
        """
        for name in self._plans:
            self._refuse_unnoticed(name, "has no partition", "partition")

    def check_copies(self, name: str) -> None:
        """Refuse to join rows that are units with public rows that may be copied unnoticed.

        How many rows of a public table are alike is counted first, and the join is done later.
        """
        self._refuse_unnoticed(name, "is not joined where each row is a unit", name)

    def _refuse_unnoticed(self, name: str, what: str, place: str) -> None:
        if not self._files[name] and not self._plans[name].held:
            raise InvalidArgument(
                f"table `{name}` has no files that tell when it changes, and so {what}",
                place=place,
                hints=("write the table to files and give those",),
            )

    def _answers(self) -> bool:
        """Return whether the engine still answers."""
        try:
            with quiet():
                return bool(self._session.sql("SELECT 1").collect())
        except Exception:
            return False

    def _listed(self, name: str) -> tuple[str, ...]:
        """Return the paths of a table's files; none where it has none, or nobody says."""
        return tuple(sorted(unquote(one) for one in self._session.table(self._views[name]).inputFiles()))

    def _file_states(self, names: Iterable[str]) -> dict[str, str]:
        """Return what the file system says of the files of tables: one job for all of them."""
        files = sorted({file for name in names for file in self._files[name]})
        known: dict[str, tuple[object, ...]] = {}
        if files:
            reader = self._session.read.format("binaryFile").option("__globPaths__", "false")
            rows = reader.load(files).select("path", "length", "modificationTime").collect()
            known = {_bare(row[0]): (*map(str, row), *_here(row[0])) for row in rows}
        return {name: repr([known[_bare(file)] for file in self._files[name]]) for name in names}

    def backend(self, catalog: Catalog, *, threads: int | None = None) -> SparkBackend:
        """Return what computes bounded queries from these tables; the engine has threads of its own."""
        from sfumato.backends.spark.backend import SparkBackend

        return SparkBackend(self, catalog)

    @contextmanager
    def admitted(self) -> Iterator[None]:
        """Wait for nothing; at the end of a question executors let go of what its statements shared."""
        views: list[str] = []
        self._shared.views = views
        try:
            yield
        finally:
            self._shared.views = None
            with quiet():
                for view in views:
                    with suppress(Exception):  # a session that is gone holds nothing
                        self._session.catalog.dropTempView(view)

    def share(self, cursor: Cursor, text: str) -> str | None:
        """Let executors keep the rows of a statement, on their disks, until the question ends.

        Return what to read FROM for them; None: nobody says when the question ends, or this Spark keeps
        nothing. Statements read the rows again then.
        """
        views: list[str] | None = getattr(self._shared, "views", None)
        if views is None:
            return None
        view = f"__sf_{next(_NUMBERS)}"
        with suppress(Exception):  # no row is read yet: what is refused is the statement
            cursor.execute(f"CACHE LAZY TABLE {view} OPTIONS ('storageLevel' 'DISK_ONLY') AS {text}")
            views.append(view)
            return view
        return None

    def close(self) -> None:
        """Answer nothing more; the user's session goes on."""
        self._closed = True

    @contextmanager
    def reading(self) -> Iterator[Cursor]:
        """Yield what runs statements, each for `seconds` at most; fail where files changed meanwhile."""
        if self._closed:
            raise EngineStopped
        with quiet():
            yield Cursor(self._session, self._seconds)
            self._check_files([])


class Cursor:
    """Runs statements in a session; what they return comes as columns of Arrow's, for groups may be many."""

    def __init__(self, session: Any, seconds: float) -> None:
        self._session = session
        self._seconds = seconds
        self.columns: list[Any] = []

    def execute(self, text: str) -> Cursor:
        """Run a statement."""
        with stopped_after(self._session, self._seconds):
            self.columns = self._session.sql(text).toArrow().columns
        return self

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return the rows of the last statement."""
        return list(zip(*(column.to_pylist() for column in self.columns), strict=True))


def _typed(action: Callable[[], _T], refusal: Callable[[], SfumatoError]) -> _T:
    """Do something with the engine; what it says of a failure is not repeated, nor kept in a context."""
    done: list[_T] = []
    refused: SfumatoError | None = None
    try:
        with quiet():
            done.append(action())
    except SfumatoError as error:
        refused = error
    except Exception:
        refused = refusal()
    if refused is not None:
        raise refused
    return done[0]


def _unreadable(name: str | None) -> InvalidArgument:
    if name is None:
        return InvalidArgument(
            "the Spark session does not answer",
            place="tables",
            hints=("sc://host:15002, local[4], or a frame of a session that was not stopped",),
        )
    return InvalidArgument(
        f"the frame of table `{name}` cannot be read",
        place=name,
        hints=("does frame.count() work? a computed column may fail on a value: try_cast, try_divide",),
    )


def _changed(name: str) -> InvalidArgument:
    return InvalidArgument(
        f"table `{name}` has changed since it was opened, or is gone",
        place=name,
        hints=("open it again: what is paid for one version is answered from that version",),
    )


def _identity(path: str) -> str:
    """Return the text that identifies a file or folder; one of this machine as if it were opened directly."""
    parts = urlsplit(path)
    return path_identity(parts.path) if parts.scheme == "file" else f"path {path}"


def _bare(path: str) -> str:
    """Return a path without the empty host that some write: file:///data is file:/data."""
    return path.replace(":///", ":/")


def _here(path: str) -> tuple[object, ...]:
    """Return what this machine says of its files: a copy may keep the size and time that Spark sees."""
    bare = _bare(path)
    return (state_here(bare.removeprefix("file:")),) if bare.startswith("file:") else ()


def _folder(file: str) -> str | None:
    """Return the folder that is a table: of files that Spark wrote, above those that say a column's value."""
    *parents, name = file.split("/")
    above = parents.copy()
    while len(above) > 1 and "=" in above[-1]:
        above.pop()
    return "/".join(above) if above != parents or name.startswith("part-") else None


def open_source(
    tables: Mapping[str, Any],
    *,
    threads: int | None = None,
    memory: str | None = None,
    question_memory: str | None = None,
    seconds: float = 3600,
    read: bool = True,
    kinds: Mapping[str, Mapping[str, Kind]] | None = None,
) -> SparkTables:
    """Open frames of one session, or tables of its catalog; `backends.registry` says what options mean."""
    for name, given in (("memory", memory), ("question_memory", question_memory)):
        if given is not None:
            raise InvalidArgument(
                f"`{name}` is not for Spark, which shares out its memory itself",
                place=name,
                hints=("leave it out; spark.executor.memory says what an executor may take",),
            )
    if importlib.util.find_spec("pyspark") is None:
        raise InvalidArgument("Spark needs pyspark", place="tables", hints=("pip install 'sfumato[spark]'",))
    sessions = {id(one.sparkSession): one.sparkSession for one in tables.values() if is_frame(one)}
    addresses = {one.resolved() for one in tables.values() if not is_frame(one)}
    if len(sessions) + len(addresses) != 1:
        raise InvalidArgument("these tables are not all of one Spark session", place="tables")
    session = next(iter(sessions.values()), None) or _typed(
        lambda: of_address(addresses.pop()), lambda: _unreadable(None)
    )
    frames = {name: one if is_frame(one) else _named(session, one) for name, one in tables.items()}
    return SparkTables(session, frames, seconds=seconds, asked=read)


def _named(session: Any, origin: DatabaseTable) -> Callable[[], Any]:
    """Return what reads a table of the catalog, when it is asked to: an error then names the table."""
    return lambda: session.table(".".join(map(SPARK.quoted, origin.parts)))


def reads(origin: Any) -> bool:
    """Return whether this engine reads an origin: a frame of Spark, or a table of a catalog of Spark's."""
    return is_frame(origin) or (isinstance(origin, DatabaseTable) and is_spark_address(origin.resolved()))
