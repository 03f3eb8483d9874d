"""Methods: kernels in a class body, which read what their instance holds."""

# pyright: basic, reportInvalidTypeForm=false, reportArgumentType=false
# pyright: reportAttributeAccessIssue=false, reportCallIssue=false
from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from unit.jit.kernels import numbers, scaled

import tilewright.language as pl

X = numbers(4, 8)
CORE = pl.Level.CORE_GROUP


class Model:
    rows = 4

    def __init__(self, factor: float) -> None:
        self.factor = factor

    @pl.jit.incore
    def window(self, x: pl.Tensor, out: pl.Out[pl.Tensor]):
        return pl.store(pl.load(x, [0, 0], [self.rows, 8]) * self.factor, [0, 0], out)

    @pl.jit.inline
    def twice(self, x: pl.Tensor, out: pl.Tensor):
        out = self.window(x, out)
        return self.window(out=out, x=out)

    @pl.jit
    def forward(self, x: pl.Tensor, out: pl.Out[pl.Tensor]):
        return self.window(x, out)

    @pl.jit
    def squared(self, x: pl.Tensor, out: pl.Out[pl.Tensor]):
        return self.twice(x, out)


def test_a_method_reads_its_instance() -> None:
    two, five = Model(2.0), Model(5.0)
    assert torch.equal(two.forward(X), 2 * X)
    assert torch.equal(five.forward(X), 5 * X)
    assert torch.equal(five.forward(X, torch.zeros(4, 8)) or five.forward(x=X), 5 * X)


def test_a_method_calls_methods() -> None:
    assert torch.equal(Model(3.0).squared(X), 9 * X)


def test_each_instance_has_programs_of_its_own() -> None:
    two, five = Model(2.0), Model(5.0)
    two.forward(X)
    two.forward(X)
    assert two.forward.cache_info() == (1, 1, 1, 1)
    assert five.forward.cache_info() == (0, 0, 0, 0)
    assert two.forward is two.forward


def test_a_changed_attribute_is_seen() -> None:
    model = Model(2.0)
    assert torch.equal(model.forward(X), 2 * X)
    model.factor = 7.0
    assert torch.equal(model.forward(X), 7 * X)


def test_a_method_kept_apart_from_its_instance_still_has_it() -> None:
    forward = Model(2.0).forward
    assert torch.equal(forward(X), 2 * X)


@dataclass
class Unhashable:
    factor: float

    @pl.jit
    def forward(self, x: pl.Tensor, out: pl.Out[pl.Tensor]):
        return scaled(x, self.factor, out)


@dataclass(frozen=True)
class Frozen:
    factor: float

    @pl.jit
    def forward(self, x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=CORE):
            out = pl.store(pl.load(x, [0, 0], [4, 8]) * self.factor, [0, 0], out)
        return out


class Slotted:
    __slots__ = ("factor",)

    def __init__(self, factor: float) -> None:
        self.factor = factor

    @pl.jit
    def forward(self, x: pl.Tensor, out: pl.Out[pl.Tensor]):
        return scaled(x, self.factor, out)


class Module(torch.nn.Module):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    @pl.jit
    def forward(self, x: pl.Tensor, out: pl.Out[pl.Tensor]):
        return scaled(x, self.factor, out)


@pytest.mark.parametrize("kind", [Unhashable, Frozen, Slotted, Module], ids=lambda kind: kind.__name__)
def test_instances_of_any_class_have_methods(kind: type) -> None:
    assert torch.equal(kind(2.0).forward(X), 2 * X)


def test_equal_instances_are_still_two() -> None:
    minus, plus = Frozen(-0.0), Frozen(0.0)
    assert minus == plus and minus.forward is not plus.forward
    assert torch.equal(torch.signbit(minus.forward(X)), torch.full((4, 8), True))
    assert torch.equal(torch.signbit(plus.forward(X)), torch.full((4, 8), False))


def test_static_and_class_methods_are_kernels_too() -> None:
    class Library:
        factor = 4.0

        @staticmethod
        @pl.jit
        def static(x: pl.Tensor, out: pl.Out[pl.Tensor]):
            return scaled(x, 2.0, out)

        @classmethod
        @pl.jit
        def of_class(cls, x: pl.Tensor, out: pl.Out[pl.Tensor]):
            return scaled(x, cls.factor, out)

    assert torch.equal(Library.static(X), 2 * X)
    assert torch.equal(Library().static(X), 2 * X)
    assert torch.equal(Library.of_class(X), 4 * X)


def test_a_helper_of_two_instances_is_made_for_each() -> None:
    two, five = Model(2.0), Model(5.0)

    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        out = two.window(x, out)
        return five.window(out, out)

    assert torch.equal(kernel(X), 10 * X)


def test_a_subclass_overrides_what_a_kernel_reads() -> None:
    class Wider(Model):
        rows = 2

    out = torch.zeros(4, 8)
    Wider(2.0).forward(X, out)
    assert torch.equal(out[:2], 2 * X[:2]) and not out[2:].any()
