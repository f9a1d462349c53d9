"""Projects and ledgers beside a new project: whether the people in its tables have a budget there already."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from sfumato.backends.files import files_there, path_identity
from sfumato.catalog import ProjectTable, read_project
from sfumato.errors import InvalidArgument, SfumatoError
from sfumato.ledger import Ledger

__all__ = ["refuse_second_ledger"]


def refuse_second_ledger(
    tables: Iterable[ProjectTable], *, target: Path, ledger: Path, known: Iterable[str] = ()
) -> None:
    """Refuse to begin a ledger by default where another in the folder is about the same tables.

    Found are project files that name one of them, and ledgers that have one of them on record, by its
    path, or by what identifies it in a database (`known`). Whoever names a ledger has decided; this is for
    those who did not.
    """
    files = _private_files(tables)
    recorded = [*map(path_identity, sorted(files)), *known]
    folder = ledger.parent
    others = [_named(path, files) for path in sorted(folder.glob("*.toml")) if not _is(path, target)]
    others += [
        _on_record(path, recorded) for path in sorted(folder.glob("*.ledger")) if not _is(path, ledger)
    ]
    for found in others:
        if found is not None and not _is(found, ledger):
            raise InvalidArgument(
                f"these people have a ledger already: {found.name}",
                place="--ledger",
                hints=(
                    f"--ledger {found.name} goes on with it; so does the project file that names it",
                    f"if they are other people, say so by a name: --ledger {ledger.name}",
                ),
            )


def _private_files(tables: Iterable[ProjectTable]) -> set[str]:
    found: set[str] = set()
    for table in tables:
        if table.declaration.unit is not None and table.database is None:
            found |= set(map(os.path.realpath, files_there(table.paths)))
    return found


def _named(path: Path, files: set[str]) -> Path | None:
    """Return the ledger of a project file that names one of the files as private."""
    try:
        project = read_project(path)
    except SfumatoError:  # some other file, or one that cannot be used
        return None
    if isinstance(project.ledger, str):
        return None  # no file that another project could name by mistake
    return project.ledger if _private_files(project.tables) & files else None


def _on_record(path: Path, recorded: list[str]) -> Path | None:
    """Return a ledger that has one of the tables on record."""
    try:
        with Ledger.open(path, create=False) as ledger:
            return path if ledger.bound(recorded) else None
    except SfumatoError:
        return None


def _is(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)
