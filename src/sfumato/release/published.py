"""What leaves: a record of its cost and its receipt, which can be stored as text and shown.

A kind is a subclass, known by the key that its stored text has. Text is read back in one place, by that key.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from inspect import get_annotations
from numbers import Rational
from typing import Any, ClassVar, Self

from sfumato.errors import InvalidArgument, Unsupported
from sfumato.pages import BulletList, Facts, Page, Presentable, Section
from sfumato.release.storage import decode, dump, encode, load

__all__ = ["CLOSING", "Published"]

CLOSING = "Everything on this page was published with noise, and may be shown to anybody."
"""What the page of a release ends with."""

_ANSWER = "format"  # the kind that was stored first: workloads have its key, too


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Published(Presentable):
    """What was published. Everything in it may be shown to anybody.

    `cost` says what it spent (epsilon, delta, keys_delta, events), `receipt` when and on what account; both
    are plain dictionaries. A subclass names its `kind`: the key of its stored text that holds the number of
    the format.
    """

    kind: ClassVar[str]
    stored_format: ClassVar[int] = 1
    registry: ClassVar[dict[str, type[Published]]] = {}

    cost: Mapping[str, Any] = field(default_factory=dict)
    receipt: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __init_subclass__(cls) -> None:
        kind = cls.__dict__.get("kind")
        if kind is None:  # shared behaviour, not a kind
            return
        if any(kind in get_annotations(one) for one in cls.__mro__):
            hint = "choose another key: a field of that name would be stored in its place"
            raise InvalidArgument(f"the published kind `{kind}` has a field `{kind}`", hints=(hint,))
        known = Published.registry.get(kind)
        # A dataclass with slots is made twice; another class must not take over the texts of a kind.
        if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            hint = "choose another key"
            raise InvalidArgument(f"there is a published kind `{kind}` already", hints=(hint,))
        Published.registry[kind] = cls

    @abstractmethod
    def document(self) -> Page:
        """Return the report; `.html()` is one file that needs no other, `.text()` is for a terminal."""

    @property
    def spent(self) -> str:
        """What it cost, in words; nothing if that is not known."""
        parts = [f"epsilon {float(self.cost['epsilon']):.4g}"] if "epsilon" in self.cost else []
        parts += [f"delta {float(self.cost['delta']):.3g}"] if self.cost.get("delta") else []
        return "; ".join(parts)

    def last_sections(self) -> tuple[Section, ...]:
        """Return the sections that end a report: what to know of it, and its receipt, where there is one."""
        facts = tuple((name, str(value)) for name, value in self.receipt.items() if value is not None)
        known = (Section("What to know of it", BulletList(self.notes)),) if self.notes else ()
        return (*known, Section("Receipt", Facts(facts))) if facts else known

    def with_receipt(self, receipt: Mapping[str, Any]) -> Self:
        """Return the same with the receipt of its charge."""
        return replace(self, receipt=receipt)

    # -- storage ------------------------------------------------------------------------

    def to_json(self) -> str:
        """Return the one JSON text of this; `from_json` gives it back, and it the same text."""
        return dump(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, JSON-ready, from which the same can be read again."""
        return {self.kind: self.stored_format, **encode(self._plain())}

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return what was stored as `text`: this kind; `Published` itself reads any kind that is imported."""
        return cls.from_dict(load(text))

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """Return what was stored as plain data; an unknown kind and an unknown format are refused."""
        kind = _kind_of(record)
        if kind is None or not issubclass(kind, cls) or kind._format_of(record) != kind.stored_format:
            raise Unsupported("a stored release of another format", place="text")
        try:
            found = kind._read(dict(record))
            found._check_cost()
            return found
        except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError):
            hints = ("read another copy; the ledger keeps the answers to questions that had a key",)
            raise InvalidArgument("this stored release is damaged", place="text", hints=hints) from None

    def _check_cost(self) -> None:
        """Fail at a cost or a receipt that nobody could show: a stored text may be damaged."""
        numbers = [self.cost.get(name, 0) for name in ("epsilon", "delta", "keys_delta")]
        if not isinstance(self.receipt, Mapping) or not all(
            isinstance(one, Rational | float) for one in numbers
        ):
            raise TypeError

    def _plain(self) -> dict[str, Any]:
        """Return what is stored, as `encode` takes it: the fields."""
        return {one.name: getattr(self, one.name) for one in fields(self) if one.init}

    @staticmethod
    def _fields_of(plain: dict[str, Any]) -> dict[str, Any]:
        """Return the fields that `_plain` made plain; whatever is wrong with them is some exception."""
        return plain

    @classmethod
    def _read(cls, record: dict[str, Any]) -> Self:
        """Return what was stored; whatever is wrong with it is some exception."""
        del record[cls.kind]
        return cls(**cls._fields_of(decode(record)))

    @classmethod
    def _format_of(cls, record: Mapping[str, Any]) -> Any:
        """Return the number of the format of a record of this kind."""
        return record[cls.kind]


def _kind_of(record: Mapping[str, Any]) -> type[Published] | None:
    """Return the kind of a record: its key holds a number or a list, which a field of that name does not."""
    found = [one for kind, one in Published.registry.items() if isinstance(record.get(kind), int | list)]
    return min(found, key=lambda one: one.kind == _ANSWER, default=None)
