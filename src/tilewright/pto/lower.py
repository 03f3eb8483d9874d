"""Lowering: a PTO function as a program of the tile IR, whose entry runs it once per block of a grid."""

from __future__ import annotations

from tilewright.core.program import Program
from tilewright.core.stmt import InCoreScopeStmt, SeqStmts
from tilewright.pto.architectures import architecture_of
from tilewright.pto.core_groups import run_together
from tilewright.pto.function_bodies import Walked, entry_of
from tilewright.pto.machine.cores import meeting_of
from tilewright.pto.module import Func, Module


def lower(module: Module, func: Func, *, target: str, shared: tuple[int, ...] | None = None) -> Program:
    """Return the program that runs `func` on each block of a grid.

    Its entry takes the number of blocks, then for each parameter a buffer or a scalar. With `shared`, a pointer is a
    piece of a buffer per group, an offset and its bytes: what pointers that overlap need. Where cores meet, each has a
    function.
    """
    arch = architecture_of(module, func, target)
    meeting = meeting_of(module, func)
    if meeting is not None:
        return run_together(module, func, meeting, arch, shared)
    walked = Walked(func, shared)
    while not walked.walk(dict(module.scopes()), arch):
        pass
    body = SeqStmts(walked.statements())
    return entry_of(func, walked, InCoreScopeStmt(body, name_hint=func.name, span=func.span))
