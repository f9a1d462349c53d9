"""Functions that all engines spell alike, and the forms that others are made of."""

from __future__ import annotations

from functools import partial

from sfumato.backends.dialect import Arguments, Renderer, Writer
from sfumato.catalog.kind import Kind
from sfumato.plan.functions import common_kind

__all__ = ["COMMON", "called", "common", "form"]


def form(pattern: str, of: Kind | None, write: Writer, arguments: Arguments, kind: Kind) -> str:
    """Put arguments into a form, each as a value of a kind; None: as what it is."""
    return pattern.format(*(write(argument, of) for argument in arguments))


def called(name: str, of: Kind | None, write: Writer, arguments: Arguments, kind: Kind) -> str:
    """Call a function whose arguments are of a kind, or, for None, of the kind of its value."""
    return f"{name}({', '.join(write(argument, of or kind) for argument in arguments)})"


def common(arguments: Arguments) -> Kind:
    """Return the kind as which arguments are compared."""
    kinds = [argument.kind for argument in arguments if argument.kind is not None]
    if Kind.TIMESTAMP in kinds:
        return Kind.TIMESTAMP
    return common_kind(tuple(kinds)) or Kind.INTEGER


def _compared(pattern: str, write: Writer, arguments: Arguments, kind: Kind) -> str:
    """Put arguments into a form as values of their common kind."""
    return form(pattern, common(arguments), write, arguments, kind)


def _in(write: Writer, arguments: Arguments, kind: Kind) -> str:
    value, *options = (write(argument, common(arguments)) for argument in arguments)
    return f"({value} IN ({', '.join(options)}))"


def _nullif(write: Writer, arguments: Arguments, kind: Kind) -> str:
    shared = common(arguments)
    left, right = (write(argument, shared) for argument in arguments)
    if arguments[0].kind in (None, shared):
        return f"nullif({left}, {right})"
    return f"CASE WHEN {left} = {right} THEN NULL ELSE {write(arguments[0], kind)} END"


COMMON: dict[str, Renderer] = {
    **{name: partial(called, name, None) for name in ("least", "greatest", "coalesce")},
    **{name: partial(_compared, f"({{}} {name} {{}})") for name in ("=", "<>", "<", "<=", ">", ">=")},
    "between": partial(_compared, "({} BETWEEN {} AND {})"),
    "in": _in,
    "nullif": _nullif,
    **{name: partial(form, f"({{}} {name.upper()} {{}})", Kind.BOOLEAN) for name in ("and", "or")},
    "not": partial(form, "(NOT {})", Kind.BOOLEAN),
    "is_null": partial(form, "({} IS NULL)", None),
}
"""The functions that every dialect has as they are here."""
