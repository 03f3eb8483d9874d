"""Grids of rows: kernels of one turn whose tiles have more elements than a block is good for, a few rows a turn.

Compute on whole tensors is written that way. What is made of a row has to depend on that row alone, and on rows that
are the same for all: such a kernel is written again for a few rows from a number on, and started for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from tilewright.core.build import arguments, call, scalar
from tilewright.core.enums import AtomicType, ForKind
from tilewright.core.expr import Absent, Call, Const, Expr, GlobalVar, Invoke, MakeTuple, Var, integer
from tilewright.core.op import Kind
from tilewright.core.program import Function, Program
from tilewright.core.rewrite import Rewriter
from tilewright.core.stmt import AssignStmt, EvalStmt, ForStmt, ReturnStmt, SeqStmts, Stmt
from tilewright.core.types import ScalarType, TensorType, TileType, TupleType
from tilewright.dtypes import INDEX
from tilewright.errors import KernelError
from tilewright.records import record

LARGE, TURN = 1 << 14, 4096
"""Elements of the largest tile of a kernel that is cut, more than which, and about how many each turn has."""
_OF_ROWS = frozenset(("elementwise", "mapped", "expansion"))
"""Families of ops that make a row of rows in the same place, or of one that all rows have in common."""
_MOVES = frozenset(("tile.cast", "tile.move"))
MADE = frozenset(("tensor.create", "tensor.full"))
"""Ops that make a tensor of nothing else."""


class _Unfit(Exception):
    """Raised for a kernel that is not cut."""


@record
class _Cut:
    """A kernel of a few rows: where it begins is its last parameter. `given` is the parameter that it gives back."""

    kernel: Function
    rows: int
    step: int
    stored: frozenset[int]
    given: int | None


def in_rows(program: Program) -> Program:
    """Return a program whose host functions start kernels of large tiles for a few rows at a time."""
    cuts = {f.name: made for f in program.function_list if (made := _cut(f, program)) is not None}
    if not cuts:
        return program
    functions = [f if f.func_type.is_incore else _Starter(cuts, f).function for f in program.function_list]
    return program.with_functions([*functions, *(each.kernel for each in cuts.values())])


def _cut(function: Function, program: Program) -> _Cut | None:
    """Return a kernel for a few of its rows, None for one that is better left whole, or has to be."""
    if not function.func_type.is_incore:
        return None
    tiles = [s.var.type.shape for s in function.body if isinstance(s, AssignStmt) and isinstance(s.var.type, TileType)]
    largest = max(tiles, key=prod, default=())
    if len(largest) != 2 or prod(largest) <= LARGE or largest[0] == 1:
        return None
    rows, step = largest[0], largest[0] & -largest[0]
    while step > 1 and step * largest[1] > TURN:
        step //= 2
    first = Var("row", ScalarType(INDEX), function.span, (0, rows - step))
    cutter = _Cutter(function, first, rows, step)
    try:
        body = cutter.body(function.body)
    except (_Unfit, KernelError):
        return None
    stored = frozenset(function.params.index(target) for target in cutter.stored)
    name = f"{function.name}_rows"
    while name in program.function_names:
        name += "_"
    kernel = replace(function, name=name, params=(*function.params, first), return_types=(), body=body)
    return _Cut(kernel, rows, step, stored, cutter.given)


class _Cutter(Rewriter):
    """Writes the statements of a kernel for some rows of its tiles."""

    def __init__(self, function: Function, first: Var, rows: int, step: int) -> None:
        super().__init__()
        self.function, self.first, self.rows, self.step = function, first, rows, step
        self.roots = {param: param for param in function.params}
        """The parameters, and of which of them views are."""
        self.loaded: set[Var] = set()
        self.stored: dict[Var, Var | None] = {}
        """What is written, and as what it is known afterwards."""
        self.given: int | None = None

    def stmt(self, stmt: Stmt) -> Sequence[Stmt]:
        """Rewrite a statement; _Unfit for one that rows have no part of."""
        if isinstance(stmt, AssignStmt) and isinstance(stmt.value, Call):
            return self._assigned(stmt, stmt.value)
        if isinstance(stmt, EvalStmt) and isinstance(stmt.expr, Call) and stmt.expr.op.name == "tile.store":
            return (EvalStmt(self._store_of(stmt.expr, None), stmt.span),)
        if isinstance(stmt, ReturnStmt) and len(stmt.values) < 2:
            for value in stmt.values:
                self.given = self._returned(value)
            return ()
        raise _Unfit

    def _assigned(self, stmt: AssignStmt, value: Call) -> Sequence[Stmt]:
        if value.op.name == "tile.store":
            return (EvalStmt(self._store_of(value, stmt.var), stmt.span),)
        if value.op.name == "tile.load":
            made = self._load_of(value)
        elif value.op.kind is Kind.SCALAR or _is_of_rows(value):
            made = self.expr(value)
        elif value.op.name == "tensor.slice":
            self.roots[stmt.var] = self._root(arguments(value)["x"])
            return super().assign(stmt)
        else:
            raise _Unfit
        if isinstance(stmt.var.type, TileType) and not self._fits(stmt.var.type, made.type):
            raise _Unfit
        var = self.replaced[stmt.var] = Var(stmt.var.name_hint, made.type, stmt.var.span)
        return (AssignStmt(var, made, stmt.span),)

    def _fits(self, whole: TileType, made: object) -> bool:
        """Return whether a tile has become one of a turn's rows, or is one row of all turns."""
        if not isinstance(made, TileType) or len(whole.shape) != 2 or whole.valid != whole.shape:
            return False
        height = self.step if whole.shape[0] == self.rows else whole.shape[0]
        return height in (1, self.step) and made.shape == made.valid == (height, whole.shape[1])

    def _load_of(self, value: Call) -> Expr:
        given, type_ = arguments(value), value.type
        assert isinstance(type_, TileType)
        if any(not _is_absent(given[name]) for name in ("valid_shape", "pad", "mask")) or given["clamp"]:
            raise _Unfit
        self.loaded.add(self._root(given["tensor"]))
        if type_.shape[0] != self.rows:
            return self.expr(value)
        shapes = MakeTuple((integer(self.step), integer(type_.shape[1])))
        return call(value.op.spec, {**given, "offsets": self._moved(given["offsets"]), "shapes": shapes}, value.span)

    def _store_of(self, value: Call, result: Var | None) -> Expr:
        given = arguments(value)
        target, tile = self._root(given["output_tensor"]), given["tile"]
        if not isinstance(tile, Var) or not isinstance(tile.type, TileType):
            raise _Unfit
        is_whole = tile.type.shape[0] == self.rows
        plain = all(_is_absent(given.get(name)) for name in ("shapes", "mask"))
        if target in self.stored or not is_whole or not plain or given["atomic"] is not AtomicType.None_:
            raise _Unfit
        self.stored[target] = result
        bound = {**given, "tile": self.expr(tile), "offsets": self._moved(given["offsets"])}
        return call(value.op.spec, bound, value.span)

    def _root(self, tensor: object) -> Var:
        if not isinstance(tensor, Var) or tensor not in self.roots:
            raise _Unfit
        return self.roots[tensor]

    def _moved(self, offsets: object) -> MakeTuple:
        """Return offsets of a matrix, moved down to the rows of the turn."""
        if not isinstance(offsets, MakeTuple) or len(offsets.elements) != 2:
            raise _Unfit
        row, column = (self.expr(each) for each in offsets.elements)
        is_first = isinstance(row, Const) and row.value == 0
        return MakeTuple((self.first if is_first else scalar("add", row, self.first), column))

    def _returned(self, value: Expr) -> int:
        for target, result in self.stored.items():
            if value in (target, result):
                return self.function.params.index(target)
        raise _Unfit

    def body(self, body: SeqStmts) -> SeqStmts:
        """Rewrite all statements; _Unfit where something is written that is read."""
        made = super().body(body)
        if not self.stored or self.loaded & self.stored.keys():
            raise _Unfit
        return made


def _is_absent(value: object) -> bool:
    return value is None or isinstance(value, Absent)


def _is_of_rows(value: Call) -> bool:
    spec = value.op.spec
    if value.op.kind is not Kind.TILE:
        return False
    is_fold = spec.family == "reduction" and spec.name.startswith("row")
    return spec.family in _OF_ROWS or is_fold or value.op.name in _MOVES


class _Starter(Rewriter):
    """Starts kernels that were cut, wherever no two of their tensors can be one."""

    def __init__(self, cuts: Mapping[str, _Cut], host: Function) -> None:
        super().__init__()
        self.cuts, self.own = cuts, {*host.params}
        self.function = host.with_body(self.body(host.body))

    def assign(self, stmt: AssignStmt) -> Sequence[Stmt]:
        """Start the kernel that gives a tensor back, which is one of its arguments."""
        if isinstance(stmt.value, Call) and stmt.value.op.name in MADE:
            self.own.add(stmt.var)
        cut = self._cut(stmt.value)
        if cut is None or cut.given is None or not isinstance(stmt.value, Invoke):
            return super().assign(stmt)
        self.replaced[stmt.var] = self.expr(stmt.value.args[cut.given])
        return (self._started(cut, stmt.value),)

    def evaluate(self, stmt: EvalStmt) -> Sequence[Stmt]:
        """Start a kernel."""
        cut = self._cut(stmt.expr)
        if cut is None or not isinstance(stmt.expr, Invoke):
            return super().evaluate(stmt)
        return (self._started(cut, stmt.expr),)

    def _cut(self, value: Expr) -> _Cut | None:
        if not isinstance(value, Invoke) or value.device is not None or value.op.name not in self.cuts:
            return None
        tensors = [self.expr(arg) for arg in value.args if isinstance(arg.type, TensorType)]
        is_apart = len({*tensors}) == len(tensors) and all(each in self.own for each in tensors)
        return self.cuts[value.op.name] if is_apart else None

    def _started(self, cut: _Cut, value: Invoke) -> Stmt:
        row = Var("row", ScalarType(INDEX), value.span, (0, cut.rows - cut.step))
        args = (*(self.expr(arg) for arg in value.args), row)
        turn = EvalStmt(Invoke(GlobalVar(cut.kernel.name), args, TupleType(), value.span), value.span)
        ends = integer(0), integer(cut.rows), integer(cut.step)
        return ForStmt(row, *ends, SeqStmts((turn,)), ForKind.Parallel, span=value.span)
