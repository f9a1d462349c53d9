"""Private frames: which plans make each of their rows from one row of one stored table.

Each row of a private frame must belong to the unit that it names. Where a row is computed from one row of one
table, it does, as the row of the table does. Where it is computed from several rows (joins, subqueries,
DISTINCT, EXCEPT), or from where a row lies (`_metadata`), one person's row could change another's.

Theorem: each row of a private frame that passes is a function of one row of one stored table.
Assumes: the engine's functions in `_FUNCTIONS` are functions of their arguments. The engine writes a node at
the beginning of a line, a subquery as `name#1 [`, a column that says where a row lies as `_metadata#1` or
`_tmp_metadata_row_index#1` (a schema of a user may name it), and any function as `name(`. A plan is written
whole (`sessions.pin`). No function of the session has the name of a built-in one (`sessions.refuse_hiding`);
one of Scala that is not registered, or of a catalog, is not seen.
Proof: by induction over the plan. Each leaf is rows that are stored, or constants. Each node of `_BY_ROW`
keeps rows, computes them one by one, makes several of one, or appends the rows of its children. Expressions
read the row alone: those that read more are subqueries, hidden columns and functions, and none is there.
Names and texts of users stand in a plan as they are, and may imitate all of this. They only add to what is
written: no text takes a node, a subquery or a function away. So a text can cause a refusal, never an opening.

A table behind JDBC or a catalog's own reader may be a view or a query there, which no plan shows. So only
rows in files and rows that a program hands over are stored rows. What made them beforehand is not seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from sfumato.errors import InvalidArgument

__all__ = ["check_rows"]

_BY_ROW = {
    *("CTERelationDef", "CTERelationRef", "Filter", "Generate", "PipeOperator", "Project", "Repartition"),
    *("RepartitionByExpression", "ResolvedHint", "Sort", "SubqueryAlias", "Union", "View", "WithCTE"),
}
_ROWS = {"HiveTableRelation", "LocalRelation", "LogicalRDD", "OneRowRelation", "Range"}
_FILES = re.compile(r".*\] (parquet|orc|csv|json|xml|text|avro)")  # a relation, to its end
_NUMBERS = re.compile(r" \(-?\d+, -?\d+, step=-?\d+(?:, splits=Some\(\d+\))?\)")  # `spark.range(30)`
_CALL = re.compile(r"[^\s(\[,<:]+(?=\()")
_READS_MORE = {  # what stands in a line, and what it is
    re.compile(r"#\d+L? \["): "a subquery",
    re.compile(r"\b_\w*metadata", re.IGNORECASE): "`_metadata`, which says where a row lies",
    re.compile(r"\.invoke\b"): "a function of a catalog",
    re.compile(r"\(redacted\)|\d+ more fields"): "a part that Spark does not show",
}
_JOINS = {"Join", "LateralJoin", "AsOfJoin"}
_FUNCTIONS = {  # functions of the engine whose value is a function of the arguments alone
    *("abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "bround", "cbrt", "ceil"),
    *("ceiling", "cos", "cosh", "cot", "csc", "degrees", "div", "e", "exp", "expm1", "factorial", "floor"),
    *("greatest", "hypot", "least", "ln", "log", "log10", "log1p", "log2", "mod", "nanvl", "negative", "pi"),
    *("pmod", "positive", "pow", "power", "radians", "rint", "round", "sec", "sign", "signum", "sin", "sinh"),
    *("sqrt", "tan", "tanh", "try_add", "try_divide", "try_mod", "try_multiply", "try_subtract"),
    *("width_bucket", "bit_count", "bit_get", "getbit", "shiftleft", "shiftright", "shiftrightunsigned"),
    *("between", "bigint", "binary", "boolean", "cast", "coalesce", "decimal", "double", "equal_null"),
    *("float", "if", "ifnull", "int", "isnan", "isnotnull", "isnull", "nullif", "nullifzero", "nvl", "nvl2"),
    *("smallint", "string", "tinyint", "try_cast", "zeroifnull", "varchar", "when"),
    *("ascii", "base64", "bin", "bit_length", "btrim", "char", "char_length", "character_length", "chr"),
    *("collate", "concat", "concat_ws", "contains", "conv", "crc32", "decode", "elt", "encode", "endswith"),
    *("find_in_set", "format_number", "format_string", "hash", "hex", "ilike", "initcap", "instr"),
    *("is_valid_utf8", "lcase", "left", "len", "length", "levenshtein", "like", "likeall", "likeany"),
    *("locate", "lower", "lpad", "ltrim", "luhn_check", "make_valid_utf8", "mask", "md5", "notlikeall"),
    *("notlikeany", "octet_length", "overlay", "parse_url", "position", "printf", "quote", "regexp"),
    *("regexp_count", "regexp_extract", "regexp_extract_all", "regexp_instr", "regexp_like"),
    *("regexp_replace", "regexp_substr", "repeat", "replace", "reverse", "right", "rlike", "rpad", "rtrim"),
    *("sha", "sha1", "sha2", "soundex", "space", "split", "split_part", "startswith", "substr"),
    *("substring", "substring_index", "to_char", "to_number", "to_varchar", "translate", "trim"),
    *("try_to_number", "try_validate_utf8", "ucase", "unbase64", "unhex", "upper", "url_decode"),
    *("url_encode", "xxhash64"),
    *("add_months", "date", "date_add", "date_diff", "date_format", "date_from_unix_date", "date_part"),
    *("date_sub", "date_trunc", "dateadd", "datediff", "datepart", "day", "dayname", "dayofmonth"),
    *("dayofweek", "dayofyear", "extract", "extractansiintervaldays", "from_unixtime"),
    *("from_utc_timestamp", "hour", "last_day", "make_date", "make_dt_interval", "make_interval"),
    *("make_timestamp", "make_timestamp_ltz", "make_timestamp_ntz", "make_ym_interval", "minute", "month"),
    *("monthname", "months_between", "next_day", "quarter", "second", "timestamp", "timestamp_micros"),
    *("timestamp_millis", "timestamp_seconds", "timestampadd", "timestampdiff", "to_date", "to_timestamp"),
    *("to_timestamp_ltz", "to_timestamp_ntz", "to_unix_timestamp", "to_utc_timestamp", "trunc"),
    *("try_make_timestamp", "try_to_date", "try_to_timestamp", "unix_date", "unix_micros", "unix_millis"),
    *("unix_seconds", "unix_timestamp", "weekday", "weekofyear", "year"),
    *("array", "array_contains", "array_distinct", "array_join", "array_max", "array_min"),
    *("array_position", "array_size", "cardinality", "element_at", "explode", "explode_outer", "flatten"),
    *("from_json", "get", "get_json_object", "inline", "inline_outer", "json_array_length", "json_tuple"),
    *("map", "map_contains_key", "map_keys", "map_values", "named_struct", "posexplode"),
    *("posexplode_outer", "sequence", "size", "slice", "sort_array", "stack", "struct", "to_json"),
    *("try_element_at",),
}
_WRITTEN = {  # options and types as the engine writes them, and the function that pads a CHAR as it is read
    *("ArrayType", "DecimalType", "MapType", "Some", "StructField", "StructType"),
    *("CharVarcharCodegenUtils.readSidePadding", "static_invoke"),
}


def check_rows(name: str, nodes: Iterable[tuple[str, str]]) -> None:
    """Refuse a private frame whose rows may be of several people: see the theorem above.

    `nodes` are all lines of its plan: the name of a node, and what stands behind it.
    """
    for node, after in nodes:
        if node in _JOINS:
            raise _refused(name, "a join", "open its tables as they are, and join them in the question")
        if node in ("Relation", "RelationV2"):
            if node == "RelationV2" or not _FILES.fullmatch(after):
                raise _refused(name, "a table without files, which may be a view or a query elsewhere")
        elif node == "Range" and _NUMBERS.fullmatch(after):
            continue
        elif node not in _BY_ROW | _ROWS:
            raise _refused(name, f"`{node}`")
        for pattern, what in _READS_MORE.items():
            if pattern.search(after):
                raise _refused(name, what)
        for called in _CALL.findall(after):
            if called not in _WRITTEN and called.lstrip("-~").lower() not in _FUNCTIONS:
                raise _refused(name, f"`{called}(`, which is not known to be a function of one row")


def _refused(name: str, what: str, *more: str) -> InvalidArgument:
    return InvalidArgument(
        f"the frame of table `{name}` may make a row from rows of several people: it has {what}",
        place=name,
        hints=(*more, "make a table, each of whose rows is about one person: frame.write.saveAsTable(..)"),
    )
