"""Backward kernels: gradients flow through pairs, eagerly and in graphs, and nowhere else."""

# pyright: basic, reportInvalidTypeForm=false, reportArgumentType=false
from __future__ import annotations

from typing import Any

import pytest
import torch

import tilewright.language as pl
from tilewright.jit.function import JITFunction


@pl.jit
def swish(x: pl.Tensor, y: pl.Out[pl.Tensor], half: pl.Out[pl.Tensor], scale: float = 1.0):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], x.shape)
        pl.store(t / (pl.exp(t * -1.0) + 1.0) * scale, [0, 0], y)
        pl.store(t * 0.5, [0, 0], half)
    return half, y


@swish.backward
def swish_backward(x: pl.Tensor, dy: pl.Tensor, scale: float, dx: pl.Out[pl.Tensor], *, EXTRA: float = 1.0):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], x.shape)
        s = 1.0 / (pl.exp(t * -1.0) + 1.0)
        pl.store(pl.load(dy, [0, 0], x.shape) * (s + t * s * (1.0 - s)) * (scale * EXTRA), [0, 0], dx)
    return dx


@pl.jit
def added(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor], *, BLOCK: int = 2):
    for r in pl.parallel(0, x.shape[0], BLOCK):
        with pl.at(level=pl.Level.CORE_GROUP):
            size = [BLOCK, x.shape[1]]
            pl.store(pl.load(x, [r, 0], size) + pl.load(y, [r, 0], size) * 3.0, [r, 0], out)
    return out


@added.backward
def added_backward(dout: pl.Tensor, dy: pl.Out[pl.Tensor], dx: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(dout, [0, 0], dout.shape)
        pl.store(t, [0, 0], dx)
        pl.store(t * 3.0, [0, 0], dy)


Mine = pl.Tensor


def leaf(*shape: int) -> torch.Tensor:
    return torch.linspace(-2.0, 2.0, 32).reshape(shape or (4, 8)).requires_grad_()


def silu(x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
    return torch.nn.functional.silu(x) * scale


def slope(function: Any, *args: Any) -> torch.Tensor:
    y = function(*args)
    return torch.autograd.grad(y.cos().sum(), args[0])[0]


def test_gradients_are_those_of_torch_and_calls_without_are_direct() -> None:
    x = leaf()
    half, y = swish(x, 2.0)
    assert y.requires_grad and not half.requires_grad and torch.equal(half, x.detach() * 0.5)
    for _ in range(4):
        found = slope(lambda x, scale: swish(x, scale=scale)[1], x, 2.0)
        torch.testing.assert_close(found, slope(silu, x, 2.0))
    assert swish_backward.call_info().direct == 0  # `EXTRA` can only be given by name
    before = swish.call_info().direct
    with torch.no_grad():
        for _ in range(4):
            assert not swish(x, 2.0)[1].requires_grad
    swish(x.detach(), 2.0)
    assert swish.call_info().direct - before >= 4
    swish(x)[1].sum().backward()
    torch.testing.assert_close(x.grad, slope_of_sum(x))


def slope_of_sum(x: torch.Tensor) -> torch.Tensor:
    return torch.autograd.grad(silu(x).sum(), x)[0]


def test_torch_checks_a_pair() -> None:
    x = leaf()
    assert torch.autograd.gradcheck(lambda x: swish(x, 0.5)[1], (x.detach().double().requires_grad_(),))
    op = swish.as_torch_op("tests_of_backward::swish")
    torch.library.opcheck(op, (leaf(),))
    torch.library.opcheck(added.as_torch_op("tests_of_backward::added"), (leaf(), leaf()))
    compiled = torch.compile(lambda x: swish(x, 2.0)[1] + 1.0, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(slope(compiled, x), slope(lambda x: silu(x, 2.0) + 1.0, x))


def test_what_is_not_saved_has_gradients_all_the_same() -> None:
    x, y = leaf(), leaf()
    out = added(x, y)
    one, other = torch.autograd.grad(out.sum(), (x, y))
    assert (one == 1.0).all() and (other == 3.0).all()
    (other,) = torch.autograd.grad(added(x.detach(), y).t().sum(), y)
    assert (other == 3.0).all() and added(x.detach(), y).grad_fn.saved_tensors == ()


def test_pairs_are_made_in_other_ways() -> None:
    pair = pl.jit(backward=added_backward)(added.function)
    assert pair.gradient is added_backward
    tuned = pl.autotune([{"BLOCK": 2}, {"BLOCK": 4}])(pair)
    plain = JITFunction(added.function)
    tuned_back = pl.autotune([{"EXTRA": 2.0}])(JITFunction(swish_backward.function))
    doubled = JITFunction(swish.function)
    assert doubled.backward(tuned_back) is tuned_back
    x = leaf()
    for kernel in (pair, tuned):
        assert (torch.autograd.grad(kernel(x, x.detach()).sum(), x)[0] == 1.0).all()
    torch.testing.assert_close(torch.autograd.grad(doubled(x)[1].sum(), x)[0], 2.0 * slope_of_sum(x))
    with pytest.raises(ValueError, match=r"`x` requires grad.*or give it a backward, with `@added.backward`"):
        plain(x, x)


def test_methods_have_backwards() -> None:
    class Model:
        def __init__(self, factor: float) -> None:
            self.factor = factor

        @pl.jit
        def scaled(self, x: pl.Tensor, y: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(pl.load(x, [0, 0], x.shape) * self.factor, [0, 0], y)
            return y

        @scaled.backward
        def scaled_backward(self, dy: pl.Tensor, dx: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(pl.load(dy, [0, 0], dy.shape) * self.factor, [0, 0], dx)
            return dx

    two, three, x = Model(2.0), Model(3.0), leaf()
    assert (torch.autograd.grad(two.scaled(x).sum() + three.scaled(x).sum(), x)[0] == 5.0).all()


def test_what_gradients_cannot_flow_through_is_refused() -> None:
    x = leaf()
    (once,) = torch.autograd.grad(swish(x)[1].sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="`swish_backward` is the backward of `swish`, and has none of its own"):
        once.sum().backward()
    with pytest.raises(ValueError, match="`x` requires grad.*leave the outputs out"):
        swish(x, torch.empty(4, 8), torch.empty(4, 8))
    with pytest.raises(TypeError, match="torch follows this call, which takes no config="):
        swish(x, config=object())


def test_tensors_that_may_be_none_are_saved_as_that() -> None:
    @pl.jit
    def shifted(x: pl.Tensor, b: pl.Tensor | None = None, *, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], x.shape)
            if b is not None:
                t = t + pl.load(b, [0, 0], x.shape)
            pl.store(t * 2.0, [0, 0], y)
        return y

    def both(b: pl.Tensor | None, dy: pl.Tensor, dx: pl.Out[pl.Tensor], db: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(dy, [0, 0], dy.shape) * 2.0
            pl.store(t, [0, 0], dx)
            pl.store(t, [0, 0], db)

    def one(b: pl.Tensor | None, dy: pl.Tensor, dx: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(dy, [0, 0], dy.shape) * 2.0, [0, 0], dx)

    x, b = leaf(), leaf()
    shifted.backward(both)
    assert all((grad == 2.0).all() for grad in torch.autograd.grad(shifted(x, b).sum(), (x, b)))
    with pytest.raises(TypeError, match="`both` writes `db`, and `b` of `shifted` is None"):
        shifted(x)
    shifted.backward(one)
    assert (torch.autograd.grad(shifted(x).sum(), x)[0] == 2.0).all()
    assert torch.autograd.grad(shifted(x, b).sum(), (x, b), allow_unused=True)[1] is None


def test_names_must_say_what_a_backward_takes() -> None:
    def changes(x: pl.InOut[pl.Tensor]): ...
    def unordered(x: Mine, y: pl.Out[Mine], z: pl.Out[Mine]): ...
    def clashing(x: Mine, dy: Mine, y: pl.Out[Mine]): ...
    def good(dout: Mine, dx: pl.Out[Mine]): ...
    def of_none(dout: Mine, dz: pl.Out[Mine]): ...
    def in_place(dout: Mine, dx: pl.InOut[Mine]): ...
    def unknown(dout: Mine, other: Mine, dx: pl.Out[Mine]): ...
    def nothing(x: Mine, dx: pl.Out[Mine]): ...
    def of_y(dy: Mine, dx: pl.Out[Mine]): ...

    for forward, backward, message in [
        (added.function, of_none, "its output `dz` is the gradient of no input: those are dx, dy"),
        (added.function, in_place, "`dx` is changed in place: gradients are outputs"),
        (added.function, unknown, "`other` is nothing that it could be given: that is x, y, out, BLOCK, dout"),
        (added.function, nothing, "needs the gradient of an output"),
        (changes, good, "`x` is changed in place, and autograd cannot go back through that"),
        (unordered, of_y, "must return each output by its name: return y, z"),
        (clashing, of_y, "`dy` is the gradient of `y`, and a parameter of the forward kernel"),
    ]:
        kernel = JITFunction(forward)
        kernel.backward(backward)
        with pytest.raises(TypeError, match=message):
            kernel(leaf(), leaf()) if forward in (added.function, clashing) else kernel(leaf())
    with pytest.raises(TypeError, match="is called by kernels"):
        added.backward(pl.jit.incore(good))
    with pytest.raises(TypeError, match="a backward is a kernel or a function, got int"):
        pl.jit(backward=3)(added.function)
