"""Precedents: rows can be compared, their arithmetic is right, and what was not read says so."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import pytest

from sfumato.advise import DEPLOYMENTS, LITERATURE
from sfumato.core.measures import ZeroConcentratedDP


def ends(number: str) -> tuple[float, float]:
    """Return between what a rounded number was."""
    value = Decimal(number)
    half = Decimal(1).scaleb(int(value.as_tuple().exponent)) / 2
    return float(value - half), float(value + half)


def test_each_row_can_be_compared():
    assert len(LITERATURE) == 18
    for one in DEPLOYMENTS:
        assert all((one.who, one.what, one.date, one.unit, one.period, one.trust, one.source))
        assert float(one.epsilon) > 0 and 0 <= float(one.delta) < 1e-4
        assert ("as reported by" in one.cited) == bool(one.reported_by)
    assert {one.what.split()[0] for one in DEPLOYMENTS if not one.reported_by} == {
        "2020", "COVID-19", "RAPPOR:", "page",
    }  # fmt: skip


@pytest.mark.parametrize("row", [one for one in DEPLOYMENTS if one.rho], ids=lambda one: one.what)
def test_epsilon_follows_from_rho(row):
    """It lies between the best conversion that is known and the first one (Bun and Steinke 2016)."""
    (low, high), (least, most) = ends(row.rho), ends(row.epsilon)
    assert float(ZeroConcentratedDP(rho=low).to_approximate(float(row.delta)).epsilon) <= most
    assert least <= high + 2 * math.sqrt(high * math.log(1 / float(row.delta)))


def test_epsilon_follows_from_what_the_code_of_the_census_declares():
    rho = 1 / Fraction(339, 542) ** 2
    census = DEPLOYMENTS[0]
    assert f"{float(rho):.2f}" == census.rho
    assert (
        f"{float(ZeroConcentratedDP(rho=rho).to_approximate(float(census.delta)).epsilon):.2f}"
        == census.epsilon
    )


def rappor(*, f: float, q: float, p: float, hashes: int) -> tuple[float, float]:
    """Return epsilon of one report, and of all reports of one value (Erlingsson et al. 2014)."""
    one, zero = f / 2 * (p + q) + (1 - f) * q, f / 2 * (p + q) + (1 - f) * p
    once = hashes * math.log(one * (1 - zero) / (zero * (1 - one)))
    return once, 2 * hashes * math.log((1 - f / 2) / (f / 2))


def test_sums_and_products_of_the_rows():
    by_name = {one.what: one for one in DEPLOYMENTS}
    assert by_name["COVID-19 community mobility reports"].epsilon == f"{6 * 0.44:.2f}"
    pages = by_name["RAPPOR: home pages of the Chrome browser"]
    assert pages.epsilon == f"{rappor(f=0.75, q=0.75, p=0.5, hashes=2)[0]:.3f}"
    assert "25.63" in pages.period and ends(pages.epsilon)[0] * 48 < 25.63 < ends(pages.epsilon)[1] * 48
    domains = by_name["RAPPOR: domains, as Chromium collects them"]
    once, always = rappor(f=0.5, q=0.75, p=0.25, hashes=2)
    assert domains.epsilon == f"{always:.2f}" and f"{once:.2f}" in domains.period
