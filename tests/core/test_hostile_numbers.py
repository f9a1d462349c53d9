"""Numbers that nobody means, for every number that a public constructor or function takes.

Each is refused with a typed error, or answered; none hangs, and no error of Python's own comes through. The
cases are generated from the signatures, so that a new constructor is tested without being named here.
"""

from __future__ import annotations

import enum
import inspect
import math
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import sfumato.catalog
import sfumato.core
import sfumato.core.calibration
import sfumato.core.conversions
import sfumato.core.events
import sfumato.core.renyi
import sfumato.local
from sfumato.catalog import Unit
from sfumato.core import PrivacyBudget, PrivacyFilter, PureRule
from sfumato.core.accountant import Odometer
from sfumato.core.arguments import MOST_EVENTS, written
from sfumato.core.composition import Composition
from sfumato.core.events import Event, Gaussian, PoissonSubsampled, Pure, Repeated
from sfumato.errors import InvalidArgument, SfumatoError
from sfumato.local.questions import YesNo
from sfumato.local.response import KaryResponse
from sfumato.local.survey import Survey

HOSTILE: dict[str, Any] = {
    "tiny decimal": Decimal("1e-50000000"),
    "huge decimal": Decimal("1e50000000"),
    "long decimal": Decimal("9" * 5000),
    "signalling NaN": Decimal("sNaN"),
    "decimal NaN": Decimal("NaN"),
    "decimal infinity": Decimal("-Infinity"),
    "huge integer": 10**20000,
    "huge negative": -(10**20000),
    "integer beyond floats": 10**400,
    "large integer": 10**100,
    "count beyond 64 bits": 10**30,
    "count": 10**17,
    "tiny fraction": Fraction(1, 10**20000),
    "fraction beyond floats": Fraction(10**3000, 7**3000),
    "fraction below floats": Fraction(1, 10**400),
    "largest float": 1.7e308,
    "smallest float": 5e-324,
    "NaN": math.nan,
    "infinity": math.inf,
    "numpy NaN": np.float64("nan"),
    "numpy integer": np.int64(2**62),
    "zero": 0,
    "negative": -1,
    "truth": True,
    "text": "1e999999999",
    "nothing": None,
}

GOOD: dict[str, Any] = {
    "answers": ("a", "b", "c", "d"),
    "budget": PrivacyBudget(epsilon=1),
    "curve": lambda order: order,
    "delta": 1e-6,
    "epsilon": 1,
    "event": Pure(loss=1),
    "fields": (),
    "inner": KaryResponse.from_epsilon(1, size=6),
    "protocol": KaryResponse.from_epsilon(1, size=2),
    "events": (Pure(loss=1),),
    "failure": 1e-6,
    "high": 10,
    "level": 0.95,
    "low": 0,
    "lower": 0,
    "make_event": lambda scale: Gaussian(sigma=scale),
    "most": 2,
    "name": "n",
    "order": 8,
    "question": YesNo(words="Really?"),
    "rate": Fraction(1, 2),
    "rule": PureRule(),
    "size": 4,
    "truth": Fraction(3, 4),
    "unit": Unit(name="person", column=None),
    "upper": 10,
    "with_person": (Fraction(1, 2), Fraction(1, 2)),
    "without": (Fraction(1, 4), Fraction(3, 4)),
    "words": "Really?",
}

MODULES = (
    sfumato.catalog,
    sfumato.core,
    sfumato.core.calibration,
    sfumato.core.conversions,
    sfumato.core.events,
    sfumato.core.renyi,
    sfumato.local,
)
RECORDS = ("Amplification", "Kind", "LossDistribution", "Result", "Project", "ProjectTable", "Period")
"""What the package fills in itself, from numbers that were read before."""
DRAWS = ("size",)
"""How many numbers to draw: what does not fit into memory is not refused here."""


@contextmanager
def nothing_hangs(seconds: float = 30.0) -> Iterator[None]:
    def stop(*_: object) -> None:
        pytest.fail("this would go on for ever")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def public(module: ModuleType) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield what can be called: functions, classes that can be made, their class methods."""
    for name in module.__all__:
        found = getattr(module, name)
        if inspect.isclass(found):
            if name in RECORDS or issubclass(found, (enum.Enum, str)):
                continue
            if not inspect.isabstract(found):
                yield name, found
            for method, bound in inspect.getmembers(found, inspect.ismethod):
                if not method.startswith("_"):
                    yield f"{name}.{method}", bound
        elif inspect.isfunction(found):
            yield name, found


def numeric(parameter: inspect.Parameter) -> bool:
    """Return whether a parameter is declared as one number."""
    kinds = {part.strip() for part in str(parameter.annotation).split("|")}
    return bool(kinds & {"Number", "Fraction", "Cost", "int", "float"})


def cases() -> Iterator[Any]:
    for module in MODULES:
        for name, function in public(module):
            parameters = inspect.signature(function).parameters
            for parameter in parameters.values():
                draws = (
                    parameter.name in DRAWS and "distribution" not in name and inspect.isfunction(function)
                )
                if numeric(parameter) and not draws:
                    yield pytest.param(
                        function, parameter.name, id=f"{module.__name__}.{name}-{parameter.name}"
                    )


CASES = list(cases())


def test_many_are_found() -> None:
    assert len(CASES) > 150


def outcome(action: Callable[[], Any], value: Any) -> Any:
    """Return what an action returns, None if it refuses; anything else that it raises fails."""
    try:
        return action()
    except SfumatoError as error:
        assert str(error)
        return None
    except RecursionError:
        raise
    except (TypeError, AttributeError):
        # A wrong type of another argument, or of this one where it is no number at all.
        if isinstance(value, (str, type(None))):
            return None
        raise


@pytest.mark.parametrize(("function", "parameter"), CASES)
def test_hostile_numbers_are_refused_or_answered(function: Callable[..., Any], parameter: str) -> None:
    wanted = inspect.signature(function).parameters
    needed = {
        name: GOOD.get(name, 1)
        for name, one in wanted.items()
        if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    }
    for value in HOSTILE.values():
        with nothing_hangs():
            made = outcome(lambda value=value: function(**{**needed, parameter: value}), value)
            if isinstance(made, Event):
                use(made)


def use(event: Event) -> None:
    """Ask an event that could be made for all it knows."""
    assert Event.from_dict(event.to_dict()) == event
    for question in (event.epsilon, event.rho, event.mu):
        assert question() >= 0
    for action in (
        lambda: event.renyi(2.0),
        lambda: event.delta(1.0),
        lambda: event.group(2),
        lambda: Composition([(event, 2)]).epsilon(1e-6),
    ):
        outcome(action, event)


# -- what outsiders found -------------------------------------------------------------------


@pytest.mark.parametrize(
    "action",
    [
        lambda: Pure(loss=Decimal("1e-50000000")),
        lambda: Pure(loss=Decimal("sNaN")),
        lambda: Repeated(event=Pure(loss=1), times=10**100),
        lambda: Composition([Repeated(event=Repeated(event=Pure(loss=1), times=10**18), times=10**18)]),
        lambda: Composition([(Pure(loss=1), 10**100)]),
        lambda: Event.from_dict({"kind": "Pure", "loss": "1e-5000000"}),
        lambda: Event.from_dict({"kind": "Pure", "loss": "9" * 5000}),
        lambda: PrivacyBudget.from_dict(
            {**PrivacyBudget(epsilon=1).to_dict(), "epsilon": "1e999999999"}  # a billion digits
        ),
        lambda: PrivacyFilter.from_dict(
            {**PrivacyFilter(PrivacyBudget(epsilon=1)).to_dict(), "spent": "9" * 5000}
        ),
        lambda: Odometer.from_dict({"events": [], "keys_delta": "1e-5000000"}),
        lambda: Survey.parse(
            Survey.plan("s", YesNo(words="Really?"), epsilon=1).text.replace(
                'epsilon = "1"', 'epsilon = "1e-5000000"'
            )
        ),
        lambda: Survey.parse("[survey]\nversion = " + "9" * 5000),
        lambda: written("1e" + "9" * 10_000, "epsilon"),
        lambda: written("1/0", "epsilon"),
    ],
)
def test_found_by_outsiders(action: Callable[[], Any]) -> None:
    with nothing_hangs(), pytest.raises(InvalidArgument):
        action()


def test_what_is_written_is_read() -> None:
    assert written("-2.5E-3", "x") == Fraction(-1, 400)
    assert written(" 3/4 ", "x") == Fraction(3, 4)
    assert written("1e0004", "x") == 10**4
    assert written(0.5, "x") == Fraction(1, 2)


@pytest.mark.long
def test_a_batch_at_the_largest_count() -> None:
    """Counts that are allowed are priced, however loosely: never below the truth, never for ever."""
    with nothing_hangs():
        sampled = PoissonSubsampled(event=Gaussian(sigma=1), rate=Fraction(1, 10**9))
        assert Composition([(sampled, MOST_EVENTS)]).epsilon(1e-6) > 0.001
        assert Composition([(Gaussian(sigma=10**6), MOST_EVENTS)]).epsilon(1e-6) >= 4.37
