"""Chains: products whose rows are worked on and multiplied again, as the scores of attention are.

`q @ k.T` is what `k @ q.T` is on its side. Where `q` stays the same from turn to turn, the second needs no `k` that is
transposed anew in each, and its result lies so that neighbours are elements of different rows: what is done row by row
is done to a vector of rows at once, and nothing is summed across a vector. The product that follows reads its left
operand in any order.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.core.build import arguments, call
from tilewright.core.expr import Call, Expr, Var
from tilewright.core.op import OPS, Kind
from tilewright.core.program import Function, Program
from tilewright.core.rewrite import Rewriter
from tilewright.core.stmt import AssignStmt, SeqStmts, Stmt
from tilewright.core.types import TileType
from tilewright.core.visitor import bodies, statements, used, variables
from tilewright.dtypes import BF16, FP32

ROWS = 16
"""What the rows of a chain are a multiple of: those that a vector holds."""

_ROWWISE = ("elementwise", "expansion", "mapped", "cast")
_MADE = ("full", "iota", "ci", "tri", "expands")
_PRODUCTS = ("matmul", "matmul_acc")
_TURNS = ("transpose", "transpose_view")


def run(program: Program) -> Program:
    """Return a lowered program whose chains are computed on their side."""
    functions = [_turned(function) for function in program.function_list]
    return program if functions == list(program.function_list) else program.with_functions(functions)


def tiles_on_their_side(function: Function) -> frozenset[Var]:
    """Return the tiles of a function that lie on their side: views of products, and what is worked out of them."""
    tiles = _Tiles(function)
    found: set[Var] = set()
    for body in tiles.bodies:
        for stmt in body:
            made = _made(stmt)
            if made is None or made.op.spec.name != "transpose_view" or not isinstance(made.args[0], Var):
                continue
            source = tiles.made.get(made.args[0])
            if source is not None and source.op.spec.name == "matmul" and isinstance(stmt, AssignStmt):
                found |= tiles.chain(stmt.var, body) or set()
    return frozenset(found)


def _turned(function: Function) -> Function:
    tiles = _Tiles(function)
    found = [stmt for body in tiles.bodies for stmt in body if tiles.begins_chain(stmt, body)]
    if not found:
        return function
    return function.with_body(_Turner(tiles, found).body(function.body))


def _made(stmt: Stmt) -> Call | None:
    value = stmt.value if isinstance(stmt, AssignStmt) else None
    return value if isinstance(value, Call) and value.op.kind is Kind.TILE else None


class _Tiles:
    """The tiles of a function: what makes them, and who reads them."""

    def __init__(self, function: Function) -> None:
        every = list(statements(function.body))
        self.made = {s.var: value for s in every if isinstance(s, AssignStmt) and (value := _made(s)) is not None}
        self.readers: dict[Var, list[Stmt]] = {}
        for stmt in every:
            for var in variables(used(stmt)):
                self.readers.setdefault(var, []).append(stmt)
        self.bodies = [function.body, *(inner for stmt in every for inner in bodies(stmt))]

    def begins_chain(self, stmt: Stmt, body: SeqStmts) -> bool:
        """Return whether a statement multiplies a tile that was there before the loop by the transpose of another."""
        value = _made(stmt)
        if value is None or value.op.spec.name != "matmul" or not isinstance(stmt, AssignStmt):
            return False
        given = arguments(value)
        rows, columns = given["lhs"], given["rhs"]
        if not isinstance(rows, Var) or not isinstance(columns, Var) or rows not in self.made or columns is rows:
            return False
        here = {each.var for each in body if isinstance(each, AssignStmt)}
        turned = self.made.get(columns)
        is_turned = turned is not None and turned.op.spec.name in _TURNS and len(self.readers[columns]) == 1
        if rows in here or not is_turned or not _fits(rows, columns):
            return False
        return self.chain(stmt.var, body) is not None

    def chain(self, first: Var, body: SeqStmts) -> set[Var] | None:
        """Return the tiles worked out of a first one, which end as left operands of products; None where not all do."""
        here = {id(stmt) for stmt in body}
        found, pending, ends = {first}, [first], 0
        while pending:
            var = pending.pop()
            for stmt in self.readers.get(var, ()):
                value = _made(stmt) if id(stmt) in here else None
                if value is None or not isinstance(stmt, AssignStmt):
                    return None
                if value.op.spec.name in _PRODUCTS:
                    given = arguments(value)
                    if given["lhs"] is not var or var in (given["rhs"], given.get("acc")):
                        return None
                    ends += 1
                elif value.op.spec.family in _ROWWISE or value.op.spec.name in _ROWWISE:
                    if _shape(stmt.var) != _shape(first):
                        return None
                    pending += [stmt.var] if stmt.var not in found else []
                    found.add(stmt.var)
                elif value.op.spec.family != "reduction" or not value.op.spec.name.startswith("row"):
                    return None
        beside = [tile for var in found - {first} for tile in variables(self.made[var].args) if tile not in found]
        is_met = all(_shape(tile)[-1:] in ((), (1,), _shape(first)[-1:]) for tile in beside)  # rows may be repeated
        return found if ends and is_met and all(map(self._lies_anyhow, beside)) else None

    def _lies_anyhow(self, var: Var) -> bool:
        """Return whether a tile has one row or column, or is made of such tiles and numbers alone."""
        if not isinstance(var.type, TileType) or 1 in var.type.shape[-2:] or len(var.type.shape) == 1:
            return True
        made = self.made.get(var)
        if made is None or len(var.type.shape) != 2:
            return False
        is_rowwise = made.op.spec.family in _ROWWISE or made.op.spec.name in (*_ROWWISE, *_MADE)
        return is_rowwise and all(map(self._lies_anyhow, variables(made.args)))


def _shape(var: Var) -> tuple[int, ...]:
    return var.type.shape if isinstance(var.type, TileType) else ()


def _fits(rows: Var, columns: Var) -> bool:
    """Return whether a product of matrices fills vectors with its rows."""
    a, b = rows.type, columns.type
    if not isinstance(a, TileType) or not isinstance(b, TileType) or len(a.shape) != 2 or len(b.shape) != 2:
        return False
    return a.dtype == b.dtype and a.dtype in (FP32, BF16) and a.valid[0] == a.shape[0] and a.shape[0] % ROWS == 0


class _Turner(Rewriter):
    """A function whose chains begin with the transpose of what they began with."""

    def __init__(self, tiles: _Tiles, products: Sequence[Stmt]) -> None:
        super().__init__()
        self.tiles, self.products = tiles, {id(stmt) for stmt in products}
        given = [arguments(made) for stmt in products if (made := _made(stmt)) is not None]
        self.rows = {each["lhs"] for each in given}
        self.dropped = {each["rhs"] for each in given}
        self.turned: dict[Var, Var] = {}

    def assign(self, stmt: AssignStmt) -> Sequence[Stmt]:
        """Transpose what stays the same where it is made, and multiply by it from the other side."""
        if stmt.var in self.dropped:
            return ()
        if id(stmt) in self.products:
            return self._product(stmt)
        made = super().assign(stmt)
        if stmt.var not in self.rows:
            return made
        source = self.expr(stmt.var)
        var = self._new(f"{stmt.var.name_hint}_turned", "tile.transpose", x=source, axis1=-2, axis2=-1)
        self.turned[stmt.var] = var[0]
        return (*made, AssignStmt(*var, stmt.span))

    def _product(self, stmt: AssignStmt) -> Sequence[Stmt]:
        value = stmt.value
        assert isinstance(value, Call)
        given = arguments(value)
        rows, columns = given["lhs"], given["rhs"]
        assert isinstance(rows, Var) and isinstance(columns, Var)
        other = self.expr(self.tiles.made[columns].args[0])
        name = stmt.var.name_hint
        product = self._new(f"{name}_turned", "tile.matmul", **{**given, "lhs": other, "rhs": self.turned[rows]})
        view = call(OPS["tile.transpose_view"].spec, {"tile": product[0]}, stmt.span)
        var = self.define(stmt.var, view.type)
        return AssignStmt(*product, stmt.span), AssignStmt(var, view, stmt.span)

    def _new(self, name: str, op: str, **given: object) -> tuple[Var, Expr]:
        made = call(OPS[op].spec, given)  # pyright: ignore[reportArgumentType]
        return Var(name, made.type), made
