"""The command line: `tilewright` looks at programs, ops and passes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext

from tilewright.errors import InternalError
from tilewright.tools import (
    bisect,
    cache,
    completion,
    doctor,
    exploring,
    listing,
    measuring,
    pto,
    screen,
    showing,
)
from tilewright.tools.command import add_all
from tilewright.tools.naming import CommandError
from tilewright.tools.telling import MISTAKES, facts_of, tell

SHOWN = 2
"""How many examples of each command the first help has."""
INTERRUPTED = 130
"""How shells say that somebody pressed Ctrl-C."""
COMMANDS = (
    showing.COMMAND, exploring.EXPLORE_COMMAND, exploring.ACCESS_COMMAND,
    measuring.BENCH_COMMAND, measuring.EXPLAIN_COMMAND, bisect.COMMAND,
    listing.OPS_COMMAND, listing.PASSES_COMMAND, cache.COMMAND, doctor.COMMAND, pto.COMMAND,
)  # fmt: skip
"""All but completion, which is of all the others."""
MORE = """
Output is highlighted on a terminal and plain text elsewhere, and JSON with --json; a printed program is Python that
`show` reads again. `tilewright COMMAND --help` has more examples.
"""


def main(arguments: Sequence[str] | None = None, version: str = "") -> int:
    """Run a command; return 0, or after printing what was wrong the status that says so: 1, unless it has its own."""
    options = _options(parser(version), arguments)
    command: Callable[[argparse.Namespace], None] = options.command
    screen.IS_TOLD.set(False)
    try:
        with screen.warned_once(), screen.for_scripts() if getattr(options, "json", False) else nullcontext():
            command(options)
    except InternalError:
        raise
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()  # the reader has gone, as `| head` does
    except MISTAKES as error:
        if getattr(options, "json", False) and not screen.IS_TOLD.get():
            screen.as_json(facts_of(error))
        else:
            tell(error)
        return error.status if isinstance(error, CommandError) else 1
    return 0


def _options(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return what the arguments say; those of a command that takes any number may stand behind its options too."""
    options, rest = parser.parse_known_args(arguments)
    takes_more = isinstance(getattr(options, "arguments", None), list)
    if rest and (not takes_more or any(text.startswith("-") for text in rest)):
        _chosen(parser, sys.argv[1:] if arguments is None else arguments).error(
            f"unrecognized arguments: {' '.join(rest)}"
        )
    if rest:
        options.arguments = [*options.arguments, *rest]
    return options


def _chosen(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.ArgumentParser:
    """Return what reads the command that some arguments name, whose usage is worth showing."""
    words = [text for text in arguments if not text.startswith("-")]
    found = [inner for path, inner in completion.commands_of(parser) if [*path] == words[: len(path)]]
    return found[-1] if found else parser


def parser(version: str) -> argparse.ArgumentParser:
    """Return what reads a command line."""
    about, raw = "Look at kernels the way the compiler does.", argparse.RawDescriptionHelpFormatter
    made = argparse.ArgumentParser("tilewright", description=about, epilog=_epilog(), formatter_class=raw)
    made.add_argument("--version", action="version", version=f"tilewright {version}")
    add_all(made, [*COMMANDS, completion.command(made)])
    return made


def _epilog() -> str:
    """Return the first examples of each command, as its own help has them."""
    found = [example for each in COMMANDS for example in each.examples[:SHOWN] if example[1]]
    return "\n".join(["examples:", *(f"  {text:<49} {does}" for text, does in found), MORE])
