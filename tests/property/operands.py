"""Operands: values of a wanted shape and type, found or made, and results put where they matter."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from property.values import Value, dtype_of, is_array, is_static_tensor, is_tensor, is_tile, is_whole, shape_of
from property.writer import DTYPES, Writer

from tilewright import dtypes as dt
from tilewright.core.op import Kind
from tilewright.core.types import ScalarType, TensorType
from tilewright.dtypes import DataType

Shape = tuple[int, ...]
MODES = ("none", "rint", "round", "floor", "ceil", "trunc", "odd")


def some_shape(w: Writer, ranks: Sequence[int] = (2, 2, 2, 2, 3, 3, 1)) -> Shape:
    """Return a shape of the extents a program is made of; of matrices there are only a few."""
    shape = tuple(w.pick(w.extents) for _ in range(w.pick(ranks)))
    return (*(min(extent, 5) for extent in shape[:-2]), *shape[-2:])


def some_dtype(w: Writer, accepted: Collection[DataType]) -> DataType:
    """Return one of the types an op accepts."""
    return w.pick([d for d in DTYPES if d in accepted])


def operand(w: Writer, kind: Kind, shape: Shape, dtype: DataType) -> Value:
    """Return a tile or tensor with data everywhere, where possible one that is there or made from what is there."""
    return tile_of(w, shape, dtype) if kind is Kind.TILE else tensor_of(w, shape, dtype)


def tile_of(w: Writer, shape: Shape, dtype: DataType) -> Value:
    """Return a tile all of whose elements hold data."""
    found = [t for t in w.tiles() if is_whole(t) and shape_of(t) == shape and dtype_of(t) == dtype]
    if found and w.chance(60):
        return w.pick(found)
    part = _part(w, shape, dtype) if len(shape) == 2 and w.chance(15) else None
    if part is not None:
        return part
    sources = [t for t in w.tensors() if isinstance(t.type, TensorType) and len(t.type.shape) == len(shape)]
    made = _loaded(w, w.pick(sources), shape) if sources and w.chance(85) else None
    made = made or w.make(f"pl.tile.full({list(shape)}, dtype=pl.FP32, value={w.scalar(dt.FP32)})", "t", keep=True)
    converted = cast_to(w, made, dtype) if made is not None else None
    assert converted is not None
    return converted


def _part(w: Writer, shape: Shape, dtype: DataType) -> Value | None:
    """Cut a tile out of a larger one, whose rows it then shares."""
    found = [t for t in w.tiles() if is_whole(t) and dtype_of(t) == dtype and len(shape_of(t)) == len(shape)]
    larger = [t for t in found if fits(shape, shape_of(t)) and shape_of(t) != shape]
    if not larger:
        return None
    source = w.pick(larger)
    offsets = ", ".join(w.index(t - s)[0] for t, s in zip(shape_of(source), shape, strict=True))
    return w.make(f"pl.slice({source.name}, {list(shape)}, [{offsets}])", "t", keep=True)


def _loaded(w: Writer, source: Value, shape: Shape) -> Value | None:
    """Load a tile from the start of a tensor or a little later; where the tensor ends it is filled up."""
    assert isinstance(source.type, TensorType)
    offsets = [
        w.index(e - s)[0] if isinstance(e, int) and e > s else "0"
        for e, s in zip(source.type.shape, shape, strict=True)
    ]
    given = f"pl.load({source.name}, [{', '.join(offsets)}], {list(shape)}, clamp=True)"
    loaded = w.make(given, "t", keep=True)
    if loaded is None or is_whole(loaded):
        return loaded
    return w.make(f"pl.fillpad({loaded.name}, pad_value=pl.PadValue.{w.pick(['zero', 'max', 'min'])})", keep=True)


def tensor_of(w: Writer, shape: Shape, dtype: DataType) -> Value:
    """Return a tensor all of whose elements hold data."""
    found = [t for t in w.tensors() if is_static_tensor(t) and is_whole(t) and dtype_of(t) == dtype]
    same = [t for t in found if shape_of(t) == shape]
    if same and w.chance(60):
        return w.pick(same)
    larger = [t for t in found if fits(shape, shape_of(t)) and len(shape_of(t)) == len(shape)]
    window = _window(w, w.pick(larger), shape) if larger and w.chance(60) else None
    return window or stored(w, tile_of(w, shape, dtype))


def _window(w: Writer, source: Value, shape: Shape) -> Value | None:
    offsets = ", ".join(w.index(t - s)[0] for t, s in zip(shape_of(source), shape, strict=True))
    window = w.make(f"pl.slice({source.name}, {list(shape)}, [{offsets}])", "w")
    if window is not None:
        window = replace(window, roots=source.roots, writable=False, packed=False)
        w.values[window.name] = window
    return window


def stored(w: Writer, tile: Value) -> Value:
    """Return a new tensor that holds what a tile does."""
    shape, dtype = shape_of(tile), dtype_of(tile)
    made = w.make(f"pl.create_tensor({list(shape)}, dtype=pl.{dtype.symbol})", "b")
    assert made is not None
    w.line(f"{made.name} = pl.store({tile.name}, [{', '.join('0' for _ in shape)}], {made.name})")
    return made


def cast_to(w: Writer, value: Value, dtype: DataType) -> Value | None:
    """Return a tile or tensor converted to an element type, where it has another."""
    if dtype_of(value) == dtype:
        return value
    mode = "" if w.chance(70) else f', mode="{w.pick(MODES)}"'
    return w.make(f"pl.cast({value.name}, pl.{dtype.symbol}{mode})", keep=True)


def fits(shape: Shape, target: Shape) -> bool:
    """Return whether a shape fits into another, which may have more axes in front."""
    if len(shape) > len(target):
        return False
    return all(s <= t for s, t in zip(shape, target[len(target) - len(shape) :], strict=True))


def put(w: Writer, target: Value, text: str) -> None:
    """Write a call that returns the tensor it wrote, with or without binding the result."""
    w.act(text) if w.chance(40) else w.line(f"{target.name} = {text}")


def land(w: Writer, value: Value) -> None:
    """Write as much of a value as fits into some tensor that is seen outside, so that it matters."""
    targets = [t for t in w.targets() if is_static_tensor(t) and all(shape_of(t))]
    targets = [t for t in targets if t.roots & w.outputs] or targets
    if not targets:
        return
    if is_array(value):
        element = w.make(f"{value.name}[{w.index(3)[0]}]", "s", keep=True)
        value = element or value
    if is_tensor(value):
        value = _reloaded(w, value) or value
    if value.is_scalar:
        _land_scalar(w, value, w.pick(targets))
    elif is_tile(value):
        _land_tile(w, value, w.pick(targets))


def _reloaded(w: Writer, value: Value) -> Value | None:
    if not is_static_tensor(value) or not all(shape_of(value)):
        return None
    zeros = ", ".join("0" for _ in shape_of(value))
    return w.make(f"pl.load({value.name}, [{zeros}], {list(shape_of(value))})", "t", keep=True)


def _land_scalar(w: Writer, value: Value, target: Value) -> None:
    indices = ", ".join(w.index(extent - 1)[0] for extent in shape_of(target))
    dtype = dtype_of(target)
    text = value.name if dtype_of(value) == dtype else f"pl.cast({value.name}, pl.{dtype.symbol})"
    w.act(f"pl.write({target.name}, [{indices}], {text})")


def _land_tile(w: Writer, value: Value, target: Value) -> None:
    shape, room = shape_of(value), shape_of(target)
    extra = len(shape) - len(room)
    cut = (1,) * extra + tuple(min(s, r) for s, r in zip(shape[::-1], room[::-1], strict=False))[::-1]
    source: Value | None = value
    if extra > 0 and not is_whole(value):  # an axis that is dropped may be one without data
        source = value = w.make(f"pl.fillpad({value.name})", keep=True) or value
    if cut != shape or extra > 0:
        zeros = ", ".join("0" for _ in cut)
        dropped = f", drop_dims={list(range(extra))}" if extra > 0 else ""
        source = w.make(f"pl.slice({value.name}, {list(cut)}, [{zeros}]{dropped})", keep=True)
    source = cast_to(w, source, dtype_of(target)) if source is not None else None
    if source is not None:
        put_tile(w, source, target)


def put_tile(w: Writer, tile: Value, target: Value) -> None:
    """Store a tile somewhere in a tensor it fits, now and then by adding."""
    pad = len(shape_of(target)) - len(shape_of(tile))
    room = [t - s for t, s in zip(shape_of(target), (1,) * pad + shape_of(tile), strict=True)]
    offsets = ", ".join(w.index(r)[0] for r in room)
    may_add = target.readable and dtype_of(target) in (dt.FP32, dt.FP16, dt.BF16, dt.INT32, dt.INT16, dt.INT8)
    atomic = ", atomic=pl.AtomicType.Add" if may_add and w.chance(8) else ""
    form = w.pick(["store", "store", "assemble"])
    if form == "assemble":
        put(w, target, f"pl.assemble({target.name}, {tile.name}, [{offsets}]{atomic})")
    else:
        put(w, target, f"pl.store({tile.name}, [{offsets}], {target.name}{atomic})")
    w.written(target, whole=is_whole(tile) and not any(room) and not pad)


def number(w: Writer, dtype: DataType) -> Value:
    """Return a scalar that only the running program knows."""
    known = w.all(lambda v: v.type == ScalarType(dtype) and v.literal is None)
    if known and w.chance(70):
        return w.pick(known)
    counts = [v for v in w.all(lambda v: v.is_scalar and v.literal is None) if dtype_of(v) not in (dt.TASK_ID, dtype)]
    made = w.make(f"pl.cast({w.pick(counts).name}, pl.{dtype.symbol})", "s", keep=True) if counts else None
    made = made or w.make(f"pl.const({w.literal(dtype)}, pl.{dtype.symbol})", "s", keep=True)
    assert made is not None
    return made
