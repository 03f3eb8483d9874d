"""Tests as PyPTO's users write them: programs held to torch, to each other and to their messages."""

import pypto
import pypto.language as pl
import pytest
import torch
from pypto import DataType, backend, ir, passes
from pypto.backend import BackendType
from pypto.debug import torch_codegen
from pypto.language.parser.diagnostics import ParserTypeError


@pytest.fixture(autouse=True)
def ascend():
    backend.reset_for_testing()
    backend.set_backend_type(BackendType.Ascend910B)
    yield
    backend.reset_for_testing()


@pl.function(type=pl.FunctionType.InCore)
def squares(x: pl.Tensor[[16, 32], pl.FP32], out: pl.Out[pl.Tensor[[16, 32], pl.FP32]]) -> pl.Tensor[[16, 32], pl.FP32]:
    tile = pl.load(x, [0, 0], [16, 32])
    return pl.store(pl.mul(tile, tile), [0, 0], out)


def test_the_text_in_torch_squares():
    scope = {}
    exec(torch_codegen(squares), scope)
    x, out = torch.randn(16, 32), torch.zeros(16, 32)
    scope["squares"](x, out)
    torch.testing.assert_close(out, x * x)


def test_every_pass_keeps_the_answer(tmp_path):
    program = ir.Program("Squares", (squares,))
    compiled = ir.compile(program, output_dir=str(tmp_path), dump_passes=True)
    x = torch.randn(16, 32)
    compiled.validate_ir([x], [x * x])
    again = ir.CompiledProgram.from_dir(tmp_path)
    assert again.program is None and again.param_names == ["x", "out"]
    torch.testing.assert_close(again(x), x * x)


def test_a_context_is_current():
    with passes.PassContext([], passes.VerificationLevel.BASIC, memory_planner=passes.MemoryPlanner.PTOAS):
        assert passes.PassContext.current().get_memory_planner() == passes.MemoryPlanner.PTOAS
        with pytest.raises(RuntimeError, match="memory_planner"):
            ir.compile(squares, memory_planner=passes.MemoryPlanner.PYPTO)


def test_printed_text_reads_back():
    assert ir.structural_equal(pl.parse(squares.as_python()), squares)


def test_wrong_annotations_are_said():
    with pytest.raises(ParserTypeError):

        @pl.function
        def missing(x, out: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
            return pl.store(pl.load(x, [0, 0], [16, 32]), [0, 0], out)


def test_cores_are_counted():
    soc = backend.Backend910B.instance().soc
    counts = {}
    for die, dies in soc.die_counts.items():
        for cluster, clusters in die.cluster_counts.items():
            for core, cores in cluster.core_counts.items():
                counts[core.core_type.name] = counts.get(core.core_type.name, 0) + dies * clusters * cores
    assert counts == {"CUBE": 24, "VECTOR": 48}


def test_names_of_the_package():
    assert pypto.DT_BF16 == pl.BF16 and isinstance(pl.BF16, DataType)
    assert issubclass(pypto.InternalError, Exception)
