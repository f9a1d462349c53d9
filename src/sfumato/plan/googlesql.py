"""GoogleSQL's differential privacy clause: options and contribution bounds, cut out before parsing.

    SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1, max_groups_contributed = 3, ..)
      item, SUM(quantity, contribution_bounds_per_group => (0, 100)) ..

The SQL parser does not know these pieces, so they are read from the tokens, one strict form
each, and their place in the text is filled with blanks; carets stay where they were.

epsilon                        what this question may spend
delta                          the chance that selecting groups shows one that a single unit made; what
                               noise loses is paid from the budget's own delta
privacy_unit_column            must be the unit that the catalog names
max_groups_contributed         groups that one unit may be in
max_rows_contributed           rows of one unit over all groups: max_rows_total, and no other cap
min_privacy_units_per_group    groups with fewer units, by their noisy number, are not shown
group_selection_strategy       LAPLACE_THRESHOLD: groups pass private selection;
                               PUBLIC_GROUPS: all groups are known in advance
contribution_bounds_per_group  clamp what one unit adds to a group: its sum, its count, its average
contribution_bounds_per_row    clamp each value
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sqlglot import Token, TokenType

from sfumato.errors import InvalidArgument
from sfumato.plan.limits import FURTHEST, is_number
from sfumato.plan.question import Bounds, Clause, Statement
from sfumato.plan.request import Options
from sfumato.plan.tree import Span

__all__ = ["cut"]

_COUNTS = {
    "max_groups_contributed": "max_groups",
    "max_rows_contributed": "max_rows_total",
    "min_privacy_units_per_group": "min_units",
}
_STRATEGIES = {"laplace_threshold": "selected", "public_groups": "declared"}
_OPTIONS = (
    "delta", "epsilon", "group_selection_strategy", "max_groups_contributed", "max_rows_contributed",
    "min_privacy_units_per_group", "privacy_unit_column",
)  # fmt: skip
_BOUNDS = {"contribution_bounds_per_group": True, "contribution_bounds_per_row": False}


def cut(tokens: list[Token], question: Statement) -> str:
    """Return the text without what only GoogleSQL has, noting that in the question."""
    reader = _Reader(tokens, question)
    spans = [*reader.clauses(), *reader.bounds()]
    text = question.text
    for span in spans:
        piece = text[span.start : span.end]
        blank = "".join(letter if letter == "\n" else " " for letter in piece)
        text = text[: span.start] + blank + text[span.end :]
    return text


@dataclass(slots=True)
class _Reader:
    tokens: list[Token]
    question: Statement

    def clauses(self) -> list[Span]:
        """Read SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(..), at most once."""
        found: list[Span] = []
        for at in range(len(self.tokens) - 2):
            if self._kind(at) is not TokenType.SELECT or self._kind(at + 1) is not TokenType.WITH:
                continue
            name = self._word(at + 2)
            whole = self._span(at + 1, at + 2)
            if name != "differential_privacy":
                hints = ("WITH DIFFERENTIAL_PRIVACY is the current form",) if name == "anonymization" else ()
                self.question.refuse(f"SELECT WITH {name} is not known", "SF401", whole, *hints)
            if found:
                self.question.refuse("only one SELECT can have this clause", "SF404", whole)
            end = at + 2
            if self._word(at + 3) == "options":
                end = self._options(at + 4, whole)
            else:
                self.question.clause = Clause(span=whole, end=whole.end, unit=None)
            found.append(self._span(at + 1, end))
        return found

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
            else:
                value, at = self._number(at)
                if name in _COUNTS and value.denominator != 1:
                    self.question.refuse(f"`{name}` is a whole number", "SF401", self._span(at - 1, at - 1))
                if value <= 0:
                    place = self._span(at - 1, at - 1)
                    self.question.refuse(f"`{name}` must be above zero", "SF401", place)
                given[_COUNTS.get(name, name)] = int(value) if name in _COUNTS else value
            if self._kind(at) is TokenType.R_PAREN:
                break
            self._expect(at, TokenType.COMMA)
            at += 1
        if "max_groups" in given and "max_rows_total" in given:
            place = seen["max_rows_contributed"]
            hint = "max_rows_contributed counts rows over all groups"
            self.question.refuse("cap groups or rows, not both", "SF404", place, hint)
        if "max_rows_total" in given:  # and no other cap, whatever is declared: none is tighter
            given |= {"max_groups": given["max_rows_total"], "max_rows": given["max_rows_total"]}
        try:
            self.question.options = Options(**given)
        except InvalidArgument as error:
            self.question.refuse(error.message, "SF401", whole, *error.hints)
        self.question.clause = Clause(span=whole, end=self.tokens[at].end + 1, unit=unit)
        return at

    def bounds(self) -> list[Span]:
        """Read the named arguments by which aggregates bound contributions."""
        found: list[Span] = []
        opened: list[int] = []
        for at, token in enumerate(self.tokens):
            if token.token_type is TokenType.L_PAREN:
                opened.append(at)
            elif token.token_type is TokenType.R_PAREN and opened:
                opened.pop()
            if self._word(at) == "report_format" and self._kind(at + 1) is TokenType.FARROW:
                hint = "leave it out: every answer comes with its interval"
                self.question.refuse("report_format is not supported", "SF404", self._span(at, at), hint)
            if self._word(at) not in _BOUNDS or self._kind(at + 1) is not TokenType.FARROW:
                continue
            place = self._span(at, at)
            if not opened or self._kind(at - 1) is not TokenType.COMMA:
                hint = "as the last argument: SUM(x, contribution_bounds_per_group => (0, 100))"
                self.question.refuse("bounds stand inside an aggregate", "SF401", place, hint)
            self._expect(at + 2, TokenType.L_PAREN)
            low, after = self._number(at + 3)
            self._expect(after, TokenType.COMMA)
            high, after = self._number(after + 1)
            self._expect(after, TokenType.R_PAREN)
            if low > high:
                hint = "the lower one comes first: (0, 100)"
                self.question.refuse("the lower bound is above the upper one", "SF401", place, hint)
            if max(-low, high) > FURTHEST:
                self.question.refuse("these bounds are too far apart", "SF401", place, "give nearer ones")
            start = self.tokens[opened[-1]].start
            self.question.bounds.append(
                Bounds(
                    per_group=_BOUNDS[self._word(at)],
                    bounds=(float(low), float(high)),
                    call=Span(start, self._closing(opened[-1])),
                    span=place,
                )
            )
            found.append(self._span(at - 1, after))
        return found

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
        sign = 1
        if self._kind(at) is TokenType.DASH:
            sign, at = -1, at + 1
        if self._kind(at) is not TokenType.NUMBER or not is_number(self.tokens[at].text):
            self.question.refuse("expected a number here", "SF401", self._span(at, at))
        return sign * Fraction(self.tokens[at].text.replace("_", "")), at + 1

    def _column(self, at: int) -> tuple[tuple[str | None, str], int]:
        parts = [self.tokens[at].text] if at < len(self.tokens) else [""]
        at += 1
        while self._kind(at) is TokenType.DOT and len(parts) < 2:
            parts.append(self.tokens[at + 1].text if at + 1 < len(self.tokens) else "")
            at += 2
        return (parts[0] if len(parts) == 2 else None, parts[-1]), at
