"""Containers of derived classes: read as Python would, or refused."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

import tilewright.language as pl
from tilewright.frontend.containers import OddContainer, check_read_plainly

X: Any = np.ones((4, 8), np.float32)


class Percent(dict[str, Any]):
    def __getitem__(self, key: str) -> Any:
        return super().__getitem__(key) / 100


class OneBased(list[Any]):
    def __getitem__(self, i: Any) -> Any:
        return super().__getitem__(i - 1)


class Pair(tuple[Any, ...]):
    def __len__(self) -> int:
        return 2


class Vector(list[Any]):
    def __add__(self, other: Any) -> Any:
        return Vector(a + b for a, b in zip(self, other, strict=True))


class Reversed(tuple[Any, ...]):
    def __iter__(self) -> Any:
        return iter(self[::-1])


class Derived(OneBased): ...


class Described(list[Any]):
    """Has a method of its own, and reads as a list does."""

    def total(self) -> Any:
        return sum(self)


class Point(NamedTuple):
    a: float
    b: float


class Holder:
    def __init__(self, value: Any) -> None:
        self.value = value


ODD: list[Any] = [
    Percent(a=50.0, b=2.0), OneBased([10.0, 20.0]), Pair((1.0, 2.0, 3.0)), Vector([1.0, 2.0]),
    Reversed((1.0, 2.0)), Derived([1.0, 2.0]),
]  # fmt: skip
PLAIN: list[Any] = [
    [1.0, 2.0], (1.0, 2.0), {"a": 1.0, "b": 2.0}, Described([1.0, 2.0]), Point(1.0, 2.0), torch.Size([1, 2]),
    OrderedDict(a=1.0, b=2.0), defaultdict(float, a=1.0, b=2.0), Counter(a=1, b=2),
]  # fmt: skip
NESTED: dict[str, Callable[[Any], Any]] = {
    "itself": lambda value: value,
    "in a list": lambda value: [0.0, value],
    "in a dict of tuples": lambda value: {"k": (value,)},
}


def kind(value: object) -> str:
    return type(value).__name__


@pytest.mark.parametrize("nest", NESTED)
@pytest.mark.parametrize("value", ODD, ids=kind)
def test_one_that_reads_in_its_own_way_is_refused_wherever_it_comes_from(value: Any, nest: str) -> None:
    held, holder = NESTED[nest](value), Holder(NESTED[nest](value))

    @pl.jit
    def named(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [0, 0], x.shape) * len(held), [0, 0], out)
        return out

    @pl.jit
    def attribute(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [0, 0], x.shape) * len(holder.value), [0, 0], out)
        return out

    @pl.jit
    def given(x: pl.Tensor, value: Any, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [0, 0], x.shape) * len(value), [0, 0], out)
        return out

    message = f"{kind(value)} is a (list|dict|tuple) with a `__\\w+__` of its own, which kernels do not call"
    for call in (lambda: named(X), lambda: attribute(X), lambda: given(X, held)):
        with pytest.raises(Exception, match=message):
            call()


@pytest.mark.parametrize("value", PLAIN, ids=kind)
def test_one_that_holds_what_a_plain_one_does_is_read(value: Any) -> None:
    first = value["a"] if isinstance(value, dict) else value[0]

    @pl.jit
    def kernel(x: pl.Tensor, given: Any, out: pl.Out[pl.Tensor]):
        a = value["a"] if isinstance(value, dict) else value[0]
        b = given["b"] if isinstance(given, dict) else given[1]
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [0, 0], x.shape) * (a + b * len(value)), [0, 0], out)
        return out

    assert kernel(X, value)[0, 0] == first + 4


def test_one_that_holds_itself_is_an_argument_nobody_can_tell_apart() -> None:
    holding: list[Any] = [1.0]
    holding.append(holding)
    check_read_plainly(holding)

    @pl.jit
    def kernel(x: pl.Tensor, value: Any, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [0, 0], x.shape) * value[0], [0, 0], out)
        return out

    with pytest.raises(TypeError, match="`value` holds a list that holds itself"):
        kernel(X, holding)


def test_the_elements_are_looked_at_as_the_base_has_them() -> None:
    with pytest.raises(OddContainer, match="Percent is a dict"):
        check_read_plainly(Described([Percent(a=1.0)]))
