"""Tables of a PostgreSQL database: what they are, who they are, and whether they have changed.

A question holds one transaction from its charge to its answer (`admitted`), so that the version that is
recorded is that of the rows that were read. The tables are locked in it against being dropped, replaced or
emptied before its state is chosen; where one is another than was opened, the question is refused.

Ordinary tables, partitioned ones and materialized views are read. A view may compute something else each time
it is read, and a foreign table is read from another server, whose state no transaction here holds: both are
refused, also as parts of a table. A materialized view of people must make each of its rows from one row of
one table (`materialized_views`).

    identity    cluster, database and number of the table, and beside that its name there. A table that is
                made anew under its name is known again, and so is one that is renamed; a partition goes by
                the table that it is of. A standby is its primary. A copy (a dump, a logical replica, a
                materialized view, an upgraded cluster) is not recognised.
    version     where its rows are stored, how large that is, and the server's counts of rows that were ever
                inserted, updated and deleted, of the table and all its parts. The server counts with a delay
                of about a second (ten, of a session that goes idle), and forgets in a crash: a change may go
                unnoticed that long. Then an answer that was paid for is given again although the rows have
                changed, which costs nobody privacy. On a standby, and where rows are not counted, any
                change of the cluster is another version. So it is where units are divided into parts: who
                goes from one part to another unnoticed would be charged for one of them alone.
"""

from __future__ import annotations

import hashlib
import importlib.util
import threading
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from sfumato.backends.postgres.columns import kind_of_type, read_column
from sfumato.backends.postgres.materialized_views import is_row_by_row
from sfumato.backends.postgres.role import excess_rights
from sfumato.backends.postgres.transaction import transaction, unreached
from sfumato.catalog.catalog import Catalog
from sfumato.catalog.database_table import DatabaseTable
from sfumato.catalog.identifiers import identifier
from sfumato.catalog.kind import Kind
from sfumato.catalog.resources import late_opening
from sfumato.catalog.server_address import is_spark_address
from sfumato.catalog.table import Field, UnsupportedColumn
from sfumato.errors import EngineStopped, InvalidArgument, RoleWarning, SfumatoError

if TYPE_CHECKING:
    from sfumato.backends.postgres.backend import PostgresBackend

__all__ = ["PostgresTables", "open_source", "reads"]

_T = TypeVar("_T")

_FOUND = (
    "SELECT c.oid, c.relkind FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace"
    " WHERE n.nspname = %s AND c.relname = %s"
)
_ALIKE = (
    "SELECT n.nspname::text, c.relname::text FROM pg_class AS c"
    " JOIN pg_namespace AS n ON n.oid = c.relnamespace"
    " WHERE lower(c.relname) = lower(%s) AND c.relkind IN ('r', 'p', 'm')"
    " AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT') ORDER BY 1, 2 LIMIT 3"
)
_COLUMNS = (
    "SELECT attname, format_type(atttypid, atttypmod), attgenerated FROM pg_attribute"
    " WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
)
_FAMILY = (  # a table, and all that inherits from it
    "WITH RECURSIVE f(oid) AS (SELECT %s::oid UNION"
    " SELECT i.inhrelid FROM pg_inherits AS i JOIN f ON i.inhparent = f.oid) "
)
_FOREIGN = _FAMILY + "SELECT count(*) FROM f JOIN pg_class AS c ON c.oid = f.oid WHERE c.relkind = 'f'"
_ROOT = (
    "WITH RECURSIVE f(oid) AS (SELECT %s::oid UNION"
    " SELECT i.inhparent FROM pg_inherits AS i JOIN f ON i.inhrelid = f.oid)"
    " SELECT f.oid::bigint, n.nspname::text, c.relname::text FROM f JOIN pg_class AS c ON c.oid = f.oid"
    " JOIN pg_namespace AS n ON n.oid = c.relnamespace ORDER BY 1"
)
_STATE = _FAMILY + (
    "SELECT f.oid::bigint, pg_relation_filenode(f.oid)::bigint, pg_relation_size(f.oid),"
    " pg_stat_get_tuples_inserted(f.oid), pg_stat_get_tuples_updated(f.oid),"
    " pg_stat_get_tuples_deleted(f.oid)"
    " FROM f JOIN pg_class AS c ON c.oid = f.oid ORDER BY 1"
)
_CLUSTER = (
    "SELECT (SELECT system_identifier FROM pg_control_system()),"
    " (SELECT oid::bigint FROM pg_database WHERE datname = current_database())"
)
_STANDBY = "SELECT pg_is_in_recovery()"
_REPLAYED = "SELECT pg_last_wal_replay_lsn()::text"
_COUNTED = "SELECT current_setting('track_counts') = 'on'"
_AS_TABLE = ("make a table of it, each of whose rows is about one person: CREATE TABLE .. AS SELECT ..",)
_SNAPSHOT = "SELECT pg_current_snapshot()::text, left(pg_walfile_name(pg_current_wal_lsn()), 8)"


class PostgresTables:
    """Open tables, by name: each is a schema and a table there."""

    def __init__(
        self,
        address: str,
        tables: Mapping[str, tuple[str, str]],
        *,
        private: Collection[str] = (),
        seconds: float = 3600,
        asked: bool = True,
    ) -> None:
        self._private = private
        self._address = address
        self._seconds = seconds
        self._asked = asked
        self._closed = False
        self._held = threading.local()  # the cursor of the question that this thread asks
        self._places = dict(tables)
        self._fields: dict[str, tuple[Field, ...]] = {}
        self._left_out: dict[str, tuple[UnsupportedColumn, ...]] = {}
        self._stored: dict[str, str] = {}
        self._shapes: dict[str, tuple[Any, ...]] = {}  # what a table is: see `_shape`
        self._identities: dict[str, tuple[str, ...]] = {}
        self.excess: tuple[str, ...] = ()
        wrong = self._open_all()
        if wrong is not None:  # raised here, so that nothing the server or the address says is in its context
            raise wrong

    def _open_all(self) -> InvalidArgument | None:
        """Open tables, and return what is wrong with one."""
        import psycopg

        opening: str | None = None
        try:
            with transaction(self._address, seconds=self._seconds) as cursor:
                if cursor.execute("SHOW server_encoding").fetchone() != ("UTF8",):
                    return InvalidArgument("the database does not hold its texts in UTF-8", place="tables")
                cluster = cursor.execute(_CLUSTER).fetchone()
                for opening in self._places:
                    self._open(cursor, opening, cluster)
                self.excess = excess_rights(cursor, [shape[0] for shape in self._shapes.values()])
        except InvalidArgument as refused:
            return refused
        except psycopg.errors.QueryCanceled:
            return late_opening()
        except psycopg.errors.ObjectNotInPrerequisiteState:
            return self._unreadable(str(opening))
        except (psycopg.Error, UnicodeError, ValueError) as error:
            gone = opening is None or isinstance(error, psycopg.OperationalError)
            return unreached(str(error)) if gone else self._unreadable(str(opening))
        return None

    def _unreadable(self, name: str) -> InvalidArgument:
        return InvalidArgument(
            f"table `{name}` cannot be read",
            place=name,
            hints=(
                "grant SELECT on it to this role",
                "row security that hides rows is not supported",
                "a materialized view WITH NO DATA is read after REFRESH MATERIALIZED VIEW",
            ),
        )

    def _open(self, cursor: Any, name: str, cluster: tuple[int, int]) -> None:
        schema, table = self._places[name]
        found = cursor.execute(_FOUND, (schema, table)).fetchone()
        if found is None:
            near = [f"{one}.{other}" for one, other in cursor.execute(_ALIKE, (table,)).fetchall()]
            raise InvalidArgument(
                f"table `{name}` is not there: schema `{schema}` has no table `{table}`",
                place=name,
                hints=(
                    *([f"did you mean {' or '.join(near)}?"] if near else ()),
                    "its schema stands before it: clinic.visits; names are as they are stored, capitals too",
                ),
            )
        if found[1] not in ("r", "p", "m"):
            raise InvalidArgument(
                f"table `{name}` is a view or a foreign table, which may change as it is read",
                place=name,
                hints=_AS_TABLE,
            )
        if found[1] == "m" and name in self._private and not is_row_by_row(cursor, found[0]):
            raise InvalidArgument(
                f"table `{name}` is a materialized view whose rows may be made of rows of several people",
                place=name,
                hints=_AS_TABLE,
            )
        self._shapes[name] = shape = _shape(cursor, found)
        _, _, foreign, *columns = shape
        if foreign:
            raise InvalidArgument(f"table `{name}` has parts that are foreign tables", place=name)
        fields, left_out, selected = [], [], []
        for column, of_type, generated in columns:
            kind = kind_of_type(of_type) if generated != "v" else None
            if kind is None:
                left_out.append(UnsupportedColumn(name=column, of_type=of_type.split("(")[0]))
                continue
            fields.append(Field(name=column, kind=kind))
            selected.append(read_column(column, of_type))
        self._fields[name], self._left_out[name] = tuple(fields), tuple(left_out)
        rows = f"{identifier(schema)}.{identifier(table)}"
        self._stored[name] = f"(SELECT {', '.join(selected) or 'NULL AS nothing'} FROM {rows}) AS stored"
        cursor.execute(f"SELECT * FROM {self._stored[name]} LIMIT 0")
        if not fields:
            raise InvalidArgument(f"table `{name}` has no column that can be asked about", place=name)
        where = f"postgresql {cluster[0]} {cluster[1]}"
        self._identities[name] = tuple(
            text
            for oid, *named in cursor.execute(_ROOT, (found[0],)).fetchall()
            for text in (f"{where} number {oid}", f"{where} name {named!r}")
        )

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
        """Return texts that identify a table, and the tables that it is a part of."""
        return self._identities[table]

    def version(self, *, exact: bool = False) -> str:
        """Return a hash that differs where the data may differ; refuse what is gone, before any charge.

        With `exact`, no change goes unnoticed.
        """
        if not self._asked:
            raise InvalidArgument("these tables were opened for prices, not to be asked", place="tables")
        return self.before_charge(lambda cursor: self._version(cursor, exact=exact))

    def _version(self, cursor: Any, *, exact: bool) -> str:
        found = [_state_of_cluster(cursor, exact=exact)]
        for name, shape in self._shapes.items():
            found.append(repr((name, shape, cursor.execute(_STATE, (shape[0],)).fetchall())))
        return hashlib.sha256("\n".join(found).encode()).hexdigest()

    def backend(self, catalog: Catalog, *, threads: int | None = None) -> PostgresBackend:
        """Return what computes bounded queries from these tables; the server has threads of its own."""
        from sfumato.backends.postgres.backend import PostgresBackend

        return PostgresBackend(self, catalog)

    @contextmanager
    def admitted(self) -> Iterator[None]:
        """Hold one transaction: the version that is charged for and the statements are about one state."""
        import psycopg

        with ExitStack() as stack:
            with suppress(psycopg.Error):
                self._held.cursor = stack.enter_context(self.reading())
            if getattr(self._held, "cursor", None) is None:
                raise EngineStopped
            stack.callback(setattr, self._held, "cursor", None)
            yield

    def close(self) -> None:
        """Answer nothing more; between questions no connection is open."""
        self._closed = True

    def before_charge(self, action: Callable[[Any], _T]) -> _T:
        """Do something with a cursor while nothing is charged; where the server fails it is gone."""
        import psycopg

        with suppress(psycopg.Error), self.reading() as cursor:
            return action(cursor)
        raise EngineStopped  # here, so that not even its context holds what the server said

    @contextmanager
    def reading(self) -> Iterator[Any]:
        """Yield a cursor in a transaction in which the tables are those that were opened.

        It is the one that `admitted` holds in this thread, if there is one.
        """
        if self._closed:
            raise EngineStopped
        if (held := getattr(self._held, "cursor", None)) is not None:
            yield held
            return
        with transaction(self._address, seconds=self._seconds) as cursor:
            if (wrong := self._differs(cursor)) is not None:
                raise wrong
            yield cursor

    def _differs(self, cursor: Any) -> SfumatoError | None:
        """Lock the tables before a state is chosen, and return what is wrong with one by now.

        They cannot be dropped, replaced or emptied then; readers and writers of rows go on.
        """
        import psycopg

        name = ""
        try:
            for name, place in self._places.items():
                if self._shapes[name][1] != "m":  # LOCK knows tables alone
                    cursor.execute(f"LOCK TABLE {'.'.join(map(identifier, place))} IN ACCESS SHARE MODE")
            for name, place in self._places.items():
                found = cursor.execute(_FOUND, place).fetchone()
                if found is None or self._shapes[name] != _shape(cursor, found):
                    return _changed(name)
                cursor.execute(f"SELECT * FROM {self._stored[name]} LIMIT 0")
        except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
            return _changed(name)
        except psycopg.errors.LockNotAvailable:
            return InvalidArgument(
                f"table `{name}` is locked: somebody alters it", place=name, hints=("try again later",)
            )
        except psycopg.errors.ObjectNotInPrerequisiteState:
            return self._unreadable(name)
        except psycopg.OperationalError:
            return EngineStopped()
        except psycopg.Error:
            return self._unreadable(name)
        return None


def open_source(
    tables: Mapping[str, Any],
    *,
    threads: int | None = None,
    memory: str | None = None,
    question_memory: str | None = None,
    seconds: float = 3600,
    read: bool = True,
    kinds: Mapping[str, Mapping[str, Kind]] | None = None,
) -> PostgresTables:
    """Open tables of one database by name; what the options mean is said by `backends.registry`."""
    for name, given in (("memory", memory), ("question_memory", question_memory)):
        if given is not None:
            raise InvalidArgument(
                f"`{name}` is not for PostgreSQL, which shares out its memory itself",
                place=name,
                hints=("leave it out; work_mem of the role says what a statement may take",),
            )
    if importlib.util.find_spec("psycopg") is None:
        raise InvalidArgument(
            "PostgreSQL needs psycopg", place="tables", hints=("pip install 'sfumato[postgres]'",)
        )
    addresses = {origin.resolved() for origin in tables.values()}
    if len(addresses) > 1:
        hint = "one address for all of them; copy what is elsewhere into this database, or into files"
        raise InvalidArgument("these tables are not all of one database", place="tables", hints=(hint,))
    places = {name: origin.place for name, origin in tables.items()}
    private = kinds if read and kinds is not None else ()
    opened = PostgresTables(addresses.pop(), places, private=private, seconds=seconds, asked=read)
    if read and opened.excess:
        said = f"this role may do more than read the named tables: {'; '.join(opened.excess)}"
        warnings.warn(f"{said} (see docs/postgres.md)", RoleWarning, stacklevel=5)
    return opened


def reads(origin: Any) -> bool:
    """Return whether this engine reads an origin: a table of a database."""
    return isinstance(origin, DatabaseTable) and not is_spark_address(origin.resolved())


def _shape(cursor: Any, found: tuple[int, str]) -> tuple[Any, ...]:
    """Return what a table is: its number, its kind, how many parts are foreign, and its columns."""
    [foreign] = cursor.execute(_FOREIGN, (found[0],)).fetchall()
    return (*found, *foreign, *cursor.execute(_COLUMNS, (found[0],)).fetchall())


def _state_of_cluster(cursor: Any, *, exact: bool) -> str:
    """Return what differs after any change of the cluster; a text that stays, where the counts of rows do.

    Two transactions with equal snapshots on one timeline see the same rows: who has committed is the same.
    """
    [(standby,)] = cursor.execute(_STANDBY).fetchall()
    if standby and exact:
        raise InvalidArgument(
            "a partition cannot be used on a standby server, which does not say what a state is",
            place="partition",
            hints=("ask the primary server, or leave the partition out",),
        )
    if standby:
        return repr(cursor.execute(_REPLAYED).fetchall())
    [(counted,)] = cursor.execute(_COUNTED).fetchall()
    return repr(cursor.execute(_SNAPSHOT).fetchall() if exact or not counted else "counted")


def _changed(name: str) -> InvalidArgument:
    return InvalidArgument(
        f"table `{name}` has changed since it was opened, or is gone",
        place=name,
        hints=("open it again; rows may come and go, its columns may not",),
    )
