"""Native runs of generated programs, held against the interpreter.

A program is written to a file before it is compiled and before it runs, with what it was made from and the seed of its
arguments: where the process ends, that file says over what.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import ParamSpec
from zlib import crc32

import numpy as np
from ops.kernels import Array
from ops.launched import launched
from property.accuracy import assert_within_declared_accuracy
from property.crashes import note_of
from property.guards import FencedArray, Guard, Place, guarded
from property.programs import inputs_for
from property.running import SEEDS, Outcome, outcome, parsed
from soon import soon

from tilewright.backends.cpu.backend import CPU
from tilewright.backends.host import HostProgram
from tilewright.core.expr import Call
from tilewright.core.program import Program
from tilewright.core.visitor import expressions, statements
from tilewright.errors import DependentTurnsWarning, ExecutionError
from tilewright.passes.context import CallbackInstrument, PassContext
from tilewright.passes.manager import PassManager
from tilewright.passes.overwritten import overwritten_outputs

P = ParamSpec("P")


def check(text: str, origin: str = "a program", guard: Guard | None = None) -> frozenset[str]:
    """Fail unless a program's native code leaves what the interpreter leaves; return the ops it was made of.

    `origin` says what the program was made from, where that is shorter than the program. Without a `guard`, the text
    decides.
    """
    guard = guard_of(text) if guard is None else guard
    program = parsed(text)
    compiled, ops = lowered(program)
    filled = overwritten_outputs(compiled, compiled["main"])
    with quietly(), guarded(guard):
        native = compiled_natively(compiled, text, f"{origin}, {guard}")
        for seed in SEEDS:
            expected = outcome(program, seed)
            with named(text, f"{origin}, {guard}, run on arguments of seed {seed}"):
                ours = native_outcome(program, native, seed, filled, strided=seed % 2 == 0 and not ops & PACKED)
            assert_within_declared_accuracy(program, seed, ours, expected)
    return ops


def check_errors(text: str, origin: str = "a program") -> bool:
    """Fail unless native code refuses what the interpreter refuses; return whether there was something to refuse.

    Dead code is gone from what native code is made of, and with it what was wrong there.
    """
    program = parsed(text)
    compiled, _ = lowered(program)
    refused = False
    with quietly(), guarded(guard := guard_of(text)):
        native = compiled_natively(compiled, text, f"{origin}, {guard}")
        for seed in SEEDS:
            expected = attempted(outcome, compiled, seed)
            with named(text, f"{origin}, {guard}, run on arguments of seed {seed}"):
                ours = attempted(native_outcome, program, native, seed)
            refused |= are_refused(compiled, seed, ours, expected)
    return refused


def are_refused(
    program: Program, seed: int, ours: Outcome | ExecutionError, expected: Outcome | ExecutionError
) -> bool:
    """Return whether arguments were refused; fail where only one refused them, or what was computed differs."""
    if isinstance(expected, Outcome) and isinstance(ours, Outcome):
        assert_within_declared_accuracy(program, seed, ours, expected)
        return False
    assert type(expected) is type(ours), f"interpreter: {expected}\nnative: {ours}"
    return True


def compiled_natively(program: Program, text: str, origin: str) -> HostProgram:
    """Return the native code of a lowered program."""
    with named(text, f"{origin}, compiled"), soon(is_soon(text)):
        return CPU().load(program, CPU().compile(program))


def attempted(action: Callable[P, Outcome], *args: P.args, **options: P.kwargs) -> Outcome | ExecutionError:
    """Return what an action gives, or the error that refuses its arguments."""
    try:
        return action(*args, **options)
    except ExecutionError as error:
        return error


def lowered(program: Program) -> tuple[Program, frozenset[str]]:
    """Return a program ready for native code, and the names of the ops in it once dead code is gone.

    Ops of tensors count although tile ops take their place.
    """
    found: set[str] = set()

    def before(name: str, program: Program) -> None:
        if name == "ConvertTensorToTileOps":
            found.update(ops_of(program))

    with PassContext(instruments=[CallbackInstrument(before=before)]):
        result = PassManager.get_strategy().run_passes(program)
    return result, frozenset(found | ops_of(result))


def ops_of(program: Program) -> set[str]:
    """Return the names of the ops a program uses."""
    every = (stmt for function in program.function_list for stmt in statements(function.body))
    return {expr.op.name for stmt in every for expr in expressions(stmt) if isinstance(expr, Call)}


def is_soon(text: str) -> bool:
    """Return whether a program is tried unoptimised: two of three are."""
    return crc32(text.encode()) // len(Guard) % 3 != 0


def guard_of(text: str) -> Guard:
    """Return what of a program's memory is guarded when it is tried: one thing in one program, another in the next."""
    return [*Guard][crc32(text.encode()) % len(Guard)]


PACKED = frozenset(("tensor.reshape", "tensor.view"))
"""Ops whose operands have to be packed."""


def native_outcome(
    program: Program, native: HostProgram, seed: int, filled: Sequence[int] = (), *, strided: bool = False
) -> Outcome:
    """Return what native code computes from the arguments that belong to `seed`, and check that it stays inside them.

    Each array ends at a page that traps, or starts after one. Arrays are packed, or `strided`: windows of larger ones,
    which cannot be reshaped in place. Outputs that are to be `filled` hold anything before.
    """
    given = inputs_for(program, seed)
    places = [[*Place][(seed + position + len(given)) % 2] for position in range(len(given))]
    held = [_held(arg, place, strided) for arg, place in zip(given, places, strict=True)]
    fenced = [arg for arg in held if isinstance(arg, FencedArray)]
    for array in (held[position] for position in filled):
        assert isinstance(array, FencedArray)
        array.array[...] = np.frombuffer(b"\xa5" * array.array.itemsize, array.array.dtype)[0]
    try:
        returned = launched(native, "main", [arg.array if isinstance(arg, FencedArray) else arg for arg in held])
    finally:
        for arg in fenced:
            arg.assert_untouched_around()
    return Outcome(
        tuple(np.array(arg.array) for arg in fenced), tuple(r for r in returned if not isinstance(r, np.ndarray))
    )


def _held(arg: Array | float, place: Place, strided: bool) -> FencedArray | float:
    return FencedArray(arg, place, packed=not strided) if isinstance(arg, np.ndarray) else arg


@contextmanager
def quietly() -> Generator[None]:
    """Let NumPy divide by zero, and turns depend on each other, in silence."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        warnings.simplefilter("ignore", DependentTurnsWarning)
        yield


@contextmanager
def named(text: str, doing: str) -> Generator[None]:
    """Keep a program and what is done with it in a file for a while."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    note = note_of(worker, os.getppid()) if worker else note_of("main", os.getpid())
    note.parent.mkdir(exist_ok=True)
    note.write_text(f"# {doing}\n{text}", encoding="utf-8")
    try:
        yield
    finally:
        note.unlink(missing_ok=True)
