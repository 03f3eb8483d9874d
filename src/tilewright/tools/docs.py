"""Generated documentation: the pages that are read off the code, written or compared.

`python -m tilewright.tools.docs` writes them, `--check` says whether they are what it would write.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from difflib import unified_diff
from pathlib import Path

from tilewright.tools.coming_from import coming_from_page
from tilewright.tools.life import life_page
from tilewright.tools.pto_reference import pto_page
from tilewright.tools.reference import language_page

PAGES: dict[str, Callable[[], str]] = {
    "coming-from.md": coming_from_page,
    "language.md": language_page,
    "life-of-a-kernel.md": life_page,
    "pto-reference.md": pto_page,
}
"""Each generated page and who writes it."""


def stale(folder: Path) -> str:
    """Return how the pages in a folder differ from what the code says now, empty when they do not."""
    return "".join(_diff(folder / name, text()) for name, text in PAGES.items())


def _diff(path: Path, fresh: str) -> str:
    written = path.read_text(encoding="utf-8") if path.exists() else ""
    lines = unified_diff(written.splitlines(True), fresh.splitlines(True), str(path), "what the code says")
    return "".join(lines)


def write(folder: Path) -> None:
    """Write every page into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in PAGES.items():
        (folder / name).write_text(text(), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tilewright.tools.docs", description="Write the generated pages.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail with a diff when a page is stale")
    parser.add_argument("--output", type=Path, default=Path("docs"), metavar="DIR", help="where they are (docs)")
    options = parser.parse_args(arguments)
    if not options.check:
        write(options.output)
        return 0
    if difference := stale(options.output):
        print(f"{difference}\nthe pages are stale: make docs", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
