"""Which of two budgets is stricter: held against curves in closed form."""

from __future__ import annotations

import math

import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from sfumato.advise import ComparedProject, ProjectComparison, advise, choice_of_budget, risk_of
from sfumato.advise.comparison import crossings
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.measures import GaussianDP, PureDP


def project(name: str, unit: str = "person", **budget: float) -> ComparedProject:
    choice = choice_of_budget(PrivacyBudget(**budget))
    advice = advise(choice)
    return ComparedProject(name=name, unit=unit, declared={}, budget=choice, advice=advice, year=advice.risk)


@pytest.mark.parametrize(("epsilon", "mu"), [(0.5, 0.3), (1.0, 0.8), (2.0, 1.0)])
def test_curves_cross_where_their_formulas_do(epsilon: float, mu: float):
    """Pure epsilon allows e^epsilon fpr at first, Gaussian noise Phi(Phi^-1(fpr) + mu)."""

    def gap(power: float) -> float:
        rate = math.exp(power)
        return norm.logcdf(norm.ppf(rate) + mu) - (epsilon + power)

    exact = math.exp(brentq(gap, math.log(1e-9), -math.log1p(math.exp(epsilon))))
    pure, gaussian = risk_of(PureDP(epsilon=epsilon)), risk_of(GaussianDP(mu=mu))
    first, [crossed] = crossings(pure, gaussian)
    assert first == -1 and exact / 1.15 < crossed < exact * 1.15
    assert crossings(gaussian, pure) == (1, [crossed])


def test_one_of_a_family_of_curves_is_stricter_throughout():
    for low, high in ((PureDP(epsilon=1), PureDP(epsilon=1.1)), (GaussianDP(mu=0.5), GaussianDP(mu=0.6))):
        assert crossings(risk_of(low), risk_of(high)) == (-1, [])
        assert crossings(risk_of(high), risk_of(low)) == (1, [])
        assert crossings(risk_of(low), risk_of(low)) == (0, [])


def test_verdicts():
    small, large = project("a", epsilon=1, delta=1e-6), project("b", epsilon=4, delta=1e-6)
    pure, other = project("c", epsilon=1), project("d", "visit", epsilon=1)

    def said(*pair: ComparedProject) -> str:
        [verdict] = ProjectComparison(projects=pair).verdicts()
        return verdict

    assert said(large, small).startswith("a is stricter than b")
    assert "at epsilon 1, and not 4" in said(large, small)
    assert said(large, pure).startswith("Neither b nor c is stricter: their curves cross where one in ")
    assert "protect different things, `person` and `visit`" in said(pure, other)
    assert "as strict as each other" in said(pure, pure)
    careless = project("e", epsilon=1, delta=0.05, keys_delta=0.04)
    assert "No epsilon would give e" in said(project("f", epsilon=0.01), careless)
