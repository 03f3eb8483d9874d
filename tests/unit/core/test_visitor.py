"""Walking: what each node holds, and in which order."""

from __future__ import annotations

from unit.core.programs import everything, function

from tilewright.core.build import scalar
from tilewright.core.enums import Level
from tilewright.core.expr import ABSENT, Call, Const, GlobalVar, Invoke, MakeTuple, Submit, TupleGetItem, Var, integer
from tilewright.core.node_visitor import IRVisitor
from tilewright.core.stmt import (
    AssignStmt,
    BreakStmt,
    ClusterScopeStmt,
    ContinueStmt,
    EvalStmt,
    ForStmt,
    HierarchyScopeStmt,
    IfStmt,
    InCoreScopeStmt,
    IterArg,
    ReturnStmt,
    RuntimeScopeStmt,
    SeqStmts,
    SpmdScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
)
from tilewright.core.types import VOID, ScalarType
from tilewright.core.visitor import (
    bodies,
    children,
    defined,
    expressions,
    statements,
    subexpressions,
    used,
    variables,
)
from tilewright.dtypes import INDEX

H, J, K, N = (Var(name, ScalarType(INDEX)) for name in "hjkn")
ONE = integer(1)
BODY, OTHER = SeqStmts((EvalStmt(H),)), SeqStmts((EvalStmt(J),))
FOR = ForStmt(H, ONE, N, ONE, BODY, iter_args=(IterArg(J, K),), return_vars=(K,))
SPMD = SpmdScopeStmt(N, BODY, loop_var=H, task=J, deps=(K,), predicate=ONE)


def test_a_statement_uses_what_it_evaluates_itself() -> None:
    expected: list[tuple[Stmt, tuple[object, ...]]] = [
        (AssignStmt(H, N), (N,)),
        (EvalStmt(N), (N,)),
        (FOR, (ONE, N, ONE, K)),
        (WhileStmt(N, BODY, (IterArg(J, K),)), (K, N)),
        (IfStmt(N, BODY, OTHER), (N,)),
        (YieldStmt((H, J)), (H, J)),
        (ReturnStmt((H,)), (H,)),
        (BreakStmt((H,)), (H,)),
        (ContinueStmt((H,)), (H,)),
        (InCoreScopeStmt(BODY, deps=(K,)), (K,)),
        (HierarchyScopeStmt(Level.HOST, BODY), ()),
        (SPMD, (N, K, ONE)),
        (SpmdScopeStmt(N, BODY), (N,)),
        (ClusterScopeStmt(BODY), ()),
        (RuntimeScopeStmt(BODY), ()),
    ]
    assert [used(stmt) for stmt, _ in expected] == [exprs for _, exprs in expected]


def test_a_statement_defines_what_it_binds_itself() -> None:
    expected: list[tuple[Stmt, tuple[Var, ...]]] = [
        (AssignStmt(H, N), (H,)),
        (EvalStmt(N), ()),
        (FOR, (H, J, K)),
        (WhileStmt(N, BODY, (IterArg(J, K),), (H,)), (J, H)),
        (IfStmt(N, BODY, OTHER, (K,)), (K,)),
        (YieldStmt((H,)), ()),
        (InCoreScopeStmt(BODY, task=K), (K,)),
        (InCoreScopeStmt(BODY), ()),
        (HierarchyScopeStmt(Level.HOST, BODY, task=K), (K,)),
        (SPMD, (H, J)),
        (SpmdScopeStmt(N, BODY), ()),
        (ClusterScopeStmt(BODY), ()),
    ]
    assert [defined(stmt) for stmt, _ in expected] == [names for _, names in expected]


def test_a_branch_has_two_bodies_and_a_simple_statement_none() -> None:
    assert bodies(IfStmt(N, BODY, OTHER)) == (BODY, OTHER)
    assert bodies(IfStmt(N, BODY)) == (BODY,)
    assert bodies(FOR) == bodies(SPMD) == bodies(RuntimeScopeStmt(BODY)) == (BODY,)
    assert bodies(ReturnStmt()) == ()


def test_an_expression_has_its_operands_as_children() -> None:
    total = scalar("add", H, J)
    assert isinstance(total, Call)
    assert children(total) == (H, J)
    assert children(Invoke(GlobalVar("f"), (H,), VOID)) == (H,)
    assert children(Submit(GlobalVar("f"), (H,), (J,), N, VOID)) == (H, J, N)
    assert children(Submit(GlobalVar("f"), (H,), (), None, VOID)) == (H,)
    assert children(MakeTuple((H, ONE))) == (H, ONE)
    assert children(TupleGetItem(H, 0, H.type)) == (H,)
    assert [children(leaf) for leaf in (H, ONE, ABSENT)] == [(), (), ()]


def test_statements_come_outer_before_inner() -> None:
    inner = IfStmt(N, BODY, OTHER)
    loop = ForStmt(H, ONE, N, ONE, SeqStmts((inner,)))
    assert list(statements(SeqStmts((loop, *OTHER)))) == [loop, inner, *BODY, *OTHER, *OTHER]


def test_subexpressions_and_variables_come_in_order() -> None:
    total = scalar("mul", scalar("add", H, ONE), J)
    assert isinstance(total, Call)
    assert list(subexpressions(total)) == [total, total.args[0], H, ONE, J]
    assert list(variables([total, K])) == [H, J, K]
    assert list(expressions(AssignStmt(K, total))) == list(subexpressions(total))


class Counter(IRVisitor):
    """Counts loops, and constants outside them."""

    def __init__(self) -> None:
        self.loops = 0
        self.constants = 0

    def visit_ForStmt(self, node: ForStmt) -> None:
        self.loops += 1

    def visit_ConstInt(self, node: Const) -> None:
        self.constants += 1


def test_a_visitor_goes_below_every_node_it_has_no_method_for() -> None:
    source = """
@pl.function
def f(x: pl.Tensor[[64, 64], pl.FP32], b: pl.Scalar[pl.BOOL], k: pl.Scalar[pl.INDEX]):
    if b:
        for i in pl.range(k):
            pl.write(x, [i, 7], 1.0)
    while k > 5:
        pl.write(x, [k * 3, k], 2.0)
"""
    counter = Counter()
    counter.visit(function(source))
    assert (counter.loops, counter.constants) == (1, 2)


def test_a_visitor_meets_every_statement_of_a_program() -> None:
    class Met(IRVisitor):
        def __init__(self) -> None:
            self.names: list[str] = []

        def visit_Var(self, node: Var) -> None:
            self.names.append(node.name_hint)

    met = Met()
    met.visit(everything())
    assert {"x", "y", "n", "acc", "i", "total", "tid", "after", "b"} <= set(met.names)
