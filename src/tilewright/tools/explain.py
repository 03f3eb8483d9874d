"""The explain command: why a kernel is as slow as it is, and what to try."""

from __future__ import annotations

import argparse
import json

from tilewright.tools import arguments, screen
from tilewright.tools.calls import compiled_call
from tilewright.tools.exploring import HOLDS
from tilewright.tools.files import as_command

ABOUT = """Run a kernel on random arguments and say how long it takes against what the machine's memory and its
multiply-adds, AMX or tensor cores give, which lines were vectorized, fused, packed, streamed and put on threads or
launches, which were not and why, and the three changes most worth trying."""
EPILOG = """examples:
  tilewright explain kernel.py x=1000x128            all of it, line by line
  tilewright explain kernel.py x=1000x128 --json     the same for scripts, in seconds and bytes
  tilewright explain kernel.py --platform cuda       held against a GPU's memory and tensor cores
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes to its parser."""
    parser.add_argument("file", metavar="FILE[:KERNEL]", help=HOLDS)
    arguments.add_to(parser)
    arguments.add_ranks(parser)
    arguments.add_platform(parser, "where it runs")
    parser.add_argument("--json", action="store_true", help="print JSON, in seconds and bytes")
    parser.set_defaults(command=_explain)


def _explain(options: argparse.Namespace) -> None:
    compiled, called = compiled_call(options)
    with screen.working("measuring"), as_command():
        found = compiled.explain(**called)
    if options.json:
        screen.json_text(json.dumps(found.plain()))
    else:
        print(found, end="")
