"""Pages: reports as one HTML file that needs no other, to file, to mail, to show a board or a class.

    page = Page(
        title="Privacy audit",
        sections=(
            Section("What was done", Paragraph("..."), Figure(picture)),
            Section("What was found", PageTable(heads=("claim", "epsilon"), rows=(("COUNT", "0.5"),))),
        ),
    )
    page.html(), page.text(), page.markdown()

Every page has the stylesheet of this folder: light and dark; phone, desk and paper. Every text is escaped.
"""

from __future__ import annotations

from sfumato.pages.blocks import (
    Block,
    BulletList,
    CodeBlock,
    Facts,
    Flag,
    Notes,
    Notice,
    PageTable,
    Paragraph,
    SignatureLines,
)
from sfumato.pages.figure import Figure
from sfumato.pages.page import Deferred, Page, Pictures, Section, fragment
from sfumato.pages.presentable import Presentable

__all__ = [
    "Block",
    "BulletList",
    "CodeBlock",
    "Deferred",
    "Facts",
    "Figure",
    "Flag",
    "Notes",
    "Notice",
    "Page",
    "PageTable",
    "Paragraph",
    "Pictures",
    "Presentable",
    "Section",
    "SignatureLines",
    "fragment",
]
