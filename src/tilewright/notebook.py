"""Notebooks: kernels, programs, tiles and errors as HTML beside the cell that gave them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

MONO = "font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre-wrap;margin:0"
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
    return (
        f'<div style="{BOX};padding:10px 14px"><div style="opacity:.65;margin-bottom:6px">{escaped(title)}</div>'
        f'<pre style="{MONO}">{escaped(text)}</pre></div>'
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


class Shown:
    """An error that shows its message in a notebook."""

    def _repr_html_(self) -> str:
        """Return the message, as a notebook shows it."""
        return error(type(self).__name__, str(self))


def error(kind: str, text: str) -> str:
    """Return an error's message: what is wrong first, then the author's line with its carets, then what to try."""
    heading, *rest = text.splitlines() or [""]
    lines = "\n".join(map(_line, rest))
    return (
        '<div style="border-left:4px solid #d33;padding:8px 14px;border-radius:6px;background:#d331">'
        f"<strong>{escaped(kind)}</strong>"
        f'<pre style="{MONO};margin-top:6px"><b>{escaped(heading)}</b>\n{lines}</pre></div>'
    )


def _line(line: str) -> str:
    shown = escaped(line)
    if line.lstrip().startswith("help:"):
        return f'<span style="color:#2a7">{shown}</span>'
    is_carets = line.strip().startswith("|") and not line.strip("| ^")
    return f'<span style="color:#d33">{shown}</span>' if is_carets else shown
