"""Letters and spaces as DuckDB knows them: the meaning of LOWER, UPPER, TRIM and of the option i."""

from __future__ import annotations

from functools import cache

__all__ = ["folded", "letters", "spaces"]

_POINTS = "(SELECT unnest(range({}, 55296)) AS i UNION ALL SELECT unnest(range(57344, 1114112)))"


@cache
def letters(name: str) -> tuple[str, str]:
    """Return the letters beyond ASCII that LOWER or UPPER changes, and what they become.

    >>> old, new = letters("lower")
    >>> new[old.index("É")]
    'é'
    """
    import duckdb

    text = (
        f"SELECT chr(i::INTEGER), {name}(chr(i::INTEGER)) FROM {_POINTS.format(128)}"
        f" WHERE {name}(chr(i::INTEGER)) <> chr(i::INTEGER) ORDER BY i"
    )
    with duckdb.connect() as connection:
        found = connection.execute(text).fetchall()
    return "".join(one for one, _ in found), "".join(other for _, other in found)


@cache
def spaces() -> str:
    """Return what TRIM takes away.

    >>> " " in spaces(), "x" in spaces()
    (True, False)
    """
    import duckdb

    text = f"SELECT chr(i::INTEGER) FROM {_POINTS.format(1)} WHERE trim(chr(i::INTEGER)) = '' ORDER BY i"
    with duckdb.connect() as connection:
        return "".join(one for (one,) in connection.execute(text).fetchall())


@cache
def folded(ranges: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """Return ranges of code points and, beside them, their letters in the other case.

    >>> folded(((97, 98),))
    ((97, 98), (65, 65), (66, 66))
    """
    import duckdb

    cased = {letter for name in ("lower", "upper") for half in letters(name) for letter in half}
    cased |= {chr(place) for place in range(65, 123) if chr(place).isalpha()}
    escaped = "".join(rf"\x{{{first:x}}}-\x{{{last:x}}}" for first, last in ranges)
    text = "SELECT v FROM (SELECT unnest(?::VARCHAR[]) AS v) WHERE regexp_full_match(v, ?, 'i')"
    with duckdb.connect() as connection:
        found = connection.execute(text, [sorted(cased), f"[{escaped}]"]).fetchall()
    more = (ord(one) for (one,) in found)
    return (*ranges, *((one, one) for one in more if not any(a <= one <= b for a, b in ranges)))
