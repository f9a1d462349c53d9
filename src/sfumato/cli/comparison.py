"""`sfumato advise --compare a.toml b.toml`: projects side by side, from what their files declare."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from sfumato.cli.advice_wishes import AdviceWishes, options_of
from sfumato.cli.outputs import can_write, kept, write
from sfumato.cli.screen import say, working
from sfumato.errors import InvalidArgument, SfumatoError

if TYPE_CHECKING:
    from sfumato.advise import Advice, Choice, ComparedProject, ProjectComparison
    from sfumato.advise.advice import AdviceOptions
    from sfumato.advise.risk import Risk
    from sfumato.catalog import Project
    from sfumato.session.database import Database

__all__ = ["compare_projects"]

_IN_A_YEAR = {"day": 365, "week": 52, "month": 12, "year": 1}


def compare_projects(wishes: AdviceWishes, output: str | None, *, as_json: bool) -> None:
    """Show what the budgets of projects mean, and what they declare in common."""
    from sfumato.catalog import read_project

    files = list(dict.fromkeys(wishes.questions or []))
    if len(files) < 2:
        raise InvalidArgument(
            "name two project files at least",
            place="--compare",
            hints=("sfumato advise --compare a.toml b.toml",),
        )
    free = ("questions", "people", "prior", "family")
    if replace(AdviceWishes(), **{name: getattr(wishes, name) for name in free}) != wishes:
        raise InvalidArgument(
            "projects are compared as they are: no other epsilon, no limit and no error can be stated",
            place="--compare",
            hints=("--people, --prior and --family are the same for all of them",),
        )
    projects = {file: read_project(file) for file in files}
    for project in projects.values():
        can_write(output, kept(project))
    with working("comparing"):
        found = _compared(projects, wishes)
        if output is not None:
            write(found.page().html().encode(), output, paid=False)
    lines = [*found.lines(), *([] if output is None else [f"written: {output}"])]
    say(found.record(), "\n".join(lines), as_json=as_json)


def _compared(projects: Mapping[str, Project], wishes: AdviceWishes) -> ProjectComparison:
    from sfumato.advise import ProjectComparison

    options = {
        file: options_of(replace(wishes, people=project.people if wishes.people is None else wishes.people))
        for file, project in projects.items()
    }
    compared = {file: _project(file, project, options[file]) for file, project in projects.items()}
    shared, notes = _shared(projects, options)
    return ProjectComparison(
        projects=tuple(
            replace(one, shared={name: advised[file] for name, advised in shared.items()})
            for file, one in compared.items()
        ),
        notes=tuple(notes),
    )


def _project(file: str, project: Project, options: AdviceOptions) -> ComparedProject:
    from sfumato.advise import ComparedProject, advise, choice_of_budget

    own, period = project.budget, project.period
    budget = choice_of_budget(own)
    advice = advise(budget, **options)
    private = [one.declaration for one in project.tables if one.declaration.unit is not None]
    each = None if period is None else f"epsilon {float(period.budget.epsilon):g} each {period.every}"
    caps = [f"{one.name} {one.max_groups or '?'} x {one.max_rows or '?'}" for one in private]
    people = options.get("people")
    return ComparedProject(
        name=file,
        unit=project.unit,
        declared={
            "groups x rows of one": ", ".join(caps),
            "people": "not said" if people is None else f"{people:,}",
            "epsilon": f"{float(own.epsilon):g}",
            "delta": f"{float(own.delta):g}",
            "rule": own.rule.name,
            "renewed": each or "never",
        },
        budget=budget,
        advice=advice,
        year=_year(project, advice.risk),
    )


def _year(project: Project, whole: Risk) -> Risk:
    """Return the risk of a year: of all periods in it, and at most of the whole budget."""
    from sfumato.advise import risk_of

    if project.period is None:
        return whole
    year = risk_of(project.period.budget, times=_IN_A_YEAR[project.period.every])
    return min(whole, year, key=lambda risk: risk.advantage)


# -- what all of them declare -----------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """A kind of thing that project files declare by name."""

    said: str
    declared: Callable[[Project], Mapping[str, Any]]
    asked: Callable[[Any], object]  # what is asked, without how much is spent on it
    choice: Callable[[str, Project, Database], Choice]


def _kinds() -> tuple[_Kind, ...]:
    from sfumato.cli.marginals import declared_marginals
    from sfumato.cli.stream import declared_stream
    from sfumato.cli.workload import declared_workload
    from sfumato.session.choices import choice_of_marginals, choice_of_stream, choice_of_workload

    return (
        _Kind(
            said="stream",
            declared=lambda project: {one.name: one for one in project.streams},
            asked=lambda one: _fields(one, "epsilon", "purpose"),
            choice=lambda *named: choice_of_stream(declared_stream(*named)),
        ),
        _Kind(
            said="workload",
            declared=lambda project: project.workloads,
            asked=lambda one: (_statements(one.file), one.size),
            choice=lambda *named: choice_of_workload(declared_workload(*named)),
        ),
        _Kind(
            said="marginals",
            declared=lambda project: project.marginals,
            asked=lambda one: _fields(one, "epsilon", "weights"),
            choice=lambda *named: choice_of_marginals(declared_marginals(*named)),
        ),
    )


def _fields(declared: Any, *left_out: str) -> dict[str, object]:
    return {one.name: getattr(declared, one.name) for one in fields(declared) if one.name not in left_out}


def _statements(file: str) -> list[tuple[str, str]]:
    """Return the questions of a file, without the comments that say how much is spent on each."""
    from sfumato.cli.query import text_of
    from sfumato.cli.workload import questions_of

    def words(sql: str) -> str:
        kept_lines = (line for line in sql.splitlines() if not line.lstrip().startswith("--"))
        return " ".join(" ".join(kept_lines).rstrip(";").split())

    return [(one.name, words(one.sql)) for one in questions_of(text_of(file))]


def _shared(
    projects: Mapping[str, Project], options: Mapping[str, AdviceOptions]
) -> tuple[dict[str, dict[str, Advice]], list[str]]:
    """Return advice on what all projects declare and ask alike, by file; and what is left out, and why."""
    from sfumato.advise import advise
    from sfumato.cli.project import open_tables

    found: dict[str, dict[str, Advice]] = {}
    notes = []
    opened: dict[str, Database] = {}
    for kind in _kinds():
        declared = [kind.declared(project) for project in projects.values()]
        for name in declared[0]:
            if not all(name in one for one in declared):
                continue
            item = f"{kind.said} {name}"
            advised = {}
            try:
                if not _all_equal([kind.asked(one[name]) for one in declared]):
                    notes.append(f"{item} is not compared: it does not ask the same everywhere")
                    continue
                for file, project in projects.items():
                    if file not in opened:
                        opened[file] = open_tables(file, free=True)[1]
                    choice = kind.choice(name, project, opened[file])
                    advised[file] = advise(choice, **options[file])
            except SfumatoError as error:
                notes.append(f"{item} is not compared: {error.message}")
            else:
                found[item] = advised
    return found, notes


def _all_equal(values: Sequence[object]) -> bool:
    return all(one == values[0] for one in values)
