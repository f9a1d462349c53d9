"""What is shown by one document: on a terminal, in a notebook, as Markdown and as a report."""

from __future__ import annotations

from abc import ABC, abstractmethod

from sfumato.pages.page import Page

__all__ = ["Presentable"]


class Presentable(ABC):
    """What can be shown: `document` says what there is to see, and every other form follows from it."""

    __slots__ = ()

    @abstractmethod
    def document(self) -> Page:
        """Return the report; `.html()` is one file that needs no other, `.text()` is for a terminal."""

    def to_markdown(self) -> str:
        """Return the report as Markdown."""
        return self.document().markdown()

    def __repr__(self) -> str:
        return self.document().brief_text()

    def _repr_html_(self) -> str:
        return self.document().brief_html()
