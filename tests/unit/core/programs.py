"""Programs that tests of the IR share: one of everything in text, and arbitrary ones from hypothesis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

import tilewright.language as pl
from tilewright.core.build import scalar
from tilewright.core.expr import Expr, Symbol, Var, constant, integer
from tilewright.core.program import Function, Program
from tilewright.core.stmt import AssignStmt, EvalStmt, ForStmt, IfStmt, IterArg, ReturnStmt, SeqStmts, Stmt, YieldStmt
from tilewright.core.types import Extent, ScalarType, Type, tensor
from tilewright.dtypes import FP16, FP32, INDEX, DataType

EVERYTHING = """
M = pl.dynamic("M")

@pl.program
class Everything:
    @pl.function(type=pl.FunctionType.InCore, level=pl.Level.AIV)
    def kernel(self, x: pl.Tensor[[M, 64], pl.FP32], y: pl.Out[pl.Tensor[[M, 64], pl.FP32]], n: pl.Scalar[pl.INT32]
               ) -> pl.Tensor[[M, 64], pl.FP32]:
        pl.func_attr({"split": pl.SplitMode.UP_DOWN, "note": ("it's", 1, 1.0, True, None, pl.FP16)})
        acc = pl.load(x, [0, 0], [16, 64])
        for i, (a, count) in pl.range(1, M // 16, init_values=(acc, n)):
            t = pl.load(x, [i * 16, 0], [16, 64], valid_shape=[16, 32], target_memory=pl.Mem.Vec)
            if i > 3:
                pl.yield_(a, count)
                break
            r, total = pl.yield_(pl.add(a, t), count + 1)
        if total < 3:
            s = pl.yield_(pl.mul(r, -0.0))
        else:
            s = pl.yield_(pl.add(r, float("nan")))
        return pl.store(s, [0, 0], y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[M, 64], pl.FP32], y: pl.InOut[pl.Tensor[[M, 64], pl.FP32]]):
        o = pl.create_tensor([M, 64], dtype=pl.FP32)
        o, tid = pl.submit(self.kernel, x, o, 3)
        ids = pl.array.create(2, pl.TASK_ID)
        ids[0] = tid
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="last", deps=[tid]) as after:
            n = 0
            while n < 4:
                n = n + 1
                if n == 2:
                    continue
                pl.store(pl.load(o, [n, 0], [16, 64]), [n, 0], y)
        for b in pl.spmd(4):
            pl.write(y, [b, 0], 1.0)
        with pl.cluster():
            with pl.scope(mode=pl.ScopeMode.MANUAL):
                with pl.at(level=pl.Level.HOST, role=pl.Role.Orchestrator):
                    pl.write(y, [0, 0], 2.0)
"""
"""A program with every kind of statement and nearly every kind of expression."""


def everything() -> Program:
    """Return `EVERYTHING`, read anew."""
    program = pl.parse(EVERYTHING)
    assert isinstance(program, Program)
    return program


def function(text: str) -> Function:
    """Return the one function that text defines."""
    result = pl.parse(text)
    assert isinstance(result, Function)
    return result


NAMES = st.sampled_from(["a", "b", "a_1", "x", "class", "M", ""])
NUMBERS = st.one_of(
    st.floats(allow_nan=True, width=32).map(constant),
    st.floats(allow_nan=True, width=16).map(lambda value: constant(value, FP16)),
    st.integers(-(2**40), 2**40).map(integer),
    st.booleans().map(constant),
)


def _fraction(divisor: int) -> Expr:
    return scalar("floordiv", Symbol("M"), integer(divisor))


EXTENTS: st.SearchStrategy[Extent] = st.one_of(
    st.none(),
    st.integers(0, 2**20),
    st.sampled_from(["M", "N"]).map(Symbol),
    st.integers(2, 9).map(_fraction),
)
TYPES: st.SearchStrategy[Type] = st.one_of(
    st.sampled_from([FP32, FP16, INDEX]).map(ScalarType),
    st.builds(tensor, st.lists(EXTENTS, max_size=3), st.sampled_from([FP32, FP16])),
)


def _variable(draw: Callable[..., Any], dtype: DataType) -> Var:
    return Var(draw(NAMES), ScalarType(dtype))


def _value(draw: Callable[..., Any], scope: Sequence[Var]) -> Expr:
    floats = [var for var in scope if var.type == ScalarType(FP32)]
    leaf = draw(st.sampled_from(floats)) if floats and draw(st.booleans()) else constant(draw(st.floats(width=32)))
    return scalar(draw(st.sampled_from(["add", "mul"])), leaf, draw(st.sampled_from(floats))) if floats else leaf


def _body(draw: Callable[..., Any], scope: Sequence[Var], depth: int) -> SeqStmts:
    stmts: list[Stmt] = []
    visible = list(scope)
    for kind in draw(st.lists(st.sampled_from(["assign", "number", "for", "if"]), max_size=4)):
        if kind == "number":
            stmts.append(EvalStmt(draw(NUMBERS)))
        elif kind == "assign" or depth == 0:
            var = _variable(draw, FP32)
            stmts.append(AssignStmt(var, _value(draw, visible)))
            visible.append(var)
        elif kind == "for":
            index, carried, result = _variable(draw, INDEX), _variable(draw, FP32), _variable(draw, FP32)
            init, inner = _value(draw, visible), _body(draw, [*visible, carried], depth - 1)
            body = SeqStmts((*inner, YieldStmt((_value(draw, [*visible, carried]),))))
            stop = integer(draw(st.integers(0, 9)))
            loop = ForStmt(
                index, integer(0), stop, integer(1), body, iter_args=(IterArg(carried, init),), return_vars=(result,)
            )
            stmts.append(loop)
            visible.append(result)
        else:
            condition = scalar("lt", _value(draw, visible), constant(draw(st.floats(width=32, allow_nan=False))))
            other = _body(draw, visible, depth - 1) if draw(st.booleans()) else None
            stmts.append(IfStmt(condition, _body(draw, visible, depth - 1), other))
    return SeqStmts(tuple(stmts))


@st.composite
def functions(draw: Callable[..., Any]) -> Function:
    """Make a function with loops, branches and arithmetic, well formed but not meaningful."""
    params = (_variable(draw, FP32), *(Var(draw(NAMES), draw(TYPES)) for _ in range(draw(st.integers(0, 2)))))
    body = _body(draw, params, draw(st.integers(0, 2)))
    return Function("f", params, (ScalarType(FP32),), SeqStmts((*body, ReturnStmt((_value(draw, params),)))))
