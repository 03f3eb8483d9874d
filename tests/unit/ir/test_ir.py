"""`tilewright.ir`: the names the PTO family uses, and that they are the same things."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tilewright.language as pl
from tilewright import ir
from tilewright.core.op import OPS
from tilewright.ir import compiled_program, pass_manager, passes
from tilewright.programs.program import CompiledProgram

KERNEL = """
@pl.function
def double(x: pl.Tensor[[4, 4], pl.FP32], y: pl.Out[pl.Tensor[[4, 4], pl.FP32]]):
    pl.store(pl.add(pl.load(x, [0, 0], [4, 4]), 1.0), [0, 0], y)
"""


@pytest.mark.parametrize("module", [ir, compiled_program, pass_manager, passes])
def test_every_public_name_is_listed_in_order_and_exists(module: object) -> None:
    names: list[str] = vars(module)["__all__"]
    assert names == sorted(set(names))
    assert all(hasattr(module, name) for name in names)


def test_the_names_other_compilers_use_are_there() -> None:
    wanted = """
        Program Function Var ConstInt ConstFloat ConstBool Call MakeTuple TupleGetItem GlobalVar IterArg Submit Span
        AssignStmt EvalStmt SeqStmts ForStmt WhileStmt IfStmt YieldStmt ReturnStmt BreakStmt ContinueStmt
        InCoreScopeStmt SpmdScopeStmt ScalarType TensorType TileType ArrayType TupleType MemRef MemorySpace FunctionType
        ParamDirection ForKind IRVisitor get_op is_incore_type structural_equal assert_structural_equal structural_hash
        serialize deserialize python_print python_print_type compile PassManager OptimizationStrategy CompiledProgram
        DataType
    """
    assert set(wanted.split()) <= set(ir.__all__)


def test_importing_the_faces_alone_declares_every_op() -> None:
    code = "from tilewright import ir; print(ir.get_op('tile.add').name)"
    env = {"PYTHONPATH": ":".join(sys.path)}
    run = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True, env=env)
    assert run.stdout == "tile.add\n"


def test_get_op_gives_the_one_op_of_a_name() -> None:
    assert ir.get_op("tile.add") is OPS["tile.add"]


def test_get_op_suggests_the_nearest_spelling() -> None:
    with pytest.raises(ValueError, match=r"no op is called 'tile.matmull'; did you mean 'tile.matmul'\?"):
        ir.get_op("tile.matmull")


def test_get_op_says_so_when_nothing_is_near() -> None:
    with pytest.raises(ValueError, match=r"no op is called '\?-\?'$"):
        ir.get_op("?-?")


def test_incore_types_are_those_of_the_execution_plane() -> None:
    incore = [kind.name for kind in ir.FunctionType if ir.is_incore_type(kind)]
    assert incore == ["InCore", "AIC", "AIV"]


def test_a_program_goes_from_text_to_bytes_to_something_that_runs() -> None:
    copy = ir.deserialize(ir.serialize(pl.parse(KERNEL)))
    assert isinstance(ir.compile(copy), CompiledProgram)
    assert "pl.tile.add" in ir.python_print(copy)
