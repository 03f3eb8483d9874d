"""The measuring commands: `tilewright bench` says how long a kernel takes, `tilewright explain` why."""

from __future__ import annotations

import argparse

from tilewright.programs.bench import benchmark
from tilewright.tools import arguments, screen
from tilewright.tools.calls import compiled_call
from tilewright.tools.command import Command, option
from tilewright.tools.files import as_command
from tilewright.tools.naming import CommandError

BENCH = """Say how long a kernel takes, called from Python and by itself, on random arguments. The spread is how wide
the middle half of the runs is: above 5 % the machine is doing something else, too."""
BENCH_EXAMPLES = """examples:
  tilewright bench kernel.py x=1000x128              median, least and most of 100 calls
  tilewright bench kernels.py:softmax x=fp16:64x64   one of several kernels, another element type
  tilewright bench ring.py:ring --ranks 4            a host function, on four ranks
  tilewright bench kernel.py --platform cuda --json  on a GPU, every time
"""
EXPLAIN = """Run a kernel on random arguments and say how long it takes against what the machine's memory and its
multiply-adds, AMX or tensor cores give, which lines were vectorized, fused, packed, streamed and put on threads or
launches, which were not and why, and the three changes most worth trying."""
EXPLAIN_EXAMPLES = """examples:
  tilewright explain kernel.py x=1000x128            all of it, line by line
  tilewright explain kernel.py x=1000x128 --json     the same for scripts, in seconds and bytes
  tilewright explain kernel.py --platform cuda       held against a GPU's memory and tensor cores
"""


def _bench(options: argparse.Namespace) -> None:
    if options.rounds < 1:
        raise CommandError(f"--rounds takes 1 or more, got {options.rounds}")
    compiled, called = compiled_call(options)
    with screen.working("measuring"), as_command():
        found = benchmark(compiled, list(called.values()), rounds=options.rounds)
    if options.json:
        screen.as_json({"name": found.name, "call_us": found.host_wall_us, "program_us": found.device_wall_us})
        return
    rows = {"call": found, "program": found.device} if compiled.native is not None else {"call": found}
    screen.heading(found.name, f"{found.rounds} runs on {compiled.platform}, in microseconds")
    screen.columns(
        (name, f"median {each.median:.2f}  least {each.min:.2f}  most {each.max:.2f}  spread {100 * each.spread:.1f} %")
        for name, each in rows.items()
    )


def _explain(options: argparse.Namespace) -> None:
    compiled, called = compiled_call(options)
    with screen.working("measuring"), as_command():
        found = compiled.explain(**called)
    if options.json:
        screen.as_json(found.plain())
    else:
        print(found, end="")


ROUNDS = option("--rounds", type=int, default=100, metavar="N", help="how many calls are timed (default: 100)")
BENCH_COMMAND = Command(
    "bench", "say how long a kernel takes", BENCH, _bench,
    (*arguments.CALL, ROUNDS, arguments.platform("where it runs")), BENCH_EXAMPLES,
    json="print every time as JSON, in microseconds",
)  # fmt: skip
EXPLAIN_COMMAND = Command(
    "explain", "say why a kernel is slow", EXPLAIN, _explain,
    (*arguments.CALL, arguments.platform("where it runs")), EXPLAIN_EXAMPLES,
    json="print JSON, in seconds and bytes",
)  # fmt: skip
