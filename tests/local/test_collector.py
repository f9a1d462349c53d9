"""The collector: every report is counted or accounted for, in any form, whoever wrote it."""

from __future__ import annotations

import io
import json
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import ipc
from scipy import stats

from sfumato.errors import InvalidArgument
from sfumato.local import client
from sfumato.local.ballots import SubsetSelection
from sfumato.local.collector import Collector, collect
from sfumato.local.hashing import LocalHashing
from sfumato.local.questions import NumberIn, OneAnswer, SeveralOf, SurveyQuestion, YesNo
from sfumato.local.reports import Reader
from sfumato.local.response import KaryResponse
from sfumato.local.results import on_simplex
from sfumato.local.simulation import report_table, simulated
from sfumato.local.survey import Survey

ALARM = 1e-9
ANSWERS = ("walk", "bike", "bus", "car")
QUESTION = OneAnswer(words="How do you get to work?", answers=ANSWERS)
SUBSET = Survey.plan("s", QUESTION, epsilon=1, protocol=SubsetSelection.from_epsilon(1, size=4))
RESPONSE = Survey.plan("s", QUESTION, epsilon=1, protocol=KaryResponse.from_epsilon(1, size=4))
HASHING = Survey.plan("s", QUESTION, epsilon=1, protocol=LocalHashing.from_epsilon(1, size=4))


def lines(survey: Survey, answers: list[Any]) -> list[str]:
    """Return reports as phones write them."""
    asked = client.load(survey.text.encode())
    return [json.dumps(client.report(asked, answer)) for answer in answers]


# -- forms ------------------------------------------------------------------------------------


@pytest.mark.parametrize("survey", [SUBSET, RESPONSE, HASHING], ids=lambda one: one.protocol.name)
def test_lines_parquet_and_arrow_say_the_same(survey: Survey, tmp_path: Path) -> None:
    """Also bits as bytes, in one file or several, in blocks of any size, with other columns beside."""
    rows = [json.loads(line) for line in lines(survey, ["bus", "car"] * 50)]
    text = "\n".join(json.dumps({**row, "note": ["ignored", 1]}) for row in rows) + "\n\n"
    (tmp_path / "a.jsonl").write_text(text)
    table = pyarrow.Table.from_pylist(rows)
    pyarrow.parquet.write_table(table, tmp_path / "b.parquet", row_group_size=7)
    with ipc.new_file(tmp_path / "c.arrow", table.schema) as file:
        file.write_table(table)
    with ipc.new_stream(tmp_path / "d.arrow", table.schema) as stream:
        stream.write_table(table, max_chunksize=9)
    bits = [name for name, kind in survey.protocol.fields.items() if kind == "bits"]
    octets = {name: [bytes.fromhex(row[name]) for row in rows] for name in ("id", *bits)}
    binary = pyarrow.table({**{name: table[name] for name in table.column_names}, **octets})
    pyarrow.parquet.write_table(binary, tmp_path / "e.parquet")
    shares = []
    for source in (*sorted(tmp_path.iterdir()), table, binary, table.to_reader(13)):
        collector = Collector(survey)
        collector.add(source)
        assert collector.counted == 100 and not any(collector.dropped.values())
        shares.append(collector.result().values.tolist())
    assert len({tuple(one) for one in shares}) == 1
    together = Collector(survey)
    together.add(tmp_path / "a.jsonl", tmp_path / "b.parquet")
    assert together.counted == 100 and together.dropped["duplicates"] == 100


def test_what_the_package_simulates_is_read_like_what_phones_write() -> None:
    """The same law, by chi-square over the supports: 20,000 of each, false alarm below 1e-9 (12 tests)."""
    for survey in (SUBSET, RESPONSE, HASHING):
        asked = client.load(survey.text.encode())
        ours = pyarrow.Table.from_pylist([client.report(asked, "bus") for _ in range(20_000)])
        counts = []
        for reports in (ours, report_table(survey, np.full(20_000, 2))):
            collector = Collector(survey)
            collector.add(reports)
            assert collector.counted == 20_000
            counts.append(collector._totals)
        for one, other in zip(*counts, strict=True):
            table = np.array([[one, 20_000 - one], [other, 20_000 - other]])
            assert stats.chi2_contingency(table, correction=False).pvalue > ALARM / 24


# -- what is not counted ----------------------------------------------------------------------


def test_every_report_is_counted_or_accounted_for(tmp_path: Path) -> None:
    good = lines(SUBSET, ["bus"] * 10)
    other = lines(Survey.plan("t", QUESTION, epsilon=1, protocol=SUBSET.protocol), ["bus"] * 3)
    newer = lines(replace(SUBSET, version=2, text=""), ["bus"] * 2)
    row = json.loads(good[0])

    def edited(**changes: Any) -> str:
        return json.dumps({**row, "id": client.secrets.token_hex(16), **changes})

    malformed = [
        "", "{", "[]", "7", "null", '"text"', "{}", "\x00", "{" * 5000, "[" * 100_000, '{"survey": 1}',
        edited(bits=None), edited(bits=3), edited(bits="zz"), edited(bits="8000"), edited(bits=""),
        edited(id="short"), edited(id=None), edited(id=5), edited(survey=None), edited(bits=["80"]),
        "9" * 5000, good[1] + good[2], json.dumps({"bits": row["bits"]}), b"\xed\xa0\x80",
    ]  # fmt: skip
    impossible = [edited(bits="f0"), edited(bits="00"), edited(bits="01"), edited(bits="81")]
    sent = [*good, *other, *newer, *malformed, *impossible, *good[:4]]
    raw = b"\n".join(one if isinstance(one, bytes) else one.encode(errors="surrogatepass") for one in sent)
    (tmp_path / "reports.jsonl").write_bytes(raw)
    collector = Collector(SUBSET)
    collector.add(tmp_path / "reports.jsonl")
    assert collector.counted == 10
    assert collector.dropped == {
        "malformed": len(malformed) - 1,  # an empty line is no report at all
        "another survey": 5,
        "another day": 0,
        "impossible": 4,
        "duplicates": 4,
        "too many": 0,
    }
    result = collector.result()
    assert result.counted + sum(result.dropped.values()) == len(sent) - 1
    for reason in ("malformed", "another survey", "impossible", "duplicates"):
        assert reason in repr(result)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.binary(max_size=60) | st.text(max_size=30).map(str.encode), max_size=12))
def test_no_bytes_stop_the_collector(noise: list[bytes]) -> None:
    raw = b"\n".join([*noise, lines(RESPONSE, ["bus"])[0].encode()])
    reader = Reader(RESPONSE.protocol, RESPONSE.fingerprint)
    batches = list(reader._lines(io.BytesIO(raw)))
    nonempty = [line for line in raw.split(b"\n") if line.strip()]
    assert sum(len(batch) + batch.malformed for batch in batches) == len(nonempty)
    assert any(batch.ours.any() for batch in batches)


@settings(max_examples=60, deadline=None)
@given(
    st.fixed_dictionaries(
        {
            "survey": st.sampled_from([RESPONSE.fingerprint, "x", None, 5]),
            "id": st.sampled_from(["0" * 32, "g" * 32, "0", None, 7]),
            "value": st.integers(-(2**70), 2**70)
            | st.floats()
            | st.booleans()
            | st.none()
            | st.text(max_size=3),
        }
    )
)
def test_no_value_of_a_field_stops_the_collector(row: dict[str, Any]) -> None:
    collector = Collector(RESPONSE)
    collector.add([row])
    assert collector.counted + sum(collector.dropped.values()) == 1
    right = row["survey"] == RESPONSE.fingerprint and row["id"] == "0" * 32
    right = right and type(row["value"]) is int and 0 <= row["value"] < 4
    assert collector.counted == right


def test_tables_of_other_shapes_are_malformed_and_files_of_none_are_refused(tmp_path: Path) -> None:
    n = 3
    right = {"survey": [RESPONSE.fingerprint] * n, "id": [f"{i:032x}" for i in range(n)], "value": [0, 1, 2]}
    wrong = [
        {**right, "value": ["a"] * n},
        {**right, "value": [0.5] * n},
        {**right, "value": pyarrow.array([2**63] * n, pyarrow.uint64())},
        {name: column for name, column in right.items() if name != "value"},
        {**right, "id": [1, 2, 3]},
        {**right, "survey": [b"x"] * n},
    ]
    for columns in wrong:
        collector = Collector(RESPONSE)
        collector.add(pyarrow.table(columns))
        assert (collector.counted, collector.dropped["malformed"]) == (0, n)
    twice = pyarrow.table(
        [right["id"], right["id"], right["survey"], right["value"]], names=["id", "id", "survey", "value"]
    )
    collector = Collector(RESPONSE)
    collector.add(twice)
    assert collector.dropped["malformed"] == n
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no")
    (tmp_path / "bad.arrow").write_bytes(b"nothing")
    (tmp_path / "reports.txt").write_text("")
    for name in ("bad.parquet", "bad.arrow", "reports.txt", "absent.jsonl"):
        with pytest.raises(InvalidArgument):
            Collector(RESPONSE).add(tmp_path / name)


def test_days_of_a_repeated_survey_are_collected_apart() -> None:
    """Reports that are sent again are no further evidence: without a day nothing is said."""
    survey = Survey.plan("s", QUESTION, epsilon=1, protocol=RESPONSE.protocol, cap=1)
    asked = client.load(survey.text.encode())
    memories: list[dict[str, Any]] = [{} for _ in range(50)]
    sent = [client.report(asked, "bus", memory, day) for day in range(3) for memory in memories]
    with pytest.raises(InvalidArgument, match="day by day"):
        Collector(survey)
    with pytest.raises(InvalidArgument, match="not repeated"):
        Collector(RESPONSE, day=1)
    results = [collect(survey, [sent], day=day) for day in range(3)]
    assert {one.counted for one in results} == {50}
    assert {one.dropped["another day"] for one in results} == {100}
    assert len({tuple(one.values) for one in results}) == 1  # the same reports, every day


def test_broken_offsets_are_malformed_and_not_followed(tmp_path: Path) -> None:
    """An Arrow file whose text points outside of its buffer would take the process with it."""
    n = 1000
    good = report_table(RESPONSE, np.zeros(n, dtype=np.int64))
    ids = pyarrow.array([f"{i:032x}" for i in range(n)])
    table = good.set_column(1, "id", ids)
    with ipc.new_file(tmp_path / "w.arrow", table.schema) as file:
        file.write_table(table)
    raw = bytearray((tmp_path / "w.arrow").read_bytes())
    offsets = np.arange(n + 1, dtype=np.int32) * 32
    at = raw.find(offsets.tobytes())
    assert at > 0
    offsets[100:900] += 1 << 30
    raw[at : at + offsets.nbytes] = offsets.tobytes()
    (tmp_path / "w.arrow").write_bytes(bytes(raw))
    collector = Collector(RESPONSE)
    collector.add(tmp_path / "w.arrow")
    assert (collector.counted, collector.dropped["malformed"]) == (0, n)


def test_a_broken_file_in_a_folder_does_not_stop_the_others(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(lines(RESPONSE, ["bus"])[0])
    (tmp_path / "b.parquet").write_bytes(b"")
    (tmp_path / "c.jsonl.gz").write_bytes(b"")
    named = pyarrow.table({"x": [1]}).schema
    with ipc.new_file(tmp_path / "d.arrow", named) as file:
        file.write_table(pyarrow.table({"x": [1]}))
    result = collect(RESPONSE, tmp_path)
    assert result.counted == 1 and result.dropped["malformed"] == 1
    assert any("2 files" in note for note in result.notes)


def test_frames_dicts_and_dictionaries_are_reports_too() -> None:
    asked = client.load(RESPONSE.text.encode())
    rows = [client.report(asked, "bus") for _ in range(20)]
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    table = pyarrow.Table.from_pylist(rows)
    encoded = table.set_column(0, "survey", table.column("survey").dictionary_encode())
    for source in (rows, pandas.DataFrame(rows), polars.DataFrame(rows), encoded):
        collector = Collector(RESPONSE)
        collector.add(source)
        assert collector.counted == 20 and "20 reports" in repr(collector)
    collector.add(rows[0])
    assert collector.dropped["duplicates"] == 1
    for wrong in (5, None):
        with pytest.raises(InvalidArgument):
            Collector(RESPONSE).add(wrong)


def test_a_survey_counts_no_more_than_it_says_and_remembers_no_more() -> None:
    survey = Survey.plan("s", QUESTION, epsilon=1, protocol=RESPONSE.protocol, reports=1000)
    reports = report_table(survey, np.zeros(5000, dtype=np.int64))
    collector = Collector(survey)
    collector.add(reports, reports)
    assert collector.counted == 1000 and len(collector._seen) == 1000
    assert collector.dropped["too many"] + collector.dropped["duplicates"] == 9000


def test_memory_does_not_grow_with_the_reports(tmp_path: Path) -> None:
    """Ten times as many reports, in the same batches: eight bytes for each are kept, not 128."""
    question, protocol = OneAnswer(words="Which?", size=1024), SubsetSelection.from_epsilon(1, size=1024)
    survey = Survey.plan("s", question, epsilon=1, protocol=protocol)
    peaks = []
    for batches in (2, 20):
        part = report_table(survey, np.arange(2000) % 1024)
        collector = Collector(survey)
        tracemalloc.start()
        for _ in range(batches):
            ids = np.random.default_rng().bytes(16 * 2000)
            fresh = [ids[16 * i : 16 * i + 16] for i in range(2000)]
            collector.add(part.set_column(1, "id", [fresh]))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert collector.counted == 2000 * batches
    assert peaks[1] - peaks[0] < 18 * 2000 * 16 + 100_000


# -- results ----------------------------------------------------------------------------------


def test_nobody_and_somebody() -> None:
    """An empty survey knows nothing and says so; one respondent proves next to nothing."""
    for question in (QUESTION, YesNo(words="Really?"), SeveralOf(words="Which?", size=5, most=2)):
        survey = Survey.plan("s", question, epsilon=1)
        empty = Collector(survey).result()
        assert np.isnan(empty.values).all() and empty.low.tolist() == [0] * len(empty.low)
        assert "unknown" in repr(empty) and empty.counted == 0
        json.dumps(empty.to_dict(), allow_nan=False)
    number = Survey.plan("s", NumberIn(words="How old?", low=0, high=110), epsilon=1)
    empty = Collector(number).result()
    assert (empty.low[0], empty.high[0]) == (0, 110)
    one = Collector(SUBSET)
    one.add(pyarrow.Table.from_pylist([json.loads(lines(SUBSET, ["bus"])[0])]))
    assert (one.result().high - one.result().low).min() > 0.9


def test_a_single_answer_is_certain() -> None:
    survey = Survey.plan("s", OneAnswer(words="Which?", answers=("only",)), epsilon=1)
    collector = Collector(survey)
    collector.add(simulated(survey, {"only": 1.0}, 100))
    assert collector.result().values.tolist() == [1.0]


@pytest.mark.parametrize(
    ("question", "shares", "truth"),
    [
        (YesNo(words="Really?"), {"yes": 0.3, "no": 0.7}, [0.7, 0.3]),
        (QUESTION, {"walk": 0.5, "bike": 0.25, "bus": 0.25}, [0.5, 0.25, 0.25, 0.0]),
        (OneAnswer(words="Which?", size=300), {"7": 1.0}, [float(i == 7) for i in range(300)]),
        (SeveralOf(words="Which?", answers=ANSWERS, most=2), {"walk": 0.6, "car": 0.2}, [0.6, 0, 0, 0.2]),
        (NumberIn(words="How old?", low=0, high=110), {"20": 0.5, "50": 0.5}, [35]),
    ],
    ids=lambda one: getattr(one, "kind", ""),
)
def test_shares_come_back(question: SurveyQuestion, shares: dict[str, float], truth: list[float]) -> None:
    """From the truth to reports to estimates: within 7 deviations, which is a chance below 1e-9 for all."""
    survey = Survey.plan("s", question, epsilon=2, people=40_000)
    result = collect(survey, [simulated(survey, shares, 40_000)])
    assert result.counted == 40_000
    assert (np.abs(result.values - np.array(truth)) < 7.5 * result.deviations).all()
    assert result.deviations.max() < (0.05 if result.what == "share" else 1)
    assert repr(result) and result.to_arrow().num_rows == len(truth)


def test_shares_on_the_simplex_are_said_to_be_moved() -> None:
    survey = Survey.plan("s", QUESTION, epsilon=0.1, protocol=KaryResponse.from_epsilon(0.1, size=4))
    collector = Collector(survey)
    collector.add(simulated(survey, {"bus": 1.0}, 200))
    moved = collector.result(simplex=True)
    assert moved.values.min() >= 0 and moved.values.sum() == pytest.approx(1)
    assert any("moved" in note for note in moved.notes) and not any(
        "moved" in n for n in collector.result().notes
    )
    for question in (NumberIn(words="How old?", low=0, high=1), SeveralOf(words="Which?", size=4, most=2)):
        with pytest.raises(InvalidArgument):
            Collector(Survey.plan("s", question, epsilon=1)).result(simplex=True)


@settings(max_examples=100)
@given(st.lists(st.floats(-3, 3), min_size=1, max_size=6))
def test_the_simplex_is_reached_at_its_nearest_point(values: list[float]) -> None:
    """No small step towards a corner, which stays on the simplex, comes nearer."""
    found = on_simplex(values)
    assert found.min() >= 0 and found.sum() == pytest.approx(1)
    here = ((found - values) ** 2).sum()
    for corner in np.eye(len(values)):
        step = found + 1e-4 * (corner - found)
        assert ((step - values) ** 2).sum() >= here - 1e-12


def test_poison_moves_a_share_no_further_than_its_influence() -> None:
    """A tenth of the reports always claim one answer: the share moves by a tenth of n times the influence."""
    n, forged = 20_000, 2_000
    honest = simulated(SUBSET, {"bus": 1.0}, n - forged)
    row = {"survey": [SUBSET.fingerprint] * forged, "bits": [bytes([128])] * forged}  # "walk", and no other
    row["id"] = [client.secrets.token_bytes(16) for _ in range(forged)]
    poisoned = Collector(SUBSET)
    poisoned.add(honest, pyarrow.table(row))
    assert poisoned.counted == n
    share = poisoned.result().values[0]
    assert share <= forged * poisoned.influence + 7 * poisoned.result().deviations[0]
    assert share > 0.5 * forged * poisoned.influence  # which is what liars can do, and honesty cannot mend
