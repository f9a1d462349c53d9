"""How many more questions fit: what the command line says is what the ledger then does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sfumato.core.accountant import PrivacyBudget
from sfumato.core.events import Pure
from sfumato.ledger import OWNER, Ledger, Renewal
from tests.cli.programs import PROJECT, make_project, sfumato

COUNT = "SELECT COUNT(*) AS n FROM people"
NAMES = "SELECT name, COUNT(*) AS n FROM people GROUP BY name"
WIDE = PROJECT.replace("epsilon = 2", "epsilon = 9")
PARTED = WIDE.replace(
    'unit = "person"\nmax_groups = 1', 'unit = "person"\npartition = "region"\nmax_groups = 1'
)
HASHES = {"request_hash": "r", "data_version": "1", "policy_hash": "p", "analyst": OWNER}


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        (WIDE + 'renew = { every = "year", epsilon = 4 }\n', (COUNT, "-e", "1.5")),
        (WIDE + 'renew = { every = "year", epsilon = 8, keys_delta = 4e-10 }\n', (NAMES, "-e", "0.2")),
        (WIDE + "\n[policy.analysts.anna]\nepsilon = 4\n", (COUNT, "-e", "1.5", "--analyst", "anna")),
        (
            WIDE + "\n[policy.analysts.anna]\nepsilon = 8\nkeys_delta = 4e-10\n",
            (NAMES, "-e", "0.2", "--analyst", "anna"),
        ),
        (PARTED, (f"{COUNT} WHERE region = 'north'", "-e", "4")),
    ],
    ids=["a period", "the delta of a period", "a grant", "the delta of a grant", "a part"],
)
def test_as_many_fit_as_it_says(tmp_path: Path, text: str, asked: tuple[str, ...]) -> None:
    make_project(tmp_path, text)
    assert sfumato(tmp_path, "query", *asked).returncode == 0
    last = json.loads(sfumato(tmp_path, "budget", "--format", "json").stdout)["last"]
    dry = json.loads(sfumato(tmp_path, "query", *asked, "--dry-run", "--format", "json").stdout)
    assert last["times"] == dry["price"]["times"]
    assert 0 < last["times"] < 30
    answered = 0
    while (again := sfumato(tmp_path, "query", *asked)).returncode == 0:
        answered += 1
    assert again.returncode == 4 and answered == last["times"]
    assert json.loads(sfumato(tmp_path, "budget", "--format", "json").stdout)["last"]["times"] == 0


def test_another_part_has_its_own_room(tmp_path: Path) -> None:
    """A part that is used up leaves the others as they were, and the price says so."""
    make_project(tmp_path, PARTED)
    north, south = (f"{COUNT} WHERE region = '{region}'" for region in ("north", "south"))
    while sfumato(tmp_path, "query", north, "-e", "5").returncode == 0:
        pass
    full = sfumato(tmp_path, "query", north, "-e", "5", "--dry-run")
    assert full.returncode == 4 and "does not fit" in full.stdout
    free = sfumato(tmp_path, "query", south, "-e", "5", "--dry-run", "--format", "json")
    assert free.returncode == 0 and json.loads(free.stdout)["price"]["times"] >= 1
    assert sfumato(tmp_path, "query", south, "-e", "5").returncode == 0


def test_a_new_period_has_room_again(tmp_path: Path) -> None:
    """The last question is of an earlier period: what fits is counted from now."""
    text = WIDE.replace("delta = 1e-6\n", "") + 'renew = { every = "day", epsilon = 1 }\n'
    make_project(tmp_path, text, ledger=False)
    yesterday = 1_700_000_000_000
    with Ledger.open(tmp_path / "people.ledger") as ledger:
        ledger._journal.now = lambda: yesterday  # type: ignore[method-assign]
        terms = {"renewal": Renewal(every="day", budget=PrivacyBudget(epsilon=1))}
        ledger.register("person", PrivacyBudget(epsilon=9), **terms)
        with ledger.reserve("person", Pure(loss=1), 0, **HASHES) as reservation:
            reservation.commit(b"the release")
    shown = sfumato(tmp_path, "budget", "--format", "json")
    assert shown.returncode == 0, shown.stderr
    record = json.loads(shown.stdout)
    assert record["period"]["spent"] == 0 and record["last"]["times"] == 1
