"""Every report in a real browser: on a phone and a desk, light and dark, and for a screen reader."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest

from tests.browser import chromium
from tests.browser.chromium import Browser, Tab
from tests.browser.reports import REPORTS
from tests.soaked import rest_soaked

CHECKS = Path(__file__).with_name("checks.js").read_text()
PHONE, DESK = 390, 1280
PAPER = {False: "rgb(255, 255, 255)", True: "rgb(20, 23, 26)"}


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = chromium.find_or_install()
    if path is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(chromium.ABSENT)
    with Browser(path) as running:
        yield running


@pytest.fixture(scope="session")
def axe() -> str:
    """The accessibility checker, a script to run in a page."""
    return resources.files("axe_core_python").joinpath("axe.min.js").read_text()


def inaccessible(tab: Tab, axe: str) -> list[str]:
    """Return what an accessibility checker finds, of whatever weight."""
    tab.run(f"{axe};0")
    wished = json.dumps({"resultTypes": ["violations"]})
    found = json.loads(tab.run(f"axe.run({wished}).then((result) => JSON.stringify(result.violations))"))
    return [f"{one['id']} ({one['impact']}): {one['nodes'][0]['html'][:160]}" for one in found]


def elsewhere(tab: Tab) -> list[str]:
    """Return what was asked for beside the page itself."""
    return tab.requests()[1:]


@pytest.mark.parametrize("name", rest_soaked(REPORTS, 8))
def test_a_report_can_be_shown_to_anyone(name: str, browser: Browser, axe: str, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(REPORTS[name]())
    for width, dark in ((PHONE, False), (PHONE, True), (DESK, False), (DESK, True)):
        tab = browser.open(path, width=width, dark=dark)
        tab.run("document.querySelectorAll('details').forEach((each) => { each.open = true })")
        where = f"{name}, {width} pixels, {'dark' if dark else 'light'}"
        assert tab.run(CHECKS) == [], where
        assert elsewhere(tab) == [], where
        assert tab.run("getComputedStyle(document.body).backgroundColor") == PAPER[dark], where
        if dark == (width == PHONE):  # a slow check: each width and each colour scheme once
            assert inaccessible(tab, axe) == [], where
        tab.close()


def drawn(marks: str) -> str:
    return f'<svg width="99" height="99">{marks}</svg>'


FAULTS = {
    "overflow": '<p style="width: 2000px">wide</p>',
    "hides part of itself": f'<p style="overflow: hidden">{"x" * 600}</p>',
    "clipped label": drawn('<text x="90" y="50">a label</text>'),
    "colliding labels": drawn('<text y="50">one</text><text x="3" y="52">two</text>'),
    "contrast 1": drawn('<text y="50" fill="#eee">pale</text>'),
    "contrast of a mark": drawn('<g class="role-mark"><path d="M0,0h9v9Z" fill="#eee"/></g>'),
    "outside the picture": drawn('<g class="role-mark"><path d="M95,5h9v9Z"/></g>'),
    "cut off": drawn('<g class="role-mark" clip-path="none"><path d="M0,0h9v9Z"/></g>'),
    "image-alt": '<img src="data:image/gif;base64,R0lGODlhAQABAAAAACw=">',
    "color-contrast": '<p style="color: #bbb">pale</p>',
    "http://elsewhere.example/a.png": '<img alt="a" src="http://elsewhere.example/a.png">',
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_seen(fault: str, browser: Browser, axe: str, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(f'<!doctype html><html lang="en"><title>x</title><main><h1>x</h1>{FAULTS[fault]}</main>')
    tab = browser.open(path, width=PHONE)
    seen = [*tab.run(CHECKS), *inaccessible(tab, axe), *elsewhere(tab)]
    tab.close()
    assert any(fault in one for one in seen), seen
