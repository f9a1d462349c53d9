"""`sfumato advise`: which epsilon? From public facts alone; it ends, if wanted, in a `[budget]`."""

from __future__ import annotations

import math
import re
import sys
import tomllib
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from sfumato.cli.advice_wishes import AdviceWishes, budget_of, options_of
from sfumato.cli.comparison import compare_projects
from sfumato.cli.options import Plain, PlainOption, ProjectOption
from sfumato.cli.outputs import can_write, kept, write
from sfumato.cli.screen import say, screen, working
from sfumato.errors import InvalidArgument

if TYPE_CHECKING:
    from sfumato.advise import Advice, Choice
    from sfumato.catalog import Project

__all__ = ["advise", "budget_written"]


def advise(
    *,
    wishes: AdviceWishes,
    compare: Annotated[
        bool, Option("--compare", help="Put the project files that are named side by side.")
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
    if wishes.subject is not None and (compare or whole_records or guided or save):
        raise InvalidArgument(
            "--compare, --whole-records, --guided and --write are about the budget",
            place=f"--{wishes.subject}",
        )
    if output is not None and Path(output).suffix.lower() != ".html":
        raise InvalidArgument("the page is HTML", place="--output", hints=("name it advice.html",))
    if compare:
        compare_projects(wishes, output, as_json=as_json)
        return
    if whole_records:
        _run_whole_records(wishes, as_json=as_json)
        return
    if wishes.survey is not None:  # it is not part of a project
        can_write(output, {wishes.survey: "the survey"})
        _show(_advised(_survey_choice(wishes), wishes), output, as_json=as_json)
        return
    declared = read_project(project)
    can_write(output, kept(declared))
    wishes = replace(wishes, people=declared.people if wishes.people is None else wishes.people)
    stated = output or save or replace(wishes, people=None) != AdviceWishes()
    talk = guided or (sys.stdin.isatty() and not stated and not as_json)
    if talk:
        wishes = _talk(wishes, declared, project)
    advice = _advice(wishes, declared, project)
    _show(advice, output, as_json=as_json)
    if save or (talk and _agreed(advice, project)):
        _write(advice, wishes, declared, project)


def _show(advice: Advice, output: str | None, *, as_json: bool) -> None:
    if output is not None:
        with working("drawing the page"):
            write(advice.document().html().encode(), output, paid=False)
    lines = [*advice.lines(), *([] if output is None else [f"written: {output}"])]
    say(advice.record(), "\n".join(lines), as_json=as_json)


def _advice(wishes: AdviceWishes, declared: Project, project: str) -> Advice:
    from sfumato.advise import choice_of_budget

    if wishes.subject is not None:
        return _advised(_declared_choice(wishes, declared, project), wishes)
    budget = budget_of(wishes, declared)
    if not wishes.questions:  # no table is opened
        return _advised(choice_of_budget(budget), wishes)
    from sfumato.cli.project import open_tables
    from sfumato.cli.query import question_text

    _, database = open_tables(project, free=True)
    texts = [question_text(one) for one in wishes.questions]
    with working("finding out"):
        return replace(database, terms=budget).advise(*texts, size=wishes.size, **options_of(wishes))


def _advised(choice: Choice, wishes: AdviceWishes) -> Advice:
    """Return advice on a choice, at the epsilon that was said."""
    from sfumato.advise import advise as advise_on
    from sfumato.core.arguments import budget_quantity

    if wishes.epsilon is not None:
        choice = replace(choice, epsilon=budget_quantity(wishes.epsilon, "epsilon"))
    with working("finding out"):
        return advise_on(choice, **options_of(wishes))


def _declared_choice(wishes: AdviceWishes, declared: Project, project: str) -> Choice:
    """Return the choice of the epsilon of a stream, a workload or tables that the project file declares."""
    from sfumato.cli.marginals import declared_marginals
    from sfumato.cli.project import open_tables
    from sfumato.cli.stream import declared_stream
    from sfumato.cli.workload import declared_workload

    if wishes.size is not None and wishes.marginals is not None:
        raise InvalidArgument("the errors of tables need no size of groups", place="--size")
    _, database = open_tables(project, free=True)
    database = replace(database, terms=budget_of(replace(wishes, epsilon=None), declared))
    if wishes.stream is not None:
        return declared_stream(wishes.stream, declared, database).choice(size=wishes.size)
    if wishes.workload is not None:
        return declared_workload(wishes.workload, declared, database, size=wishes.size).choice()
    assert wishes.marginals is not None
    return declared_marginals(wishes.marginals, declared, database).choice()


def _survey_choice(wishes: AdviceWishes) -> Choice:
    """Return the choice of the epsilon of a survey file; unless --people says how many, 10,000 answer."""
    from sfumato.local.choices import choice_of_survey
    from sfumato.local.survey import Survey

    if wishes.delta is not None or wishes.size is not None:
        place = "--size" if wishes.delta is None else "--delta"
        raise InvalidArgument("a survey has neither a delta nor groups", place=place)
    assert wishes.survey is not None
    people = 10_000 if wishes.people is None else wishes.people
    return choice_of_survey(Survey.read(wishes.survey), people=people)


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
            answered["error"] = ask(asked, "", lambda text: [_above_zero(text)] if text else None)
    return replace(wishes, **answered)


def _delta(people: int, text: str) -> float:
    delta = float(text)
    if not 0 < delta < 1 / people:
        raise InvalidArgument(f"a number above 0 and below 1/n, which is {1 / people:.2g}")
    return delta


def _above_zero(text: str) -> str:
    if not 0 < float(text) < math.inf:
        raise InvalidArgument("a number above 0")
    return text


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
        numbers["keys_delta"] = float(budget_of(wishes, declared).keys_delta)
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
