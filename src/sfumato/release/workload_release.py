"""The release of a workload: the answers of several questions, with one cost and one receipt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from sfumato.errors import InvalidArgument
from sfumato.pages import Block, Notes, Page, Section
from sfumato.release.published import CLOSING, Published
from sfumato.release.release import Release
from sfumato.release.storage import decode, encode

__all__ = ["WorkloadRelease"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class WorkloadRelease(Published):
    """The published answers of a workload, in the order of its questions. All of it may be shown.

    `cost` and `receipt` are of all of them together; the answers have none of their own. Notes are theirs.

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

    kind: ClassVar[str] = "workload"

    names: tuple[str, ...]
    releases: tuple[Release, ...]

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

    def document(self, *, level: float = 0.95) -> Page:
        """Return the answers as a page: a section for each, with intervals of a level."""
        pages = [one.document(level=level) for one in self.releases]
        together = f"all together: {self.spent}"
        return Page(
            title="Answers",
            made=together,
            brief=(*self._sections(one.brief for one in pages), Notes((together,))),
            sections=self._sections(one.opening for one in pages),
            closing=CLOSING,
        )

    def _sections(self, pages: Iterable[tuple[Block, ...]]) -> tuple[Section, ...]:
        parts = enumerate(zip(self.names, pages, strict=True), 1)
        return tuple(Section(name, *blocks, anchor=f"answer-{at}") for at, (name, blocks) in parts)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, JSON-ready, from which the same can be read again."""
        answers = [[name, one.to_dict()] for name, one in zip(self.names, self.releases, strict=True)]
        paid = encode({"cost": dict(self.cost), "receipt": dict(self.receipt)})
        return {Release.kind: self.stored_format, self.kind: answers, **paid}

    @classmethod
    def _read(cls, record: dict[str, Any]) -> Self:
        return cls(
            names=tuple(name for name, _ in record[cls.kind]),
            releases=tuple(Release.from_dict(one) for _, one in record[cls.kind]),
            cost=decode(record["cost"]),
            receipt=decode(record["receipt"]),
        )

    @classmethod
    def _format_of(cls, record: Mapping[str, Any]) -> Any:
        return record.get(Release.kind)
