"""The documentation as a site: every page of Markdown, op, error and example as static HTML with a search of its own.

`make site` writes it to `build/site`; any server of files serves it, and so does a browser that opens the files.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
from collections.abc import Iterator
from html import escape
from pathlib import Path

from error_pages import error_pages
from example_pages import example_pages
from markup import Entry, Page, markdown_page
from op_pages import op_pages

ROOT = Path(__file__).resolve().parents[2]
TEMPLATE = Path(__file__).parent / "template"

GUIDES = {
    "Start": ("README", "writing-kernels", "gallery", "coming-from", "exploring", "debugging", "profiling"),
    "Guides": (
        "distributed",
        "tuning",
        "training",
        "cuda",
        "cache",
        "checking",
        "platforms",
        "compiled-programs",
        "torch-operators",
    ),
    "PTO": ("pypto", "pto", "pto-reference"),
    "Inside": ("life-of-a-kernel", "warm-calls", "adding-an-op", "writing-a-back-end", "CONTRIBUTING", "RESULTS"),
}
"""The pages that people wrote, by what they are looked up for; those not named here come under `More`."""


def written_pages() -> Iterator[Page]:
    """Yield the pages of Markdown, each in its group."""
    places = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "bench/RESULTS.md", *sorted(ROOT.glob("docs/*.md"))]
    found = {path.stem: path for path in places}
    named = [(group, name) for group, names in GUIDES.items() for name in names if name in found]
    rest = [("More", name) for name in found if name not in {name for _, name in named} | {"language"}]
    for group, name in [*named, ("Reference", "language"), *rest]:
        page = markdown_page(found[name], group, ROOT)
        page.entries = [entry for entry in page.entries if not (name == "language" and entry.title.startswith("pl."))]
        yield page


def site() -> list[Page]:
    """Return every page."""
    return [
        *written_pages(),
        *op_pages(),
        *error_pages(*(ROOT / "tests" / name for name in ("errors/kernels", "errors/calls", "unit/pto/rejects"))),
        *example_pages(ROOT),
    ]


def navigation(pages: list[Page], here: Page) -> str:
    """Return the list of all pages that have a place in it, the open one marked."""
    up = "../" * here.url.count("/")
    parts: list[str] = []
    for group in dict.fromkeys(page.group for page in pages if page.is_listed):
        listed = [page for page in pages if page.group == group and page.is_listed]
        links = "".join(_link(page, here, up) for page in listed)
        is_open = " open" if here in listed or group in ("Start", "Guides") else ""
        parts.append(f"<details{is_open}><summary>{escape(group)}</summary><ul>{links}</ul></details>")
    return "".join(parts)


def _link(page: Page, here: Page, up: str) -> str:
    mark = ' aria-current="page"' if page is here else ""
    return f'<li><a href="{up}{page.url}"{mark}>{escape(page.title)}</a></li>'


def written(page: Page, pages: list[Page]) -> str:
    """Return the whole HTML of a page."""
    template = (TEMPLATE / "site.html").read_text(encoding="utf-8")
    contents = "".join(
        f'<li class="h{level}"><a href="#{anchor}">{escape(text)}</a></li>' for level, text, anchor in page.headings
    )
    values = {
        "title": escape(page.title),
        "up": "../" * page.url.count("/"),
        "navigation": navigation(pages, page),
        "contents": f"<h2>On this page</h2><ul>{contents}</ul>" if len(page.headings) > 1 else "",
        "body": page.body,
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: values[found[1]], template)


def entries(pages: list[Page]) -> list[Entry]:
    """Return what the search finds: pages, their sections, ops and errors."""
    return [entry for page in pages for entry in page.entries]


def build(output: Path) -> list[Page]:
    """Write the site; return its pages."""
    shutil.rmtree(output, ignore_errors=True)
    pages = site()
    for page in pages:
        target = output / page.url
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(written(page, pages), encoding="utf-8")
        for source, name in page.files:
            (output / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, output / name)
    for name in ("site.css", "site.js"):
        shutil.copyfile(TEMPLATE / name, output / name)
    index = json.dumps([tuple(entry) for entry in entries(pages)], separators=(",", ":"))
    (output / "search.js").write_text(f"window.searchIndex={index};\n", encoding="utf-8")
    return pages


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description="Write the documentation as a site.")
    parser.add_argument("--output", type=Path, default=ROOT / "build/site", metavar="DIR", help="where (build/site)")
    options = parser.parse_args()
    pages = build(options.output)
    print(f"{len(pages)} pages: {options.output / 'index.html'}")


if __name__ == "__main__":
    main()
