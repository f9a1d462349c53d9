"""`sfumato advise --compare a.toml b.toml`: projects side by side, from what their files declare."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
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
    from sfumato.catalog.project import ProjectStream
    from sfumato.session import Database, Question

__all__ = ["compare_projects"]

_ANY = Fraction(1)  # in the place of an epsilon that may differ
_IN_A_YEAR = {"day": 365, "week": 52, "month": 12, "year": 1}


def compare_projects(wishes: AdviceWishes, output: str | None, *, as_json: bool) -> None:
    """Show what the budgets of projects mean, and what they declare in common."""
    from sfumato.catalog import read_project

    named = list(dict.fromkeys(wishes.questions or []))
    files = [one for one in named if one.lower().endswith(".toml")]
    if len(files) < 2:
        raise InvalidArgument(
            "name two project files at least",
            place="--compare",
            hints=('sfumato advise --compare a.toml b.toml, and questions for both: "SELECT .."',),
        )
    free = ("questions", "people", "prior", "family", "size")
    if replace(AdviceWishes(), **{name: getattr(wishes, name) for name in free}) != wishes:
        raise InvalidArgument(
            "projects are compared as they are: no other epsilon, no limit and no error can be stated",
            place="--compare",
            hints=("--people, --prior, --family and --size are the same for all of them",),
        )
    projects = {file: read_project(file) for file in files}
    for project in projects.values():
        can_write(output, kept(project))
    with working("comparing"):
        found = _compared(projects, [one for one in named if one not in files], wishes)
        if output is not None:
            write(found.document().html().encode(), output, paid=False)
    lines = [*found.lines(), *([] if output is None else [f"written: {output}"])]
    say(found.record(), "\n".join(lines), as_json=as_json)


def _compared(
    projects: Mapping[str, Project], questions: Sequence[str], wishes: AdviceWishes
) -> ProjectComparison:
    from sfumato.advise import ProjectComparison

    options = {
        file: options_of(replace(wishes, people=project.people if wishes.people is None else wishes.people))
        for file, project in projects.items()
    }
    compared = {file: _project(file, project, options[file]) for file, project in projects.items()}
    shared, notes = _shared(projects, [*_asked(questions, wishes.size), *_declared(projects)], options)
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


# -- what is asked of all of them -------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Common:
    """Something that can be asked of every project: a question, or what all files declare by one name."""

    name: str
    choice: Callable[[Project, Database], Choice]
    asked: Callable[[Project], object]  # without how much is spent on it: it must be the same for all


def _shared(
    projects: Mapping[str, Project], common: Iterable[_Common], options: Mapping[str, AdviceOptions]
) -> tuple[dict[str, dict[str, Advice]], list[str]]:
    """Return advice on what all projects can be asked, by file; and what is left out, and why."""
    from sfumato.advise import advise
    from sfumato.cli.project import open_tables

    found: dict[str, dict[str, Advice]] = {}
    notes = []
    opened: dict[str, Database] = {}
    for one in common:
        advised = {}
        file = next(iter(projects))
        try:
            asked = [one.asked(project) for project in projects.values()]
            if any(each != asked[0] for each in asked):
                notes.append(f"{one.name} is not compared: it does not ask the same everywhere")
                continue
            for file, project in projects.items():
                if file not in opened:
                    opened[file] = open_tables(file, free=True)[1]
                advised[file] = advise(one.choice(project, opened[file]), **options[file])
        except SfumatoError as error:
            notes.append(f"{one.name} is not compared: {file}: {error.message}")
        else:
            found[one.name] = advised
    return found, notes


def _asked(questions: Sequence[str], size: float | None) -> Iterator[_Common]:
    """Yield questions that are put to every project, as if all of its budget went to each of them."""
    from sfumato.cli.query import question_text

    for place, one in enumerate(questions, 1):
        text = question_text(one)

        def choice(_: Project, database: Database, text: str = text) -> Choice:
            return database.choice(database.sql(text), size=size)

        yield _Common(name=f"question {place}", choice=choice, asked=lambda _: None)


def _declared(projects: Mapping[str, Project]) -> Iterator[_Common]:
    """Yield the streams, workloads and marginals that all projects declare by the same name."""
    from sfumato.cli.marginals import declared_marginals
    from sfumato.cli.stream import declared_stream
    from sfumato.cli.workload import declared_workload

    for name in _names(projects, _streams):
        yield _Common(
            name=f"stream {name}",
            choice=_chosen(declared_stream, name),
            asked=partial(_periods, name),
        )
    for name in _names(projects, lambda project: project.workloads):
        yield _Common(
            name=f"workload {name}",
            choice=_chosen(declared_workload, name),
            asked=partial(_statements, name),
        )
    for name in _names(projects, lambda project: project.marginals):
        yield _Common(
            name=f"marginals {name}",
            choice=_chosen(declared_marginals, name),
            asked=partial(_tables, name),
        )


def _chosen(
    declared: Callable[[str, Project, Database], Question[Any, Any]], name: str
) -> Callable[[Project, Database], Choice]:
    """Return how the epsilon of what is declared by a name is chosen, in whichever project."""
    return lambda project, database: declared(name, project, database).choice()


def _names(
    projects: Mapping[str, Project], declared: Callable[[Project], Mapping[str, object]]
) -> Iterator[str]:
    """Yield the names that all projects declare."""
    first, *others = (declared(project) for project in projects.values())
    return (name for name in first if all(name in one for one in others))


def _streams(project: Project) -> dict[str, ProjectStream]:
    return {one.name: one for one in project.streams}


def _periods(name: str, project: Project) -> object:
    """Return what a stream asks of which periods."""
    return replace(_streams(project)[name], epsilon=_ANY, purpose=None)


def _tables(name: str, project: Project) -> object:
    """Return which tables are asked for."""
    return replace(project.marginals[name], epsilon=_ANY, weights="cells")


def _statements(name: str, project: Project) -> object:
    """Return the questions of a workload, without the comments that say how much is spent on each."""
    from sfumato.cli.query import text_of
    from sfumato.cli.workload import questions_of

    def words(sql: str) -> str:
        said = (line for line in sql.splitlines() if not line.lstrip().startswith("--"))
        return " ".join(" ".join(said).rstrip(";").split())

    declared = project.workloads[name]
    return declared.size, [(one.name, words(one.sql)) for one in questions_of(text_of(declared.file))]
