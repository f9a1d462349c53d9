"""The project file: what it means, every kind of mistake with its line, and there and back again."""

from __future__ import annotations

import datetime
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from sfumato.catalog import Between, Field, KeyList, Kind, OneOf, Project, one_of, read_project
from sfumato.catalog.checks import KEYS
from sfumato.catalog.project import ProjectMarginals
from sfumato.catalog.writing import project_text
from sfumato.errors import InvalidArgument, ProjectRefused

ROOT = Path(__file__).parent.parent.parent

GOOD = """\
protects = "patient"
ledger = "hospital.ledger"

[tables.people]
path = "people.parquet"
unit = "person_id"
max_groups = 2
max_rows = 5

[tables.people.columns]
age = { between = [0, 110], nullable = false }
born = { between = [1900-01-01, 2030-12-31] }
region = { one_of = ["north", "sou\\"th"] }

[tables.visits]
path = ["a.parquet", "b.parquet"]
unit = "who"

[tables.regions]
path = "regions.csv"
public = true

[budget]
epsilon = 3
delta = 1e-7
keys_delta = 2e-8
rule = "zero_concentrated"
renew = { every = "week", epsilon = 0.5 }

[policy]
ceiling = 0.1
measures = ["zero_concentrated", "pure"]

[policy.analysts."anna b"]
epsilon = 1
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "sfumato.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_what_a_file_says(tmp_path: Path) -> None:
    project = read_project(write(tmp_path, GOOD))
    people, visits, regions = (table.declaration for table in project.tables)
    assert project.unit == "patient"
    assert people.unit is not None and (people.unit.name, people.unit.column) == ("patient", "person_id")
    assert visits.unit is not None and (visits.unit.name, visits.unit.column) == ("patient", "who")
    assert regions.unit is None
    assert people.columns["age"].domain == Between(Fraction(0), Fraction(110))
    assert not people.columns["age"].nullable and people.columns["born"].nullable
    assert people.columns["born"].domain == Between(datetime.date(1900, 1, 1), datetime.date(2030, 12, 31))
    assert people.columns["region"].domain == OneOf(("north", 'sou"th'))
    assert (people.max_groups, people.max_rows) == (2, 5)
    assert project.ledger == tmp_path / "hospital.ledger"
    assert project.tables[0].source == str(tmp_path / "people.parquet")
    assert project.tables[1].source == [str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet")]


def test_numbers_are_the_decimals_that_were_written(tmp_path: Path) -> None:
    """A float would make 1e-7 a little more or less than one ten-millionth."""
    project = read_project(write(tmp_path, GOOD))
    assert project.budget.delta == Fraction(1, 10**7) and project.budget.keys_delta == Fraction(2, 10**8)
    assert project.policy.ceiling == Fraction(1, 10)
    [anna] = project.policy.analysts
    assert (anna.name, anna.budget.epsilon, anna.budget.delta) == ("anna b", 1, Fraction(1, 10**7))
    assert anna.budget.rule == project.budget.rule
    assert project.period is not None
    assert (project.period.every, project.period.budget.epsilon) == ("week", Fraction(1, 2))


def test_questions_are_kept_unless_the_file_says_otherwise(tmp_path: Path) -> None:
    assert read_project(write(tmp_path, GOOD)).policy.keep_questions
    text = GOOD.replace("ceiling = 0.1", "keep_questions = false")
    assert not read_project(write(tmp_path, text)).policy.keep_questions


def test_a_tenth_of_delta_is_for_keys_unless_said(tmp_path: Path) -> None:
    project = read_project(write(tmp_path, GOOD.replace("keys_delta = 2e-8\n", "")))
    assert project.budget.keys_delta == Fraction(1, 10**8)


def rewritten(project: Project, folder: Path, **fields: tuple[Field, ...]) -> str:
    """Return the text of a new project file that says what this one says about tables and budget."""
    given = {
        "budget": project.budget,
        "ledger": project.ledger,
        "people": project.people,
        "ceiling": project.policy.ceiling,
    }
    return project_text(project.tables, **given, folder=folder, fields=fields)  # type: ignore[arg-type]


def test_there_and_back_again(tmp_path: Path) -> None:
    """What `sfumato init` writes: no period, no analysts, and one name for the unit."""
    new = re.sub(r"protects.*|renew.*|measures.*|\[policy.analysts(.|\n)*", "", GOOD)
    new = new.replace('"who"', '"person_id"')
    renyi = new.replace('"zero_concentrated"\n', '"renyi"\norder = 8\n')
    rows = new.replace('unit = "person_id"', "each_row = true\n#", 1).replace("max_", "#")
    rows = rows.replace('unit = "p', 'public = true\n#"p')
    counted = new.replace("delta = 1e-7", "delta = 1e-7\npeople = 9999999")
    binned = [new.replace("[0, 110]", f"[0, 110], bins = {bins}") for bins in ("11", "[0, 18.5, 110]")]
    for text in (new, renyi, rows, counted, *binned, new.replace("[policy]\nceiling = 0.1", "")):
        project = read_project(write(tmp_path, text))
        again = read_project(write(tmp_path, rewritten(project, tmp_path)))
        assert replace(again, written=project.written) == project


def test_columns_that_nobody_declared_become_comments(tmp_path: Path) -> None:
    project = read_project(write(tmp_path, GOOD))
    fields = {
        "people": (Field("person_id", Kind.INTEGER), Field("age", Kind.INTEGER), Field("a b", Kind.TEXT))
    }
    text = rewritten(project, tmp_path, **fields)
    assert '# "a b" = { one_of = ["..", ".."] }  # text' in text and "# person_id" not in text


# Each kind of mistake: what to change, the code, the line, and what the hint must say.
MISTAKES = [
    # not TOML at all
    ("ledger = \"hospital.ledger\"", "ledger = hospital", "SF702", 2, "quotes"),
    ("epsilon = 3\n", "epsilon = 3\nepsilon = 4\n", "SF702", 25, "each name stands once"),
    # unknown keys, at every level
    ("ledger =", "leger =", "SF703", 2, "`ledger`"),
    ("max_groups = 2", "max_group = 2", "SF703", 7, "`max_groups`"),
    ("nullable", "nulable", "SF703", 11, "`nullable`"),
    ("keys_delta = 2e-8", "key_delta = 2e-8", "SF703", 26, "`keys_delta`"),
    ('every = "week"', 'evry = "week"', "SF703", 28, "`every`"),
    ("ceiling = 0.1", "celing = 0.1", "SF703", 31, "`ceiling`"),
    ("epsilon = 1\n", "epsilom = 1\n", "SF703", 35, "`epsilon`"),
    ("[policy]", "[polcy]", "SF703", 30, "`policy`"),
    # missing keys
    ('ledger = "hospital.ledger"\n', "", "SF704", None, "remembers"),
    ('path = "people.parquet"\n', "", "SF704", 4, "path ="),
    ('unit = "person_id"\n', "", "SF704", 4, "each_row"),
    ("epsilon = 3\n", "", "SF704", 23, "0.1 to 5"),
    ('rule = "zero_concentrated"', 'rule = "renyi"', "SF704", 23, "order = 8"),
    ("[budget]", "[policy.analysts.bob]", "SF704", None, "[budget]"),
    # wrong values
    ('path = "people.parquet"', "path = 3", "SF705", 5, "quote"),
    ('unit = "person_id"', "unit = 3", "SF705", 6, "quotes"),
    ('unit = "person_id"', 'unit = "person_id"\npublic = true', "SF705", 7, "public"),
    ("public = true", 'public = "yes"', "SF705", 21, "without quotes"),
    ("public = true", "public = true\nmax_rows = 3", "SF705", 22, "leave it out"),
    ("max_groups = 2", "max_groups = 0", "SF705", 7, "1 or more"),
    ("max_rows = 5", "max_rows = 2.5", "SF705", 8, "int"),
    ("[0, 110]", "[110, 0]", "SF705", 11, "swap"),
    ("[0, 110]", "[0]", "SF705", 11, "between = [0, 110]"),
    ("[0, 110]", '[0, "110"]', "SF705", 11, "dates"),
    ("[0, 110]", "[0, inf]", "SF705", 11, "overflows"),
    ("[1900-01-01, 2030-12-31]", "[1900-01-01, 5]", "SF705", 12, ""),
    ('["north", "sou\\"th"]', "[]", "SF705", 13, ""),
    ('["north", "sou\\"th"]', '["north", 3]', "SF705", 13, ""),
    ('["north", "sou\\"th"]', '["north", "north"]', "SF705", 13, ""),
    ('one_of = ["north"', 'between = [0, 1], one_of = ["north"', "SF705", 13, "choose"),
    ("age = { between = [0, 110], nullable = false }", "age = 3", "SF705", 11, "between"),
    ("between = [0, 110],", "between = [0, 110], bins = [3, 1],", "SF705", 11, "bins=[0, 18, 65, 110]"),
    ("between = [0, 110],", "bins = 4,", "SF705", 11, "between = [0, 110]"),
    ("epsilon = 3\n", "epsilon = -3\n", "SF705", 24, "0.1 to 5"),
    ("epsilon = 3\n", 'epsilon = "3"\n', "SF705", 24, "number"),
    ("delta = 1e-7", "delta = 1.5", "SF705", 25, "1/n"),
    ("delta = 1e-7", "delta = 1e-7\npeople = 10000000", "SF705", 25, "1/n"),
    ("delta = 1e-7", "delta = 1e-7\npeople = 0", "SF705", 26, "1 or more"),
    ("keys_delta = 2e-8", "keys_delta = 2e-6", "SF705", 26, "part of delta"),
    ("delta = 1e-7\nkeys_delta = 2e-8\n", "", "SF705", 25, "delta"),
    ('rule = "zero_concentrated"', 'rule = "gausian"', "SF705", 27, "`gaussian`"),
    ('rule = "zero_concentrated"', 'rule = "zero_concentrated"\norder = 8', "SF705", 28, "renyi"),
    ('every = "week"', 'every = "weak"', "SF705", 28, "`week`"),
    ("epsilon = 0.5", "epsilon = 5", "SF705", 28, "at most 3"),
    ("ceiling = 0.1", "ceiling = 0", "SF705", 31, ""),
    ("ceiling = 0.1", "keep_questions = 1", "SF705", 31, "without quotes"),
    ('["zero_concentrated", "pure"]', '["pure"]', "SF705", 32, "pure"),
    ('["zero_concentrated", "pure"]', '["pure", "zcdp"]', "SF705", 32, ""),
    ("epsilon = 1\n", "epsilon = 4\n", "SF705", 35, "at most 3"),
    ('protects = "patient"\n', "", "SF705", 16, "protects"),
    ("[tables.regions]", '[tables."re gions"]', "SF705", 19, "letters"),
    ('unit = "who"', "each_row = true", "SF705", 17, "of its own"),
    ("[tables.visits]", "[tables.PEOPLE]", "SF705", 15, "rename"),
    ("[budget]", "[engine]\nseconds = 1e300\n[budget]", "SF705", 24, "3600 is an hour"),
    ("[budget]", "[engine]\nseconds = nan\n[budget]", "SF705", 24, "NaN"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "code", "line", "hint"), MISTAKES, ids=[m[1][:30] for m in MISTAKES])
def test_a_mistake_is_refused_with_its_line(
    tmp_path: Path, old: str, new: str, code: str, line: int | None, hint: str
) -> None:
    assert GOOD.count(old) >= 1
    path = write(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(ProjectRefused) as caught:
        read_project(path)
    error = caught.value
    assert (error.code, error.line, error.file) == (code, line, str(path)), str(error)
    assert hint in " ".join(error.hints)
    if line is not None:
        assert f"sfumato.toml:{line}" in str(error)
        assert error.text == path.read_text().splitlines()[line - 1].strip()


def test_no_private_table_is_nothing_to_protect(tmp_path: Path) -> None:
    text = GOOD.replace('unit = "person_id"\nmax_groups = 2\nmax_rows = 5', "public = true")
    with pytest.raises(ProjectRefused) as caught:
        read_project(write(tmp_path, text.replace('unit = "who"', "public = true")))
    assert caught.value.code == "SF704"


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ProjectRefused) as caught:
        read_project(tmp_path / "nothing.toml")
    assert caught.value.code == "SF701" and "sfumato init" in caught.value.hints[0]
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ProjectRefused) as caught:
        read_project(tmp_path / "binary.toml")
    assert caught.value.code == "SF701"


@pytest.mark.parametrize(
    "more",
    ["a = " + "[" * 3000 + "]" * 3000, "a = " + "9" * 5000, "a = " + "{b = " * 3000 + "1" + "}" * 3000],
)
def test_what_the_reader_has_no_room_for_is_refused(tmp_path: Path, more: str) -> None:
    with pytest.raises(ProjectRefused) as caught:
        read_project(write(tmp_path, f"{more}\n{GOOD}"))
    assert caught.value.code == "SF702" and caught.value.hints


@pytest.mark.parametrize("values", [([1980, 1981],), ({"a": 1},), (1.5, object()), ((1, 2),)])
def test_a_list_is_not_a_value(values: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidArgument, match="a value is text") as caught:
        one_of(*values)
    assert "one_of(*years)" in caught.value.hints[0]


@pytest.mark.parametrize(
    ("fields", "key", "line"),
    [
        ((Field("age", Kind.INTEGER),), "tables.people.unit", 6),
        ((Field("person_id", Kind.INTEGER), Field("aeg", Kind.INTEGER)), "tables.people.columns.age", 11),
        ((Field("person_id", Kind.INTEGER), Field("age", Kind.TEXT)), "tables.people.columns.age", 11),
        (
            (Field("person_id", Kind.INTEGER), Field("age", Kind.REAL), Field("born", Kind.INTEGER)),
            "tables.people.columns.born",
            12,
        ),
        (
            (
                Field("person_id", Kind.INTEGER),
                Field("age", Kind.REAL),
                Field("born", Kind.DATE),
                Field("region", Kind.BOOLEAN),
            ),
            "tables.people.columns.region",
            13,
        ),
    ],
)
def test_a_table_that_does_not_fit_is_refused_with_the_line(
    tmp_path: Path, fields: tuple[Field, ...], key: str, line: int
) -> None:
    project = read_project(write(tmp_path, GOOD))
    with pytest.raises(ProjectRefused) as caught:
        project.table(project.tables[0], fields)
    assert (caught.value.code, caught.value.key, caught.value.line) == ("SF706", key, line)


def test_every_key_is_documented() -> None:
    page = (ROOT / "docs" / "project-file.md").read_text()
    for table, keys in KEYS.items():
        for key in keys:
            assert f"`{key}`" in page, f"docs/project-file.md does not mention `{key}` of [{table}]"


LISTED_KEYS = """
ledger = "people.ledger"

[tables.people]
path = "people.parquet"
unit = "person_id"

[[tables.people.keys]]
columns = ["region", "year"]
values = [["north", 2020], ["south", 2021]]

[budget]
epsilon = 1
"""


MARGINALS = (
    GOOD
    + """
[marginals.yearly]
columns = ["age", "region"]
"""
)


def test_marginals_are_read(tmp_path: Path) -> None:
    more = 'table = "People"\nways = 1\nbins.age = 11\nmissing = true\nweights."age,region" = 0.1\n'
    found = read_project(write(tmp_path, MARGINALS + more)).marginals
    assert found["yearly"] == ProjectMarginals(
        columns=("age", "region"),
        table="People",
        ways=(1,),
        bins={"age": 11},
        missing=True,
        weights={("age", "region"): Fraction(1, 10)},
    )
    tables = MARGINALS.replace('["age", "region"]', '[["age", "region"], ["age"]]')
    assert read_project(write(tmp_path, tables)).marginals["yearly"].columns == (("age", "region"), ("age",))


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        ("epsilom = 1", "SF703", "`epsilon`"),
        ("epsilon = 0", "SF705", "epsilon"),
        ('table = "regions"', "SF705", "private table"),
        ('ways = "2"', "SF705", "whole number"),
        ("bins = 7", "SF705", "table of keys"),
        ("bins.age = 0", "SF705", "at least 1"),
        ('bases.age = "prefix"', "SF705", "`prefixes`"),
        ("missing = [1]", "SF705", "list of columns"),
        ('weights = "rows"', "SF705", "cells, tables"),
        ("weights.age = -1", "SF705", "weights"),
    ],
)
def test_mistakes_in_marginals_are_refused_with_their_line(
    tmp_path: Path, more: str, code: str, said: str
) -> None:
    with pytest.raises(ProjectRefused) as caught:
        read_project(write(tmp_path, f"{MARGINALS}{more}\n"))
    assert (caught.value.code, caught.value.line) == (code, MARGINALS.count("\n") + 1)
    assert said in str(caught.value)


@pytest.mark.parametrize("columns", ["", "columns = []", 'columns = "age"', 'columns = ["age", ["region"]]'])
def test_marginals_are_of_columns(tmp_path: Path, columns: str) -> None:
    text = MARGINALS.replace('columns = ["age", "region"]', columns)
    with pytest.raises(ProjectRefused, match="columns"):
        read_project(write(tmp_path, text))


@pytest.mark.parametrize("bins", ["[0, 18, 110]", "11"])
def test_bins_are_read(bins: str, tmp_path: Path) -> None:
    text = GOOD.replace("between = [0, 110]", f"between = [0, 110], bins = {bins}")
    project = read_project(write(tmp_path, text))
    domain = project.tables[0].declaration.columns["age"].domain
    assert isinstance(domain, Between) and domain.bins == (11 if bins == "11" else (0, 18, 110))


def test_lists_of_keys_are_read_and_written_back(tmp_path: Path) -> None:
    (tmp_path / "sfumato.toml").write_text(LISTED_KEYS)
    project = read_project(tmp_path / "sfumato.toml")
    [table] = project.tables
    assert table.declaration.keys == (
        KeyList(columns=("region", "year"), rows=(("north", 2020), ("south", 2021))),
    )
    (tmp_path / "again.toml").write_text(rewritten(project, tmp_path))
    assert read_project(tmp_path / "again.toml").tables == project.tables
    fields = (Field("person_id", Kind.INTEGER), Field("region", Kind.TEXT), Field("year", Kind.INTEGER))
    made = project.table(table, fields)
    assert made.field("region").domain == OneOf(("north", "south"))  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ('columns = ["region", "year"]', 'columns = "region"', 9),
        ('columns = ["region", "year"]', 'columns = ["region"]', 8),
        ('values = [["north", 2020], ["south", 2021]]', 'values = ["north"]', 10),
        ('["south", 2021]', '["south", [2021]]', 10),
        ('["south", 2021]', '["south"]', 8),
        ('["south", 2021]', '["north", 2020]', 8),
        ('columns = ["region", "year"]', "", 8),
        ('values = [["north", 2020], ["south", 2021]]', "rows = []", 10),
    ],
)
def test_lists_of_keys_are_refused_with_their_line(tmp_path: Path, old: str, new: str, line: int) -> None:
    (tmp_path / "sfumato.toml").write_text(LISTED_KEYS.lstrip().replace(old, new))
    with pytest.raises(ProjectRefused) as refused:
        read_project(tmp_path / "sfumato.toml")
    assert refused.value.line == line - 1
