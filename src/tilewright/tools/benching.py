"""The benchmark command: `tilewright bench` says how long a kernel takes."""

from __future__ import annotations

import argparse
import json

from tilewright.programs.bench import benchmark
from tilewright.tools import arguments, screen
from tilewright.tools.calls import compiled_call
from tilewright.tools.exploring import HOLDS
from tilewright.tools.files import as_command
from tilewright.tools.naming import CommandError

ABOUT = """Say how long a kernel takes, called from Python and by itself, on random arguments. The spread is how wide
the middle half of the runs is: above 5 % the machine is doing something else, too."""
EPILOG = """examples:
  tilewright bench kernel.py x=1000x128              median, least and most of 100 calls
  tilewright bench kernels.py:softmax x=fp16:64x64   one of several kernels, another element type
  tilewright bench ring.py:ring --ranks 4            a host function, on four ranks
  tilewright bench kernel.py --platform cuda --json  on a GPU, every time
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes to its parser."""
    parser.add_argument("file", metavar="FILE[:KERNEL]", help=HOLDS)
    arguments.add_to(parser)
    arguments.add_ranks(parser)
    parser.add_argument("--rounds", type=int, default=100, metavar="N", help="how many calls are timed (default: 100)")
    arguments.add_platform(parser, "where it runs")
    parser.add_argument("--json", action="store_true", help="print every time as JSON, in microseconds")
    parser.set_defaults(command=_bench)


def _bench(options: argparse.Namespace) -> None:
    if options.rounds < 1:
        raise CommandError(f"--rounds takes 1 or more, got {options.rounds}")
    compiled, called = compiled_call(options)
    with screen.working("measuring"), as_command():
        found = benchmark(compiled, list(called.values()), rounds=options.rounds)
    if options.json:
        screen.json_text(
            json.dumps({"name": found.name, "call_us": found.host_wall_us, "program_us": found.device_wall_us})
        )
        return
    rows = {"call": found, "program": found.device} if compiled.native is not None else {"call": found}
    screen.heading(found.name, f"{found.rounds} runs on {compiled.platform}, in microseconds")
    screen.columns(
        (name, f"median {each.median:.2f}  least {each.min:.2f}  most {each.max:.2f}  spread {100 * each.spread:.1f} %")
        for name, each in rows.items()
    )
