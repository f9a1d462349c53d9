"""Places of keys: the scan finds exactly the keys that the standard reader finds, where they stand."""

from __future__ import annotations

import tomllib

import pytest

from sfumato.catalog.positions import FilePosition, positions

TRICKY = '''\
# [not.a.table] in a comment
top = "a # b ] } = [x]"   # and = after
"quoted key" = 'lit # eral'
dotted . name = 1
a."b.c".d = true

[table]
text = """
[inside] = 1
quote \\""" still ""inside""
"""
raw = \'\'\'
x = 1
\\\'\'\'
list = [ 1, # one
  [2, 3], "],", { deep = 4, "e f" = [5] },
  2020-01-01T00:00:00Z,
]
inline = { x = 1, y.z = "}", }

  [ table . "sub table" ]
    k=1.5e-7

[[many]]
n = 1
[many.inner]
m = 2
[[many]]
n = 3
[[many.deeper]]
q = 4
'''.replace('"}", }', '"}" }')


def paths(value: object, path: tuple[str | int, ...] = ()) -> set[tuple[str | int, ...]]:
    found = {path} - {()}
    if isinstance(value, dict):
        for key, inner in value.items():
            found |= paths(inner, (*path, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            found |= paths(inner, (*path, number))
    return found


@pytest.mark.parametrize("text", [TRICKY, TRICKY.replace("\n", "\r\n"), "", "# only\n", "x = 1", "[a]\n[b]"])
def test_the_keys_are_those_of_the_standard_reader(text: str) -> None:
    assert set(positions(text)) == paths(tomllib.loads(text))


def test_each_key_stands_where_it_says() -> None:
    lines = TRICKY.splitlines()
    for path, place in positions(TRICKY).items():
        here = lines[place.line - 1][place.column - 1 :]
        name = path[-1]
        if isinstance(name, str):
            assert here.startswith((name, f'"{name}"')), (path, place, here)


def test_lines_count_through_long_strings_and_lists() -> None:
    found = positions(TRICKY)
    assert found["table", "inline", "y", "z"] == FilePosition(19, 21)
    assert found["table", "list", 2] == FilePosition(16, 11)
    assert found["many", 1, "deeper", 0, "q"] == FilePosition(31, 1)
