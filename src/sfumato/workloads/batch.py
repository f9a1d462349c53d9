"""A batch: several questions that are answered together, with one event, one reservation and one release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from sfumato.analysis import Cost
from sfumato.analysis.shared_measurements import SharedQuery, share
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.composition import Composition
from sfumato.core.events import Composed, Event
from sfumato.core.rules import UNITS
from sfumato.core.steps import spend
from sfumato.errors import InvalidArgument
from sfumato.pipeline import Look, PricedAnswer, PricedQuery, published, unprotected_totals
from sfumato.plan.outline import outline_request
from sfumato.plan.request import Request
from sfumato.release import NoisyGroups, add_noise
from sfumato.release.workload_release import WorkloadRelease

__all__ = ["PricedBatch", "batch_event", "plan_batch"]


_STEPS_PER_PART = 10


@dataclass(frozen=True, kw_only=True)
class PricedBatch(PricedAnswer[WorkloadRelease]):
    """Several questions whose cost together is known: `pipeline.answer` answers it as it does one question.

    `questions` are priced each by itself, `shared` is what is measured for all of them.
    """

    answer_type = WorkloadRelease

    names: tuple[str, ...]
    questions: tuple[PricedQuery, ...]
    shared: tuple[SharedQuery, ...]
    request: Request
    epsilon: Fraction
    delta_loss: Fraction

    @cached_property
    def unit(self) -> str:
        """The unit that all questions are about."""
        return self.questions[0].unit

    @cached_property
    def parts(self) -> frozenset[str] | None:
        """The parts of the unit's partition that any question is about; None: all."""
        known = [one.parts for one in self.questions if one.parts is not None]
        return frozenset().union(*known) if len(known) == len(self.questions) else None

    @cached_property
    def event(self) -> Event:
        """All that happens, as one batch."""
        return batch_event(self.questions, self.shared)

    @cached_property
    def keys_delta(self) -> Fraction:
        """What selecting keys may cost."""
        return sum((one.cost.keys_delta for one in self.shared), Fraction(0))

    @cached_property
    def delta(self) -> Fraction:
        """What losses and selecting keys may cost together."""
        return self.delta_loss + self.keys_delta

    @cached_property
    def unprotected(self) -> tuple[str, ...]:
        """What answers show exactly; the shared queries compute no more than the questions do."""
        return unprotected_totals([bounding for one in self.questions for bounding in one.all_boundings])

    def asked(self) -> dict[str, Any]:
        """Return what is asked, under which names, and what it costs."""
        asked = [[name, one.request] for name, one in zip(self.names, self.questions, strict=True)]
        return {"workload": asked, "unit": self.unit, "cost": self.cost_record()}

    def _costs(self) -> dict[str, Any]:
        """Make the cost record; it says what is not protected, because the policy says so."""
        cost = super()._costs()
        return {**cost, "unprotected": list(self.unprotected)} if self.unprotected else cost

    def computed(self, look: Look) -> WorkloadRelease:
        """Look at the data once for each shared query, and answer each question from its own part of them."""
        found: dict[int, tuple[tuple[NoisyGroups, ...], Cost]] = {}
        for number, shared in enumerate(self.shared, 1):
            look.tell(f"computing {number} of {len(self.shared)}")
            noisy = add_noise(look.backend.run(shared.bounding.query), shared.bounding, shared.cost)
            for use in shared.uses:
                found[use.place] = tuple(one.renamed(use.measures) for one in noisy), use.cost(shared.cost)
        places = iter(sorted(found))
        releases = []
        for question in self.questions:
            tables = [found[next(places)] for _ in question.boundings]
            releases.append(published(question, tables, look, {}))
        return WorkloadRelease(names=self.names, releases=tuple(releases), cost=self.cost_record())


def plan_batch(
    names: Sequence[str], questions: Sequence[PricedQuery], *, budget: PrivacyBudget
) -> PricedBatch:
    """Price questions together, each of which is priced by itself: one event, and one epsilon for all.

    The event is that of the shared measurements (`analysis.shared_measurements`). It is fixed before any
    answer is seen, so its epsilon is that of the composed loss distributions, if that is less than what
    the budget's rule says of it.
    """
    if len({one.unit for one in questions}) != 1:
        hint = "ask about different units in workloads of their own"
        raise InvalidArgument("one workload is about one unit of protection", place="workload", hints=(hint,))
    for name, one in zip(names, questions, strict=True):
        if one.limits is not None:
            hint = "give bounds, max_groups and max_rows with the question, or declare them"
            raise InvalidArgument(f"limits of `{name}` are not known", place=name, hints=(hint,))
    shared = _shared(questions)
    return PricedBatch(
        names=tuple(names),
        questions=tuple(questions),
        shared=shared,
        request=Request(
            text=";\n".join(one.request.text or outline_request(one.request) for one in questions),
            queries=tuple(named for one in questions for named in one.request.queries),
            postprocessing=None,
            public=tuple(dict.fromkeys(name for one in questions for name in one.request.public)),
        ),
        epsilon=_epsilon(batch_event(questions, shared), budget),
        delta_loss=budget.delta_loss,
    )


def batch_event(questions: Sequence[PricedQuery], shared: Sequence[SharedQuery] | None = None) -> Event:
    """Return all that happens if questions are answered together: measurements, and those of losses."""
    measured = [loss.cost for one in questions for loss in one.losses if loss.cost is not None]
    costs = (*(one.cost for one in (shared or _shared(questions))), *measured)
    return Composed(events=tuple(cost.event for cost in costs))


def _shared(questions: Sequence[PricedQuery]) -> tuple[SharedQuery, ...]:
    return share([pair for one in questions for pair in zip(one.boundings, one.costs, strict=True)])


def _epsilon(event: Event, budget: PrivacyBudget) -> Fraction:
    """Return the epsilon of a batch at the budget's delta for losses. Rounds: up."""
    if budget.delta_loss == 0:
        return Fraction(event.epsilon())
    spend(_STEPS_PER_PART * len(event.parts()))
    by_rule = budget.rule.epsilon(Fraction(budget.rule.charge(event), UNITS), budget.delta_loss)
    return Fraction(min(by_rule, Composition(event.parts()).epsilon(budget.delta_loss)))
