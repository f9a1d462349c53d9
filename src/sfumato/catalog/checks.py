"""Checks of what a project file says: each refuses a mistake with its line, its key and a hint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar

from sfumato.catalog.declaration import nearest
from sfumato.catalog.positions import Written
from sfumato.catalog.table import CAPS
from sfumato.errors import SfumatoError

__all__ = ["Checks", "KEYS", "Place"]

KEYS: dict[str, tuple[str, ...]] = {
    "": (
        "protects",
        "ledger",
        "sources",
        "tables",
        "budget",
        "policy",
        "workloads",
        "marginals",
        "streams",
        "engine",
    ),
    "sources.<name>": ("address", "environment"),
    "tables.<name>": (
        "path",
        "source",
        "table",
        "unit",
        "each_row",
        "public",
        *CAPS,
        "partition",
        "columns",
        "keys",
    ),
    "tables.<name>.keys": ("columns", "values"),
    "tables.<name>.columns.<column>": ("between", "bins", "one_of", "nullable"),
    "budget": ("epsilon", "delta", "keys_delta", "people", "rule", "order", "renew"),
    "budget.renew": ("every", "epsilon", "delta", "keys_delta"),
    "policy": ("ceiling", "measures", "keep_questions", "analysts", "invariants"),
    "policy.analysts.<name>": ("epsilon", "delta", "keys_delta"),
    "policy.invariants": ("table", "by", "totals", "count"),
    "workloads.<name>": ("file", "epsilon", "size"),
    "marginals.<name>": ("columns", "table", "ways", "weights", "bins", "bases", "missing", "epsilon"),
    "streams.<name>": (
        "question",
        "by",
        "every",
        "start",
        "horizon",
        "design",
        "epsilon",
        "periods",
        "apart",
        "late",
        "duplicates",
        "row_id",
        "purpose",
    ),
    "engine": ("memory", "question_memory", "seconds", "steps"),
}
"""Every key that a project file may have, by the table it stands in."""

Place = tuple[str | int, ...]
"""A key, by the tables it stands in."""

_T = TypeVar("_T")


class Checks:
    """What can be asked of the values of a file; `written` knows their lines."""

    def __init__(self, written: Written) -> None:
        self.written = written

    def known(self, table: Any, at: Place, kind: str, hint: str) -> None:
        """Refuse what is not a table of keys, and a key that is not one of its table."""
        self.mapping(table, at, hint)
        for name in table:
            if name not in KEYS[kind]:
                where = f"[{'.'.join(map(str, at))}]" if at else "the top of the file"
                near = nearest(name, KEYS[kind]) or f"known here: {', '.join(KEYS[kind])}"
                self.refuse(f"`{name}` is not a key of {where}", (*at, name), near, code="SF703")

    def need(self, table: Mapping[str, Any], at: Place, name: str, hint: str) -> Any:
        """Return the value of a key that must be there."""
        if name not in table:
            where = f"[{'.'.join(map(str, at))}]" if at else "the project file"
            self.refuse(f"{where} lacks `{name}`", (*at, name), hint, code="SF704")
        return table[name]

    def mapping(self, value: Any, at: Place, hint: str) -> None:
        """Refuse what is not a table of keys."""
        if not isinstance(value, dict):
            self.refuse(f"`{at[-1]}` must be a table of keys", at, hint)

    def text(self, table: Mapping[str, Any], at: Place, name: str, needed: str | None) -> str | None:
        """Return a text, None where it may be missing and is."""
        value = table.get(name) if needed is None else self.need(table, at, name, needed)
        if value is not None and (not isinstance(value, str) or not value or not value.isprintable()):
            self.refuse(f"`{name}` must be text", (*at, name), "write it in quotes")
        return value

    def flag(self, table: Mapping[str, Any], at: Place, name: str, default: bool = False) -> bool:
        """Return true or false."""
        value = table.get(name, default)
        if not isinstance(value, bool):
            self.refuse(f"`{name}` must be true or false", (*at, name), "without quotes")
        return value

    def choice(self, value: Any, at: Place, known: tuple[str, ...]) -> str:
        """Return one of several words."""
        if value not in known:
            hint = nearest(value, known) if isinstance(value, str) else None
            key = next(part for part in reversed(at) if isinstance(part, str))
            self.refuse(f"`{key}` is one of {', '.join(known)}", at, hint or f"{known[0]}, for example")
        return str(value)

    def attempt(self, at: Place, make: Callable[..., _T], *arguments: Any, **named: Any) -> _T:
        """Make a value; what it refuses is refused with its line."""
        try:
            return make(*arguments, **named)
        except SfumatoError as error:
            self.refuse(error.message, at, *error.hints)

    def refuse(self, message: str, at: Place, *hints: str, code: str = "SF705") -> NoReturn:
        """Refuse the file, at a key: by default, because of its value."""
        raise self.written.refusal(message, at, code=code, hints=tuple(hint for hint in hints if hint))
