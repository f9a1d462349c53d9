"""A fresh machine: the wheel alone, in an environment of its own, does what the README shows first.

`make matrix` runs all of it, under every Python from 3.11 to 3.13 that is found.
"""

from __future__ import annotations

import email
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from email.message import Message
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FIRSTS = ("The first answer", "The first refusal")
SUPPORTED = ("3.11", "3.12", "3.13")


def interpreter(version: str) -> str:
    """Return a Python of this version that runs, by name or among those of pyenv; skip if none does."""
    candidates = [f"python{version}"]
    if root := os.environ.get("PYENV_ROOT") or (
        shutil.which("pyenv") and run("pyenv", "root").stdout.strip()
    ):
        candidates += [str(path) for path in Path(root).glob(f"versions/{version}.*/bin/python")]
    for candidate in candidates:
        if (found := shutil.which(candidate)) and run(found, "-c", "").returncode == 0:
            return found
    pytest.skip(f"no Python {version} on this machine")


def run(*command: str | Path, cwd: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program with none of this checkout on its path."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env={**inherited, "PIP_DISABLE_PIP_VERSION_CHECK": "1", **variables},
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(archive.read(name))


def test_the_wheel_says_what_it_is(wheel: Path) -> None:
    known = metadata(wheel)
    assert known["Requires-Python"] == ">=3.11"
    assert known["Author"] and known["License-Expression"] == "Apache-2.0"
    assert {f"Programming Language :: Python :: {version}" for version in SUPPORTED} <= set(
        known.get_all("Classifier", [])
    )
    assert known.get_all("Project-URL")
    for label in known.get_all("Project-URL", []):
        target = label.split(", ")[1]
        assert "://" in target or (ROOT / target).is_file()


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"sfumato"}
    assert "sfumato/py.typed" in names


def test_versions_agree() -> None:
    """The package, its metadata and its citation."""
    import sfumato

    stated = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited and cited[1] == stated == sfumato.__version__


def test_an_older_python_is_refused_with_a_sentence(wheel: Path) -> None:
    python = interpreter("3.10")
    installing = run(
        python, "-m", "pip", "install", "--no-deps", "--no-index", "--target", wheel.parent, wheel
    )
    assert installing.returncode != 0
    assert re.search(r"requires a different Python: 3\.10\.\d+ not in '>=3\.11'", installing.stderr)
    importing = run(python, "-c", "import sfumato", PYTHONPATH=str(ROOT / "src"))
    assert importing.stderr.splitlines()[-1] == (
        "ImportError: sfumato needs Python 3.11 or newer; this is Python 3.10"
    )


BASE = """
import sys
sys.modules["scipy"] = None  # as if it were not installed
import pyarrow as pa
import sfumato as sf
from sfumato.core import Composition, Proportion, events

people = range(4000)
rows = pa.table({"person": people, "place": [i % 200 for i in people], "age": [i % 90 for i in people]})
columns = {"place": sf.one_of(*range(200)), "age": sf.between(0, 110)}
budget = sf.Budget(epsilon=9, delta=1e-7)
db = sf.connect(rows, name="t", unit="person", columns=columns, max_groups=1, max_rows=1, budget=budget)
for what in ("COUNT(*) AS a", "AVG(age) AS a", "MEDIAN(age) AS a"):
    question = db.sql(f"SELECT place, {what} FROM t GROUP BY place", epsilon=1)
    str(question), str(question.explain(size=20)), str(question.release())
sampled = events.PoissonSubsampled(event=events.Gaussian(sigma=2), rate=0.1)
coin = events.RandomizedResponse(truth=0.75, choices=2)
for event in (events.Gaussian(sigma=2), events.Laplace(scale=2), sampled, coin):
    Composition([(event, 10)]).epsilon(1e-6), event.mu(), event.renyi(8)
try:
    Proportion(hits=1, trials=2).interval()
except sf.errors.Unsupported as error:
    print(*error.hints)
"""


def test_questions_and_accounting_do_not_need_the_extras() -> None:
    """What does need scipy says what to install."""
    done = run(sys.executable, "-c", BASE, PYTHONPATH=str(ROOT / "src"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "install it: pip install 'sfumato[lab]'"


def section(heading: str) -> str:
    """Return one section of the README."""
    text = (ROOT / "README.md").read_text()
    return text.split(f"\n## {heading}\n")[1].split("\n## ")[0]


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "version",
    [
        pytest.param(SUPPORTED[0], marks=pytest.mark.soak),
        *(pytest.param(one, marks=pytest.mark.night) for one in SUPPORTED[1:]),
    ],
)
def test_a_fresh_machine_does_what_the_readme_says(version: str, wheel: Path, tmp_path: Path) -> None:
    """Install the wheel; first answer, first refusal; then the extra that draws, and the first plot."""
    done = run(interpreter(version), "-m", "venv", tmp_path / "venv")
    assert done.returncode == 0, done.stderr
    python = tmp_path / "venv/bin/python"

    def installed(what: str) -> None:
        pins = ("-c", str(ROOT / "constraints.txt"))
        done = run(python, "-m", "pip", "install", "-q", "--no-cache-dir", *pins, what)
        assert done.returncode == 0, done.stderr

    def follows(*headings: str) -> None:
        page = tmp_path / "page.md"
        page.write_text("\n".join(section(heading) for heading in headings))
        done = run(python, ROOT / "tests/snippets.py", page, cwd=tmp_path)
        assert done.returncode == 0, done.stderr

    installed(str(wheel))
    for extra in ("altair", "pandas", "scipy"):
        assert run(python, "-c", f"import {extra}").returncode != 0, "the base install is small"
    assert run(python, "-c", "import sfumato; print(sfumato.__file__)").stdout.startswith(str(tmp_path))
    follows(*FIRSTS)
    assert "sfumato 0." in run(tmp_path / "venv/bin/sfumato", "--version").stdout
    installed(f"{wheel}[plots]")
    follows("The first answer", "The first plot")
    assert (tmp_path / "regions.svg").read_text().startswith("<svg")
