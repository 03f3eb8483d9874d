"""Function bodies: a PTO function as tile IR for one core, and the entry that runs it on every block."""

from __future__ import annotations

import re
from collections.abc import Sequence
from keyword import iskeyword

from tilewright.core.enums import ForKind, FunctionType, ParamDirection
from tilewright.core.expr import Symbol, Var, constant, integer
from tilewright.core.program import Function, Program
from tilewright.core.stmt import AssignStmt, ForStmt, SeqStmts, Stmt
from tilewright.core.types import ScalarType, TensorType, tensor
from tilewright.dtypes import FP8E8M0, INDEX, UINT8
from tilewright.errors import InternalError, UnsupportedFeatureError
from tilewright.ops.builder import Builder, tile_type
from tilewright.passes.covered_buffers import is_covered
from tilewright.pto.forwarded_copies import forwarded
from tilewright.pto.groups import END
from tilewright.pto.machine.cores import Core
from tilewright.pto.machine.machine import Blocks, Machine
from tilewright.pto.machine.memory import Knowledge
from tilewright.pto.machine.places import Slot
from tilewright.pto.machine.values import Lowered, Number, Pointer
from tilewright.pto.module import Func, Value
from tilewright.pto.ops.registry import OPS
from tilewright.pto.text.typetext import brief_text
from tilewright.pto.types import Ptr, Scalar

MOST_BLOCKS = (1 << 31) - 1
ROUNDS = 64
"""How often lowering may find out something new about a function before that is a bug."""


class Walked:
    """A function lowered for one core: its parameters, and what it does."""

    def __init__(self, func: Func, shared: tuple[int, ...] | None, may_meet: bool = False) -> None:
        self.func = func
        self.may_meet = may_meet
        self.parameters = Parameters(func, shared)
        self.block = Var("block", ScalarType(INDEX), func.span, (0, MOST_BLOCKS))
        self.knowledge = Knowledge()
        self.rounds = 0

    def walk(self, funcs: dict[Func, dict[str, Func]], arch: str, core: Core | None = None) -> bool:
        """Lower the function with what is known about it; return whether nothing new turned up."""
        self.rounds += 1
        if self.rounds > ROUNDS:
            raise InternalError(f"lowering `@{self.func.name}` does not settle")
        before = self.knowledge.copy()
        self.machine = Machine(OPS, funcs, arch, Blocks(self.block, self.parameters.grid), self.knowledge, core)
        self.machine.function(self.func, self.parameters.values)
        self.machine.memory.settle()
        return self.knowledge == before

    def statements(self) -> tuple[Stmt, ...]:
        """Return what it does, behind the making of its memories."""
        machine = self.machine
        slots = [slot for slot in machine.memory.slots.values() if slot.needs_value]
        body = [*(_blank(machine, slot) for slot in slots), *machine.b.blocks[0]]
        buffers = _buffers(machine)
        if machine.memory.core is None and not self.may_meet:
            body = forwarded(body, {var: used for var, _, used in buffers}, self.parameters.variables)
        made = {stmt.var for stmt in body if isinstance(stmt, AssignStmt)}
        arenas = _arenas(machine, [each for each in buffers if each[0] not in made], body)
        return (*self.parameters.pieces, *arenas, *body)

    @property
    def directions(self) -> tuple[ParamDirection, ...]:
        """What is done to each parameter."""
        return tuple(
            ParamDirection.InOut if isinstance(var.type, TensorType) else ParamDirection.In
            for var in self.parameters.variables
        )


def entry_of(func: Func, walked: Walked, body: Stmt, others: Sequence[Function] = ()) -> Program:
    """Return the program whose entry runs a statement for each block."""
    grid = walked.parameters.grid
    loop = ForStmt(walked.block, integer(0), grid, integer(1), SeqStmts((body,)), ForKind.Parallel, span=func.span)
    entry = Function(
        func.name,
        tuple(walked.parameters.variables),
        (),
        SeqStmts((loop,)),
        func.span,
        FunctionType.Orchestration,
        walked.directions,
    )
    return Program(func.name, (*others, entry), func.span)


class Parameters:
    """The parameters of the entry, and what the PTO function's own stand for."""

    def __init__(self, func: Func, shared: tuple[int, ...] | None) -> None:
        self.grid = Var("grid", ScalarType(INDEX), func.span, (0, MOST_BLOCKS))
        self.variables: list[Var] = [self.grid]
        self.pieces: list[Stmt] = []
        """What says which piece of shared memory each pointer may reach."""
        self._names = _names(func)
        pointers = [a for a in func.arguments if isinstance(a.type, Ptr)]
        buffers = self._buffers(pointers, shared)
        self.values: list[Lowered] = [
            self._pointer(a, buffers[a], shared is not None) if a in buffers else self._scalar(a)
            for a in func.arguments
        ]

    def _buffers(self, pointers: Sequence[Value], shared: tuple[int, ...] | None) -> dict[Value, Var]:
        if shared is None:
            return {p: Var(self._names[p], _buffer(p, self._names[p]), p.span) for p in pointers}
        groups: dict[int, Var] = {}
        for group in shared:
            groups.setdefault(group, Var(f"memory{group}", tensor([Symbol(f"memory{group}_bytes")], UINT8)))
        self.variables += groups.values()
        return {p: groups[group] for p, group in zip(pointers, shared, strict=True)}

    def _pointer(self, argument: Value, buffer: Var, is_shared: bool) -> Pointer:
        assert isinstance(argument.type, Ptr)
        if is_shared:
            buffer = self._piece(self._names[argument], buffer, argument)
        else:
            self.variables.append(buffer)
        return Pointer(argument.type.element, argument.type.space, buffer, integer(0))

    def _piece(self, name: str, memory: Var, argument: Value) -> Var:
        """Return the bytes that a pointer into shared memory may reach."""
        offset, nbytes = (Var(f"{name}_{what}", ScalarType(INDEX), argument.span, (0, END)) for what in ("at", "bytes"))
        self.variables += (offset, nbytes)
        piece = Builder().op(
            "tensor.as_strided", buffer=memory, shape=(nbytes,), strides=(1,), offset=offset, dtype=UINT8
        )
        made = Var(name, piece.type, argument.span)
        self.pieces.append(AssignStmt(made, piece, argument.span))
        return made

    def _scalar(self, argument: Value) -> Number:
        if not isinstance(argument.type, Scalar):
            message = f"`%{argument.name}` is {brief_text(argument.type)}, which no launch can pass"
            raise UnsupportedFeatureError(message, spans=[argument.span], help="run a function that calls this one")
        if not argument.type.is_launchable:
            message = f"`%{argument.name}` is a scalar of {argument.type}, which no launch can pass"
            raise UnsupportedFeatureError(message, spans=[argument.span], help="pass it in memory")
        dtype = argument.type.dtype
        low, high = dtype.limits
        reach = (int(low), int(high)) if dtype.is_int() and dtype.bits <= 32 else None
        var = Var(self._names[argument], ScalarType(dtype), argument.span, reach)
        self.variables.append(var)
        return Number(var)


def _names(func: Func) -> dict[Value, str]:
    """Return a name for each argument that Python allows and no other has."""
    names: dict[Value, str] = {}
    for argument in func.arguments:
        plain = re.sub(r"\W", "_", argument.name)
        name = plain if plain.isidentifier() and not iskeyword(plain) else f"arg{plain}"
        while name in ("grid", *names.values()):
            name += "_"
        names[argument] = name
    return names


def _buffer(value: Value, name: str) -> TensorType:
    assert isinstance(value.type, Ptr)
    return tensor([Symbol(f"{name}_length")], value.type.element.dtype)


def _blank(machine: Machine, slot: Slot) -> Stmt:
    """Return the statement that lets a tile hold something before anything is written to it."""
    dtype = tile_type(slot.var).dtype
    nothing = 2.0**-127 if dtype == FP8E8M0 else 0  # what bytes of zero are
    zeros = machine.b.op("tile.full", shape=slot.shape, dtype=dtype, value=constant(nothing, dtype))
    return AssignStmt(slot.var, zeros, slot.var.span)


def _buffers(machine: Machine) -> list[tuple[Var, int, int]]:
    """Return the buffers of the local memories, each with how large it is and how much of that is used."""
    found: list[tuple[Var, int, int]] = []
    for arena in (*machine.memory.arenas.values(), *machine.memory.private.values()):
        if arena.base is not None:
            continue  # which all cores have, and whoever calls them makes
        found += [] if arena.pieces else [(arena.var, arena.size, arena.used)]
        found += [(piece, end - first, end - first) for (first, end), piece in arena.pieces.items()]
    return [each for each in found if each[1]]


def _arenas(machine: Machine, buffers: Sequence[tuple[Var, int, int]], body: Sequence[Stmt]) -> list[Stmt]:
    """Return the statements that make local memories, zeroed where something may be read before it is written."""
    made: list[Stmt] = []
    for var, size, used in buffers:
        zero = None if is_covered(body, var, used) else 0
        fresh = machine.b.op("tensor.create", shape=(size,), dtype=UINT8, init_value=zero)
        var.type = fresh.type
        made.append(AssignStmt(var, fresh))
    return made
