"""Questions with a piece more, less or moved are accepted or refused, and nothing else happens."""

from __future__ import annotations

import random
import re

import pytest

from sfumato.errors import SfumatoError
from sfumato.plan.sql import parse
from tests.plan.example import CATALOG, accepted, refused
from tests.soaked import rest_soaked

PIECE = re.compile(r"\w+|\s+|'[^']*'|\"[^\"]*\"|.")
TEXTS = [PIECE.findall(text) for text in (*(one[0] for one in accepted()), *(one[0] for one in refused()))]
PIECES = [piece for text in TEXTS for piece in text]
MORE = [
    "NULL", "1e308", "1e", "-", "''", '"all"', "ALL", "*", "(", ")", "uid", "region", "DISTINCT", "EXISTS",
    "NOT", "0.5", "::", "[1]", "{}", "$1", "?", ";", "--", "/*", "=>", "ROLLUP", "CUBE", "regions", "visits",
    "people", "sales", "cars", "LEFT", "RIGHT", "CROSS", "LATERAL", "DESC", "UNION", "EXCEPT", "OVER", "IN",
]  # fmt: skip


def mutated(source: random.Random) -> str:
    """Return a question with up to three pieces changed."""
    pieces = list(source.choice(TEXTS))
    for _ in range(source.randint(1, 3)):
        place, other = source.randrange(len(pieces)), source.randrange(len(pieces))
        match source.randrange(5):
            case 0:
                pieces[place] = ""
            case 1:
                pieces.insert(place, source.choice(PIECES))
            case 2:
                pieces.insert(place, f" {source.choice(MORE)} ")
            case 3:
                pieces[place] = source.choice(MORE)
            case _:
                pieces[place], pieces[other] = pieces[other], pieces[place]
    return "".join(pieces)


def check(seed: int, count: int) -> None:
    source = random.Random(seed)
    for _ in range(count):
        text = mutated(source)
        try:
            parse(text, CATALOG)
        except SfumatoError as error:
            assert error.hints, text


def test_a_changed_question_is_accepted_or_refused() -> None:
    check(1, 2000)


@pytest.mark.parametrize("seed", rest_soaked(range(1, 14), 13, of_soak=3)[1:])
def test_many_changed_questions_are_accepted_or_refused(seed: int) -> None:
    check(seed, 5_000)
