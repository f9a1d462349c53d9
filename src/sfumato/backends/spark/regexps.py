"""Regular expressions in Java's words: those that take linear time.

Java prefers the match that RE2 does: the leftmost, and there the first way. But it tries one way after the
other, takes exponential time for some patterns and texts, and the whole stack for a group that is repeated
without end: a value of one person could stop a question. So a pattern is written only if steps are bounded:

* repetitions without end are of one code point, in the sequence itself; the engine has a loop for those;
* everything else has at most a thousand ways at one place;
* a run that must end before what follows it (no code point of it can begin that) is never tried shorter;
* a pattern that may begin anywhere has a run last, where it cannot fail any more, or first, where it is tried
  at the beginning of a run alone: behind it, it would have the same end;
* one that begins at `^` may have one run, besides, that is tried at all lengths, with no other run behind it.

What is not of this form is refused by name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from sfumato.backends.dialect import Arguments, Renderer, Writer
from sfumato.backends.functions import LONGEST
from sfumato.backends.regexp_matches import empty
from sfumato.backends.regexps import (
    LAST,
    WORD,
    Alternatives,
    Group,
    Place,
    Ranges,
    Repeat,
    Sequence,
    Set,
    Tree,
    complement,
    joined,
    parsed,
)
from sfumato.catalog.kind import Kind
from sfumato.errors import Unsupported
from sfumato.plan.tree import Expression, Literal

__all__ = ["REGEXPS"]

_MOST_WAYS = 1000
_ONCE = r"(?!\G(?<=(?s:.)))"  # not where a match has ended, behind which a second one could be of nothing
_REFUSED = "a regular expression that could take Spark more than linear time"


def _tree(arguments: Arguments, options: str) -> Tree:
    pattern = arguments[1]
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        raise Unsupported("a pattern that is not a constant")
    return parsed(pattern.value, any_case="i" in options)


def _options(argument: Expression | None) -> str:
    return str(argument.value) if isinstance(argument, Literal) else ""


def _written(tree: Tree, *, group: int = 0, whole: bool = False) -> str:
    """Return a pattern in Java's words; of its groups `group` alone is captured. `whole`: all of a text."""
    tree = _simple(tree, group)
    choices = tree.parts if isinstance(tree, Alternatives) else (tree,)
    ends = (Place("^"), Place("$"))
    return "|".join(_line([*ends[:whole], *_flat(choice), *ends[2 - whole :]]) for choice in choices)


def _matches(whole: bool, write: Writer, arguments: Arguments, kind: Kind) -> str:
    tree = _simple(_tree(arguments, _options((*arguments, None)[2])), 0)
    pattern = write.dialect.text(_written(tree if whole else _shortened(tree), whole=whole))
    return f"regexp_like({write(arguments[0], Kind.TEXT)}, {pattern})"


def _shortened(tree: Tree) -> Tree:
    """Return a pattern that is found wherever another is: runs at its ends are as short as they can be."""
    match tree:
        case Alternatives(parts=parts):
            return Alternatives(tuple(map(_shortened, parts)))
        case Sequence(parts=(first, *middle, last)):
            return Sequence((_shortened(first), *middle, _shortened(last)))
        case Repeat(inside=Set(), least=least, most=None):
            return replace(tree, most=least)
    return tree


def _extract(write: Writer, arguments: Arguments, kind: Kind) -> str:
    """REGEXP_EXTRACT: '' where nothing matches, or where the group does not take part."""
    tree, wanted = _tree(arguments, ""), (*arguments, None)[2]
    group = wanted.value if isinstance(wanted, Literal) and isinstance(wanted.value, int) else 0
    pattern = write.dialect.text(_written(tree, group=group))
    return f"regexp_extract({write(arguments[0], Kind.TEXT)}, {pattern}, {min(group, 1)})"


def _replace(write: Writer, arguments: Arguments, kind: Kind) -> str:
    """REGEXP_REPLACE: of the first match, by reading all that is behind it, and putting it back."""
    replacement, options = arguments[2], _options((*arguments, None)[3])
    if not isinstance(replacement, Literal):
        raise Unsupported("replace by a text that is not a constant")
    tree, text = _tree(arguments, options), write(arguments[0], Kind.TEXT)
    pattern, by = _written(tree), str(replacement.value).replace("$", "\\$")
    if "g" not in options:
        pattern, by = (write.dialect.text(one) for one in (f"{_ONCE}(?:{pattern})((?s:.*))", f"{by}$1"))
        return f"regexp_replace({text}, {pattern}, {by})"
    if empty(tree):
        raise Unsupported("`regexp_replace` of all matches of a pattern that matches nothing")
    text = f"left({text}, {LONGEST // (1 + len(str(replacement.value)))})"
    pattern, by = write.dialect.text(pattern), write.dialect.text(by)
    return f"left(regexp_replace({text}, {pattern}, {by}), {LONGEST})"


# -- simpler trees --------------------------------------------------------------------------


def _simple(tree: Tree, group: int) -> Tree:
    """Return a tree with one group, the one that is asked for, and sets instead of choices of letters."""
    match tree:
        case Group(inside=inside, number=number):
            simple = _simple(inside, group)
            if number is not None and number == group:
                return Group(simple, 1)
            return simple if isinstance(simple, Set | Group) else Group(simple, None)
        case Sequence(parts=parts):
            return Sequence(tuple(_simple(part, group) for part in parts))
        case Alternatives(parts=parts):
            found = tuple(_simple(part, group) for part in parts)
            if all(isinstance(one, Set) for one in found):
                return Set(joined(pair for one in found if isinstance(one, Set) for pair in one.ranges))
            return Alternatives(found)
        case Repeat(inside=inside):
            simple = _simple(inside, group)
            if _captures(simple):
                raise Unsupported("a group of a regular expression that is repeated, in Spark")
            return replace(tree, inside=simple)
    return tree


def _captures(tree: Tree) -> bool:
    match tree:
        case Group(inside=inside, number=number):
            return number is not None or _captures(inside)
        case Sequence(parts=parts) | Alternatives(parts=parts):
            return any(map(_captures, parts))
        case Repeat(inside=inside):
            return _captures(inside)
    return False


# -- sequences ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Mark:
    """A parenthesis around parts of the sequence."""

    text: str


_Part = Tree | _Mark


def _flat(tree: Tree) -> list[_Part]:
    """Return a sequence without groups that are there once: their parentheses stand between the parts."""
    match tree:
        case Sequence(parts=parts):
            return [one for part in parts for one in _flat(part)]
        case Group(inside=inside, number=number) if number is not None or not isinstance(
            inside, Alternatives
        ):
            if isinstance(inside, Alternatives):
                return [_Mark("("), inside, _Mark(")")]
            marks = (_Mark("("), _Mark(")")) if number is not None else ()
            return [*marks[:1], *_flat(inside), *marks[1:]]
        case Group(inside=inside):
            return [inside]
    return [tree]


def _run(part: _Part) -> bool:
    return isinstance(part, Repeat) and part.most is None and isinstance(part.inside, Set)


def _line(parts: list[_Part]) -> str:
    """Return a sequence, if its form is one that takes linear time."""
    real = [place for place, part in enumerate(parts) if not isinstance(part, _Mark)]
    anchored = bool(real) and parts[real[0]] == Place("^")
    text, ways, tried = [], 1, False
    for place, part in enumerate(parts):
        if isinstance(part, _Mark):
            text.append(part.text)
            continue
        if not _run(part):
            ways *= _ways(part)
            text.append(_java(part))
            continue
        assert isinstance(part, Repeat) and isinstance(part.inside, Set)
        rest = [one for one in parts[place + 1 :] if not isinstance(one, _Mark)]
        letters, least = _java(part.inside), part.least
        if not rest:
            text.append(f"{letters}{{{least},}}" if part.greedy else f"{letters}{{{least}}}")
            continue
        if tried:
            raise Unsupported(_REFUSED)
        alone = _apart(part.inside.ranges, rest)
        if not anchored and (not alone or place != real[0]):
            raise Unsupported(_REFUSED)
        if not alone:
            tried = True
            text.append(f"{letters}{{{least},}}{'' if part.greedy else '?'}")
            continue
        begin = "" if anchored else f"(?:(?<!{letters})|\\G)"
        text.append(f"{begin}{letters}{{{least},}}+")
    if ways > _MOST_WAYS:
        raise Unsupported(_REFUSED)
    return "".join(text)


def _apart(ranges: Ranges, rest: list[Tree]) -> bool:
    """Return whether what follows a run can begin with none of its code points, nor be empty."""
    if rest == [Place("$")]:
        return True
    first, empty = _first(Sequence(tuple(rest)))
    return not empty and not any(
        low <= last and begin <= high for low, high in ranges for begin, last in first
    )


def _first(tree: Tree) -> tuple[Ranges, bool]:
    """Return the code points with which a match may begin, and whether it may be empty."""
    match tree:
        case Set(ranges=ranges):
            return ranges, False
        case Group(inside=inside):
            return _first(inside)
        case Repeat(inside=inside, least=least, most=most):
            ranges, empty = _first(inside)
            return (ranges, empty or least == 0) if most != 0 else ((), True)
        case Alternatives(parts=parts):
            found = [_first(part) for part in parts]
            return tuple(pair for ranges, _ in found for pair in ranges), any(empty for _, empty in found)
        case Sequence(parts=parts):
            every: Ranges = ()
            for part in parts:
                ranges, empty = _first(part)
                every = (*every, *ranges)
                if not empty:
                    return every, False
            return every, True
    return (), True


def _ways(tree: Tree) -> int:
    """Return in how many ways a part may match at one place; a run inside of it has no bound."""
    match tree:
        case Set() | Place():
            return 1
        case Group(inside=inside):
            return _ways(inside)
        case Sequence(parts=parts):
            ways = 1
            for part in parts:
                ways *= _ways(part)
            return ways
        case Alternatives(parts=parts):
            return sum(map(_ways, parts))
        case Repeat(inside=inside, least=least, most=int(most)):
            one = _ways(inside)
            return sum(min(one**times, _MOST_WAYS + 1) for times in range(least, most + 1))
    raise Unsupported(_REFUSED)


# -- Java's words ---------------------------------------------------------------------------


def _letters(ranges: Ranges) -> str:
    def point(number: int) -> str:
        return f"\\x{{{number:x}}}"

    if not ranges:
        return "(?!)"
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return point(ranges[0][0])
    if ranges[-1][1] == LAST:  # shorter, and as fast
        inside = complement(ranges)
        return f"[^{_listed(inside)}]" if inside else "(?s:.)"
    return f"[{_listed(ranges)}]"


def _listed(ranges: Ranges) -> str:
    return "".join(
        f"\\x{{{first:x}}}" if first == last else f"\\x{{{first:x}}}-\\x{{{last:x}}}"
        for first, last in ranges
    )


def _java(tree: Tree) -> str:
    match tree:
        case Set(ranges=ranges):
            return _letters(ranges)
        case Place(name="^"):
            return r"\A"
        case Place(name="$"):
            return r"\z"
        case Place():
            word = _letters(WORD)
            return f"(?:(?<={word})(?!{word})|(?<!{word})(?={word}))"
        case Group(inside=inside, number=number):
            return f"({'' if number is not None else '?:'}{_java(inside)})"
        case Sequence(parts=parts):
            return "".join(map(_java, parts))
        case Alternatives(parts=parts):
            return f"(?:{'|'.join(map(_java, parts))})"
        case Repeat(inside=inside, least=least, most=most, greedy=greedy):
            times = f"{{{least},{most}}}"
            return f"(?:{_java(inside)}){times}{'' if greedy else '?'}"
    raise Unsupported(_REFUSED)


REGEXPS: dict[str, Renderer] = {
    "regexp_matches": partial(_matches, False),
    "regexp_full_match": partial(_matches, True),
    "regexp_extract": _extract,
    "regexp_replace": _replace,
}
"""How functions of regular expressions are written."""
