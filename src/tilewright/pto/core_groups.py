"""Core groups: a kernel that cube and vector cores run side by side, as a group of functions that meet in queues.

Each core has a function with everything that runs on it. Memories that more than one core sees are the group's; every
other one is the core's own.
"""

from __future__ import annotations

from tilewright.core.enums import FunctionType, ParamDirection
from tilewright.core.expr import Expr, GlobalVar, Invoke, Var
from tilewright.core.program import Function, Program
from tilewright.core.stmt import AssignStmt, EvalStmt, SeqStmts, Stmt
from tilewright.core.types import VOID, TensorType
from tilewright.dtypes import UINT8
from tilewright.ops.builder import Builder
from tilewright.pto.function_bodies import Walked, entry_of
from tilewright.pto.machine.cores import CUBE, VECTOR, Core, Meeting
from tilewright.pto.module import Func
from tilewright.pto.types import Space

_TYPES = {CUBE: FunctionType.AIC, VECTOR: FunctionType.AIV}


def run_together(
    funcs: dict[Func, dict[str, Func]], func: Func, meeting: Meeting, arch: str, shared: tuple[int, ...] | None
) -> Program:
    """Return the program in which the cores of each block run a function together."""
    cores = {kind: Walked(func, shared) for kind in _TYPES}
    while not _settled(cores, funcs, meeting, arch):
        pass
    buffers = _buffers(cores)
    functions = [_function(kind, walked, buffers, meeting) for kind, walked in cores.items()]
    group = Walked(func, shared)
    both = _group(func, group, functions, buffers)
    outer = Walked(func, shared)
    call = Invoke(GlobalVar(both.name), (outer.block, *outer.parameters.variables), VOID, func.span)
    return entry_of(func, outer, EvalStmt(call, func.span), (*functions, both))


def _settled(cores: dict[str, Walked], funcs: dict[Func, dict[str, Func]], meeting: Meeting, arch: str) -> bool:
    """Lower every core's function once more; return whether nothing new turned up."""
    before = set(meeting.shared)
    found = [walked.walk(funcs, arch, Core(kind, meeting)) for kind, walked in cores.items()]
    return all(found) and meeting.shared == before


def _buffers(cores: dict[str, Walked]) -> dict[Space, Var]:
    """Return the buffers that cores share, as the group has them."""
    made: dict[Space, Var] = {}
    for walked in cores.values():
        for space, var in walked.machine.memory.shared.items():
            made.setdefault(space, Var(var.name_hint, var.type))
    return made


def _function(kind: str, walked: Walked, buffers: dict[Space, Var], meeting: Meeting) -> Function:
    """Return what one core does."""
    memory, func = walked.machine.memory, walked.func
    own = [memory.buffer(space) for space in buffers]
    params = (walked.block, *walked.parameters.variables, *own)
    directions = (ParamDirection.In, *walked.directions, *[ParamDirection.InOut] * len(own))
    attributes = {"dual_aiv_dispatch": True} if kind == VECTOR and meeting.lanes > 1 else {}
    body = SeqStmts(walked.statements())
    name = f"{func.name}_{kind}"
    return Function(name, params, (), body, func.span, _TYPES[kind], directions, attrs=attributes)


def _group(func: Func, walked: Walked, functions: list[Function], buffers: dict[Space, Var]) -> Function:
    """Return what starts the cores of a block, with the memories that they share."""
    params: tuple[Var, ...] = (walked.block, *walked.parameters.variables)
    body: list[Stmt] = []
    b = Builder()
    for var in buffers.values():
        assert isinstance(var.type, TensorType)
        fresh = b.op("tensor.create", shape=var.type.shape, dtype=UINT8, init_value=0)
        body.append(AssignStmt(var, fresh))
    given: tuple[Expr, ...] = (*params, *buffers.values())
    body += [EvalStmt(Invoke(GlobalVar(f.name), given, VOID, func.span), func.span) for f in functions]
    directions = (ParamDirection.In, *walked.directions)
    name = f"{func.name}_cores"
    return Function(name, params, (), SeqStmts(tuple(body)), func.span, FunctionType.Group, directions)
