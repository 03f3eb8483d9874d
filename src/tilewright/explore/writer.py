"""Writing: the data of a page inside its template, as one file that needs nothing else.

The data is JSON, packed and written in letters that mean nothing in HTML, so no text of a program can end a tag or
begin one; the page's own script puts every text into the document as text.
"""

from __future__ import annotations

import base64
import html
import json
import os
import zlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tilewright.explore.page import Page

TEMPLATE = Path(__file__).with_name("template")
DATA = ("<script id=data type=text/plain>", "</script>")


def html_of(page: Page) -> str:
    """Return a page as HTML."""
    text = packed(page.plain())
    title = html.escape(f"{page.title} - Tilewright")
    return part("page.html").format(
        title=title, style=part("page.css"), script=_script(), data=DATA[0] + text + DATA[1]
    )


def packed(data: Mapping[str, Any]) -> str:
    """Return data as the script of a page reads it."""
    plain = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(zlib.compress(plain.encode(), 6)).decode()


def unpacked(text: str) -> dict[str, Any]:
    """Return the data of a page's text, for whoever wants it without a browser."""
    _, _, rest = text.partition(DATA[0])
    return json.loads(zlib.decompress(base64.b64decode(rest.partition(DATA[1])[0])))


def write(page: Page, path: str | os.PathLike[str]) -> Path:
    """Write a page to a file; return where it is."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(html_of(page), encoding="utf-8")
    return target


@cache
def part(name: str) -> str:
    """Return one file of the template."""
    return (TEMPLATE / name).read_text(encoding="utf-8")


SCRIPTS = ("text.js", "charts.js", "access.js", "page.js")


def _script() -> str:
    return "\n".join(part(name) for name in SCRIPTS)
