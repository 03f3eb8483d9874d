"""Running a program natively and in the interpreter on copies of the same arguments, surrounded by canaries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, TypeGuard

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from ops.launched import launched

import tilewright.language as pl
from tilewright.backends.cpu.backend import CPU
from tilewright.core.program import Program
from tilewright.core.region import Region, whole
from tilewright.errors import ExecutionError
from tilewright.interpret.machine import run
from tilewright.passes.manager import PassManager

TOLERANCE = {np.dtype(np.float32): 1e-4, np.dtype(np.float16): 4e-3, np.dtype(ml_dtypes.bfloat16): 3e-2}
MARGIN, CANARY = 64, 0x5A
Array: TypeAlias = "NDArray[Any]"


def is_array(value: object) -> TypeGuard[Array]:
    return isinstance(value, np.ndarray)


class Fenced:
    """An array with bytes before and after it that nothing may change."""

    def __init__(self, array: Array) -> None:
        self.memory = np.full(array.nbytes + 2 * MARGIN, CANARY, np.uint8)
        inner = self.memory[MARGIN : MARGIN + array.nbytes]
        self.array: Array = np.ndarray(array.shape, array.dtype, inner.data)
        self.array[...] = array

    @property
    def is_intact(self) -> bool:
        edges = (self.memory[:MARGIN], self.memory[len(self.memory) - MARGIN :])
        return all(bool(np.all(edge == CANARY)) for edge in edges)


def program_of(text: str) -> Program:
    program = pl.parse(f"import tilewright.language as pl\n{text}")
    assert isinstance(program, Program)
    return program


class Native:
    """A program compiled once."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.name = program.entries[0].name
        lowered = PassManager.get_strategy().run_passes(program)
        self.native = CPU().load(lowered, CPU().compile(lowered))

    def run(self, args: Sequence[Any]) -> tuple[list[Any], tuple[Any, ...]]:
        """Return the arguments after a native run and what it returned; its canaries must be alive."""
        fenced = [Fenced(a) if is_array(a) else a for a in args]
        given = [f.array if isinstance(f, Fenced) else f for f in fenced]
        try:
            returned = launched(self.native, self.name, given)
        finally:
            assert all(f.is_intact for f in fenced if isinstance(f, Fenced)), "memory around an argument was written"
        return given, returned

    def check(self, *args: Any) -> None:
        """Fail unless native code and the interpreter leave and return the same."""
        expected = _copied(args)
        wanted = run(self.program, self.name, _regions(expected))
        given, returned = self.run(args)
        for ours, theirs in zip(given, expected, strict=True):
            _assert_close(ours, theirs)
        for ours, theirs in zip(returned, wanted, strict=True):
            _assert_close(*(v.live if isinstance(v, Region) else v for v in (ours, theirs)))

    def fails(self, message: str, *args: Any) -> ExecutionError:
        """Return the error of a run that must fail in the interpreter and, with such a message, natively."""
        assert self.refusal(args) is not None
        with pytest.raises(ExecutionError) as caught:
            self.run(args)
        assert message in str(caught.value)
        return caught.value

    def agrees(self, *args: Any) -> None:
        """Fail unless native code gives what the interpreter gives, or refuses what it refuses."""
        if self.refusal(args) is None:
            self.check(*args)
        else:
            self.fails("", *args)

    def refusal(self, args: Sequence[Any]) -> Exception | None:
        """Return what the interpreter objects to, in its own words or in NumPy's."""
        try:
            run(self.program, self.name, _regions(_copied(args)))
        except (ExecutionError, ValueError, MemoryError) as error:
            return error
        return None


def native(text: str) -> Native:
    return Native(program_of(text))


def kernel(params: str, *body: str) -> Native:
    """Return a program whose only function computes in one kernel scope and returns nothing."""
    lines = "\n".join(f"            {line}" for line in body)
    return native(
        f"""
M, N, K, B, C = (pl.dynamic(name) for name in "MNKBC")
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, {params}):
        with pl.at(level=pl.Level.CORE_GROUP):
{lines}
"""
    )


def _copied(values: Sequence[Any]) -> list[Any]:
    return [np.array(v) if is_array(v) else v for v in values]


def _regions(values: Sequence[Any]) -> list[Any]:
    return [whole(v) if is_array(v) else v for v in values]


def _assert_close(ours: Any, theirs: Any) -> None:
    a, b = np.asarray(ours), np.asarray(theirs)
    if a.dtype.kind in "iub":
        np.testing.assert_array_equal(a, b)
        return
    tolerance = TOLERANCE.get(a.dtype, 1e-4)
    np.testing.assert_allclose(a.astype(np.float64), b.astype(np.float64), rtol=tolerance, atol=tolerance)


def floats(*shape: int, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
