"""Notebooks: kernels, programs, tiles, measurements and errors as HTML beside the cell that gave them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

MONO = "font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;margin:0"
WHOLE = "white-space:pre;overflow-x:auto"
WRAPPED = "white-space:pre-wrap;overflow-wrap:anywhere"
BOX = "border:1px solid #8884;border-radius:10px"


def escaped(text: str) -> str:
    """Return text that means itself in HTML, in attributes too."""
    from html import escape

    return escape(text, quote=True)


def framed(page: str, name: str, height: int = 560) -> str:
    """Return a whole page inside a frame that cannot reach the notebook around it."""
    style = f"width:100%;height:{height}px;{BOX}"
    return f'<iframe sandbox="allow-scripts" title="{escaped(name)}" srcdoc="{escaped(page)}" style="{style}"></iframe>'


def sheet(title: str, text: str) -> str:
    """Return text below a line that says what it is."""
    heading = f"opacity:.65;margin-bottom:6px;{WRAPPED}"
    return (
        f'<div style="{BOX};padding:10px 14px"><div style="{heading}">{escaped(title)}</div>'
        f'<pre style="{MONO};{WHOLE}">{escaped(text)}</pre></div>'
    )


def grid(title: str, rows: Iterable[Sequence[str | None]]) -> str:
    """Return cells in rows below a title; None is a cell that holds nothing."""
    cell, empty = "padding:2px 8px;text-align:right", "background:#8883"
    body = "".join(
        "<tr>"
        + "".join(f'<td style="{cell};{"" if text else empty}">{escaped(text or "")}</td>' for text in row)
        + "</tr>"
        for row in rows
    )
    return (
        f'<div style="{BOX};padding:10px 14px;overflow:auto"><div style="opacity:.65">{escaped(title)}</div>'
        f'<table style="{MONO};border-collapse:collapse">{body}</table></div>'
    )


class Sheet:
    """Something whose text is what a notebook shows."""

    def _repr_html_(self) -> str:
        """Return the text, as a notebook shows it."""
        return sheet(type(self).__name__, str(self))


class Shown:
    """An error that shows its message in a notebook."""

    def _repr_html_(self) -> str:
        """Return the message, as a notebook shows it."""
        return error(type(self).__name__, str(self))


def error(kind: str, text: str) -> str:
    """Return an error's message: what is wrong first, then the author's line with its carets, then what to try."""
    heading, *rest = text.splitlines() or [""]
    lines = "".join(_lines(*each) for each in groupby(rest, _is_code))
    return (
        '<div style="border-left:4px solid #d33;padding:8px 14px;border-radius:6px;background:#d331">'
        f"<strong>{escaped(kind)}</strong>"
        f'<div style="{MONO};margin-top:6px"><b style="{WRAPPED}">{escaped(heading)}</b>{lines}</div></div>'
    )


def _is_code(line: str) -> bool:
    """Return whether a line of a message is one of the author's, or the carets below it: those are not wrapped."""
    return line.lstrip(" 0123456789").startswith("|")


def _lines(is_code: bool, lines: Iterable[str]) -> str:
    shown = "\n".join(map(_line, lines))
    return f'<pre style="margin:0;font:inherit;{WHOLE if is_code else WRAPPED}">{shown}</pre>'


def _line(line: str) -> str:
    shown = escaped(line)
    if line.lstrip().startswith("help:"):
        return f'<span style="color:#2a7">{shown}</span>'
    is_carets = line.strip().startswith("|") and not line.strip("| ^")
    return f'<span style="color:#d33">{shown}</span>' if is_carets else shown
