"""Stored text of every kind, as earlier versions wrote it, is read by one function."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from sfumato.errors import InvalidArgument, Unsupported
from sfumato.learn import LinearModel
from sfumato.learn.stored import KINDS, read_stored
from sfumato.release import Published, Release
from tests.golden.asked import DATA


def parts(name: str) -> dict[str, str]:
    """Return the texts of one kind by their titles."""
    whole = (DATA / f"{name}.txt").read_text(encoding="utf-8")
    titled = (part.partition("\n") for part in whole.split("==== ")[1:])
    return {title: text.removesuffix("\n") for title, _, text in titled}


STORED = [path.stem for path in sorted(DATA.glob("*.txt")) if "stored" in parts(path.stem)]


@pytest.mark.parametrize("name", STORED)
def test_every_kind_is_read_and_shown_as_it_was(name: str) -> None:
    kept = parts(name)
    found = read_stored(kept["stored"])
    assert found.to_json() == kept["stored"] and repr(found) == kept["answer"]
    assert found.to_markdown().rstrip() == kept["to_markdown"]
    assert type(found).from_json(kept["stored"]).to_json() == kept["stored"]
    assert found.with_receipt({"reservation": 7}).receipt == {"reservation": 7}
    page = found.document()
    assert page.html().startswith("<!doctype html>") and page.text().startswith(page.title)


def test_every_kind_is_among_them() -> None:
    """A published class that `learn.stored` does not import would be read only where its module is."""
    assert {type(read_stored(parts(name)["stored"])) for name in STORED} == set(KINDS)
    assert set(Published.registry.values()) == set(KINDS)


@pytest.mark.parametrize("name", STORED)
def test_damaged_text_of_every_kind_is_refused_alike(name: str) -> None:
    record = json.loads(parts(name)["stored"])
    kind = type(read_stored(parts(name)["stored"])).kind
    number, unknown = ("format", {"workload": [1]}) if kind == "workload" else (kind, {"unheard": 1})
    costs = ({"cost": one} for one in ({"$law": [1]}, None, {"epsilon": "x"}))
    for wrong in (unknown, *costs, {"receipt": {"$unheard": 1}}, {"receipt": 5}):
        with pytest.raises(InvalidArgument, match="this stored release is damaged") as refusal:
            read_stored(json.dumps({**record, **wrong}))
        assert "another copy" in refusal.value.hints[0]
    with pytest.raises(Unsupported, match="another format"):
        read_stored(json.dumps({**record, number: 2}))


def test_one_kind_is_not_read_as_another() -> None:
    for name in ("count", "workload", "clusters", "selection", "fairness"):
        with pytest.raises(Unsupported, match="another format"):
            LinearModel.from_json(parts(name)["stored"])
    with pytest.raises(Unsupported):
        Release.from_json(parts("workload")["stored"])
    for text in ("{}", '{"model": "1"}', '{"unheard": 1}'):
        with pytest.raises(Unsupported):
            read_stored(text)


def test_a_kind_stands_once() -> None:
    with pytest.raises(InvalidArgument, match="kind `model` already"):
        type("Another", (Published,), {"kind": "model"})
    assert Published.registry["model"] is LinearModel


def test_a_kind_is_not_called_like_a_field() -> None:
    """It would be charged and could not be read; and like a list of an answer, no answer could."""
    with pytest.raises(InvalidArgument, match="has a field `units`"):
        type("Another", (Published,), {"kind": "units", "__annotations__": {"units": "int"}})
    assert "units" not in Published.registry
    for name in STORED:
        record = json.loads(parts(name)["stored"])
        numbered = {one for one in Published.registry if isinstance(record.get(one), int | list)}
        assert numbered - {"format"} <= {type(read_stored(parts(name)["stored"])).kind}


def test_reading_any_kind_needs_no_torch() -> None:
    code = "import sys; from sfumato.learn.stored import read_stored; print('torch' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "False"
