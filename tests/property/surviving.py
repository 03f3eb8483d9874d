"""Surviving: what becomes of a PTO text that may be wrong in any way.

It is refused with a place, or stopped with one when it runs, or leaves what the interpreter leaves. Everything else is
a failure, which comes back as text: these functions run in a process that may not.
"""

from __future__ import annotations

import re
import signal
import traceback
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
from property.native import quietly
from soon import soon

from tilewright.call.thread_limit import on_threads
from tilewright.core.program import Program
from tilewright.errors import ExecutionError, KernelError
from tilewright.programs.compiler import compile
from tilewright.pto.difference import difference
from tilewright.pto.lint import lint
from tilewright.pto.lower import lower
from tilewright.pto.module import Func
from tilewright.pto.text.layout import formatted
from tilewright.pto.text.parser import parse
from tilewright.pto.text.printer import print_module
from tilewright.pto.types import Ptr, Scalar
from tilewright.pto.verify import verify

LENGTH, GRID = 4096, 2
MOST_TURNS = 1 << 16
FLOATS: dict[str, Any] = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
FAR = 2e-2
PATIENCE = 5.0
"""Seconds after which the interpreter, which is slow, is not waited for."""


Array = Any


class Fate(NamedTuple):
    """What became of a text: "refused", "read", "lowered", "stopped", "ran", or "failed" and how."""

    kind: str
    how: str = ""


class _Slow(BaseException):
    """The interpreter takes too long."""


def fate(text: str, seed: int, runs: bool = True, grid: int = GRID) -> Fate:
    """Return what becomes of a text; its functions run on arguments that belong to `seed` where they certainly end."""
    try:
        programs = lowered(text)
        floats = [dtype for word, dtype in FLOATS.items() if word in text]
        kinds = [_same(func, program, seed, floats, grid) for func, program in programs] if runs and ends(text) else []
    except KernelError as error:
        return Fate("refused") if error.place.is_known else Fate("failed", f"{error!r} does not say where")
    except Exception:
        return Fate("failed", traceback.format_exc())
    return Fate(min(kinds, default="lowered"))


def fate_as_text(text: str) -> Fate:
    """Return what becomes of a text that is laid out, printed, compared and linted, and of what each says of itself."""
    try:
        module = parse(text, "mutated.pto")
        laid_out, printed = formatted(text, "mutated.pto"), print_module(module)
        if formatted(laid_out, "again.pto") != laid_out or print_module(parse(laid_out, "again.pto")) != printed:
            return Fate("failed", f"its layout says something else, or has another one:\n{laid_out}")
        if differs := difference(module, parse(printed, "printed.pto")):
            return Fate("failed", "\n".join(differs))
        verify(module)
        lint(module)
    except KernelError as error:
        return Fate("refused") if error.place.is_known else Fate("failed", f"{error!r} does not say where")
    except Exception:
        return Fate("failed", traceback.format_exc())
    return Fate("read")


def lowered(text: str) -> list[tuple[Func, Program]]:
    """Return the functions of a text that can be launched, as programs."""
    module = parse(text, "mutated.pto")
    verify(module)
    funcs = [f for f in module.funcs() if f.body is not None and not f.results]
    launchable = [f for f in funcs if all(isinstance(a.type, (Ptr, Scalar)) for a in f.arguments)]
    return [(f, lower(module, f, target="a5")) for f in launchable]


def ends(text: str) -> bool:
    """Return whether a text says of none of its own loops to go on for long: those that do are right to."""
    constants = {name: int(number) for name, number in re.findall(r"(%\S+) = arith\.constant (-?\d+)", text)}
    limits = {name for names in re.findall(r"scf\.for %\S+ = (%\S+) to (%\S+) step (%\S+)", text) for name in names}
    is_small = all(abs(number) <= MOST_TURNS for number in constants.values())
    return "scf.while" not in text and all(
        abs(constants[name]) <= MOST_TURNS if name in constants else is_small for name in limits
    )


def _same(func: Func, program: Program, seed: int, floats: list[Any], grid: int) -> str:
    """Return whether a function stopped or ran; elements may be bytes of other `floats`, whose last bits may differ.

    Blocks of a broken text may read what others write: they run one after the other, as the interpreter has them.
    """
    with quietly(), soon(seed % 2 == 0), on_threads(1):
        ours = _outcome(func, program, "cpu", seed, grid)
        theirs = _patiently(func, program, seed, grid)
    if theirs is None:
        return "ran"
    if isinstance(ours, ExecutionError) or isinstance(theirs, ExecutionError):
        assert type(ours) is type(theirs), f"native: {ours}\ninterpreter: {theirs}"
        return "stopped"
    for a, b in zip(ours, theirs, strict=True):
        if _differ_in_last_bits(a, b) or any(_are_near(a.view(dtype), b.view(dtype)) for dtype in floats):
            continue
        if a.dtype.kind in "iub":
            np.testing.assert_array_equal(a, b)
        else:
            with np.errstate(invalid="ignore"):
                np.testing.assert_allclose(a.astype(np.float64), b.astype(np.float64), rtol=FAR, atol=FAR)
    return "ran"


def _are_near(a: Array, b: Array) -> bool:
    with np.errstate(invalid="ignore"):  # what is no number, of bytes that are no floats
        return bool(np.allclose(a.astype(np.float64), b.astype(np.float64), rtol=FAR, atol=FAR, equal_nan=True))


def _differ_in_last_bits(a: Array, b: Array) -> bool:
    """Return whether small floats, which may be bytes of longer ones anywhere, are at most a bit apart."""
    if a.itemsize > 1 or a.dtype.kind in "iub":
        return False
    return bool((np.abs(a.view(np.uint8).astype(np.int16) - b.view(np.uint8).astype(np.int16)) <= 1).all())


def _patiently(func: Func, program: Program, seed: int, grid: int) -> list[Any] | ExecutionError | None:
    """Return what the interpreter makes of a function, None where it takes too long."""

    def give_up(*_: object) -> None:
        raise _Slow

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    try:
        return _outcome(func, program, "interpret", seed, grid)
    except _Slow:
        return None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _outcome(func: Func, program: Program, platform: str, seed: int, grid: int) -> list[Any] | ExecutionError:
    rng = np.random.default_rng(seed)
    values = [_argument(rng, a.type) for a in func.arguments]
    try:
        compile(program, platform=platform)(grid, *values)
    except ExecutionError as error:
        assert error.place.is_known, error
        return error
    return [value for value in values if isinstance(value, np.ndarray)]


def _argument(rng: np.random.Generator, type_: object) -> Any:
    if isinstance(type_, Ptr):
        return rng.integers(0, 8, LENGTH).astype(type_.element.dtype.numpy)
    assert isinstance(type_, Scalar)
    if type_.is_float:
        return float(rng.integers(1, 8))
    return bool(rng.integers(2)) if type_.name == "i1" else int(rng.integers(1, 8))
