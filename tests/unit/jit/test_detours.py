"""Detours: which calls go through Python, and what they say about it."""

# pyright: basic, reportInvalidTypeForm=false, reportArgumentType=false
from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import tilewright.language as pl
from tilewright.jit.detours import COMPILED, FIRST
from tilewright.jit.function import JITFunction
from tilewright.runtime import RunConfig


class Mode(enum.Enum):
    """How to count."""

    ONCE = 1
    TWICE = 2


class Holder:
    """An object with an attribute that runs code."""

    @property
    def factor(self) -> float:
        return 2.0


HOLDER = Holder()


@pl.jit
def double(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], x.shape) * 2.0, [0, 0], out)
    return out


@pl.jit
def add_to(x: pl.Tensor, total: pl.InOut[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], x.shape) + pl.load(total, [0, 0], x.shape), [0, 0], total)
    return total


@pl.jit
def step(x: pl.InOut[pl.Tensor], total: pl.InOut[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], x.shape) + pl.load(total, [0, 0], x.shape), [0, 0], total)
        pl.store(pl.load(x, [0, 0], x.shape) + 1.0, [0, 0], x)
    return total, x


@pl.jit
def both(x: pl.Tensor, total: pl.InOut[pl.Tensor], out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], x.shape) + 1.0, [0, 0], out)
        pl.store(pl.load(x, [0, 0], x.shape) + pl.load(total, [0, 0], x.shape), [0, 0], total)
    return out, total


@pl.jit
def by_mode(x: pl.Tensor, mode: Mode, word: str = "twice", out: pl.Out[pl.Tensor] = None):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], x.shape)
        if mode == Mode.TWICE:
            t = t * 2.0
        if word == "twice":
            t = t * 2.0
        pl.store(t, [0, 0], out)
    return out


@pl.jit
def scaled(x: pl.Tensor, n: float, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], x.shape) * n, [0, 0], out)
    return out


@pl.jit
def part(x: pl.Tensor, shape: tuple[int, int], out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [shape[0], shape[1]]), [0, 0], out)
    return out


@pl.jit
def named(x: pl.Tensor, out: pl.Out[pl.Tensor], *, n: float = 2.0):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], x.shape) * n, [0, 0], out)
    return out


@pl.jit
def held(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], x.shape) * HOLDER.factor, [0, 0], out)
    return out


@pl.jit
def counted(x: pl.Tensor):
    n = x.shape[0]
    return n + 1


class Producer:
    """Something that hands its memory over by DLPack."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def __dlpack__(self, **options: Any) -> Any:
        return self.data.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.data.__dlpack_device__()


def ones(*shape: int) -> torch.Tensor:
    return torch.ones(*(shape or (4, 8)))


def array(dtype: Any = np.float32) -> Any:
    return np.ones((4, 8), dtype)


def fresh(kernel: JITFunction) -> JITFunction:
    return JITFunction(kernel.function)


Args = Callable[[], tuple[Any, ...]]

DIRECT: dict[str, tuple[JITFunction, Args, dict[str, Any]]] = {
    "an InOut returned": (add_to, lambda: (ones(), ones()), {}),
    "an InOut returned, arrays": (add_to, lambda: (array(), array()), {}),
    "an InOut returned, by name": (add_to, lambda: (ones(),), {"total": ones()}),
    "two InOuts returned": (step, lambda: (ones(), ones()), {}),
    "an Out and an InOut": (both, lambda: (ones(), ones(), ones()), {}),
    "an Out left out beside an InOut": (both, lambda: (ones(), ones()), {}),
    "an enum and a string": (by_mode, lambda: (ones(), Mode.TWICE, "once", ones()), {}),
    "an enum, the string left out": (by_mode, lambda: (ones(), Mode.TWICE), {"out": ones()}),
}


@pytest.mark.parametrize("name", DIRECT)
def test_a_call_goes_directly_and_gives_what_the_first_one_gave(name: str) -> None:
    kernel, args, named = DIRECT[name]
    kernel = fresh(kernel)
    first = kernel(*args(), **{key: value.clone() for key, value in named.items()})
    for _ in range(4):
        kernel(*args(), **{key: value.clone() for key, value in named.items()})
    before, given = kernel.call_info(), args()
    result = kernel(*given, **named)
    after = kernel.call_info()
    assert (after.direct, after.python) == (before.direct + 1, before.python)
    assert type(result) is type(first)
    for one, other in zip(*((r if isinstance(r, tuple) else (r,)) for r in (result, first)), strict=True):
        assert one is other is None or (np.asarray(one) == np.asarray(other)).all()
    if name.startswith(("an InOut", "two")):
        everything = [*given, *named.values()]
        assert all(any(one is each for each in everything) for one in (result if name[0] == "t" else [result]))


def test_another_string_is_another_program_also_in_another_object() -> None:
    kernel = fresh(by_mode)
    for word in ["twice", "once", "".join(["twi", "ce"]), "".join(["on", "ce"])] * 4:
        for mode in (Mode.ONCE, Mode.TWICE):
            expected = (2 if mode is Mode.TWICE else 1) * (2 if word == "twice" else 1)
            assert (kernel(ones(), mode, word) == expected).all()


DETOURS: dict[str, tuple[JITFunction, Args, dict[str, Any], str]] = {
    "a configuration": (
        double, lambda: (ones(), ones()), {"config": RunConfig(compile_profiling=True)}, "its config= has a folder",
    ),
    "gaps": (double, lambda: (ones(4, 72)[:, ::9], ones()), {}, "`x` has gaps along its last axis"),
    "backwards": (double, lambda: (array()[::-1], array()), {}, "`x` runs backwards along an axis"),
    "a producer": (double, lambda: (Producer(array()), array()), {}, "`x` is a Producer, and neither a plain torch"),
    "bfloat16 of NumPy": (
        double, lambda: (array(ml_dtypes.bfloat16), array(ml_dtypes.bfloat16)), {}, "`x` has elements of bfloat16",
    ),
    "a number of NumPy": (scaled, lambda: (ones(), np.float32(2), ones()), {}, "`n` is a number of NumPy"),
    "a tuple": (part, lambda: (ones(), (4, 8), ones()), {}, "`shape` is a tuple, and neither a tensor nor a number"),
    "a name alone": (named, lambda: (ones(), ones()), {"n": 3.0}, "`n` can only be given by name"),
    "a property": (held, lambda: (ones(), ones()), {}, "it reads attribute `HOLDER.factor`, which only Python can"),
    "a number returned": (counted, lambda: (ones(),), {}, "it returns what it made itself"),
}  # fmt: skip


@pytest.mark.parametrize("name", DETOURS)
def test_a_call_that_always_goes_through_python_says_why(name: str) -> None:
    kernel, args, given, reason = DETOURS[name]
    kernel = fresh(kernel)
    for _ in range(6):
        kernel(*args(), **given)
    info = kernel.call_info()
    found = [text for text in info.reasons if text.startswith(reason)]
    assert len(found) == 1 and info.reasons[found[0]] == 5 and info.reasons[COMPILED] == 1
    assert (info.direct, info.python) == (0, 6)
    if "config" not in given:
        explained = kernel.explain_miss(*args(), **given)
        assert explained == f"a program is found for these arguments, through Python: {found[0]}"


def test_an_output_between_the_elements_of_an_input_says_so() -> None:
    kernel, wide = fresh(double), ones(4, 16)
    for _ in range(5):
        kernel(wide[:, :8], wide[:, 8:])
    assert kernel.call_info().reasons["`out`, which is written, lies between elements of `x`"] == 4


def test_calls_are_counted_by_how_they_went() -> None:
    kernel = fresh(double)
    for _ in range(10):
        kernel(ones(), ones())
    info = kernel.call_info()
    assert info.reasons == {COMPILED: 1, FIRST: 1}
    assert (info.direct, info.python) == (8, 2)
    kernel.cache_clear()
    assert kernel.call_info() == info
    assert kernel.explain_miss(ones(), ones()) == "`double` has not been compiled yet"


def test_a_miss_names_the_configuration_that_differs() -> None:
    kernel = fresh(double)
    kernel(ones(), ones(), config=RunConfig(checked=True))
    said = "the configuration is platform cpu, strategy Default, and was platform interpret, strategy Default, checked"
    assert kernel.explain_miss(ones(), ones()) == said
