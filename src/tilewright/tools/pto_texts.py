"""The commands on PTO text as text: `tilewright pto fmt`, `lint`, `diff` and `explain`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from tilewright.source import shown
from tilewright.tools import screen
from tilewright.tools.command import Command, Takes, option, switch
from tilewright.tools.naming import CommandError, check_least

if TYPE_CHECKING:
    from tilewright.pto.module import Module


def _op_names() -> Iterable[str]:
    from tilewright.pto.ops.registry import OPS

    return sorted(name.removeprefix("pto.") for name in OPS)


def module_in(path: Path, target: str = "a5") -> Module:
    """Return the module of a file, verified for the machine that it names, or else for a target."""
    from tilewright.pto.text.parser import parse
    from tilewright.pto.verify import verify

    module = parse(_text(path), str(path))
    verify(module, target)
    return module


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise CommandError(f"{path}: not UTF-8: {error}") from None


def _line_end(path: Path) -> str:
    """Return what the lines of a file end with."""
    return "\r\n" if b"\r\n" in path.read_bytes() else "\n"


def _fmt(options: argparse.Namespace) -> None:
    from tilewright.pto.text.layout import formatted
    from tilewright.pto.text.parser import parse

    texts = {path: _text(path) for path in options.files}
    for path, text in texts.items():
        parse(text, str(path))
    changed = {path: new for path, text in texts.items() if (new := formatted(text, str(path))) != text}
    if not options.check:
        for path, text in changed.items():
            path.write_text(text, encoding="utf-8", newline=_line_end(path))
    if options.json:
        screen.as_json({"changed": list(map(str, changed))})
    else:
        said = "would be laid out anew" if options.check else "laid out anew"
        print("".join(f"{path}: {said}\n" for path in changed), end="")
    if options.check and changed:
        sys.exit(1)


def _lint(options: argparse.Namespace) -> None:
    from tilewright.pto.lint import CHECKS, lint

    if options.list and options.json:
        screen.as_json({name: check.__doc__ for name, check in CHECKS.items()})
        return
    if options.list:
        screen.columns((name, check.__doc__ or "") for name, check in CHECKS.items())
        return
    if not options.files:
        raise CommandError("which files?\n    help: tilewright pto lint FILE ..., or --list for the checks")
    found = [finding for path in options.files for finding in lint(module_in(path))]
    if options.json:
        _end_with_json([{"at": str(f.span), "check": f.check, "message": f.message, "help": f.help} for f in found])
    elif found:
        _end_with(shown(f.message, (f.span,), (), f"{f.help} ({f.check})") for f in found)


def _diff(options: argparse.Namespace) -> None:
    from tilewright.pto.difference import difference

    check_least("--context", options.context, 0)
    lines = difference(*map(module_in, options.files), context=options.context)
    if options.json:
        _end_with_json(list(lines))
    elif lines:
        _end_with((f"--- {options.files[0]}", f"+++ {options.files[1]}", *lines))


def _explain(options: argparse.Namespace) -> None:
    from tilewright.tools.pto_reference import entry, explained

    if options.json:
        screen.as_json(entry(options.name)._asdict())
    else:
        screen.markdown(explained(options.name))


def _end_with_json(found: list[Any]) -> None:
    """Print what was found as JSON, and leave with status 1 where that is something."""
    screen.as_json(found)
    if found:
        sys.exit(1)


def _end_with(answer: Iterable[str]) -> NoReturn:
    """Print what was found, which is no mistake of the command, and leave with status 1."""
    print("\n".join(answer))
    sys.exit(1)


FMT = "Put the blanks of PTO text in order. Tokens, comments and line breaks stay as they are."
LINT = "Point out what is legal and can hardly be meant; findings end with status 1."
DIFF = "Show what two files say differently, whatever their values are called; differences end with status 1."
EXPLAIN = "Say how an op is written, what it does and refuses, with a kernel that runs it."
CHECK = switch("--check", "write nothing; files that would change end with status 1")
LIST = switch("--list", "name the checks")
CONTEXT = option("--context", type=int, default=2, metavar="N", help="lines around a difference (default: 2)")
OP = option("name", metavar="OP", help="as in tadd or pto.tadd", offers=_op_names)


def files(count: str | int) -> Takes:
    """Return the argument that is so many files."""
    return option("files", metavar="FILE", nargs=count, type=Path)


COMMANDS = (
    Command("fmt", "lay files out", FMT, _fmt, [files("+"), CHECK]),
    Command(
        "lint", "point out what can hardly be meant", LINT, _lint, [files("*"), switch("--list", "name the checks")]
    ),
    Command("diff", "compare two files", DIFF, _diff, [files(2), CONTEXT]),
    Command("explain", "explain an op", EXPLAIN, _explain, [OP]),
)
