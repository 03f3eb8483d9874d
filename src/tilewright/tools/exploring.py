"""The explorer's commands: `tilewright explore` writes a page, `tilewright access` says which elements are touched."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.errors import InternalError, ResultCountError, TilewrightError
from tilewright.explore.gather import gathered
from tilewright.explore.notes import TOO_LARGE
from tilewright.explore.subject import Subject
from tilewright.explore.writer import write
from tilewright.passes.stages import Walk, walked
from tilewright.programs.platforms import INTERPRETER
from tilewright.programs.program import CompiledProgram
from tilewright.tools import arguments, screen
from tilewright.tools.calls import Asked, asked, compiled, inputs_of
from tilewright.tools.command import Command, option, switch
from tilewright.tools.files import UntoldError, as_command, called_in, named, program_in
from tilewright.tools.naming import CommandError, checked_output

if TYPE_CHECKING:
    from tilewright.explore.page import Page

EXPLORE = """Write one HTML page that shows a program at every stage, each line beside the one it came from: the source,
the IR after each pass, LLVM or Triton IR and PTX, machine code, memory, launches, and what calls find it by. It needs
no server and no network. A kernel that is refused gets a page too, with the stage that refused it."""
ACCESS = """Run a small call in the interpreter and say which elements of each argument its turns read and write: gaps,
overlaps, repeated and strided reads, races, elements that nobody wrote. -o writes a page that plays it, too."""

EXPLORE_EXAMPLES = """examples:
  tilewright explore kernel.py                       writes KERNEL.html beside you
  tilewright explore kernels.py:softmax x=1000x128   one of several, for a tensor that its annotations leave open
  tilewright explore script.py --run                 the program that a script's first call has compiled
  tilewright explore kernel.py x=40x32 --access      with what each turn touches, and how fast it is
  tilewright explore kernel.py --platform cuda       Triton IR, PTX and machine code of a GPU
  tilewright explore ring.py:ring --ranks 4          a host function, and what it dispatches
  tilewright explore kernel.pto                      PTO text, line by line

On the page: point at a line to see what it became, click to hold on to it, ? for the keys. The address says where you
are, as in KERNEL.html#tab=code&code=llvm&line=10.
"""
ACCESS_EXAMPLES = """examples:
  tilewright access kernel.py x=40x32                what is read and written, and what is remarkable about it
  tilewright access kernel.py x=40x32 -o page.html   the same as pictures that play turn by turn
  tilewright access kernel.py x=40x32 --json         every touch of every turn

findings:
  race        two turns of a parallel loop touch one element, and one of them writes it
  undefined   a look at elements that nobody wrote
  gap         elements that no turn touches, or writes where something is written
  overlap     elements that several turns write
  repeated    elements that several turns read
  strided     elements that are touched one by one, the same distance apart
"""


def _explore(options: argparse.Namespace) -> None:
    about = asked(options)
    try:
        made = _called(options, about) if options.run else compiled(options, about, options.platform)
        called = inputs_of(made, about, options.ranks) if options.access else {}
    except (InternalError, CommandError, ResultCountError, UntoldError):
        raise
    except TilewrightError as error:
        page = gathered(_refused(about, error))
        _shown(page, options, page.title, ": why it was refused")
        raise
    with screen.working("drawing"), as_command():
        page = made.page(**called)
    _shown(page, options, made.declared.name, ": why the call failed" * (page.refusal is not None))
    if page.refusal is not None:
        raise CommandError(page.refusal.message)
    if options.access and page.access is None:
        print(f"without a picture of what it touches: {TOO_LARGE}", file=sys.stderr)


def _shown(page: Page, options: argparse.Namespace, name: str, said: str = "") -> None:
    """Write a page, or print its data."""
    if options.json:
        screen.as_json(page.plain())
    if options.output or not options.json:
        target = write(page, checked_output(options.output or f"{name}.html", named(options.file)[0]))
        print(f"{target}{said}", file=sys.stderr if options.json else sys.stdout)


def _called(options: argparse.Namespace, about: Asked) -> CompiledProgram:
    """Return the program of a script's first call."""
    if about.said or options.platform:
        raise CommandError("--run takes the calls as the file makes them: leave out arguments and --platform")
    with screen.working(f"running {about.file}"):
        return called_in(about.file, about.kernel)


def _refused(about: Asked, error: TilewrightError) -> Subject:
    """Return what there is of a program that was refused: the stages before the one that did it."""
    name = about.kernel or getattr(error, "function", "") or Path(about.file).stem
    try:
        program = program_in(*about)
    except TilewrightError as refusal:
        return Subject(name, None, refused_by="the front end", error=refusal)
    walk: Walk = walked(program)
    stage = walk.refused.name if walk.refused is not None else "the back end"
    return Subject(name, program, walk.stages, refused_by=stage, error=walk.error or error)


def _access(options: argparse.Namespace) -> None:
    about = asked(options)
    made = compiled(options, about, INTERPRETER)
    called = inputs_of(made, about, options.ranks)
    with screen.working("watching"), as_command():
        page = made.page(**called)
    if page.access is None:
        raise CommandError(f"{TOO_LARGE}\n    help: call it with smaller ones")
    if options.json:
        screen.as_json(asdict(page.access))
    else:
        _report(asdict(page.access))
    if options.output:
        print(f"{write(page, checked_output(options.output, about.file))}#tab=access")


def _report(access: Mapping[str, Any]) -> None:
    turns = access["turns"]
    screen.heading("arguments", f"what {len(turns)} turn{'s' * (len(turns) != 1)} touch{'es' * (len(turns) == 1)}")
    for number, argument in enumerate(access["arguments"]):
        touched = [t for turn in turns for t in turn["touches"] if t["argument"] == number]
        said = ", ".join(f"{kind} {_touched(touched, kind)}" for kind in _kinds(touched)) or "never touched"
        screen.columns([(f"{argument['name']} {argument['shape']} {argument['dtype']}", said)])
    screen.heading("findings", "what there is to know" if access["findings"] else "nothing remarkable")
    screen.columns((f"{each['kind']} {each['argument']}".rstrip(), each["text"]) for each in access["findings"])


def _touched(touched: list[dict[str, Any]], kind: str) -> str:
    """Return how many elements are touched so, and how often where that is more than once each."""
    runs = [(start, stop) for touch in touched if touch["access"] == kind for start, stop in touch["runs"]]
    times = sum(stop - start for start, stop in runs)
    elements = len({flat for start, stop in runs for flat in range(start, stop)})
    return f"{elements} element{'s' * (elements != 1)}" + (f", {times} times in all" if times > elements else "")


def _kinds(touched: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(each["access"] for each in touched))


EXPLORE_COMMAND = Command(
    "explore",
    "write a page of every stage",
    EXPLORE,
    _explore,
    (
        *arguments.CALL,
        option("-o", "--output", metavar="PAGE", help="where to write it (default: KERNEL.html)"),
        arguments.platform("what to compile for"),
        switch("--run", "run the file, and show the program of its first call"),
        switch("--access", "call it with random arguments, and show what it touches"),
    ),
    EXPLORE_EXAMPLES,
    json="print the page's data; -o writes the page, too",
)
PICTURES = option("-o", "--output", metavar="PAGE", help="write a page with the pictures, too")
ACCESS_COMMAND = Command(
    "access", "say what each turn touches", ACCESS, _access, (*arguments.CALL, PICTURES), ACCESS_EXAMPLES,
    json="print every touch of every turn as JSON",
)  # fmt: skip
