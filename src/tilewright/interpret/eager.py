"""Eager ops: `pl.exp(t)` on values that a debugger shows, inferred and evaluated at once by the op's declaration."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tilewright.arrays import np
from tilewright.core.expr import Expr, Var
from tilewright.core.op import EAGER, OpSpec
from tilewright.core.operands import bind, called_op
from tilewright.core.program import Function, Program
from tilewright.core.region import Region
from tilewright.core.types import tile
from tilewright.dtypes import from_numpy
from tilewright.errors import KernelError
from tilewright.interpret.evaluator import Frame
from tilewright.interpret.held_values import Held, shown
from tilewright.interpret.machine import Machine
from tilewright.ops.builder import Statements
from tilewright.source import calling_line


class _Writer(Statements):
    """Ops that are evaluated as they are written: each gives a variable that holds its value."""

    def __init__(self) -> None:
        super().__init__(calling_line())
        self.frame = Frame(Function("eager"))
        self.machine = Machine(Program("eager", (self.frame.function,)))

    def held(self, value: Any) -> Any:
        """Return an argument as ops take it: what a debugger shows is a variable."""
        if isinstance(value, (list, tuple)):
            return tuple(self.held(each) for each in value)  # pyright: ignore[reportUnknownVariableType]
        found = value if isinstance(value, Held) else _tile_of(value)
        if found is None:
            return value
        var = Var("held", found.type, self.span)
        self.frame.values[var] = found.region
        return var

    def named(self, value: Expr) -> Expr:
        """Return a value as something that ops take: it is computed now."""
        if isinstance(value, Var):
            return value
        var = Var("made", value.type, self.span)
        self.frame.values[var] = self.machine.value(self.frame, value)
        return var

    def do(self, name: str, /, **given: Any) -> Expr:
        """Return an op applied to operands and options, those left out at their defaults."""
        return self.named(self.op(name, **given))


def _tile_of(array: Any) -> Held | None:
    """Return what NumPy has computed of tiles as a tile, what is masked of it unwritten; None for anything else."""
    if not (hasattr(array, "__array_interface__") and array.ndim and array.dtype.kind in "biuf"):
        return None
    masked: Any = np.ma
    data, mask, dtype = masked.getdata(array), masked.getmaskarray(array), from_numpy(array.dtype)
    region = Region(data.astype(dtype.numpy), data.shape, mask.astype("uint8") if mask.any() else None)
    return Held(tile(data.shape, dtype), region)


def evaluated(spec: OpSpec, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Return what an op gives for values that can be looked at, and numbers; KernelError as its rules have it."""
    w = _Writer()
    given, named = [w.held(arg) for arg in args], {name: w.held(value) for name, value in kwargs.items()}
    spec = called_op(spec, given, named)
    try:
        bound = bind(spec, given, named)
        made: Any = (
            spec.expand(w, **bound) if spec.expand is not None else w.do(f"{spec.kinds[0].value}.{spec.name}", **bound)
        )
    except KernelError as error:
        error.locate([w.span])
        raise
    if isinstance(made, (tuple, list)):
        return tuple(shown(each, w.machine.value(w.frame, each)) for each in made)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return shown(made, w.machine.value(w.frame, made)) if isinstance(made, Expr) else made


@contextmanager
def eager() -> Generator[None]:
    """Have ops that are called as plain Python computed at once."""
    token = EAGER.set(evaluated)
    try:
        yield
    finally:
        EAGER.reset(token)
