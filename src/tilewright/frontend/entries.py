"""Entries: kernels that callers start, specialized with everything they call."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from tilewright.core.enums import ParamDirection
from tilewright.core.expr import Symbol
from tilewright.core.program import Program
from tilewright.core.types import ScalarType, TensorType
from tilewright.errors import DroppedWriteWarning
from tilewright.frontend.kernels import Kernel
from tilewright.frontend.messages import caution
from tilewright.frontend.names import Resolver
from tilewright.frontend.outputs import is_written
from tilewright.frontend.parameters import Site, Spec
from tilewright.frontend.programs import Builder
from tilewright.frontend.signature import Alike, DynDim, Given, Known, RuntimeScalar, TensorMeta, metas_of
from tilewright.records import record


@record
class Specialization:
    """An entry made for one set of arguments, with every function it calls."""

    program: Program
    parameters: tuple[str, ...]
    """The kernel's parameters that the program takes, in order."""
    metas: Mapping[str, Given]
    """What the program takes for granted about each argument; axes that became dynamic are `DynDim`s."""
    reads: tuple[Resolver, ...]
    """What was read from outside on the way."""

    @property
    def syntax(self) -> tuple[str, ...]:
        """What each function that was read says, without its comments and where it stands."""
        return tuple("" if read.captured is None else ast.dump(read.captured.node) for read in self.reads)


def specialize(kernel: Kernel, given: Mapping[str, Given]) -> Specialization:
    """Return the program of an entry kernel for what is known about its arguments."""
    builder = Builder({})
    store = builder.kernels
    specs = {name: _entry_spec(one) for name, one in given.items()}
    entry = store.specialized(kernel, specs, Site(kernel.captured.span(kernel.captured.node)))
    program = Program(kernel.name, builder.brought, entry.function.span)
    names = [p.name for p in kernel.parameters]
    taken = tuple(names[position] for position in entry.taken)
    for resolver in store.resolvers:
        resolver.close()
    _warn_unwritten(kernel, program, taken, given)
    return Specialization(program, taken, metas_of(entry.function, taken, given), tuple(store.resolvers))


def _warn_unwritten(kernel: Kernel, program: Program, taken: Sequence[str], given: Mapping[str, Given]) -> None:
    """Warn of outputs that callers know the shapes of and that nothing writes, unless their names were given away."""
    function, node = program[kernel.name], kernel.captured.node
    rebound = {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    sides = zip(taken, function.params, function.param_directions, strict=True)
    for position, (name, param, way) in enumerate(sides):
        is_output = way is ParamDirection.Out and isinstance(param.type, TensorType)
        if is_output and isinstance(given[name], TensorMeta) and not {name} & rebound:
            if not is_written(program, function, position):
                message = f"`{name}` is an output, and nothing writes it: the caller's buffer stays as it was"
                help = f"write it with pl.store(..., {name}) or `{name}[:] = ...`"
                caution(DroppedWriteWarning, kernel.name, message, [param.span], help)()


def _entry_spec(given: Given) -> Spec:
    match given:
        case TensorMeta():
            shape = tuple(Symbol(d.literal) if isinstance(d, DynDim) else d for d in given.shape)
            return Spec(TensorType(shape, given.dtype, shape, given.layout))
        case Alike():
            return Spec(alike=given.source)
        case RuntimeScalar():
            return Spec(ScalarType(given.dtype))
        case Known():
            return Spec(known=given)
