"""The show command: a program's IR, as it was read or as a pass left it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from tilewright.core.program import Program
from tilewright.passes.launches import launches
from tilewright.passes.pipeline import DEFAULT
from tilewright.passes.stages import Stage, stages, summary
from tilewright.tools import arguments, screen
from tilewright.tools.calls import asked
from tilewright.tools.command import Command, option, switch
from tilewright.tools.files import program_in
from tilewright.tools.naming import CommandError, check_known

ABOUT = """Print a program as the compiler sees it: what the front end read, or what a pass made of that. Kernels are
read by their annotations, and by the arguments that are named behind the file; nothing is run."""
EPILOG = """examples:
  tilewright show kernel.py                          what the front end read
  tilewright show kernel.py --all                    after every pass that changed something
  tilewright show kernels.py:softmax x=fp16:64x128   one of several kernels, for a tensor that is left open
  tilewright show kernel.py --launches               what runs side by side, in which order
  tilewright show kernel.py --pto                    as PTO text, which `tilewright pto run` takes
"""


def _show(options: argparse.Namespace) -> None:
    if options.file.endswith(".pto"):
        raise CommandError(f"{options.file} is PTO text\n    help: tilewright pto check --show {options.file}")
    about = asked(options)
    with screen.working(f"reading {about.file}"):
        program = program_in(about.file, options.kernel or about.kernel, about.said)
        found = stages(program) if options.launches or options.all or options.after else []
    if options.pto:
        from tilewright.programs.pto_text.export import as_pto

        text = as_pto(program)
        screen.as_json([{"stage": "PTO", "text": text}]) if options.json else print(text, end="")
    elif options.launches:
        _launches(found[-1].after, is_json=options.json)
    elif options.json:
        _print_stages(program, found, options)
    elif options.all:
        screen.titled("front end", "what was read", _text(program, options))
        for stage in (stage for stage in found if stage.changed):
            screen.titled(stage.each.name, summary(stage.each), _text(stage.after, options))
    else:
        screen.code(_text(_after(found, options.after) if options.after else program, options))


def _print_stages(program: Program, chosen: Sequence[Stage], options: argparse.Namespace) -> None:
    """Print the program after one pass, or as it was read, with all that changed it where they are asked for."""
    found = [("FrontEnd", program), *((stage.each.name, stage.after) for stage in chosen if stage.changed)]
    if options.after:
        found = [(options.after, _after(chosen, options.after))]
    screen.as_json([{"stage": name, "text": _text(each, options)} for name, each in found])


def _launches(program: Program, *, is_json: bool) -> None:
    if is_json:
        started = {f.name: [{"what": o.what, "does": o.does} for o in launches(program, f)] for f in program.entries}
        screen.as_json(started)
        return
    for function in program.entries:
        found = enumerate(launches(program, function), start=1)
        screen.heading(function.name, "what it starts, in order")
        screen.columns((f"{number:2} {launch.what}", launch.does) for number, launch in found)


def _text(program: Program, options: argparse.Namespace) -> str:
    return program.as_python(concise=not options.types)


def _after(found: Sequence[Stage], name: str) -> Program:
    check_known(name, [each.name for each in DEFAULT], "pass", "`tilewright passes` lists them")
    return next(stage.after for stage in found if stage.each.name == name)


STAGES = (
    option(
        "--pass", dest="after", metavar="NAME", help="after this pass (default: after the front end)",
        offers=lambda: [each.name for each in DEFAULT],
    ),
    switch("--all", "after the front end and every pass that changed something"),
    switch("--launches", "what it starts, in order, and what each reads and writes"),
    switch("--pto", "as PTO text, where that can say it"),
)  # fmt: skip


def _one_stage(parser: Any) -> None:
    """Let a parser take one of the stages."""
    group = parser.add_mutually_exclusive_group()
    for each in STAGES:
        each(group)


HOLDS = "a Python file with annotated @pl.jit kernels, or else one @pl.program or @pl.function"
TAKES = (
    option("file", metavar="FILE[:KERNEL]", help=HOLDS),
    arguments.ARGUMENTS,
    option("--kernel", metavar="NAME", help="which @pl.jit kernel of the file, where it has several"),
    _one_stage,
    switch("--types", "write the type of every local"),
)
COMMAND = Command("show", "print a program's IR", ABOUT, _show, TAKES, EPILOG)
