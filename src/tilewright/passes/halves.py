"""Halves: products of 16-bit floats as products of what those are in fp32, for processors that multiply nothing less.

A product reads each element of an operand many times. Converted beforehand, it is converted once, and nothing changes:
fp32 holds every such number, and products of them are summed in fp32 either way. One that is turned on its side is
converted as it lies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from tilewright.core.build import arguments, call, rebuild
from tilewright.core.expr import Call, Expr, Var
from tilewright.core.op import OPS
from tilewright.core.program import Function, Program
from tilewright.core.rewrite import Rewriter
from tilewright.core.stmt import AssignStmt, Stmt
from tilewright.core.types import TileType
from tilewright.core.visitor import statements, used, variables
from tilewright.dtypes import FP32, DataType
from tilewright.passes.computed_operands import turned_source

PRODUCTS = ("tile.matmul", "tile.matmul_acc")
FEWEST = 16
"""Rows of a product that pay for converting its right operand."""


def run(program: Program, halves: Sequence[DataType]) -> Program:
    """Return a lowered program whose products read numbers of some types as fp32."""
    functions = [_converted(function, halves) for function in program.function_list]
    return program if functions == list(program.function_list) else program.with_functions(functions)


def _converted(function: Function, halves: Sequence[DataType]) -> Function:
    every = [stmt for stmt in statements(function.body) if isinstance(stmt, AssignStmt)]
    defined = {stmt.var for stmt in every}
    found: set[Var] = set()
    for stmt in every:
        operands = _operands(stmt)
        if operands and all(var in defined and _is_half(var, halves) for var in operands):
            found |= {*operands}
    others = Counter(var for stmt in statements(function.body) for var in variables(used(stmt)))
    for stmt in every:
        others.subtract(operands if found.issuperset(operands := _operands(stmt)) else ())
    return function.with_body(_Converter(found, others).body(function.body)) if found else function


def _operands(stmt: AssignStmt) -> list[Var]:
    """Return the operands of a product of two matrices, if a statement is one of enough rows."""
    if not isinstance(stmt.value, Call) or stmt.value.op.name not in PRODUCTS:
        return []
    given, type_ = arguments(stmt.value), stmt.var.type
    assert isinstance(type_, TileType)
    operands = [x for x in (given["lhs"], given["rhs"]) if isinstance(x, Var)]
    is_fp32 = type_.dtype == FP32 and type_.shape[-2] >= FEWEST and len(type_.shape) == 2
    return operands if is_fp32 and not given.get("a_trans") and not given.get("b_trans") else []


def _is_half(var: Var, halves: Sequence[DataType]) -> bool:
    return isinstance(var.type, TileType) and var.type.dtype in halves


class _Converter(Rewriter):
    """A function with tiles that are converted where they are made, for products to read."""

    def __init__(self, halves: set[Var], reads: Mapping[Var, int]) -> None:
        super().__init__()
        self.halves = halves
        self.reads = reads
        """How often others than products of enough rows read each tile."""
        self.wide: dict[Var, Var] = {}

    def assign(self, stmt: AssignStmt) -> Sequence[Stmt]:
        """Convert an operand after it is made, and give a product what was converted."""
        if (operands := _operands(stmt)) and self.wide.keys() >= {*operands}:
            return super().assign(self._of_wide(stmt))
        made = super().assign(stmt)
        if stmt.var not in self.halves:
            return made
        source = turned_source(stmt.value if isinstance(stmt.value, Call) else None)
        first = self._wide(self.expr(source or stmt.var), stmt)
        if source is None:
            self.wide[stmt.var] = first.var
            return (*made, first)
        assert isinstance(stmt.value, Call)
        turned = rebuild(stmt.value, (first.var, *stmt.value.args[1:]))
        self.wide[stmt.var] = wide = Var(f"{stmt.var.name_hint}_fp32", turned.type)
        return (*(made if self.reads[stmt.var] else ()), first, AssignStmt(wide, turned, stmt.span))

    def _wide(self, half: Expr, stmt: AssignStmt) -> AssignStmt:
        """Return the conversion of a tile."""
        value = call(OPS["tile.cast"].spec, {"x": half, "target_type": FP32, "mode": "rint"}, stmt.span)
        return AssignStmt(Var(f"{stmt.var.name_hint}_fp32", value.type), value, stmt.span)

    def _of_wide(self, stmt: AssignStmt) -> AssignStmt:
        assert isinstance(stmt.value, Call)
        given = arguments(stmt.value)
        wide: dict[str, Expr] = {n: self.wide[x] for n in ("lhs", "rhs") if isinstance(x := given[n], Var)}
        return AssignStmt(stmt.var, call(stmt.value.op.spec, {**given, **wide}, stmt.span), stmt.span)
