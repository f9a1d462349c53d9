"""A whole survey: from the command line to a file, to ten thousand phones, to a table with error bars.

Phones are processes of their own, which hold nothing but a copy of the client and the survey file, and
write a file for every report; the collector is another process, which sees nothing but those files.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sfumato.local import client
from sfumato.local.survey import Survey

PEOPLE, PROCESSES = 10_000, 8
SHARES = {"walk": 0.1, "bike": 0.2, "bus": 0.3, "car": 0.4}
PHONES = """
import json, sys
sys.path.insert(0, sys.argv[1])
import client
with open(sys.argv[2], "rb") as file:
    survey = client.load(file.read())
for line in sys.stdin:
    number, answer = line.split()
    with open(f"{sys.argv[3]}/{number}.jsonl", "w") as file:
        print(json.dumps(client.report(survey, answer)), file=file)
assert not any(name.startswith("sfumato") or name == "numpy" for name in sys.modules)
"""


def sfumato(*arguments: str, cwd: Path) -> str:
    command = [sys.executable, "-m", "sfumato", *arguments]
    return subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True).stdout


@pytest.mark.soak
def test_ten_thousand_phones(tmp_path: Path) -> None:
    """Every estimate within 6.5 of its deviations: a false alarm is rarer than 1e-9."""
    planned = sfumato(
        "survey", "plan", "How do you get to work?", "--answers", ",".join(SHARES), "--epsilon", "1",
        "--people", str(PEOPLE), "--honest", "9000", cwd=tmp_path,
    )  # fmt: skip
    assert "chosen" in planned and "fingerprint" in planned
    told = json.loads(sfumato("survey", "show", "survey.toml", "--format", "json", cwd=tmp_path))
    assert told["epsilon"] <= 1 and told["shuffled_epsilon"] < 0.1 and "73.2%" in told["told"]

    phone, reports = tmp_path / "phone", tmp_path / "reports"
    phone.mkdir(), reports.mkdir()
    (phone / "client.py").write_bytes(Path(client.__file__).read_bytes())
    answers = [answer for answer, share in SHARES.items() for _ in range(round(share * PEOPLE))]
    workers = []
    for first in range(PROCESSES):
        command = [
            sys.executable,
            "-I",
            "-S",
            "-c",
            PHONES,
            str(phone),
            str(tmp_path / "survey.toml"),
            str(reports),
        ]
        worker = subprocess.Popen(command, stdin=subprocess.PIPE, text=True)
        lines = (f"{number} {answers[number]}\n" for number in range(first, PEOPLE, PROCESSES))
        workers.append((worker, "".join(lines)))
    for worker, text in workers:
        worker.communicate(text)
        assert worker.returncode == 0
    assert len(list(reports.iterdir())) == PEOPLE

    row = json.loads((reports / "17.jsonl").read_text())
    (reports / "forged.jsonl").write_text(
        "\n".join([json.dumps(row), "{not json", json.dumps({**row, "survey": "0" * 32})]) + "\n"
    )
    table = sfumato("survey", "collect", "survey.toml", "reports", cwd=tmp_path)
    assert "10,000 reports counted, 3 not" in table and "walk" in table
    kept = ("--format", "json", "--output", "result.json")
    assert sfumato("survey", "collect", "survey.toml", "reports", *kept, cwd=tmp_path) == ""
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["dropped"] == {
        "malformed": 1, "another survey": 1, "another day": 0, "impossible": 0, "duplicates": 1,
        "too many": 0,
    }  # fmt: skip
    for estimate in result["rows"]:
        assert abs(estimate["share"] - SHARES[estimate["answer"]]) < 6.5 * estimate["deviation"]
        assert estimate["deviation"] < 0.03 and estimate["low"] < estimate["share"] < estimate["high"]
    assert Survey.read(tmp_path / "survey.toml").fingerprint == row["survey"]
