"""Random functions that launch hand-written kernels on views that may share memory, among statements of their own.

Each is a list of steps, of which NumPy does one after the other what the kernels do tile by tile.
"""

# pyright: reportUnknownParameterType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy
from property.product_grids import Draw

from tilewright import ir, pto
from tilewright.frontend.text import only_program, parse
from tilewright.runtime import RunConfig

np = cast("Any", numpy)
ROWS, COLS, TALL = 32, 64, 8
TILE = TALL * COLS
Floats: Any = pto.ptr(pto.f32, "gm")
Count: Any = pto.i32


def _tile(pointer: Any, number: Any) -> Any:
    view = pto.make_tensor_view(pointer, shape=[TALL * 64, COLS], strides=[COLS, 1])
    return pto.partition_view(view, offsets=[TALL * number, 0], sizes=[TALL, COLS])


@pto.jit()
def added(x: Floats, y: Floats, tiles: Count) -> None:
    """Write y = y / 2 + x, tile after tile."""
    a, b = (pto.alloc_tile(shape=[TALL, COLS], dtype=pto.f32) for _ in range(2))
    for number in range(0, tiles, 1):
        pto.tile.load(_tile(x, number), a)
        pto.tile.load(_tile(y, number), b)
        pto.tile.muls(b, 0.5, b)
        pto.tile.add(a, b, b)
        pto.tile.store(b, _tile(y, number))


@pto.jit()
def woven(x: Floats, y: Floats, tiles: Count) -> None:
    """Write y = x * 3, and then y = x + (what x is now), tile after tile, from the last to the first."""
    a, b = (pto.alloc_tile(shape=[TALL, COLS], dtype=pto.f32) for _ in range(2))
    for number in range(0, tiles, 1):
        at = tiles - 1 - number
        pto.tile.load(_tile(x, at), a)
        pto.tile.muls(a, 3.0, b)
        pto.tile.store(b, _tile(y, at))
        pto.tile.load(_tile(x, at), b)
        pto.tile.add(a, b, b)
        pto.tile.store(b, _tile(y, at))


@pto.jit()
def copied(x: Floats, y: Floats, tiles: Count) -> None:
    """Write y = (what x was before) + 1, twice, of the first tile: from a local copy."""
    a, b = (pto.alloc_tile(shape=[TILE], dtype=pto.f32) for _ in range(2))
    pto.tile.load(_row(x, 0), a)
    for _ in (0, 1):
        with pto.simd():
            mask = pto.make_mask(pto.f32, pto.PAT.ALL)
            for i in range(pto.const(0), TILE, 64):
                pto.vsts(pto.vadds(pto.vlds(a[i:]), 1.0, mask), b[i:], mask)
        pto.tile.store(b, _row(y, 0))


def _row(pointer: Any, number: Any) -> Any:
    view = pto.make_tensor_view(pointer, shape=[1, 64 * TILE], strides=[64 * TILE, 1])
    return pto.partition_view(view, offsets=[0, TILE * number], sizes=[1, TILE])


def _copied(x: Any, y: Any, tiles: int) -> None:
    y[:TILE] = x[:TILE].copy() + np.float32(1)


def _added(x: Any, y: Any, tiles: int) -> None:
    for part in (slice(TILE * n, TILE * (n + 1)) for n in range(tiles)):
        y[part] = np.float32(0.5) * y[part] + x[part].copy()


def _woven(x: Any, y: Any, tiles: int) -> None:
    for part in (slice(TILE * n, TILE * (n + 1)) for n in reversed(range(tiles))):
        before = x[part].copy()
        y[part] = before * np.float32(3)
        y[part] = before + x[part].copy()


MEANINGS: dict[str, Callable[[Any, Any, int], None]] = {"added": _added, "woven": _woven, "copied": _copied}
VIEWS = ((0, ROWS), (0, 16), (16, ROWS), (8, 24), (4, 20), (3, 19), (0, 8), (5, 13))
"""From which row to which."""


class Launches:
    """A random function: its lines, and what it does to the arrays of its parameters."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self.lines: list[str] = []
        self.steps: list[Callable[[dict[str, Any]], None]] = []
        for number in range(draw(2, 6)):
            self._step(number)

    def _step(self, number: int) -> None:
        kernel, times = tuple(MEANINGS)[self._draw(0, 2)], self._draw(1, 2)
        (x, low), (y, other) = (self._view(f"{name}{number}") for name in "xy")
        tiles = min(self._draw(1, 4), *(len(range(*VIEWS[each])) * COLS // TILE for each in (low, other)))
        launch = f"{kernel}[1, None](x{number}, y{number}, {tiles})"
        self.lines += [f"for _ in pl.range({times}):", f"    {launch}"] if times > 1 else [launch]

        def step(arrays: dict[str, Any]) -> None:
            for _ in range(times):
                MEANINGS[kernel](_seen(arrays[x], low), _seen(arrays[y], other), tiles)

        self.steps.append(step)
        if not self._draw(0, 2):
            self._scaled()

    def _view(self, name: str) -> tuple[str, int]:
        owner, which = "ab"[self._draw(0, 1)], self._draw(0, len(VIEWS) - 1)
        low, high = VIEWS[which]
        taken = owner if (low, high) == (0, ROWS) and self._draw(0, 1) else f"{owner}[{low}:{high}]"
        shape = f"[{(high - low) // 2}, {2 * COLS}]"
        is_turned = (high - low) % 2 == 0 and not self._draw(0, 2)
        self.lines.append(f"{name} = pl.reshape({taken}, {shape})" if is_turned else f"{name} = {taken}")
        return owner, which

    def _scaled(self) -> None:
        owner = "ab"[self._draw(0, 1)]
        self.lines += [
            f"for r in pl.parallel(0, {ROWS}, 8):",
            "    with pl.at(level=pl.Level.CORE_GROUP):",
            f"        pl.store(pl.load({owner}, [r, 0], [8, {COLS}]) - 0.25, [r, 0], {owner})",
        ]

        def step(arrays: dict[str, Any]) -> None:
            arrays[owner] -= np.float32(0.25)

        self.steps.append(step)

    @property
    def text(self) -> str:
        """The function as a program."""
        tensor = f"pl.InOut[pl.Tensor[[{ROWS}, {COLS}], pl.FP32]]"
        head = f"    def main(self, a: {tensor}, b: {tensor}):"
        decorated = [
            "import tilewright.language as pl",
            "",
            "@pl.program",
            "class Launched:",
            "    @pl.function(type=pl.FunctionType.Orchestration)",
            head,
        ]
        return "\n".join([*decorated, *(f"        {line}" for line in self.lines), ""])


def _seen(array: Any, which: int) -> Any:
    low, high = VIEWS[which]
    return array[low:high].reshape(-1)


def check_launches(draw: Draw, origin: str) -> None:
    """Check that the interpreter and native code do what NumPy does."""
    made = Launches(draw)
    program = only_program(parse(made.text, {"added": added, "woven": woven, "copied": copied}, origin))
    rng = np.random.default_rng(0)
    given = {name: rng.normal(size=(ROWS, COLS)).astype(np.float32) for name in "ab"}
    wanted = {name: array.copy() for name, array in given.items()}
    for step in made.steps:
        step(wanted)
    for platform in ("interpret", "cpu"):
        found = {name: array.copy() for name, array in given.items()}
        ir.compile(program, platform=platform)(*found.values(), config=RunConfig(platform=platform))
        for name, array in found.items():
            np.testing.assert_allclose(array, wanted[name], rtol=1e-5, atol=1e-5, err_msg=f"{platform}\n{made.text}")
