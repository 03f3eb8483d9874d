"""The command line: `tilewright` looks at programs, ops and passes."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from itertools import groupby

from tilewright.core.op import OpSpec
from tilewright.core.program import Program
from tilewright.errors import InternalError, KernelError, TilewrightError
from tilewright.frontend.foreign import meant
from tilewright.ops.registry import specs
from tilewright.passes.launches import launches
from tilewright.passes.pipeline import DEFAULT
from tilewright.passes.stages import Stage, file_of, stages, summary
from tilewright.source import UNKNOWN
from tilewright.tools import arguments, benching, bisect, cache, completion, doctor, explain, exploring, pto, screen
from tilewright.tools.coming_from import about, names_of
from tilewright.tools.files import named, program_in
from tilewright.tools.naming import CommandError, check_known
from tilewright.tools.reference import entry, heading, noun_of
from tilewright.tools.signatures import signatures

EPILOG = """examples:
  tilewright show kernel.py                       what the front end read
  tilewright show kernel.py --pass OutlineScopes  the program after one pass
  tilewright show kernel.py --all                 the program after every pass that changed it
  tilewright show kernel.py --launches            what runs side by side, in which order
  tilewright show kernel.py --pto                 as PTO text, which `tilewright pto run` takes
  tilewright show kernel.py --types               with the type of every local
  tilewright show kernels.py:softmax              one of several @pl.jit kernels
  tilewright explore kernel.py                    a page with every stage, each line beside the one it came from
  tilewright explore kernel.py:softmax x=1000x128 one of several kernels, for a tensor that its annotations leave open
  tilewright explore script.py --run              the program that a script's first call has compiled
  tilewright access kernel.py x=40x32             which elements each turn reads and writes
  tilewright bench kernel.py x=fp16:1000x128      how long it takes
  tilewright explain kernel.py x=1000x128         why it takes that long, line by line, and what to try
  tilewright bisect kernel.py x=40x32             which pass first changes the answer, cut down to what shows it
  tilewright ops                                  the ops of the language
  tilewright ops row_max                          one of them
  tilewright ops torch.where                      what one of NumPy, torch, Triton or Numba is called here
  tilewright ops mask                             all that are about something
  tilewright passes                               what the compiler does, in order
  tilewright cache ls                             the compiled code that is kept on disk
  tilewright doctor                               which processor, GPU and compilers there are
  tilewright completion bash                      a script that completes all this
  tilewright pto check kernel.pto                 parse, verify and lower PTO text

Output is highlighted on a terminal and plain text elsewhere, and JSON with --json; a printed program is Python that
`show` reads again.
"""

SHOW = """Print a program as the compiler sees it: what the front end read, or what a pass made of that. Kernels are
read by their annotations, and by the arguments that are named behind the file; nothing is run."""
SHOW_EXAMPLES = """examples:
  tilewright show kernel.py                          what the front end read
  tilewright show kernel.py --all                    after every pass that changed something
  tilewright show kernels.py:softmax x=fp16:64x128   one of several kernels, for a tensor that is left open
  tilewright show kernel.py --launches               what runs side by side, in which order
  tilewright show kernel.py --pto                    as PTO text, which `tilewright pto run` takes
"""
OPS = """List the ops of the language, or explain one: its signatures, what it takes and gives, what NumPy, torch,
Triton and Numba call it. A word that no op is called lists those that are about it."""
OPS_EXAMPLES = """examples:
  tilewright ops                all of them, by what they are about
  tilewright ops row_max        one
  tilewright ops torch.where    by what another library calls it
  tilewright ops mask           all that are about something
"""
INTERRUPTED = 130
"""How shells say that somebody pressed Ctrl-C."""
TOOLS = (
    ("bench", "say how long a kernel takes", benching),
    ("explain", "say why a kernel is slow", explain),
    ("bisect", "find the pass that is wrong", bisect),
)


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
    except (OSError, TilewrightError, UnicodeError) as error:
        _tell(error, is_json=getattr(options, "json", False) and not screen.IS_TOLD.get())
        return error.status if isinstance(error, CommandError) else 1
    return 0


def _tell(error: Exception, *, is_json: bool) -> None:
    """Print what was wrong: for people beside the output, for scripts in its place, if there is none."""
    text = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
    if not is_json:
        print(text, file=sys.stderr)
        return
    span, message = (error.place, error.message) if isinstance(error, KernelError) else (UNKNOWN, text)
    file = span.filename if span.is_known else getattr(error, "filename", None)
    told = {"error": type(error).__name__, "message": message, "file": file, "line": span.line or None, "text": text}
    screen.json_text(json.dumps(told))


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
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        "tilewright", description="Look at kernels the way the compiler does.", epilog=EPILOG, formatter_class=raw
    )
    parser.add_argument("--version", action="version", version=f"tilewright {version}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    show = commands.add_parser(
        "show", help="print a program's IR", description=SHOW, epilog=SHOW_EXAMPLES, formatter_class=raw
    )
    holds = "a Python file with annotated @pl.jit kernels, or else one @pl.program or @pl.function"
    show.add_argument("file", metavar="FILE[:KERNEL]", help=holds)
    arguments.add_to(show)
    show.add_argument("--kernel", metavar="NAME", help="which @pl.jit kernel of the file, where it has several")
    stage = show.add_mutually_exclusive_group()
    after = "after this pass (default: after the front end)"
    completion.offer(
        stage.add_argument("--pass", dest="after", metavar="NAME", help=after), lambda: [each.name for each in DEFAULT]
    )
    stage.add_argument("--all", action="store_true", help="after the front end and every pass that changed something")
    stage.add_argument(
        "--launches", action="store_true", help="what it starts, in order, and what each reads and writes"
    )
    stage.add_argument("--pto", action="store_true", help="as PTO text, where that can say it")
    show.add_argument("--types", action="store_true", help="write the type of every local")
    screen.can_print_json(show)
    show.set_defaults(command=_show)
    exploring.configure(commands)
    for name, help, module in TOOLS:
        module.configure(
            commands.add_parser(name, help=help, description=module.ABOUT, epilog=module.EPILOG, formatter_class=raw)
        )
    ops = commands.add_parser(
        "ops", help="list ops, or explain one", description=OPS, epilog=OPS_EXAMPLES, formatter_class=raw
    )
    by = "as in add, pl.add, tile.add or np.where, or a word that is said of it"
    completion.offer(
        ops.add_argument("name", nargs="?", metavar="NAME", help=by),
        lambda: sorted({spec.name for spec in specs() if spec.has_a_name}),
    )
    screen.can_print_json(ops)
    ops.set_defaults(command=_ops)
    passes = commands.add_parser("passes", help="list the passes", description="List the passes in order.")
    screen.can_print_json(passes)
    passes.set_defaults(command=_passes)
    kept = commands.add_parser(
        "cache", help="look at the cache on disk", description=cache.ABOUT, epilog=cache.EPILOG, formatter_class=raw
    )
    cache.configure(kept)
    found = commands.add_parser("doctor", help="say what this machine has", description=doctor.ABOUT)
    doctor.configure(found)
    text = commands.add_parser(
        "pto", help="check and run PTO text", description=pto.ABOUT, epilog=pto.EPILOG, formatter_class=raw
    )
    pto.configure(text)
    shells = commands.add_parser(
        "completion",
        help="complete commands in a shell",
        description=completion.ABOUT,
        epilog=completion.EPILOG,
        formatter_class=raw,
    )
    completion.configure(shells, parser)
    return parser


def _show(options: argparse.Namespace) -> None:
    if options.file.endswith(".pto"):
        raise CommandError(f"{options.file} is PTO text\n    help: tilewright pto check --show {options.file}")
    file, kernel = named(options.file)
    with screen.working(f"reading {file}"):
        program = program_in(file, options.kernel or kernel, arguments.given(options.arguments))
        found = stages(program) if options.launches or options.all or options.after else []
    if options.pto:
        from tilewright.programs.pto_text.export import as_pto

        text = as_pto(program)
        screen.json_text(json.dumps([{"stage": "PTO", "text": text}])) if options.json else print(text, end="")
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
    screen.json_text(json.dumps([{"stage": name, "text": _text(each, options)} for name, each in found]))


def _launches(program: Program, *, is_json: bool) -> None:
    if is_json:
        started = {f.name: [{"what": o.what, "does": o.does} for o in launches(program, f)] for f in program.entries}
        screen.json_text(json.dumps(started))
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


def _instead(name: str) -> tuple[str, bool]:
    """Return what to say of a name that no op has, and whether that is better than the nearest spelling."""
    library, _, last = name.rpartition(".")
    return meant(last) or "`tilewright ops` lists them", bool(meant(last) or library)


def _ops(options: argparse.Namespace) -> None:
    if options.name is not None:
        _explain(options.name.removeprefix("pl."), is_json=options.json)
    elif options.json:
        screen.json_text(json.dumps([_plain(spec) for spec in specs() if spec.has_a_name]))
    else:
        for noun, group in groupby(sorted((s for s in specs() if s.has_a_name), key=noun_of), noun_of):
            screen.heading(noun, heading(noun).partition("\n\n")[0])
            screen.columns((next(iter(signatures(spec))), spec.doc.partition("\n\n")[0]) for spec in group)


def _explain(name: str, *, is_json: bool) -> None:
    """Show one op, or those that are about something."""
    found = {spec: names_of(spec) for spec in specs() if spec.has_a_name}
    exact = [spec for spec, names in found.items() if name in names]
    near = exact or about(name)
    if not near:
        check_known(name, [each for names in found.values() for each in names], "op", *_instead(name))
    if is_json:
        screen.json_text(json.dumps([_plain(spec) for spec in near]))
    elif exact:
        for spec in exact:
            screen.markdown(entry(spec))
    else:
        screen.heading(name, "what is called so, or said to be about it")
        screen.columns((next(iter(signatures(spec))), spec.doc.partition("\n\n")[0]) for spec in near)


def _plain(spec: OpSpec) -> dict[str, object]:
    signature = list(signatures(spec).values())
    return {
        "name": spec.name,
        "signatures": signature,
        "doc": spec.doc,
        "group": noun_of(spec),
    }


def _passes(options: argparse.Namespace) -> None:
    if options.json:
        found = [{"name": each.name, "file": file_of(each), "does": summary(each)} for each in DEFAULT]
        screen.json_text(json.dumps(found))
        return
    screen.columns((f"{number:2} {each.name}", summary(each)) for number, each in enumerate(DEFAULT, start=1))
