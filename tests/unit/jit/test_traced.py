"""Traced calls: torch sees what a kernel does, or the call is refused, on the first call and on a warm one."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportPrivateUsage=false

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.autograd.forward_ad as forward_ad
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

import tilewright.language as pl
from tilewright.jit.function import JITFunction

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")


@pl.jit
def double(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], x.shape) * 2.0, [0, 0], out)
    return out


@pl.jit
def add_to(x: pl.Tensor, total: pl.InOut[pl.Tensor], scale: float = 1.0):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], x.shape) * scale + pl.load(total, [0, 0], x.shape), [0, 0], total)
    return total


def ones() -> torch.Tensor:
    return torch.ones(4, 8)


@pytest.fixture(params=["cold", "warm"])
def kernel(request: pytest.FixtureRequest) -> JITFunction:
    """A kernel that has not been called, or one whose calls go to the dispatcher."""
    made = JITFunction(double.function)
    for _ in range(5 if request.param == "warm" else 0):
        made(ones())
        made(ones(), ones())
    return made


class Wrapper(torch.Tensor):
    """A tensor that keeps its elements in another one."""

    held: torch.Tensor

    @staticmethod
    def __new__(cls: type[Wrapper], held: torch.Tensor) -> Wrapper:
        made: Any = torch.Tensor._make_wrapper_subclass(cls, held.shape, dtype=held.dtype)
        made.held = held
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*(arg.held if isinstance(arg, Wrapper) else arg for arg in args), **(kwargs or {}))


def in_place(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return a call that gives its output, of which the kernel is told to write all."""

    def call(x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros_like(x)
        assert kernel(x, out) is None
        return out

    return call


def script(call: Callable[..., Any]) -> Any:
    """Return a call as torch.jit traces it, on other elements."""
    return torch.jit.trace(call, (3 * ones(),))


RUNS: dict[str, Callable[[Callable[..., Any]], torch.Tensor]] = {
    "functionalize": lambda k: torch.func.functionalize(lambda x: k(x + 1))(ones()),
    "make_fx": lambda k: make_fx(lambda x: k(x + 1))(ones())(ones()),
    "make_fx on fake tensors": lambda k: make_fx(lambda x: k(x + 1), tracing_mode="fake")(ones())(ones()),
    "torch.jit.trace": lambda k: script(lambda x: k(x + 1))(ones()),
    "vmap": lambda k: torch.vmap(lambda x: k(x + 1))(torch.ones(3, 4, 8))[2],
    "a wrapper": lambda k: k(Wrapper(ones() + 1)),
    "a subclass": lambda k: k((ones() + 1).as_subclass(type("Sub", (torch.Tensor,), {}))),
    "torch.compile": lambda k: torch.compile(lambda x: k(x + 1), backend="aot_eager", fullgraph=True)(ones()),
}


@pytest.mark.parametrize("call", [lambda k: k, in_place], ids=["returning", "in place"])
@pytest.mark.parametrize("name", RUNS)
def test_what_torch_traces_or_transforms_gives_what_a_call_gives(
    name: str, call: Callable[[Any], Callable[..., Any]], kernel: JITFunction
) -> None:
    if call is in_place and name in ("functionalize", "vmap", "a wrapper"):
        pytest.skip("torch transforms no operators that write, and this wrapper makes no zeros")
    torch._dynamo.reset()
    assert torch.equal(RUNS[name](call(kernel)), 4 * ones())


def test_a_call_that_writes_is_refused_where_torch_transforms_none_that_do(kernel: JITFunction) -> None:
    with pytest.raises(RuntimeError, match="functionaliz"):
        torch.func.functionalize(in_place(kernel))(ones())


def test_a_fake_tensor_gives_a_fake_one(kernel: JITFunction) -> None:
    with FakeTensorMode():
        assert kernel(ones()).shape == (4, 8)


@pl.jit
def total(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [4, 8]) + pl.load(y, [0, 0], [4, 8]), [0, 0], out)
    return out


@pytest.mark.parametrize("devices", [("cpu", "cuda:0"), ("cuda:0", "cuda:1"), ("cpu", "cpu", "meta")], ids=str)
def test_fake_tensors_of_two_devices_are_refused_by_name(devices: tuple[str, ...]) -> None:
    with FakeTensorMode(), pytest.raises(ValueError, match=f"`x` is on {devices[0]} and `.*` on {devices[-1]}"):
        total(*(torch.empty(4, 8, device=device) for device in devices))


def test_a_graph_keeps_the_kernel_as_one_operator(kernel: JITFunction) -> None:
    graph = make_fx(lambda x: kernel(x))(ones())
    assert "torch.ops.tilewright.double" in graph.code and "mul" not in graph.code


def test_a_compiled_function_survives_its_kernel_becoming_warm() -> None:
    kernel = JITFunction(double.function)
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: kernel(x) + 1, backend="aot_eager", fullgraph=True)
    for _ in range(3):
        assert torch.equal(compiled(ones()), 3 * ones())
        for _ in range(3):
            kernel(ones())
    assert kernel.cache_info().hits > 5


@pytest.mark.parametrize("fullgraph", [False, True])
def test_a_kernel_that_changes_an_argument_does_so_in_a_compiled_function(fullgraph: bool) -> None:
    torch._dynamo.reset()
    total = ones()
    compiled = torch.compile(lambda x, t: add_to(x, t, 2.0) * 2, backend="aot_eager", fullgraph=fullgraph)
    assert torch.equal(compiled(ones(), total), 6 * ones()) and torch.equal(total, 3 * ones())


GRADIENTS: dict[str, Callable[[Callable[..., Any]], Any]] = {
    "a tensor that requires grad": lambda k: k(ones().requires_grad_()),
    "a parameter": lambda k: k(torch.nn.Parameter(ones())),
    "a result of autograd": lambda k: k(ones().requires_grad_() * 1),
    "torch.func.grad": lambda k: torch.func.grad(lambda x: k(x).sum())(ones()),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_a_tensor_that_requires_grad_is_refused_where_gradients_are_recorded(name: str, kernel: JITFunction) -> None:
    with pytest.raises(ValueError, match=r"`x` requires grad.*torch\.no_grad.*x\.detach\(\).*double\.backward"):
        GRADIENTS[name](kernel)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_a_tensor_that_requires_grad_is_taken_where_they_are_not(mode: Any, kernel: JITFunction) -> None:
    x = ones().requires_grad_()
    with mode():
        for _ in range(4):
            assert torch.equal(kernel(x), 2 * ones())
    with pytest.raises(ValueError, match="`x` requires grad"):
        kernel(x)


def test_a_sample_that_requires_grad_may_be_compiled_for(kernel: JITFunction) -> None:
    assert kernel.compile(ones().requires_grad_()).param_names == ["x", "out"]


def test_a_tangent_is_refused(kernel: JITFunction) -> None:
    with forward_ad.dual_level(), pytest.raises(ValueError, match="`x` carries a tangent"):
        kernel(forward_ad.make_dual(ones(), ones()))
    with pytest.raises(ValueError, match="`x` carries a tangent"):
        torch.func.jvp(kernel, (ones(),), (ones(),))
    assert torch.equal(kernel(ones()), 2 * ones())


def test_a_tensor_whose_memory_is_not_there_is_refused(kernel: JITFunction) -> None:
    x = ones()
    x.untyped_storage().resize_(0)
    with pytest.raises(ValueError, match="`x` has no memory"):
        kernel(x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.int8])
def test_a_call_leaves_its_tensors_free_to_be_resized(dtype: torch.dtype) -> None:
    kernel, x, out = JITFunction(double.function), ones().to(dtype), torch.zeros(4, 8, dtype=dtype)
    kernel(x, out)
    for tensor in (x, out, kernel(x)):
        tensor.resize_(16, 8)


def test_a_compiled_program_is_refused_where_torch_traces() -> None:
    program = double.compile(ones())
    for _ in range(5):
        program(ones())
    with pytest.raises(ValueError, match=r"torch traces or transforms this call of `double`.*as_torch_op"):
        make_fx(lambda x: program(x))(ones())
    with pytest.raises(ValueError, match="`x` is a functional tensor|torch traces"):
        torch.func.functionalize(lambda x: program(x))(ones())


SCRIPT = """
import torch, tilewright.language as pl

@pl.jit
def double(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], x.shape) * 2.0, [0, 0], out)
    return out

import sys
for _ in range(5):
    double(torch.ones(4, 8))
assert "torch._dynamo" not in sys.modules and double.cache_info().hits == 4
compiled = torch.compile(lambda x: double(x + 1), backend="eager", fullgraph=True)
assert torch.equal(compiled(torch.ones(4, 8)), torch.full((4, 8), 4.0))
"""


def test_a_kernel_that_was_warm_before_torchs_compiler_came_is_traced(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
