"""Merged parts: sums that are split into parts, each added to memory by itself, as one sum that is added once.

A grid with few tiles keeps more threads busy if each part of the inner dimension has turns of its own. One with enough
tiles only pays for it: every part of a sum is added to memory, element by element, as nothing else is written there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from tilewright.core.build import arguments, scalar
from tilewright.core.enums import AtomicType
from tilewright.core.expr import Call, Expr, Invoke, Var, integer
from tilewright.core.extents import as_extent
from tilewright.core.op import Effect
from tilewright.core.program import Function, Program
from tilewright.core.rewrite import Rewriter
from tilewright.core.stmt import EvalStmt, ForStmt, SeqStmts, Stmt
from tilewright.core.types import TensorType, TileType
from tilewright.core.visitor import evaluated, invocations, statements, used, variables
from tilewright.passes.inner_steps import only_sums
from tilewright.passes.launches import hands_on
from tilewright.passes.tile_axes import TileAxes, is_number, multiple_of
from tilewright.records import record

ENOUGH = 8
"""How many tiles keep threads busy."""


def merged_parts(program: Program) -> Program:
    """Return a program whose grids of enough tiles have no loops over parts of sums."""
    calls = [call.op.name for function in program.function_list for call in invocations(function.body)]
    merger = _Merger({f.name: f for f in program.function_list if calls.count(f.name) == 1})
    functions = [function.with_body(merger.body(function.body)) for function in program.function_list]
    return program.with_functions([merger.merged.get(f.name, f) for f in functions]) if merger.merged else program


@record
class _Parts:
    """A kernel that sums one part: the loop that does, and what it is to begin and end with for all of them."""

    loop: ForStmt
    begin: int
    end: int


class _Merger(Rewriter):
    """Grids without loops over parts."""

    def __init__(self, kernels: dict[str, Function]) -> None:
        super().__init__()
        self.kernels = kernels
        self.merged: dict[str, Function] = {}

    def for_loop(self, stmt: ForStmt) -> Sequence[Stmt]:
        """Leave the loop over parts out of a grid."""
        loops, body = list[ForStmt](), SeqStmts((stmt,))
        while len(body) == 1 and isinstance(inner := body.stmts[0], ForStmt) and not hands_on(inner):
            loops.append(inner)
            body = inner.body
        call = evaluated(body.stmts[0]) if len(body) == 1 else None
        if not isinstance(call, Invoke) or call.op.name not in self.kernels:
            return super().for_loop(stmt)
        for at, over in enumerate(loops):
            others = [*loops[:at], *loops[at + 1 :]]
            if _turns(others) >= ENOUGH and (parts := _parts_of(self.kernels[call.op.name], call, over)) is not None:
                self.merged[call.op.name] = _whole(self.kernels[call.op.name], parts)
                return _around(
                    others, replace(call, args=tuple(integer(0) if x is over.loop_var else x for x in call.args))
                )
        return super().for_loop(stmt)


def _turns(loops: Sequence[ForStmt]) -> int:
    """Return how many turns loops have together, as far as anybody knows: none where nobody does."""
    counts = [_range(loop) for loop in loops]
    return prod(len(turns) for turns in counts if turns is not None) if None not in counts else 0


def _range(loop: ForStmt) -> range | None:
    start, stop, step = (as_extent(end) for end in (loop.start, loop.stop, loop.step))
    is_known = isinstance(start, int) and isinstance(stop, int) and isinstance(step, int) and step > 0
    return range(start, stop, step) if is_known else None  # pyright: ignore[reportArgumentType]


def _around(loops: Sequence[ForStmt], call: Invoke) -> tuple[Stmt]:
    stmt: Stmt = EvalStmt(call, call.span)
    for loop in reversed(loops):
        stmt = replace(loop, body=SeqStmts((stmt,)))
    return (stmt,)


def _parts_of(kernel: Function, call: Invoke, over: ForStmt) -> _Parts | None:
    """Return what a kernel sums of which a loop numbers the parts; None where it does something else with them."""
    turns, given = _range(over), [arg for arg in call.args if over.loop_var in variables([arg])]
    if given != [over.loop_var] or not turns or not _only_adds(kernel):
        return None
    part = kernel.params[call.args.index(over.loop_var)]
    readers = [stmt for stmt in statements(kernel.body) if part in variables(used(stmt))]
    loop = readers[0] if len(readers) == 1 else None
    if not isinstance(loop, ForStmt) or part in variables([loop.step]):
        return None
    first, size = multiple_of(loop.start)
    length, step = (size if size > 1 else turns.step), as_extent(loop.step)
    is_next = loop.stop == scalar("add", loop.start, integer(length)) and size * turns.step == length
    if first is not part or not is_next or not isinstance(step, int) or length % step:
        return None
    return _Parts(loop, size * turns[0], size * turns[-1] + length)


def _only_adds(kernel: Function) -> bool:
    """Return whether all that a kernel writes is a sum of products from zero on, added to memory as it is."""
    axes = TileAxes(kernel.body)
    loops = [loop for loop in axes.loops.values() if loop.iter_args]
    values = [evaluated(stmt) for stmt in statements(kernel.body)]
    writes = [value for value in values if isinstance(value, Call) and value.op.spec.effect is Effect.WRITE]
    if len(loops) != 1 or len(writes) != 1 or len(loops[0].iter_args) != 1 or not only_sums(loops[0], axes):
        return False
    ((arg,), (result,), (write,)) = loops[0].iter_args, loops[0].return_vars, writes
    begun = axes.made.get(arg.init) if isinstance(arg.init, Var) else None
    is_zero = begun is not None and begun.op.spec.name == "full" and is_number(arguments(begun)["value"], 0)
    others = [stmt for stmt in statements(kernel.body) if stmt is not loops[0] and _reads(stmt, result)]
    return is_zero and len(others) == 1 and _adds(write, result)


def _reads(stmt: Stmt, var: Var) -> bool:
    return var in variables(used(stmt))


def _adds(write: Call, result: Var) -> bool:
    """Return whether a tile is added to a tensor of the same elements."""
    given = arguments(write)
    if write.op.spec.name != "store" or given["tile"] is not result or given["atomic"] is not AtomicType.Add:
        return False
    tensor = given["output_tensor"]
    types = result.type, tensor.type if isinstance(tensor, Expr) else None
    return isinstance(types[0], TileType) and isinstance(types[1], TensorType) and types[0].dtype == types[1].dtype


def _whole(kernel: Function, parts: _Parts) -> Function:
    """Return a kernel that sums all parts."""
    loop = replace(parts.loop, start=integer(parts.begin), stop=integer(parts.end))
    return kernel.with_body(_Replaced(parts.loop, loop).body(kernel.body))


class _Replaced(Rewriter):
    """A body with another loop in the place of one."""

    def __init__(self, old: ForStmt, new: ForStmt) -> None:
        super().__init__()
        self.old, self.new = old, new

    def for_loop(self, stmt: ForStmt) -> Sequence[Stmt]:
        """Put the other loop in its place."""
        return super().for_loop(self.new if stmt is self.old else stmt)
