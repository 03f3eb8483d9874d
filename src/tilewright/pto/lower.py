"""Lowering: a PTO function as a program of the tile IR, whose entry runs it once per block of a grid."""

from __future__ import annotations

from tilewright.core.program import Program
from tilewright.core.stmt import InCoreScopeStmt, SeqStmts
from tilewright.pto.core_groups import run_together
from tilewright.pto.elements import A3
from tilewright.pto.function_bodies import Walked, entry_of
from tilewright.pto.functions import Functions, functions_of
from tilewright.pto.machine.cores import meeting_of
from tilewright.pto.module import Func, Module


def lower(
    module: Module,
    func: Func,
    *,
    target: str,
    shared: tuple[int, ...] | None = None,
    functions: Functions | None = None,
    may_meet: bool = False,
) -> Program:
    """Return the program that runs `func` on each block of a grid.

    Its entry takes the number of blocks, then for each parameter a buffer or a scalar. With `shared`, a pointer is a
    piece of a buffer per group, an offset and its bytes: what pointers that overlap need. Where buffers `may_meet`, one
    may be a part of another. Where cores meet, each has a function. Who lowers several functions of a module gives what
    is known of them.
    """
    around = functions or functions_of(module, target)
    arch = around.machines.get(func, A3)
    meeting = meeting_of(around, func)
    if meeting is not None:
        return run_together(around.scopes, func, meeting, arch, shared)
    walked = Walked(func, shared, may_meet)
    while not walked.walk(around.scopes, arch):
        pass
    body = SeqStmts(walked.statements())
    return entry_of(func, walked, InCoreScopeStmt(body, name_hint=func.name, span=func.span))
