"""The flags of a question's options: made from the table of them, and read back into what Python takes."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, cast

from typer import Option

from sfumato.errors import InvalidArgument
from sfumato.plan.options import QUESTION_OPTIONS, OptionFlag, QuestionOptions

__all__ = ["ANSWER_FLAGS", "FLAGS", "flag", "options_of", "parameter_of", "shares_of"]

FLAGS: Mapping[str, OptionFlag] = {
    name: option.flag for name, option in QUESTION_OPTIONS.items() if option.flag is not None
}
"""The flag of each option that has one."""

ANSWER_FLAGS = tuple(name for name in FLAGS if not QUESTION_OPTIONS[name].limit)
"""The options that say how an answer is made and shown; all other flags limit what one unit adds to it."""

_TYPES: Mapping[str, tuple[Any, Any]] = {
    "switch": (bool, False),
    "number": (int | None, None),
    "numbers": (str, ""),
}
"""Types of parameters, with the values that mean that nothing was given."""


def flag(name: str) -> Any:
    """Return the flag of an option, as the command line is told of it."""
    return Option(FLAGS[name].name, help=FLAGS[name].help)


def parameter_of(name: str) -> tuple[Any, Any]:
    """Return the annotation and the default of the parameter of an option."""
    kind, default = _TYPES[FLAGS[name].takes]
    return Annotated[kind, flag(name)], default


def options_of(given: Mapping[str, Any]) -> QuestionOptions:
    """Return options as Python takes them, from the values of their parameters.

    >>> options_of({"max_groups": 2, "max_rows": None, "keys": True, "losses": False})
    {'max_groups': 2, 'keys': 'selected'}
    """
    found = {}
    for name, value in given.items():
        if value != _TYPES[FLAGS[name].takes][1]:
            found[name] = _read(FLAGS[name], value)
    return cast(QuestionOptions, found)


def _read(flag: OptionFlag, value: Any) -> Any:
    match flag.takes:
        case "switch":
            return flag.value
        case "number":
            return value
        case "numbers":
            return shares_of(value) or None


def shares_of(text: str) -> tuple[Decimal, ...]:
    """Return the shares that a text lists, divided by commas."""
    try:
        return tuple(Decimal(one) for one in map(str.strip, text.split(",")) if one)
    except ArithmeticError:
        hint = "--level-shares 0.02,0.08,0.9: one for each level, the coarsest first"
        raise InvalidArgument("shares are numbers", place="--level-shares", hints=(hint,)) from None
