"""`sfumato advise`: which epsilon? From public facts alone; it ends, if wanted, in a `[budget]`."""

from __future__ import annotations

import math
import re
import sys
import tomllib
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from sfumato.cli.options import Plain, PlainOption, ProjectOption
from sfumato.cli.outputs import can_write, kept, write
from sfumato.cli.screen import say, screen, working
from sfumato.errors import InvalidArgument

if TYPE_CHECKING:
    from sfumato.advise import Advice
    from sfumato.advise.advice import AdviceOptions
    from sfumato.catalog import Project
    from sfumato.core.accountant import PrivacyBudget

__all__ = ["AdviceWishes", "advise", "budget_written"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceWishes:
    """What the options of `sfumato advise` said; None where they did not."""

    questions: Annotated[
        list[str] | None,
        Argument(
            help="Questions that the budget is for: SQL, or files of it. With --compare: project files."
        ),
    ] = None
    epsilon: Annotated[float | None, Option("--epsilon", "-e", help="Another epsilon than the budget's.")] = (
        None
    )
    delta: Annotated[float | None, Option("--delta", help="Another delta than the budget's.")] = None
    advantage: Annotated[
        float | None, Option("--advantage", help="The most that an attacker may gain: 0.1.")
    ] = None
    posterior: Annotated[
        float | None, Option("--posterior", help="The most that an attacker may believe afterwards: 0.2.")
    ] = None
    prior: Annotated[float, Option("--prior", help="What an attacker believes beforehand.")] = 0.01
    error: Annotated[
        float | None, Option("--error", help="The 95% error that you can live with, of one question.")
    ] = None
    size: Annotated[
        float | None, Option("--size", help="Rows to expect in a group, for the error of averages.")
    ] = None
    people: Annotated[int | None, Option("--people", help="How many units there are, if that is public.")] = (
        None
    )
    family: Annotated[int, Option("--family", help="How many people are looked at together.")] = 4
    harm_chance: Annotated[
        float | None, Option("--harm-chance", help="How likely a harm befalls a person anyhow: 0.001.")
    ] = None
    harm_cost: Annotated[float | None, Option("--harm-cost", help="What that harm costs a person.")] = None
    funds: Annotated[float | None, Option("--funds", help="What there is to pay all of them for it.")] = None


def advise(
    *,
    wishes: AdviceWishes,
    compare: Annotated[
        bool, Option("--compare", help="Compare the budgets of the project files that are named.")
    ] = False,
    whole_records: Annotated[
        bool, Option("--whole-records", help="Instead: run what a delta of 1/n, or --delta, would allow.")
    ] = False,
    guided: Annotated[
        bool, Option("--guided", help="Ask step by step; so it does on a terminal if nothing is stated.")
    ] = False,
    save: Annotated[
        bool, Option("--write", help="Write what is proposed into [budget] of the project file.")
    ] = False,
    output: Annotated[
        str | None, Option("--output", "-o", help="A page to file, with pictures: advice.html.")
    ] = None,
    style: PlainOption = Plain.table,
    project: ProjectOption = "sfumato.toml",
) -> None:
    """Say which epsilon means what: risk, error, limits, delta. Spends nothing, asks nothing of the data."""
    from sfumato.catalog import read_project

    as_json = style is Plain.json
    if compare:
        _compare(wishes, as_json=as_json)
        return
    if whole_records:
        _run_whole_records(wishes, as_json=as_json)
        return
    declared = read_project(project)
    can_write(output, kept(declared))
    if output is not None and Path(output).suffix.lower() != ".html":
        raise InvalidArgument("the page is HTML", place="--output", hints=("name it advice.html",))
    wishes = replace(wishes, people=declared.people if wishes.people is None else wishes.people)
    stated = output or save or replace(wishes, people=None) != AdviceWishes()
    talk = guided or (sys.stdin.isatty() and not stated and not as_json)
    if talk:
        wishes = _talk(wishes, declared, project)
    advice = _advice(wishes, declared, project)
    if output is not None:
        with working("drawing the page"):
            write(advice.page().html().encode(), output, paid=False)
    lines = [*advice.lines(), *([] if output is None else [f"written: {output}"])]
    say(advice.record(), "\n".join(lines), as_json=as_json)
    if save or (talk and _agreed(advice, project)):
        _write(advice, wishes, declared, project)


def _advice(wishes: AdviceWishes, declared: Project, project: str) -> Advice:
    from sfumato.advise import advise as advise_on
    from sfumato.advise import choice_of_budget

    budget, options = _budget(wishes, declared), _options(wishes)
    if not wishes.questions:  # no table is opened
        with working("finding out"):
            return advise_on(choice_of_budget(budget), **options)
    from sfumato.cli.project import open_tables
    from sfumato.cli.query import question_text

    _, database = open_tables(project, free=True)
    texts = [question_text(one) for one in wishes.questions]
    with working("finding out"):
        return replace(database, terms=budget).advise(*texts, size=wishes.size, **options)


def _budget(wishes: AdviceWishes, declared: Project) -> PrivacyBudget:
    """Return the budget that is looked at: the project's, with the epsilon and delta that were said."""
    from sfumato.core.accountant import PrivacyBudget
    from sfumato.core.arguments import budget_quantity

    own = declared.budget
    epsilon = own.epsilon if wishes.epsilon is None else wishes.epsilon
    if wishes.delta is None:
        return PrivacyBudget(epsilon=epsilon, delta=own.delta, keys_delta=own.keys_delta, rule=own.rule)
    if not own.delta:
        hint = "write a delta and another rule into [budget] first"
        raise InvalidArgument("this budget has no delta", place="--delta", hints=(hint,))
    delta = budget_quantity(wishes.delta, "delta")
    keys = delta * own.keys_delta / own.delta
    return PrivacyBudget(epsilon=epsilon, delta=delta, keys_delta=keys, rule=own.rule)


def _options(wishes: AdviceWishes) -> AdviceOptions:
    from sfumato.advise import Harm

    harm = None
    given = (wishes.harm_chance, wishes.harm_cost, wishes.funds)
    if any(one is not None for one in given):
        chance, cost, funds = given
        if chance is None or cost is None or funds is None or wishes.people is None:
            raise InvalidArgument(
                "the economic method needs a chance, a cost, funds and the number of people",
                place="--funds",
                hints=("--harm-chance 0.001 --harm-cost 5000 --funds 10000 --people 20000",),
            )
        harm = Harm(people=wishes.people, chance=chance, cost=cost, funds=funds)
    return {
        "people": wishes.people,
        "family": wishes.family,
        "prior": wishes.prior,
        "advantage": wishes.advantage,
        "posterior": wishes.posterior,
        "harm": harm,
        "error": wishes.error,
    }


def _run_whole_records(wishes: AdviceWishes, *, as_json: bool) -> None:
    from sfumato.advise import publish_whole_records
    from sfumato.core.arguments import count

    people = 1000 if wishes.people is None else count(wishes.people, "--people")
    found = publish_whole_records(people=people, delta=1 / people if wishes.delta is None else wishes.delta)
    say({"published": list(found.published)}, str(found), as_json=as_json)


# -- step by step -----------------------------------------------------------------------------


def _talk(wishes: AdviceWishes, declared: Project, project: str) -> AdviceWishes:
    """Ask for what an owner can answer without statistics."""
    from sfumato.advise import usual_delta
    from sfumato.cli.answers import ask
    from sfumato.core.arguments import count

    out = screen()
    out.print("Nothing is spent here, or asked of the data. An empty answer leaves a thing open.")
    answered: dict[str, Any] = {}
    if wishes.people is None:
        asked = "How many people are in the data, if that is public?"
        answered["people"] = ask(asked, "", lambda text: count(int(text), "people") if text else None)
    people, delta = answered.get("people", wishes.people), float(declared.budget.delta)
    if wishes.delta is None and delta and people and delta > usual_delta(people):
        out.print(
            f"delta {delta:g} is large for {people:,} people:"
            " at 1/n, publishing a few records whole would count as private."
        )
        answered["delta"] = ask("Which delta instead?", f"{usual_delta(people):g}", partial(_delta, people))
    if wishes.advantage is None and wishes.posterior is None:
        out.print("Somebody who knows everything else guesses who of 100 people took part: 50 right is luck.")
        answered["advantage"] = ask("How many may be right, at most?", "55", _advantage)
    if not wishes.questions:
        given = ask("A question that the answers are for, as SQL?", "", partial(_sql, project))
        answered["questions"] = [given] if given else None
        if given:
            asked = "How far off may its answer be, 95 times of 100?"
            answered["error"] = ask(asked, "", lambda text: _above_zero(float(text)) if text else None)
    return replace(wishes, **answered)


def _delta(people: int, text: str) -> float:
    delta = float(text)
    if not 0 < delta < 1 / people:
        raise InvalidArgument(f"a number above 0 and below 1/n, which is {1 / people:.2g}")
    return delta


def _above_zero(error: float) -> float:
    if not 0 < error < math.inf:
        raise InvalidArgument("a number above 0")
    return error


def _sql(project: str, text: str) -> str:
    """Return a question; refuse what would be refused, so that it can be typed again."""
    if text:
        from sfumato.cli.project import open_tables
        from sfumato.cli.query import question_text

        database = open_tables(project, free=True)[1]
        database.sql(question_text(text), epsilon=database.terms.epsilon).priced()
    return text


def _advantage(text: str) -> float | None:
    if not text:
        return None
    right = float(text)
    if not 50 < right < 100:
        raise InvalidArgument("a number above 50, which is luck, and below 100")
    return round(right / 50 - 1, 6)


def _agreed(advice: Advice, project: str) -> bool:
    from sfumato.cli.answers import ask

    asked = f"Write epsilon {float(advice.epsilon):.4g} into [budget] of {project}? (yes or no)"
    return ask(asked, "no", lambda text: text.lower() in ("y", "yes"))


# -- the budget of the project file -----------------------------------------------------------


def _write(advice: Advice, wishes: AdviceWishes, declared: Project, project: str) -> None:
    """Write what is proposed; refuse where the ledger has fixed the budget already."""
    from sfumato.cli.project import book_of

    with book_of(declared) as ledger:
        if declared.unit in ledger.units():
            raise InvalidArgument(
                "the first question has fixed the budget, for ever",
                place=project,
                hints=("other people's data has a project and a ledger of its own",),
            )
    numbers: dict[str, float] = {"epsilon": float(f"{float(advice.epsilon):.4g}")}
    if wishes.delta is not None:
        numbers["delta"] = wishes.delta
        numbers["keys_delta"] = float(_budget(wishes, declared).keys_delta)
    if wishes.people is not None:
        numbers["people"] = wishes.people
    text = budget_written(Path(project).read_text(encoding="utf-8"), numbers)
    write(text.encode(), project, paid=False, place="--project")
    screen().print(f"written: epsilon {numbers['epsilon']:g} into [budget] of {project}")


def budget_written(text: str, numbers: dict[str, float]) -> str:
    """Return a project file with other numbers in its [budget]; all else stays as it is.

    >>> budget_written("[budget]  # for ever\\nepsilon = 3\\n", {"epsilon": 0.5, "people": 90})
    '[budget]  # for ever\\nepsilon = 0.5\\npeople = 90\\n'
    """
    lines = text.split("\n")
    heads = [place for place, line in enumerate(lines) if re.match(r"\s*\[budget\]\s*(#.*)?$", line)]
    said = "\n".join(["[budget]", *(f"{name} = {value!r}" for name, value in numbers.items())])
    if len(heads) != 1:
        raise InvalidArgument(
            "this file has no [budget] on a line of its own", place="--project", hints=(f"write:\n{said}",)
        )
    start = heads[0] + 1
    end = next((at for at in range(start, len(lines)) if lines[at].lstrip().startswith("[")), len(lines))
    for name, value in numbers.items():
        shown = f"{name} = {value!r}"
        place = next((at for at in range(start, end) if re.match(rf"\s*{name}\s*=", lines[at])), None)
        if place is None:
            lines.insert(start + 1, shown)
            end += 1
        else:
            comment = re.search(r"\s+#.*$", lines[place])
            lines[place] = shown + (comment[0] if comment else "")
    written = "\n".join(lines)
    before, after = tomllib.loads(text), _read(written)
    if after != {**before, "budget": {**before["budget"], **numbers}}:
        raise InvalidArgument(
            "this [budget] is written in a way that is not understood",
            place="--project",
            hints=(f"write:\n{said}",),
        )
    return written


def _read(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


# -- several projects -------------------------------------------------------------------------


def _compare(wishes: AdviceWishes, *, as_json: bool) -> None:
    """Show what the budgets of projects mean, side by side."""
    from sfumato.advise import advise as advise_on
    from sfumato.advise import choice_of_budget
    from sfumato.catalog import read_project

    files = wishes.questions or []
    if len(files) < 2:
        raise InvalidArgument(
            "name two project files at least",
            place="--compare",
            hints=("sfumato advise --compare a.toml b.toml",),
        )
    found = {}
    for file in files:
        project = read_project(file)
        options = _options(replace(wishes, people=project.people if wishes.people is None else wishes.people))
        found[file] = project, advise_on(choice_of_budget(project.budget), **options)
    rows = [
        ("", *found),
        ("protects", *(project.unit for project, _ in found.values())),
        ("epsilon", *(f"{float(project.budget.epsilon):g}" for project, _ in found.values())),
        ("delta", *(f"{float(project.budget.delta):g}" for project, _ in found.values())),
        ("rule", *(project.budget.rule.name for project, _ in found.values())),
        ("advantage", *(f"{advice.risk.advantage:.4f}" for _, advice in found.values())),
        (
            f"belief from {wishes.prior:g}",
            *(f"{advice.risk.posterior(wishes.prior):.4f}" for _, advice in found.values()),
        ),
        (
            f"advantage, family of {wishes.family}",
            *(f"{advice.family.advantage:.4f}" for _, advice in found.values()),
        ),
    ]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    table = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    sentences = [f"{file}: {advice.risk.sentence}" for file, (_, advice) in found.items()]
    record = {file: advice.record() for file, (_, advice) in found.items()}
    say(record, "\n".join([*table, "", *sentences]), as_json=as_json)
