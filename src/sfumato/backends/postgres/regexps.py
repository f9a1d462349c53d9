"""Regular expressions in PostgreSQL's words, where they mean what they mean in RE2.

All sets are written out by code points, so that neither a locale nor a class of the engine's says what a
letter is; the collation "C" makes its word boundaries those of ASCII. Without captured groups the engine
reads a text by an automaton, in time linear in it. It prefers the longest match, or, of a pattern that is
asked for so, the shortest: what else RE2 would prefer is refused.

Where a match begins, and what a group captures, the engine tries place by place. For `a+b|c` that takes time
quadratic in the text. So what is extracted or replaced by such a pattern is NULL for a text of more than
4,096 code points: one row takes a tenth of a second at most.

The engine reads a pattern when it meets the first text, and fails at one whose automaton is too large: a
question would fail where one person has a text at all. Each place (`^`, `$`, `\\b`) doubles what lies around
it. So patterns with many of them are refused (`_MOST_PLACES`).
"""

from __future__ import annotations

from functools import partial
from math import inf

from sfumato.backends.dialect import Arguments, Renderer, Writer
from sfumato.backends.functions import LONGEST
from sfumato.backends.postgres.totality import bound
from sfumato.backends.regexp_matches import Extent, certain, empty, extent
from sfumato.backends.regexps import (
    Alternatives,
    Group,
    Place,
    Ranges,
    Repeat,
    Sequence,
    Set,
    Tree,
    complement,
    parsed,
)
from sfumato.catalog.kind import Kind
from sfumato.errors import Unsupported
from sfumato.plan.tree import Expression, Literal

__all__ = ["REGEXPS"]

_PLACES = {"^": "^", "$": "$", "b": r"\y"}
_HINTS = ("write the pattern so that the first match is the longest, as `ab|a` for `a|ab`",)


def _letter(point: int) -> str:
    if point < 128 and chr(point).isalnum():
        return chr(point)
    return rf"\u{point:04X}" if point < 2**16 else rf"\U{point:08X}"


def _set(ranges: Ranges) -> str:
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return _letter(ranges[0][0])
    opposite = bool(ranges) and ranges[0][0] == 0  # the engine has no letter 0
    shown = complement(ranges) if opposite else ranges
    if not shown:
        return r"[^\u0001]|\u0001".join(("(?:", ")")) if opposite else r"(?:\Z\A\u0001)"
    listed = "".join(_letter(a) if a == b else f"{_letter(a)}-{_letter(b)}" for a, b in shown)
    return f"[{'^' if opposite else ''}{listed}]"


def _written(tree: Tree, group: int | None) -> str:
    """Return a tree as the engine reads it; `group` is the only one that it captures."""
    match tree:
        case Set(ranges=ranges):
            return _set(ranges)
        case Place(name=name):
            return _PLACES[name]
        case Sequence(parts=parts):
            return "".join(
                f"(?:{_written(part, group)})" if isinstance(part, Alternatives) else _written(part, group)
                for part in parts
            )
        case Alternatives(parts=parts):
            return "|".join(_written(part, group) for part in parts)
        case Group(inside=inside, number=number):
            return f"({'?:' if number is None or number != group else ''}{_written(inside, group)})"
        case Repeat(inside=inside, least=least, most=most):
            times = f"{{{least},{'' if most is None else most}}}"
            return f"(?:{_written(inside, group)}){times}"


def _tree(arguments: Arguments, options: str) -> Tree:
    pattern = arguments[1]
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        raise Unsupported("a pattern that is not a constant")
    tree = parsed(pattern.value, any_case="i" in options)
    if _places(tree) > _MOST_PLACES:
        raise Unsupported(_MANY_PLACES, hints=("write each of them once, outside of what is repeated",))
    return tree


_MANY_PLACES = "a pattern with many of `^`, `$` and `\\b`, or with one that is repeated"
_MOST_PLACES = 6
"""With those of REGEXP_FULL_MATCH there are eight: of 130,000 patterns with eight none was too large."""


def _places(tree: Tree) -> float:
    """Return how many places a pattern has, its repetitions written out; infinity: some part has no end."""
    match tree:
        case Place():
            return 1
        case Repeat(inside=inside, most=most):
            inner = _places(inside)
            return inner and inner * (inf if most is None else most)
        case Group(inside=inside):
            return _places(inside)
        case Sequence(parts=parts) | Alternatives(parts=parts):
            return sum(map(_places, parts))
    return 0


def _options(argument: Expression | None) -> str:
    return str(argument.value) if isinstance(argument, Literal) else ""


def _matches(form: str, write: Writer, arguments: Arguments, kind: Kind) -> str:
    tree = _tree(arguments, _options((*arguments, None)[2]))
    text = write(arguments[0], Kind.TEXT)
    return f"({text} ~ {write.dialect.text(form.format(_written(tree, None)))})"


def _pattern(name: str, tree: Tree, group: int | None, write: Writer) -> str:
    """Return the text of a pattern whose match is RE2's."""
    of = extent(tree)
    if of is Extent.UNKNOWN:
        raise Unsupported(f"`{name}` with a pattern whose first match is not its longest", hints=_HINTS)
    text = f"(?:{_written(tree, group)}){{1,1}}{'?' if of is Extent.SHORTEST else ''}"
    return write.dialect.text(text)


_LONGEST = 2**12  # code points of a text that a pattern may take quadratic time for


def _endless(tree: Tree) -> bool:
    """Return whether a part of a pattern is repeated without end."""
    match tree:
        case Repeat(inside=inside, most=most):
            return most is None or _endless(inside)
        case Group(inside=inside):
            return _endless(inside)
        case Sequence(parts=parts) | Alternatives(parts=parts):
            return any(map(_endless, parts))
    return False


def _steady(tree: Tree, *, captures: bool) -> bool:
    """Return whether the engine finds a match in time linear in the text.

    Theorem: a pattern that begins at `^` is tried once. Where nothing is repeated without end but one code
    point at the very end, a try that has read more than the constant length before it has found a match; so
    each try that fails is short. A captured group is then divided at one of as few places.
    """
    match tree:
        case Alternatives(parts=parts):
            return all(_steady(part, captures=captures) for part in parts)
        case Group(inside=inside):
            return _steady(inside, captures=captures)
        case Sequence(parts=(Place(name="^"), *_)) if not captures:
            return True
        case Sequence(parts=(*before, last)):
            return not any(map(_endless, before)) and _steady(last, captures=captures)
        case Repeat(inside=Set()):
            return True
    return not _endless(tree)


def _searched(tree: Tree, text: str, *, captures: bool = False) -> str:
    """Return a text in which a pattern is found in good time."""
    if _steady(tree, captures=captures):
        return text
    return bound((text,), lambda x: f"CASE WHEN char_length({x}) <= {_LONGEST} THEN {x} END")


def _extract(write: Writer, arguments: Arguments, kind: Kind) -> str:
    """REGEXP_EXTRACT: '' where nothing matches, or where the group does not take part."""
    tree, wanted = _tree(arguments, ""), (*arguments, None)[2]
    group = wanted.value if isinstance(wanted, Literal) and isinstance(wanted.value, int) else 0
    if group and not certain(tree, group):
        raise Unsupported("`regexp_extract` of a group that a match can be divided into in several ways")
    pattern = _pattern("regexp_extract", tree, group, write)

    def found(x: str) -> str:
        part = f"coalesce((regexp_match({x}, {pattern}))[1] COLLATE \"C\", '')"
        return f"CASE WHEN {x} IS NOT NULL THEN {part} END"

    text = _searched(tree, write(arguments[0], Kind.TEXT), captures=group > 0)
    return bound((text,), found)


def _replace(write: Writer, arguments: Arguments, kind: Kind) -> str:
    replacement, options = arguments[2], _options((*arguments, None)[3])
    if not isinstance(replacement, Literal):
        raise Unsupported("replace by a text that is not a constant")
    tree = _tree(arguments, options)
    text = _searched(tree, write(arguments[0], Kind.TEXT))
    pattern = _pattern("regexp_replace", tree, None, write)
    by = write(replacement, Kind.TEXT)
    if "g" not in options:
        return f"regexp_replace({text}, {pattern}, {by})"
    if empty(tree):
        raise Unsupported("`regexp_replace` of all matches of a pattern that matches nothing")
    text = f"left({text}, {LONGEST // (1 + len(str(replacement.value)))})"
    return f"left(regexp_replace({text}, {pattern}, {by}, 'g'), {LONGEST})"


REGEXPS: dict[str, Renderer] = {
    "regexp_matches": partial(_matches, "{}"),
    "regexp_full_match": partial(_matches, "^(?:{})$"),
    "regexp_extract": _extract,
    "regexp_replace": _replace,
}
"""How functions of regular expressions are written."""
