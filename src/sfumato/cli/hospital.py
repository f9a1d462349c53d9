"""An invented hospital: its patients, their visits, its departments, and a project file about them.

Nobody in it exists. It is drawn from the same exact samplers as the noise, so there is no seed.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.core import bernoulli, uniform_below

__all__ = ["DISTRICTS", "found_hospital"]

DISTRICTS = ("harbour", "hills", "market", "old town", "university")
_DEPARTMENTS = ("cardiology", "emergency", "oncology", "orthopaedics", "paediatrics")
_WINGS = ("west", "ground", "east", "east", "west")
_DIAGNOSES = ("asthma", "broken arm", "diabetes", "flu", "hypertension", "migraine", "pneumonia", "sprain")
_PROJECT = """\
ledger = "hospital.ledger"

[tables.patients]
path = "patients.parquet"
unit = "patient_id"
max_groups = 1
max_rows = 1

[tables.patients.columns]
age = { between = [0, 110], nullable = false }
district = { one_of = DISTRICTS }
smoker = { one_of = [true, false] }

[tables.visits]
path = "visits.parquet"
unit = "patient_id"  # the same people: the same budget
max_groups = 3
max_rows = 4

[tables.visits.columns]
department = { one_of = DEPARTMENTS }
cost = { between = [0, 5000], nullable = false }
day = { between = [2026-01-01, 2026-12-31] }

[tables.departments]
path = "departments.csv"
public = true

[budget]
epsilon = 1.2
delta = 1e-7

[policy]
ceiling = 0.5
"""


def found_hospital(folder: Path, people: int) -> Path:
    """Invent a hospital in a folder; return its project file."""
    age = np.minimum(uniform_below(75, size=people) + uniform_below(36, size=people), 110)
    district = uniform_below(len(DISTRICTS), size=people)
    patients = {
        "patient_id": np.arange(people),
        "age": age,
        "district": _named(DISTRICTS, district),
        "registered": np.datetime64("2025-01-01") + _most_in_winter(people).astype("timedelta64[D]"),
        "smoker": (uniform_below(1000, size=people) < 140 + 35 * district).astype(bool),
    }
    visits = 3 * people
    who = uniform_below(people, size=visits)
    place = uniform_below(len(_DEPARTMENTS), size=visits)
    # The older a person, the dearer and the longer; a few cases cost a great deal.
    cost = 60 + uniform_below(240, size=visits) + 3 * age[who] + 90 * place
    cost = np.where(uniform_below(50, size=visits) == 0, cost * 8, cost)
    illness = np.minimum(uniform_below(64, size=visits) // 8, uniform_below(8, size=visits))
    start = np.datetime64("2026-01-01")
    seen = {
        "patient_id": who,
        "department": _named(_DEPARTMENTS, place),
        "diagnosis": _named(_DIAGNOSES, illness),
        "cost": cost.astype(float),
        "day": start + uniform_below(365, size=visits).astype("timedelta64[D]"),
        "urgent": bernoulli(0.25, size=visits).astype(bool),
    }
    pq.write_table(pa.table(patients), folder / "patients.parquet")
    pq.write_table(pa.table(seen), folder / "visits.parquet")
    wings = "".join(f"{name},{wing}\n" for name, wing in zip(_DEPARTMENTS, _WINGS, strict=True))
    (folder / "departments.csv").write_text(f"name,wing\n{wings}")
    text = _PROJECT.replace("DISTRICTS", json.dumps(DISTRICTS))
    project = folder / "sfumato.toml"
    project.write_text(text.replace("DEPARTMENTS", json.dumps(_DEPARTMENTS)))
    return project


def _most_in_winter(people: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return a day of the year for each person: half of them whenever, half more in winter than in summer."""
    whenever = uniform_below(365, size=people)
    around_july = (whenever + uniform_below(365, size=people)) // 2
    winter = (around_july + 182) % 365
    return np.where(bernoulli(0.5, size=people).astype(bool), whenever, winter)


def _named(names: tuple[str, ...], codes: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(list(names))).cast(pa.string())
