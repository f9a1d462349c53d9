"""What can be paid for: whatever has a price, and makes an answer once that is charged."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Protocol, TypeVar

from sfumato.analysis import Bounding
from sfumato.backends import Backend
from sfumato.core.events import Event
from sfumato.plan.request import Request
from sfumato.release import Published

__all__ = [
    "Chargeable",
    "Payable",
]

_Answer_co = TypeVar("_Answer_co", bound=Published, covariant=True)


class Chargeable(Protocol):
    """What has a price, and can be charged: a question, a workload of many, or a stream."""

    @property
    def request(self) -> Request: ...

    @property
    def unit(self) -> str: ...

    @property
    def event(self) -> Event: ...

    @property
    def epsilon(self) -> Fraction: ...

    @property
    def keys_delta(self) -> Fraction: ...

    def fingerprint(self) -> str: ...


class Payable(Chargeable, Protocol[_Answer_co]):
    """What `answer` has to know of a request whose cost is known: a question, or a workload of many.

    `computed` looks at the data, which is paid for by then, and returns the answer without its receipt;
    `read` returns the answer that was stored as text.
    """

    @property
    def parts(self) -> frozenset[str] | None: ...

    @property
    def all_boundings(self) -> tuple[Bounding, ...]: ...

    def computed(self, backend: Backend, public: Mapping[str, Any]) -> _Answer_co: ...

    def read(self, stored: str) -> _Answer_co: ...
