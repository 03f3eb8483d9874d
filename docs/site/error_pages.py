"""Error pages: each class of mistake, the kernels that make it, and what their messages say to do."""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from collections.abc import Iterator
from html import escape
from pathlib import Path

from markup import Entry, Page, coloured, fragment

from tilewright import errors

SHOWN = 3
"""How many kernels stand open; the others wait to be unfolded."""


def error_pages(kernels: Path) -> Iterator[Page]:
    """Yield a page that lists the classes, and one for each that some kernel makes."""
    found = mistakes(kernels)
    rows = "".join(
        f'<tr><td><a href="{name}.html"><code>{name}</code></a></td><td>{fragment(_doc(name))}</td></tr>'
        for name in found
    )
    about = "<p>One class for each mistake: the kernel that makes it, and its fix.</p>"
    body = f'<h1>Errors</h1>{about}<div class="table"><table>{rows}</table></div>'
    yield Page(
        "errors/index.html", "All errors", "Errors", body, [], [Entry("Errors", "errors/index.html", "Errors", "")]
    )
    for name, paths in found.items():
        yield _page(name, paths)


def mistakes(kernels: Path) -> dict[str, list[Path]]:
    """Return the kernels of each class of mistake."""
    found: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(kernels.glob("*.py")):
        name = re.search(r'^EXPECTED = "(\w+)"$', path.read_text(encoding="utf-8"), re.MULTILINE)
        if name is not None and hasattr(errors, name[1]):
            found[name[1]].append(path)
    return {name: sorted(found[name], key=lambda path: path.stat().st_size) for name in sorted(found)}


def _doc(name: str) -> str:
    return inspect.getdoc(getattr(errors, name)) or ""


def _page(name: str, paths: list[Path]) -> Page:
    kind = getattr(errors, name)
    bases = ", ".join(f"<code>{base.__name__}</code>" for base in kind.__bases__)
    hint = getattr(kind, "hint", "")
    parts = [f"<h1><code>{name}</code></h1>", fragment(_doc(name)), f"<p>It is a {bases}.</p>"]
    parts += [f'<p class="fix"><b>What to try:</b> {escape(hint)}</p>'] if hint else []
    shown = [_mistake(path) for path in paths]
    parts += shown[:SHOWN]
    if len(shown) > SHOWN:
        parts.append(f"<details><summary>{len(shown) - SHOWN} more kernels</summary>{''.join(shown[SHOWN:])}</details>")
    words = " ".join(path.stem.replace("_", " ") for path in paths)
    url = f"errors/{name}.html"
    return Page(url, name, "Errors", "".join(parts), [], [Entry(name, url, "Errors", f"{_doc(name)} {words}")])


def _mistake(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    about = re.match(r'"""(.*?)"""', text, re.DOTALL)
    source = re.sub(r'\A""".*?"""\n+|^EXPECTED = [^\n]*\n', "", text, flags=re.DOTALL | re.MULTILINE)
    source = re.sub(r"\n{3,}", "\n\n\n", source).replace("as pl\n\n\n", "as pl\n\n")
    message = path.with_suffix(".txt").read_text(encoding="utf-8")
    title = about[1] if about else path.stem
    *lines, fix = message.rstrip().rpartition("    help: ")
    heading = f"<h2>{escape(title.strip().partition(chr(10))[0].rstrip('.'))}</h2>"
    return (
        heading
        + coloured(source, "python")
        + coloured("".join(lines[:1]), "text")
        + f'<p class="fix"><b>Fix:</b> {escape(fix)}</p>'
    )
