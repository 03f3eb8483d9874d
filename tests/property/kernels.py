"""Kernels: statements that load, compute and store, with ops drawn from the registry.

An op takes part by its family: each parameter is given what its role asks for, and the compiler's own type rule says
whether the call fits. The first tile of a call may be partly valid, since that part decides the result's; the others
hold data everywhere, so that nothing unspecified is ever read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from property.values import (
    Value,
    dtype_of,
    fresh_root,
    is_static_tensor,
    is_tensor,
    is_tile,
    is_whole,
    shape_of,
)
from property.writer import DTYPES, Writer
from tilewright import dtypes as dt
from tilewright import language as pl
from tilewright.core.build import call
from tilewright.core.expr import Call, Expr, Var, constant
from tilewright.core.op import REQUIRED, Effect, Kind, OpSpec, Parameter, Role, specs
from tilewright.core.types import ScalarType, TensorType, TileType
from tilewright.dtypes import DataType
from tilewright.errors import KernelError

FAMILIES = ("elementwise", "expansion", "reduction")
"""Families whose members are called by the roles of their parameters alone."""

OTHERS = frozenset(("concat", "expands", "fillpad", "matmul", "matmul_acc", "matmul_bias", "transpose_view", "gemv"))
"""Ops outside those families for which the same way of calling works."""

CONVERTIBLE = (dt.FP32, dt.FP16, dt.BF16, dt.INT32, dt.INT8, dt.INT16, dt.INT64, dt.UINT8)


@dataclass(frozen=True)
class Argument:
    """One argument of a call: its text, and what type rules see."""

    text: str
    meaning: Any


def callable_specs(kind: Kind) -> list[OpSpec]:
    """Return the ops of a kind that a kernel can be given by the roles of their parameters."""
    wanted = [s for s in specs() if kind in s.kinds and (s.family in FAMILIES or s.name in OTHERS)]
    return [s for s in wanted if s.effect is Effect.PURE]


def spelled(spec: OpSpec, kind: Kind) -> str:
    """Return how a program names an op."""
    name = spec.function.__name__
    return f"pl.{name}" if getattr(pl, name, None) is spec.function else f"pl.{kind.value}.{spec.name}"


def compute(w: Writer, kind: Kind, first: Value | None = None) -> Value | None:
    """Write one op on tiles or tensors, and return what it gives, or None where nothing fits."""
    pool = w.tiles() if kind is Kind.TILE else [t for t in w.tensors() if is_static_tensor(t) and is_whole(t)]
    if not pool:
        return None
    spec = w.pick(callable_specs(kind))
    for _ in range(3):
        arguments = _arguments(w, spec, pool, first or w.pick(pool))
        made = None if arguments is None else _made(spec, arguments)
        if arguments is not None and made is not None and made.op.kind is kind:
            text = f"{spelled(spec, kind)}({', '.join(_shown(spec, arguments))})"
            return _bound(w, text, made, first is not None)
    return None


def _bound(w: Writer, text: str, made: Call, keep: bool) -> Value:
    if isinstance(made.type, TensorType):
        return w.bind(text, made.type, roots=fresh_root(), writable=True)
    return w.bind(text, made.type, keep=keep)


def _made(spec: OpSpec, arguments: dict[str, Argument]) -> Call | None:
    bound = {p.name: p.default for p in spec.parameters} | {n: a.meaning for n, a in arguments.items()}
    try:
        made = call(spec, bound)
    except KernelError:
        return None
    return made if isinstance(made, Call) else None


def _shown(spec: OpSpec, arguments: dict[str, Argument]) -> list[str]:
    shown: list[str] = []
    by_name = False
    for p in spec.parameters:
        by_name = by_name or p.name not in arguments
        if p.name in arguments:
            shown.append(f"{p.name}={arguments[p.name].text}" if by_name else arguments[p.name].text)
    return shown


def _arguments(w: Writer, spec: OpSpec, pool: Sequence[Value], first: Value) -> dict[str, Argument] | None:
    result: dict[str, Argument] = {}
    is_first = True
    for p in spec.parameters:
        if p.role in (Role.VALUE, Role.EITHER) and is_first:
            result[p.name], is_first = Argument(first.name, first.var), False
            continue
        argument = _argument(w, p, pool, first)
        if argument is not None:
            result[p.name] = argument
        elif p.default is REQUIRED:
            return None
    return result


def _argument(w: Writer, p: Parameter, pool: Sequence[Value], first: Value) -> Argument | None:
    if p.role is Role.NUMBER or (p.role is Role.EITHER and w.chance(40)):
        return _number(w, dtype_of(first))
    if p.role is Role.ATTRIBUTE and p.default is False and p.name == "high_precision" and w.chance(20):
        return Argument("True", True)
    if p.role not in (Role.VALUE, Role.EITHER) or (p.default is None and not w.chance(15)):
        return None
    whole = [v for v in pool if is_whole(v)]
    alike = [v for v in whole if shape_of(v) == shape_of(first)]
    found = alike if alike and w.chance(60) else whole
    return Argument((value := w.pick(found)).name, value.var) if found else None


def _number(w: Writer, dtype: DataType) -> Argument:
    known = w.all(lambda v: v.is_scalar and dtype_of(v) == dtype)
    if known and w.chance(60):
        value = w.pick(known)
        return Argument(value.name, value.var)
    number = w.number(-3, 5) if dtype.is_int() else w.number(-12, 12) / 4
    return Argument(str(number), constant(number))


def asked(w: Writer, text: str, spec: OpSpec, stem: str = "v", keep: bool = False, **bound: Any) -> Value:
    """Write a call whose result type the op's own rule gives."""
    made = call(spec, {p.name: p.default for p in spec.parameters} | bound)
    if isinstance(made.type, TensorType):
        return w.bind(text, made.type, stem, roots=fresh_root(), writable=True)
    return w.bind(text, made.type, stem, keep=keep)


def spec_named(function: Callable[..., Any]) -> OpSpec:
    """Return the declaration of an op from its public function."""
    return next(s for s in specs() if s.function is function)


def load(w: Writer) -> None:
    """Load a window of some tensor: at a runtime offset, cut, or past the end with `clamp`."""
    sources = w.tensors()
    if not sources:
        return
    source = w.pick(sources)
    offsets, shapes, valid, clamp = list[str](), list[int](), list[str](), False
    assert isinstance(source.type, TensorType)
    for extent in source.type.shape:
        size = w.pick(w.extents)
        if not isinstance(extent, int):
            offsets, shapes, valid = [*offsets, "0"], [*shapes, size], [*valid, str(size)]
            continue
        size = size if w.chance(10) and extent else min(size, extent) or 1
        past = size > extent
        clamp = clamp or past
        offsets.append("0" if past else w.index(extent - size)[0])
        shapes.append(size)
        valid.append(w.index(size)[0] if w.chance(10) else str(size))
    options = f", valid_shape=[{', '.join(valid)}]" if valid != [str(s) for s in shapes] else ""
    options += ", clamp=True" if clamp or w.chance(5) else ""
    options += ", target_memory=pl.Mem.Mat" if w.chance(5) else ""
    parsed = read_call(w, f"pl.load({source.name}, [{', '.join(offsets)}], {shapes}{options})")
    w.bind(parsed[0], parsed[1], "t")


def read_call(w: Writer, text: str) -> tuple[str, Any]:
    """Return a call and its type, by asking the front end with the values that it names."""
    from property.asking import type_of_call

    return text, type_of_call(text, w.values)


def store(w: Writer, tile: Value | None = None) -> None:
    """Store some tile, converted where needed, into some tensor it fits."""
    tiles, targets = w.tiles(), [t for t in w.targets() if is_static_tensor(t)]
    if not tiles or not targets:
        return
    tile = tile or w.pick(tiles)
    fitting = [t for t in targets if _fits(shape_of(tile), shape_of(t))]
    if not fitting:
        return
    target = w.pick(fitting)
    tile = cast_to(w, tile, dtype_of(target))
    pad = len(shape_of(target)) - len(shape_of(tile))
    room = [t - s for t, s in zip(shape_of(target), (1,) * pad + shape_of(tile), strict=True)]
    offsets = ", ".join(w.index(r)[0] for r in room)
    atomic = ", atomic=pl.AtomicType.Add" if w.chance(8) and target.readable and dtype_of(target) == dt.INT32 else ""
    put(w, target, f"pl.store({tile.name}, [{offsets}], {target.name}{atomic})")
    w.written(target, whole=is_whole(tile) and not any(room) and shape_of(tile) == shape_of(target))


def put(w: Writer, target: Value, text: str) -> None:
    """Write a call that returns the tensor it wrote, with or without binding the result."""
    w.line(f"{target.name} = {text}" if w.chance(60) else text)


def _fits(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    if len(shape) > len(target):
        return False
    return all(s <= t for s, t in zip(shape, target[len(target) - len(shape) :], strict=True))


def cast_to(w: Writer, value: Value, dtype: DataType) -> Value:
    """Return a tile or tensor converted to an element type, where it has another."""
    if dtype_of(value) == dtype:
        return value
    mode = "" if w.chance(70) else f", mode={w.pick(['rint', 'floor', 'ceil', 'trunc', 'odd'])!r}"
    return asked(w, f"pl.cast({value.name}, pl.{dtype.symbol}{mode})", spec_named(pl.cast), keep=True, x=value.var, target_type=dtype)


def convert(w: Writer) -> None:
    """Convert a tile, or select between two tiles by a comparison."""
    tiles = w.tiles()
    if not tiles:
        return
    tile = w.pick(tiles)
    others = [v for v in tiles if is_whole(v) and v.type == tile.type]
    if others and w.chance(50):
        other = w.pick(others)
        mask = w.fresh("m")
        w.line(f"{mask} = pl.cmp({other.name}, {w.pick(others).name}, cmp_type={w.number(0, 5)})")
        w.bind(f"pl.sel({mask}, {tile.name}, {other.name})", tile.type if tile.type.memory.name == "Vec" else tile.type) if isinstance(tile.type, TileType) and tile.type.memory.name == "Vec" else None
        return
    cast_to(w, tile, w.pick([t for t in CONVERTIBLE if t != dtype_of(tile)]))
