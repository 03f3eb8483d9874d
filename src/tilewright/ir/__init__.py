"""`tilewright.ir`: the IR for people who build compilers, under the names the PTO family uses."""

from tilewright.core.enums import ForKind, FunctionType, Level, MemorySpace, ParamDirection, Role
from tilewright.core.equality import assert_structural_equal, structural_equal, structural_hash
from tilewright.core.expr import (
    Call,
    Const,
    ConstBool,
    ConstFloat,
    ConstInt,
    Expr,
    GlobalVar,
    Invoke,
    MakeTuple,
    Submit,
    Symbol,
    TupleGetItem,
    Var,
)
from tilewright.core.node_visitor import IRVisitor
from tilewright.core.op import Op
from tilewright.core.printer import python_print, python_print_type
from tilewright.core.program import Function, Program
from tilewright.core.serialize import deserialize, serialize
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
from tilewright.core.types import ArrayType, MemRef, ScalarType, TensorType, TileType, TupleType, Type
from tilewright.dtypes import DataType
from tilewright.ir.compiled_program import CompiledProgram
from tilewright.ir.pass_manager import OptimizationStrategy, PassManager
from tilewright.ir.passes import PassContext, VerificationLevel
from tilewright.ops.registry import get_op
from tilewright.programs.compiler import compile
from tilewright.source import Span

__all__ = [
    "ArrayType",
    "AssignStmt",
    "BreakStmt",
    "Call",
    "ClusterScopeStmt",
    "CompiledProgram",
    "Const",
    "ConstBool",
    "ConstFloat",
    "ConstInt",
    "ContinueStmt",
    "DataType",
    "EvalStmt",
    "Expr",
    "ForKind",
    "ForStmt",
    "Function",
    "FunctionType",
    "GlobalVar",
    "HierarchyScopeStmt",
    "IRVisitor",
    "IfStmt",
    "InCoreScopeStmt",
    "Invoke",
    "IterArg",
    "Level",
    "MakeTuple",
    "MemRef",
    "MemorySpace",
    "Op",
    "OptimizationStrategy",
    "ParamDirection",
    "PassContext",
    "PassManager",
    "Program",
    "ReturnStmt",
    "Role",
    "RuntimeScopeStmt",
    "ScalarType",
    "SeqStmts",
    "Span",
    "SpmdScopeStmt",
    "Stmt",
    "Submit",
    "Symbol",
    "TensorType",
    "TileType",
    "TupleGetItem",
    "TupleType",
    "Type",
    "Var",
    "VerificationLevel",
    "WhileStmt",
    "YieldStmt",
    "assert_structural_equal",
    "compile",
    "deserialize",
    "get_op",
    "is_incore_type",
    "python_print",
    "python_print_type",
    "serialize",
    "structural_equal",
    "structural_hash",
]


def is_incore_type(func_type: FunctionType) -> bool:
    """Return whether functions of this type run on the execution plane."""
    return func_type.is_incore
