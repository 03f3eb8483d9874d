"""The cache commands: `tilewright cache` looks at what is kept on disk, checks it and throws it away."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from time import time

from tilewright import settings
from tilewright.errors import TilewrightError
from tilewright.keep.directory import Directory, File
from tilewright.keep.miss import Miss
from tilewright.keep.payload import Label
from tilewright.keep.sweep import is_fresh
from tilewright.named_tuples import NamedTuple
from tilewright.tools import screen
from tilewright.tools.command import Command, option, switch

ABOUT = "Look at the compiled code that is kept on disk, check it, or throw it away."
EPILOG = """settings:
  TILEWRIGHT_CACHE_DIR          where entries are kept, or `off`; else $XDG_CACHE_HOME/tilewright or ~/.cache/tilewright
  TILEWRIGHT_CACHE_LIMIT        how large that may grow, as in 500M (default 2G); what was unused for longest goes first
  TILEWRIGHT_SHARED_CACHE_DIRS  directories that are read as well and never written, separated by `:`
  TILEWRIGHT_RUN_ONLY           1: run what is cached, compile nothing

examples:
  tilewright cache ls                       what is there, the newest first
  tilewright cache show 3fa9                one entry, by the first digits of its key
  tilewright cache verify --delete          check every file and remove the damaged ones
  tilewright cache clear --yes              remove everything that was cached
  du -sh "$(tilewright cache path)"         how much it takes

Losing entries costs time only: what is missing is compiled again. Entries hold code that runs in your name, so the
directory must be one where nobody else can write; files of other users, and links, are not read.
"""

CLEAR = """Remove every entry, those of other versions of tilewright too, and what processes that died left behind.
Anything else in the directory stays, and so do files that are being written. Without --yes nothing is removed: the
command says what it would do and ends with status 1, on a terminal and in a script alike."""

VERIFY = """Check every entry as a lookup would: its owner, its permissions, its checksum, its name. Ends with status 1
if one is damaged. Entries of other versions of tilewright are left alone."""


class CacheCommandError(TilewrightError):
    """A cache command that found something wrong, or nothing to work on."""


class Row(NamedTuple):
    """What is known about an entry, or about its file if the entry has a problem; times are in seconds since 1970."""

    key: str
    kind: str
    format: int
    name: str | None
    version: str | None
    created: int | None
    used: int
    size: int
    path: str
    problem: Miss | None

    @property
    def title(self) -> str:
        """The name, or what is wrong."""
        return f"({self.problem.value})" if self.problem else self.name or ""

    @property
    def since(self) -> int:
        """When the entry was made, as far as anybody knows."""
        return self.used if self.created is None else self.created

    def plain(self) -> dict[str, object]:
        """Return the row as JSON has it."""
        return {**self._asdict(), "problem": self.problem and self.problem.name.lower()}


def _directory() -> Directory:
    path = settings.cache_dir()
    if path is None:
        raise CacheCommandError("the cache is off\n    help: unset TILEWRIGHT_CACHE_DIR, or let it name a directory")
    if os.path.lexists(path) and not os.path.isdir(path):
        raise CacheCommandError(f"{path} is no directory\n    help: let TILEWRIGHT_CACHE_DIR name one")
    return Directory(path)


def _path(options: argparse.Namespace) -> None:
    print(_directory().path)


def _ls(options: argparse.Namespace) -> None:
    directory = _directory()
    rows = [_row(directory, file, _label(directory, file)) for file in _entries(directory)]
    rows.sort(key=lambda row: (-row.since, row.path))
    if options.json:
        screen.as_json([row.plain() for row in rows])
    else:
        lines = [(row.key[:12], row.kind, _bytes(row.size), _age(row.since), row.title) for row in rows]
        _print_table(("key", "kind", "size", "age", "name"), lines)
        print(f"{_counted(rows)}, {_bytes(sum(row.size for row in rows))}, in {_printable(directory.path)}")


def _show(options: argparse.Namespace) -> None:
    directory = _directory()
    files = _starting_with(directory, options.key.lower())
    rows = [_row(directory, file, _checked(directory, file)) for file in files]
    if options.json:
        screen.as_json([row.plain() for row in rows])
        return
    print("\n\n".join("\n".join(f"{name:<10} {_printable(value)}" for name, value in _details(row)) for row in rows))


def _starting_with(directory: Directory, prefix: str) -> list[File]:
    """Return the entries of the one key that starts with `prefix`, one for each kind."""
    files = [file for file in _entries(directory) if file.key.startswith(prefix)]
    keys = sorted({file.key for file in files})
    if not keys:
        raise CacheCommandError(f"no key starts with {prefix}\n    help: `tilewright cache ls` lists them")
    if len(keys) > 1:
        some = ", ".join(key[: len(prefix) + 8] for key in keys[:3]) + (", ..." if len(keys) > 3 else "")
        raise CacheCommandError(f"{len(keys)} keys start with {prefix}\n    help: give more digits of one: {some}")
    return files


def _details(row: Row) -> Iterator[tuple[str, str]]:
    yield "key", row.key
    yield "kind", row.kind
    yield "name", row.title
    yield "made by", f"tilewright {row.version or ''}".rstrip()
    yield "created", _moment(row.since)
    yield "last used", f"{_moment(row.used)}, to the hour"
    yield "size", f"{row.size} bytes"
    yield "state", row.problem.value if row.problem else "whole"
    yield "file", row.path


def _verify(options: argparse.Namespace) -> None:
    directory = _directory()
    ours = [file for file in _entries(directory) if not file.is_foreign]
    with screen.working("checking"):
        damaged = {file: why for file in ours if (why := _damage(directory, file))}
    removed = sum(map(directory.remove, damaged)) if options.delete else 0
    rows = [_row(directory, file, why) for file, why in damaged.items()]
    if options.json:
        screen.as_json({"checked": len(ours), "removed": removed, "damaged": [row.plain() for row in rows]})
    else:
        _print_table(("file", "problem"), [(row.path, row.problem.value) for row in rows if row.problem])
        print(f"{_counted(ours)} checked, {len(damaged)} damaged, {removed} removed")
    if damaged:
        help = "none is used; `tilewright cache verify --delete` removes those that you own"
        raise CacheCommandError(f"{len(damaged)} damaged" + ("" if options.delete else f"\n    help: {help}"))


def _damage(directory: Directory, file: File) -> Miss | None:
    """Return what is wrong with an entry, if anything; one that is gone since it was listed is not damaged."""
    found = _checked(directory, file)
    return found if isinstance(found, Miss) and found is not Miss.ABSENT else None


class Health(NamedTuple):
    """How a cache is: how many entries and bytes, how many entries were looked at, and how many of them are damaged."""

    entries: int
    size: int
    checked: int
    damaged: int


LOOKED_AT = 100
"""How many entries are read to see how a cache is: more take longer than anybody waits."""


def health(path: str) -> Health:
    """Return how the cache in a directory is."""
    directory = Directory(path)
    files = list(_entries(directory))
    some = [file for file in files if not file.is_foreign][:LOOKED_AT]
    damaged = sum(1 for file in some if _damage(directory, file))
    return Health(len(files), sum(file.status.st_size for file in files), len(some), damaged)


def _clear(options: argparse.Namespace) -> None:
    directory = _directory()
    now = time()
    files = [file for file in directory.files() if file.is_ours and not (file.is_temporary and is_fresh(file, now))]
    what = f"{len(files)} files, {_bytes(sum(file.status.st_size for file in files))}, in {_printable(directory.path)}"
    if not options.yes:
        raise CacheCommandError(f"would remove {what}\n    help: say --yes to remove them")
    removed = sum(map(directory.remove, files))
    directory.prune()
    print(f"removed {removed} of {what}")


def _entries(directory: Directory) -> Iterator[File]:
    return (file for file in directory.files() if not file.is_temporary)


def _label(directory: Directory, file: File) -> Label | Miss:
    return Miss.FORMAT if file.is_foreign else directory.label(file.name)


def _checked(directory: Directory, file: File) -> Label | Miss:
    found = Miss.FORMAT if file.is_foreign else directory.fetch(file.name)
    return found if isinstance(found, Miss) else found.label


def _row(directory: Directory, file: File, label: Label | Miss) -> Row:
    status, path = file.status, f"{directory.shard(file.name)}/{file.name}"
    known = (None, None, None) if isinstance(label, Miss) else (label.name, label.version, label.created)
    problem = label if isinstance(label, Miss) else None
    return Row(file.key, file.kind, file.format, *known, int(status.st_mtime), status.st_size, path, problem)


def _counted(found: Sequence[object]) -> str:
    return f"{len(found)} {'entry' if len(found) == 1 else 'entries'}"


def _print_table(headings: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """Print rows below their headings, if there are any: with rich on a terminal, else aligned with spaces."""
    if not rows:
        return
    cells = [tuple(map(_printable, row)) for row in rows]
    if not sys.stdout.isatty():
        widths = [max(map(len, column)) for column in zip(headings, *cells, strict=True)]
        for row in (headings, *cells):
            print("  ".join(map(str.ljust, row, widths)).rstrip())
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*headings, box=None, header_style="bold", pad_edge=False)
    for row in cells:
        table.add_row(*(Text(cell, overflow="fold") for cell in row))  # not markup: names may have brackets
    Console().print(table)


def _printable(text: str) -> str:
    """Return `text` with whatever could drive a terminal, or has no place in its encoding, written as escapes."""
    if not text.isprintable():
        return text.encode("unicode_escape").decode()
    encoding = sys.stdout.encoding or "ascii"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _bytes(count: int) -> str:
    if count < 1000:
        return f"{count} B"
    size, units = count / 1024, ["GiB", "MiB", "KiB"]
    while size >= 1000 and len(units) > 1:
        size /= 1024
        units.pop()
    return f"{size:.1f} {units[-1]}"


def _age(since: int) -> str:
    age = max(0, int(time()) - since)  # an entry may be from the future, for a clock that was set back
    seconds, unit = next(((each, name) for each, name in UNITS if age >= each), (1, "s"))
    return f"{age // seconds} {unit}"


UNITS = ((86400, "d"), (3600, "h"), (60, "min"))


def _moment(seconds: int) -> str:
    try:
        return datetime.fromtimestamp(seconds).astimezone().isoformat(" ", "seconds")
    except (OverflowError, ValueError, OSError):  # no year that anybody knows
        return "unknown"


KEY = option("key", metavar="KEY", help="the first digits of its key, as `ls` prints them")
SHOW = "check one entry and print what is known about it"
PATH = "print the directory, or fail if the cache is off or cannot be one"
DELETE, YES = switch("--delete", "remove the damaged ones"), switch("--yes", "really remove it")
COMMANDS = (
    Command("ls", "list the entries, the newest first", "List the entries, the newest first.", _ls),
    Command("show", SHOW, f"{SHOW.capitalize()}.", _show, [KEY]),
    Command("verify", "check every entry", VERIFY, _verify, [DELETE]),
    Command("clear", "remove everything that was cached", CLEAR, _clear, [YES], json=""),
    Command("path", PATH, f"{PATH.capitalize()}.", _path, json=""),
)
COMMAND = Command("cache", "look at the cache on disk", ABOUT, epilog=EPILOG, inner=COMMANDS)
