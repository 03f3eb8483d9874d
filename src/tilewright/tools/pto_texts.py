"""The commands on PTO text as text: `tilewright pto fmt`, `lint`, `diff` and `explain`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from tilewright.source import shown
from tilewright.tools import screen
from tilewright.tools.naming import CommandError

if TYPE_CHECKING:
    from argparse import _SubParsersAction  # pyright: ignore[reportPrivateUsage]

    from tilewright.pto.module import Module


def configure(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands to those of `tilewright pto`."""
    about = "Put the blanks of PTO text in order. Tokens, comments and line breaks stay as they are."
    fmt = commands.add_parser("fmt", help="lay files out", description=about)
    fmt.add_argument("files", metavar="FILE", nargs="+", type=Path)
    fmt.add_argument("--check", action="store_true", help="write nothing; files that would change end with status 1")
    fmt.set_defaults(command=_fmt)
    about = "Point out what is legal and can hardly be meant; findings end with status 1."
    lint = commands.add_parser("lint", help="point out what can hardly be meant", description=about)
    lint.add_argument("files", metavar="FILE", nargs="*", type=Path)
    lint.add_argument("--list", action="store_true", help="name the checks")
    lint.set_defaults(command=_lint)
    about = "Show what two files say differently, whatever their values are called; differences end with status 1."
    diff = commands.add_parser("diff", help="compare two files", description=about)
    diff.add_argument("files", metavar="FILE", nargs=2, type=Path)
    diff.add_argument("--context", type=int, default=2, metavar="N", help="lines around a difference (default: 2)")
    diff.set_defaults(command=_diff)
    about = "Say how an op is written, what it does and refuses, with a kernel that runs it."
    explain = commands.add_parser("explain", help="explain an op", description=about)
    explain.add_argument("name", metavar="OP", help="as in tadd or pto.tadd")
    explain.set_defaults(command=_explain)


def module_in(path: Path) -> Module:
    """Return the verified module of a file."""
    from tilewright.pto.text.parser import parse
    from tilewright.pto.verify import verify

    module = parse(_text(path), str(path))
    verify(module)
    return module


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise CommandError(f"{path}: not UTF-8: {error}") from None


def _fmt(options: argparse.Namespace) -> None:
    from tilewright.pto.text.layout import formatted

    texts = {path: _text(path) for path in options.files}
    changed = {path: new for path, text in texts.items() if (new := formatted(text, str(path))) != text}
    if options.check and changed:
        _end_with(f"{path}: would be laid out anew" for path in changed)
    for path, text in changed.items():
        path.write_text(text, encoding="utf-8")
        print(f"{path}: laid out anew")


def _lint(options: argparse.Namespace) -> None:
    from tilewright.pto.lint import CHECKS, lint

    if options.list:
        screen.columns((name, check.__doc__ or "") for name, check in CHECKS.items())
        return
    if not options.files:
        raise CommandError("which files?\n    help: tilewright pto lint FILE ..., or --list for the checks")
    found = [finding for path in options.files for finding in lint(module_in(path))]
    if found:
        _end_with(shown(f.message, (f.span,), (), f"{f.help} ({f.check})") for f in found)


def _diff(options: argparse.Namespace) -> None:
    from tilewright.pto.difference import difference

    lines = difference(*map(module_in, options.files), context=max(0, options.context))
    if lines:
        _end_with((f"--- {options.files[0]}", f"+++ {options.files[1]}", *lines))


def _explain(options: argparse.Namespace) -> None:
    from tilewright.tools.pto_reference import explained

    screen.markdown(explained(options.name))


def _end_with(answer: Iterable[str]) -> NoReturn:
    """Print what was found, which is no mistake of the command, and leave with status 1."""
    print("\n".join(answer))
    sys.exit(1)
