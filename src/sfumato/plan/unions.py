"""Unions: rows of the same people, from several relations, as one; the same from SQL and from Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn, Protocol

from sfumato.plan.functions import FunctionError, cast, common_kind
from sfumato.plan.scope import Output, ScopedRows
from sfumato.plan.tree import ColumnRef, Projection, Span, Union

__all__ = ["Refuse", "united"]


class Refuse(Protocol):
    """How a union is refused; `place` is the branch that does not fit."""

    def __call__(self, place: int, message: str, code: str, hint: str) -> NoReturn:
        """Raise the refusal."""
        ...


def united(
    branches: Sequence[ScopedRows], alias: str, refuse: Refuse, spans: Sequence[Span | None] = ()
) -> ScopedRows:
    """Return UNION ALL of rows of the same people; columns go by their places, and have the first's names."""
    first = branches[0]
    for place, branch in enumerate(branches):
        shape = [output.column is None for output in branch.outputs]
        if shape != [output.column is None for output in first.outputs]:
            hint = "rows of one unit, with the same columns in the same order, the unit in the same place"
            refuse(place, "the sides of UNION ALL differ in their columns", "SF404", hint)
    outputs: list[Output] = []
    for position, output in enumerate(first.outputs):
        here = [branch.outputs[position].column for branch in branches]
        kinds = [column.kind for column in here if column is not None]
        if output.column is None:
            whole = all(branch.outputs[position].whole for branch in branches)
            outputs.append(Output(name=output.name, column=None, whole=whole))
            continue
        try:
            kind = common_kind(tuple(kinds))
        except FunctionError:
            kind = None
        if kind is None:
            hint = "convert it: CAST(.. AS VARCHAR), or .cast('text')"
            refuse(len(branches) - 1, f"`{output.name}` differs in kind", "SF404", hint)
        outputs.append(Output(name=output.name, column=ColumnRef(name=f"{alias}.{output.name}", kind=kind)))
    projects = []
    for branch in branches:
        columns = tuple(
            (
                output.column.name,
                cast(ColumnRef(name=own.column.name, kind=own.column.kind), output.column.kind),
            )
            for output, own in zip(outputs, branch.outputs, strict=True)
            if output.column is not None and own.column is not None
        )
        projects.append(Projection(source=branch.relation, columns=columns))
    union = Union(sources=tuple(projects), spans=tuple(spans))
    return ScopedRows(relation=union, outputs=tuple(outputs), unit=first.unit)
