"""Transactions that cannot write, see one state, and obey no setting but those of this file.

They are READ ONLY and REPEATABLE READ. `search_path` holds the engine's own functions, operators and types
alone, the zone is UTC, dates and numbers are written one way, and `row_security = off` lets a statement fail
that would not see every row. All of it is said in the transaction, and no statement stays prepared:
connections may be shared by a pool.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from sfumato.errors import InvalidArgument

__all__ = ["transaction", "unreached"]

_REASONS = {  # what PostgreSQL says, and what it means
    "password authentication failed": "the server does not take this password for this role",
    "no password supplied": "the server wants a password: ~/.pgpass, a service file or PGPASSWORD holds it",
    "pg_hba.conf": "the server lets this role in from other hosts or to other databases only (pg_hba.conf)",
    "definition of service": "no service file has this service",
    "does not exist": "there is no such role or database there",
    "onnection refused": "no server listens there",
    "No such file or directory": "no server listens there",
    "translate host name": "this host is not known",
    "resolve host": "this host is not known",
    "timeout": "the server did not answer in time",
    "SSL": "the server and the address do not agree about SSL",
    "connection info string": "the address cannot be read",
    "URI": "the address cannot be read",
    "invalid": "an option of the address cannot be read",
}
_SETTINGS = {  # whatever the role, the database, the environment or the address says
    "search_path": "pg_catalog, pg_temp",
    "client_encoding": "'UTF8'",
    "timezone": "'UTC'",
    "datestyle": "ISO, YMD",
    "extra_float_digits": "1",
    "standard_conforming_strings": "on",
    "transform_null_equals": "off",
    "row_security": "off",
    "gin_fuzzy_search_limit": "0",  # else an index may return some of the rows, drawn by lot
    "jit": "off",
    "parallel_tuple_cost": "0.01",  # so that workers sort rows: see `compile`
    "lock_timeout": "'15s'",
    "idle_in_transaction_session_timeout": "0",
}
_CONNECTION = {  # unless the address says otherwise: a server that is gone is noticed within two minutes
    "connect_timeout": "15",
    "keepalives_idle": "60",
    "keepalives_interval": "10",
    "keepalives_count": "6",
    "fallback_application_name": "sfumato",
}


@contextmanager
def transaction(address: str, *, seconds: float) -> Iterator[Any]:
    """Yield a cursor in a transaction; no statement takes more than `seconds`."""
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    where: dict[str, Any] = {**_CONNECTION, **conninfo_to_dict(address)}
    connection = psycopg.connect(**where, prepare_threshold=None)
    try:
        _read_exactly(connection)
        connection.read_only = True
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        with connection.cursor(binary=True) as cursor:
            for name, value in _SETTINGS.items():  # SET chooses no state yet, as a SELECT would
                cursor.execute(f"SET LOCAL {name} = {value}")
            if connection.info.server_version >= 170_000:
                cursor.execute("SET LOCAL transaction_timeout = 0")
            cursor.execute(f"SET LOCAL statement_timeout = {max(1, int(seconds * 1000))}")
            yield cursor
    finally:
        with suppress(psycopg.Error):  # an answer that was found is not lost with a connection
            connection.rollback()
        connection.close()


def _read_exactly(connection: Any) -> None:
    """Read values as psycopg does, whatever the program around has told it: a float is no exact number."""
    from psycopg.types import bool as booleans
    from psycopg.types import datetime, numeric, string

    for name, loader in (
        ("int2", numeric.Int2BinaryLoader),
        ("int4", numeric.Int4BinaryLoader),
        ("int8", numeric.Int8BinaryLoader),
        ("numeric", numeric.NumericBinaryLoader),
        ("float4", numeric.Float4BinaryLoader),
        ("float8", numeric.Float8BinaryLoader),
        ("text", string.TextBinaryLoader),
        ("bool", booleans.BoolBinaryLoader),
        ("date", datetime.DateBinaryLoader),
        ("timestamp", datetime.TimestampBinaryLoader),
    ):
        connection.adapters.register_loader(name, loader)


def unreached(said: str) -> InvalidArgument:
    """Return why a database cannot be reached, in words of our own: the server's may repeat an address."""
    unknown = "`psql` with the same address says why"
    why = next((why for words, why in _REASONS.items() if words in said), unknown)
    return InvalidArgument(
        "the database cannot be reached with this address",
        place="tables",
        hints=(why, "an address: postgresql://reader@host:5432/clinic, or postgresql:///?service=clinic"),
    )
