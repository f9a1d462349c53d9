"""Pages: reports as one HTML file that needs no other, to file, to mail, to show a class."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from sfumato.plots import Picture, svg

__all__ = ["figure", "page", "paragraph", "preformatted", "table"]

_STYLE = """
body { font: 17px/1.55 system-ui, sans-serif; max-width: 46rem; margin: 2.5rem auto; padding: 0 1rem;
       color: #222 }
h1 { line-height: 1.2 } h2 { margin-top: 3rem; border-top: 1px solid #ccc; padding-top: 1.5rem }
table { border-collapse: collapse; font-size: 0.92em } th { text-align: left }
td, th { padding: 0.2rem 0.9rem 0.2rem 0; vertical-align: top }
td.number { text-align: right; font-variant-numeric: tabular-nums }
figure { margin: 1.8rem 0 } figcaption { color: #555; font-size: 0.92em }
svg { max-width: 100%; height: auto }
pre { background: #f6f6f4; padding: 1rem; overflow-x: auto; line-height: 1.35 }
footer { margin-top: 4rem; color: #555; font-size: 0.9em }
"""


def page(title: str, parts: Iterable[str]) -> str:
    """Return a page of parts that are HTML already."""
    body = "\n".join(parts)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head>\n"
        f"<body>\n<h1>{escape(title)}</h1>\n{body}\n</body></html>\n"
    )


def figure(picture: Picture) -> str:
    """Return a picture with its caption; it is drawn into the page."""
    return f"<figure>{svg(picture)}<figcaption>{escape(picture.caption)}</figcaption></figure>"


def paragraph(text: str) -> str:
    """Return a paragraph.

    >>> paragraph("1 < 2")
    '<p>1 &lt; 2</p>'
    """
    return f"<p>{escape(text)}</p>"


def preformatted(text: str) -> str:
    """Return text as it stands on a terminal."""
    return f"<pre>{escape(text)}</pre>"


def table(rows: Sequence[Sequence[str]], heads: Sequence[str] = ()) -> str:
    """Return a table of texts."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in heads)
    lines = [f"<tr>{head}</tr>"] if heads else []
    lines += ["<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows]
    return "<table>" + "".join(lines) + "</table>"
