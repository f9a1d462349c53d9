"""Forks: an engine does not go through one, and a forked process is told before it is charged."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.processes import said

ASK = """
import os, sys
import pandas as pd
import sfumato as sf
from sfumato.errors import SfumatoError

people = pd.DataFrame({"who": range(1000), "region": list("abcd") * 250})

def opened():
    return sf.connect(people, name="people", unit="who", columns={"region": sf.one_of(*"abcd")},
                      max_rows=1, budget=sf.Budget(epsilon=2), ledger=sys.argv[1])

def ask(db):
    try:
        return db.sql("SELECT COUNT(*) AS n FROM people", epsilon=0.5).release().columns
    except SfumatoError as error:
        return error.code

db = opened()
print(*ask(db), flush=True)
for work in (lambda: ask(db), lambda: ask(opened())):
    child = os.fork()
    if child == 0:
        print(work(), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
print(*ask(db), len(db.ledger.history()), db.ledger.verify() == db.ledger.head())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_opens_the_data_again_and_is_charged_for_nothing_else(tmp_path: Path) -> None:
    outcome = said(ASK, tmp_path / "a")
    assert outcome[0] == "n" and outcome[1].startswith("SF") and outcome[2] == "('n',)"
    assert outcome[3] == "n 3 True"
