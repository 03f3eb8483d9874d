"""The styles of warm calls: names, counts, defaults, and outputs that are left out."""

# pyright: basic, reportInvalidTypeForm=false, reportArgumentType=false
from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
import torch
from unit.call.warming import (
    FLAG,
    add,
    both,
    corner,
    fresh,
    ones,
    outside,
    twice,
    warm,
)

import tilewright.language as pl
from tilewright.call.targets import device_bits

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # torch's own, about sparse and quantized tensors


def halves(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(y, [0, 0], [2, 8]), [0, 0], out)
        pl.store(pl.load(x, [2, 0], [2, 8]), [2, 0], out)
    return out


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


def swapped(x: pl.Tensor, a: pl.Out[pl.Tensor], b: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [4, 8])
        pl.store(t, [0, 0], a)
        pl.store(t + 1.0, [0, 0], b)
    if FLAG:
        return a, b
    else:
        return b, a


def odd(args: pl.Tensor, run: pl.Tensor, slow: pl.FP32, words: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(args, [0, 0], [4, 8]) + pl.load(run, [0, 0], [4, 8]) * slow, [0, 0], words)
    return words


def double(x: pl.Tensor, /, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [4, 8]) * 2.0, [0, 0], out)
    return out


@pytest.mark.parametrize(
    ("args", "named", "message"),
    [
        ((), {}, "missing argument|takes"),
        ((1,), {}, "missing argument|takes"),
        ((1, 1, 1, 1), {}, "takes"),
        ((1,), {"x": 1}, "twice|missing"),
        ((1, 1, 1), {"z": 1}, "no parameter `z`"),
        ((), {"x": 1, "z": 1}, "no parameter `z`"),
        ((), {"y": 1}, "missing argument `x`"),
    ],
)
def test_wrong_calls_say_so_after_right_ones(args: Any, named: Any, message: str, dispatch: str) -> None:
    kernel, x = fresh(add), ones()
    warm(kernel, x, x, ones())
    warm(kernel, x, x)
    warm(kernel, x=x, y=x)
    for _ in range(3):
        with pytest.raises(TypeError, match=message) as caught:
            kernel(*([x] * len(args)), **dict.fromkeys(named, x))
        assert "@pl.jit function 'add'" in str(caught.value)


def test_an_output_that_is_left_out_is_new_each_time_and_the_callers_alone(dispatch: str) -> None:
    kernel, x = fresh(add), ones()
    first = warm(kernel, x, x)
    second = kernel(x, 3.0 * x)
    assert (first == 3.0).all() and (second == 7.0).all() and first.data_ptr() != second.data_ptr()
    gone = weakref.ref(second)
    del second
    gc.collect()
    assert gone() is None
    for _ in range(5):
        out = kernel(x.numpy(), x.numpy())
        assert type(out) is np.ndarray and (out == 3.0).all()
    assert type(kernel(x, x)) is torch.Tensor


def test_results_come_in_the_order_they_are_returned(dispatch: str) -> None:
    high, low = warm(fresh(both), ones())
    assert (high == 2.0).all() and (low == 0.0).all()


def test_an_output_is_zero_where_nothing_writes_it(dispatch: str) -> None:
    kernel, x = fresh(corner), ones()
    for _ in range(5):
        out = warm(kernel, x)
        assert (out[:4] == 1.0).all() and (out[4:] == 0.0).all()
        out.fill_(7.0)


def test_the_device_of_a_tensor_is_part_of_its_key() -> None:
    bits = [device_bits(device) for device in ("cpu", "cuda:0", "cuda:1", "cuda:7")]
    assert bits[0] == 0 and len({*bits}) == len(bits)
    assert not any(each & ((1 << 36) - 1) or each >> 48 for each in bits)


def through_the_heap(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    """A temporary that is too large for its function's own memory."""
    middle = pl.create_tensor([512, 1024], dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [4, 8]) + 1.0, [508, 0], middle)
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(middle, [508, 0], [4, 8]), [0, 0], out)
    return out


def test_what_a_program_has_to_be_freed_of_takes_no_result_away(dispatch: str) -> None:
    kernel, x = fresh(through_the_heap), ones(4, 8)
    for _ in range(6):
        assert (kernel(x) == 2).all()


def test_a_program_that_chooses_what_to_return_is_followed(dispatch: str) -> None:
    kernel = fresh(chosen)
    for value, wanted in [(1.0, 1.0), (0.0, 1.0), (2.0, 2.0), (-1.0, 0.0)] * 4:
        assert (kernel(torch.full((4, 8), value)) == wanted).all()


def test_programs_that_return_different_outputs_are_told_apart(dispatch: str) -> None:
    kernel, x = fresh(swapped, "recompile"), ones()
    for flag in (True, False, True, False):
        outside(kernel)["FLAG"] = flag
        for _ in range(4):
            one, other = kernel(x)
            assert (one == (1.0 if flag else 2.0)).all() and (other == (2.0 if flag else 1.0)).all()


def test_inputs_that_are_not_alike_are_refused_also_after_a_call_in_place(dispatch: str) -> None:
    kernel, x, y = fresh(halves), ones(), ones(2, 8)
    warm(kernel, x, y, torch.zeros(4, 8))
    warm(kernel, x, x)
    for _ in range(4):
        with pytest.raises(TypeError, match="cannot tell the shape"):
            kernel(x, y)


def test_parameters_may_be_called_anything(dispatch: str) -> None:
    kernel, out = fresh(odd), torch.zeros(4, 8)
    warm(kernel, ones(), ones(), 2.0, out)
    for _ in range(4):
        kernel(slow=3.0, words=out, run=ones(), args=ones())
        assert (out == 4.0).all()


def test_numbers_that_are_one_object_are_told_apart(dispatch: str) -> None:
    kernel, x = fresh(twice), ones()
    one = kernel.function.__defaults__[0]
    assert (warm(kernel, x, one) == 2.0).all()
    for _ in range(4):
        assert (kernel(x, 3.0) == 4.0).all() and (kernel(x, b=3.0) == 4.0).all() and (kernel(x) == 2.0).all()


def test_positional_only_parameters_have_no_name(dispatch: str) -> None:
    kernel, x, out = fresh(double), ones(), torch.zeros(4, 8)
    warm(kernel, x, out=out)
    for _ in range(3):
        with pytest.raises(TypeError, match="by position only"):
            kernel(x=x, out=out)


def many(count: int) -> Any:
    """Return a kernel of so many inputs, which adds them up."""
    import linecache

    names = [f"x{n}" for n in range(count)]
    loads = " + ".join(f"pl.load({name}, [0, 0], [4, 8])" for name in names)
    text = (
        f"@pl.jit\ndef total({', '.join(f'{name}: pl.Tensor' for name in names)}, out: pl.Out[pl.Tensor]):\n"
        f"    with pl.at(level=pl.Level.CORE_GROUP):\n        pl.store({loads}, [0, 0], out)\n    return out\n"
    )
    file = f"<many {count}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    found = {"pl": pl, "__name__": "many"}
    exec(compile(text, file, "exec"), found)
    return found["total"]


@pytest.mark.parametrize("count", [8, 15, 23, 24, 30])
def test_many_tensors_are_added(count: int) -> None:
    kernel, tensors, out = many(count), [ones() for _ in range(count)], torch.zeros(4, 8)
    for _ in range(5):
        out.zero_()
        kernel(*tensors, out)
        assert (out == float(count)).all()
