"""Level errors: how far off each level of a consistent release may be, as numbers and as a picture."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sfumato.aggregates.linear import fitted_widths, half_width
from sfumato.core.noise_sums import miss
from sfumato.errors import InvalidArgument
from sfumato.plots import Axis, Bars, Picture
from sfumato.release.answers import NoisyTable
from sfumato.release.release import Release

__all__ = ["LevelError", "level_errors", "level_picture"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelError:
    """What the largest interval of a column in a grouping set allows: half of its width.

    `alone` is the same of the set's own measurement, before it was made consistent with the others.

    >>> LevelError(column="n", keys=("state",), groups=3, error=5.0, alone=9.0).label
    'state (3)'
    """

    column: str
    keys: tuple[str, ...]
    groups: int
    error: float
    alone: float

    @property
    def label(self) -> str:
        """The name of the level: its last key, and how many groups it has."""
        return f"{', '.join(self.keys) or 'total'} ({self.groups:,})"


def level_errors(release: Release, level: float = 0.95) -> tuple[LevelError, ...]:
    """Return the error of each level of each column, the coarsest first; nothing if it is not consistent."""
    table = next((one for one in release.tables if one.name == release.source), None)
    if table is None or not table.consistent:
        return ()
    names = {
        origin.column: name
        for name, origin in zip(release.columns, release.origins, strict=True)
        if origin is not None
    }
    return tuple(_errors(table, names, level))


def _errors(table: NoisyTable, names: dict[str, str], level: float) -> Iterator[LevelError]:
    keys = [names.get(key, key) for key, _ in table.keys]
    places = sorted(range(len(table.groups)), key=lambda place: len(table.groups[place].grouping_set))
    for answer in table.answers:
        worths = answer.function.record.linear(answer) or dict.fromkeys(answer.measures, answer.weight)
        weights = list(worths.values())
        for place in places if answer.name in names else ():
            groups = table.groups[place]
            if groups.fitted is None:
                continue
            fitted = [groups.fitted[name] for name in worths]
            noises = [table.noise(name, place) for name in worths]
            own = [one / fit.parts for one, fit in zip(weights, fitted, strict=True)]
            widths = fitted_widths(own, fitted, [one.law for one in noises], level)
            yield LevelError(
                column=names[answer.name],
                keys=tuple(keys[at] for at in groups.grouping_set),
                groups=len(groups.keys),
                error=max(widths) * abs(float(own[0])),
                alone=half_width(weights, noises, miss(level)),
            )


def level_picture(release: Release, column: str | None = None, *, level: float = 0.95) -> Picture:
    """Return what `Release.plot_levels` shows."""
    errors = level_errors(release, level)
    wanted = column or next((one.column for one in errors), None)
    shown = [one for one in errors if one.column == wanted]
    if not shown:
        hint = "ask with consistent=True, and name a column that is answered by levels"
        raise InvalidArgument("there are no levels to draw", place="column", hints=(hint,))
    return Picture(
        title=f"Error of {wanted} by level",
        caption=f"Half of the widest interval of each level, which covers {level:.4g}. In brackets: groups.",
        x=Axis(title="level"),
        y=Axis(title="error"),
        marks=(
            Bars(label="consistent", bars=tuple((one.label, one.error) for one in shown)),
            Bars(label="measured alone", bars=tuple((one.label, one.alone) for one in shown)),
        ),
    )
