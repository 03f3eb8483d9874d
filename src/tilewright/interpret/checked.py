"""The checked machine: runs a program as the machine does, and reports turns that depend on each other."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence

from tilewright.core.access import OBSERVER, Access, touch
from tilewright.core.enums import ForKind
from tilewright.core.expr import Call
from tilewright.core.op import Effect
from tilewright.core.program import Program
from tilewright.core.stmt import ForStmt
from tilewright.core.types import ScalarType, TensorType
from tilewright.interpret.evaluator import Value
from tilewright.interpret.machine import Machine
from tilewright.interpret.races import Races


class CheckedMachine(Machine):
    """Runs one function of a program, once; RaceError where two turns of a parallel loop or grid meet."""

    def __init__(self, program: Program, races: Races | None = None) -> None:
        super().__init__(program)
        self.races = races or Races()

    def run(self, name: str, args: Sequence[Value]) -> tuple[Value, ...]:
        """Return what a function returns for `args`; tensors are written in place."""
        if OBSERVER.get() is self.races:  # one function calls another
            return super().run(name, args)
        token = OBSERVER.set(self.races)
        try:
            return super().run(name, args)
        finally:
            OBSERVER.reset(token)

    def turns(self, stmt: ForStmt, indices: range) -> Iterator[int]:
        """Yield the indices of a loop."""
        if stmt.kind is not ForKind.Parallel:
            return super().turns(stmt, indices)
        return self.races.turns(indices, f"turn {stmt.loop_var.name_hint} = {{}}")

    def blocks(self, count: int) -> Generator[None]:
        """Let each block of a grid be the current one, one after the other."""
        for _ in zip(self.races.turns(range(count), "block {}"), super().blocks(count), strict=True):
            yield

    def evaluate(self, call: Call, bound: Mapping[str, Value]) -> Value:
        """Return what an op gives for its arguments; it says itself what it touches of a tensor, unless that is all."""
        if self.races.listens:
            self.races.call, self.races.bound = call, bound
            for operand in read_whole(call):
                touch(Access.READ, bound[operand].live)
        return super().evaluate(call, bound)


def read_whole(call: Call) -> Iterator[str]:
    """Yield the operands that are tensors all of whose elements an op reads: not those it looks at in another way."""
    spec = call.op.spec
    if spec.effect is Effect.READ or isinstance(call.type, ScalarType):
        return
    for parameter, operand in zip(spec.operands, call.args, strict=False):
        if isinstance(operand.type, TensorType) and parameter.name not in (spec.alias, *spec.touches, *spec.unread):
            yield parameter.name


def run_checked(program: Program, name: str, args: Sequence[Value]) -> tuple[Value, ...]:
    """Run one function of a program; tensors among `args` are written in place. RaceError where turns meet."""
    return CheckedMachine(program).run(name, args)
