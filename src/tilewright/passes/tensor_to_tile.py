"""Tensor ops to tile ops: inside a kernel, compute on whole tensors becomes load, compute, store.

Tensors whose extents only the running program knows keep their tensor ops: a tile's shape is static. So do tensors of
which only a part holds data, since the buffer a result is stored into would no longer say so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.core.build import arguments, call
from tilewright.core.enums import FunctionType
from tilewright.core.expr import Absent, Call, Expr, Var, integer
from tilewright.core.op import SCRATCH, Effect, Kind, OpSpec
from tilewright.core.operands import Argument
from tilewright.core.program import Program
from tilewright.core.rewrite import Rewriter
from tilewright.core.stmt import AssignStmt, EvalStmt, ForStmt, SeqStmts, Stmt, WhileStmt
from tilewright.core.types import TensorType, TileType, Type, is_fully_valid, is_static, static_shape
from tilewright.errors import KernelError
from tilewright.ops.registry import OPS
from tilewright.passes.block_tensors import is_large_product
from tilewright.passes.blocks import ZERO, Blocks, tensor_type
from tilewright.passes.effects import effect_of, writes_memory
from tilewright.source import Span

KERNELS = (FunctionType.InCore, FunctionType.AIC, FunctionType.AIV, FunctionType.Spmd)


def run(program: Program) -> Program:
    """Convert the kernels of a program."""
    return program.with_functions(
        [f.with_body(_Converter().body(f.body)) if f.func_type in KERNELS else f for f in program.function_list]
    )


class _Converter(Rewriter):
    def __init__(self) -> None:
        super().__init__()
        self.tiles: list[dict[Var, Var]] = []

    def body(self, body: SeqStmts) -> SeqStmts:
        """Convert a body; tiles loaded in it are known only there."""
        self.tiles.append({})
        result = super().body(body)
        self.tiles.pop()
        return result

    def assign(self, stmt: AssignStmt) -> Sequence[Stmt]:
        """Convert a tensor computation; its tile also stands for the tensor in later computations."""
        (kept,) = super().assign(stmt) or (None,)
        if not isinstance(kept, AssignStmt):
            return () if kept is None else (kept,)
        converted = self._converted(kept.value)
        if converted is None:
            written = self._stored_tile(kept.value)
            self._forget(kept.value)
            return (kept,) if written is None else (AssignStmt(kept.var, written, kept.span),)
        loads, value = converted
        assert isinstance(value.type, TileType)
        shape = [*map(integer, value.type.shape)]
        written = Blocks(kept.span, kept.var.name_hint)
        computed = written.bind(value)
        tensor = self.replaced[stmt.var] = written.create(shape, value.type.dtype)
        written.store(computed, [ZERO] * len(shape), tensor)
        self.tiles[-1][tensor] = computed
        return (*loads, *written.stmts)

    def evaluate(self, stmt: EvalStmt) -> Sequence[Stmt]:
        """Write a computed tensor's tile directly where the tensor is assembled."""
        (kept,) = super().evaluate(stmt)
        assert isinstance(kept, EvalStmt)
        written = self._stored_tile(kept.expr)
        self._forget(kept.expr)
        return (kept,) if written is None else (EvalStmt(written, kept.span),)

    def for_loop(self, stmt: ForStmt) -> Sequence[Stmt]:
        """A body that writes starts every turn with memory unknown."""
        self._forget_before(stmt.body)
        return super().for_loop(stmt)

    def while_loop(self, stmt: WhileStmt) -> Sequence[Stmt]:
        """A body that writes starts every turn with memory unknown."""
        self._forget_before(stmt.body)
        return super().while_loop(stmt)

    def _forget_before(self, body: SeqStmts) -> None:
        if writes_memory(body):
            for known in self.tiles:
                known.clear()

    def _stored_tile(self, expr: Expr) -> Expr | None:
        """Return a store of the tile behind the source of a tensor assemble, or None."""
        if not (isinstance(expr, Call) and expr.op is OPS["tensor.assemble"]):
            return None
        bound = arguments(expr)
        source = bound["source"]
        if not isinstance(source, Var):
            return None
        tile = source if isinstance(source.type, TileType) else self._known(source)
        place = {"offsets": bound["offset"], "output_tensor": bound["target"], "atomic": bound["atomic"]}
        if tile is None or not isinstance(tile.type, TileType) or tile.type.dtype != tensor_type(expr).dtype:
            return None  # an assemble rounds where a store does not
        return Blocks(expr.span).op("tile.store", tile=tile, **place)

    def _forget(self, value: Expr) -> None:
        """After a write, loaded tiles may no longer be what memory holds."""
        if effect_of(value) is Effect.WRITE:
            for known in self.tiles:
                known.clear()

    def _known(self, tensor: Var) -> Var | None:
        return next((known[tensor] for known in reversed(self.tiles) if tensor in known), None)

    def _converted(self, value: Expr) -> tuple[list[Stmt], Expr] | None:
        """Return a tensor computation as loads and a tile op, or None where it has to stay."""
        if not isinstance(value, Call) or not _is_computation(value):
            return None
        loads: dict[Var, Stmt] = {}
        spec = value.op.at(Kind.TILE).spec
        given = {p.name: p.default for p in spec.parameters} | arguments(value)
        bound = {n: self._tile(arg, loads) if isinstance(arg, Expr) else arg for n, arg in given.items()}
        try:
            bound |= _scratch(spec, bound, loads, value.span)
            result = call(spec, bound, value.span)
        except KernelError:
            return None
        if not _gives_the_same(result.type, value.type):
            return None
        loaded = {of: load.var for of, load in loads.items() if isinstance(load, AssignStmt) and load.var is not of}
        self.tiles[-1].update(loaded)
        return [*loads.values()], result

    def _tile(self, arg: Expr, loads: dict[Var, Stmt]) -> Expr:
        """Return a tensor operand as a tile, adding to `loads` where it is not at hand."""
        if not isinstance(arg, Var) or not isinstance(arg.type, TensorType):
            return arg
        known = load.var if isinstance(load := loads.get(arg), AssignStmt) else self._known(arg)
        if known is not None:
            return known
        written = Blocks(arg.span, arg.name_hint)
        tile = written.load(arg, [ZERO] * len(arg.type.shape), static_shape(arg.type.shape))
        (loads[arg],) = written.stmts
        return tile


def _scratch(spec: OpSpec, bound: Mapping[str, Argument], loads: dict[Var, Stmt], span: Span) -> dict[str, Argument]:
    """Return the scratch tile that an op on tiles needs where tensors bring none, adding its making to `loads`."""
    missing = [p.name for p in spec.operands if p.name in SCRATCH and isinstance(bound[p.name], Absent)]
    type_ = spec.scratch(**bound) if spec.scratch and missing else None
    if type_ is None:
        return {}
    written = Blocks(span)
    made = written.scratch(type_)
    (loads[made],) = written.stmts
    return {missing[0]: made}


def _is_computation(value: Call) -> bool:
    """Return whether a call computes a tensor of static shape from others, all with elements, and data everywhere."""
    if value.op.kind is not Kind.TENSOR or not isinstance(value.type, TensorType):
        return False
    spec = value.op.spec
    if spec.control_plane or spec.alias or f"tile.{spec.name}" not in OPS or effect_of(value) is not Effect.PURE:
        return False
    if is_large_product(value):
        return False
    tensors = [value.type, *(a.type for a in value.args if isinstance(a.type, TensorType))]
    return all(is_static(t.shape) and t.shape and all(t.shape) and is_fully_valid(t) for t in tensors)


def _gives_the_same(tile: Type, tensor: Type) -> bool:
    """Return whether a tile op gives the elements of the tensor op: a comparison of tiles gives packed bits instead."""
    if not isinstance(tile, TileType) or not isinstance(tensor, TensorType):
        return False
    return (tile.dtype, tile.shape, tile.valid) == (tensor.dtype, tensor.shape, tensor.valid)
