"""Launches that torch would not see: refused where it traces or transforms, with a way that works."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, cast

import pytest
import torch as pytorch
from torch.fx.experimental.proxy_tensor import make_fx
from unit.pto.jit.kernels import adding

from tilewright import pto
from tilewright.pto.errors import PtoValueError

torch = cast("Any", pytorch)

Launch = Callable[[Any, Any, Any, int], None]


def total(launch: Launch) -> Callable[[Any], Any]:
    """Return a function of one tensor that launches a kernel."""

    def adds(x: Any) -> Any:
        out = torch.zeros(8, 16)
        launch(x, x + 1, out, 8)
        return out

    return adds


def jit_traced(function: Callable[[Any], Any], x: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.trace(function, x, check_trace=False)


WAYS: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "torch.jit.trace": lambda f: jit_traced(f, torch.ones(8, 16)),
    "make_fx": lambda f: make_fx(f)(torch.ones(8, 16)),
    "make_fx on fakes": lambda f: make_fx(f, tracing_mode="fake")(torch.ones(8, 16)),
    "torch.func.functionalize": lambda f: torch.func.functionalize(f)(torch.ones(8, 16)),
    "torch.vmap": lambda f: torch.vmap(f)(torch.ones(2, 8, 16)),
}
HOLDERS: dict[str, Callable[[pto.KernelHandle], Any]] = {
    "handle": lambda k: k,
    "compiled": lambda k: k.compile(),
}


@pytest.mark.parametrize("is_warm", [False, True])
@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("way", WAYS)
def test_a_launch_is_refused_where_torch_traces(way: str, holder: str, is_warm: bool) -> None:
    launch = HOLDERS[holder](adding())[1, None]
    adds = total(launch)
    for _ in range(5 * is_warm):
        assert torch.equal(adds(torch.ones(8, 16)), torch.full((8, 16), 3.0))
    with pytest.raises(PtoValueError, match="torch") as caught:
        WAYS[way](adds)
    assert "torch.library.custom_op" in str(caught.value) and "as_torch_op" not in str(caught.value)
    assert torch.equal(adds(torch.ones(8, 16)), torch.full((8, 16), 3.0))


def test_a_tensor_that_requires_grad_is_refused_with_what_pto_kernels_have() -> None:
    x, launch = torch.ones(8, 16).requires_grad_(), adding()[1, None]
    with pytest.raises(PtoValueError, match=r"requires grad.*torch\.library\.custom_op") as caught:
        launch(x, x, torch.zeros(8, 16), 8)
    assert "as_torch_op" not in str(caught.value)


@pytest.mark.parametrize("is_warm", [False, True])
def test_torchs_compiler_leaves_a_launch_to_python(is_warm: bool) -> None:
    adds = total(adding()[1, None])
    for _ in range(5 * is_warm):
        adds(torch.ones(8, 16))
    torch._dynamo.reset()
    compiled = torch.compile(adds, backend="eager")
    for scale in (1, 2, 3):
        assert torch.equal(compiled(scale * torch.ones(8, 16)), torch.full((8, 16), 2.0 * scale + 1))


def test_a_launch_inside_an_operator_is_seen() -> None:
    launch = adding()[1, None]

    def adds(x: Any) -> Any:
        out = torch.zeros_like(x)
        launch(x, torch.ones_like(x), out, 8)
        return out

    add_one: Any = torch.library.custom_op(
        "tilewright_test::add_one", adds, mutates_args=(), device_types="cpu", schema="(Tensor x) -> Tensor"
    )
    add_one.register_fake(torch.empty_like)

    def composed(x: Any) -> Any:
        return add_one(x)

    x = torch.ones(8, 16)
    for graph in (make_fx(add_one)(x), jit_traced(composed, x), torch.func.functionalize(add_one)):
        assert torch.equal(graph(5 * x), 6 * x)
    torch._dynamo.reset()
    assert torch.equal(torch.compile(composed, backend="aot_eager", fullgraph=True)(5 * x), 6 * x)
