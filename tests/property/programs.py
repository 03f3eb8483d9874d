"""Programs: random, well-typed programs of the language as text, and arguments to run them with.

`programs()` is a Hypothesis strategy of texts for `pl.parse`: an orchestration function `main` and the helpers it
calls. Whatever a program writes into its tensors is determined by its arguments alone: it reads no unspecified data,
and the turns of its parallel loops and grids do not meet. So two ways of running it can be compared bit by bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray
from property import buffers, control, kernels, scopes, ways
from property.calls import Helper, Param, call
from property.operands import land, some_shape
from property.values import Value, fresh_root
from property.writer import DTYPES, Draw, Plane, Writer

from tilewright import dtypes as dt
from tilewright.core.enums import ParamDirection
from tilewright.core.expr import Symbol
from tilewright.core.op import OPS, Kind
from tilewright.core.program import Program
from tilewright.core.types import Extent, ScalarType, TensorType, Type, show_extent, tensor
from tilewright.dtypes import DataType

SYMBOLS = ("M", "N")
EXTENTS = (1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33, 40, 70)
"""Extents around the widths of vectors, and in between."""
Statement = Callable[[Writer], object]


KERNEL: list[Statement] = [
    *[kernels.load] * 6, *[kernels.compute] * 14, *[kernels.store] * 4, *[kernels.reshape] * 3, kernels.convert,
    kernels.select, *[kernels.multiply] * 2, kernels.assemble, kernels.fill, *[buffers.scalar] * 2, buffers.bounded,
    *[buffers.read] * 2, buffers.write, *[buffers.tensor_compute] * 3, buffers.array, *[control.loop] * 3,
    scopes.parallel, *[control.branch] * 3, scopes.covered, scopes.accumulate, *[ways.anything] * 4,
]  # fmt: skip
"""What a kernel does."""

CONTROL: list[Statement] = [
    *[scopes.scope] * 6, *[control.loop] * 3, scopes.parallel, *[control.branch] * 2, buffers.scalar, buffers.bounded,
    buffers.read, buffers.write, *[buffers.create] * 2, buffers.longer, *[buffers.view] * 2, buffers.array,
    scopes.covered, scopes.cluster, scopes.accumulate, ways.anything,
]  # fmt: skip
"""What an orchestration function does itself, besides calling helpers."""


@st.composite
def programs(draw: Any, budget: int = 40, about: Sequence[str] = (), risk: int = 0) -> str:
    """Return the text of a program of about `budget` statements.

    With `about`, one that uses those ops; with `risk`, one that may compute indices which lie nowhere.
    """
    return program(lambda low, high: draw(st.integers(low, high)), budget, about, risk)


def program(number: Draw, budget: int = 40, about: Sequence[str] = (), risk: int = 0) -> str:
    """Return the text of the program that choices lead to."""
    extents = tuple(EXTENTS[number(0, len(EXTENTS) - 1)] for _ in range(3))
    helpers = [_helper(number, extents, f"helper{index}", budget // 3, risk) for index in range(number(0, 2))]
    main = _main(number, extents, helpers, budget, about, risk)
    lines = [
        "import tilewright.language as pl",
        "",
        *(f'{s} = pl.dynamic("{s}")' for s in SYMBOLS),
        "",
        "",
        "@pl.program",
        "class P:",
    ]
    for text in [*(h.text for h in helpers), main]:
        lines += [*(f"    {line}" for line in text), ""]
    return "\n".join(lines)


def _shape(w: Writer, dynamic: int) -> tuple[Extent, ...]:
    """Return a shape, each of its extents dynamic in about `dynamic` cases of a hundred."""
    shape = some_shape(w, (2, 2, 2, 2, 2, 3, 1))
    return tuple(Symbol(w.pick(SYMBOLS)) if w.chance(dynamic) else extent for extent in shape)


def _params(w: Writer, dynamic: int) -> tuple[Param, ...]:
    """Return tensors to read, tensors to write and scalars; shapes repeat, so that values fit together."""
    shapes = [_shape(w, dynamic) for _ in range(3)]
    outputs = [ParamDirection.Out, ParamDirection.InOut]
    reads = [Param(f"x{i}", tensor(w.pick(shapes), w.pick(DTYPES)), ParamDirection.In) for i in range(w.number(1, 3))]
    writes = [Param(f"y{i}", tensor(w.pick(shapes), w.pick(DTYPES)), w.pick(outputs)) for i in range(w.number(1, 2))]
    writes.append(Param("z", tensor(some_shape(w), w.pick(DTYPES)), ParamDirection.InOut))
    kinds = [dt.INDEX, *(w.pick(buffers.SCALARS) for _ in range(w.number(0, 3)))]
    scalars = [Param(f"n{i}", ScalarType(dtype), ParamDirection.In) for i, dtype in enumerate(kinds)]
    return (*reads, *writes, *scalars)


def _visible(params: Sequence[Param], *, packed: bool) -> dict[str, Value]:
    """Return what a function knows of its parameters; a helper may be given views, which are not packed."""
    values: dict[str, Value] = {}
    for p in params:
        is_output = p.direction is not ParamDirection.In
        roots = fresh_root() if isinstance(p.type, TensorType) else frozenset[int]()
        readable = p.direction is not ParamDirection.Out
        values[p.name] = Value(
            p.name, p.type, fixed=is_output, roots=roots, readable=readable, writable=is_output, packed=packed
        )
    return values


def _written(params: Sequence[Param]) -> list[Param]:
    return [p for p in params if p.direction is not ParamDirection.In]


def _symbols(params: Sequence[Param]) -> tuple[str, ...]:
    found = {e.name for p in params if isinstance(p.type, TensorType) for e in p.type.shape if isinstance(e, Symbol)}
    return tuple(sorted(found))


def _helper(draw: Draw, extents: Sequence[int], name: str, budget: int, risk: int) -> Helper:
    kinds = [("InCore", Plane.KERNEL), ("InCore", Plane.KERNEL), ("Inline", Plane.CONTROL), ("Opaque", Plane.CONTROL)]
    kind, plane = kinds[draw(0, len(kinds) - 1)]
    w = Writer(draw, plane, budget, extents, {Plane.KERNEL: KERNEL, Plane.CONTROL: CONTROL}, risk=risk)
    params = _params(w, 35)
    w.values, w.symbols, w.indent = _visible(params, packed=False), _symbols(params), 1
    w.outputs = frozenset[int]().union(*(w.values[p.name].roots for p in _written(params)))
    grid = [p for p in _written(params) if isinstance(p.type, TensorType) and isinstance(p.type.shape[0], int)]
    if kind == "InCore" and grid and w.chance(25):
        return _grid(w, name, params, w.pick(grid))
    for p in _written(params):
        buffers.cover(w, w.values[p.name])
    returned: list[Param | Type] = []
    returned.extend(_written(params)[: w.number(0, 2)])
    shown = [p.name for p in _written(params)][: len(returned)]
    w.returns = ", ".join(shown) if kind == "InCore" else None
    w.body(6)
    if plane is Plane.KERNEL:
        scopes.finish(w)
    scalars = w.all(lambda v: v.is_scalar and v.type in (ScalarType(dt.INT32), ScalarType(dt.INDEX)) and not v.fixed)
    if scalars and not w.exits and w.chance(40):
        extra = w.pick(scalars)
        returned, shown = [*returned, extra.type], [*shown, extra.name]
    if shown:
        w.line(f"return {', '.join(shown)}")
    return Helper(name, kind, params, tuple(returned), 0, (*_head(name, kind, params), *w.lines))


def _grid(w: Writer, name: str, params: tuple[Param, ...], target: Param) -> Helper:
    """Write a kernel whose blocks each own some rows of one output; it writes nothing else."""
    assert isinstance(target.type, TensorType) and isinstance(rows := target.type.shape[0], int)
    blocks = w.pick([n for n in range(1, rows + 1) if rows % n == 0])
    w.depth = 1
    w.line("block = pl.tile.get_block_idx()")
    shape = ", ".join([str(rows // blocks), *map(show_extent, target.type.shape[1:])])
    scopes.own_rows(w, w.values[target.name], "block", blocks, f"[{shape}]")
    return Helper(name, "InCore", params, (), blocks, (*_head(name, "InCore", params), *w.lines))


def _head(name: str, kind: str, params: Sequence[Param]) -> list[str]:
    shown = ", ".join(["self", *map(str, params)])
    return [f"@pl.function(type=pl.FunctionType.{kind})", f"def {name}({shown}):"]


def _main(
    draw: Draw, extents: Sequence[int], helpers: Sequence[Helper], budget: int, about: Sequence[str], risk: int
) -> tuple[str, ...]:
    calls = [partial(call, helper=h) for h in helpers for _ in range(3)]
    kernel = [*KERNEL, *[partial(ways.show, name=op) for op in about] * 4]
    statements = {Plane.KERNEL: kernel, Plane.CONTROL: [*CONTROL, *calls]}
    w = Writer(draw, Plane.CONTROL, budget, extents, statements, risk=risk)
    params = _params(w, 15)
    w.values, w.symbols, w.indent = _visible(params, packed=True), _symbols(params), 1
    w.outputs = frozenset[int]().union(*(w.values[p.name].roots for p in _written(params)))
    outputs = [p.name for p in _written(params)]
    w.returns = ", ".join(outputs)
    w.body(9)
    for op in about:
        scopes.scope(w, _finale(w, op))
    if not about:
        scopes.scope(w, None)
    w.line(f"return {w.returns}")
    return (*_head("main", "Orchestration", params), *w.lines)


def _finale(w: Writer, about: str) -> Statement:
    """Return what shows an op last of all; one that needs no kernel may stand in front of it."""
    op = OPS[about]
    value = ways.use(w, about) if op.spec.control_plane and (op.kind is Kind.SYSTEM or w.chance(50)) else None
    return partial(ways.show, name=about) if value is None else partial(land, value=value)


def inputs_for(program: Program, seed: int) -> list[NDArray[Any] | int | float | bool]:
    """Return arguments for a program's entry: all of its parameters, ragged where extents are dynamic."""
    rng = np.random.default_rng(seed)
    extents = {name: int(rng.choice([0, 1, 2, 3, 5, 8, 9, 17, 37])) for name in SYMBOLS}
    return [_input(rng, p.type, extents) for p in program["main"].params]


def _input(rng: np.random.Generator, type_: Type, extents: dict[str, int]) -> NDArray[Any] | int | float:
    if type_ == ScalarType(dt.BOOL):
        return bool(rng.integers(0, 2))
    if isinstance(type_, ScalarType):
        return (
            float(np.float32(rng.integers(-8, 9) / 4))
            if type_.dtype.is_float()
            else int(rng.integers(0 if type_.dtype.is_unsigned_int() else -3, 9))
        )
    assert isinstance(type_, TensorType)
    shape = [e if isinstance(e, int) else extents[show_extent(e)] for e in type_.shape]
    return _elements(rng, shape, type_.dtype)


def _elements(rng: np.random.Generator, shape: Sequence[int], dtype: DataType) -> NDArray[Any]:
    if dtype == dt.BOOL:
        return rng.integers(0, 2, shape).astype(bool)
    low = 0 if dtype.is_unsigned_int() else -8
    values = rng.integers(low, 9, shape) if dtype.is_int() else rng.integers(-64, 65, shape) / 16
    result: NDArray[Any] = values.astype(dtype.numpy)
    if rng.random() < 0.25:
        odd = rng.random(shape) < 0.1
        result[odd] = rng.choice(_extremes(dtype), int(odd.sum()))
    return result


def _extremes(dtype: DataType) -> NDArray[Any]:
    """Return numbers that are rarely met and easily mistaken."""
    numbers = [*dtype.limits] if dtype.is_int() else [np.nan, np.inf, -np.inf, -0.0, 1e-5, 6e4, -3e4]
    return np.asarray(numbers, dtype.numpy)
