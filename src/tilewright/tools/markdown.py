"""Markdown: the few pieces that generated pages are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; pipes inside cells are escaped."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def code(text: str, language: str = "python") -> str:
    """Return a fenced block."""
    return f"```{language}\n{text.strip()}\n```"


def page(*blocks: str) -> str:
    """Return blocks as one text, an empty line between any two."""
    return "\n\n".join(block.strip() for block in blocks if block.strip()) + "\n"


def generated(title: str, source: str) -> str:
    """Return the head of a page that nobody should edit by hand."""
    return f"# {title}\n\n<!-- Written by `make docs` from {source}: change that, not this page. -->"
