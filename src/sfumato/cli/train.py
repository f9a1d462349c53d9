"""`sfumato train`: a model of a private table, saved as JSON, and if wanted its fairness report as a page."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from sfumato.cli.options import EstimateOptions, Plain, names_of
from sfumato.cli.outputs import can_write, kept, write
from sfumato.cli.screen import say, screen
from sfumato.cli.spending import released
from sfumato.errors import InvalidArgument

if TYPE_CHECKING:
    from sfumato.catalog import Project
    from sfumato.learn import FairnessReport
    from sfumato.plan.builder import Frame
    from sfumato.session.price import Price

__all__ = ["TrainingOptions", "train"]

_KINDS = {
    "logistic": "LogisticRegression",
    "linear": "LinearRegression",
    "additive": "AdditiveClassifier",
    "network": "NeuralNetwork",
}
_BINS, _LEVEL = 5, 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingOptions:
    """What is trained, where the model goes, and its fairness report, if one is wanted."""

    kind: Annotated[
        str,
        Argument(
            help="What kind of model: logistic, additive or network, for classes; linear, for a number."
        ),
    ]
    label: Annotated[str, Option("--label", help="The column that is predicted.")]
    table: Annotated[str | None, Option("--table", help="The private table, if there are several.")] = None
    features: Annotated[
        str | None, Option("--features", help="The columns it is predicted from: age,job; else all declared.")
    ] = None
    weights: Annotated[
        list[str] | None,
        Option("--weight", help="How much rows of a value count against others: sex=f:3; may be repeated."),
    ] = None
    output: Annotated[str | None, Option("--output", "-o", help="A file for the model: model.json.")] = None
    fairness: Annotated[
        str | None,
        Option("--fairness", help="Report on groups of these columns, too: sex,race,sex+race."),
    ] = None
    fairness_epsilon: Annotated[
        float | None,
        Option("--fairness-epsilon", help="What the report may cost; else as much as the model."),
    ] = None
    page: Annotated[str | None, Option("--report", help="A file for the fairness report: fairness.html.")] = (
        None
    )
    yes: Annotated[bool, Option("--yes", "-y", help="Spend without asking first.")] = False


def train(*, asked: TrainingOptions, options: EstimateOptions) -> None:
    """Train a model on a private table, and spend: the price is shown first. With --fairness, also report."""
    from sfumato.catalog import read_project
    from sfumato.cli.project import tables_of

    epsilon = _checked_epsilon(asked, options)
    declared = read_project(options.project)
    for path, place in ((asked.output, "--output"), (asked.page, "--report")):
        can_write(path, kept(declared), place=place)
    database = tables_of(declared, analyst=options.analyst, free=options.dry_run)
    frame = database.table(_private(declared) if asked.table is None else asked.table)
    training = _Training(
        estimator=_estimator(asked, frame, epsilon),
        frame=frame,
        groups=[tuple(one.split("+")) for one in names_of(asked.fairness or "")],
        fairness_epsilon=epsilon if asked.fairness_epsilon is None else asked.fairness_epsilon,
        key=options.key,
    )
    model = released(
        training,
        options,
        step="charging, training, adding noise",
        agree=partial(_agree, yes=asked.yes),
        purpose=options.purpose,
    )
    if model is None:
        return
    names = list(model.features.names)
    record: dict[str, Any] = {"label": asked.label, "features": names, "receipt": dict(model.receipt)}
    text = [f"a {asked.kind} model of `{asked.label}` from {len(names)} features"]
    if asked.output is not None:
        write(f"{model.to_json()}\n".encode(), asked.output)
        text.append(f"written: {asked.output}")
    else:
        number = model.receipt["reservation"]
        text.append(f"the ledger keeps it: `sfumato ledger show {number} --format json`")
    if training.groups:
        report = _reported(model, training, options)
        record["fairness"] = report.record()
        text.append(repr(report))
        if asked.page is not None:
            write(report.document().html().encode(), asked.page, place="--report")
            text.append(f"written: {asked.page}")
    say(record, "\n".join(text), as_json=options.style is Plain.json)


def _checked_epsilon(asked: TrainingOptions, options: EstimateOptions) -> float:
    """Return the epsilon of the model; refuse options that make no sense together."""
    if options.epsilon is None:
        raise InvalidArgument(
            "training spends budget, so it needs a price",
            place="--epsilon",
            hints=("--epsilon 1, for example",),
        )
    if asked.page is not None and (asked.fairness is None or not asked.page.lower().endswith(".html")):
        raise InvalidArgument(
            "--report is the page of --fairness, and is HTML",
            place="--report",
            hints=("--fairness sex --report fairness.html",),
        )
    return options.epsilon


def _reported(model: Any, training: _Training, options: EstimateOptions) -> FairnessReport:
    """Spend on the fairness report of a model that was trained."""
    from sfumato.learn.fairness import fairness_report

    question = fairness_report(
        model,
        training.frame,
        groups=training.groups,
        epsilon=training.fairness_epsilon,
        bins=_BINS,
        level=_LEVEL,
    )
    report = released(
        question,
        replace(options, key=None if options.key is None else f"{options.key} fairness"),
        step="charging, applying the model, adding noise",
        purpose=options.purpose,
    )
    assert report is not None  # a dry run ends before the training
    return report


@dataclass(frozen=True, slots=True, kw_only=True)
class _Training:
    """A model that is paid for now; its price is that of the fairness report, too, if one is wanted."""

    estimator: Any
    frame: Frame[Any]
    groups: Sequence[tuple[str, ...]]
    fairness_epsilon: float
    key: str | None

    def price(self) -> Price:
        """Return the price of all that will be charged."""
        from sfumato.learn.fairness import cells_of, plan_fairness
        from sfumato.session.price import price_together

        training = self.estimator.priced(self.frame)
        several, said = [training], [f"a training at epsilon {self.estimator.epsilon:g}"]
        if self.groups:
            cells, spent = cells_of(self.frame, training.label, self.groups, _BINS), self.fairness_epsilon
            several.append(
                plan_fairness(
                    self.frame, training.features, training.label, cells, epsilon=spent, level=_LEVEL
                )
            )
            many = sum(one.size for one in cells.sets)
            said.append(f"a fairness report at epsilon {spent:g}, on {many} groups")
        free = () if self.key is None else ("free, if it was trained under this key before",)
        return price_together(training.rows.database, several, notes=(", and ".join(said), *free))

    def release(self, *, key: str | None, purpose: str | None, progress: Callable[[str], object]) -> Any:
        """Spend on the model, and return it."""
        return self.estimator.fit(self.frame, key=key, purpose=purpose, progress=progress).release_


def _private(declared: Project) -> str:
    """Return the name of the only private table."""
    names = [one.name for one in declared.tables if one.declaration.unit is not None]
    if len(names) > 1:
        raise InvalidArgument(
            f"which of the private tables: {', '.join(names)}?",
            place="--table",
            hints=(f"--table {names[0]}",),
        )
    return names[0]


def _estimator(asked: TrainingOptions, frame: Any, epsilon: float) -> Any:
    from sfumato import learn

    kind, weights = asked.kind, asked.weights
    if kind not in _KINDS:
        raise InvalidArgument(
            f"no kind of model is called `{kind}`", place="kind", hints=(f"there are {', '.join(_KINDS)}",)
        )
    made = getattr(learn, _KINDS[kind])
    if weights and "weights" not in inspect.signature(made).parameters:
        raise InvalidArgument(
            f"weights of rows are not for {kind} models", place="--weight", hints=("train logistic",)
        )
    given = {"weights": _weights(frame, weights)} if weights else {}
    named = None if asked.features is None else names_of(asked.features)
    return made(label=asked.label, epsilon=epsilon, features=named, **given)


def _weights(frame: Any, given: list[str]) -> dict[str, dict[Any, float]]:
    """Return weights that are written as column=value:factor; values are named as they are declared."""
    from sfumato.learn.features import declared_label

    found: dict[str, dict[Any, float]] = {}
    for one in given:
        name, _, rest = one.partition("=")
        text, _, factor = rest.rpartition(":")
        values = {str(value).lower(): value for value in declared_label(frame, name).values}
        try:
            found.setdefault(name, {})[values[text.lower()]] = float(factor)
        except (KeyError, ValueError):
            raise InvalidArgument(
                "a weight names a column, one of its declared values, and a factor",
                place="--weight",
                hints=("--weight sex=f:3",),
            ) from None
    return found


def _agree(price: Price, *, yes: bool) -> None:
    """Show the price, and ask whether to pay it; where nobody can be asked, --yes has to say so."""
    screen(error=True).print("\n".join(price.lines()[:-1]))
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidArgument("nobody can be asked whether to spend", place="--yes", hints=("add --yes",))
    if input("spend? [y/N] ").strip().lower() not in ("y", "yes"):
        raise InvalidArgument("nothing was spent", place="--yes")
