"""Error pages: each class of mistake, the kernels that make it, and what their messages say to do."""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from pathlib import Path

from markup import Entry, Page, coloured, fragment

from tilewright import errors
from tilewright.pto import errors as pto_errors

NO_KERNEL = {
    "InternalError": "No kernel is to blame for it: a bug of this package, whose message asks to report it.",
    "PartialCodegenError": "Nothing here raises it: texts are made whole or not at all. "
    "Scripts written for PyPTO catch it by this name.",
}
"""Why some classes have no kernel that makes them."""
COMMON = "It is what its kinds have in common, to be caught by one name: each of them has a page, and a kernel here."
SHOWN = 3
"""How many kernels stand open; the others wait to be unfolded."""


def error_pages(*folders: Path) -> Iterator[Page]:
    """Yield a page that lists the classes, and one for each."""
    found = mistakes(folders)
    rows = "".join(
        f'<tr><td><a href="{name}.html"><code>{name}</code></a></td><td>{fragment(_doc(name))}</td></tr>'
        for name in found
    )
    about = "<p>One class for each mistake: the kernel that makes it, and its fix.</p>"
    body = f'<h1>Errors</h1>{about}<div class="table"><table class="names">{rows}</table></div>'
    yield Page(
        "errors/index.html", "All errors", "Errors", body, [], [Entry("Errors", "errors/index.html", "Errors", "")]
    )
    for name, paths in found.items():
        yield _page(name, paths, found)


def classes() -> dict[str, type]:
    """Return the classes of errors and warnings, by name."""
    named = {**vars(errors), **vars(pto_errors)}
    kinds = {name: kind for name, kind in named.items() if isinstance(kind, type) and not name.startswith("_")}
    ours = {name: kind for name, kind in kinds.items() if kind.__module__.startswith("tilewright")}
    return {name: kind for name, kind in sorted(ours.items()) if issubclass(kind, (errors.TilewrightError, Warning))}


def mistakes(folders: Iterable[Path]) -> dict[str, list[Path]]:
    """Return the kernels of each class of mistake, the shortest first."""
    found: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(path for folder in folders for path in folder.glob("*.p*")):
        name = re.search(r'^EXPECTED = "(\w+)"$|\A// (\w+)$', path.read_text(encoding="utf-8"), re.MULTILINE)
        if name is not None:
            found[name[1] or name[2]].append(path)
    return {name: sorted(found[name], key=lambda path: path.stat().st_size) for name in classes()}


def _doc(name: str) -> str:
    return inspect.getdoc(classes()[name]) or ""


def _page(name: str, paths: list[Path], found: Mapping[str, list[Path]]) -> Page:
    kind = classes()[name]
    bases = ", ".join(f"<code>{base.__name__}</code>" for base in kind.__bases__)
    hint = getattr(kind, "hint", "")
    parts = [f"<h1><code>{name}</code></h1>", fragment(_doc(name)), f"<p>It is a {bases}.</p>"]
    parts += [f'<p class="fix"><b>What to try:</b> {escape(hint)}</p>'] if hint else []
    kinds = [each for each, made in classes().items() if kind in made.__bases__]
    links = ", ".join(f'<a href="{each}.html"><code>{each}</code></a>' for each in kinds)
    parts += [f"<p>Its kinds: {links}.</p>"] if links else []
    if not paths:
        parts.append(f'<p class="common">{NO_KERNEL.get(name, COMMON)}</p>')
        paths = [found[each][0] for each in kinds if found[each]]
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
    source = re.sub(
        r'\A""".*?"""\n+|\A// \w+\n|^# pyright: [^\n]*\n+|^EXPECTED = [^\n]*\n',
        "",
        text,
        flags=re.DOTALL | re.MULTILINE,
    )
    source = re.sub(r"\n{3,}", "\n\n\n", source).replace("as pl\n\n\n", "as pl\n\n")
    message = path.with_suffix(".txt").read_text(encoding="utf-8")
    plain = path.stem.replace("_", " ").capitalize()
    title, _, said = (about[1] if about else plain).partition("\n\nFix: ")
    before, help, fix = message.rstrip().rpartition("    help: ")
    before, fix = (before, fix) if help else (fix, said)
    heading = f"<h2>{escape(title.strip().partition(chr(10))[0].rstrip('.'))}</h2>"
    return (
        heading
        + coloured(source, "python" if about else "text")
        + coloured(before, "text")
        + f'<p class="fix"><b>Fix:</b> {escape(fix)}</p>'
    )
