"""Precedents: what the literature used, and what public deployments declared. To compare like with like.

An epsilon means nothing without the unit that it protects and the period that it covers: 2.64 for each day is
not 2.64 for ever, and one for each report of a phone is not one that a trusted collector keeps.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "DEPLOYMENTS",
    "Deployment",
    "LITERATURE",
    "LITERATURE_SOURCE",
    "LiteratureValue",
    "RULES_OF_THUMB",
]

LITERATURE_SOURCE = "Hsu et al. 2014, table 1"
"""Where the values of the literature are from."""


@dataclass(frozen=True, slots=True)
class LiteratureValue:
    """What papers about one use of data took for epsilon."""

    use: str
    epsilon: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """What somebody declared about a system that ran on real people. Nothing here was checked by an audit.

    >>> DEPLOYMENTS[0].who, DEPLOYMENTS[0].epsilon
    ('US Census Bureau', '17.14')
    """

    who: str
    what: str
    date: str
    epsilon: str
    delta: str
    unit: str
    period: str
    trust: str  # in whom: "a curator", or "nobody" where devices add the noise
    source: str


LITERATURE = (
    LiteratureValue("network traces", "0.1-10"),
    LiteratureValue("logistic regression", "0.1"),
    LiteratureValue("census data", "below 7"),
    LiteratureValue("click counts", "ln 2, ln 5, ln 10"),
    LiteratureValue("frequent items", "1.4; 0.1-1"),
    LiteratureValue("recommendation", "0.5-3"),
    LiteratureValue("record linkage", "0.01-10"),
    LiteratureValue("Kalman filtering", "ln 3"),
    LiteratureValue("principal components", "0.1-2"),
    LiteratureValue("distributed joins", "0.69"),
    LiteratureValue("queries over clients", "1-5"),
    LiteratureValue("smart meters", "1"),
    LiteratureValue("genome data", "0.1-0.4"),
    LiteratureValue("histograms", "0.05-1"),
    LiteratureValue("linear queries", "0.1-2.5"),
    LiteratureValue("trajectories", "0.5-1.5"),
    LiteratureValue("location", "0.1-1"),
    LiteratureValue("empirical risk minimisation", "0.01-0.5"),
)
"""What papers took for epsilon, by what the data was used for."""

RULES_OF_THUMB = (
    "epsilon between 0.1 and 5, typically ln 2 or ln 3 (the papers that Hsu et al. 2014 read)",
    "delta far below 1/n: at 1/n, publishing a few whole records would count as private",
)
"""What is said when nothing else is known."""

DEPLOYMENTS = (
    Deployment(
        who="US Census Bureau",
        what="2020 Census redistricting data, persons",
        date="2021",
        epsilon="17.14",
        delta="1e-10",
        unit="one person's record",
        period="once, for the census of 2020",
        trust="a curator",
        source="US Census Bureau, announcement of the settings, June 2021; accounted by zCDP",
    ),
    Deployment(
        who="US Census Bureau",
        what="2020 Census redistricting data, housing units",
        date="2021",
        epsilon="2.47",
        delta="1e-10",
        unit="one housing unit's record",
        period="once, for the census of 2020",
        trust="a curator",
        source="US Census Bureau, announcement of the settings, June 2021; accounted by zCDP",
    ),
    Deployment(
        who="Apple",
        what="emoji that people use",
        date="2017",
        epsilon="4",
        delta="0",
        unit="one report of a device",
        period="each report, one a day",
        trust="nobody",
        source="Apple, Differential Privacy Overview, 2017",
    ),
    Deployment(
        who="Apple",
        what="new words (QuickType)",
        date="2017",
        epsilon="8",
        delta="0",
        unit="one report of a device",
        period="each report, two a day",
        trust="nobody",
        source="Apple, Differential Privacy Overview, 2017",
    ),
    Deployment(
        who="Apple",
        what="kinds of health data that are edited",
        date="2017",
        epsilon="2",
        delta="0",
        unit="one report of a device",
        period="each report, one a day",
        trust="nobody",
        source="Apple, Differential Privacy Overview, 2017",
    ),
    Deployment(
        who="Google",
        what="RAPPOR: home pages of the Chrome browser",
        date="2014",
        epsilon="0.5343",
        delta="0",
        unit="one report of a browser",
        period="each report; over all reports of one value more",
        trust="nobody",
        source="Erlingsson, Pihur, Korolova 2014",
    ),
    Deployment(
        who="Google",
        what="COVID-19 community mobility reports",
        date="2020",
        epsilon="2.64",
        delta="0",
        unit="one user's day",
        period="each day",
        trust="a curator",
        source="Aktay et al. 2020, arXiv:2004.04145",
    ),
    Deployment(
        who="Facebook and Social Science One",
        what="full URLs data set",
        date="2020",
        epsilon="0.45",
        delta="1e-5",
        unit="actions: for each kind of them, 99% of users",
        period="once, for the data set",
        trust="a curator",
        source="Messing et al. 2020, code book of the data set; accounted by zCDP",
    ),
    Deployment(
        who="LinkedIn",
        what="Audience Engagements API",
        date="2020",
        epsilon="34.9",
        delta="7e-9",
        unit="one member, for each analyst",
        period="each month",
        trust="a curator",
        source="Rogers et al. 2020",
    ),
    Deployment(
        who="Wikimedia Foundation",
        what="page views by country, from 2023 on",
        date="2023",
        epsilon="about 1 (zCDP rho 0.015)",
        delta="1e-7",
        unit="one device's first 10 page views of a day",
        period="each day",
        trust="a curator",
        source="Wikimedia Foundation, read-me of the data set; Adeleye et al. 2023, arXiv:2308.16298",
    ),
)
"""What public deployments declared, with the unit and the period of protection."""
