"""The release of a workload: the answers of several questions, with one cost and one receipt."""

from __future__ import annotations

import html as _html
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sfumato.errors import InvalidArgument, Unsupported
from sfumato.release.release import Release
from sfumato.release.storage import decode, dump, encode, load

__all__ = ["WorkloadRelease", "restored"]

_FORMAT = 1
_TAG = "workload"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WorkloadRelease:
    """The published answers of a workload, in the order of its questions. All of it may be shown.

    `cost` and `receipt` are of all of them together; the answers have none of their own.

    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> people = pa.table({"person": range(900), "age": [30, 60, 90] * 300})
    >>> db = sf.connect(people, name="people", unit="person", max_rows=1, budget=sf.Budget(epsilon=3),
    ...                 columns={"age": sf.between(0, 100)})
    >>> asked = {"n": "SELECT COUNT(*) AS n FROM people", "age": "SELECT AVG(age) AS age FROM people"}
    >>> released = db.workload(asked, epsilon=1).release()
    >>> released.names, released["n"].columns, len(released)
    (('n', 'age'), ('n',), 2)
    """

    names: tuple[str, ...]
    releases: tuple[Release, ...]
    cost: Mapping[str, Any] = field(default_factory=dict)
    receipt: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.releases)

    def __iter__(self) -> Iterator[Release]:
        return iter(self.releases)

    def __getitem__(self, which: str | int) -> Release:
        """Return the answer of a question, by its name or its place."""
        if isinstance(which, str):
            if which not in self.names:
                hint = f"it has {', '.join(self.names[:10])}"
                raise InvalidArgument(f"this workload has no `{which}`", place="workload", hints=(hint,))
            return self.releases[self.names.index(which)]
        return self.releases[which]

    def with_receipt(self, receipt: Mapping[str, Any]) -> WorkloadRelease:
        """Return the same answers with a receipt."""
        return replace(self, receipt=receipt)

    def to_json(self) -> str:
        """Return the one JSON text of this release; `from_json` gives it back, and it the same text."""
        answers = [[name, one.to_dict()] for name, one in zip(self.names, self.releases, strict=True)]
        return dump(
            {
                "format": _FORMAT,
                _TAG: answers,
                "cost": encode(dict(self.cost)),
                "receipt": encode(dict(self.receipt)),
            }
        )

    @staticmethod
    def from_json(text: str) -> WorkloadRelease:
        """Return the release that was stored as `text`."""
        record = load(text)
        if record.get("format") != _FORMAT or _TAG not in record:
            raise Unsupported("a stored release of another format", place="text")
        try:
            return WorkloadRelease(
                names=tuple(name for name, _ in record[_TAG]),
                releases=tuple(Release.from_json(dump(one)) for _, one in record[_TAG]),
                cost=decode(record["cost"]),
                receipt=decode(record["receipt"]),
            )
        except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError):
            raise InvalidArgument("this stored release is damaged", place="text") from None

    def __repr__(self) -> str:
        parts = [f"{name}\n{one!r}" for name, one in zip(self.names, self.releases, strict=True)]
        return "\n\n".join([*parts, f"-- all together: {self._said_cost()}"])

    def _repr_html_(self) -> str:
        parts = [
            f"<h4>{_html.escape(name)}</h4>{one._repr_html_()}"
            for name, one in zip(self.names, self.releases, strict=True)
        ]
        return "".join([*parts, f"<div><small>all together: {_html.escape(self._said_cost())}</small></div>"])

    def _said_cost(self) -> str:
        epsilon, delta = (float(self.cost.get(name, 0)) for name in ("epsilon", "delta"))
        return f"epsilon {epsilon:.4g}" + (f"; delta {delta:.3g}" if delta else "")


def restored(text: str) -> Release | WorkloadRelease:
    """Return what was stored as `text`: the answer of one question, or those of a workload."""
    return WorkloadRelease.from_json(text) if _TAG in load(text) else Release.from_json(text)
