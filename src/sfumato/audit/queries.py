"""Questions of this system as subjects: computed from the plan and the engine's integers, and sampled.

plan      the question is bounded and priced as for a release; that is the claim
replay    the engine runs on every pair of neighbours with one salt; what moved is priced exactly
sample    noise is drawn on the integers of the worst pairs, by the code that releases them
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Unpack

from sfumato.audit.black_box import Pair, best_bound
from sfumato.audit.evidence import Evidence
from sfumato.audit.laboratory import Laboratory, Ran
from sfumato.audit.output_table import OutputColumns
from sfumato.audit.replay import Moved, moved
from sfumato.audit.sampling import noisy_columns, places_of, released, size_of
from sfumato.audit.subject import Claim, ExactEpsilon, Verdict
from sfumato.catalog import Catalog
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.arguments import Number, budget_quantity, upper_float
from sfumato.core.composition import Composition
from sfumato.core.events import Event
from sfumato.errors import InvalidArgument
from sfumato.pipeline import PricedQuery, plan
from sfumato.plan.options import QuestionOptions
from sfumato.plan.request import with_options
from sfumato.plan.sql import parse
from sfumato.session import Database

__all__ = ["BUDGET", "PURE", "examine_query"]

BUDGET = PrivacyBudget(epsilon=1, delta=0.04, keys_delta=0.02)
"""A budget for audits: its deltas are large, for what happens once in 10^9 releases no sample can see."""

PURE = PrivacyBudget(epsilon=1, delta=0.02, keys_delta=0.02)
"""The same for pure epsilon: delta is for keys alone."""

_SAMPLED = 2
_TRIALS = 20_000
_ONE_BY_ONE = 800  # releases with a row for everything else, which cannot be drawn together
_FEWEST, _INTEGERS = 2_000, 1 << 17  # trials of questions of very many numbers
_GLIMPSE = 64  # releases that show which numbers there are


def examine_query(
    text: str,
    about: Catalog | Database,
    *,
    epsilon: Number | None = None,
    budget: PrivacyBudget | None = None,
    neighbours: Sequence[Pair] | None = None,
    laboratory: Laboratory | None = None,
    name: str | None = None,
    trials: int = _TRIALS,
    miss: float = 1e-9,
    **options: Unpack[QuestionOptions],
) -> Verdict:
    """Examine a question in SQL against what it would be charged.

    Of a database only what is declared is used, and its public tables: no private row is read, and
    nothing is spent. Neighbours are invented from that, unless given (rows of every table, by name).

    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> people = pa.table({"person": range(9)})
    >>> db = sf.connect(people, name="people", unit="person", max_rows=1, budget=sf.Budget(epsilon=1))
    >>> examine_query("SELECT COUNT(*) AS n FROM people", db, epsilon=1, trials=1_000).passed  # free
    True
    """
    database = about if isinstance(about, Database) else None
    catalog = about.catalog if isinstance(about, Database) else about
    lab = laboratory or Laboratory(catalog, neighbours=neighbours, public=_public(database))
    if not lab.pairs:
        raise InvalidArgument("an audit needs a pair of neighbours", place="neighbours")
    limit = budget or (BUDGET if database is None else database.terms)
    request = with_options(parse(text, catalog), options)
    asked = request.options.epsilon if epsilon is None else budget_quantity(epsilon, "epsilon")
    reader = lab.source(lab.pairs[0].left).backend(catalog)
    price = asked or limit.epsilon
    priced = plan(request, catalog=catalog, budget=limit, epsilon=price, backend=reader)
    claim = Claim(epsilon=upper_float(price), delta=upper_float(limit.delta_loss + priced.keys_delta))
    ran: dict[int, list[Ran]] = {}
    for rows in (rows for pair in lab.pairs for rows in (pair.left, pair.right)):
        if id(rows) not in ran:
            ran[id(rows)] = [lab.run(bounding.query, rows, catalog) for bounding in priced.all_boundings]
    runs = {pair.name: (ran[id(pair.left)], ran[id(pair.right)]) for pair in lab.pairs}
    found = {pair: _moved(priced, *sides) for pair, sides in runs.items()}
    highs = {pair: _epsilon(one, claim.delta) for pair, one in found.items()}
    order = sorted(runs, key=lambda pair: (-len(found[pair].wrongs), -highs[pair]))
    sampled = dict.fromkeys([*order[:_SAMPLED], max(runs, key=lambda pair: _unshared(runs[pair]))])
    worst = max(highs, key=lambda pair: highs[pair])
    exact = ExactEpsilon(
        low=_epsilon(found[worst], claim.delta, below=True),
        high=highs[worst],
        pair=order[0],
        wrongs=tuple(dict.fromkeys(found[order[0]].wrongs)),
    )
    evidence = _sampled(priced, claim, {pair: runs[pair] for pair in sampled}, trials, miss)
    if laboratory is None:
        lab.close()
    return Verdict(name=name or text, claim=claim, evidence=evidence, exact=exact, about=text)


def _moved(priced: PricedQuery, before: list[Ran], after: list[Ran]) -> Moved:
    """Return what one unit moved in all queries of a request together."""
    total = Moved()
    for bounding, cost, old, new in zip(priced.all_boundings, priced.all_costs, before, after, strict=True):
        if isinstance(old, str) or isinstance(new, str):
            total.wrongs.append("the engine failed, where nothing in the data may make it fail")
            continue
        one = moved(bounding, cost, old, new)
        total.events += one.events
        total.appears += one.appears
        total.wrongs += one.wrongs
    return total


def _epsilon(total: Moved, delta: float, *, below: bool = False) -> float:
    """Return what the moved integers cost at a delta; keys that appear use their part of it.

    Theorem: but for the chance that a key appears which one neighbour does not have, the release is one
    that never shows such keys; that one is (epsilon, delta - chance)-private between these neighbours.
    From `below` it is what no rounding explains, if it is above a claim.
    """
    left = delta - upper_float(total.appears)
    if left < 0:
        return math.inf
    if not total.events:
        return 0.0
    batch = Composition(total.events)
    return batch.epsilon_bounds(left)[0] if below else _above(batch.parts, left)


def _unshared(sides: tuple[list[Ran], list[Ran]]) -> int:
    """Return how many groups only one side has: keys that must not show."""
    known = [
        {
            (at, tuple(map(repr, key)))
            for one in side
            if not isinstance(one, str)
            for at, groups in enumerate(one)
            for key in groups.keys
        }
        for side in sides
    ]
    return len(known[0] ^ known[1])


@lru_cache(maxsize=256)
def _above(parts: tuple[tuple[Event, int], ...], delta: float) -> float:
    """Return epsilon from above; many neighbours move the same."""
    return Composition(parts).epsilon(delta)


def _sampled(
    priced: PricedQuery, claim: Claim, runs: dict[str, tuple[list[Ran], list[Ran]]], trials: int, miss: float
) -> Evidence | None:
    """Return the lower bound from noise on the integers of a few pairs; None where the engine failed."""
    pairs = []
    for name, (old, new) in runs.items():
        if any(isinstance(one, str) for one in (*old, *new)):
            continue
        places = []
        for bounding, cost, *sides in zip(priced.all_boundings, priced.all_costs, old, new, strict=True):
            glimpses = (next(released(bounding, cost, side, _GLIMPSE)) for side in sides)  # type: ignore[arg-type]
            places.append(places_of(tuple(tables for _, tables in glimpses)))
        pairs.append(Pair(name=name, left=(old, places), right=(new, places)))
    if not pairs:
        return None

    def run(data: Any, number: int) -> OutputColumns:
        groups, places = data
        columns: dict[str, Any] = {}
        for at, (bounding, cost) in enumerate(zip(priced.all_boundings, priced.all_costs, strict=True)):
            found = noisy_columns(bounding, cost, groups[at], number, places[at])
            columns |= {f"{at}: {name}" if len(groups) > 1 else name: one for name, one in found.items()}
        return OutputColumns(number, columns)

    if any(bounding.others for bounding in priced.all_boundings):
        trials = min(trials, _ONE_BY_ONE)
    largest = max(size_of(one) for pair in pairs for side in (pair.left, pair.right) for one in side[0])
    trials = min(trials, max(_FEWEST, _INTEGERS // largest))
    return best_bound(run, pairs, delta=claim.delta, trials=trials, miss=miss)


def _public(database: Database | None) -> dict[str, list[dict[str, Any]]] | None:
    if database is None:
        return None
    return {
        table.name: database.backend.public_table(table.name).to_pylist()
        for table in database.catalog.tables
        if not table.private
    }
