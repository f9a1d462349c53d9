"""Spark: the engine itself bounds contributions, and only integers of groups leave it."""

from sfumato.backends.spark.backend import SparkBackend
from sfumato.backends.spark.source import SparkTables

__all__ = ["SparkBackend", "SparkTables"]
