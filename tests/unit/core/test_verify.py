"""Verification: every rule of the IR, broken by hand, with the place of the breach."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tilewright.core.build import call, scalar
from tilewright.core.enums import FunctionType, ParamDirection
from tilewright.core.expr import Call, Expr, GlobalVar, Invoke, MakeTuple, TupleGetItem, Var, constant, integer
from tilewright.core.op import OPS
from tilewright.core.program import Function, Program
from tilewright.core.stmt import (
    AssignStmt,
    BreakStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    InCoreScopeStmt,
    IterArg,
    ReturnStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
)
from tilewright.core.types import VOID, ScalarType, TupleType, Type, tensor
from tilewright.core.verify import verify
from tilewright.dtypes import BOOL, FP32, INDEX, INT32
from tilewright.errors import VerificationError
from tilewright.source import Source, Span

SOURCE = Source("kernel.py", tuple(f"line {i}\n" for i in range(1, 20)))
ONE, TWO = integer(1), integer(2)


def at(line: int) -> Span:
    return Span(SOURCE, line, 0, line, 4)


def index(name: str) -> Var:
    return Var(name, ScalarType(INDEX), at(1))


def program(*stmts: Stmt, params: Sequence[Var] = (), returns: Sequence[Type] = ()) -> Program:
    return Program("P", (Function("main", tuple(params), tuple(returns), SeqStmts(tuple(stmts)), at(1)),))


def loop(
    body: Sequence[Stmt], iter_args: Sequence[IterArg] = (), results: Sequence[Var] = (), line: int = 3
) -> ForStmt:
    return ForStmt(
        index("i"),
        integer(0),
        TWO,
        ONE,
        SeqStmts(tuple(body)),
        iter_args=tuple(iter_args),
        return_vars=tuple(results),
        span=at(line),
    )


def breaks(broken: Program, message: str, line: int, *, ssa: bool = True) -> None:
    """Fail unless verification stops at `line` with `message`."""
    with pytest.raises(VerificationError, match=message) as error:
        verify(broken, ssa=ssa)
    assert (error.value.place.filename, error.value.place.line) == ("kernel.py", line)
    assert error.value.function == "main"


def test_a_variable_is_defined_before_it_is_used() -> None:
    s, t = index("s"), index("t")
    breaks(
        program(AssignStmt(t, scalar("add", s, ONE), at(4)), AssignStmt(s, scalar("add", t, ONE), at(5))),
        "'s' is used before it is defined",
        4,
    )


def test_what_one_branch_defines_is_unknown_after_it() -> None:
    n, s = index("n"), index("s")
    branch = IfStmt(scalar("lt", n, ONE), SeqStmts((AssignStmt(s, scalar("add", n, ONE), at(5)),)), None, (), at(4))
    breaks(
        program(branch, ReturnStmt((s,), at(6)), params=[n], returns=[s.type]), "'s' is used before it is defined", 6
    )


def test_in_ssa_a_variable_has_one_definition() -> None:
    n, s = index("n"), index("s")
    twice = program(
        AssignStmt(s, scalar("add", n, ONE), at(4)), AssignStmt(s, scalar("add", n, TWO), at(5)), params=[n]
    )
    verify(twice)
    breaks(twice, "'s' is defined twice", 5)


def test_a_loop_yields_as_many_values_as_it_carries() -> None:
    c, r = index("c"), index("r")
    breaks(
        program(loop([YieldStmt((c, c), at(5))], [IterArg(c, ONE)], [r])), r"1 value\(s\) are handed on here, got 2", 5
    )


def test_a_loop_that_carries_ends_in_a_yield() -> None:
    breaks(
        program(loop([], [IterArg(index("c"), ONE)], [index("r")], line=7)),
        "a loop that carries values ends in a yield",
        7,
    )


def test_a_loop_returns_what_it_carries() -> None:
    breaks(program(loop([], [], [index("r")], line=7)), "a loop returns what it carries", 7)


def test_a_break_in_ssa_hands_on_what_the_loop_carries() -> None:
    c, r = index("c"), index("r")
    breaks(program(loop([BreakStmt((), at(6))], [IterArg(c, ONE)], [r])), r"1 value\(s\) are handed on here, got 0", 6)


def test_a_branch_with_results_yields_on_both_sides() -> None:
    r, b = index("r"), Var("b", ScalarType(BOOL))
    yields = SeqStmts((YieldStmt((ONE,), at(5)),))
    breaks(
        program(IfStmt(b, yields, SeqStmts(), (r,), at(4)), params=[b]), "a branch that has results ends in a yield", 4
    )
    breaks(program(IfStmt(b, yields, None, (r,), at(4)), params=[b]), "a branch that has results needs an else", 4)


def test_a_value_has_the_type_of_its_variable() -> None:
    breaks(
        program(AssignStmt(index("s"), constant(1.0), at(9))),
        r"'s' is scalar\[index\], but its value is scalar\[fp32\]",
        9,
    )


def test_a_carried_value_starts_as_what_it_stays() -> None:
    c, r = index("c"), index("r")
    breaks(program(loop([YieldStmt((c,))], [IterArg(c, constant(1.0))], [r], line=8)), "'c' is scalar", 8)


def test_a_call_has_the_type_its_rule_infers() -> None:
    n = index("n")
    wrong = Call(OPS["scalar.add"], (n, ONE), (), ScalarType(INT32))
    breaks(
        program(AssignStmt(Var("s", ScalarType(INT32)), wrong, at(4)), params=[n]),
        r"`scalar.add` gives scalar\[index\], but is marked",
        4,
    )


def test_operands_fit_their_op() -> None:
    x = Var("x", tensor([4, 4], FP32))
    good = call(OPS["tensor.read"].spec, {"x": x, "indices": (0, 0)})
    assert isinstance(good, Call)
    outside = Call(good.op, (x, MakeTuple((integer(0), integer(9)))), good.attributes, good.type)
    many = Call(good.op, (x, x, x), good.attributes, good.type)
    s = Var("s", ScalarType(FP32))
    breaks(program(AssignStmt(s, outside, at(4)), params=[x]), "`tensor.read`: axis 1: index 9 lies outside 0 to 4", 4)
    breaks(program(AssignStmt(s, many, at(4)), params=[x]), "`tensor.read` takes 2 operands, got 3", 4)


def test_a_condition_is_a_bool() -> None:
    n = index("n")
    breaks(program(IfStmt(n, SeqStmts(), span=at(4)), params=[n]), r"a condition is a bool, got scalar\[index\]", 4)
    breaks(program(WhileStmt(n, SeqStmts(), span=at(5)), params=[n]), r"a condition is a bool, got scalar\[index\]", 5)


def test_exits_and_yields_stand_in_loops() -> None:
    breaks(program(BreakStmt((), at(4))), "an exit outside any loop", 4)
    breaks(program(YieldStmt((ONE,), at(4))), "a yield outside any loop or branch", 4)


def test_nothing_follows_an_exit_in_ssa() -> None:
    n = index("n")
    body = [BreakStmt((), at(4)), AssignStmt(index("s"), scalar("add", n, ONE), at(5))]
    verify(program(loop(body), params=[n]))
    breaks(program(loop(body), params=[n]), "statements follow an exit", 5)


def test_a_return_gives_what_the_function_says() -> None:
    breaks(program(ReturnStmt((ONE,), at(4))), r"the function returns 0 value\(s\), this 1", 4)
    x = tensor([4], FP32)
    breaks(
        program(ReturnStmt((ONE,), at(4)), returns=[x]),
        r"the function returns tensor\[4, fp32\], this scalar\[index\]",
        4,
    )


def test_calls_fit_the_function_they_call() -> None:
    x, n = Var("x", tensor([4], FP32)), index("n")

    def calling(*args: Expr, name: str = "callee") -> Program:
        called = EvalStmt(Invoke(GlobalVar(name), args, VOID), at(4))
        callee = Function("callee", (x,), (), SeqStmts(), func_type=FunctionType.InCore)
        return Program("P", (Function("main", (n,), (), SeqStmts((called,)), at(1)), callee))

    breaks(calling(name="nobody"), "there is no function 'nobody'", 4)
    breaks(calling(), r"`callee` expects 1 argument\(s\), got 0", 4)
    breaks(calling(n), r"`x` of `callee` is tensor\[4, fp32\], got scalar\[index\]", 4)


def test_a_tuple_has_the_element_that_is_taken() -> None:
    pair = Var("pair", TupleType((ScalarType(INDEX),)))
    breaks(
        program(AssignStmt(index("s"), TupleGetItem(pair, 1, ScalarType(INDEX)), at(4)), params=[pair]),
        "there is no value 1",
        4,
    )


def test_a_scope_hides_nothing() -> None:
    n, s, t = index("n"), index("s"), index("t")
    scope = InCoreScopeStmt(SeqStmts((AssignStmt(s, scalar("add", n, ONE)),)))
    verify(program(scope, AssignStmt(t, scalar("add", s, ONE)), params=[n]), ssa=True)


def test_a_function_does_not_call_itself() -> None:
    def caller(name: str, callee: str) -> Function:
        return Function(name, (), (), SeqStmts((EvalStmt(Invoke(GlobalVar(callee), (), VOID)),)))

    with pytest.raises(VerificationError, match="`a` calls itself: a -> b -> a"):
        verify(Program("P", (caller("a", "b"), caller("b", "a"))))


def test_functions_have_names_of_their_own() -> None:
    with pytest.raises(VerificationError, match="two functions are called 'f'"):
        verify(Program("P", (Function("f"), Function("f"))))


def test_parameters_are_variables_of_their_own_and_scalars_are_only_read() -> None:
    n = index("n")
    with pytest.raises(VerificationError, match="two parameters are one variable"):
        verify(program(params=[n, n]))
    written = Function("main", (n,), param_directions=(ParamDirection.Out,), span=at(1))
    breaks(Program("P", (written,)), "scalar parameter 'n' cannot be written", 1)
