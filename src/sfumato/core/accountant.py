"""The filter, a budget that no sequence of queries can overspend; the odometer, what has been spent so far.

Spending is in whole units of 10^-20, every charge rounded up, the limit rounded down.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from decimal import ROUND_DOWN, Context, Decimal
from fractions import Fraction
from typing import Any, NoReturn

from sfumato.core.arguments import Cost, Number, budget_quantity, delta_quantity, written
from sfumato.core.entropy import process_id
from sfumato.core.events.base import Event
from sfumato.core.measures import ApproximateDP
from sfumato.core.rules import UNITS, GaussianRule, PureRule, Rule, ZeroConcentratedRule
from sfumato.errors import BudgetExceeded, InvalidArgument, Unsupported

__all__ = ["Odometer", "PrivacyBudget", "PrivacyFilter", "Reading"]


@dataclass(frozen=True, slots=True, init=False, repr=False)
class PrivacyBudget:
    """What may be lost in total: (epsilon, delta), split and priced once and for all.

    delta = delta_loss + keys_delta; the two parts are never moved between each other. The
    rule is pure if delta_loss is zero, else Gaussian: its sum is exact for Gaussian noise,
    where zCDP loses 9-22% of the queries (epsilon 0.1 to 8, delta 1e-5 to 1e-9) in the
    conversion. A budget meant mostly for Laplace noise, or for claims known only by
    their epsilon, gets 1.3-1.6 times as many queries from `ZeroConcentratedRule`.

    Theorem: that of the rule, plus a union bound over the chances `keys_delta` that a key
    selection fails (approximate composition; Whitehouse, Ramdas, Rogers, Wu 2023).
    Rounds: down.

    >>> PrivacyBudget(epsilon=1).limit
    100000000000000000000
    """

    epsilon: Fraction
    delta: Fraction
    keys_delta: Fraction
    rule: Rule
    limit: int
    """The largest total charge, in units."""

    def __init__(
        self,
        *,
        epsilon: Number,
        delta: Number = 0,
        keys_delta: Number = 0,
        rule: Rule | None = None,
        people: int | None = None,
    ) -> None:
        whole, lost = delta_quantity(delta, people=people), delta_quantity(keys_delta, name="keys_delta")
        if lost > whole:
            raise InvalidArgument(
                f"keys_delta = {keys_delta} is above delta = {delta}",
                place="keys_delta",
                hints=("keys_delta is the part of delta that key selection may use",),
            )
        if rule is None:
            rule = GaussianRule() if whole > lost else PureRule()
        if not isinstance(rule, Rule):
            raise InvalidArgument(f"rule must be a Rule, got {type(rule).__name__}", place="rule")
        if whole == lost and not isinstance(rule, PureRule):
            hint = "give a delta above keys_delta, or use PureRule()"
            raise InvalidArgument(f"{rule!r} needs a delta for losses", place="delta", hints=(hint,))
        set_field = object.__setattr__  # the dataclass is frozen; this is its construction
        set_field(self, "epsilon", budget_quantity(epsilon, "epsilon"))
        set_field(self, "delta", whole)
        set_field(self, "keys_delta", lost)
        set_field(self, "rule", rule)
        set_field(self, "limit", math.floor(self.allowance(self.epsilon) * UNITS))

    @property
    def delta_loss(self) -> Fraction:
        """The part of delta that losses may use."""
        return self.delta - self.keys_delta

    @property
    def keys_limit(self) -> int:
        """The largest total of key-selection deltas, in units."""
        return math.floor(self.keys_delta * UNITS)

    def allowance(self, epsilon: Number) -> Fraction:
        """Return what a query may cost, in the rule's currency, to be (epsilon, delta_loss)-private alone.

        This is what `epsilon=0.5` on one query means. The filter then charges the query's
        price, not its epsilon: ten such queries together cost less than 5. Rounds: down.
        """
        return self.rule.limit(epsilon, self.delta_loss)

    def charge(self, event: Event, keys_delta: Number = 0) -> tuple[int, int]:
        """Return what an event and the delta of a key selection are charged, in units. Rounds: up."""
        keys = delta_quantity(keys_delta, name="keys_delta")
        return self.rule.charge(event), math.ceil(keys * UNITS)

    def shortage(
        self, units: int, keys_units: int, *, left: int, keys_left: int, whole: str = "budget"
    ) -> BudgetExceeded | None:
        """Return the refusal of a charge that does not fit in what is left, None if it fits.

        `whole` is what it does not fit in, in a word.
        """
        if units > left:
            costs, covered, name = self._epsilon(units), self._epsilon(max(0, left)), self.rule.name
            return _exceeded(
                units,
                left,
                f"this costs epsilon {costs:.3g}, and what is left of epsilon {float(self.epsilon):g}"
                f" covers {_floor(covered)}",
                *((f"epsilon {_floor(covered)} fits, with more noise",) if covered >= 0.001 else ()),
                f"the whole {whole} covers {self.limit // units:,} like this one, by the {name} rule",
            )
        if keys_units > keys_left:
            costs, covered = (float(Fraction(max(0, each), UNITS)) for each in (keys_units, keys_left))
            return _exceeded(
                keys_units,
                keys_left,
                f"finding groups costs {costs:.3g} of the delta for keys, and {_floor(covered)} is left",
                "declare the groups, or ask with a smaller delta",
                f"the whole {whole} covers {self.keys_limit // keys_units:,} like this one",
            )
        return None

    def _epsilon(self, units: int) -> float:
        """Return the epsilon that a charge has by itself."""
        return self.rule.epsilon(Fraction(units, UNITS), self.delta_loss) if units else 0.0

    def __repr__(self) -> str:
        epsilon, delta, keys = (float(each) for each in (self.epsilon, self.delta, self.keys_delta))
        text = f"budget: epsilon {epsilon:g}, delta {delta:g}, {self.rule.name} rule"
        return f"<{text}; of delta {keys:g} is for finding groups>" if keys else f"<{text}>"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready record; `PrivacyBudget.from_dict` reads it back."""
        fractions = {name: str(getattr(self, name)) for name in ("epsilon", "delta", "keys_delta")}
        return {**fractions, "rule": self.rule.to_dict()}

    @staticmethod
    def from_dict(record: dict[str, Any]) -> PrivacyBudget:
        """Rebuild a budget."""
        try:
            return PrivacyBudget(
                epsilon=written(record["epsilon"], "epsilon"),
                delta=written(record["delta"], "delta"),
                keys_delta=written(record["keys_delta"], "keys_delta"),
                rule=Rule.from_dict(record["rule"]),
            )
        except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
            raise InvalidArgument("malformed record of a budget") from error


class PrivacyFilter:
    """Spend from a budget; refuse what it does not cover, before anything is charged.

    The guarantee of the budget holds for everything admitted, though each event may be
    chosen after seeing all earlier answers. Safe to share between threads. A filter
    cannot be copied: that would double the budget.

    >>> from sfumato.core.events import Pure
    >>> purse = PrivacyFilter(PrivacyBudget(epsilon=1))
    >>> purse.spend(Pure(loss=Fraction(1, 4)))
    25000000000000000000
    >>> purse.remaining
    Fraction(3, 4)
    """

    __slots__ = ("_budget", "_keys_spent", "_lock", "_process", "_spent")

    def __init__(self, budget: PrivacyBudget) -> None:
        if not isinstance(budget, PrivacyBudget):
            raise InvalidArgument("a filter needs a PrivacyBudget", place="budget")
        self._budget = budget
        self._spent = 0
        self._keys_spent = 0
        self._lock = threading.Lock()
        self._process = process_id()

    @property
    def budget(self) -> PrivacyBudget:
        """What was fixed at the start."""
        return self._budget

    def cost(self, event: Event) -> int:
        """Return what an event would be charged, in units of 10^-20. Rounds: up."""
        return self.budget.rule.charge(event)

    def can_spend(self, event: Event, keys_delta: Number = 0) -> bool:
        """Return whether `spend` would be admitted now."""
        units, keys_units = self.budget.charge(event, keys_delta)
        with self._lock:
            left, keys_left = self._left()
        return units <= left and keys_units <= keys_left

    @property
    def spent(self) -> Fraction:
        """What has been charged, in the rule's currency."""
        return Fraction(self._spent, UNITS)

    @property
    def remaining(self) -> Fraction:
        """What may still be charged, in the rule's currency."""
        return Fraction(max(0, self.budget.limit - self._spent), UNITS)

    @property
    def keys_spent(self) -> Fraction:
        """How much delta key selection has used."""
        return Fraction(self._keys_spent, UNITS)

    @property
    def keys_remaining(self) -> Fraction:
        """How much delta key selection may still use."""
        return Fraction(max(0, self.budget.keys_limit - self._keys_spent), UNITS)

    def spend(self, event: Event, keys_delta: Number = 0) -> int:
        """Charge an event, and the delta of a key selection with it; return the units charged.

        Raises `BudgetExceeded` and charges nothing where either does not fit.
        """
        units, keys_units = self.budget.charge(event, keys_delta)
        if self._process != process_id():
            raise Unsupported(
                "a filter cannot be used in a forked process: its budget would be spent twice",
                hints=("spend in the process that made it, or share a ledger file",),
            )
        with self._lock:
            left, keys_left = self._left()
            shortage = self.budget.shortage(units, keys_units, left=left, keys_left=keys_left)
            if shortage is not None:
                raise shortage
            self._spent += units
            self._keys_spent += keys_units
        return units

    def _left(self) -> tuple[int, int]:
        return self.budget.limit - self._spent, self.budget.keys_limit - self._keys_spent

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready record of budget and spending; `PrivacyFilter.from_dict` reads it back."""
        with self._lock:
            return {
                "budget": self.budget.to_dict(),
                "spent": str(self._spent),
                "keys_spent": str(self._keys_spent),
            }

    @staticmethod
    def from_dict(record: dict[str, Any]) -> PrivacyFilter:
        """Rebuild a filter where another left off."""
        try:
            rebuilt = PrivacyFilter(PrivacyBudget.from_dict(record["budget"]))
            rebuilt._spent, rebuilt._keys_spent = _units(record["spent"]), _units(record["keys_spent"])
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidArgument("malformed record of a filter") from error
        return rebuilt

    def __reduce__(self) -> NoReturn:
        raise Unsupported("a filter cannot be copied or pickled: its budget would be spent twice")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one rule makes of the events so far: valid under adaptivity as a limit fixed in advance."""

    rule: Rule
    total: Cost
    """The sum in the rule's currency; inf if an event has no price under it."""
    delta: Fraction
    epsilon: float
    """The epsilon at delta of that sum; keys are not included, their delta comes on top."""


class Odometer:
    """Keep the events of a session and say what they cost so far: two kinds of numbers, never mixed.

    `read` is what a filter with that rule would have charged. It is a guarantee against queries chosen
    after seeing answers if the rule and a limit were fixed before the first one (under `PureRule`, always).
    `batch` is the tight cost of exactly these events, if all were fixed before the first answer was seen.

    >>> from sfumato.core.events import Laplace
    >>> odometer = Odometer()
    >>> for _ in range(10):
    ...     odometer.record(Laplace(scale=10))
    >>> odometer.read(PureRule(), 1e-6).total
    Fraction(1, 1)
    """

    __slots__ = ("_events", "_keys_delta")

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._keys_delta = Fraction(0)

    def record(self, event: Event, keys_delta: Number = 0) -> None:
        """Note an event that happened, and the delta of a key selection with it."""
        if not isinstance(event, Event):
            raise InvalidArgument(f"an event is recorded, not a {type(event).__name__}", place="event")
        keys = delta_quantity(keys_delta, name="keys_delta")
        self._events.append(event)
        self._keys_delta += keys

    @property
    def events(self) -> tuple[Event, ...]:
        """The events so far, in order."""
        return tuple(self._events)

    @property
    def keys_delta(self) -> Fraction:
        """The delta that key selections have used so far."""
        return self._keys_delta

    def read(self, rule: Rule, delta: Number) -> Reading:
        """Return the running sum under one rule, and its epsilon at `delta`. Rounds: up."""
        failure = delta_quantity(delta)
        try:
            total: Cost = Fraction(sum(rule.charge(event) for event in self._events), UNITS)
        except Unsupported:
            total = math.inf
        epsilon = rule.epsilon(total, failure) if isinstance(total, Fraction) else math.inf
        return Reading(rule=rule, total=total, delta=failure, epsilon=epsilon)

    def readings(self, delta: Number) -> tuple[Reading, ...]:
        """Return the running sums under every rule that needs no parameter."""
        return tuple(self.read(rule, delta) for rule in (PureRule(), ZeroConcentratedRule(), GaussianRule()))

    def batch(self, delta: Number) -> ApproximateDP:
        """Return the tight (epsilon, delta) of exactly these events together with their key selections.

        Theorem: composition of privacy-loss distributions (Sommer, Meiser, Mohammadi 2019; Koskela,
        Jalko, Honkela 2020).
        Assumes: every event was fixed before the first answer was seen. Rounds: up.
        """
        from sfumato.core.composition import Composition

        failure = delta_quantity(delta)
        left = failure - self._keys_delta
        if left <= 0:
            raise Unsupported(
                f"key selection alone used {float(self._keys_delta):.3g} of delta",
                hints=("ask at a larger delta",),
            )
        epsilon = Composition(self._events).epsilon(left)
        if math.isinf(epsilon):
            raise Unsupported(f"these events have no finite epsilon at delta = {float(left):.3g}")
        return ApproximateDP(epsilon=Fraction(epsilon), delta=failure)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready record; `Odometer.from_dict` reads it back."""
        return {"events": [event.to_dict() for event in self._events], "keys_delta": str(self._keys_delta)}

    @staticmethod
    def from_dict(record: dict[str, Any]) -> Odometer:
        """Rebuild an odometer where another left off."""
        rebuilt = Odometer()
        try:
            rebuilt._events = [Event.from_dict(event) for event in record["events"]]
            rebuilt._keys_delta = budget_quantity(
                written(record["keys_delta"], "keys_delta"), "keys_delta", zero=True
            )
        except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
            raise InvalidArgument("malformed record of an odometer") from error
        return rebuilt


def _exceeded(units: int, left: int, message: str, *hints: str) -> BudgetExceeded:
    requested, remaining = Fraction(units, UNITS), Fraction(max(0, left), UNITS)
    return BudgetExceeded(message, requested=requested, remaining=remaining, hints=hints)


def _floor(number: float) -> str:
    """Return a number to three digits, and never more than it is.

    >>> _floor(0.12399), _floor(0)
    ('0.123', '0')
    """
    return f"{Decimal(number).normalize(Context(prec=3, rounding=ROUND_DOWN)):g}" if number else "0"


def _units(text: Any) -> int:
    if not isinstance(text, str) or not (text.isascii() and text.isdecimal()):
        raise InvalidArgument("malformed record of a filter: units are written as decimal digits")
    return int(text)
