"""Draw the pictures of docs/: make pictures."""

from __future__ import annotations

from pathlib import Path

from sfumato.lessons import LESSONS
from sfumato.plots import Picture, save

DOCS = Path(__file__).parent.parent / "docs"


def pictures() -> dict[Path, Picture]:
    """Return every picture that is kept with the pages, by its file."""
    return {DOCS / "learn" / f"{name}.svg": make() for name, make in LESSONS.items()}


if __name__ == "__main__":
    for path, picture in pictures().items():
        save(picture, path)
