"""Publication: noisy tables, put through free post-processing, become a release."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from sfumato.aggregates.answer import Answer
from sfumato.analysis.clipping_bias import SEEN
from sfumato.analysis.loss_measurement import MEASURED_PART, QuestionLoss
from sfumato.analysis.pricing import Cost
from sfumato.analysis.remainder_group import LABEL
from sfumato.catalog.kind import Kind
from sfumato.errors import QueryRefused
from sfumato.plan.tree import GROUPING_SET
from sfumato.release.answers import NoisyTable, Origin, tabulate
from sfumato.release.bins import by_bin, shown_histogram
from sfumato.release.lineage import chooses, trace
from sfumato.release.noise import NoisyGroups
from sfumato.release.plain_tables import plain_table_of
from sfumato.release.release import Release
from sfumato.release.reports import Reported
from sfumato.release.sandbox import PlainTable, query

__all__ = ["cost_record", "loss_note", "notes_of", "publish"]

_Followed = tuple[PlainTable, tuple[Origin | None, ...], tuple[int, ...] | None, str | None]


def publish(
    tables: tuple[NoisyTable, ...],
    postprocessing: str | None,
    *,
    public: Mapping[str, Any] | None = None,
    cost: Mapping[str, Any] | None = None,
    notes: tuple[str, ...] = (),
    labels: Mapping[str, Mapping[str, str]] | None = None,
    reported: Mapping[str, Reported] | None = None,
) -> Release:
    """Return the release of noisy tables: the only one as it is, or what `postprocessing` makes of them.

    `reported` are, by table, the aggregates of which post-processing wants intervals, too. Where
    `postprocessing` fails on these very numbers: the first table itself, its columns called by their
    `labels`, with a note that says why: what was paid for is not lost.
    """
    wanted = reported or {}
    tables_by_name = {table.name: plain_table_of(table, wanted.get(table.name, ())) for table in tables}
    if postprocessing is None:
        followed = _whole(tables[0], tables_by_name)
    else:
        try:
            followed = _processed(tables_by_name, postprocessing, public)
        except QueryRefused as refusal:
            if not tables:  # nothing was paid for
                raise
            followed = _whole(tables[0], tables_by_name, (labels or {}).get(tables[0].name, {}))
            notes = (*notes, _unprocessed(refusal, len(tables)))
    plain, origins, lines, source = followed
    shown = next((table for table in tables if table.name == source), None)
    among = _chosen_among(postprocessing, tables_by_name, shown)
    if among is not None:
        choice = f"noisy numbers choose which of {among} rows are shown"
        notes = (*notes, f"{choice}: intervals are wide enough for all of them at once")
    names = {one.column: name for one, name in zip(origins, plain.columns, strict=True) if one is not None}
    binned = shown_histogram(origins, shown)
    told = [
        note for table in tables for note in notes_of(table, names if table.name == source else {}, binned)
    ]
    release = Release(
        columns=_unique(plain.columns),
        types=plain.types,
        rows=tuple(zip(*plain.values, strict=True)) if plain.values else (),
        origins=origins,
        lines=lines,
        source=source,
        tables=tables,
        cost=cost or {},
        notes=(*dict.fromkeys(told), *notes),
        among=among,
    )
    if binned is None:
        return release
    found = by_bin(release, binned)
    return replace(found, columns=_unique(found.columns))


def cost_record(*costs: Cost) -> dict[str, Any]:
    """Return what several questions of one request cost, as plain data.

    Each has a part of what one epsilon allows, so that epsilon and the delta of losses are those of all
    of them together; the chances that a key shows what it should not add up. Where the parts add up to
    more than one, so do the epsilons.
    """
    together = sum((cost.part for cost in costs), Fraction(0)) <= 1
    keys = sum((cost.keys_delta for cost in costs), Fraction(0))
    losses = [cost.delta - cost.keys_delta for cost in costs]
    return {
        "epsilon": max(cost.epsilon for cost in costs) if together else sum(cost.epsilon for cost in costs),
        "delta": keys + (max(losses) if together else sum(losses)),
        "keys_delta": keys,
        "events": [cost.event.to_dict() for cost in costs],
    }


def notes_of(table: NoisyTable, shown: Mapping[str, str], binned: Answer | None = None) -> tuple[str, ...]:
    """Return what a reader of a noisy table should know, from the plan alone; `shown` renames aggregates.

    Of a histogram that is shown bin by bin there is nothing to say.
    """
    notes = []
    if table.consistent:
        notes.append("answers of all grouping sets add up: each group is the sum of its parts")
    if table.consistent and table.non_negative:
        notes.append(
            "counts were made whole numbers from zero on that add up: that is biased, small ones are too high"
            " on average and large ones too low; intervals are around the unbiased estimates"
        )
    elif table.non_negative:
        notes.append("counts below zero were raised to zero, which makes small ones too high on average")
    elif any(answer.function.record.counts for answer in table.answers):
        notes.append("counts may be negative: that is the noise")
    if table.selected is not None:
        notes.append(
            f"groups are shown if {table.selected}:"
            " smaller ones are missing, and intervals do not allow for that choice"
        )
    if table.others:
        text = any(kind is Kind.TEXT for _, kind in table.keys)
        which = f"`{LABEL}`" if text else "whose keys are all NULL, the last unless sorted,"
        notes.append(f"the row {which} is all that is in no group that is shown")
    for answer in table.answers:
        if answer == binned:
            continue
        name = f"`{shown[answer.name]}`" if answer.name in shown else "an aggregate"
        noises = [noise for noise in table.noises if noise.measure in answer.measures]
        notes += answer.function.record.notes(answer, noises, name, shown=answer.name in shown)
    return tuple(dict.fromkeys(notes))


def _processed(
    tables_by_name: Mapping[str, PlainTable], postprocessing: str, public: Mapping[str, Any] | None
) -> _Followed:
    """Run post-processing, where possible with a hidden column that follows rows to the noisy table."""
    followed = trace(postprocessing, {name: plain.traced for name, plain in tables_by_name.items()})
    if followed is not None and followed.plain:
        whole = tables_by_name[followed.table]
        places = [whole.columns.index(origin.column) for origin in followed.origins if origin is not None]
        shown = PlainTable(
            columns=followed.names,
            types=tuple(whole.types[place] for place in places),
            values=tuple(whole.values[place] for place in places),
        )
        return shown, followed.origins, tuple(range(_length(whole))), followed.table
    if followed is not None:
        try:
            plain = query(tables_by_name, followed.sql, public=public)
        except QueryRefused:
            pass  # an aggregate, say, cannot stand beside a row number: no intervals
        else:
            shown = PlainTable(columns=plain.columns[:-1], types=plain.types[:-1], values=plain.values[:-1])
            return shown, followed.origins, tuple(plain.values[-1]), followed.table
    plain = query(tables_by_name, postprocessing, public=public)
    return plain, (None,) * len(plain.columns), None, None


def _chosen_among(
    postprocessing: str | None, tables_by_name: Mapping[str, PlainTable], table: NoisyTable | None
) -> int | None:
    """Return how many rows a noisy table has, where noisy numbers choose which are shown."""
    if postprocessing is None or table is None or len(table.sets) == 1:
        return None
    known = {GROUPING_SET, *(name for name, _ in table.keys)}
    noisy = {column for plain in tables_by_name.values() for column in plain.columns} - known
    return len(table.sets) if chooses(postprocessing, noisy) else None


def _whole(
    table: NoisyTable, tables_by_name: Mapping[str, PlainTable], labels: Mapping[str, str] | None = None
) -> _Followed:
    """Return a noisy table as it is."""
    plain, number = tables_by_name[table.name], len(table.columns)
    names = tuple((labels or {}).get(name, name) for name in table.columns)
    shown = PlainTable(columns=names, types=plain.types[:number], values=plain.values[:number])
    origins = tuple(Origin(column=column) for column in table.columns)
    return shown, origins, tuple(range(_length(plain))), table.name


def _unprocessed(refusal: QueryRefused, tables: int) -> str:
    reason = refusal.message.removeprefix("post-processing failed: ")
    which = "the noisy table itself" if tables == 1 else f"the first of {tables} noisy tables (all: .tables)"
    return f"post-processing failed on these numbers ({reason}): this is {which}, and nothing is lost"


def _length(plain: PlainTable) -> int:
    return len(plain.values[0]) if plain.values else 0


def _unique(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return names that differ: a repeated one gets a number."""
    taken: list[str] = []
    for name in names:
        number, free = 1, name
        while free in taken or (number > 1 and free in names):
            free, number = f"{name}_{number}", number + 1
        taken.append(free)
    return tuple(taken)


# -- what caps and bounds took ---------------------------------------------------------------------------


def loss_note(loss: QuestionLoss, noisy: tuple[NoisyGroups, ...]) -> str:
    """Return the sentence that tells measured losses, each share with its interval."""
    assert loss.bounding is not None and loss.cost is not None
    table = tabulate("losses", noisy, loss.bounding, loss.cost)
    answers = {answer.name: answer for answer in table.answers}
    said = []
    if "kept" in answers:
        kept = _share(table, answers["kept"], answers["found"])
        left = None if kept is None else (1 - kept[0], 1 - kept[2], 1 - kept[1])
        what = "rows" if "rows" in answers or loss.limits.caps_rows else "places of units in groups"
        said.append(f"{_told(left)} of the {what} are left out by {loss.limits.said_caps}")
    for name, answer in answers.items():
        if name.startswith("outside_"):
            share = _share(table, answer, answers["rows"])
            said.append(
                f"{_told(share)} of the values of `{name.removeprefix('outside_')}` lie beyond bounds"
            )
    said.append(
        f"measured for {float(MEASURED_PART):.0%} of the cost, over at most {SEEN} times what caps leave of a"
        " unit; not covered by the intervals of answers"
    )
    return "; ".join(said)


def _share(table: NoisyTable, part: Answer, whole: Answer) -> tuple[float, float, float] | None:
    """Return a share between 0 and 1, and the ends of its interval; None where they say nothing."""
    [top], [bottom] = table.aggregate(part, None).values, table.aggregate(whole, None).values
    ratio = table.ratio(part, whole, 0.95)
    if ratio is None or bottom <= 0:
        return None
    low, high = (min(1.0, max(0.0, end)) for end in (ratio.low[0], ratio.high[0]))
    if math.isnan(low + high) or high - low >= 1:
        return None
    return min(1.0, max(0.0, top / bottom)), low, high


def _told(share: tuple[float, ...] | None) -> str:
    if share is None:
        return "an unknown share (there is too little budget, or too little data, to tell)"
    value, low, high = share
    return f"about {value:.1%} ({low:.1%}..{high:.1%})"
