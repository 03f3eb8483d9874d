"""Validation of passes: the program after each of them, run by the interpreter on the same arguments.

A pass changes how a program computes, never what. The first whose program gives another answer is the one to look at.
Turns that race have no one answer: they are refused at whatever stage.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

from tilewright.arrays import np
from tilewright.backends.host import HostProgram
from tilewright.call.frameworks import array_of, is_tensor
from tilewright.call.launch import Runner, run_interpreted, run_native
from tilewright.core.enums import ParamDirection
from tilewright.core.program import Function, Program
from tilewright.core.region import Array
from tilewright.errors import TilewrightError
from tilewright.frontend.programs import as_program
from tilewright.frontend.text import parse
from tilewright.interpret.checked import run_checked
from tilewright.passes.context import CallbackInstrument, PassContext
from tilewright.passes.manager import PassManager
from tilewright.programs.entry import Entry
from tilewright.programs.folder import DUMPS
from tilewright.programs.golden import GoldenError, assert_golden
from tilewright.programs.metadata import entry_of
from tilewright.programs.stages import Stages


@runtime_checkable
class Compiled(Protocol):
    """What validation takes of a compiled program."""

    program: Program
    stages: Stages
    native: HostProgram | None


Subject: TypeAlias = "Program | Function | Compiled | str | os.PathLike[str]"
Given: TypeAlias = "Sequence[Any] | Mapping[str, Any]"
"""Arguments or results, in order or by name."""

Answer: TypeAlias = "dict[str, Array]"
NATIVE, RESULT = "native code", "result "
LOOSE = 5e-2
"""How far results may be off from what somebody else has computed, where nobody says."""

_DUMP = re.compile(r"(\d+_(?:after_)?)(\w+)")


class WrongPassError(TilewrightError, AssertionError):
    """A pass that changed what a program computes, by its name."""

    def __init__(self, message: str, stage: str = "") -> None:
        super().__init__(message)
        self.stage = stage


def validate_ir(
    subject: Subject,
    tensors: Given,
    expected: Given | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    *,
    manager: PassManager | None = None,
) -> list[str]:
    """Return the stages of a program, each of which gave the same answer; WrongPassError names the first that did not.

    The subject is a program, which goes through the passes of `manager`, a compiled one, whose machine code is the
    last stage, or a folder with a `passes_dump`. `tensors` are a call's arguments, and are left as they are; `expected`
    are its outputs, NaN where an element does not matter, and without them what the front end's program computes. A
    stage that does not run is wrong, too, and so is one whose turns race. FileNotFoundError where no pass has left
    anything to run.
    """
    trial = _Trial(tensors, rtol, atol, skip_nan=expected is not None)
    wanted: Answer | None = None
    done: list[str] = []
    before = ""
    for stage, program, runner in _stages(subject, manager):
        text = stage if stage == NATIVE else str(program)
        if text == before:  # most passes find nothing to do
            done.append(stage)
            continue
        before = text
        answer = trial.answer(stage, program, runner)
        wanted = _wanted(program, answer, expected) if wanted is None else wanted
        trial.compare(stage, {name: answer[name] for name in wanted}, wanted, done)
        done.append(stage)
    return done


class _Trial:
    """One call, made again for each stage."""

    def __init__(self, given: Given, rtol: float | None, atol: float | None, *, skip_nan: bool) -> None:
        self.given = given
        self.skip_nan = skip_nan
        self.rtol = rtol
        self.atol = atol
        self.source: Program | None = None

    def answer(self, stage: str, program: Program, runner: Runner) -> Answer:
        """Return what a stage computes from fresh copies of the arguments: all that it writes or returns, by name."""
        self.source = self.source or program  # passes may change how functions are declared, not how they are called
        entry = Entry(self.source, entry_of(self.source), runner)
        args, named = _copied(self.given)
        try:
            bound = entry.bound(args, named)
            returned = runner(bound)
        except TilewrightError as error:
            raise WrongPassError(f"the program does not run after {stage}: {error}", stage) from error
        written = zip(entry.param_names, entry.directions, bound.given, strict=True)
        outputs = {name: array_of(value) for name, direction, value in written if direction is not ParamDirection.In}
        return outputs | {f"{RESULT}{i}": array_of(value) for i, value in enumerate(returned)}

    def compare(self, stage: str, answer: Answer, wanted: Answer, before: list[str]) -> None:
        try:
            assert_golden(answer, wanted, self.rtol, self.atol, skip_nan=self.skip_nan)
        except GoldenError as error:
            held = f"; it was right after {before[-1]}" if before else ""
            raise WrongPassError(f"{stage} changed the answer{held}: {error}", stage) from error


def _stages(subject: Subject, manager: PassManager | None) -> Iterator[tuple[str, Program, Runner]]:
    """Yield each stage by the name of its pass, with what runs it."""
    for name, program in _programs(subject, manager):
        yield name, program, partial(run_interpreted, partial(run_checked, program))
    if isinstance(subject, Compiled) and subject.native is not None:
        yield NATIVE, subject.program, partial(run_native, subject.native)


def _programs(subject: Subject, manager: PassManager | None) -> Iterator[tuple[str, Program]]:
    if isinstance(subject, (Program, Function)):
        return iter(_passed(as_program(subject), manager or PassManager.get_strategy()))
    if isinstance(subject, Compiled):
        stages = subject.stages
        return _parsed({name: partial(stages.__getitem__, name) for name in stages}, repr(subject))
    return dumped(Path(subject))


def dumped(place: Path) -> Iterator[tuple[str, Program]]:
    """Yield the programs that passes have left in a folder, or in the `passes_dump` below it, or in a single file.

    FileNotFoundError where there is none.
    """
    folder = place / DUMPS if (place / DUMPS).is_dir() else place
    paths = [place] if place.is_file() else sorted(folder.glob("*.py"))
    return _parsed({path.stem: path.read_text for path in paths}, str(folder))


def _passed(program: Program, manager: PassManager) -> list[tuple[str, Program]]:
    """Return the program as it comes, and after each pass."""
    found = [("frontend", program)]
    context = PassContext.current()
    watcher = CallbackInstrument(after=lambda name, after: found.append((name, after)))
    with PassContext([*context.instruments, watcher], context.verification_level):
        manager.run_passes(program)
    return found


def _parsed(texts: Mapping[str, Callable[[], str]], where: str) -> Iterator[tuple[str, Program]]:
    dumps = {name: match[2] for name in texts if (match := _DUMP.fullmatch(name))}
    if not dumps:
        help = "compile it with dump_passes=True, or validate `kernel.specialize(...).program`"
        raise FileNotFoundError(f"there is no pass dump in {where}: {help}")
    for name, stage in sorted(dumps.items()):
        yield stage, as_program(parse(texts[name](), {}, f"<{name}>"))


def _wanted(program: Program, answer: Answer, expected: Given | None) -> Answer:
    """Return what to hold stages to, by name: what is expected, or what the first of them computes."""
    if expected is None:
        return answer
    if not isinstance(expected, Mapping):
        outputs = [name for name in answer if not name.startswith(RESULT)] or [*answer]
        if len(expected) != len(outputs):
            raise ValueError(f"{len(expected)} outputs are expected, and {program.name} gives {', '.join(outputs)}")
        expected = dict(zip(outputs, expected, strict=True))
    unknown = [name for name in expected if name not in answer]
    if unknown:
        raise ValueError(f"{program.name} does not give {', '.join(unknown)}; it gives {', '.join(answer)}")
    return {name: array_of(value) for name, value in expected.items()}


def _copied(given: Given) -> tuple[list[Any], dict[str, Any]]:
    if isinstance(given, Mapping):
        return [], {name: _copy(value) for name, value in given.items()}
    return [_copy(value) for value in given], {}


def _copy(value: Any) -> Any:
    return np.array(array_of(value)) if is_tensor(value) else value
