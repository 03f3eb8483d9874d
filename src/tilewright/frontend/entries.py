"""Entries: kernels that callers start, specialized with everything they call."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from tilewright.core.expr import Symbol
from tilewright.core.program import Program
from tilewright.core.types import ScalarType, TensorType
from tilewright.frontend.kernels import Kernel
from tilewright.frontend.names import Resolver
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
    return Specialization(program, taken, metas_of(entry.function, taken, given), tuple(store.resolvers))


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
