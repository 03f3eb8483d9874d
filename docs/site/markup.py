"""Markup: Markdown as the body of a page, its links leading to pages of the site, its code coloured."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from markdown_it import MarkdownIt
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound


class Entry(NamedTuple):
    """Something that a search finds: its title, where it is, what group it belongs to, and words about it."""

    title: str
    url: str
    group: str
    text: str


@dataclass(eq=False)
class Page:
    """One page of the site."""

    url: str
    title: str
    group: str
    body: str
    headings: list[tuple[int, str, str]] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    files: list[tuple[Path, str]] = field(default_factory=list)
    """What lies beside it: pictures and the like, and what each is called there."""
    is_listed: bool = True


@cache
def parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False, "highlight": None}).enable("table")


def coloured(text: str, language: str) -> str:
    """Return code with a class on every word that has a colour."""
    inner = highlight(text.rstrip("\n"), _lexer(language.split()[0] if language else "text"), _formatter())
    return (
        f'<div class="code"><button class="copy" aria-label="Copy">copy</button><pre><code>{inner}</code></pre></div>'
    )


@cache
def _lexer(language: str) -> Any:
    try:
        return get_lexer_by_name(language, stripnl=False)
    except ClassNotFound:
        return get_lexer_by_name("text")


@cache
def _formatter() -> Any:
    return HtmlFormatter(nowrap=True)


def anchor_of(text: str, taken: set[str]) -> str:
    """Return the anchor of a heading, as GitHub makes it."""
    plain = re.sub(r"[^\w\- ]", "", text.lower()).strip().replace(" ", "-") or "section"
    name, number = plain, 1
    while name in taken:
        name, number = f"{plain}-{number}", number + 1
    taken.add(name)
    return name


class Renderer:
    """One page being rendered: its headings, its sections for the search, the files that it shows."""

    def __init__(self, path: Path, root: Path, url: str, group: str) -> None:
        self.path, self.root, self.url, self.group = path, root, url, group
        self.headings: list[tuple[int, str, str]] = []
        self.entries: list[Entry] = []
        self.files: list[tuple[Path, str]] = []

    def body(self, text: str) -> str:
        """Return the HTML of a text."""
        tokens, taken = parser().parse(re.sub(r"<!--.*?-->\n?", "", text, flags=re.DOTALL)), set[str]()
        for index, token in enumerate(tokens):
            if token.type == "heading_open":
                self._heading(token, tokens[index + 1], taken)
            elif token.type == "inline":
                self._inline(token)
                self._said(token.content)
        return self._rendered(tokens)

    def _heading(self, token: Any, inline: Any, taken: set[str]) -> None:
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", inline.content).replace("`", "")
        anchor, level = anchor_of(text, taken), int(token.tag[1])
        token.attrSet("id", anchor)
        if 1 < level < 5:
            self.headings.append((level, text, anchor))
        self.entries.append(Entry(text, f"{self.url}#{anchor}" if level > 1 else self.url, self.group, ""))

    def _said(self, text: str) -> None:
        if self.entries:
            last = self.entries[-1]
            self.entries[-1] = last._replace(text=f"{last.text} {text}"[:600])

    def _inline(self, token: Any) -> None:
        for child in token.children or ():
            name = {"link_open": "href", "image": "src"}.get(child.type)
            if name:
                child.attrSet(name, self.linked(str(child.attrGet(name))))

    def linked(self, target: str) -> str:
        """Return where a link leads in the site."""
        if re.match(r"[a-z]+:|#", target):
            return target
        file, _, anchor = target.partition("#")
        path = (self.path.parent / file).resolve()
        if not path.exists() or not path.is_relative_to(self.root):
            return target
        found = url_of(path, self.root)
        if path.is_file() and found.startswith("files/"):
            self.files.append((path, found))
        relative = os.path.relpath(found, os.path.dirname(self.url) or ".")
        return f"{relative}#{anchor}" if anchor else relative

    def _rendered(self, tokens: list[Any]) -> str:
        made: list[str] = []
        rest: list[Any] = []
        for token in tokens:
            if token.type in ("fence", "code_block"):
                made += [parser().renderer.render(rest, parser().options, {}), coloured(token.content, token.info)]
                rest = []
            else:
                rest.append(token)
        made.append(parser().renderer.render(rest, parser().options, {}))
        html = "".join(made)
        return html.replace("<table>", '<div class="table"><table>').replace("</table>", "</table></div>")


def url_of(path: Path, root: Path) -> str:
    """Return where a file of the repository is in the site."""
    inside = path.relative_to(root)
    if path.is_dir():
        return "examples/index.html"
    if path.suffix == ".py":
        return f"{inside.with_suffix('.html').as_posix()}"
    if path.suffix == ".md" and inside.parts[0] in ("docs", "bench", inside.name):
        return "index.html" if inside.name == "README.md" else f"{inside.stem}.html"
    return f"files/{inside.as_posix()}"


def markdown_page(path: Path, group: str, root: Path) -> Page:
    """Return a page of Markdown."""
    text = path.read_text(encoding="utf-8")
    url = url_of(path, root)
    renderer = Renderer(path, root, url, group)
    body = renderer.body(text)
    title = renderer.entries[0].title if renderer.entries else path.stem
    return Page(url, title, group, body, renderer.headings, renderer.entries, renderer.files)


def fragment(text: str) -> str:
    """Return a piece of Markdown as HTML."""
    return Renderer(Path(), Path(), "", "").body(text)


__all__ = ["Entry", "Page", "coloured", "escape", "fragment", "markdown_page"]
