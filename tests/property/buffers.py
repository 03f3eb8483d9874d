"""Buffers: statements about tensors, arrays and scalars: made, viewed, read, written, covered."""

from __future__ import annotations

from dataclasses import dataclass, replace

from property.kernels import compute
from property.operands import cast_to, put, some_shape
from property.values import (
    Value,
    dtype_of,
    fresh_root,
    is_array,
    is_static_tensor,
    is_tensor,
    is_tile,
    is_whole,
    shape_of,
)
from property.writer import DTYPES, Plane, Writer

from tilewright import dtypes as dt
from tilewright.core.op import Kind
from tilewright.core.types import Extent, ScalarType, TensorType, show_extent, tensor
from tilewright.dtypes import DataType

SCALARS = (dt.INDEX, dt.INT32, dt.FP32, dt.BOOL, dt.INT64, dt.UINT8, dt.FP16, dt.BF16, dt.INT16)
"""The types of scalar parameters and variables."""


def scalar(w: Writer) -> None:
    """Bind a scalar: arithmetic, a condition, or a conversion."""
    if w.chance(15):
        text = w.condition()
        if w.asks(text) == ScalarType(dt.BOOL):
            w.make(f"({text})" if " " in text else text, "c")
        return
    dtype = w.pick(SCALARS[:3] if w.chance(70) else SCALARS)
    others = w.all(lambda v: v.is_scalar and dtype_of(v) not in (dt.TASK_ID, dtype))
    if others and w.chance(25):
        w.make(f"pl.cast({w.pick(others).name}, pl.{dtype.symbol})", "s")
    elif w.all(lambda v: v.type == ScalarType(dtype)):
        w.make(w.scalar(dtype), "s")


def after(w: Writer) -> str:
    """Return the option that makes a task wait for an earlier one, where there is one."""
    tasks = w.all(lambda v: v.type == ScalarType(dt.TASK_ID))
    return f", deps=[{w.pick(tasks).name}]" if tasks and w.chance(50) else ""


def bounded(w: Writer) -> None:
    """Bind an index whose bounds are known."""
    high = w.pick(w.extents)
    text, reach = w.index(high)
    w.bind(text, ScalarType(dt.INDEX), "i", reach=reach, fixed=True, known=text.isdigit())


def read(w: Writer) -> None:
    """Read one element of a tensor or tile."""
    sources = w.all(lambda v: is_whole(v) and (is_static_tensor(v) or is_tile(v)) and all(shape_of(v)))
    if sources:
        source = w.pick(sources)
        indices = [w.index(extent - 1)[0] for extent in shape_of(source)]
        text = ", ".join(indices)
        w.make(f"{source.name}[{text}]" if w.chance(30) else f"pl.read({source.name}, [{text}])", "s")


def write(w: Writer) -> None:
    """Write one element of a tensor, or a window of it."""
    targets = [t for t in w.targets() if is_static_tensor(t) and all(shape_of(t))]
    if not targets:
        return
    target = w.pick(targets)
    sources = [s for s in w.tensors() if is_static_tensor(s) and is_whole(s) and not s.roots & target.roots]
    sources = [s for s in sources if dtype_of(s) == dtype_of(target) and len(shape_of(s)) == len(shape_of(target))]
    sources = [s for s in sources if all(a <= b for a, b in zip(shape_of(s), shape_of(target), strict=True))]
    if sources and w.chance(60):
        source = w.pick(sources)
        room = [t - s for t, s in zip(shape_of(target), shape_of(source), strict=True)]
        offsets = [w.index(r)[0] for r in room]
        if w.chance(40):
            window = ", ".join(f"{o}:{o} + {s}" for o, s in zip(offsets, shape_of(source), strict=True))
            w.line(f"{target.name}[{window}] = {source.name}")
        else:
            put(w, target, f"pl.assemble({target.name}, {source.name}, [{', '.join(offsets)}])")
        w.written(target, whole=not any(room))
        return
    indices = ", ".join(w.index(extent - 1)[0] for extent in shape_of(target))
    w.act(f"pl.write({target.name}, [{indices}], {w.scalar(dtype_of(target))})")


def create(w: Writer, type_: TensorType | None = None, *, filled: bool = False) -> Value:
    """Make a tensor; without a first value it has to be covered before it is read."""
    type_ = type_ or tensor(some_shape(w), w.pick(DTYPES))
    has_value = filled or w.chance(60)
    options = f", init_value={w.literal(type_.dtype)}" if has_value else ""
    shape = ", ".join(map(show_extent, type_.shape))
    text = f"pl.create_tensor([{shape}], dtype=pl.{type_.dtype.symbol}{options})"
    return w.bind(text, type_, "b", roots=fresh_root(), readable=has_value, writable=True)


def longer(w: Writer) -> None:
    """Make a tensor that is longer than an extent only the running program knows, and holds one number."""
    if not w.symbols:
        return
    shape, dtype = [str(extent) for extent in some_shape(w)], w.pick(DTYPES)
    shape[w.number(0, len(shape) - 1)] = f"{w.pick(w.symbols)} + {w.number(1, 9)}"
    w.make(f"pl.create_tensor([{', '.join(shape)}], dtype=pl.{dtype.symbol}, init_value={w.literal(dtype)})", "b")


def view(w: Writer) -> None:
    """Look at a tensor another way; the view shares its buffer."""
    sources = w.all(is_tensor, lambda v: (v.readable or v.writable) and all(shape_of(v)) and not _is_unknown(v))
    sources = [s for s in sources if s.writable is False or s.depth == w.depth]
    if not sources:
        return
    source = w.pick(sources)
    assert isinstance(source.type, TensorType)
    windows = [_window(w, extent) for extent in source.type.shape]
    offsets, sizes = [offset for offset, _ in windows], [size for _, size in windows]
    cut = ", ".join(f"{o}:{o} + {s}" if o != "0" else f"0:{s}" for o, s in windows)
    forms = [f"pl.slice({source.name}, [{', '.join(sizes)}], [{', '.join(offsets)}])", f"{source.name}[{cut}]"]
    if len(windows) > 1:
        forms.append(f"pl.transpose({source.name}, {w.number(0, len(windows) - 2)}, -1)")
        alone = f"[{', '.join(['1', *sizes[1:]])}], [{', '.join(offsets)}], drop_dims=[0]"
        forms.append(f"pl.slice({source.name}, {alone})")
    if source.packed:
        extents = [show_extent(extent) for extent in source.type.shape]
        forms += [f"pl.reshape({source.name}, [{', '.join(s)}])" for s in (reversed(extents), ["1", *extents])]
    made = w.make(w.pick(forms), "w")
    if made is not None:
        shared = replace(made, roots=source.roots, readable=source.readable, writable=source.writable, packed=False)
        w.values[made.name] = shared


def _is_unknown(value: Value) -> bool:
    return isinstance(value.type, TensorType) and None in value.type.shape


def _window(w: Writer, extent: Extent) -> tuple[str, str]:
    """Return offset and size of a window along one axis; all of an axis that only the running program knows."""
    if not isinstance(extent, int):
        return "0", show_extent(extent)
    size = w.number(1, extent)
    return w.index(extent - size)[0], str(size)


def array(w: Writer) -> None:
    """Make an array, change an element of one, or read one."""
    arrays = w.all(is_array, lambda v: v.depth == w.depth)
    if not arrays or w.chance(20):
        w.make(f"pl.array.create(4, pl.{w.pick([dt.INT32, dt.INT64]).symbol})", "a", keep=True)
        return
    chosen = w.pick(arrays)
    if w.chance(50):
        w.line(f"{chosen.name}[{w.index(3)[0]}] = {w.scalar(dtype_of(chosen))}")
    else:
        w.make(f"{chosen.name}[{w.index(3)[0]}]", "s")


def tensor_compute(w: Writer) -> None:
    """Compute on whole tensors, inside a kernel."""
    made = compute(w, Kind.TENSOR)
    if made is not None and is_tensor(made) and w.chance(40):
        targets = [t for t in w.targets() if is_static_tensor(t) and shape_of(t) == shape_of(made)]
        targets = [t for t in targets if not t.roots & made.roots]
        source = cast_to(w, made, dtype_of(w.pick(targets))) if targets else None
        if source is not None:
            target = w.pick([t for t in targets if dtype_of(t) == dtype_of(source)])
            w.line(f"{target.name}[{', '.join(':' for _ in shape_of(target))}] = {source.name}")
            w.written(target, whole=True)


def cover(w: Writer, target: Value) -> None:
    """Write all of a tensor, a chunk per turn; the last chunk along an axis may be ragged."""
    assert isinstance(target.type, TensorType)
    sizes = [_chunk_size(w, axis, extent) for axis, extent in enumerate(target.type.shape)]
    names = [w.fresh("i") if size != extent else "" for size, extent in zip(sizes, target.type.shape, strict=True)]
    kind = w.pick(["parallel", "range", "pipeline"])
    stage = ", stage=2" if kind == "pipeline" else ""
    axes = zip(names, sizes, target.type.shape, strict=True)
    heads = [f"for {name} in pl.{kind}({_chunks(extent, size)}{stage}):" for name, size, extent in axes if name]
    offsets = [f"{name} * {size}" if name else "0" for name, size in zip(names, sizes, strict=True)]
    if w.plane is Plane.CONTROL:
        heads.append("with pl.at(level=pl.Level.CORE_GROUP):")
    _nested(w, heads, [name for name in names if name], Chunk(target, tuple(sizes), tuple(offsets)))
    w.written(target, whole=True)


@dataclass(frozen=True)
class Chunk:
    """A part of a tensor that one turn of a loop writes."""

    target: Value
    sizes: tuple[int, ...]
    offsets: tuple[str, ...]


def _chunk_size(w: Writer, axis: int, extent: Extent) -> int:
    """Return how much of an axis one turn writes; mostly all of it where that is known and the axis not the first."""
    if isinstance(extent, int) and extent and axis and w.chance(80):
        return extent
    return w.number(1, max(w.extents)) if axis == 0 else w.pick(w.extents)


def _chunks(extent: Extent, size: int) -> str:
    if isinstance(extent, int):
        return str(-(-extent // size))
    return f"({show_extent(extent)} + {size - 1}) // {size}"


def _nested(w: Writer, heads: list[str], names: list[str], chunk: Chunk) -> None:
    if heads:
        with w.block(heads[0]):
            _nested(w, heads[1:], names, chunk)
        return
    depth, w.depth = w.depth, w.depth + 1
    for name in names:
        w.values[name] = Value(name, ScalarType(dt.INDEX), w.depth, fixed=True)
    _chunk(w, chunk)
    w.depth = depth


def _chunk(w: Writer, chunk: Chunk) -> None:
    """Write the body of a covering loop: one chunk loaded or made, computed on, cut to fit, and stored."""
    target = chunk.target
    assert isinstance(target.type, TensorType)
    hidden = w.all(is_tensor, lambda v: bool(v.roots & target.roots))
    for value in hidden:
        del w.values[value.name]
    first = _started(w, chunk)
    for _ in range(w.number(0, 3)):
        after = compute(w, Kind.TILE, first)
        if after is not None and is_tile(after) and shape_of(after) == shape_of(first):
            first = after
    stored = _converted(w, first, target.type.dtype)
    w.values.update({value.name: value for value in hidden})
    put(w, target, f"pl.store({stored.name}, [{', '.join(chunk.offsets)}], {target.name})")


def _started(w: Writer, chunk: Chunk) -> Value:
    """Return the tile a chunk starts with, as much of it valid as the chunk has: loaded, or made and cut."""
    assert isinstance(chunk.target.type, TensorType)
    shape = chunk.target.type.shape
    alike = [s for s in w.tensors() if isinstance(s.type, TensorType) and s.type.shape == shape]
    if alike and w.chance(70):
        source = w.pick(alike)
        text = f"pl.load({source.name}, [{', '.join(chunk.offsets)}], {list(chunk.sizes)})"
        loaded = w.make(text, "t", keep=True)
        if loaded is not None:
            return loaded
    made = w.make(f"pl.tile.full({list(chunk.sizes)}, dtype=pl.FP32, value={w.scalar(dt.FP32)})", "t", keep=True)
    left = [_left(e, o, s) for e, o, s in zip(shape, chunk.offsets, chunk.sizes, strict=True)]
    assert made is not None
    zeros = ", ".join("0" for _ in left)
    text = f"pl.slice({made.name}, {list(chunk.sizes)}, [{zeros}], valid_shape=[{', '.join(left)}])"
    if len(left) == 2 and w.chance(50):
        text = f"pl.set_validshape({made.name}, {', '.join(left)})"
    cut = w.make(text, "t", keep=True)
    assert cut is not None
    return cut


def _left(extent: Extent, offset: str, size: int) -> str:
    return str(size) if offset == "0" else f"pl.min({size}, {show_extent(extent)} - {offset})"


def _converted(w: Writer, value: Value, dtype: DataType) -> Value:
    converted = cast_to(w, value, dtype)
    assert converted is not None
    return converted
