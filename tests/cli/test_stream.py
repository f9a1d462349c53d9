"""`sfumato stream`: declared in the project file, charged once, advanced and shown."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.programs import destroy_values, sfumato

PROJECT = """\
ledger = "visits.ledger"

[tables.visits]
path = "visits.parquet"
unit = "person"
max_rows = 1
max_groups = 1

[budget]
epsilon = 2
delta = 1e-6

[streams.daily]
question = "SELECT COUNT(*) AS n FROM visits"
by = "day"
every = "day"
start = 2026-01-01
horizon = 30
epsilon = 1
periods = 2
late = 3
duplicates = "once"
"""


def test_a_stream_of_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.pages.figure.svg", lambda picture: "<svg ></svg>")  # `browser/` draws it
    days = [datetime.date(2026, 1, 1 + person % 5) for person in range(1000)]
    pq.write_table(pa.table({"person": list(range(1000)), "day": days}), tmp_path / "visits.parquet")
    (tmp_path / "sfumato.toml").write_text(PROJECT)
    assert sfumato(tmp_path, "ledger", "create").returncode == 0
    priced = sfumato(tmp_path, "stream", "start", "daily", "--dry-run")
    assert "at most 2 days" in priced.stdout and "nothing is spent" in priced.stdout
    early = sfumato(tmp_path, "stream", "show", "daily")
    assert early.returncode == 2 and "has not begun" in early.stderr
    assert "`sfumato stream start daily` begins it" in early.stderr
    assert sfumato(tmp_path, "stream", "start", "daily").stdout.startswith("begun")
    assert "nothing was charged now" in sfumato(tmp_path, "stream", "start", "daily").stdout
    assert "was charged" in sfumato(tmp_path, "stream", "start", "daily", "--dry-run").stdout
    before = sfumato(tmp_path, "stream", "advance", "daily", "--now", "2026-01-01").stdout
    assert "the first is over on 2026-01-02" in before
    for _ in range(2):
        advanced = sfumato(tmp_path, "stream", "advance", "daily", "--now", "2026-01-04")
        assert "3 of 30 days" in advanced.stdout
    texts = [sfumato(tmp_path, "stream", "show", "daily", "-f", "json").stdout for _ in range(2)]
    shown, again = map(json.loads, texts)
    assert shown == again and abs(shown["rows"][0]["n"] - 600) < 150
    one = sfumato(tmp_path, "stream", "show", "daily", "--period", "2026-01-02", "-f", "csv").stdout
    assert one.startswith("n,") and abs(int(one.splitlines()[1].split(",")[0]) - 200) < 150
    for onto in ("visits.ledger", "visits.ledger-streams/2.sqlite", "visits.ledger-streams/new"):
        refused = sfumato(tmp_path, "stream", "show", "daily", "--output", onto)
        assert refused.returncode == 2 and "name another file" in refused.stderr
    early = sfumato(tmp_path, "stream", "advance", "daily", "--now", "2999-01-01")
    assert early.returncode == 2 and "later than the clock" in early.stderr
    every = {style: sfumato(tmp_path, "stream", "show", "daily", "--all", "-f", style).stdout
             for style in ("table", "csv", "json", "markdown")}  # fmt: skip
    assert every["csv"].splitlines()[0] == "day,n,n_low,n_high" and len(every["csv"].splitlines()) == 4
    rows = json.loads(every["json"])["rows"]
    assert [row["day"] for row in rows] == ["2026-01-01", "2026-01-02", "2026-01-03"]
    assert rows[2]["n"] == shown["rows"][0]["n"] and rows[2]["n_low"] == shown["intervals"]["n"][0][0]
    assert every["table"].split()[:2] == ["day", "n"] and every["markdown"].startswith("| day | n |")
    both = sfumato(tmp_path, "stream", "show", "daily", "--all", "--plot")
    assert both.returncode == 2 and "one of them" in both.stderr
    drawn = sfumato(tmp_path, "stream", "show", "daily", "--plot").stdout
    assert drawn.startswith("n of all days so far") and "2026-01-03" in drawn and "•" in drawn
    assert "n of each day" in sfumato(tmp_path, "stream", "show", "daily", "--plot", "--each").stdout
    assert sfumato(tmp_path, "stream", "show", "daily", "--html", "daily.html").returncode == 0
    assert "Each day by itself" in (tmp_path / "daily.html").read_text()
    kept = sfumato(tmp_path, "stream", "show", "daily", "--html", "sfumato.toml")
    assert kept.returncode == 2 and "the project file" in kept.stderr
    unknown = sfumato(tmp_path, "stream", "advance", "hourly")
    assert unknown.returncode == 2 and "declares daily" in unknown.stderr
    assert sfumato(tmp_path, "ledger", "verify").returncode == 0
    assert "together; 3 of 30 days are published" in sfumato(tmp_path, "check").stdout
    (tmp_path / "sfumato.toml").write_text(PROJECT.replace("horizon = 30", "design = 50"))
    endless = sfumato(tmp_path, "stream", "start", "daily", "--dry-run").stdout
    assert "days from 2026-01-01 on, without an end, designed for 50" in endless
    (tmp_path / "sfumato.toml").write_text(PROJECT.replace("periods = 2", "periods = 3"))
    changed = sfumato(tmp_path, "stream", "advance", "daily")
    assert changed.returncode == 5 and "SF606" in changed.stderr
    checked = sfumato(tmp_path, "check")
    assert checked.returncode == 2 and "stream `daily`: was begun with another question" in checked.stderr
    (tmp_path / "sfumato.toml").write_text(PROJECT.replace("horizon = 30", "horizon = 0"))
    refused = sfumato(tmp_path, "stream", "show", "daily")
    assert refused.returncode == 2 and "sfumato.toml:" in refused.stderr


def test_check_looks_at_streams(tmp_path: Path) -> None:
    """Without a value, and without a charge: the files are as they were."""
    pq.write_table(pa.table({"person": [1], "day": [datetime.date(2026, 1, 1)]}), tmp_path / "visits.parquet")
    destroy_values(tmp_path / "visits.parquet")
    project = tmp_path / "sfumato.toml"
    project.write_text(PROJECT)
    assert sfumato(tmp_path, "ledger", "create").returncode == 0
    before = (tmp_path / "visits.ledger").read_bytes()
    checked = sfumato(tmp_path, "check").stdout
    assert "stream `daily`: epsilon 1 for all days together; it has not begun" in checked
    project.write_text(PROJECT.replace("epsilon = 1", "epsilon = 9"))
    assert "it would be refused now" in sfumato(tmp_path, "check").stdout
    for right, wrong, line, said in (
        ("COUNT(*)", "COUNT(x)", "question =", "no column `x`"),
        ('by = "day"', 'by = "dya"', "by =", "by a date or a timestamp"),
        ('every = "day"', 'every = "dai"', "every =", "no period is called"),
        ("start = 2026-01-01", 'start = "soon"', "start =", "must be a date"),
        ("max_rows = 1\n", "", "question =", "how many rows one unit"),
    ):
        project.write_text(PROJECT.replace(right, wrong))
        refused = sfumato(tmp_path, "check")
        assert refused.returncode == 2 and said in refused.stderr and f"| {line}" in refused.stderr, right
    assert (tmp_path / "visits.ledger").read_bytes() == before
