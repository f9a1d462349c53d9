"""SQL text: one SELECT over tables of the catalog becomes a request, or is refused with a caret."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import cast

import sqlglot
from sqlglot import ErrorLevel, TokenType, exp
from sqlglot.errors import ParseError, TokenError, UnsupportedError

from sfumato.catalog.catalog import Catalog
from sfumato.core.steps import spend
from sfumato.errors import InvalidArgument
from sfumato.plan import googlesql
from sfumato.plan.context import Context, Released
from sfumato.plan.dialect import parsed
from sfumato.plan.limits import MOST_CHARACTERS, balanced, check_statement, check_tokens
from sfumato.plan.options import DEFAULT_OPTIONS, Options
from sfumato.plan.qualified_names import resolve_names
from sfumato.plan.question import Statement
from sfumato.plan.request import NamedQuery, Request
from sfumato.plan.selects import plan
from sfumato.plan.syntax import PLAIN
from sfumato.plan.tree import Span

__all__ = ["parse", "request_of"]

_BYTE_ORDER_MARK = "\ufeff"  # editors put it before a text
_STEPS_PER_TOKEN = 6
_STEPS = {TokenType.COMMA: 1, TokenType.NUMBER: 2, TokenType.STRING: 2}
_STARTS = {TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.L_PAREN}


def parse(text: str, catalog: Catalog) -> Request:
    """Return the request that a statement makes. A function of the text and the catalog alone."""
    if not isinstance(text, str):
        raise InvalidArgument(
            "a question is a text", place="sql", hints=("db.sql('SELECT COUNT(*) FROM people', epsilon=0.5)",)
        )
    question = Statement(text.removeprefix(_BYTE_ORDER_MARK), catalog)
    try:
        return request_of(_statement(question), question)
    except RecursionError:
        question.refuse("the question is nested too deeply", "SF401")


def request_of(statement: exp.Query, question: Statement) -> Request:
    """Return the request of a parsed statement."""
    resolve_names(statement, question)
    for node in statement.walk():
        if type(node) in PLAIN:
            question.only(node, *PLAIN[type(node)])
        for part, kind in (("table", exp.Identifier), ("alias", (exp.Identifier, exp.TableAlias))):
            if not isinstance(node.args.get(part), (kind, type(None))):
                hint = "FROM takes tables and SELECTs in parentheses; SUMMARIZE, PIVOT and VALUES are neither"
                question.refuse("this is not a plain name", "SF401", node, hint)
    context = Context(question)
    question.free = not context.private(statement)
    result = plan(statement, context, question.alias("answer"))
    if not isinstance(result, Released):
        hints = (
            "ask for aggregates: COUNT, SUM, AVG, MEDIAN, ..",
            "GROUP BY of the unit belongs into an inner query",
        )
        question.refuse("this would show rows of people", "SF404", statement, *hints)
    for entry in question.arguments:
        if not entry.taken:
            what = "these bounds apply" if entry.name.startswith("contribution") else f"{entry.name} applies"
            hint = "they belong to an aggregate of the outermost private SELECT"
            question.refuse(f"{what} to nothing", "SF404", entry.span, hint)
    for clause in question.clauses:
        if not clause.taken:
            hint = "the SELECT with the aggregates over private tables has the clause"
            question.refuse("the privacy clause is not on the private SELECT", "SF404", clause.span, hint)
    read = {table.name for table in result.query.find_all(exp.Table)}
    if question.free and not question.public:
        hint = "ask about a table: one of people, or a public one, which is free"
        question.refuse("this asks nothing of a private table", "SF404", statement, hint)
    if not question.free and not (question.queries and {one.name for one in question.queries} <= read):
        question.refuse("part of the answer is never used", "SF404", statement)
    queries, options = _options(question)
    return Request(
        text=question.text,
        queries=queries,
        postprocessing=_rendered(result.query, question),
        options=options,
        public=tuple(question.public),
    )


def _options(question: Statement) -> tuple[tuple[NamedQuery, ...], Options]:
    """Return the private questions, and what holds of all: of a single one, all that its clause says."""
    queries = tuple(question.queries)
    if len(queries) == 1:
        return (replace(queries[0], options=None),), queries[0].options or DEFAULT_OPTIONS
    costs = [one.options.epsilon for one in queries if one.options is not None]
    known = [cost for cost in costs if cost is not None]
    return queries, Options(epsilon=sum(known, Fraction(0)) if known and len(known) == len(queries) else None)


def _rendered(query: exp.Query, question: Statement) -> str:
    """Return post-processing as text that reads back as the very same query, or refuse it."""
    try:
        text = query.sql(dialect="duckdb", comments=False, identify=True, unsupported_level=ErrorLevel.RAISE)
        spend(len(text) // 8)
        again = sqlglot.parse_one(text, dialect="duckdb")
    except (UnsupportedError, ParseError):
        question.refuse("this post-processing cannot be written as SQL", "SF404")
    check_statement(again, question)
    if _quoted(balanced(again)) != _quoted(query):
        question.refuse("this post-processing does not read back as it was meant", "SF404")
    return text


def _quoted(query: exp.Expr) -> exp.Expr:
    copy = query.copy()
    for identifier in copy.find_all(exp.Identifier):
        identifier.set("quoted", True)
    return copy


def _statement(question: Statement) -> exp.Query:
    if len(question.text) > MOST_CHARACTERS:
        hint = "a long list of values is better kept in a public table, and joined"
        question.refuse(f"a question has at most {MOST_CHARACTERS:,} characters", "SF401", None, hint)
    if "\0" in question.text:
        question.refuse("a NUL character cannot stand in a question", "SF401")
    try:
        tokens = sqlglot.tokenize(question.text, dialect="duckdb")
    except TokenError:
        question.refuse("a quote or comment is not closed", "SF401")
    if not tokens:
        question.refuse("there is no question", "SF401")
    start = Span(tokens[0].start, tokens[0].end + 1)
    if tokens[0].token_type not in _STARTS:
        question.refuse("only a SELECT is a question", "SF407", start)
    spend(sum([_STEPS.get(token.token_type, _STEPS_PER_TOKEN) for token in tokens]))
    check_tokens(tokens, question)
    text = googlesql.cut(tokens, question)
    try:
        statements = parsed(text)
    except ParseError as error:
        question.refuse(_syntax(error), "SF401", _place(error, question.text))
    except (AssertionError, AttributeError, LookupError, TypeError, ValueError):  # the parser's own mistakes
        question.refuse("cannot read this", "SF401")
    found = [one for one in statements if one is not None and not isinstance(one, exp.Semicolon)]
    if len(found) != 1:
        at = found[1] if len(found) > 1 else None
        hint = "ask each by itself, or both in one: WITH a AS (..), b AS (..) SELECT .. FROM a, b"
        question.refuse("one statement at a time", "SF407", at, hint)
    if not isinstance(found[0], exp.Query):
        question.refuse("only a SELECT is a question", "SF407", start)
    statement = balanced(googlesql.translated(found[0]) if question.clauses else found[0])
    check_statement(statement, question)
    return cast(exp.Query, statement)


def _syntax(error: ParseError) -> str:
    detail = error.errors[0] if error.errors else {}
    description = str(detail.get("description") or "")
    if description.startswith("The number of provided arguments"):
        return "too many arguments"
    if description.startswith("Required keyword"):
        return "something is missing here"
    plain = description.partition(" but got <")[0].lower()
    return f"cannot read this: {plain}" if plain else "cannot read this"


def _place(error: ParseError, text: str) -> Span | None:
    detail = error.errors[0] if error.errors else {}
    line, column, mark = detail.get("line"), detail.get("col"), str(detail.get("highlight") or "")
    if not isinstance(line, int) or not isinstance(column, int):
        return None
    begin = sum(len(one) for one in text.splitlines(keepends=True)[: line - 1])
    end = begin + column
    start = max(begin, end - max(1, len(mark)))
    return Span(start, max(end, start + 1))
