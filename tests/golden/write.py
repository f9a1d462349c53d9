"""Write the texts of `tests/data/golden` anew, from its ledger; `--ledger` begins another ledger."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tests.golden.asked import ASKED, DATA, copy_kept, opened, texts


def main() -> None:
    """Answer each question again from the ledger, free, and write what is shown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ledger", action="store_true", help="charge and answer all questions anew")
    anew = parser.parse_args().ledger
    for charged in (True, False) if anew else (False,):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            if not charged:
                copy_kept(DATA, folder)
            with opened(folder) as database:
                found = {one: texts(one, database) for one in ASKED}
            if charged:
                copy_kept(folder, DATA)
    for one, text in found.items():
        (DATA / f"{one}.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
