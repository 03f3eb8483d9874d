"""The bisect command: which pass first changes what a kernel computes."""

from __future__ import annotations

import argparse

from tilewright.core.enums import ParamDirection
from tilewright.programs.bisection import SECONDS, Bisection, bisected
from tilewright.programs.validate import WrongPassError
from tilewright.tools import arguments, screen
from tilewright.tools.calls import asked, refuse_hosts
from tilewright.tools.command import Command, option, switch
from tilewright.tools.files import named, program_in
from tilewright.tools.naming import CommandError, check_least, checked_output

ABOUT = """Run a kernel on random arguments after every pass, and as native code, and say which stage first changes the
answer. The kernel and its arguments are then cut down to what shows it, and written as a file that can be run; the same
for the text of any program, as `make fuzz` prints it. Ends with 1 where a stage is wrong,
and with 2 where the kernel does not run as it was read, or has no outputs to compare."""
EPILOG = """examples:
  tilewright bisect kernel.py x=40x32                passes first, then native code
  tilewright bisect kernel.py x=40x32 --passes-only  passes alone
  tilewright bisect found.py -o small.py             of a failing random program, cut down to small.py
"""


class NothingToCompareError(CommandError):
    """A kernel that gives no answer which a stage could change."""

    status = 2


def _bisect(options: argparse.Namespace) -> None:
    about = asked(options)
    with screen.working(f"reading {about.file}"):
        program = program_in(*about)
    refuse_hosts(program, "bisect", "runs one kernel after every pass")
    check_least("--seed", options.seed, 0)
    (entry,) = program.entries
    if not entry.return_types and all(direction is ParamDirection.In for direction in entry.param_directions):
        raise NothingToCompareError(f"{program.name} has no outputs, so no stage can change them")
    called = arguments.inputs(entry, about.said, options.seed)
    with screen.working(f"bisecting {program.name}"):
        try:
            found = bisected(program, called, is_native=not options.passes_only, seconds=options.seconds)
        except (TypeError, ValueError) as error:
            raise NothingToCompareError(str(error)) from None
    if isinstance(found, Bisection):
        _wrong(found, options)
    elif options.json:
        screen.as_json({"name": program.name, "wrong": None, "stages": found})
    else:
        print(f"{program.name}: {len(found)} stages give the same answer, from {found[0]} to {found[-1]}")


def _wrong(found: Bisection, options: argparse.Namespace) -> None:
    path = found.write(checked_output(options.output, named(options.file)[0]))
    if options.json:
        facts = {"name": found.name, "wrong": found.stage, "message": found.message, "file": str(path)}
        screen.as_json({**facts, "statements": found.statements})
    before, after = found.statements
    cut = f"cut down from {before} to {after} statements, in {path}: `python {path}` shows it"
    raise WrongPassError(f"{found.message}\n    {cut}", found.stage)


TAKES = (
    *arguments.KERNEL,
    option("-o", "--output", default="bisected.py", metavar="FILE", help="what to write (bisected.py)"),
    option("--seed", type=int, default=0, metavar="N", help="which random numbers the arguments hold"),
    option("--seconds", type=float, default=SECONDS, metavar="S", help="how long to cut it down for (20)"),
    switch("--passes-only", "leave native code out"),
)
COMMAND = Command("bisect", "find the pass that is wrong", ABOUT, _bisect, TAKES, EPILOG)
