"""The commands about surveys: plan one, answer it, collect the reports. Nobody is trusted with an answer."""

from __future__ import annotations

import csv
import io
import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from sfumato.cli.options import LevelOption, OutputOption, Plain, PlainOption, command, group_of
from sfumato.cli.outputs import check_apart, write
from sfumato.cli.screen import say, screen, working
from sfumato.errors import InvalidArgument

if TYPE_CHECKING:
    from sfumato.local.questions import SurveyQuestion
    from sfumato.local.survey import Survey

__all__ = ["survey_app"]

survey_app = group_of("Ask people who randomise their own answers: no collector is trusted with the truth.")

_Survey = Annotated[str, Argument(help="The published survey file.")]
_Delta = Annotated[
    float, Option("--delta", help="For shuffled reports: the chance that their epsilon is exceeded.")
]


@command(survey_app, "plan")
def _plan(
    words: Annotated[str, Argument(help="The question, as respondents read it.")],
    epsilon: Annotated[float, Option("--epsilon", "-e", help="What one report may give away.")],
    output: Annotated[str, Option("--output", "-o", help="The survey file to write.")] = "survey.toml",
    name: Annotated[str, Option("--name", help="A short name of the survey.")] = "survey",
    version: Annotated[int, Option("--version", help="Its version, counted from 1.")] = 1,
    answers: Annotated[
        str, Option("--answers", help="The answers, divided by commas; quoted if they hold one.")
    ] = "",
    size: Annotated[int, Option("--size", help="Instead: how many numbered answers there are.")] = 0,
    most: Annotated[int, Option("--most", help="How many answers a person may give at once.")] = 1,
    low: Annotated[str, Option("--low", help="The answer is a number: the least, as 0 or 1/3.")] = "",
    high: Annotated[str, Option("--high", help="And the largest.")] = "",
    text: Annotated[int, Option("--text", help="The answer is a text: how many bytes of it count.")] = 0,
    people: Annotated[int, Option("--people", help="How many are expected to answer.")] = 10_000,
    honest: Annotated[
        int | None, Option("--honest", help="How many are sure to answer by the rules, for shuffled reports.")
    ] = None,
    cap: Annotated[
        int | None, Option("--cap", help="Asked again and again: how many fresh reports a person ever makes.")
    ] = None,
    every: Annotated[
        int | None, Option("--every", help="With a cap: draw a fresh report every this many days.")
    ] = None,
    message_bits: Annotated[int, Option("--message-bits", help="How long a report may be.")] = 65_536,
    seconds: Annotated[float, Option("--seconds", help="How long counting all reports may take.")] = 60.0,
    force: Annotated[bool, Option("--force", help="Replace a survey file that is there already.")] = False,
    style: PlainOption = Plain.table,
) -> None:
    """Choose the protocol with the least error for a question, and write the file that binds both sides."""
    from sfumato.local.chooser import choose
    from sfumato.local.survey import Survey

    if Path(output).exists() and not force:
        raise InvalidArgument(
            f"{output} is there already, and may be published",
            place="--output",
            hints=(
                "give --output another name, or --force to replace it; its reports would not count any more",
            ),
        )
    question = _question(words, answers, size, most, low, high, text)
    choice = choose(question, epsilon=epsilon, people=people, message_bits=message_bits, seconds=seconds)
    survey = Survey.plan(
        name,
        question,
        epsilon=epsilon,
        version=version,
        protocol=choice.protocol,
        honest=honest,
        cap=cap,
        every=every,
    )
    write(survey.text.encode(), output, paid=False)
    say(
        {"file": output, "protocol": survey.protocol.name, "fingerprint": survey.fingerprint},
        f"{choice.explain()}\n{_told(survey)}\n{output} was written; its fingerprint is {survey.fingerprint}",
        as_json=style is Plain.json,
    )


@command(survey_app, "show")
def _show(file: _Survey, delta: _Delta = 1e-6, style: PlainOption = Plain.table) -> None:
    """Say what a survey asks, what it costs a respondent, and what they should be told."""
    from sfumato.local.results import printable
    from sfumato.local.shuffling import amplification, shown_above

    survey = _read(file)
    protocol = survey.protocol
    known: dict[str, Any] = {
        "name": survey.name,
        "version": survey.version,
        "question": survey.question.words,
        "kind": survey.question.kind,
        **survey.question.domain(),
        "protocol": protocol.name,
        "epsilon": protocol.epsilon,
        "message_bits": protocol.message_bits,
        "fingerprint": survey.fingerprint,
        "told": _told(survey),
    }
    shown = {**known, "epsilon": shown_above(protocol.epsilon)}
    if isinstance(known.get("answers"), list):
        shown["answers"] = ", ".join(known["answers"][:40]) + (", .." if len(known["answers"]) > 40 else "")
    lines = [printable(f"{name}: {value}") for name, value in shown.items() if name != "told"]
    if survey.cap is not None:
        known["lifetime_epsilon"] = float(survey.lifetime or 0)
        kept = (
            "kept by value, and so only between lives that differ in nothing but which value is which"
            if survey.every is None
            else f"one every {survey.every} days, between any two lives"
        )
        lifetime = shown_above(known["lifetime_epsilon"])
        lines.append(f"lifetime: epsilon {lifetime}, {survey.cap} reports at most, {kept}")
    if survey.honest is not None:
        shuffled = amplification(protocol, survey.honest, delta)
        known["shuffled_epsilon"] = shuffled.central
        lines.append(str(shuffled) if survey.cap is None else f"{shuffled} Of one day's batch.")
    say(known, "\n".join([*lines, known["told"]]), as_json=style is Plain.json)


@command(survey_app, "answer", context_settings={"ignore_unknown_options": True})
def _answer(
    file: _Survey,
    answers: Annotated[list[str], Argument(help="The true answer, or - to read it from standard input.")],
    memory: Annotated[
        str | None, Option("--memory", help="Of a repeated survey: where earlier reports of yours are kept.")
    ] = None,
    day: Annotated[int, Option("--day", help="Of a repeated survey: the day's number.")] = 0,
) -> None:
    """Randomise one answer, and print the report as a line of JSON: what a phone does."""
    from sfumato.local import client

    _read(file)
    try:
        survey = client.load(Path(file).read_bytes())
        several = survey["survey"]["kind"] == "several_of"
        given = sys.stdin.read().splitlines() if answers == ["-"] else answers
        with nullcontext() if memory is None else client.opened_memory(memory) as kept:
            found = client.report(survey, given if several else " ".join(given), kept, day)
    except client.Refused as refusal:
        raise InvalidArgument(str(refusal), place="answer") from None
    except OSError as error:
        raise InvalidArgument(
            f"the memory cannot be kept: {error.strerror or type(error).__name__}", place="--memory"
        ) from None
    sys.stdout.write(json.dumps(found) + "\n")


@command(survey_app, "collect")
def _collect(
    file: _Survey,
    reports: Annotated[
        list[str], Argument(help="Files or folders of reports: .jsonl, .parquet, .arrow; - for lines.")
    ],
    level: LevelOption = 0.95,
    simplex: Annotated[
        bool, Option("--simplex", help="Move shares to where none is negative and all add up to one.")
    ] = False,
    day: Annotated[int | None, Option("--day", help="Of a repeated survey: the day to collect.")] = None,
    output: OutputOption = None,
    style: PlainOption = Plain.table,
) -> None:
    """Estimate what people answered from their reports, with limits, and say what was not counted."""
    from sfumato.local.collector import collect

    survey = _read(file)
    if output is not None:
        check_apart(
            output, {file: "the survey file", **dict.fromkeys(reports, "a file of reports")}, "--output"
        )
    with working("collecting"):
        result = collect(survey, reports, level=level, simplex=simplex, day=day)
    if not result.counted:
        dropped = [f"{number:,} {reason}" for reason, number in result.dropped.items() if number]
        why = f"what was dropped: {', '.join(dropped)}" if dropped else "there are none in what was given"
        raise InvalidArgument("no report was counted", place="reports", hints=(why,))
    text = json.dumps(result.to_dict(), ensure_ascii=False) if style is Plain.json else repr(result)
    if output is None:
        screen().print(text)
    else:
        write(f"{text}\n".encode(), output, paid=False)


@command(survey_app, "simulate")
def _simulate(
    file: _Survey,
    shares: Annotated[list[str], Argument(help="Who gives which answer: yes=0.2 no=0.8, or 34=0.5 40=0.5.")],
    people: Annotated[int, Option("--people", help="How many invented people answer.")] = 10_000,
    output: Annotated[
        str, Option("--output", "-o", help="Their reports, a .parquet or .jsonl file.")
    ] = "reports.parquet",
) -> None:
    """Invent respondents whose true answers are known, and write their reports: to try a survey out."""
    from sfumato.local.simulation import simulated

    check_apart(output, {file: "the survey file"}, "--output")
    if not output.lower().endswith((".parquet", ".jsonl")):
        raise InvalidArgument(
            "reports are written to a .parquet or .jsonl file", place="--output", hints=("-o reports.jsonl",)
        )
    reports = simulated(_read(file), _shares(shares), people)
    write(_written(reports, lines=output.lower().endswith(".jsonl")), output, paid=False)
    screen().print(f"{people:,} reports of invented people were written to {output}")


@command(survey_app, "vectors")
def _vectors(
    file: _Survey,
    answers: Annotated[list[str], Argument(help="The answers to make reports of.")],
    times: Annotated[int, Option("--times", help="How many reports of each.")] = 4,
) -> None:
    """Write draws and the reports they make, a line of JSON each: what a port of the client must do."""
    from sfumato.local import client
    from sfumato.local.examples import examples
    from sfumato.local.questions import SeveralOf

    several = isinstance(_read(file).question, SeveralOf)
    try:
        for line in examples(Path(file).read_bytes(), [answers] if several else answers, times):
            sys.stdout.write(json.dumps(line) + "\n")
    except client.Refused as refusal:
        raise InvalidArgument(str(refusal), place="answers") from None


def _read(file: str) -> Survey:
    from sfumato.local.survey import Survey

    return Survey.read(file)


def _written(reports: Any, *, lines: bool) -> bytes:
    """Return a table of reports as the bytes of a Parquet file, or as lines of JSON."""
    from pyarrow.parquet import write_table

    if lines:
        rows = (
            {name: value.hex() if isinstance(value, bytes) else value for name, value in row.items()}
            for row in reports.to_pylist()
        )
        return "".join(json.dumps(row) + "\n" for row in rows).encode()
    target = io.BytesIO()
    write_table(reports, target)
    return target.getvalue()


def _told(survey: Survey) -> str:
    from sfumato.local.deniability import told

    return told(survey).sentence


def _question(
    words: str, answers: str, size: int, most: int, low: str, high: str, text: int
) -> SurveyQuestion:
    from sfumato.local.questions import NumberIn, OneAnswer, SeveralOf, Text, YesNo

    (cells,) = csv.reader([answers], skipinitialspace=True) if answers else ([],)
    listed = tuple(name.strip() for name in cells if name.strip())
    if sum((bool(listed), bool(size), bool(low or high), bool(text))) > 1:
        raise InvalidArgument(
            "a question has one kind of answer",
            place="--answers",
            hints=("give --answers, or --size, or --low and --high, or --text",),
        )
    if bool(low) != bool(high):
        raise InvalidArgument("a range has two ends", place="--low", hints=("give --low and --high",))
    if 1 in (len(listed), size):
        raise InvalidArgument(
            "a question needs two answers at least",
            place="--size" if size else "--answers",
            hints=("--answers yes,no, for example; without answers it is a question of yes and no",),
        )
    if most > 1 and not (listed or size):
        raise InvalidArgument(
            "there are no answers to choose several of", place="--most", hints=("--answers",)
        )
    if low:
        return NumberIn(words=words, low=low, high=high)  # type: ignore[arg-type]
    if text:
        return Text(words=words, length=text)
    if not listed and not size:
        return YesNo(words=words)
    if most > 1:
        return SeveralOf(words=words, answers=listed, size=size, most=most)
    return OneAnswer(words=words, answers=listed, size=size)


def _shares(texts: list[str]) -> dict[str, float]:
    try:
        pairs = [text.rsplit("=", 1) for text in texts]
        return {answer: float(share) for answer, share in pairs}
    except ValueError:
        raise InvalidArgument(
            "an answer and its share are written as answer=share", place="shares", hints=("yes=0.2 no=0.8",)
        ) from None
