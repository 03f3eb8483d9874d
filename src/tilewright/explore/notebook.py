"""Notebooks: kernels, programs, tiles and errors as HTML beside the cell that gave them."""

from __future__ import annotations

import html

STYLE = "font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre-wrap;margin:0"


def framed(page: str, name: str, height: int = 560) -> str:
    """Return a whole page inside a frame that cannot reach the notebook around it."""
    held = html.escape(page, quote=True)
    return (
        f'<iframe sandbox="allow-scripts" title="{html.escape(name)}" srcdoc="{held}" '
        f'style="width:100%;height:{height}px;border:1px solid #8884;border-radius:10px"></iframe>'
    )


def preformatted(text: str) -> str:
    """Return text as it is."""
    return f'<pre style="{STYLE}">{html.escape(text)}</pre>'


def error(kind: str, text: str) -> str:
    """Return an error's message: what is wrong first, then the author's line with its carets, then what to try."""
    heading, *rest = text.splitlines() or [""]
    lines = "\n".join(_line(line) for line in rest)
    return (
        '<div style="border-left:4px solid #d33;padding:8px 14px;border-radius:6px;background:#d331">'
        f"<strong>{html.escape(kind)}</strong>"
        f'<pre style="{STYLE};margin-top:6px"><b>{html.escape(heading)}</b>\n{lines}</pre></div>'
    )


def _line(line: str) -> str:
    shown = html.escape(line)
    if line.lstrip().startswith("help:"):
        return f'<span style="color:#2a7">{shown}</span>'
    is_carets = line.strip().startswith("|") and not line.strip("| ^")
    return f'<span style="color:#d33">{shown}</span>' if is_carets else shown
