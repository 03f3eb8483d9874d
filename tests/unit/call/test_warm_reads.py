"""Reads and warm calls: what a kernel reads from outside may change between two of them."""

# pyright: basic, reportInvalidTypeForm=false, reportArgumentType=false
from __future__ import annotations

import gc
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch
from unit.call.subjects import IS_NATIVE
from unit.call.warming import (
    CFG,
    VALUES,
    K,
    add,
    both,
    configured,
    corner,
    fresh,
    ones,
    outside,
    running,
    took,
    warm,
)

import tilewright.language as pl
from tilewright import errors

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # torch's own, about sparse and quantized tensors


def mixed(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], x.shape) * K * CFG.k * VALUES[0], [0, 0], out)
    return out


def a_mixed_kernel(policy: str = "raise") -> tuple[Any, dict[str, Callable[[float], None]]]:
    """Return a kernel that multiplies by three ones, and what changes each of them."""
    config, listed = types.SimpleNamespace(k=1.0), [1.0]
    kernel = fresh(mixed, policy, K=1.0, CFG=config, VALUES=listed)

    def set_global(value: float) -> None:
        outside(kernel)["K"] = value

    def set_attribute(value: float) -> None:
        config.k = value

    def set_element(value: float) -> None:
        listed[0] = value

    return kernel, {"global": set_global, "attribute": set_attribute, "element": set_element}


READ = ["global", "attribute", "element"]


@pytest.mark.parametrize("policy", ["raise", "recompile"])
@pytest.mark.parametrize("what", READ)
def test_drift_is_noticed_in_every_style(what: str, policy: str, dispatch: str) -> None:
    kernel, changes = a_mixed_kernel(policy)
    x, out, change = ones(), torch.zeros(4, 8), changes[what]
    for value in (1.0, 4.0, 1.0, 3.0, 1.0):
        change(value)
        for _ in range(4):
            for args, named in [((x, out), {}), ((x,), {}), ((), {"out": out, "x": x})]:
                if policy == "raise" and value != 1.0:
                    with pytest.raises(errors.DriftError):
                        kernel(*args, **named)
                else:
                    result = kernel(*args, **named)
                    assert ((out if len(args) == 2 or named else result) == value).all()


def test_two_programs_for_the_same_arguments_are_both_found(dispatch: str) -> None:
    kernel, x, out = fresh(add, "recompile"), ones(), torch.zeros(4, 8)
    one, other = 2.0, 3.0  # the same objects each time
    for value in (one, other):
        outside(kernel)["K"] = value
        warm(kernel, x, x, out)
    for value in (one, other) * 5:
        outside(kernel)["K"] = value
        assert took(kernel, x, x, out) or dispatch == "python"
        assert (out == 1.0 + value).all()


@pytest.mark.parametrize("what", READ)
def test_what_changes_during_a_call_is_not_taken_for_what_it_was_compiled_from(what: str, dispatch: str) -> None:
    """Whichever function of Python a call has come to when a value changes, no later call ignores the change."""
    x, out = ones(), torch.zeros(4, 8)
    total, step = 1, 0
    while step < total:
        kernel, changes = a_mixed_kernel()
        kernel(x, out)
        seen = 0

        def change(frame: Any, event: str, argument: Any, changed: Any = changes[what], at: int = step) -> None:
            nonlocal seen
            if event == "call" and (seen := seen + 1) == at:
                changed(2.0)

        sys.setprofile(change)
        try:
            kernel(x, out)
        except errors.DriftError:
            pass
        finally:
            sys.setprofile(None)
        changes[what](2.0)
        for _ in range(3):
            with pytest.raises(errors.DriftError):
                kernel(x, out)
        changes[what](1.0)
        kernel(x, out)
        assert (out == 1.0).all()
        total, step = max(total, seen), step + 1 + seen // 25


@pytest.mark.parametrize("policy", ["raise", "recompile"])
@pytest.mark.parametrize("what", READ)
def test_a_value_that_other_threads_change_is_never_mixed_up(busy: None, policy: str, what: str) -> None:
    """Whatever a call writes was computed with one of the values; the one before or after it where they are known."""
    kernel, changes = a_mixed_kernel(policy)
    change, stop = changes[what], threading.Event()

    def flip() -> None:
        value = 1.0
        while not stop.is_set():
            value = 3.0 - value
            change(float(str(value)))

    def work(number: int) -> None:
        x, out = ones(), torch.zeros(4, 8)
        for _ in range(150):
            try:
                kernel(x, out)
                assert float(out[0, 0]) in (1.0, 2.0) and (out == out[0, 0]).all()
            except errors.DriftError:
                assert policy == "raise"

    flipper = threading.Thread(target=flip)
    flipper.start()
    try:
        running(4, work)
    finally:
        stop.set()
        flipper.join()
    compiled_for: set[float] = set()
    for value in (1.0, 2.0, 1.0, 2.0):  # and nothing was left in a state where old code passes for new
        change(value)
        for _ in range(6):
            out = torch.zeros(4, 8)
            try:
                kernel(ones(), out)
            except errors.DriftError:
                assert policy == "raise"
            else:
                compiled_for.add(value)
                assert (out == value).all()
    assert len(compiled_for) == (1 if policy == "raise" else 2)


def test_values_that_are_replaced_by_equal_ones_cost_no_memory() -> None:
    kernel, x, out = fresh(configured, CFG=types.SimpleNamespace(k=2.0)), ones(), torch.zeros(4, 8)
    warm(kernel, x, out)

    def replace(times: int) -> None:
        for _ in range(times):
            outside(kernel)["CFG"] = types.SimpleNamespace(k=float("2.0"))
            kernel(x, out)

    replace(300)
    gc.collect()
    before = sys.getallocatedblocks()
    replace(500)
    gc.collect()
    assert sys.getallocatedblocks() - before < 300
    for _ in range(100):
        kernel(x, out)
    assert kernel.cache_info().misses == 1 and (took(kernel, x, out) or not IS_NATIVE)


class Odd:
    """An object whose attribute is made anew at each access, by code that calls the kernel itself."""

    def __init__(self) -> None:
        self.kernel: Any = None
        self.calls = 0

    @property
    def k(self) -> float:
        if self.kernel is not None and self.calls < 30:
            self.calls += 1
            kernel, self.kernel = self.kernel, None
            kernel(ones(), torch.zeros(4, 8))
            self.kernel = kernel
            gc.collect(1)
        return float("2.0")


def test_reading_may_run_code_that_calls_the_kernel(dispatch: str) -> None:
    holder = Odd()
    kernel, x, out = fresh(configured, CFG=holder), ones(), torch.zeros(4, 8)
    for _ in range(5):
        kernel(x, out)
    holder.kernel = kernel
    for _ in range(20):
        kernel(x, out)
        assert (out == 2.0).all()
    assert holder.calls >= 20 and kernel.call_info().direct == 0 and kernel.cache_info().misses == 1


def test_an_attribute_that_becomes_a_property_is_noticed(dispatch: str) -> None:
    class Config:
        k = 2.0

    kernel, x, out = fresh(configured, CFG=Config()), ones(), torch.zeros(4, 8)
    warm(kernel, x, out)
    Config.k = property(lambda self: 3.0)  # type: ignore
    with pytest.raises(errors.DriftError, match="CFG.k"):
        kernel(x, out)


def test_a_default_that_is_replaced_is_never_used_again(dispatch: str) -> None:
    kernel, x = fresh(both, "recompile"), ones()
    for n in (1.0, 5.0, 1.0, 7.0):
        kernel.function.__defaults__ = (n,)
        low, high = torch.zeros(4, 8), torch.zeros(4, 8)
        for _ in range(4):
            assert (kernel(x)[0] == 1.0 + n).all()
            kernel(x, low, high)
            assert (high == 1.0 + n).all() and (low == 1.0 - n).all()


def test_an_annotation_that_means_something_else_gives_another_output(dispatch: str) -> None:
    kernel, x = fresh(corner, "recompile", SIZE=8), ones()
    assert warm(kernel, x).shape == (8, 8)
    kernel.function.__annotations__ = {**kernel.function.__annotations__, "out": pl.Out[pl.Tensor[[16, 8], pl.FP32]]}
    for _ in range(4):
        assert kernel(x).shape == (16, 8)
    text = "pl.Out[pl.Tensor[[SIZE, 8], pl.FP32]]"
    kernel.function.__annotations__ = {**kernel.function.__annotations__, "out": text}
    for size in (8, 16, 8):
        outside(kernel)["SIZE"] = size
        for _ in range(4):
            assert kernel(x).shape == (size, 8)
