"""`sfumato train`: a model of a private table, saved as JSON, and if wanted its fairness report as a page."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from sfumato.cli.options import EstimateOptions, Plain, names_of
from sfumato.cli.outputs import can_write, kept, write
from sfumato.cli.screen import say, screen, working
from sfumato.errors import InvalidArgument

if TYPE_CHECKING:
    from sfumato.learn.estimator import LinearEstimator
    from sfumato.session.price import Price

__all__ = ["train"]

_KINDS = {"logistic": "LogisticRegression"}


def train(
    *,
    kind: Annotated[str, Argument(help="What kind of model: logistic.")],
    label: Annotated[str, Option("--label", help="The column that is predicted.")],
    table: Annotated[str, Option("--table", help="The private table.")],
    features: Annotated[
        str | None, Option("--features", help="The columns it is predicted from: age,job; else all declared.")
    ] = None,
    output: Annotated[str | None, Option("--output", "-o", help="A file for the model: model.json.")] = None,
    fairness: Annotated[
        str | None,
        Option("--fairness", help="Report on groups of these columns, too: sex,race,sex+race."),
    ] = None,
    fairness_epsilon: Annotated[
        float | None,
        Option("--fairness-epsilon", help="What the report may cost; else as much as the model."),
    ] = None,
    page: Annotated[
        str | None, Option("--report", help="A file for the fairness report: fairness.html.")
    ] = None,
    yes: Annotated[bool, Option("--yes", "-y", help="Spend without asking first.")] = False,
    options: EstimateOptions,
) -> None:
    """Train a model on a private table, and spend: the price is shown first. With --fairness, also report."""
    from sfumato.catalog import read_project
    from sfumato.cli.project import open_tables
    from sfumato.learn import fairness_report
    from sfumato.learn.fairness import cells_of, plan_fairness
    from sfumato.session.price import price_together

    if options.epsilon is None:
        raise InvalidArgument(
            "training spends budget, so it needs a price",
            place="--epsilon",
            hints=("--epsilon 1, for example",),
        )
    if page is not None and (fairness is None or not page.lower().endswith(".html")):
        raise InvalidArgument(
            "--report is the page of --fairness, and is HTML",
            place="--report",
            hints=("--fairness sex --report fairness.html",),
        )
    declared = read_project(options.project)
    for path, place in ((output, "--output"), (page, "--report")):
        can_write(path, kept(declared), place=place)
    estimator = _estimator(kind, label=label, epsilon=options.epsilon, features=features)
    _, database = open_tables(options.project, analyst=options.analyst, free=options.dry_run)
    frame = database.table(table)
    training = estimator.priced(frame)
    several: list[Any] = [training]
    groups = [] if fairness is None else [tuple(one.split("+")) for one in names_of(fairness)]
    spent = options.epsilon if fairness_epsilon is None else fairness_epsilon
    said = [f"a training at epsilon {options.epsilon:g}"]
    if groups:
        cells = cells_of(frame, training.label, groups, 5)
        several.append(
            plan_fairness(frame, training.features, training.label, cells, epsilon=spent, level=0.95)
        )
        said.append(
            f"a fairness report at epsilon {spent:g}, on {sum(one.size for one in cells.sets)} groups"
        )
    price = price_together(database, several, notes=(", and ".join(said),))
    if options.dry_run:
        say({"price": price.record()}, "\n".join(price.lines()), as_json=options.style is Plain.json)
        if price.refusal is not None:
            raise price.refusal
        return
    _agree(price, yes=yes)
    key = options.key
    with working("charging, training, adding noise"):
        model = estimator.fit(frame, key=key, purpose=options.purpose).release_
    if output is not None:
        write(f"{model.to_json()}\n".encode(), output)
    record: dict[str, Any] = {
        "label": label,
        "features": list(model.features.names),
        "receipt": dict(model.receipt),
    }
    text = [f"a {kind} model of `{label}` from {len(model.features.names)} features"]
    text += [] if output is None else [f"written: {output}"]
    if groups:
        asked = fairness_report(model, frame, groups=groups, epsilon=spent)
        with working("charging, applying the model, adding noise"):
            report = asked.release(key=None if key is None else f"{key} fairness", purpose=options.purpose)
        if page is not None:
            write(report.page().html().encode(), page, place="--report")
        record["fairness"] = report.record()
        text += [repr(report), *([] if page is None else [f"written: {page}"])]
    say(record, "\n".join(text), as_json=options.style is Plain.json)


def _estimator(kind: str, *, label: str, epsilon: float, features: str | None) -> LinearEstimator:
    from sfumato import learn

    if kind not in _KINDS:
        raise InvalidArgument(
            f"no kind of model is called `{kind}`", place="kind", hints=(f"there are {', '.join(_KINDS)}",)
        )
    named = None if features is None else names_of(features)
    found: LinearEstimator = getattr(learn, _KINDS[kind])(label=label, epsilon=epsilon, features=named)
    return found


def _agree(price: Price, *, yes: bool) -> None:
    """Show the price, and ask whether to pay it; where nobody can be asked, --yes has to say so."""
    if price.refusal is not None:
        raise price.refusal
    shown = price.lines()[:-1]
    screen(error=True).print("\n".join(shown))
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidArgument("nobody can be asked whether to spend", place="--yes", hints=("add --yes",))
    given = input("spend? [y/N] ")
    if given.strip().lower() not in ("y", "yes"):
        raise InvalidArgument("nothing was spent", place="--yes")
