"""Calls that leave outputs out, name arguments or leave them to defaults: as guarded as any, the same results."""

# pyright: basic, reportInvalidTypeForm=false, reportPrivateUsage=false
from __future__ import annotations

import gc
import threading
import types
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from unit.jit.test_fast_path import freed, ones, took

import tilewright.language as pl
from tilewright import errors
from tilewright.call.builtin import is_available

WAYS = ["native", "python"] if is_available() else ["python"]
M = pl.dynamic("M")
K = 2.0


@pytest.fixture(params=WAYS, autouse=True)
def dispatch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("TILEWRIGHT_DISPATCH", request.param)
    yield request.param


def fresh(kernel: Any, **outside: Any) -> Any:
    """Return a kernel with globals and a cache of its own."""
    function = kernel.function
    copy = types.FunctionType(function.__code__, {**globals(), **outside}, function.__name__, function.__defaults__)
    copy.__annotations__ = dict(function.__annotations__)
    return pl.jit(drift=outside.get("policy", "raise"))(copy)


def warm(kernel: Any, *args: Any, **named: Any) -> Any:
    """Call a kernel until such calls do without the session; return the last result."""
    for _ in range(3):
        kernel(*args, **named)
    assert took(kernel, *args, **named)
    return kernel(*args, **named)


@pl.jit
def add(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], x.shape) + pl.load(y, [0, 0], y.shape) * K, [0, 0], out)
    return out


@pl.jit
def both(x: pl.Tensor, low: pl.Out[pl.Tensor], high: pl.Out[pl.Tensor], n: pl.FP32 = 1.0):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [4, 8])
        pl.store(t - n, [0, 0], low)
        pl.store(t + n, [0, 0], high)
    return high, low


@pl.jit
def rows(x: pl.Tensor[[M, 8], pl.FP32], out: pl.Out[pl.Tensor[[M, 8], pl.FP32]]):
    for row in pl.range(0, M, 4):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [row, 0], [4, 8]) * K, [row, 0], out)
    return out


@pl.jit
def corner(x: pl.Tensor[[4, 8], pl.FP32], out: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [4, 8]), [0, 0], out)
    return out


@pl.jit
def halves(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(y, [0, 0], [2, 8]), [0, 0], out)
        pl.store(pl.load(x, [2, 0], [2, 8]), [2, 0], out)
    return out


@pl.jit
def chosen(x: pl.Tensor, a: pl.Out[pl.Tensor], b: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [4, 8])
        pl.store(t, [0, 0], a)
        pl.store(t + 1.0, [0, 0], b)
    if pl.tensor.read(x, [0, 0]) > 0.5:
        r = a
    else:
        r = b
    return r


@pl.jit
def swapped(x: pl.Tensor, a: pl.Out[pl.Tensor], b: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [4, 8])
        pl.store(t, [0, 0], a)
        pl.store(t + 1.0, [0, 0], b)
    if FLAG:
        return a, b
    else:
        return b, a


FLAG = True


# outputs left out


def test_an_output_that_is_left_out_is_new_each_time() -> None:
    kernel, x = fresh(add), ones(4, 8)
    first = warm(kernel, x, x)
    second = kernel(x, 3.0 * x)
    assert (first == 3.0).all() and (second == 7.0).all() and first.data_ptr() != second.data_ptr()


def test_results_come_in_the_order_they_are_returned() -> None:
    x = ones(4, 8)
    high, low = warm(fresh(both), x)
    assert (high == 2.0).all() and (low == 0.0).all()


def test_an_output_is_zero_where_nothing_writes_it() -> None:
    kernel, x = fresh(corner), ones(4, 8)
    for _ in range(5):
        out = warm(kernel, x)
        assert (out[:4] == 1.0).all() and (out[4:] == 0.0).all()
        out.fill_(7.0)


def test_outputs_follow_dynamic_axes(dispatch: str) -> None:
    kernel = fresh(rows)
    warm(kernel, ones(16, 8))
    for extent in (4, 8, 12, 4, 8):
        for _ in range(3):
            x = torch.arange(8.0 * extent).reshape(extent, 8)
            assert torch.equal(kernel(x), 2.0 * x)
    if dispatch == "native":
        assert took(kernel, ones(12, 8)) and kernel.cache_info().compiles <= 1


def test_a_program_that_chooses_what_to_return_is_left_to_the_session() -> None:
    kernel = fresh(chosen)
    for value, wanted in [(1.0, 1.0), (0.0, 1.0), (2.0, 2.0), (-1.0, 0.0)] * 4:
        assert (kernel(torch.full((4, 8), value)) == wanted).all()


def test_programs_that_return_different_outputs_are_told_apart() -> None:
    kernel, x = fresh(swapped, policy="recompile"), ones(4, 8)
    for flag in (True, False, True, False):
        kernel.function.__globals__["FLAG"] = flag
        for _ in range(4):
            one, other = kernel(x)
            assert (one == (1.0 if flag else 2.0)).all() and (other == (2.0 if flag else 1.0)).all()


def test_arrays_come_back_as_arrays() -> None:
    kernel, x = fresh(add), np.ones((4, 8), np.float32)
    for _ in range(5):
        out = kernel(x, x)
        assert type(out) is np.ndarray and (out == 3.0).all()
    assert type(kernel(ones(4, 8), ones(4, 8))) is torch.Tensor


def test_inputs_that_are_not_alike_are_refused_also_after_a_call_in_place() -> None:
    kernel, x, y, out = fresh(halves), ones(4, 8), ones(2, 8), torch.zeros(4, 8)
    warm(kernel, x, y, out)
    warm(kernel, x, x)
    for _ in range(4):
        with pytest.raises(TypeError, match="cannot tell the shape"):
            kernel(x, y)


def test_results_are_nobodys_but_the_callers() -> None:
    kernel = fresh(add)
    out = warm(kernel, ones(4, 8), ones(4, 8))
    gone = weakref.ref(out)
    del out
    gc.collect()
    assert gone() is None


# guards


def test_drift_is_noticed_and_forgiven_once_restored() -> None:
    kernel, x = fresh(add), ones(4, 8)
    warm(kernel, x, x)
    kernel.function.__globals__["K"] = 3.0
    for named in ({}, {"y": x}):
        with pytest.raises(errors.DriftError, match="global `K`"):
            kernel(*([x] if named else [x, x]), **named)
    kernel.function.__globals__["K"] = 2.0
    assert (kernel(x, x) == 3.0).all() and (kernel(x, y=x) == 3.0).all()


def test_drift_is_followed_where_a_kernel_recompiles() -> None:
    kernel, x = fresh(add, policy="recompile"), ones(4, 8)
    for k in (2.0, 3.0, 2.0, 4.0):
        kernel.function.__globals__["K"] = k
        for _ in range(4):
            assert (kernel(x, x) == 1.0 + k).all() and (kernel(y=x, x=x) == 1.0 + k).all()


def test_a_default_that_is_replaced_is_never_used_again() -> None:
    kernel, x = fresh(both, policy="recompile"), ones(4, 8)
    for n in (1.0, 5.0, 1.0, 7.0):
        kernel.function.__defaults__ = (n,)
        low, high = torch.zeros(4, 8), torch.zeros(4, 8)
        for _ in range(4):
            assert (kernel(x)[0] == 1.0 + n).all()
            kernel(x, low, high)
            assert (high == 1.0 + n).all() and (low == 1.0 - n).all()


def test_an_annotation_that_means_something_else_gives_another_output() -> None:
    kernel, x = fresh(corner, policy="recompile"), ones(4, 8)
    assert warm(kernel, x).shape == (8, 8)
    kernel.function.__annotations__ = {**kernel.function.__annotations__, "out": pl.Out[pl.Tensor[[16, 8], pl.FP32]]}
    for _ in range(4):
        assert kernel(x).shape == (16, 8)


def test_a_global_in_an_annotation_counts() -> None:
    text = "pl.Out[pl.Tensor[[SIZE, 8], pl.FP32]]"
    kernel, x = fresh(corner, SIZE=8, policy="recompile"), ones(4, 8)
    kernel.function.__annotations__ = {**kernel.function.__annotations__, "out": text}
    for size in (8, 16, 8):
        kernel.function.__globals__["SIZE"] = size
        for _ in range(4):
            assert kernel(x).shape == (size, 8)


def test_settings_count(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, x = fresh(add), ones(4, 8)
    warm(kernel, x, x)
    misses = kernel.cache_info().misses
    monkeypatch.setenv("TILEWRIGHT_CHECKED", "off")
    assert (kernel(x, x) == 3.0).all() and kernel.cache_info().misses == misses + 1


def test_memory_that_is_gone_is_noticed() -> None:
    kernel, x = fresh(add), ones(4, 8)
    warm(kernel, x, x)
    with pytest.raises(ValueError, match="`y` has no memory"):
        kernel(x, freed(ones(4, 8), 0))


def test_views_and_modes_give_the_same() -> None:
    kernel, x = fresh(add), ones(4, 8)
    warm(kernel, x, x)
    assert (kernel(ones(8, 4).t(), x) == 3.0).all()
    with pytest.raises(ValueError, match="negates"):
        kernel(x, torch.complex(x, -x).conj().imag)
    with torch.inference_mode():
        assert (kernel(x, x) == 3.0).all()
    tracked = ones(4, 8).requires_grad_()
    with pytest.raises(ValueError, match="`x` requires grad"):
        kernel(tracked, tracked)
    with torch.no_grad():
        assert (kernel(tracked, tracked) == 3.0).all()


# names and defaults


@pytest.mark.parametrize("count", [0, 1, 2])
def test_names_may_come_in_any_order(count: int) -> None:
    kernel, x, y, out = fresh(add), ones(4, 8), 2.0 * ones(4, 8), torch.zeros(4, 8)
    named = dict([("out", out), ("y", y), ("x", x)][: 3 - count])
    warm(kernel, *(x, y)[:count], **named)
    assert (out == 5.0).all()


def test_numbers_that_are_one_object_are_told_apart() -> None:
    @pl.jit
    def twice(x: pl.Tensor, out: pl.Out[pl.Tensor], a: pl.FP32 = 1.0, b: pl.FP32 = 1.0):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [0, 0], [4, 8]) * a + b, [0, 0], out)
        return out

    x, one = ones(4, 8), (twice.function.__defaults__ or (1.0,))[0]
    assert (warm(twice, x, one) == 2.0).all()
    for _ in range(4):
        assert (twice(x, 3.0) == 4.0).all() and (twice(x, b=3.0) == 4.0).all() and (twice(x) == 2.0).all()


def test_an_output_named_none_is_made() -> None:
    kernel, x = fresh(add), ones(4, 8)
    for _ in range(5):
        assert (kernel(x, x, out=None) == 3.0).all()


@pytest.mark.parametrize(
    ("args", "named", "message"),
    [
        ((), {}, "missing argument|takes"),
        ((1,), {"x": 1}, "twice|missing"),
        ((), {"x": 1, "z": 1}, "no parameter `z`"),
        ((), {"y": 1}, "missing argument `x`"),
    ],
)
def test_wrong_calls_say_so_after_right_ones(args: Any, named: Any, message: str) -> None:
    kernel, x = fresh(add), ones(4, 8)
    warm(kernel, x, x)
    warm(kernel, x=x, y=x)
    swap = lambda value: x if value == 1 else value  # noqa: E731
    for _ in range(3):
        with pytest.raises(TypeError, match=message):
            kernel(*map(swap, args), **{name: swap(value) for name, value in named.items()})


def test_a_configuration_goes_through_the_session() -> None:
    kernel, x = fresh(add), ones(4, 8)
    warm(kernel, x, x)
    from tilewright.programs.config import RunConfig

    before = kernel.call_info().direct
    assert (kernel(x, x, config=RunConfig()) == 3.0).all() and kernel.call_info().direct == before


def test_positional_only_parameters_have_no_name() -> None:
    @pl.jit
    def double(x: pl.Tensor, /, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [0, 0], [4, 8]) * 2.0, [0, 0], out)
        return out

    x, out = ones(4, 8), torch.zeros(4, 8)
    warm(double, x, out=out)
    for _ in range(3):
        with pytest.raises(TypeError, match="by position only"):
            double(x=x, out=out)


def test_methods_return_and_take_names() -> None:
    class Scale:
        def __init__(self, factor: float) -> None:
            self.factor = factor

        @pl.jit
        def run(self, x: pl.Tensor, out: pl.Out[pl.Tensor], n: pl.FP32 = 1.0):
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(pl.load(x, [0, 0], [4, 8]) * self.factor + n, [0, 0], out)
            return out

    one, two = Scale(2.0), Scale(3.0)
    x, out = ones(4, 8), torch.zeros(4, 8)
    for _ in range(4):
        assert (one.run(x) == 3.0).all() and (two.run(x) == 4.0).all() and (one.run(n=2.0, x=x) == 4.0).all()
        one.run(x, out)
        assert (out == 3.0).all()
    one.factor = 5.0
    assert (one.run(x) == 6.0).all()


def test_there_is_an_end_to_what_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("dispatcher", "memo"):
        monkeypatch.setattr(f"tilewright.call.{place}.LIMIT", 3)
    kernel = fresh(rows)
    warm(kernel, ones(4, 8))
    for count in (8, 12, 16, 20, 4):
        assert (warm(kernel, ones(count, 8)) == 2.0).all()
    assert took(kernel, ones(4, 8)) and not took(kernel, ones(8, 8))


def test_threads_get_their_own_results() -> None:
    kernel, wrong = fresh(add), list[Any]()
    warm(kernel, ones(4, 8), ones(4, 8))

    def work(number: int) -> None:
        x = torch.full((4, 8), float(number))
        for _ in range(300):
            if not (kernel(x, y=x) == 3.0 * number).all() or not (kernel(x, x) == 3.0 * number).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
