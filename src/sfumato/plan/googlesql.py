"""GoogleSQL's differential privacy clause: options and named arguments, cut out before parsing.

    SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1, max_groups_contributed = 3, ..)
      item, SUM(quantity, contribution_bounds_per_group => (0, 100)) ..

The SQL parser does not know these pieces, so they are read from the tokens, one strict form
each, and their place in the text is filled with blanks; carets stay where they were. `docs/googlesql.md` says
what each of them means here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sqlglot import Token, TokenType, exp

from sfumato.errors import InvalidArgument
from sfumato.plan.limits import FURTHEST, is_number
from sfumato.plan.options import Options
from sfumato.plan.question import Clause, NamedArgument, Statement
from sfumato.plan.tree import Span

__all__ = ["cut", "translated"]

_COUNTS = {
    "max_groups_contributed": "max_groups",
    "max_rows_contributed": "max_rows_total",
    "min_privacy_units_per_group": "min_units",
}
_STRATEGIES = {"laplace_threshold": "selected", "public_groups": "declared"}
_OPTIONS = (
    "delta", "epsilon", "group_selection_epsilon", "group_selection_strategy", "max_groups_contributed",
    "max_rows_contributed", "min_privacy_units_per_group", "privacy_unit_column",
)  # fmt: skip
_BOUNDS = ("contribution_bounds_per_group", "contribution_bounds_per_row")
_REPORTS = ("json", "proto")
_FIRST = {"offset": 0, "ordinal": 1, "safe_offset": 0, "safe_ordinal": 1}
_OLD = {
    "anon_avg": "AVG(x, contribution_bounds_per_group => (0, 100))",
    "anon_count": "COUNT(*, contribution_bounds_per_group => (0, 100))",
    "anon_percentile_cont": "PERCENTILE_CONT(x, 0.5, contribution_bounds_per_row => (0, 100))",
    "anon_quantiles": "APPROX_QUANTILES(x, 4, contribution_bounds_per_row => (0, 100))",
    "anon_stddev_pop": "STDDEV_POP(x, contribution_bounds_per_row => (0, 100))",
    "anon_sum": "SUM(x, contribution_bounds_per_group => (0, 100))",
    "anon_var_pop": "VAR_POP(x, contribution_bounds_per_row => (0, 100))",
}


def cut(tokens: list[Token], question: Statement) -> str:
    """Return the text without what only GoogleSQL has, noting that in the question."""
    reader = _Reader(tokens, question)
    spans = [*reader.clauses(), *reader.arguments()]
    text = question.text
    for span in spans:
        piece = text[span.start : span.end]
        blank = "".join(letter if letter == "\n" else " " for letter in piece)
        text = text[: span.start] + blank + text[span.end :]
    return text


def translated(statement: exp.Expr) -> exp.Expr:
    """Return a statement with GoogleSQL's ways to reach into lists and reports in DuckDB's words.

    UNNEST([1, 2]) AS x has a column x. x[OFFSET(0)] is the first element of a list, and so is
    x[ORDINAL(1)]; report.result.value a part of a report; JSON_QUERY_ARRAY(x) the list itself; DOUBLE(x)
    a number.
    """
    for listed in statement.find_all(exp.Unnest):
        alias = listed.args.get("alias")
        if isinstance(alias, exp.TableAlias) and alias.this is not None and not alias.columns:
            alias.set("columns", [alias.this.copy()])
    for node in reversed(list(statement.walk())):  # inner ones first
        found = _in_our_words(node)
        if found is not node:
            found.meta.update(node.meta)
            node.replace(found)
    return statement


def _in_our_words(node: exp.Expr) -> exp.Expr:
    match node:
        case exp.Bracket(expressions=[exp.Anonymous(this=str(name), expressions=[exp.Literal() as place])]):
            first = _FIRST.get(name.lower())
            if first is not None and place.is_int:
                at = exp.Literal.number(int(place.this) - first + 1)
                return exp.Anonymous(this="list_extract", expressions=[node.this, at])
        case exp.Dot(expression=exp.Identifier()):
            field = exp.Literal.string(node.expression.name)
            return exp.StructExtract(this=node.this, expression=field)
        case exp.Anonymous(this=str(name), expressions=[exp.Expr() as value]) if (
            name.lower() == "json_query_array"
        ):
            return value
        case exp.Anonymous(this=str(name), expressions=[value]) if name.lower() == "double":
            return exp.cast(value, exp.DType.DOUBLE)
    return node


@dataclass(slots=True)
class _Reader:
    tokens: list[Token]
    question: Statement

    def clauses(self) -> list[Span]:
        """Read each SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(..)."""
        found: list[Span] = []
        for at in range(len(self.tokens) - 2):
            if self.tokens[at].token_type is not TokenType.SELECT or self._kind(at + 1) is not TokenType.WITH:
                continue
            name = self._word(at + 2)
            whole = self._span(at + 1, at + 2)
            if name == "anonymization":
                self._refuse_old(whole)
            if name != "differential_privacy":
                self.question.refuse(f"SELECT WITH {name} is not known", "SF401", whole)
            end = at + 2
            if self._word(at + 3) == "options":
                end = self._options(at + 4, whole)
            else:
                self.question.clauses.append(Clause(span=whole, end=whole.end))
            found.append(self._span(at + 1, end))
        return found

    def _refuse_old(self, whole: Span) -> None:
        """Refuse the form that GoogleSQL itself gave up, and say what it is called now."""
        hints = ["SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(..); kappa is now max_groups_contributed"]
        called = dict.fromkeys(word for at in range(len(self.tokens)) if (word := self._word(at)) in _OLD)
        hints += [f"{name.upper()} is now {_OLD[name]}" for name in called]
        self.question.refuse("SELECT WITH ANONYMIZATION is GoogleSQL's old form", "SF401", whole, *hints)

    def _options(self, at: int, whole: Span) -> int:
        self._expect(at, TokenType.L_PAREN)
        at += 1
        given: dict[str, Any] = {}
        seen: dict[str, Span] = {}
        unit: tuple[str | None, str] | None = None
        while True:
            name, place = self._word(at), self._span(at, at)
            if name not in _OPTIONS:
                hint = f"known options: {', '.join(_OPTIONS)}"
                self.question.refuse(f"no option `{name}`", "SF402", place, hint)
            if name in seen:
                self.question.refuse(f"`{name}` is given twice", "SF401", place)
            seen[name] = place
            self._expect(at + 1, TokenType.EQ)
            at += 2
            if name == "privacy_unit_column":
                unit, at = self._column(at)
            elif name == "group_selection_strategy":
                strategy = _STRATEGIES.get(self._word(at))
                if strategy is None:
                    message = f"the group selection strategy `{self._word(at)}` is not known"
                    place = self._span(at, at)
                    self.question.refuse(message, "SF402", place, "LAPLACE_THRESHOLD or PUBLIC_GROUPS")
                given["keys"] = strategy
                at += 1
            elif name == "max_groups_contributed" and self._kind(at) is TokenType.NULL:
                at += 1  # as if it were left out
            else:
                value, at = self._number(at)
                self._check_amount(name, value, self._span(at - 1, at - 1))
                given[_COUNTS.get(name, name)] = int(value) if name in _COUNTS else value
            if self._kind(at) is TokenType.R_PAREN:
                break
            self._expect(at, TokenType.COMMA)
            at += 1
        self._check_together(given, seen)
        if given.get("delta") == 1:  # every group may be shown: the budget's own delta is what there is
            del given["delta"]
        if "max_rows_total" in given:  # and no other cap, whatever is declared: none is tighter
            given |= {"max_groups": given["max_rows_total"], "max_rows": given["max_rows_total"]}
        keys_epsilon = given.pop("group_selection_epsilon", None)
        try:
            options = Options(**given)
        except InvalidArgument as error:
            self.question.refuse(error.message, "SF401", whole, *error.hints)
        self.question.clauses.append(
            Clause(
                span=whole,
                end=self.tokens[at].end + 1,
                unit=unit,
                options=options,
                keys_epsilon=keys_epsilon,
            )
        )
        return at

    def _check_amount(self, name: str, value: Fraction, place: Span) -> None:
        if name in _COUNTS and value.denominator != 1:
            self.question.refuse(f"`{name}` is a whole number", "SF401", place)
        if value < 0 or (value == 0 and name != "delta"):
            self.question.refuse(f"`{name}` must be above zero", "SF401", place)
        if name == "delta" and value > 1:
            self.question.refuse("`delta` is a chance: at most 1", "SF401", place)

    def _check_together(self, given: dict[str, Any], seen: dict[str, Span]) -> None:
        """Refuse options that contradict each other."""
        if "max_groups" in given and "max_rows_total" in given:
            place = seen["max_rows_contributed"]
            hint = "max_rows_contributed counts rows over all groups"
            self.question.refuse("cap groups or rows, not both", "SF404", place, hint)
        if given.get("keys") == "declared" and "min_units" in given:
            message = "min_privacy_units_per_group cannot stand beside PUBLIC_GROUPS"
            hint = "public groups are all shown: leave it out, or filter the answer with HAVING"
            self.question.refuse(message, "SF404", seen["min_privacy_units_per_group"], hint)

    def arguments(self) -> list[Span]:
        """Read the named arguments of aggregates: bounds of contributions, epsilon, report_format."""
        readers: dict[str, Callable[[int, Span], tuple[Any, int]]] = {
            **dict.fromkeys(_BOUNDS, self._bounds),
            "epsilon": self._epsilon,
            "report_format": self._report,
        }
        found: list[Span] = []
        opened: list[int] = []
        for at, token in enumerate(self.tokens):
            if token.token_type is TokenType.L_PAREN:
                opened.append(at)
            elif token.token_type is TokenType.R_PAREN and opened:
                opened.pop()
            name = token.text.lower()
            if name not in readers or self._kind(at + 1) is not TokenType.FARROW:
                continue
            place = self._span(at, at)
            if not opened or self._kind(at - 1) is not TokenType.COMMA:
                hint = "after its other arguments: SUM(x, contribution_bounds_per_group => (0, 100))"
                what = "bounds stand" if name in _BOUNDS else f"{name} stands"
                self.question.refuse(f"{what} inside an aggregate", "SF401", place, hint)
            value, after = readers[name](at + 2, place)
            start = self.tokens[opened[-1]].start
            call = Span(start, self._closing(opened[-1]))
            self.question.arguments.append(NamedArgument(name=name, value=value, call=call, span=place))
            found.append(self._span(at - 1, after - 1))
        return found

    def _bounds(self, at: int, place: Span) -> tuple[tuple[float, float], int]:
        self._expect(at, TokenType.L_PAREN)
        low, after = self._number(at + 1)
        self._expect(after, TokenType.COMMA)
        high, after = self._number(after + 1)
        self._expect(after, TokenType.R_PAREN)
        if low > high:
            hint = "the lower one comes first: (0, 100)"
            self.question.refuse("the lower bound is above the upper one", "SF401", place, hint)
        if max(-low, high) > FURTHEST:
            self.question.refuse("these bounds are too far apart", "SF401", place, "give nearer ones")
        return (float(low), float(high)), after + 1

    def _epsilon(self, at: int, place: Span) -> tuple[Fraction, int]:
        value, after = self._number(at)
        self._check_amount("epsilon", value, self._span(at, at))
        return value, after

    def _report(self, at: int, place: Span) -> tuple[str, int]:
        name = self._word(at)
        if name not in _REPORTS:
            hint = "report_format => JSON"
            self.question.refuse(f"the report format `{name}` is not known", "SF402", place, hint)
        return name, at + 1

    # -- tokens ------------------------------------------------------------------------------

    def _kind(self, at: int) -> TokenType | None:
        return self.tokens[at].token_type if 0 <= at < len(self.tokens) else None

    def _word(self, at: int) -> str:
        return self.tokens[at].text.lower() if 0 <= at < len(self.tokens) else ""

    def _span(self, first: int, last: int) -> Span:
        last = min(last, len(self.tokens) - 1)
        return Span(self.tokens[min(first, last)].start, self.tokens[last].end + 1)

    def _expect(self, at: int, kind: TokenType) -> None:
        if self._kind(at) is not kind:
            place = self._span(at, at)
            self.question.refuse(f"expected {kind.name.lower().replace('_', ' ')} here", "SF401", place)

    def _closing(self, at: int) -> int:
        depth = 0
        for token in self.tokens[at:]:
            depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
            if depth == 0:
                return token.end + 1
        self.question.refuse("a parenthesis is not closed", "SF401", self._span(at, at))

    def _number(self, at: int) -> tuple[Fraction, int]:
        sign, point = 1, ""
        if self._kind(at) is TokenType.DASH:
            sign, at = -1, at + 1
        if self._kind(at) is TokenType.DOT and self._touches(at):  # the tokenizer takes .01 apart
            point, at = ".", at + 1
        text = point + (self.tokens[at].text if at < len(self.tokens) else "")
        if self._kind(at) is not TokenType.NUMBER or not is_number(text):
            self.question.refuse("expected a number here", "SF401", self._span(at, at))
        return sign * Fraction(text.replace("_", "")), at + 1

    def _touches(self, at: int) -> bool:
        """Whether no blank follows a token."""
        return at + 1 < len(self.tokens) and self.tokens[at].end + 1 == self.tokens[at + 1].start

    def _column(self, at: int) -> tuple[tuple[str | None, str], int]:
        parts = [self.tokens[at].text] if at < len(self.tokens) else [""]
        at += 1
        while self._kind(at) is TokenType.DOT and len(parts) < 2:
            parts.append(self.tokens[at + 1].text if at + 1 < len(self.tokens) else "")
            at += 2
        return (parts[0] if len(parts) == 2 else None, parts[-1]), at
