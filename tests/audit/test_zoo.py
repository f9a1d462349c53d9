"""Every animal of the zoo is caught, and every sound twin passes."""

from __future__ import annotations

import math

import pytest

from sfumato.audit import examine
from sfumato.audit.evidence import epsilon_of_counts
from sfumato.audit.subject import Subject
from sfumato.audit.zoo import ANIMALS, Animal
from tests.soaked import rest_soaked

MISS = 1e-9
TWINS = {animal.twin.name: animal.twin for animal in ANIMALS}


def test_there_are_enough_of_them() -> None:
    assert len(ANIMALS) >= 15
    assert len({animal.name for animal in ANIMALS}) == len(ANIMALS)
    assert all(animal.mistake and animal.source for animal in ANIMALS)


@pytest.mark.parametrize("animal", rest_soaked(ANIMALS, 2), ids=lambda animal: animal.name)
def test_every_animal_is_caught(animal: Animal) -> None:
    """And so clearly that luck plays no part.

    With 4 standard errors fewer hits on one side and as many more on the other it would still be caught:
    together that is rarer than 1e-9, as large as the deviation that a miss would take. Sample sizes leave
    room for as much again, so that this assertion itself does not fail by chance.
    """
    verdict = examine(animal.subject, miss=MISS)
    evidence = verdict.evidence
    assert verdict.caught and evidence is not None and evidence.miss == MISS
    p, q = evidence.likely, evidence.unlikely
    fewer = p.hits - 4 * math.sqrt(p.hits * (1 - p.share))
    more = q.hits + 4 * math.sqrt(q.hits + 4)
    less = epsilon_of_counts(fewer, more, (p.trials, q.trials), delta=evidence.delta, miss=MISS)
    assert less[0] > verdict.claim.epsilon


@pytest.mark.parametrize("twin", rest_soaked(TWINS.values(), 2), ids=lambda twin: twin.name)
def test_every_twin_passes(twin: Subject) -> None:
    """False alarm: at most 1e-10 each."""
    verdict = examine(twin, trials=min(twin.trials, 8_000), miss=1e-10)
    assert verdict.passed, str(verdict)
