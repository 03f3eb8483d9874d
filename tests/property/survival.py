"""Survival: what becomes of a mutant in a process of its own, which a deadline ends.

A process reads mutants, one line of JSON each, and answers with a line before each stage and one at the end. Whoever
waits knows so from its silence in which stage it hangs, and from its end over which mutant it crashed.
"""

from __future__ import annotations

import json
import linecache
import os
import resource
import select
import subprocess
import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
READING, RUNNING = "reading", "running"
COMPILE_LIMIT, RUN_LIMIT = 20.0, 3.0
"""Seconds; a mutated loop may turn as often as it likes, so only what happens before it runs is held to its time."""
MEMORY = 6 << 30
LARGEST = 1 << 24
"""Bytes of arguments that a mutated signature may ask for."""

REFUSED, RAN, RUNS_ON = "refused", "ran", "runs on"
FINE = (REFUSED, RAN, RUNS_ON)


@dataclass(frozen=True)
class Mutant:
    """A text to try, and whose inputs to call its entry with."""

    name: str
    text: str
    entry: str = ""
    example: str = ""


@dataclass(frozen=True)
class Fate:
    """What became of a mutant: one of FINE, or what is wrong."""

    mutant: Mutant
    outcome: str

    @property
    def is_fine(self) -> bool:
        """Whether nothing is to be mended."""
        return self.outcome in FINE


def fates(mutants: Iterable[Mutant]) -> Iterator[Fate]:
    """Yield what becomes of each mutant, in order."""
    process: subprocess.Popen[bytes] | None = None
    try:
        for mutant in mutants:
            process = process or _started()
            outcome = _asked(process, mutant)
            if process.poll() is not None:
                process = _ended(process)
            yield Fate(mutant, outcome)
    finally:
        if process is not None:
            _ended(process)


def _ended(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def _started() -> subprocess.Popen[bytes]:
    alone = {
        "TILEWRIGHT_CACHE_DIR": "off",
        "TILEWRIGHT_NUM_THREADS": "1",
    }  # blocks may want the same bytes
    environment = {**os.environ, **alone, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    command = [sys.executable, "-m", "property.survival"]
    pipe = subprocess.PIPE  # without a buffer, which `select` would not see
    return subprocess.Popen(command, bufsize=0, stdin=pipe, stdout=pipe, env=environment, cwd=TESTS)


def _asked(process: subprocess.Popen[bytes], mutant: Mutant) -> str:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(json.dumps(asdict(mutant)).encode() + b"\n")
    process.stdin.flush()
    stage = READING
    while True:
        ready, _, _ = select.select([process.stdout], [], [], RUN_LIMIT if stage == RUNNING else COMPILE_LIMIT)
        line = process.stdout.readline() if ready else b""
        if line.strip().decode() in (READING, RUNNING):
            stage = line.strip().decode()
            continue
        if line:
            return json.loads(line)
        if not ready:
            process.kill()
        process.wait()
        if ready:
            return f"crashed with {process.returncode} while {stage}"
        return RUNS_ON if stage == RUNNING else f"hangs while {stage}"


def main() -> None:
    """Answer for each mutant on the standard input."""
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what kernels print is no answer
    inputs: dict[str, tuple[Any, ...]] = {}
    for line in sys.stdin:
        mutant = Mutant(**json.loads(line))
        print(READING, file=answers)
        print(json.dumps(_fate(mutant, inputs, answers)), file=answers)


def _fate(mutant: Mutant, inputs: dict[str, tuple[Any, ...]], answers: Any) -> str:
    from tilewright.errors import InternalError, KernelError, TilewrightError

    try:
        return _called(mutant, inputs, answers) if mutant.entry else _compiled(mutant, answers)
    except InternalError as error:
        return f"InternalError: {error}"
    except KernelError as error:
        if not error.place.is_known:
            return f"no place: {type(error).__name__}: {error}"
        return REFUSED if str(error) else f"no message: {type(error).__name__}"
    except (TilewrightError, _OfPython):
        return REFUSED
    except (TypeError, ValueError) as error:
        return REFUSED if str(error).startswith(("@pl.jit", "`", "no input", "no argument")) else _bare(error)
    except Exception as error:
        return _bare(error)


def _bare(error: Exception) -> str:
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    where = "" if frame is None else f" at {Path(frame.tb_frame.f_code.co_filename).name}:{frame.tb_lineno}"
    return f"{type(error).__name__}{where}: {error}"


class _OfPython(Exception):
    """What Python itself says of the lines around a kernel."""


def _called(mutant: Mutant, inputs: dict[str, tuple[Any, ...]], answers: Any) -> str:
    """Call the mutant of an example with the example's own inputs."""
    from examples.loading import EXAMPLES, load

    if mutant.example not in inputs:
        inputs[mutant.example] = load(EXAMPLES / f"{mutant.example}.py").make_inputs(0)
    space = _executed(mutant)
    kernel: Any = space.get(mutant.entry)
    if not hasattr(kernel, "compile"):
        raise _OfPython(f"{mutant.entry} is no kernel any more")
    kernel.compile(*inputs[mutant.example])
    print(RUNNING, file=answers)
    kernel(*inputs[mutant.example])
    return RAN


def _executed(mutant: Mutant) -> dict[str, Any]:
    from tilewright.errors import InternalError, KernelError

    filename = f"<{mutant.name}>"
    linecache.cache[filename] = len(mutant.text), None, mutant.text.splitlines(keepends=True), filename
    space: dict[str, Any] = {"__name__": "mutant"}
    try:
        exec(compile(mutant.text, filename, "exec"), space)
    except (InternalError, KernelError):
        raise
    except Exception as error:
        raise _OfPython(str(error)) from error
    return space


def _compiled(mutant: Mutant, answers: Any) -> str:
    """Compile the mutant of a text, and run what it starts with."""
    import tilewright.language as pl
    from tilewright import ir
    from tilewright.frontend.programs import as_program

    compiled = ir.compile(as_program(pl.parse(mutant.text)))
    print(RUNNING, file=answers)
    for entry in compiled.program.entries:
        arguments = _arguments(entry.params)
        if arguments is not None:
            compiled[entry.name](*arguments)
    return RAN


def _arguments(params: Any) -> list[Any] | None:
    """Return arguments for an entry, None where they would be too large."""
    import numpy as np

    from tilewright.core.types import ScalarType, TensorType

    given: list[Any] = []
    for param in params:
        if isinstance(param.type, TensorType):
            shape = [extent if isinstance(extent, int) else 20 for extent in param.type.shape]
            if prod(shape) * param.type.dtype.get_byte() > LARGEST or not param.type.dtype.numpy:
                return None
            given.append(np.ones(shape, param.type.dtype.numpy))
        elif isinstance(param.type, ScalarType) and (param.type.dtype.is_int() or param.type.dtype.is_float()):
            given.append(3 if param.type.dtype.is_int() else 0.5)
        else:
            return None
    return given


if __name__ == "__main__":
    main()
