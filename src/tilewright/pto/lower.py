"""Lowering: a PTO function as a program of the tile IR, whose entry runs it once per block of a grid."""

from __future__ import annotations

import re
from collections.abc import Sequence
from keyword import iskeyword

from tilewright.core.enums import ForKind, FunctionType, ParamDirection
from tilewright.core.expr import Expr, Symbol, Var, integer
from tilewright.core.program import Function, Program
from tilewright.core.stmt import AssignStmt, ForStmt, InCoreScopeStmt, SeqStmts, Stmt
from tilewright.core.types import ScalarType, TensorType, tensor
from tilewright.dtypes import INDEX, UINT8
from tilewright.errors import InternalError, UnsupportedFeatureError
from tilewright.pto.machine.machine import Blocks, Machine
from tilewright.pto.machine.memory import Knowledge
from tilewright.pto.machine.values import Lowered, Number, Pointer
from tilewright.pto.module import Func, Module, Value
from tilewright.pto.ops.registry import OPS
from tilewright.pto.types import Ptr, Scalar

MOST_BLOCKS = (1 << 31) - 1
ROUNDS = 64
"""How often lowering may find out something new about a function before that is a bug."""


def lower(module: Module, func: Func, *, target: str, shared: tuple[int, ...] | None = None) -> Program:
    """Return the program that runs `func` on each block of a grid.

    Its entry takes the number of blocks, then for each parameter a buffer or a scalar. With `shared`, pointers are
    byte offsets into a buffer per group: what pointers that overlap need.
    """
    funcs = dict(module.scopes())
    parameters = Parameters(func, shared)
    arch = "a5" if target == "a5" else "a3"
    blocks = Blocks(Var("block", ScalarType(INDEX), func.span, (0, MOST_BLOCKS)), parameters.grid)
    knowledge = Knowledge()
    for _ in range(ROUNDS):
        before = knowledge.copy()
        machine = Machine(OPS, funcs, arch, blocks, knowledge)
        machine.function(func, parameters.values)
        machine.memory.settle()
        if knowledge == before:
            return _program(func, parameters, machine)
    raise InternalError(f"lowering `@{func.name}` does not settle")


class Parameters:
    """The parameters of the entry, and what the PTO function's own stand for."""

    def __init__(self, func: Func, shared: tuple[int, ...] | None) -> None:
        self.grid = Var("grid", ScalarType(INDEX), func.span, (0, MOST_BLOCKS))
        self.variables: list[Var] = [self.grid]
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
        offset: Expr = integer(0)
        if is_shared:
            offset = Var(f"{self._names[argument]}_at", ScalarType(INDEX), argument.span, (0, 1 << 47))
        self.variables.append(offset if isinstance(offset, Var) else buffer)
        return Pointer(argument.type.element, argument.type.space, buffer, offset)

    def _scalar(self, argument: Value) -> Number:
        assert isinstance(argument.type, Scalar)
        if argument.type.is_packed:
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


def _program(func: Func, parameters: Parameters, machine: Machine) -> Program:
    body = SeqStmts((*_arenas(machine), *machine.statements()))
    scope = InCoreScopeStmt(body, name_hint=func.name, span=func.span)
    loop = ForStmt(
        machine.blocks.index,
        integer(0),
        parameters.grid,
        integer(1),
        SeqStmts((scope,)),
        ForKind.Parallel,
        span=func.span,
    )
    directions = tuple(
        ParamDirection.InOut if isinstance(var.type, TensorType) else ParamDirection.In for var in parameters.variables
    )
    entry = Function(
        func.name, tuple(parameters.variables), (), SeqStmts((loop,)), func.span, FunctionType.Orchestration, directions
    )
    return Program(func.name, (entry,), func.span)


def _arenas(machine: Machine) -> list[Stmt]:
    """Return the statements that make the local memories, zeroed, as large as the function uses them."""
    made: list[Stmt] = []
    for arena in (*machine.memory.arenas.values(), *machine.memory.private.values()):
        whole = [] if arena.pieces else [(arena.var, arena.size)]
        for var, size in (*whole, *((piece, end - first) for (first, end), piece in arena.pieces.items())):
            if size:
                fresh = machine.b.op("tensor.create", shape=(size,), dtype=UINT8, init_value=0)
                var.type = fresh.type
                made.append(AssignStmt(var, fresh))
    return made
