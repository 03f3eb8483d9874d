"""A release: fragments gathered into the changelog, the version set, the wheel built. Publishing stays by hand."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import date
from pathlib import Path

VERSION = Path("src/tilewright/version.py")
CHANGELOG = Path("CHANGELOG.md")
FRAGMENTS = Path("changelog.d")
KINDS = ("added", "changed", "fixed", "removed")
NEXT = """tilewright {version} is in the working tree, its wheel in dist. Next:
    git diff                                        # read what users will read
    .ci/run
    git add --all && git commit -m "Version {version}" && git tag -am {version} v{version}
    git push --follow-tags
and publish dist/*.whl.
"""


class NotReady(Exception):
    """Why there is no release now; nothing was changed."""


def release(root: Path, version: str, today: date) -> None:
    """Gather the changelog and set the version; raises NotReady, with everything as it was."""
    old = current(root)
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise NotReady(f"VERSION=x.y.z names the release, got {version!r}; the last one is {old}")
    if numbers(version) < numbers(old):
        raise NotReady(f"{version} comes before {old}")
    if changed := subprocess.check_output(["git", "status", "--porcelain"], cwd=root, text=True):
        raise NotReady(f"the tree is not clean:\n{changed.rstrip()}")
    fragments = sorted(path for path in (root / FRAGMENTS).glob("*.md") if path.name != "README.md")
    text = with_section(root / CHANGELOG, section(version, today, fragments))
    (root / CHANGELOG).write_text(text, encoding="utf-8")
    for path in fragments:
        path.unlink()
    source = (root / VERSION).read_text(encoding="utf-8")
    (root / VERSION).write_text(source.replace(f'"{old}"', f'"{version}"'), encoding="utf-8")


def current(root: Path) -> str:
    """Return the version in the tree."""
    found = re.search(r'__version__ = "(.+)"', (root / VERSION).read_text(encoding="utf-8"))
    assert found is not None
    return found[1]


def numbers(version: str) -> list[int]:
    """Return a version as what it is ordered by."""
    return [int(number) for number in version.split(".")]


def section(version: str, today: date, fragments: list[Path]) -> str:
    """Return the changelog's part about one version, kind by kind."""
    if strange := [path.name for path in fragments if kind_of(path) not in KINDS]:
        raise NotReady(f"a fragment is called SLUG.KIND.md, KIND being one of {', '.join(KINDS)}: {', '.join(strange)}")
    if not fragments:
        raise NotReady(f"{FRAGMENTS} has no fragments: nothing that users would notice has changed")
    parts = [f"## {version} ({today.isoformat()})"]
    for kind in KINDS:
        entries = [
            f"- {' '.join(path.read_text(encoding='utf-8').split())}" for path in fragments if kind_of(path) == kind
        ]
        parts += [f"### {kind.capitalize()}", "\n".join(entries)] if entries else []
    return "\n\n".join(parts) + "\n"


def kind_of(path: Path) -> str:
    """Return what a fragment's name says it is about."""
    return path.stem.rpartition(".")[2]


def with_section(changelog: Path, section: str) -> str:
    """Return the changelog with a new first section."""
    written = changelog.read_text(encoding="utf-8") if changelog.exists() else ""
    older = written.partition("\n## ")[1:]
    heading = section.partition(" (")[0]
    if f"{heading} (" in written:
        raise NotReady(f"{changelog.name} has a section {heading.removeprefix('## ')} already")
    return f"# Changelog\n\n{section}" + "".join(older)


def main(arguments: list[str]) -> int:
    """Make the release that the command line names; return the exit status."""
    (version,) = arguments
    try:
        release(Path.cwd(), version, date.today())
    except NotReady as reason:
        print(f"no release: {reason}", file=sys.stderr)
        return 1
    subprocess.run(["make", "wheel"], check=True)
    print(NEXT.format(version=version), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
