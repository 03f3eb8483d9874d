"""Warm calls: a call like an earlier one does what the first one did, whatever is called, however, and with what.

A *cold* call is the first one of something made anew; a *warm* one finds what an earlier call left. Kernels say which
calls went directly (`call_info()`); for the rest, the functions of Python that a call runs are counted.
"""

# pyright: basic, reportInvalidTypeForm=false, reportArgumentType=false
from __future__ import annotations

import copy
import gc
import os
import pickle
import random
import resource
import subprocess
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from unit.call import zoo
from unit.call.subjects import IS_NATIVE, ROWS, SHAPE, STYLES, SUBJECTS, compiled_program, copied, frames, outcome
from unit.programs.programs import HALVES, SEVERAL, UNDECLARED, program_of, rows

import tilewright.language as pl
from tilewright import errors, ir
from tilewright.runtime import CompiledProgram, RunConfig

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # torch's own, about sparse and quantized tensors

FEW = 16
"""More functions of Python than a warm call ever runs, and far fewer than a cold one does."""

native_only = pytest.mark.skipif(not IS_NATIVE, reason="there is no native dispatcher here")
K = 2.0
FLAG = True
CFG = types.SimpleNamespace(k=2.0, values=[2.0])
VALUES = [2.0]
M = pl.dynamic("M")


@pytest.fixture(params=["native", "python"])
def dispatch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How calls are dispatched: by machine code, or as where there is none."""
    monkeypatch.setenv("TILEWRIGHT_DISPATCH", request.param)
    return request.param


@pytest.fixture(scope="module", autouse=True)
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Programs are compiled once for all that are made anew."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def ones(*shape: int, dtype: Any = torch.float32) -> torch.Tensor:
    return torch.ones(shape or (4, 8), dtype=dtype)


def fresh(function: Any, policy: str = "raise", **outside: Any) -> Any:
    """Return a kernel with globals and a cache of its own."""
    return copied(function, {**globals(), **outside}, drift=policy)


def outside(kernel: Any) -> dict[str, Any]:
    return kernel.function.__globals__


def took(kernel: Any, *args: Any, **named: Any) -> bool:
    """Call a kernel and return whether the call found its program directly."""
    before = kernel.call_info().direct
    kernel(*args, **named)
    return kernel.call_info().direct > before


def warm(kernel: Any, *args: Any, **named: Any) -> Any:
    """Call a kernel until such calls are warm; return the last result."""
    for _ in range(3):
        kernel(*args, **named)
    if os.environ.get("TILEWRIGHT_DISPATCH") != "python":
        assert took(kernel, *args, **named)
    return kernel(*args, **named)


# every subject, every style, every kind of argument

PLAIN = zoo.layouts(SHAPE, torch.float32)
KINDS: dict[str, zoo.Maker] = {**PLAIN, **zoo.oddities(SHAPE)}
PLACES = {"x": ["x"], "out": ["out"], "all": ["x", "y", "out"]}
REFUSED = {("PTO kernel", style) for style in STYLES if style not in ("in place", "mixed")}
"""What launches are refused for alike: their arguments come by position, and all of them."""


def values(kind: str = "dense", places: str = "x") -> dict[str, Any]:
    """Return arguments, one kind of them in some places."""
    plain = {"x": PLAIN["dense"](), "y": PLAIN["dense"](), "rows": ROWS, "out": torch.zeros(SHAPE)}
    return {**plain, **{name: KINDS[kind]() for name in PLACES[places]}}


@cache
def cold(subject: str, style: str, kind: str, places: str) -> tuple[Any, ...]:
    """Return how the first call of something goes."""
    return outcome(SUBJECTS[subject](), *STYLES[style](values(kind, places)))


@pytest.mark.parametrize(("subject", "style"), [pair for pair in product(SUBJECTS, STYLES) if pair not in REFUSED])
def test_a_warm_call_does_what_a_cold_one_does(subject: str, style: str, dispatch: str) -> None:
    call = SUBJECTS[subject]()
    plain = cold(subject, style, "dense", "x")
    for kind in KINDS:
        for places in PLACES:
            for _ in range(3):
                given = outcome(call, *STYLES[style](values(kind, places)))
                assert given == cold(subject, style, kind, places), f"{kind} for {places}"
        assert outcome(call, *STYLES[style](values())) == plain, f"after {kind}"


@pytest.mark.parametrize("subject", SUBJECTS)
def test_what_is_followed_by_autograd_is_taken_where_nobody_looks(subject: str, dispatch: str) -> None:
    call = SUBJECTS[subject]()
    for mode in (torch.no_grad, torch.inference_mode, torch.enable_grad):
        for kind in ("followed", "a result of autograd", "a parameter that is followed", "inference"):
            for places in PLACES:
                with mode():
                    wanted = outcome(SUBJECTS[subject](), *STYLES["in place"](values(kind, places)))
                    for _ in range(3):
                        assert outcome(call, *STYLES["in place"](values(kind, places))) == wanted
                    assert (wanted[0] == "gives") == (mode is not torch.enable_grad or kind == "inference")


@native_only
@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize("array", [torch.as_tensor, np.asarray], ids=["torch", "NumPy"])
def test_a_warm_call_hardly_runs_python(subject: str, style: str, array: Any) -> None:
    given = {name: array(value) if name != "rows" else value for name, value in values().items()}
    given = {name: np.array(value) if isinstance(value, np.ndarray) else value for name, value in given.items()}
    call = SUBJECTS[subject]() if subject != "program" else compiled_program()
    args, named = STYLES[style](given)
    if cold(subject, style, "dense", "x")[0] == "raises":
        pytest.skip("such calls are refused")
    first = frames(call, *values().values())
    for _ in range(4):
        call(*given.values())
    for _ in range(20):
        call(*args, **named)
    again = frames(call, *args, **named)
    returns = style.startswith(("returning", "None"))
    assert first > 10 * FEW and again <= (FEW if subject == "PTO kernel" or returns else 0)


@native_only
@pytest.mark.parametrize("subject", SUBJECTS)
def test_a_warm_call_leaves_nothing_behind(subject: str) -> None:
    call, (args, _) = SUBJECTS[subject](), STYLES["in place"](values())
    for _ in range(1000):
        call(*args)
    gc.collect()
    blocks, memory = sys.getallocatedblocks(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(20_000):
        call(*args)
    assert sys.getallocatedblocks() - blocks < 50
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < 2048  # kilobytes


@pytest.mark.parametrize("subject", SUBJECTS)
def test_threads_get_results_of_their_own(subject: str, busy: None, dispatch: str) -> None:
    call = SUBJECTS[subject]()

    def work(number: int) -> None:
        x, out = torch.full(SHAPE, float(number)), torch.zeros(SHAPE)
        for _ in range(50):
            out.zero_()
            call(x, x, ROWS, out)
            assert (out == 2.0 * number).all()
            if subject != "PTO kernel":
                assert (call(x, x, ROWS) == 2.0 * number).all() and (call(rows=ROWS, y=x, x=x) == 2.0 * number).all()

    running(6, work)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("subject", SUBJECTS)
def test_a_forked_child_makes_warm_calls_and_cold_ones(subject: str) -> None:
    call, given = SUBJECTS[subject](), values()
    for _ in range(4):
        call(*given.values())

    def child() -> bool:
        wanted = cold(subject, "in place", "dense", "x")
        each = [outcome(one, *STYLES["in place"](values())) for one in (call, call, SUBJECTS[subject]())]
        return each == [wanted] * 3

    assert in_a_child(child)


def in_a_child(work: Callable[[], bool]) -> bool:
    """Return whether some work succeeds in a forked child."""
    child = os.fork()
    if not child:
        status = 1
        try:
            status = 0 if work() else 2
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# which calls of kernels go directly


def add(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], x.shape) + pl.load(y, [0, 0], y.shape) * K, [0, 0], out)
    return out


DIRECT = [
    "dense", "strided", "broadcast", "overlapping", "parameter", "inference", "array", "sealed", "view", "followed",
    "every second row", "an offset", "a result of autograd", "a parameter that is followed", "a broadcast array",
]  # fmt: skip


@native_only
@pytest.mark.parametrize("kind", KINDS)
def test_plain_memory_goes_directly(kind: str) -> None:
    kernel = fresh(add)
    warm(kernel, ones(*SHAPE), ones(*SHAPE), ones(*SHAPE))
    x, out = KINDS[kind](), torch.zeros(SHAPE)
    with torch.no_grad():
        try:
            went = took(kernel, x, ones(*SHAPE), out)
        except (TypeError, ValueError, errors.KernelError):
            went = False
    assert went == (kind in DIRECT)


def test_batched_tensors_are_refused() -> None:
    kernel = fresh(add)
    warm(kernel, ones(), ones(), ones())
    with pytest.raises((ValueError, RuntimeError)):
        torch.vmap(lambda x: kernel(x, ones(), ones()) or x)(ones(2, 4, 8))


def test_overlapping_arguments_are_refused_and_interleaved_ones_are_not(dispatch: str) -> None:
    kernel, x, both = fresh(add), ones(), ones(4, 16)
    warm(kernel, x, x, torch.zeros(4, 8))
    with pytest.raises(ValueError, match="`out` is written and shares memory with `x`"):
        kernel(x, ones(), x)
    with pytest.raises(ValueError, match="shares memory"):
        kernel(both[:, :8], x, both[:, 4:12])
    assert not took(kernel, both[:, :8], x, both[:, 8:])  # as ranges they overlap: Python looks closer
    assert (both[:, 8:] == 3.0).all()


# types, ranks and extents


def moved(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    out[:] = x
    return out


@pytest.mark.parametrize(
    "dtype",
    [torch.float16, torch.bfloat16, torch.float32, torch.bool, torch.int8, torch.int16, torch.int32, torch.int64],
    ids=str,
)
def test_every_type_has_a_program_of_its_own(dtype: torch.dtype, dispatch: str) -> None:
    kernel, x, out = fresh(moved), ones(4, 32, dtype=dtype), torch.zeros(4, 32, dtype=dtype)
    warm(kernel, x, out)
    assert torch.equal(x, out)
    with pytest.raises((TypeError, ValueError, errors.KernelError)):
        kernel(x, torch.zeros(4, 32, dtype=torch.float32 if dtype is not torch.float32 else torch.int32))


@pytest.mark.parametrize("name", ["int64", "longlong", "uint64", "ulonglong", "intp", "float32", "float16", "int16"])
def test_types_of_numpy_that_are_as_wide_are_the_same(name: str) -> None:
    kernel, plain = fresh(moved), np.dtype(name).name
    x: Any = np.arange(32, dtype=plain).reshape(1, 32)
    out: Any = np.zeros((1, 32), name)
    warm(kernel, x, np.zeros((1, 32), plain))
    kernel(x.astype(name), out)
    assert (out == x).all()


@pytest.mark.parametrize("rank", range(10))
@pytest.mark.parametrize("array", [torch.as_tensor, np.array], ids=["torch", "NumPy"])
def test_every_rank_is_taken_or_left_as_python_has_it(rank: int, array: Any, dispatch: str) -> None:
    kernel, x = fresh(moved), array(np.ones([2] * rank, np.float32))
    outcomes = [outcome(kernel, [x, array(np.zeros([2] * rank, np.float32))], {}) for _ in range(5)]
    assert outcomes[1:] == outcomes[:1] * 4


def test_axes_of_one_and_of_none_may_have_any_stride() -> None:
    column, empty = torch.as_strided(ones(64), (4, 1), (3, 7)), torch.as_strided(ones(64), (0, 8), (5, 3))
    kernel, move, out = fresh(add), fresh(moved), torch.zeros(4, 1)
    for _ in range(4):
        kernel(column, column, out)
        move(empty, torch.zeros(0, 8))
    assert (out == 3.0).all()
    assert took(kernel, column, column, torch.as_strided(torch.zeros(64), (4, 1), (2, 9)))


def in_rows(x: pl.Tensor[[M, 8], pl.FP32], y: pl.Tensor[[M, 8], pl.FP32], out: pl.Out[pl.Tensor[[M, 8], pl.FP32]]):
    for row in pl.range(0, M, 4):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [row, 0], [4, 8]) + pl.load(y, [row, 0], [4, 8]), [row, 0], out)
    return out


def test_dynamic_axes_share_a_program_and_have_to_agree(dispatch: str) -> None:
    kernel = fresh(in_rows)
    warm(kernel, ones(), ones(), torch.zeros(4, 8))
    warm(kernel, ones(), ones())
    for count in (1, 3, 8, 13, 64, 0):
        x = torch.arange(8.0 * count).reshape(count, 8)
        for _ in range(3):
            out = torch.zeros(count, 8)
            kernel(x, x, out)
            assert torch.equal(out, 2.0 * x) and torch.equal(kernel(x, x), 2.0 * x)
        assert dispatch == "python" or (took(kernel, x, x, out) and took(kernel, x, x))
    assert kernel.cache_info().compiles <= 1
    for shapes in ((4, 5, 4), (5, 4, 4), (4, 4, 5), (4, 5)):
        given = [ones(n, 8) for n in shapes]
        assert outcome(kernel, given, {}) == outcome(fresh(in_rows), given, {})
    with pytest.raises(ValueError, match="expects shape"):
        kernel(ones(4, 9), ones(4, 9), ones(4, 9))


def test_there_is_an_end_to_what_is_remembered() -> None:
    kernel = fresh(in_rows)

    def growth(first: int) -> int:
        gc.collect()
        before = sys.getallocatedblocks()
        for count in range(first, first + 1100):
            x = torch.ones(count, 8)
            assert kernel(x, x)[-1, -1] == 2.0
        gc.collect()
        return sys.getallocatedblocks() - before

    at_first = growth(1)
    assert growth(1101) < max(at_first / 2, 5000)


# numbers


def scaled(x: pl.Tensor, n: pl.FP32, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], x.shape) * n, [0, 0], out)
    return out


def counted(x: pl.Tensor, n: pl.INT64, flag: bool, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], x.shape)
        if flag:
            t = t * 2.0
        pl.store(t * pl.cast(n, pl.FP32), [0, 0], out)
    return out


def optional(x: pl.Tensor, y: pl.Tensor | None, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], x.shape)
        if y is not None:
            t = t + pl.load(y, [0, 0], y.shape)
        pl.store(t, [0, 0], out)
    return out


def test_numbers_are_told_apart_by_type_and_bits(dispatch: str) -> None:
    kernel, x, out = fresh(scaled), ones(), torch.zeros(4, 8)
    numbers = [2.0, 0.0, -0.0, float("nan"), float("inf"), 1e30]
    for value in numbers:
        warm(kernel, x, value, out)
    compiles = kernel.cache_info().misses
    for value in (*numbers, float("nan")):
        assert took(kernel, x, value, out) or dispatch == "python"
        expected = torch.full((4, 8), value)
        assert torch.equal(out.view(torch.int32), expected.view(torch.int32)) or (value != value and out.isnan().all())
    assert kernel.cache_info().misses == compiles
    kernel(x, 2, out)
    assert (out == 2.0).all() and kernel.cache_info().misses == compiles + 1


def test_zeros_are_told_apart_whatever_came_first(dispatch: str) -> None:
    kernel, x, out = fresh(scaled), ones(), torch.zeros(4, 8)
    warm(kernel, x, 2, out)
    for value in (0.0, -0.0, 2.0, 2) * 3:
        kernel(x, value, out)
        assert torch.equal(out.view(torch.int32), torch.full((4, 8), float(value)).view(torch.int32))


def test_integers_of_any_size_are_taken_or_refused(dispatch: str) -> None:
    kernel, x, out = fresh(counted), ones(), torch.zeros(4, 8)
    for n in (3, -3, 2**31, 2**62):
        warm(kernel, x, n, False, out)
        assert (out == float(n)).all()
    for n in (2**63, -(2**63) - 1, 2**64, 10**30):
        with pytest.raises(TypeError, match="cannot hold"):
            kernel(x, n, False, out)
    for wrong in (True, 3.0, "3", None, [3], 3j):
        with pytest.raises(TypeError, match="`n` is"):
            kernel(x, wrong, False, out)
    assert not took(kernel, x, np.int64(3), False, out) and (out == 3.0).all()


def test_bools_are_no_integers_and_none_is_a_kind_of_its_own(dispatch: str) -> None:
    kernel, either, x, out = fresh(counted), fresh(optional), ones(), torch.zeros(4, 8)
    for flag in (True, False, True):
        warm(kernel, x, 1, flag, out)
        assert (out == 1.0 + flag).all()
    for y in (None, x, None):
        warm(either, x, y, out)
        assert (out == (1.0 if y is None else 2.0)).all()


def test_the_numbers_of_programs_are_checked_and_few_are_remembered() -> None:
    program, x = ir.compile(program_of(HALVES)), rows(8)
    out = np.zeros_like(x)
    for _ in range(4):
        program(x, 0, out)
    for wrong in (0.0, True, "0", 1 << 70):
        with pytest.raises(TypeError, match="`n` is a scalar"):
            program(x, wrong, out)
    for number in range(-400, 0):
        with pytest.raises(errors.ExecutionError):
            program(x, number, out)
    for _ in range(4):
        program(x, 0, out)
    assert frames(program, x, 0, out) <= FEW or not IS_NATIVE


# names, counts, defaults and outputs left out


def both(x: pl.Tensor, low: pl.Out[pl.Tensor], high: pl.Out[pl.Tensor], n: pl.FP32 = 1.0):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [4, 8])
        pl.store(t - n, [0, 0], low)
        pl.store(t + n, [0, 0], high)
    return high, low


def corner(x: pl.Tensor[[4, 8], pl.FP32], out: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [4, 8]), [0, 0], out)
    return out


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


def twice(x: pl.Tensor, out: pl.Out[pl.Tensor], a: pl.FP32 = 1.0, b: pl.FP32 = 1.0):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [4, 8]) * a + b, [0, 0], out)
    return out


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


# what a kernel reads


def configured(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], x.shape) * CFG.k, [0, 0], out)
    return out


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


# what a program writes, and what goes wrong in it


def either(x: pl.Tensor, y: pl.Tensor | None, which: bool, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [4, 8])
        if y is not None:
            if which:
                pl.store(t * 2.0, [0, 0], y)
            else:
                t = t + pl.load(y, [0, 0], [4, 8])
        pl.store(t, [0, 0], out)
    return out


def picked(x: pl.Tensor, index: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        i = pl.cast(pl.read(index, [0]), pl.INDEX)
        pl.store(pl.load(x, [i, 0], [1, 8]), [0, 0], out)
    return out


def test_what_one_program_writes_is_checked_for_all(dispatch: str) -> None:
    kernel = fresh(either)
    x, y, out = (np.ones((4, 8), np.float32) for _ in range(3))
    for which in (False, True):
        for _ in range(4):
            kernel(x, y, which, out)
    sealed = zoo.sealed(np.ones((4, 8), np.float32))
    with pytest.raises(ValueError, match="`y` is written, but the array given is read-only"):
        kernel(x, sealed, True, out)
    assert (sealed == 1.0).all()
    kernel(x, sealed, False, out)
    with pytest.raises(ValueError, match="shares memory"):
        kernel(x, x, True, out)


def test_an_error_of_a_running_program_is_the_same_each_time(dispatch: str) -> None:
    kernel, x, out = fresh(picked), ones(), torch.zeros(1, 8)
    right, wrong = (torch.tensor([n], dtype=torch.int32) for n in (1, 9))
    first = outcome(kernel, [x, wrong, out], {})
    assert first[1] == "ExecutionError" and "in kernel `picked`: axis 0: a load starts outside the tensor" in first[2]
    warm(kernel, x, right, out)
    assert [outcome(kernel, [x, wrong, out], {})[:3] for _ in range(4)] == [first[:3]] * 4
    assert took(kernel, x, right, out) or dispatch == "python"


# settings


def test_settings_are_looked_at_at_every_call(monkeypatch: pytest.MonkeyPatch, dispatch: str) -> None:
    kernel, x, out = fresh(add), ones(), torch.zeros(4, 8)
    warm(kernel, x, x, out)
    warm(kernel, x, x)
    for name, value, programs in [
        ("TILEWRIGHT_CHECKED", "off", 2), ("TILEWRIGHT_CHECKED", "on", 2), ("TILEWRIGHT_CHECKED", "0", 2),
        ("TILEWRIGHT_CHECKED", "1", 2), ("TILEWRIGHT_NUM_THREADS", "3", 2), ("TILEWRIGHT_NUM_THREADS", "1", 2),
        ("TILEWRIGHT_CHECKED", "off", 2),
    ]:  # fmt: skip
        monkeypatch.setenv(name, value)
        assert not took(kernel, x, x, out)
        warm(kernel, x, x, out)
        assert (warm(kernel, x, x) == 3.0).all() and kernel.cache_info().currsize == programs
    monkeypatch.setenv("TILEWRIGHT_CHECKED", "maybe")
    for args in ((x, x, out), (x, x)):
        with pytest.raises(ValueError, match="TILEWRIGHT_CHECKED must be one of"):
            kernel(*args)
    monkeypatch.delenv("TILEWRIGHT_CHECKED")
    monkeypatch.delenv("TILEWRIGHT_NUM_THREADS")
    warm(kernel, x, x, out)


@pytest.mark.parametrize("subject", SUBJECTS)
def test_a_change_of_threads_is_followed(subject: str, monkeypatch: pytest.MonkeyPatch, dispatch: str) -> None:
    monkeypatch.delenv("TILEWRIGHT_NUM_THREADS", raising=False)
    call, wanted = SUBJECTS[subject](), cold(subject, "in place", "dense", "x")

    def works(times: int = 5) -> None:
        assert all(outcome(call, *STYLES["in place"](values())) == wanted for _ in range(times))

    works()
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(before + 1)
        works()
    finally:
        torch.set_num_threads(before)
    for count in ("3", "1"):
        monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", count)
        works(100)
        if dispatch == "native" and IS_NATIVE:
            assert frames(call, *STYLES["in place"](values())[0]) <= FEW
    monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", "none")
    with pytest.raises(ValueError, match="TILEWRIGHT_NUM_THREADS must be a positive number, got 'none'"):
        call(*values().values())


def test_configurations_count_by_what_changes_code(dispatch: str) -> None:
    kernel, x, out = fresh(add), ones(), torch.zeros(4, 8)
    same = [None, RunConfig(), RunConfig(), RunConfig(device_id=1, rtol=1e-3)]
    for count, configs in enumerate([same, [RunConfig(platform="interpret")] * 2]):
        for config in (*configs, *configs):
            out.zero_()
            kernel(x, x, out, config=config)
            assert (out == 3.0).all() and kernel.cache_info().misses == count + 1
            assert (kernel(x, x, config=config) == 3.0).all()
    warm(kernel, x, x, out)
    assert not took(kernel, x, x, out, config=RunConfig())


def test_hits_of_all_ways_are_counted_and_forgotten_together(dispatch: str) -> None:
    kernel, x, out = fresh(moved), ones(), torch.zeros(4, 8)
    for _ in range(2):
        for calls in range(1, 10):
            kernel(x, out)
            assert kernel.cache_info()[:2] == (calls - 1, 1) and kernel.cache_info().currsize == 1
        kernel.cache_clear()
        assert kernel.cache_info() == (0, 0, 0, 0)


# threads, forks, the collector


def running(threads: int, work: Callable[[int], None]) -> None:
    """Run some work in threads, and raise what any of them raised."""
    failures: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            failures.append(error)

    started = [threading.Thread(target=guarded, args=(n,)) for n in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join(120)
    assert not any(thread.is_alive() for thread in started)
    if failures:
        raise failures[0]


@pytest.fixture
def busy() -> Iterator[None]:
    """Threads that take turns as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def test_of_many_threads_one_compiles(busy: None, dispatch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", "off")
    kernel, barrier = fresh(add), threading.Barrier(8)

    def work(number: int) -> None:
        barrier.wait()
        for _ in range(20):
            out = torch.zeros(4, 8)
            kernel(ones(), ones(), out)
            assert (out == 3.0).all()

    running(8, work)
    assert kernel.cache_info()[1:3] == (1, 1)


def test_a_kernel_may_be_dropped_while_it_runs(busy: None) -> None:
    """The code lives as long as any call of it."""
    alive: list[Any] = []

    def work(number: int) -> None:
        big, out = torch.ones(64, 1024), torch.zeros(64, 1024)
        for _ in range(2):
            kernel = fresh(add)
            alive.append(weakref.ref(kernel))
            for _ in range(4):
                kernel(big, big, out)
            inner = [threading.Thread(target=kernel, args=(big, big, torch.zeros(64, 1024))) for _ in range(3)]
            for thread in inner:
                thread.start()
            del kernel
            gc.collect()
            for thread in inner:
                thread.join()
            assert (out == 3.0).all()

    running(3, work)
    gc.collect()
    assert not any(reference() is not None for reference in alive)


@pytest.mark.parametrize("subject", SUBJECTS)
def test_what_nobody_holds_is_forgotten(subject: str) -> None:
    call = SUBJECTS[subject]()
    for _ in range(5):
        call(*values().values())
    held = weakref.ref(call)
    del call
    gc.collect()
    assert held() is None


def test_the_cache_may_be_cleared_while_kernels_run(busy: None) -> None:
    kernel = fresh(add)

    def work(number: int) -> None:
        x = torch.ones(64, 1024)
        for n in range(30):
            out = torch.zeros(64, 1024)
            kernel(x, x, out)
            assert (out == 3.0).all()
            if number == 0 and n % 5 == 0:
                kernel.cache_clear()
                gc.collect()

    running(4, work)


class Slow:
    """A value that takes one thread as long to read as somebody wants, once it is armed."""

    def __init__(self) -> None:
        self.armed, self.reading, self.go_on = False, threading.Event(), threading.Event()

    @property
    def k(self) -> float:
        if self.armed:
            self.armed = False
            self.reading.set()
            self.go_on.wait(60)
        return 2.0


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_forked_in_the_middle_of_a_call_makes_and_compiles_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow()
    kernel = fresh(configured, CFG=slow)
    kernel(ones(), torch.zeros(4, 8))
    slow.armed = True
    thread = threading.Thread(target=kernel, args=(ones(), torch.zeros(4, 8)))
    thread.start()
    assert slow.reading.wait(60)

    def child() -> bool:
        out, other = torch.zeros(4, 8), torch.zeros(2, 8)
        calls = [threading.Thread(target=kernel, args=(ones(*o.shape), o)) for o in (out, other)]
        for one in calls:
            one.start()
            one.join(20)
        return not any(one.is_alive() for one in calls) and bool((out == 2.0).all() and (other == 2.0).all())

    try:
        assert in_a_child(child)
    finally:
        slow.go_on.set()
        thread.join()


def test_calls_that_fall_back_take_no_memory() -> None:
    kernel, x, y, out = fresh(add), ones(), ones(8, 4).t(), torch.zeros(4, 8)
    for _ in range(300):
        kernel(x, y=y, out=out)
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(1000):
        kernel(x, y=y, out=out)
    gc.collect()
    assert sys.getallocatedblocks() - before < 300


# methods


class Layer:
    def __init__(self, k: float) -> None:
        self.k = k

    @pl.jit
    def run(self, x: pl.Tensor, out: pl.Out[pl.Tensor], n: pl.FP32 = 0.0):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [0, 0], x.shape) * self.k + n, [0, 0], out)
        return out


def test_instances_live_no_longer_than_anybody_needs_them() -> None:
    layer, x, out = Layer(2.0), ones(), torch.zeros(4, 8)
    warm(layer.run, x, out)
    reference, run = weakref.ref(layer), layer.run
    del layer
    gc.collect()
    run(x, out)
    assert reference() is not None
    del run
    gc.collect()
    assert reference() is None


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_of_an_instance_has_programs_of_its_own(copied: Callable[[Layer], Layer], dispatch: str) -> None:
    layer, x, out = Layer(2.0), ones(), torch.zeros(4, 8)
    warm(layer.run, x, out)
    other = copied(layer)
    other.k = 3.0
    warm(other.run, x, out)
    assert (out == 3.0).all() and other.run is other.run is not layer.run
    layer.run(x, out)
    assert (out == 2.0).all()


def test_instances_have_programs_of_their_own(dispatch: str) -> None:
    first, second, x, out = Layer(2.0), Layer(3.0), ones(), torch.zeros(4, 8)
    for layer in (first, second, first):
        warm(layer.run, x, out)
        assert (out == layer.k).all() and (layer.run(x) == layer.k).all()
        assert (layer.run(n=2.0, x=x) == layer.k + 2.0).all()
    misses = second.run.cache_info().misses
    first.k = 5.0
    warm(first.run, x, out)
    assert (out == 5.0).all()
    second.run(x, out)
    assert (out == 3.0).all() and second.run.cache_info().misses == misses
    first.k = 2.0
    first.run(x, out)
    assert (out == 2.0).all()


# programs

X = rows(8)


def often(program: Any, *args: Any) -> Any:
    for _ in range(4):
        program(*args)
    return program


def test_a_program_that_is_called_often_stays_what_it_was() -> None:
    program = often(ir.compile(program_of(HALVES)), X, 0, np.zeros_like(X))
    assert isinstance(program, CompiledProgram) and type(program).__name__ == "CompiledProgram"
    assert repr(program) == "CompiledProgram('Halves', platform='cpu')"
    assert type(program).__doc__ == CompiledProgram.__doc__
    assert program(X, 0, out=np.zeros_like(X)) is None and program(X, 0, np.zeros_like(X), config=None) is None
    out = np.zeros_like(X)
    assert copy.copy(program)(X, 0, out) is None
    np.testing.assert_array_equal(out, X / 2)
    with pytest.raises(errors.ExecutionError) as again:
        program(X, 3, out)
    with pytest.raises(errors.ExecutionError) as first:
        ir.compile(program_of(HALVES))(X, 3, out)
    assert str(again.value).partition(":")[2] == str(first.value).partition(":")[2]  # but for the name of the text


def test_entries_are_warm_each_on_its_own() -> None:
    program, x, y = ir.compile(program_of(UNDECLARED)), np.zeros(4, np.int32), np.arange(4, dtype=np.int32)
    often(program, x, y)
    assert x[0] == 1 and (frames(program, x, y) <= FEW or not IS_NATIVE)
    several = ir.compile(program_of(SEVERAL))
    often(several.repeat, torch.ones(2, dtype=torch.bfloat16), torch.zeros(5, dtype=torch.bfloat16))
    with pytest.raises(TypeError, match="several entries"):
        several(x)
    ones_ = np.ones(4, np.int32)
    assert [several.double(ones_, 1)[0] for _ in range(6)] == [2] * 6


@native_only
def test_first_calls_that_teach_nothing_are_no_hindrance() -> None:
    program, out = ir.compile(program_of(HALVES)), np.zeros_like(X)
    often(program, X, np.int64(0), out)
    for _ in range(20):
        program(X, 0, out)
    assert frames(program, X, 0, out) == 0


def test_a_subclass_that_looks_at_its_calls_sees_them_all() -> None:
    class Counted(CompiledProgram):
        calls = 0

        def __call__(self, *args: Any, **named: Any) -> Any:
            self.calls += 1
            return super().__call__(*args, **named)

    made = ir.compile(program_of(HALVES))
    assert made.artifact is not None
    program: Any = Counted.of(made.artifact)
    often(program, X, 0, np.zeros_like(X))
    often(program, X, 0, np.zeros_like(X))
    assert program.calls == 8


WITHOUT_LLVM = """
import os, sys
import numpy as np
from tilewright.ir import CompiledProgram
program = CompiledProgram.load(sys.argv[1])
x, out = np.ones((8, 64), np.float32), np.zeros((8, 64), np.float32)
for _ in range(50):
    program(x, 0, out)
assert "llvmlite" not in sys.modules, "a few calls do without"
child = os.fork()
if not child:
    sys.modules["llvmlite"] = None
for _ in range(500):
    out[:] = 0
    program(x, 0, out)
    assert out.sum() == 256
if not child:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0, "there may be none at all"
assert "llvmlite" in sys.modules, "many calls are worth it"
"""


@native_only
def test_a_loaded_program_loads_llvm_late_or_never(tmp_path: Path) -> None:
    ir.compile(program_of(HALVES)).save(tmp_path / "saved")
    command = [sys.executable, "-c", WITHOUT_LLVM, str(tmp_path / "saved")]
    environment = {**os.environ, "TILEWRIGHT_CACHE_DIR": "off"}  # which may hold what LLVM would make
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


# anything, at random


def updated(x: pl.Tensor, y: pl.InOut[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [4, 8]) + pl.load(y, [0, 0], [4, 8])
        pl.store(t, [0, 0], y)
    return y


def factored(x: pl.Tensor[[4, 8], pl.FP32], n: pl.FP32, out: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [4, 8]) * n * CFG.k * CFG.values[0], [0, 0], out)
    return out


def shifted(x: pl.Tensor, out: pl.Out[pl.Tensor], n: pl.FP32 = 1.0, twice: bool = False):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [4, 8]) + n * K
        if twice:
            t = t + n
        pl.store(t, [0, 0], out)
    return out


def some(rng: random.Random, shape: tuple[int, int] = (4, 8)) -> zoo.Maker:
    return zoo.tensor(rng, shape)


MAKERS: dict[Any, Callable[[random.Random], list[zoo.Maker]]] = {
    add: lambda rng: [some(rng) for _ in range(3)],
    factored: lambda rng: [some(rng), zoo.number(rng), some(rng)],
    in_rows: lambda rng: [some(rng, (rng.choice([4, 4, 4, 1, 7, 0]), 8)) for _ in range(3)],
    updated: lambda rng: [some(rng) for _ in range(2)],
    either: lambda rng: [
        some(rng), rng.choice([some(rng), lambda: None]), zoo.chosen(rng, [True, False, 1]), some(rng),
    ],
    shifted: lambda rng: [
        some(rng), some(rng), zoo.number(rng), zoo.chosen(rng, [True, False, False]),
    ][: rng.choice([2, 2, 3, 4])],
}  # fmt: skip
BY_NAME = {function.__name__: function for function in MAKERS}
CHANGES = ["K", "CFG.k", "CFG", "values", "unused", "default"]
WAYS = {"native": "native", "python": "python", "cold": "native"}
"""Ways to make a call, with how it is dispatched; in the last one every call has a configuration, and none is warm."""


class Way:
    """Kernels called in one way, with what they read of their own."""

    def __init__(self, name: str, policy: str) -> None:
        self.name = name
        self.outside: dict[str, Any] = {**globals(), "CFG": types.SimpleNamespace(k=2.0, values=[2.0])}
        self.kernels = {name: copied(function, self.outside, drift=policy) for name, function in BY_NAME.items()}

    def change(self, what: str, value: float) -> None:
        match what:
            case "CFG.k":
                self.outside["CFG"].k = value
            case "CFG":
                self.outside["CFG"] = types.SimpleNamespace(k=value, values=[value])
            case "values":
                self.outside["CFG"].values[0] = value
            case "default":
                self.kernels["shifted"].function.__defaults__ = (value, False)
            case _:
                self.outside[what] = float(str(value))

    def call(self, name: str, args: list[Any], named: dict[str, Any]) -> tuple[Any, ...]:
        kernel = self.kernels[name]
        if self.name != "cold":
            return outcome(kernel, args, named)
        given = outcome(lambda *a, **n: kernel(*a, **n, config=RunConfig()), args, named)
        return given


def arranged(name: str, rng: random.Random) -> Callable[[], tuple[list[Any], dict[str, Any]]]:
    """Return a maker of some arguments of a kernel, by position or by name, sometimes too many or too few."""
    makers = MAKERS[BY_NAME[name]](rng)
    if rng.random() < 0.05:
        makers = [zoo.anything(rng) for _ in range(rng.choice([0, 1, len(makers) - 1, len(makers) + 1]))]
    elif rng.random() < 0.1:
        makers[rng.randrange(len(makers))] = zoo.anything(rng)
    names = list(BY_NAME[name].__annotations__)
    if rng.random() < 0.3 and "out" in names and len(makers) > (place := names.index("out")):
        del makers[place], names[place]  # to have the output made
    together = zoo.shared(makers, rng)
    by_name = rng.randrange(1, 4) if rng.random() < 0.3 and len(makers) > 2 else 0
    order = rng.sample(range(by_name), by_name)

    def make() -> tuple[list[Any], dict[str, Any]]:
        args = together()
        first = max(len(args) - by_name, 0)
        named = list(zip(names[first:], args[first:], strict=False))
        return args[:first], dict(named[k] for k in order if k < len(named))

    return make


@native_only
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("policy", ["raise", "recompile"])
@pytest.mark.parametrize("seed", [0, 1])
def test_all_ways_agree_about_anything(policy: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, ways = random.Random(seed), {name: Way(name, policy) for name in WAYS}
    calls, refused = 0, 0
    for case in range(400):
        name = rng.choice(list(BY_NAME))
        make = arranged(name, rng)
        for _ in range(rng.choice([1, 2, 5])):
            if rng.random() < 0.08:
                what, value = rng.choice(CHANGES), rng.choice([2.0, 2.0, 2.0, 1.0])
                for way in ways.values():
                    way.change(what, value)
            outcomes: dict[str, Any] = {}
            for way in ways.values():
                monkeypatch.setenv("TILEWRIGHT_DISPATCH", WAYS[way.name])
                direct = way.kernels[name].call_info().direct
                outcomes[way.name] = way.call(name, *make())
                if way.kernels[name].call_info().direct > direct:
                    assert outcomes[way.name][0] == "gives" and way.name != "cold"
            for way in ("native", "python"):
                assert outcomes[way] == outcomes["cold"], f"case {case} of seed {seed}: {name}"
            calls, refused = calls + 1, refused + (outcomes["cold"][0] == "raises")
    assert sum(kernel.call_info().direct for kernel in ways["native"].kernels.values()) > calls // 10
    assert calls // 10 < refused < calls
    for name in BY_NAME:
        found = {way.name: way.kernels[name].cache_info() for way in ways.values()}
        misses = {name: (info.misses, info.currsize) for name, info in found.items()}
        assert len(set(misses.values())) == 1, f"{name} was not found as often in all ways: {misses}"
