"""The attack lab from the command line: one command per attack, and all of them on one page."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from sfumato.cli.options import Plain, PlainOption, command, group_of, names_of
from sfumato.cli.outputs import can_write, write
from sfumato.cli.screen import working

if TYPE_CHECKING:
    from sfumato.attacks import AttackResult

__all__ = ["attack_app"]

attack_app = group_of("Attack what people publish, and what this system publishes: with what success?")

_Data = Annotated[
    str | None,
    Option("--data", help="Your own table: Parquet, CSV or DuckDB. What is found is for its owner."),
]
_Trait = Annotated[str | None, Option("--trait", help="Its column of true and false that is the secret.")]
_Secret = Annotated[str, Option("--secret", help="The column that the attacker wants to read.")]
_Quasi = Annotated[str, Option("--on", help="What the attacker knows: columns, divided by commas.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    """What every attack is released with, and how its result is shown."""

    epsilon: Annotated[
        list[float] | None, Option("--epsilon", "-e", help="An epsilon to release with; may be repeated.")
    ] = None
    html: Annotated[
        str | None, Option("--html", help="Write a page with pictures, in one file that needs no other.")
    ] = None
    style: PlainOption = Plain.table


@command(attack_app, "differencing")
def _differencing(*, data: _Data = None, trait: _Trait = None, options: _Options) -> None:
    """Two totals whose difference is one person; two averages whose difference is a salary."""
    _attack(options, "differencing", data=data, trait=trait)


@command(attack_app, "refusing")
def _refusing(options: _Options) -> None:
    """An auditor of queries that looks at the data to decide what to refuse: its refusals tell."""
    _attack(options, "refusing")


@command(attack_app, "averaging")
def _averaging(*, data: _Data = None, trait: _Trait = None, options: _Options) -> None:
    """The same question, a thousand times, until the noise has gone; or until the budget says no."""
    _attack(options, "averaging", data=data, trait=trait)


@command(attack_app, "reconstruction")
def _reconstruction(
    *,
    data: _Data = None,
    trait: _Trait = None,
    people: Annotated[int, Option("--people", help="How many people to invent.")] = 1000,
    method: Annotated[
        str, Option("--method", help="'least squares' or 'linear programming'.")
    ] = "least squares",
    options: _Options,
) -> None:
    """A whole secret column, rebuilt from many counts that are a little too accurate."""
    _attack(options, "reconstruction", data=data, trait=trait, people=people, method=method)


@command(attack_app, "census")
def _census(*, data: _Data = None, options: _Options) -> None:
    """People rebuilt from small-area tables by solving for whoever fits all of them."""
    _attack(options, "census", data=data)


@command(attack_app, "linkage")
def _linkage(
    *,
    data: _Data = None,
    roll: Annotated[
        str | None, Option("--roll", help="A list with names that shares columns with the table.")
    ] = None,
    on: _Quasi = "zip,birth_date,sex",
    secret: _Secret = "diagnosis",
    identity: Annotated[
        str | None, Option("--identity", help="A column of both that says who is who, to check claims.")
    ] = None,
    options: _Options,
) -> None:
    """A table without names, joined with a list that has them."""
    _attack(options, "linkage", data=data, roll=roll, on=names_of(on), secret=secret, identity=identity)


@command(attack_app, "ratings")
def _ratings(*, data: _Data = None, options: _Options) -> None:
    """A few approximate ratings and dates, and a viewer is found among thousands."""
    _attack(options, "ratings", data=data)


@command(attack_app, "membership")
def _membership(
    *,
    data: _Data = None,
    attributes: Annotated[
        str | None, Option("--attributes", help="Columns of true and false that are published as means.")
    ] = None,
    options: _Options,
) -> None:
    """Who took part in a study, told from nothing but the means of many attributes."""
    named = None if attributes is None else names_of(attributes)
    _attack(options, "membership", data=data, attributes=named)


@command(attack_app, "homogeneity")
def _homogeneity(
    *, data: _Data = None, on: _Quasi = "zip,birth_date,sex", secret: _Secret = "diagnosis", options: _Options
) -> None:
    """What a k-anonymous table tells all the same, and who knows more than it."""
    _attack(options, "homogeneity", data=data, quasi=names_of(on), secret=secret)


@command(attack_app, "all", without=("epsilon",))
def _all(options: _Options) -> None:
    """Every attack on invented people: with --html, a page that a teacher would show a class."""
    first = ("linkage", "ratings", "differencing", "refusing", "averaging", "reconstruction")
    _attack(options, *first, "census", "membership", "homogeneity")


def _attack(options: _Options, *names: str, **given: Any) -> None:
    """Run attacks with the options that were given, and show each result as it comes."""
    from sfumato import attacks

    own = (given.get(key) for key in ("data", "roll"))
    can_write(options.html, {path: "what is attacked" for path in own if path}, place="--html")
    known = {key: value for key, value in {**given, "epsilons": options.epsilon}.items() if value is not None}
    found: list[AttackResult] = []
    for name in names:
        with working(f"attacking: {name}"):
            found.append(getattr(attacks, name)(**known))
        if options.style is Plain.table:
            typer.echo(str(found[-1]) if name == names[0] else f"\n{found[-1]}")
    if options.html is not None:
        write(attacks.html_report(found).encode(), options.html, paid=False, place="--html")
    if options.style is Plain.json:
        typer.echo(json.dumps([one.to_dict() for one in found], indent=2))
    elif options.html is not None:
        typer.echo(f"\nwritten: {options.html}")
