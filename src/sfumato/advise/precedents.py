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
    epsilon: str  # as it was declared, with its digits
    delta: str
    unit: str
    period: str
    trust: str  # in whom: "a curator", or "nobody" where devices add the noise
    source: str
    reported_by: str = ""  # whose word this row rests on, where the source itself was not read
    rho: str = ""  # of zCDP, where epsilon was computed from it

    @property
    def cited(self) -> str:
        """The source; and who reports it, where the source itself was not read."""
        return f"{self.source}, as reported by {self.reported_by}" if self.reported_by else self.source

    @property
    def declared(self) -> str:
        """Epsilon, with the rho that it was computed from."""
        return f"{self.epsilon} (zCDP rho {self.rho})" if self.rho else self.epsilon


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

_REGISTRY = "the OpenDP Deployments Registry, 2026"
_LIST = "Desfontaines, A list of real-world uses of differential privacy, 2025"
_CODE_BOOK = "Messing et al. 2020, code book of the Facebook Privacy-Protected Full URLs Data Set"
_APPLE = "Apple, Learning with Privacy at Scale, 2017"
_DHC = (
    "Cumings-Menon et al. 2023, Disclosure Avoidance for the 2020 Census Demographic and Housing"
    " Characteristics File, arXiv:2312.10863"
)
_CHANGED = "changed into another, not removed"

DEPLOYMENTS = (
    Deployment(
        who="US Census Bureau",
        what="2020 Census redistricting data, persons",
        date="2021",
        epsilon="17.14",
        delta="1e-10",
        rho="2.56",
        unit=f"one person's record, {_CHANGED}",
        period="once, for this product of the census",
        trust="a curator",
        source=(
            "US Census Bureau, DAS 2020 Redistricting Production Code: noise of scale 339/542 and delta"
            " 1e-10, from which rho and epsilon follow"
        ),
    ),
    Deployment(
        who="US Census Bureau",
        what="2020 Census redistricting data, housing units",
        date="2021",
        epsilon="2.47",
        delta="1e-10",
        rho="0.07",
        unit=f"one housing unit's record, {_CHANGED}",
        period="once, for this product of the census",
        trust="a curator",
        source="Abowd et al. 2022, The 2020 Census Disclosure Avoidance System TopDown Algorithm",
        reported_by=_REGISTRY,
    ),
    Deployment(
        who="US Census Bureau",
        what="2020 Census demographic and housing characteristics, persons",
        date="2023",
        epsilon="26.34",
        delta="1e-10",
        rho="4.96",
        unit=f"one person's record, {_CHANGED}",
        period="once, for this product of the census",
        trust="a curator",
        source=_DHC,
        reported_by=_REGISTRY,
    ),
    Deployment(
        who="US Census Bureau",
        what="2020 Census demographic and housing characteristics, housing units",
        date="2023",
        epsilon="34.33",
        delta="1e-10",
        rho="7.70",
        unit=f"one housing unit's record, {_CHANGED}",
        period="once, for this product of the census",
        trust="a curator",
        source=_DHC,
        reported_by=_REGISTRY,
    ),
    Deployment(
        who="Apple",
        what="emoji that people use",
        date="2017",
        epsilon="4",
        delta="0",
        unit="one report of a device",
        period="each report; one a day, by Rogers et al. 2020",
        trust="nobody",
        source=_APPLE,
        reported_by=_REGISTRY,
    ),
    Deployment(
        who="Apple",
        what="new words (QuickType)",
        date="2017",
        epsilon="16",
        delta="0",
        unit="all reports of a device in a day",
        period="each day",
        trust="nobody",
        source="Apple, Differential Privacy Overview",
        reported_by=f"{_LIST}, which adds up a day's reports",
    ),
    Deployment(
        who="Apple",
        what="kinds of health data that are used",
        date="2017",
        epsilon="2",
        delta="0",
        unit="one report of a device",
        period="each report; they are sent daily",
        trust="nobody",
        source=_APPLE,
        reported_by=_REGISTRY,
    ),
    Deployment(
        who="Google",
        what="RAPPOR: home pages of the Chrome browser",
        date="2014",
        epsilon="0.534",
        delta="0",
        unit="one report of a browser",
        period="each report; one in 30 minutes, so 25.63 each day by plain addition",
        trust="nobody",
        source="Erlingsson, Pihur, Korolova 2014, arXiv:1407.6981",
        reported_by="Rogers et al. 2020, table of other systems",
    ),
    Deployment(
        who="Google",
        what="RAPPOR: domains, as Chromium collects them",
        date="2014",
        epsilon="4.39",
        delta="0",
        unit="all reports of a browser about one value that does not change",
        period="for ever; one report alone has 2.04",
        trust="nobody",
        source=(
            "The Chromium Authors, rappor.xml, type ETLD_PLUS_ONE: f 0.5, q 0.75, p 0.25, two hashes;"
            " epsilon follows by Erlingsson et al. 2014"
        ),
    ),
    Deployment(
        who="Google",
        what="COVID-19 community mobility reports",
        date="2020",
        epsilon="2.64",
        delta="0",
        unit="one user's day",
        period="each day: at most six metrics of 0.44",
        trust="a curator",
        source="Aktay et al. 2020, arXiv:2004.04145",
        reported_by=f"{_LIST} (by one of its authors), and {_REGISTRY}",
    ),
    Deployment(
        who="Google",
        what="COVID-19 search trends: symptoms",
        date="2020",
        epsilon="1.68",
        delta="0",
        unit="one user's searches of a day",
        period="each day",
        trust="a curator",
        source="Google, description of the anonymization process, arXiv:2009.01265, abstract",
    ),
    Deployment(
        who="Google",
        what="COVID-19 vaccination search insights",
        date="2021",
        epsilon="2.19",
        delta="1e-5",
        unit="one user's searches of a day",
        period="each day",
        trust="a curator",
        source="Google, description of the anonymization process, arXiv:2107.01179, abstract",
    ),
    Deployment(
        who="Microsoft",
        what="time spent in apps of Windows",
        date="2017",
        epsilon="1.672",
        delta="0",
        unit="one device's report about all of its apps",
        period="each six hours",
        trust="nobody",
        source="Ding, Kulkarni, Yekhanin 2017, Collecting Telemetry Data Privately",
        reported_by=f"{_REGISTRY}, and {_LIST}",
    ),
    Deployment(
        who="Facebook and Social Science One",
        what="full URLs data set, each kind of action",
        date="2020",
        epsilon="0.45",
        delta="1e-5",
        rho="0.0052",
        unit="all actions of one kind, for 99% of users",
        period="once, for the data set",
        trust="a curator",
        source=_CODE_BOOK,
        reported_by=_REGISTRY,
    ),
    Deployment(
        who="Facebook and Social Science One",
        what="full URLs data set, all kinds together",
        date="2020",
        epsilon="1.844",
        delta="1e-5",
        rho="0.0728",
        unit="all actions, for 96.6% of users",
        period="once, for the data set; 1.453 if accounted as Gaussian noise",
        trust="a curator",
        source=_CODE_BOOK,
        reported_by=f"{_REGISTRY}; the share of users by Desfontaines 2025",
    ),
    Deployment(
        who="LinkedIn",
        what="Audience Engagements API, as its authors propose",
        date="2020",
        epsilon="34.9",
        delta="7e-9",
        unit="one member, for each analyst",
        period="each month: questions of 0.15 up to a limit",
        trust="a curator",
        source="Rogers et al. 2020, arXiv:2002.05839",
        reported_by=f"{_REGISTRY}, and {_LIST}",
    ),
    Deployment(
        who="Wikimedia Foundation",
        what="page views by country from 2023 on, where no country has its own value",
        date="2023",
        epsilon="1",
        delta="1e-7",
        rho="0.015",
        unit="one device's first 10 page views of a day",
        period="each day",
        trust="a curator",
        source="Wikimedia Foundation, read-me of the data set; Adeleye et al. 2023, arXiv:2308.16298",
    ),
)
"""What public deployments declared, with the unit and the period of protection."""
