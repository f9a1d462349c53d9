"""Run the command line as `python -m sfumato`."""

from __future__ import annotations

from sfumato.cli import main

__all__: list[str] = []

if __name__ == "__main__":
    main()
