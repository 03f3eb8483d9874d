"""What tests of warm calls share: arguments, kernels to be made anew, and whether a call was warm."""

# pyright: basic, reportInvalidTypeForm=false, reportArgumentType=false
from __future__ import annotations

import os
import threading
import types
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import torch
from unit.call import zoo
from unit.call.subjects import IS_NATIVE, ROWS, SHAPE, STYLES, SUBJECTS, copied, outcome

import tilewright.language as pl
from tilewright.runtime import RunConfig

FEW = 16
"""More functions of Python than a warm call ever runs, and far fewer than a cold one does."""

native_only = pytest.mark.skipif(not IS_NATIVE, reason="there is no native dispatcher here")
K = 2.0
FLAG = True
CFG = types.SimpleNamespace(k=2.0, values=[2.0])
VALUES = [2.0]
M = pl.dynamic("M")


class Unread(RunConfig):
    """A configuration that only Python looks at."""

    @property
    def told(self) -> None:
        return None


def ones(*shape: int, dtype: Any = torch.float32) -> torch.Tensor:
    return torch.ones(shape or (4, 8), dtype=dtype)


def fresh(function: Any, policy: str = "raise", **outside: Any) -> Any:
    """Return a kernel with globals and a cache of its own."""
    return copied(function, {**function.__globals__, **outside}, drift=policy)


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


def add(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], x.shape) + pl.load(y, [0, 0], y.shape) * K, [0, 0], out)
    return out


def moved(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    out[:] = x
    return out


def in_rows(x: pl.Tensor[[M, 8], pl.FP32], y: pl.Tensor[[M, 8], pl.FP32], out: pl.Out[pl.Tensor[[M, 8], pl.FP32]]):
    for row in pl.range(0, M, 4):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [row, 0], [4, 8]) + pl.load(y, [row, 0], [4, 8]), [row, 0], out)
    return out


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


def twice(x: pl.Tensor, out: pl.Out[pl.Tensor], a: pl.FP32 = 1.0, b: pl.FP32 = 1.0):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [4, 8]) * a + b, [0, 0], out)
    return out


def configured(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], x.shape) * CFG.k, [0, 0], out)
    return out


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
