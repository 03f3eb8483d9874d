"""Torch operators: programs inside torch's graphs."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from functools import partial
from typing import Any, cast

import pytest
import torch
from unit.programs.programs import HALVES, program_of

import tilewright.language as pl
from tilewright import ir
from tilewright.programs.torch_op import Signature, TorchOp

REPEATS = """
import tilewright.language as pl
M = pl.dynamic("M")

@pl.program
class Repeats:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[M], pl.BF16], twice: pl.Out[pl.Tensor[[M * 2 + 1], pl.BF16]],
             half: pl.Out[pl.Tensor[[(M + 1) // 2], pl.BF16]]):
        for i in pl.range(M * 2 + 1):
            pl.write(twice, [i], pl.read(x, [i // 3]))
        for i in pl.range((M + 1) // 2):
            pl.write(half, [i], pl.read(x, [i]))
        return twice, half
"""
"""Two outputs, whose extents are formulas."""

STEPS = """
import tilewright.language as pl
M = pl.dynamic("M")

@pl.program
class Steps:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.InOut[pl.Tensor[[M], pl.FP32]], by: pl.Scalar[pl.FP32], y: pl.Out[pl.Tensor[[M], pl.FP32]]):
        for i in pl.range(M):
            pl.write(y, [i], pl.read(x, [i]) * 2.0)
            pl.write(x, [i], pl.read(x, [i]) + by)
        return y
"""
"""Changes one tensor and gives another."""

untyped: Any = torch  # as far as its compiler is concerned
GRAPH = pytest.mark.filterwarnings("ignore")  # torch's compiler warns of its own affairs


def op_of(text: str, name: str) -> TorchOp:
    return ir.compile(program_of(text)).as_torch_op(f"tilewright_tests::{name}")


HALVE = op_of(HALVES, "halve")


def ones(rows: int) -> torch.Tensor:
    return torch.ones(rows, 64)


def test_an_operator_takes_the_inputs_and_returns_the_outputs() -> None:
    assert torch.equal(HALVE(ones(16), 0), ones(16) / 2)
    assert torch.equal(torch.ops.tilewright_tests.halve(x=ones(8), n=0), ones(8) / 2)


@pytest.mark.parametrize(
    ("text", "schema"),
    [
        (HALVES, "(Tensor x, SymInt n) -> Tensor"),
        (REPEATS, "(Tensor x) -> (Tensor, Tensor)"),
        (STEPS, "(Tensor(a0!) x, float by) -> Tensor"),
    ],
)
def test_the_schema_is_the_program_s_signature(text: str, schema: str) -> None:
    assert str(Signature(program_of(text)).schema) == schema


@GRAPH
@pytest.mark.parametrize(
    ("text", "args"),
    [
        (HALVES, (torch.ones(16, 64), 0)),
        (HALVES, (torch.ones(64, 16).T, 0)),
        (REPEATS, (torch.arange(9).bfloat16(),)),
        (STEPS, (torch.arange(5.0), 2.0)),
    ],
    ids=["halves", "strided", "repeats", "steps"],
)
def test_torch_finds_nothing_wrong_with_it(text: str, args: tuple[Any, ...], request: pytest.FixtureRequest) -> None:
    name = f"checked_{request.node.callspec.id}"  # pyright: ignore[reportUnknownMemberType]
    untyped.library.opcheck(op_of(text, name), args)


@GRAPH
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_compiled_graph_has_no_break(backend: str) -> None:
    @untyped.compile(fullgraph=True, backend=backend, dynamic=True)
    def f(x: torch.Tensor) -> torch.Tensor:
        return cast(torch.Tensor, HALVE(x + 1, 0)) * 3

    for rows in (8, 16, 32):
        assert torch.equal(f(ones(rows)), ones(rows) * 3)


@GRAPH
def test_dynamic_axes_are_compiled_once() -> None:
    graphs: list[Any] = []

    def backend(graph: Any, _: object) -> Any:
        graphs.append(graph)
        return graph

    f = untyped.compile(partial(HALVE, n=0), fullgraph=True, backend=backend, dynamic=True)
    for rows in (8, 16, 32):
        f(ones(rows))
    assert len(graphs) == 1


@GRAPH
def test_what_is_changed_in_place_is_changed_in_a_graph_too() -> None:
    steps = op_of(STEPS, "steps")

    @untyped.compile(fullgraph=True, backend="aot_eager")
    def f(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = x.clone()
        y = steps(x, 10.0)
        return x, y

    x, y = f(torch.arange(4.0))
    assert (x.tolist(), y.tolist()) == ([10, 11, 12, 13], [0, 2, 4, 6])


class Twice(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return cast(torch.Tensor, HALVE(x, 0)) + 1


@GRAPH
def test_an_exported_graph_takes_any_extent() -> None:
    rows = torch.export.Dim("rows", min=8, max=4096)
    exported = torch.export.export(Twice(), (ones(16),), dynamic_shapes={"x": {0: rows}})
    assert "tilewright_tests.halve" in str(exported.graph)
    assert torch.equal(exported.module()(ones(40)), ones(40) * 1.5)


@GRAPH
def test_extents_that_are_formulas_stay_formulas() -> None:
    repeat = op_of(REPEATS, "repeat")
    f = untyped.compile(repeat, fullgraph=True, backend="aot_eager", dynamic=True)
    for rows in (8, 9, 20):
        twice, half = f(torch.arange(rows).bfloat16())
        assert (twice.shape, half.shape) == ((rows * 2 + 1,), ((rows + 1) // 2,))


@GRAPH
def test_a_wrong_shape_is_refused_while_tracing() -> None:
    f = untyped.compile(partial(HALVE, n=0), fullgraph=True, backend="eager")
    with pytest.raises(Exception, match=r"`x` expects shape \[M, 64\]: axis 1 differs"):
        f(torch.ones(8, 32))
    with pytest.raises(Exception, match="`x` expects rank 2, got 1"):
        f(torch.ones(8))
    with pytest.raises(Exception, match="`x` expects dtype fp32, got float16"):
        f(ones(8).half())


@GRAPH
def test_gradients_flow_once_they_are_told_how() -> None:
    halve = op_of(HALVES, "halve_with_gradient")

    def backward(_: object, grad: torch.Tensor) -> tuple[Any, None]:
        return halve(grad.contiguous(), 0), None

    def f(x: torch.Tensor) -> Any:
        return HALVE(x.detach(), 0) + halve(x, 0)

    halve.register_autograd(backward, setup_context=None)
    x = ones(8).requires_grad_()
    halve(x, 0).sum().backward()
    assert x.grad is not None and torch.equal(x.grad, ones(8) / 2)
    untyped.library.opcheck(halve, (x, 0))
    (gradient,) = torch.autograd.grad(untyped.compile(f, fullgraph=True, backend="aot_eager")(x).sum(), x)
    assert torch.equal(gradient, ones(8) / 2)


def test_without_a_gradient_backward_says_so() -> None:
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        HALVE(ones(8).requires_grad_(), 0).sum().backward()


def test_it_runs_in_inference_mode() -> None:
    with torch.inference_mode():
        assert torch.equal(HALVE(ones(8), 0), ones(8) / 2)
        x = torch.zeros(3)
        op_of(STEPS, "inferred")(x, 1.0)
    assert torch.equal(x, torch.ones(3))


def test_a_tensor_of_the_meta_device_gives_one() -> None:
    made = HALVE(torch.empty(24, 64, device="meta"), 0)
    assert (made.device.type, made.shape) == ("meta", (24, 64))


class Halved(torch.utils.data.Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> torch.Tensor:
        return cast(torch.Tensor, HALVE(ones(8) * index, 0))


@GRAPH
def test_it_runs_in_the_workers_of_a_data_loader() -> None:
    HALVE(ones(8), 0)  # with threads of its own before the fork
    loader = torch.utils.data.DataLoader(Halved(), batch_size=2, num_workers=2, multiprocessing_context="fork")
    found = torch.cat([batch[:, 0, 0] for batch in loader])
    assert torch.equal(found, torch.arange(6) / 2)


def _child(connection: Any) -> None:
    connection.send(HALVE(ones(16), 0).sum().item())


@GRAPH
def test_it_runs_after_a_fork() -> None:
    HALVE(ones(64), 0)
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    process = context.Process(target=_child, args=(there,))
    process.start()
    assert here.poll(60) and here.recv() == 512
    process.join()


@pytest.mark.parametrize("name", ["halve", "a::b::c", "::b", "a::", "a.b::c", "3::x"])
def test_a_name_without_a_namespace_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="an operator's name is a namespace and a name"):
        ir.compile(program_of(HALVES)).as_torch_op(name)


def test_the_newest_program_has_the_name() -> None:
    op_of(HALVES, "renamed")
    op_of(HALVES.replace("0.5", "0.25"), "renamed")
    assert torch.equal(torch.ops.tilewright_tests.renamed(ones(8), 0), ones(8) / 4)


def test_a_program_that_returns_a_number_is_refused() -> None:
    text = STEPS.replace("return y", "return by")
    with pytest.raises(TypeError, match="an operator of torch gives tensors, and this program returns"):
        op_of(text, "number")


# kernels


@pl.jit
def scaled(x: pl.Tensor, factor: float, out: pl.Out[pl.Tensor]) -> Any:
    for row in pl.parallel(0, x.shape[0], 8):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [row, 0], [8, x.shape[1]]) * factor, [row, 0], out)
    return out


ROWS = pl.dynamic("ROWS")


@pl.jit
def tripled(x: pl.Tensor[[ROWS, 64], pl.FP32], out: pl.Out[pl.Tensor[[ROWS, 64], pl.FP32]]) -> Any:
    for row in pl.parallel(0, ROWS, 8):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [row, 0], [8, 64]) * 3.0, [row, 0], out)
    return out


@pytest.fixture
def scale() -> Iterator[TorchOp]:
    yield scaled.as_torch_op("tilewright_tests::scaled")


def test_a_kernel_is_one_operator_for_all_its_programs(scale: TorchOp) -> None:
    assert torch.equal(scale(ones(8), 3.0), ones(8) * 3)
    assert torch.equal(scale(torch.ones(16, 32).half(), 0.5), torch.full((16, 32), 0.5).half())


@GRAPH
def test_torch_finds_nothing_wrong_with_a_kernel(scale: TorchOp) -> None:
    untyped.library.opcheck(scale, (ones(8), 2.0))
    untyped.library.opcheck(tripled.as_torch_op("tilewright_tests::tripled"), (ones(8),))


@GRAPH
def test_kernels_take_part_in_graphs(scale: TorchOp) -> None:
    @untyped.compile(fullgraph=True, backend="aot_eager", dynamic=True)
    def f(x: torch.Tensor) -> Any:
        return scale(x + 1, 2.0) + 1

    for rows in (8, 16):
        assert torch.equal(f(ones(rows)), torch.full((rows, 64), 5.0))


@GRAPH
def test_dynamic_axes_of_a_kernel_stay_dynamic_in_a_graph() -> None:
    triple, graphs = tripled.as_torch_op("tilewright_tests::tripled"), list[Any]()

    def backend(graph: Any, _: object) -> Any:
        graphs.append(graph)
        return graph

    f = untyped.compile(triple, fullgraph=True, backend=backend, dynamic=True)
    for rows in (8, 16, 32):
        assert torch.equal(f(ones(rows)), ones(rows) * 3)
    assert len(graphs) == 1


def test_a_kernel_that_only_changes_a_tensor_returns_nothing() -> None:
    @pl.jit
    def raised(x: pl.InOut[pl.Tensor], *, by: float) -> Any:
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [0, 0], [8, 64]) + by, [0, 0], x)
        return x

    lift, x = raised.as_torch_op("tilewright_tests::raised"), ones(8)
    assert lift(x, 2.0) is None and torch.equal(x, ones(8) * 3)
    untyped.library.opcheck(lift, (x, 2.0))


def test_an_output_may_stand_before_the_inputs() -> None:
    @pl.jit
    def copied(out: pl.Out[pl.Tensor], x: pl.Tensor) -> Any:
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [0, 0], [8, 64]), [0, 0], out)
        return out

    assert torch.equal(copied.as_torch_op("tilewright_tests::copied")(ones(8)), ones(8))


@GRAPH
def test_a_kernel_that_changes_what_it_does_not_declare_is_refused_in_a_graph() -> None:
    @pl.jit
    def sly(x: pl.Tensor, out: pl.Out[pl.Tensor]) -> Any:
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [8, 64])
            pl.store(t, [0, 0], out)
            pl.store(t + 1.0, [0, 0], x)
        return out

    op = sly.as_torch_op("tilewright_tests::sly")
    with pytest.raises(Exception, match="kernel `sly` gives 1 tensors and changes x"):
        untyped.compile(op, fullgraph=True, backend="eager")(ones(8))


def test_a_kernel_must_say_what_its_numbers_are() -> None:
    @pl.jit
    def unclear(x: pl.Tensor, n: Any, out: pl.Out[pl.Tensor]) -> Any:
        return out

    with pytest.raises(TypeError, match="kernel `unclear`: `n` must say what it is"):
        unclear.as_torch_op("tilewright_tests::unclear")
