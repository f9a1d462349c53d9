"""The table of options in docs/queries.md, made from `QuestionOptions`.

python -m tests.plan.options_table       writes it into the page
"""

from __future__ import annotations

from pathlib import Path

from sfumato.plan.options import QUESTION_OPTIONS

PAGE = Path(__file__).parent.parent.parent / "docs" / "queries.md"
BEGIN = "<!-- made from plan/options.py by tests/plan/options_table.py -->\n"
END = "<!-- end of what is made -->\n"


def table() -> str:
    """Return the table: what each option says, and its flag."""
    rows = [
        f"| `{name}` | {f'`{option.flag.name}`' if option.flag else ''} | {option.says} |"
        for name, option in QUESTION_OPTIONS.items()
    ]
    return "\n".join(["| option | command line | what it says |", "|---|---|---|", *rows])


def written() -> str:
    """Return the table as the page has it."""
    return PAGE.read_text().split(BEGIN)[1].split(END)[0].strip()


if __name__ == "__main__":
    before, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{table()}\n\n{END}{rest.split(END)[1]}")
