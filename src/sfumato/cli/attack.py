"""The attack lab from the command line: one command per attack, and all of them on one page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.options import JsonErrorsOption, Plain, PlainOption

if TYPE_CHECKING:
    from sfumato.attacks import AttackResult

__all__ = ["attack_app"]

attack_app = typer.Typer(
    help="Attack what people publish, and what this system publishes: with what success?",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_Data = Annotated[
    str | None,
    typer.Option("--data", help="Your own table: Parquet, CSV or DuckDB. What is found is for its owner."),
]
_Trait = Annotated[
    str | None, typer.Option("--trait", help="Its column of true and false that is the secret.")
]
_Epsilons = Annotated[
    list[float] | None,
    typer.Option("--epsilon", "-e", help="An epsilon to release with; may be repeated."),
]
_Html = Annotated[
    str | None, typer.Option("--html", help="Write a page with pictures, in one file that needs no other.")
]
_Secret = Annotated[str, typer.Option("--secret", help="The column that the attacker wants to read.")]
_Quasi = Annotated[str, typer.Option("--on", help="What the attacker knows: columns, divided by commas.")]


@attack_app.command("differencing")
def _differencing(
    data: _Data = None,
    trait: _Trait = None,
    epsilon: _Epsilons = None,
    html: _Html = None,
    style: PlainOption = Plain.table,
    json_errors: JsonErrorsOption = False,
) -> None:
    """Two totals whose difference is one person; two averages whose difference is a salary."""
    from sfumato.attacks import differencing

    _show([_run("differencing", differencing, html, data=data, trait=trait, epsilons=epsilon)], html, style)


@attack_app.command("refusing")
def _refusing(
    epsilon: _Epsilons = None,
    html: _Html = None,
    style: PlainOption = Plain.table,
    json_errors: JsonErrorsOption = False,
) -> None:
    """An auditor of queries that looks at the data to decide what to refuse: its refusals tell."""
    from sfumato.attacks import refusing

    _show([_run("refusing", refusing, html, epsilons=epsilon)], html, style)


@attack_app.command("averaging")
def _averaging(
    data: _Data = None,
    trait: _Trait = None,
    epsilon: _Epsilons = None,
    html: _Html = None,
    style: PlainOption = Plain.table,
    json_errors: JsonErrorsOption = False,
) -> None:
    """The same question, a thousand times, until the noise has gone; or until the budget says no."""
    from sfumato.attacks import averaging

    _show([_run("averaging", averaging, html, data=data, trait=trait, epsilons=epsilon)], html, style)


@attack_app.command("reconstruction")
def _reconstruction(
    data: _Data = None,
    trait: _Trait = None,
    people: Annotated[int, typer.Option("--people", help="How many people to invent.")] = 1000,
    method: Annotated[
        str, typer.Option("--method", help="'least squares' or 'linear programming'.")
    ] = "least squares",
    epsilon: _Epsilons = None,
    html: _Html = None,
    style: PlainOption = Plain.table,
    json_errors: JsonErrorsOption = False,
) -> None:
    """A whole secret column, rebuilt from many counts that are a little too accurate."""
    from sfumato.attacks import reconstruction

    found = _run(
        "reconstruction",
        reconstruction,
        html,
        data=data,
        trait=trait,
        people=people,
        method=method,
        epsilons=epsilon,
    )
    _show([found], html, style)


@attack_app.command("census")
def _census(
    data: _Data = None,
    epsilon: _Epsilons = None,
    html: _Html = None,
    style: PlainOption = Plain.table,
    json_errors: JsonErrorsOption = False,
) -> None:
    """People rebuilt from small-area tables by solving for whoever fits all of them."""
    from sfumato.attacks import census

    _show([_run("census", census, html, data=data, epsilons=epsilon)], html, style)


@attack_app.command("linkage")
def _linkage(
    data: _Data = None,
    roll: Annotated[
        str | None, typer.Option("--roll", help="A list with names that shares columns with the table.")
    ] = None,
    on: _Quasi = "zip,birth_date,sex",
    secret: _Secret = "diagnosis",
    identity: Annotated[
        str | None, typer.Option("--identity", help="A column of both that says who is who, to check claims.")
    ] = None,
    epsilon: _Epsilons = None,
    html: _Html = None,
    style: PlainOption = Plain.table,
    json_errors: JsonErrorsOption = False,
) -> None:
    """A table without names, joined with a list that has them."""
    from sfumato.attacks import linkage

    found = _run(
        "linkage",
        linkage,
        html,
        data=data,
        roll=roll,
        on=_listed(on),
        secret=secret,
        identity=identity,
        epsilons=epsilon,
    )
    _show([found], html, style)


@attack_app.command("ratings")
def _ratings(
    data: _Data = None,
    epsilon: _Epsilons = None,
    html: _Html = None,
    style: PlainOption = Plain.table,
    json_errors: JsonErrorsOption = False,
) -> None:
    """A few approximate ratings and dates, and a viewer is found among thousands."""
    from sfumato.attacks import ratings

    _show([_run("ratings", ratings, html, data=data, epsilons=epsilon)], html, style)


@attack_app.command("membership")
def _membership(
    data: _Data = None,
    attributes: Annotated[
        str | None,
        typer.Option("--attributes", help="Columns of true and false that are published as means."),
    ] = None,
    epsilon: _Epsilons = None,
    html: _Html = None,
    style: PlainOption = Plain.table,
    json_errors: JsonErrorsOption = False,
) -> None:
    """Who took part in a study, told from nothing but the means of many attributes."""
    from sfumato.attacks import membership

    named = None if attributes is None else _listed(attributes)
    _show([_run("membership", membership, html, data=data, attributes=named, epsilons=epsilon)], html, style)


@attack_app.command("homogeneity")
def _homogeneity(
    data: _Data = None,
    on: _Quasi = "zip,birth_date,sex",
    secret: _Secret = "diagnosis",
    epsilon: _Epsilons = None,
    html: _Html = None,
    style: PlainOption = Plain.table,
    json_errors: JsonErrorsOption = False,
) -> None:
    """What a k-anonymous table tells all the same, and who knows more than it."""
    from sfumato.attacks import homogeneity

    found = _run(
        "homogeneity", homogeneity, html, data=data, quasi=_listed(on), secret=secret, epsilons=epsilon
    )
    _show([found], html, style)


@attack_app.command("all")
def _all(
    html: _Html = None,
    style: PlainOption = Plain.table,
    json_errors: JsonErrorsOption = False,
) -> None:
    """Every attack on invented people: with --html, a page that a teacher would show a class."""
    from sfumato import attacks

    names = (
        "linkage",
        "ratings",
        "differencing",
        "refusing",
        "averaging",
        "reconstruction",
        "census",
        "membership",
        "homogeneity",
    )
    _show([_run(name, getattr(attacks, name), html) for name in names], html, style)


def _run(name: str, attack: Any, html: str | None, **options: Any) -> AttackResult:
    """Run an attack with the options that were given; it knows the others itself."""
    from sfumato.cli.outputs import can_write
    from sfumato.cli.screen import working

    own = (options.get(key) for key in ("data", "roll"))
    can_write(html, {path: "what is attacked" for path in own if path}, place="--html")

    with working(f"attacking: {name}"):
        found: AttackResult = attack(**{key: value for key, value in options.items() if value is not None})
    return found


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _show(findings: list[AttackResult], html: str | None, style: Plain) -> None:
    import json

    from sfumato.attacks import html_report, text_report
    from sfumato.cli.outputs import write

    if html is not None:
        write(html_report(findings).encode(), html, paid=False, place="--html")
    if style is Plain.json:
        typer.echo(json.dumps([finding.to_dict() for finding in findings], indent=2))
    else:
        typer.echo(text_report(findings))
        if html is not None:
            typer.echo(f"\nwritten: {html}")
