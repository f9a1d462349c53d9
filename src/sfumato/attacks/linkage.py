"""Linkage: a table without names, joined with a list that has them: a public table, to this system."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.anonymity.classes import group
from sfumato.anonymity.columns import Flags, Integers
from sfumato.attacks.attack_result import EPSILONS, AttackResult, MeasuredRate
from sfumato.attacks.joined import Linked, Tables, alone, cells_of
from sfumato.attacks.population import Population, invent_people
from sfumato.attacks.victims import TARGET, count_of_use, enough, fair_sample, guess_bits
from sfumato.backends import DUCKDB
from sfumato.catalog.identifiers import identifier
from sfumato.errors import InvalidArgument
from sfumato.plots import Axis, Bars, Picture

__all__ = ["linkage"]

_STORY = """\
A hospital publishes what ails its patients, without their names: ZIP code, birth date, sex, diagnosis. A
voter roll, for sale to anyone, has names, ZIP codes, birth dates and sexes. Joined, they name every
patient who is the only one of their kind. In the 1990s a student named the governor of Massachusetts in
this way (Sweeney). No column of the table is a name; together they are. Through this system the attacker may
ask for the very same join, and be told how many patients with the diagnosis match each voter: with noise
that is as large as one person."""

_SECRET = "depression"  # what the attacker wants to know of an invented patient


def linkage(
    data: Any = None,
    roll: Any = None,
    *,
    on: Sequence[str] = ("zip", "birth_date", "sex"),
    secret: str = "diagnosis",
    value: Any = None,
    identity: str | None = None,
    epsilons: Sequence[float] = EPSILONS,
    people: int = 200_000,
    victims: int = 4_000,
) -> AttackResult:
    """Attack a table without names by joining it with a roll: invented ones, or one's own.

    `on` are the columns that both have. `secret` is the column that the attacker wants to read, `value`
    what it may say (by default what about half of the rows say). `identity` names a column of both tables
    that says who each row really is; it is used to check the claims, never to make them. Without a `roll`
    the attacker is taken to have a list of everybody. Each row is a person. For an owner's eyes, and no
    release.

    >>> found = linkage(people=10_000, victims=300, epsilons=(1,))
    >>> found.naive.share > 0.8
    True
    """
    if data is None:
        if roll is not None:
            raise InvalidArgument(
                "a roll needs a table to be joined with", place="data", hints=("give both, or neither",)
            )
        world = invent_people(people)
        tables = Tables.read(world.patients(), world.voters(), on=on, secret=secret, identity="person")
        known = _coarser(world)
        value = _SECRET if value is None else value
    else:
        tables = Tables.read(data, roll, on=on, secret=secret, identity=identity)
        known = _subsets(tables)
        value = tables.usual() if value is None else value
    linked = Linked.of(tables)
    says = tables.says(value)
    chosen = linked.victims[fair_sample(says[linked.victims], victims)]
    enough(
        chosen,
        "people",
        "the attack needs people who are alone with their values of the columns of `on`",
        "and some of them with, some without the value of the secret; name one: value=..",
    )
    condition = f"{identifier(secret)} = {DUCKDB.constant(value)}"
    curve = tuple(_through(tables, condition, chosen, says[chosen], epsilon) for epsilon in epsilons)
    text = f"SELECT COUNT(*) AS n FROM patients WHERE {condition}"
    of_use = count_of_use(tables.data.select([secret]), text, int(says.sum()), name="patients", unit=None)
    finding = AttackResult(
        name="linkage",
        title="Linkage: a table without names, and a list that has them",
        story=_STORY,
        success=f"one person's {secret} told right",
        naive=linked.naive(chosen),
        curve=curve,
        facts=(
            *((f"alone with {label}", f"{share:.1%}") for label, share in known),
            *linked.facts(),
            ("how many have it, at epsilon 1", of_use),
        ),
    )
    return finding.illustrated(
        f"{len(chosen):,} people who are alone with their {', '.join(on)}, half of them with what is asked "
        "for. The attacker of this system knows everything but that, and asks for each of them. The dashed "
        "curve is what epsilon states: nobody can do better, and this attacker is as good as it allows.",
        after=(_bars(known),),
    )


def _through(tables: Tables, condition: str, chosen: Integers, bits: Flags, epsilon: float) -> MeasuredRate:
    """Ask this system for the join: how many patients who have it match each of the victims."""
    unit = "record number"
    table = tables.data.select([*tables.on, tables.secret])
    victims = table.select(list(tables.on)).take(pa.array(chosen))
    matching = " AND ".join(f"t.{identifier(name)} = p.{identifier(name)}" for name in tables.on)
    text = (
        f"SELECT t.{identifier(TARGET)}, COUNT(*) AS n FROM patients p JOIN roll t ON {matching} "
        f"WHERE {condition} GROUP BY t.{identifier(TARGET)}"
    )
    return guess_bits(
        table.append_column(unit, pa.array(np.arange(table.num_rows))),
        text,
        bits,
        epsilon,
        name="patients",
        unit=unit,
        public={"roll": victims.append_column(TARGET, pa.array(np.arange(len(chosen))))},
    )


def _subsets(tables: Tables) -> tuple[tuple[str, float], ...]:
    """Return what share of rows is alone with the columns of `on`, and with all but one of them."""
    on = tables.on
    kept = [on, *([name for name in on if name != left] for left in on if len(on) > 1)]
    return tuple((", ".join(names), float(alone(cells_of([tables.data], names)[0]).mean())) for names in kept)


def _coarser(world: Population) -> tuple[tuple[str, float], ...]:
    """Return what share of an invented population is alone, by how much is known of them."""
    days, months, years = (world.born.astype(f"datetime64[{unit}]").astype(np.int64) for unit in "DMY")
    known = {
        "ZIP, birth date, sex": (world.zip, days, world.sex),
        "ZIP, birth date": (world.zip, days),
        "region, birth date, sex": (days, world.sex),
        "ZIP, month, sex": (world.zip, months, world.sex),
        "ZIP, year, sex": (world.zip, years, world.sex),
    }
    shares = []
    for label, columns in known.items():
        codes = [column - column.min() for column in columns]
        cells, _, _ = group(codes, [int(each.max()) + 1 for each in codes])
        shares.append((label, float(alone(cells).mean())))
    return tuple(shares)


def _bars(known: tuple[tuple[str, float], ...]) -> Picture:
    return Picture(
        title="Who is alone with what is known of them",
        caption="The share of people of whom there is only one with the same values. Whoever is alone can be "
        "named by anyone who knows these values, whatever else was left out of the table.",
        x=Axis(title="what is known"),
        y=Axis(title="people who are alone with it", percent=True, low=0, high=1),
        marks=(Bars(label="people who are alone", bars=known),),
    )
