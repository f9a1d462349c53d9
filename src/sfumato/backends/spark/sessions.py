"""Sessions of our own: what a user's session has, with the settings on which meaning depends held fast.

A clone has the user's tables, temporary views and settings, and nobody else changes it. Settings that decide
what a statement means are set in it once, after frames were taken over: a frame means what it meant to
whoever made it. Classic and Connect are told apart here alone.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Timer
from typing import Any

from sfumato.backends.spark.dialect import SETTINGS
from sfumato.backends.spark.frames import FILE, unadorned
from sfumato.errors import InvalidArgument

__all__ = [
    "are_rows_held",
    "cloned",
    "is_frame",
    "of_address",
    "pin",
    "quiet",
    "refuse_hiding",
    "shorten_plans",
    "stopped_after",
    "take_over",
]

_PINNED = {
    **SETTINGS,
    "spark.sql.path.enabled": "false",  # SET PATH may put functions and tables before built-in ones and views
    "spark.sql.functionResolution.sessionOrder": "second",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.avro.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
}
_FASTER = {  # no meaning depends on it
    "spark.sql.optimizer.windowGroupLimitThreshold": "-1",  # a unit's rows would be sorted twice
    "spark.sql.execution.replaceHashWithSortAgg": "true",  # they are sorted already, and stay so
    "spark.sql.inMemoryColumnarStorage.compressed": "false",  # what is kept is read once or twice
}
_WHOLE_PLANS = {
    "spark.sql.redaction.string.regex": "(?!)",  # matches nothing: no part of a plan is hidden
    "spark.sql.maxMetadataStringLength": str(2**31 - 16),
    "spark.sql.debug.maxToStringFields": "100000",
    "spark.sql.maxPlanStringLength": str(2**31 - 16),
}
_SHORT_PLANS = {
    "spark.sql.maxMetadataStringLength": "100",
    "spark.sql.debug.maxToStringFields": "25",
    "spark.sql.maxPlanStringLength": "1000",
}
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_HELD = {  # RDDs whose rows are there already
    "org.apache.spark.rdd.LocalCheckpointRDD",
    "org.apache.spark.rdd.ParallelCollectionRDD",
    "org.apache.spark.rdd.ReliableCheckpointRDD",
}
_OURS = ContextVar("ours", default=False)  # whether a statement of ours runs in this thread
_RETRIES: dict[str, Any] = {
    "max_retries": 3,
    "initial_backoff": 50,
    "max_backoff": 1000,
    "backoff_multiplier": 4.0,
}


def is_frame(origin: Any) -> bool:
    """Return whether an origin is a frame of Spark; tells without importing it."""
    module = type(origin).__module__
    return type(origin).__name__ == "DataFrame" and module.startswith("pyspark.sql")


def _is_remote(session: Any) -> bool:
    return type(session).__module__.startswith("pyspark.sql.connect")


def of_address(address: str) -> Any:
    """Return a session of Connect (`sc://host`), or a classic one of a master (`local[4]`, `spark://host`)."""
    if address.startswith("sc://"):
        from pyspark.sql.connect.session import SparkSession as RemoteSession

        return _impatient(RemoteSession(connection=address))
    from pyspark.sql import SparkSession

    return SparkSession.builder.master(address).getOrCreate()


def cloned(session: Any) -> Any:
    """Return a session of our own, with the tables, views and settings of the user's."""
    if _is_remote(session):
        if not hasattr(session, "cloneSession"):
            raise InvalidArgument(
                "this pyspark cannot clone a session of Connect", place="tables", hints=("pyspark 4.3 can",)
            )
        session.conf.get("spark.sql.ansi.enabled")  # a server knows no session that was never used
        return _impatient(session.cloneSession())
    from pyspark.sql import SparkSession

    return SparkSession(session.sparkContext, session._jsparkSession.cloneSession())


def _impatient(session: Any) -> Any:
    """Return a session of Connect that does not wait for a server that is gone, as others do for minutes."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    session.client.set_retry_policies([DefaultPolicy(**_RETRIES)])
    return session


def take_over(own: Any, frame: Any, view: str) -> None:
    """Make a frame of the user's session a view of ours: its plan, as it was analysed there.

    Where rows come from files, the view has what Spark knows of the files, too. A plan with that column is no
    plan that anybody cached: rows and files are those that are there.
    """
    taken: Any
    if _is_remote(own):
        from pyspark.sql.connect.dataframe import DataFrame as RemoteFrame

        taken = RemoteFrame(frame._plan, own)
    else:
        from pyspark.sql.classic.dataframe import DataFrame

        plan = frame._jdf.queryExecution().analyzed()
        made = own._jvm.org.apache.spark.sql.classic.Dataset.ofRows(own._jsparkSession, plan)
        taken = DataFrame(made, own)
    taken.createOrReplaceTempView(unadorned(view))
    try:
        taken.selectExpr("*", f"_metadata AS {FILE}").createOrReplaceTempView(view)
    except Exception:
        taken.createOrReplaceTempView(view)


def are_rows_held(own: Any, view: str) -> bool:
    """Return whether each RDD of a view begins with rows that a program or a checkpoint holds.

    Another RDD reads tables or files each time, by a plan that nobody sees. Connect makes none.
    """
    if _is_remote(own):
        return True
    leaves = own.table(view)._jdf.queryExecution().analyzed().collectLeaves()
    waiting = [
        leaf.rdd()
        for leaf in map(leaves.apply, range(leaves.size()))
        if leaf.getClass().getName() == "org.apache.spark.sql.execution.LogicalRDD"
    ]
    while waiting:
        rdd = waiting.pop()
        above = rdd.dependencies()
        if above.isEmpty() and rdd.getClass().getName() not in _HELD:
            return False
        waiting += [above.apply(at).rdd() for at in range(above.size())]
    return True


def pin(own: Any) -> None:
    """Set what statements depend on, in a session of our own; texts of plans are whole, for `read_plan`."""
    for name, value in (_PINNED | _FASTER | _WHOLE_PLANS).items():
        own.conf.set(name, value)


def shorten_plans(own: Any) -> None:
    """Let Spark write plans short again: the driver keeps the texts of the last thousand statements."""
    for name, value in _SHORT_PLANS.items():
        own.conf.set(name, value)


@contextmanager
def stopped_after(own: Any, seconds: float) -> Iterator[None]:
    """Stop what this thread runs meanwhile, when its time is over; Spark itself knows no time limit."""
    tag = f"sfumato-{secrets.token_hex(8)}"
    if _is_remote(own):
        add, remove, stop = own.addTag, own.removeTag, own.interruptTag
    else:
        context = own.sparkContext
        add, remove, stop = context.addJobTag, context.removeJobTag, context.cancelJobsWithTag
    timer = Timer(seconds, stop, (tag,))
    timer.daemon = True
    add(tag)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        remove(tag)


def refuse_hiding(own: Any) -> None:
    """Refuse temporary functions with names of built-in ones: some versions of Spark would call them."""
    built_in, given = (
        {row[0].lower() for row in own.sql(f"SHOW `{which}` FUNCTIONS").collect()}
        for which in ("SYSTEM", "USER")  # quoted: a session may reserve USER
    )
    if hiding := sorted(built_in & given):
        raise InvalidArgument(
            f"the session has a temporary function `{hiding[0]}`, which hides a built-in one",
            place="tables",
            hints=("give it another name, or open the table in a new session",),
        )


@contextmanager
def quiet() -> Iterator[None]:
    """Keep pyspark from writing errors to a log of its own: they hold values."""
    from pyspark.logger import PySparkLogger

    for name in _LOGGERS:
        logger = PySparkLogger.getLogger(name)
        if _is_ours_silent not in logger.filters:
            logger.addFilter(_is_ours_silent)
    before = _OURS.set(True)
    try:
        yield
    finally:
        _OURS.reset(before)


def _is_ours_silent(record: logging.LogRecord) -> bool:
    return not _OURS.get()
