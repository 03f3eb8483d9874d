"""Anything, at random: all ways to make a call agree about it."""

# pyright: basic, reportInvalidTypeForm=false, reportArgumentType=false
from __future__ import annotations

import random
import types
from collections.abc import Callable
from typing import Any

import pytest
from unit.call import warming, zoo
from unit.call.subjects import copied, outcome
from unit.call.warming import (
    CFG,
    K,
    Unread,
    add,
    either,
    in_rows,
    native_only,
)

import tilewright.language as pl

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # torch's own, about sparse and quantized tensors


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
"""Ways to make a call, with how it is dispatched; in the last one every call has a configuration for Python alone."""


class Way:
    """Kernels called in one way, with what they read of their own."""

    def __init__(self, name: str, policy: str) -> None:
        self.name = name
        self.outside: dict[str, Any] = {**vars(warming), **globals(), "CFG": types.SimpleNamespace(k=2.0, values=[2.0])}
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
        given = outcome(lambda *a, **n: kernel(*a, **n, config=Unread()), args, named)
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
