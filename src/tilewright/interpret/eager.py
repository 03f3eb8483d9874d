"""Eager ops: `pl.exp(t)` on values that a debugger shows, inferred and evaluated at once by the op's declaration."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tilewright.core.expr import Expr, TupleGetItem, Var
from tilewright.core.op import EAGER, OpSpec
from tilewright.core.operands import bind, called_op
from tilewright.core.program import Function, Program
from tilewright.core.types import TupleType
from tilewright.errors import KernelError
from tilewright.interpret.evaluator import Frame
from tilewright.interpret.held import Held, shown
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
        if not isinstance(value, Held):
            return value
        var = Var("held", value.type, self.span)
        self.frame.values[var] = value.region
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

    def parts(self, value: Expr) -> tuple[Expr, ...]:
        """Return the values that an op gives at once."""
        whole = self.named(value)
        assert isinstance(whole.type, TupleType)
        return tuple(TupleGetItem(whole, i, each, self.span) for i, each in enumerate(whole.type.elements))


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
