"""First terms: products that begin a sum, which need no zeros to be added to.

A sum that begins with zeros and takes one turn is a product; of one that takes several, the first turn begins it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from tilewright.core.build import arguments, call, scalar
from tilewright.core.enums import ForKind
from tilewright.core.expr import Absent, Call, Const, Expr, Var, integer
from tilewright.core.op import OPS
from tilewright.core.program import Function, Program
from tilewright.core.rewrite import Rewriter, exits
from tilewright.core.stmt import AssignStmt, ForStmt, IterArg, Stmt, YieldStmt
from tilewright.core.types import ScalarType, TileType, is_fully_valid
from tilewright.core.visitor import statements
from tilewright.dtypes import DataType
from tilewright.passes import dce
from tilewright.passes.blocks import Blocks
from tilewright.passes.last_use import reads
from tilewright.passes.unroll import turns_of


def run(program: Program) -> Program:
    """Return a lowered program whose sums of products begin with a product where they surely have one."""
    functions = [_begun(function) for function in program.function_list]
    return program if functions == list(program.function_list) else dce.run(program.with_functions(functions))


def _begun(function: Function) -> Function:
    """Return a function with such sums; one that multiplies tiles unlike each other stays as it is."""
    products = [value for stmt in statements(function.body) if (value := _product(stmt))]
    if len({len(_kinds(product)) for product in products}) != 1 or len(_kinds(products[0])) != 1:
        return function
    sums = [arguments(product)["acc"] for product in products]
    return function.with_body(_Begun(reads(function.body), sums).body(function.body))


def _product(stmt: Stmt) -> Call | None:
    """Return the product of a statement that adds one to an accumulator, whatever that holds."""
    value = stmt.value if isinstance(stmt, AssignStmt) else None
    if not isinstance(value, Call) or value.op.name != "tile.matmul_acc":
        return None
    return value if isinstance(arguments(value)["init_cond"], Absent) else None


def _kinds(product: Call) -> set[DataType]:
    """Return the types of what a product multiplies."""
    factors = (arguments(product)[name] for name in ("lhs", "rhs"))
    return {each.type.dtype for each in factors if isinstance(each, Expr) and isinstance(each.type, TileType)}


class _Begun(Rewriter):
    """A function whose sums begin with products.

    `counts` says how often it reads each variable, and `sums` to what products are added.
    """

    def __init__(self, counts: Counter[Var], sums: Collection[object]) -> None:
        super().__init__()
        self.counts, self.sums = counts, sums
        self.zeros: set[Expr] = set()
        """Whole tiles of zeros in the function that is made."""
        self.begun: dict[Expr, ForStmt] = {}
        """What loops carry that holds nothing before the first turn: the loops."""

    def assign(self, stmt: AssignStmt) -> Sequence[Stmt]:
        """Note zeros; let a product that is added to some be no sum, and one that begins one say so."""
        value = _product(stmt)
        if value is None:
            made = super().assign(stmt)
            self.zeros |= {each.var for each in made if isinstance(each, AssignStmt) and _is_zeros(each.value)}
            return made
        given = {name: self.expr(x) if isinstance(x, Expr) else x for name, x in arguments(value).items()}
        acc = arguments(value)["acc"]
        assert isinstance(acc, Expr)
        result: Expr = value
        if given["acc"] in self.zeros and stmt.var not in self.sums:  # several in a row are one sum
            factors = {name: given[name] for name in ("lhs", "rhs", "a_trans", "b_trans")}
            result = call(OPS["tile.matmul"].spec, {**factors, "out_dtype": None, "c_matrix_nz": False}, value.span)
        elif acc in self.begun:
            loop = self.begun[acc]
            is_first = scalar("eq", self.expr(loop.loop_var), self.expr(loop.start))
            result = call(value.op.spec, {**given, "init_cond": is_first}, value.span)
        if result is value or not _is_like(result, acc):
            return super().assign(stmt)
        return (AssignStmt(self.define(stmt.var, result.type), result, stmt.span),)

    def for_loop(self, stmt: ForStmt) -> Sequence[Stmt]:
        """Rewrite a loop that begins sums with zeros."""
        inits = [self.expr(arg.init) for arg in stmt.iter_args]
        sums = [at for at, init in enumerate(inits) if init in self.zeros and self._begins(stmt, stmt.iter_args[at])]
        turns = turns_of(stmt)
        is_plain = stmt.kind is ForKind.Sequential and len([*exits(stmt.body)]) == 1
        if not (sums and turns and is_plain and isinstance(stmt.body.stmts[-1], YieldStmt)):
            return super().for_loop(stmt)
        return self._single(stmt, inits, turns) if len(turns) == 1 else self._several(stmt, inits, sums)

    def _begins(self, loop: ForStmt, arg: IterArg) -> bool:
        """Return whether every turn adds a product to what a loop carries, and reads that for nothing else."""
        sums = [value for stmt in loop.body if (value := _product(stmt)) and arguments(value)["acc"] is arg.var]
        return len(sums) == self.counts[arg.var] == 1

    def _single(self, loop: ForStmt, inits: Sequence[Expr], turns: range) -> Sequence[Stmt]:
        """Return the only turn of a loop."""
        assert isinstance(loop.loop_var.type, ScalarType)
        self.replaced[loop.loop_var] = integer(turns.start)
        self.replaced.update(zip((arg.var for arg in loop.iter_args), inits, strict=True))
        *stmts, last = self.body(loop.body).stmts
        assert isinstance(last, YieldStmt)
        self.replaced.update(zip(loop.return_vars, last.values, strict=True))
        return stmts

    def _several(self, loop: ForStmt, inits: Sequence[Expr], sums: Sequence[int]) -> Sequence[Stmt]:
        """Return a loop whose sums begin in its first turn, in tiles that hold nothing before."""
        made = Blocks(loop.span, "sums")
        rooms = {at: made.scratch(type_) for at in sums if isinstance(type_ := inits[at].type, TileType)}
        inits = [rooms.get(at, init) for at, init in enumerate(inits)]
        args = tuple(IterArg(arg.var, init) for arg, init in zip(loop.iter_args, inits, strict=True))
        self.begun |= {args[at].var: loop for at in sums}
        return (*made.stmts, *super().for_loop(replace(loop, iter_args=args)))


def _is_zeros(value: Expr) -> bool:
    """Return whether an expression is a whole tile of zeros."""
    if not isinstance(value, Call) or value.op.name != "tile.full" or not isinstance(value.type, TileType):
        return False
    number = arguments(value)["value"]
    return isinstance(number, Const) and number.value == 0 and is_fully_valid(value.type)


def _is_like(product: Expr, acc: Expr) -> bool:
    """Return whether a product is as large as what it would be added to."""
    shapes = [(each.type.shape, each.type.dtype) for each in (product, acc) if isinstance(each.type, TileType)]
    return len(shapes) == 2 and shapes[0] == shapes[1]
