"""Inlining: the bodies of Inline functions stand where they were called, in the caller's terms."""

from __future__ import annotations

from unit.passes.texts import function, gives, program

from tilewright.core.expr import Call
from tilewright.core.stmt import EvalStmt
from tilewright.passes import inline

DYNAMIC = "x: pl.Tensor[[M, 8], pl.FP32], y: pl.InOut[pl.Tensor[[M, 8], pl.FP32]]"


def test_a_call_becomes_the_body_of_the_function() -> None:
    before = program(
        function("helper", "k = n * 2\npl.write(y, [k, 0], a)", "Inline"),
        function("main", "self.helper(x, y, n, a, b)"),
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


def test_a_ragged_load_of_an_extent_that_became_known_says_that_it_is_cut() -> None:
    load = "pl.load(x, [i * 10, 0], [10, 8]{0})"
    body = f"for i in pl.range((M + 9) // 10):\n    pl.store({load.format('')}, [i * 10, 0], y)"
    params = DYNAMIC.replace("M", "4")
    before = program(function("helper", body, "Inline", DYNAMIC), function("main", "self.helper(x, y)", params=params))
    after = f"for i in pl.range(1):\n    pl.store({load.format(', clamp=True')}, [i * 10, 0], y)"
    gives(inline.run, before, program(function("main", after, params=params)))


def test_several_results_are_taken_apart() -> None:
    helper = function("helper", "return n + 1, n + 2", "Inline", "n: pl.Scalar[pl.INDEX]")
    before = program(helper, function("main", "p, q = self.helper(n)\npl.write(y, [p, q], a)"))
    gives(inline.run, before, program(function("main", "p = n + 1\nq = n + 2\npl.write(y, [p, q], a)")))


def test_inlined_functions_may_call_others() -> None:
    inner = function("inner", "return n + 1", "Inline", "n: pl.Scalar[pl.INDEX]")
    outer = function("outer", "k = self.inner(n)\nreturn k * 2", "Inline", "n: pl.Scalar[pl.INDEX]")
    before = program(inner, outer, function("main", "k = self.outer(n)\npl.write(y, [k, 0], a)"))
    gives(inline.run, before, program(function("main", "pl.write(y, [(n + 1) * 2, 0], a)")))


def test_a_function_with_an_early_return_stays() -> None:
    helper = function("helper", "if b:\n    return\npl.write(y, [0, 0], a)", "Inline")
    before = program(helper, function("main", "self.helper(x, y, n, a, b)"))
    gives(inline.run, before, before)


def test_a_function_that_is_submitted_stays_a_task() -> None:
    helper = function("helper", "pl.write(y, [n, 0], a)", "Inline")
    before = program(helper, function("main", "_, tid = pl.submit(self.helper, x, y, n, a, b)"))
    gives(inline.run, before, before)


def test_what_was_inlined_remembers_the_call() -> None:
    before = program(
        function("helper", "pl.write(y, [n, 0], a)", "Inline"), function("main", "self.helper(x, y, n, a, b)")
    )
    (stmt,) = inline.run(before)["main"].body
    assert isinstance(stmt, EvalStmt) and isinstance(stmt.expr, Call)
    assert stmt.expr.span.caller is not None
    assert stmt.expr.span.caller.line > stmt.expr.span.line
