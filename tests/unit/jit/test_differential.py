"""The native way in, the generated one and the one through Python: the same results, the same errors, for anything.

One kernel is called in three ways on equal arguments. The ways must agree about every element and every word, and the
dispatcher must never take a call that Python refuses.
"""

# pyright: basic, reportInvalidTypeForm=false, reportPrivateUsage=false
from __future__ import annotations

import random
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from unit.jit import zoo

import tilewright.language as pl
from tilewright.call.builtin import is_available
from tilewright.jit.function import JITFunction

pytestmark = [
    pytest.mark.skipif(not is_available(), reason="there is no native dispatcher here"),
    pytest.mark.filterwarnings("ignore"),
]

CASES = 2500
M = pl.dynamic("M")
K = 1.0
CFG = types.SimpleNamespace(k=1.0, values=[1.0])
TABLE = {"k": 1.0}


def add(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], x.shape) + pl.load(y, [0, 0], y.shape) * K
        pl.store(t, [0, 0], out)
    return out


def scale(x: pl.Tensor[[4, 8], pl.FP32], n: pl.FP32, out: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [4, 8]) * n * CFG.k * CFG.values[0], [0, 0], out)
    return out


def rows(x: pl.Tensor[[M, 8], pl.FP32], y: pl.Tensor[[M, 8], pl.FP32], out: pl.Out[pl.Tensor[[M, 8], pl.FP32]]):
    for row in pl.range(0, M, 4):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [row, 0], [4, 8]) * TABLE["k"]
            pl.store(t + pl.load(y, [row, 0], [4, 8]), [row, 0], out)
    return out


def updated(x: pl.Tensor, y: pl.InOut[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [4, 8]) + pl.load(y, [0, 0], [4, 8])
        pl.store(t, [0, 0], y)
    return y


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


def shifted(x: pl.Tensor, out: pl.Out[pl.Tensor], n: pl.FP32 = 1.0, twice: bool = False):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [4, 8]) + n * K
        if twice:
            t = t + n
        pl.store(t, [0, 0], out)
    return out


MAKERS: dict[str, Callable[[random.Random], list[zoo.Maker]]] = {
    "add": lambda rng: [zoo.tensor(rng, (4, 8)) for _ in range(3)],
    "scale": lambda rng: [zoo.tensor(rng, (4, 8)), zoo.number(rng), zoo.tensor(rng, (4, 8))],
    "rows": lambda rng: [zoo.tensor(rng, (rng.choice([4, 4, 4, 1, 7, 0]), 8)) for _ in range(3)],
    "updated": lambda rng: [zoo.tensor(rng, (4, 8)) for _ in range(2)],
    "either": lambda rng: [
        zoo.tensor(rng, (4, 8)), rng.choice([zoo.tensor(rng, (4, 8)), lambda: None]),
        zoo.chosen(rng, [True, False, 1]), zoo.tensor(rng, (4, 8)),
    ],
    "shifted": lambda rng: [
        zoo.tensor(rng, (4, 8)), zoo.tensor(rng, (4, 8)), zoo.number(rng), zoo.chosen(rng, [True, False, False]),
    ][: rng.choice([2, 2, 3, 4])],
}  # fmt: skip
FUNCTIONS = {f.__name__: f for f in (add, scale, rows, updated, either, shifted)}


READ = ["K", "CFG.k", "CFG", "values", "TABLE", "unused", "default"]


class Way:
    """Kernels called in one way, with what they read of their own."""

    def __init__(self, name: str, policy: str) -> None:
        self.name = name
        self.outside = {**globals(), "CFG": types.SimpleNamespace(k=1.0, values=[1.0]), "TABLE": {"k": 1.0}}
        self.kernels: dict[str, Any] = {name: self._made(name, policy) for name in FUNCTIONS}

    def _made(self, name: str, policy: str) -> Any:
        function = types.FunctionType(FUNCTIONS[name].__code__, self.outside, name, FUNCTIONS[name].__defaults__)
        function.__annotations__ = dict(FUNCTIONS[name].__annotations__)
        return pl.jit(drift=policy)(function)

    def change(self, what: str, value: float) -> None:
        match what:
            case "K":
                self.outside["K"] = float(str(value))
            case "CFG.k":
                self.outside["CFG"].k = value
            case "CFG":
                self.outside["CFG"] = types.SimpleNamespace(k=value, values=[value])
            case "values":
                self.outside["CFG"].values[0] = value
            case "TABLE":
                self.outside["TABLE"]["k"] = value
            case "default":
                self.kernels["shifted"].function.__defaults__ = (value, False)
            case _:
                self.outside["unused"] = value

    def call(self, name: str, args: list[Any], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Return what a call gives or raises, and what it leaves in its arguments."""
        kernel = self.kernels[name]
        try:
            result = JITFunction.__call__(kernel, *args, **kwargs) if self.name == "python" else kernel(*args, **kwargs)
            outcome = ("gives", contents(result))
        except Exception as error:
            outcome = ("raises", type(error).__name__, str(error))
        return (*outcome, *(contents(value) for value in (*args, *kwargs.values())))

    def hits(self, name: str) -> int:
        return self.kernels[name].call_info().direct


def contents(value: Any) -> Any:
    """Return what can be compared of an argument."""
    if isinstance(value, torch.Tensor):
        value = value.detach()
        if value.device.type != "cpu" or value.layout is not torch.strided or value.is_neg():
            return str(value.device), str(value.layout)
        if value.numel() and not value.untyped_storage().nbytes():
            return "freed"
        value = value.contiguous().clone().numpy()
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype.str, np.ascontiguousarray(value).tobytes()
    return repr(value)


@pytest.fixture(params=["raise", "recompile"])
def ways(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Way]]:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    found: dict[str, Way] = {}
    for name in ("native", "generated", "python"):
        found[name] = Way(name, request.param)
    yield found


def arranged(name: str, rng: random.Random) -> Callable[[], tuple[list[Any], dict[str, Any]]]:
    """Return a maker of some arguments of a kernel, by position or by name, sometimes too many or too few."""
    makers = MAKERS[name](rng)
    if rng.random() < 0.05:
        makers = [zoo.anything(rng) for _ in range(rng.choice([0, 1, len(makers) - 1, len(makers) + 1]))]
    elif rng.random() < 0.1:
        makers[rng.randrange(len(makers))] = zoo.anything(rng)
    names = list(FUNCTIONS[name].__annotations__)
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


@pytest.mark.parametrize("seed", [0, 1])
def test_all_ways_agree(ways: dict[str, Way], seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    taken = dict.fromkeys(ways, 0)
    calls, refused = 0, 0
    for case in range(CASES // 4):
        name = rng.choice(list(FUNCTIONS))
        make = arranged(name, rng)
        for _ in range(rng.choice([1, 2, 5])):
            if rng.random() < 0.08:
                what, value = rng.choice(READ), rng.choice([1.0, 1.0, 1.0, 2.0])
                for way in ways.values():
                    way.change(what, value)
            outcomes = {}
            for way in ways.values():
                monkeypatch.setenv("TILEWRIGHT_DISPATCH", "python" if way.name == "generated" else "native")
                before = way.hits(name)
                outcomes[way.name] = way.call(name, *make())
                if way.hits(name) > before:
                    taken[way.name] += 1
                    assert outcomes[way.name][0] == "gives"
            assert outcomes["native"] == outcomes["python"], f"case {case} of seed {seed}: {name}"
            assert outcomes["generated"] == outcomes["python"], f"case {case} of seed {seed}: {name}"
            calls, refused = calls + 1, refused + (outcomes["python"][0] == "raises")
    assert taken["native"] > calls // 10 and taken["generated"] and not taken["python"]
    assert calls // 10 < refused < calls
    for name in FUNCTIONS:
        found = {way.name: way.kernels[name].cache_info() for way in ways.values()}
        misses = {name: (info.misses, info.currsize) for name, info in found.items()}
        assert len(set(misses.values())) == 1, f"{name} was not found as often in all ways: {misses}"
