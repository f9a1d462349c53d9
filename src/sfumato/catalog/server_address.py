"""Addresses of databases and of Spark, as a project file names them: without a password, which none shows."""

from __future__ import annotations

import re
from urllib.parse import unquote

__all__ = ["has_password", "is_address", "is_spark_address", "looks_like_address", "shown_line"]

_ADDRESS = re.compile(r"postgres(?:ql)?://", re.IGNORECASE)
_SPARK = re.compile(r"(?:sc|spark)://|local(?:-cluster)?\[[^\]]*\]$", re.IGNORECASE)
_PASSWORD = re.compile(r"password|token\s*=|://[^?#]*:[^?#]*@", re.IGNORECASE)
_OTHER = re.compile(
    r"://|(?:^|\s)(?:host|hostaddr|port|dbname|user|password|passfile|service|sslmode)\s*=", re.IGNORECASE
)
_DOUBTFUL = re.compile(r"passw|pwd|secret|token|://|@|%", re.IGNORECASE)  # also of an address that is broken


def is_address(source: object) -> bool:
    """Return whether a source is the address of a database server.

    >>> is_address("postgresql://reader@host/clinic"), is_address("visits.parquet")
    (True, False)
    """
    return isinstance(source, str) and _ADDRESS.match(source) is not None


def is_spark_address(source: object) -> bool:
    """Return whether a source is the address of a Spark: of Connect, or of a master.

    >>> [is_spark_address(one) for one in ("sc://host:15002", "local[4]", "local.parquet")]
    [True, True, False]
    """
    return isinstance(source, str) and _SPARK.match(source) is not None


def looks_like_address(source: str) -> bool:
    """Return whether a text was meant as the address of some server, and not as the name of a file.

    >>> [looks_like_address(one) for one in ("host=db dbname=a", " postgresql://db/a", "people.ledger")]
    [True, True, False]
    """
    return _OTHER.search(source) is not None


def has_password(address: str) -> bool:
    """Return whether an address holds a password or a token, or looks so: a file is no place for it.

    >>> [has_password(one) for one in ("postgresql://me:secret@h/d", "host=h p%61ssword=x", "service=clinic")]
    [True, True, False]
    >>> has_password("postgresql://me:se/cret@h/d"), has_password("postgresql://me@h:5433/d")
    (True, False)
    >>> has_password("sc://host/;token=secret"), has_password("sc://host:15002/;use_ssl=true")
    (True, False)
    """
    return any(_PASSWORD.search(one) is not None for one in (address, unquote(address)))


def shown_line(line: str) -> str | None:
    """Return a line of a project file as errors show it; None if it may hold a password, rightly or not.

    >>> shown_line('  unit = "person" '), shown_line('address = "postgresql://me:secret')
    ('unit = "person"', None)
    """
    return None if _DOUBTFUL.search(line) else line.strip()
