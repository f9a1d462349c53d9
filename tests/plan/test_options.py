"""One table of options: Python, the command line and the page are made from it."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

import pytest
from typer.main import get_command

import sfumato as sf
from sfumato.cli import app
from sfumato.cli.question_flags import FLAGS, options_of
from sfumato.plan.options import QUESTION_OPTIONS, Options, options_explained
from tests.plan.options_table import table, written

LIMITS = {"--max-groups", "--max-rows", "--max-rows-total"}


def flags_of(command: str) -> set[str]:
    """Return the flags of a command."""
    group: Any = get_command(app)
    return {flag for parameter in group.commands[command].params for flag in parameter.opts}


def test_the_page_has_the_table() -> None:
    assert written() == table(), "run: python -m tests.plan.options_table"


def test_the_help_of_python_says_what_each_option_does() -> None:
    for name, option in QUESTION_OPTIONS.items():
        assert f"- `{name}`: {option.says}" in (sf.Database.sql.__doc__ or "")

    @options_explained
    def silent() -> None: ...

    assert "- `noise`: " in (silent.__doc__ or "")


def test_commands_have_the_flags_of_the_table() -> None:
    flags = {one.name for one in FLAGS.values()}
    assert flags >= {*LIMITS, "--losses", "--selected", "--consistent", "--level-shares", "--non-negative"}
    assert flags_of("query") >= flags and flags_of("explain") >= flags
    assert flags_of("losses") & flags == LIMITS  # what a question loses depends on them alone


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ({name: {"switch": True, "number": 3, "numbers": "1, 2"}[flag.takes]}, name)
        for name, flag in FLAGS.items()
    ],
)
def test_a_flag_becomes_an_option(given: dict[str, Any], read: str) -> None:
    said = options_of(given)
    assert list(said) == [read]
    if read == "level_shares":
        said["consistent"] = True
    assert getattr(Options(**said), read) != getattr(Options(), read)  # type: ignore[arg-type]


def test_flags_that_are_not_given_say_nothing() -> None:
    assert options_of({"max_groups": None, "keys": False, "level_shares": "", "losses": False}) == {}


def test_the_record_has_what_the_table_has() -> None:
    assert {one.name for one in fields(Options)} - {"epsilon"} == set(QUESTION_OPTIONS)
    for option in QUESTION_OPTIONS.values():
        assert re.fullmatch(r"[A-Z`].*\.", option.says)


def test_empty_lists_are_copied_too() -> None:
    """A list that is filled after it was read would go past the checks of its numbers."""
    shares: list[Any] = []
    weights: dict[str, Any] = {}
    options = Options(level_shares=shares, weights=weights)  # type: ignore[arg-type]
    shares.append(-1)
    weights["n"] = -1
    assert options.level_shares == () and options.weights == {}
