"""Inlining: the bodies of Inline functions stand where they were called, in the caller's terms."""

from __future__ import annotations

from tilewright.core.expr import Call
from tilewright.core.stmt import EvalStmt
from tilewright.passes import inline
from unit.passes.texts import function, gives, program

DYNAMIC = "x: pl.Tensor[[M, 8], pl.FP32], y: pl.InOut[pl.Tensor[[M, 8], pl.FP32]]"


def test_a_call_becomes_the_body_of_the_function() -> None:
    before = program(
        function("helper", "k = n * 2\npl.write(y, [k, 0], a)", "Inline"), function("main", "self.helper(x, y, n, a, b)")
    )
    gives(inline.run, before, program(function("main", "k = n * 2\npl.write(y, [k, 0], a)")))


def test_two_calls_have_variables_of_their_own() -> None:
    helper = function("helper", "k = n * 2\nreturn k", "Inline", "n: pl.Scalar[pl.INDEX]")
    before = program(helper, function("main", "p = self.helper(n)\nq = self.helper(p)\npl.write(y, [q, 0], a)"))
    gives(inline.run, before, program(function("main", "p = n * 2\nq = p * 2\npl.write(y, [q, 0], a)")))


def test_symbols_become_the_extents_of_the_arguments() -> None:
    helper = function("helper", "for i in pl.range(M):\n    pl.write(y, [i, 0], 1.0)", "Inline", DYNAMIC)
    before = program(helper, function("main", "self.helper(x, y)"))
    gives(inline.run, before, program(function("main", "for i in pl.range(16):\n    pl.write(y, [i, 0], 1.0)")))


def test_several_results_are_taken_apart() -> None:
    helper = function("helper", "return n + 1, n + 2", "Inline", "n: pl.Scalar[pl.INDEX]")
    before = program(helper, function("main", "p, q = self.helper(n)\npl.write(y, [p, q], a)"))
    gives(inline.run, before, program(function("main", "pl.write(y, [n + 1, n + 2], a)")))


def test_inlined_functions_may_call_others() -> None:
    inner = function("inner", "return n + 1", "Inline", "n: pl.Scalar[pl.INDEX]")
    outer = function("outer", "k = self.inner(n)\nreturn k * 2", "Inline", "n: pl.Scalar[pl.INDEX]")
    before = program(inner, outer, function("main", "k = self.outer(n)\npl.write(y, [k, 0], a)"))
    gives(inline.run, before, program(function("main", "pl.write(y, [(n + 1) * 2, 0], a)")))


def test_a_function_with_an_early_return_stays() -> None:
    helper = function("helper", "if b:\n    return\npl.write(y, [0, 0], a)", "Inline")
    before = program(helper, function("main", "self.helper(x, y, n, a, b)"))
    gives(inline.run, before, before)


def test_what_was_inlined_remembers_the_call() -> None:
    before = program(
        function("helper", "pl.write(y, [n, 0], a)", "Inline"), function("main", "self.helper(x, y, n, a, b)")
    )
    (stmt,) = inline.run(before)["main"].body
    assert isinstance(stmt, EvalStmt) and isinstance(stmt.expr, Call)
    assert stmt.expr.span.caller is not None
    assert stmt.expr.span.caller.line > stmt.expr.span.line
