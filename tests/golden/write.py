"""Write the texts of `tests/data/golden` anew, from its ledgers; `--ledger` begins other ledgers.

What is asked for the first time is charged, and its answer is kept beside those that were there.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.golden.asked import ASKED, DATA, copy_kept, opened, texts
from tests.golden.commands import COMMANDS
from tests.golden.pages import PAGES, page_texts
from tests.golden.project import KEPT, project_of, told


def main() -> None:
    """Answer each question again from the ledgers, free, and write what is shown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ledger", action="store_true", help="charge and answer all questions anew")
    parser.add_argument("--only", choices=("answers", "pages", "commands"), help="these texts alone")
    given = parser.parse_args()
    if given.only in (None, "answers"):
        _write_answers(anew=given.ledger)
    if given.only in (None, "pages"):
        _write_pages()
    if given.only in (None, "commands"):
        _write_commands(anew=given.ledger)


def _write_answers(*, anew: bool) -> None:
    more = any(not (DATA / f"{one}.txt").exists() for one in ASKED)
    for charged in (True, False) if anew or more else (False,):
        with _folder() as folder:
            if not (charged and anew):
                copy_kept(DATA, folder)
            with opened(folder) as database:
                found = {one: texts(one, database) for one in ASKED}
            if charged:
                copy_kept(folder, DATA)
    _write(DATA, found.items())


def _write_pages() -> None:
    with _folder() as folder:
        copy_kept(DATA, folder)
        with opened(folder) as database:
            _write(DATA / "pages", [(name, page_texts(name, database)) for name in PAGES])


def _write_commands(*, anew: bool) -> None:
    if anew:
        with _folder() as folder:
            project_of(folder, kept=None)
            for name in COMMANDS:
                told(name, folder)
            copy_kept(folder, KEPT)
    _write(DATA / "commands", map(_told, COMMANDS))


def _told(name: str) -> tuple[str, str]:
    with _folder() as folder:
        project_of(folder)
        return name.replace(" ", "_"), told(name, folder)


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "golden"
        folder.mkdir()
        yield folder


def _write(folder: Path, found: Iterable[tuple[str, str]]) -> None:
    for name, text in found:
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
