"""Example pages: the kernels of `examples/`, as they are."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from html import escape
from pathlib import Path

from markup import Entry, Page, coloured, fragment


def example_pages(root: Path) -> Iterator[Page]:
    """Yield a page that lists the examples, and one for each; other files that pages point to have theirs, too."""
    paths = sorted(root.glob("examples/**/*.py"))
    rows = [_row(path, path.relative_to(root / "examples").with_suffix(".html").as_posix()) for path in paths]
    body = f"<h1>Examples</h1><ul>{''.join(rows)}</ul>"
    yield Page(
        "examples/index.html", "Examples", "Start", body, [], [Entry("Examples", "examples/index.html", "Start", "")]
    )
    for path in [*paths, *sorted(root.glob("bench/*.py"))]:
        url = path.relative_to(root).with_suffix(".html").as_posix()
        text = path.read_text(encoding="utf-8")
        title = path.relative_to(root).as_posix()
        entry = Entry(title, url, "Examples", _about(path))
        yield Page(
            url,
            title,
            "Examples",
            f"<h1>{escape(title)}</h1>{fragment(_about(path))}{coloured(text, 'python')}",
            [],
            [entry],
            is_listed=False,
        )


def _row(path: Path, url: str) -> str:
    return f'<li><a href="{url}">{escape(path.stem)}</a> {_about(path)}</li>'


def _about(path: Path) -> str:
    doc = ast.get_docstring(ast.parse(path.read_bytes())) or ""
    return escape(" ".join(doc.partition("\n\n")[0].split()))
