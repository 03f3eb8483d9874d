"""Generated ways: how searches, sorting and generators come into random programs."""

from __future__ import annotations

from collections.abc import Sequence

from property.operands import number, operand, some_dtype, some_shape
from property.values import Value, shape_of
from property.way import called, way
from property.writer import DTYPES, Writer

from tilewright import dtypes as dt
from tilewright.core.op import OPS, Kind, Op
from tilewright.core.types import TileType
from tilewright.dtypes import DataType

POSITIONS = sorted(name for name, op in OPS.items() if op.spec.family == "position")


@way(*POSITIONS)
def _position(w: Writer, op: Op) -> Value | None:
    shape, dtype = some_shape(w, (2, 2, 3)), some_dtype(w, op.spec.accepts)
    source = operand(w, op.kind, shape, dtype)
    if op.kind is Kind.TENSOR:
        return called(w, op, source.name)
    return called(w, op, source.name, _scratch(shape, dtype))


def _scratch(shape: Sequence[int], dtype: DataType) -> str:
    return f"pl.create_tile({list(shape)}, dtype=pl.{dtype.symbol})"


# Sorting


@way("tile.sort32", "tensor.sort32")
def _sort32(w: Writer, op: Op) -> Value | None:
    """Sort runs, and show their values: an index may be any bits."""
    shape = (*some_shape(w, (1, 2))[:-1], w.pick([32, 64, 45, 5]))
    values = operand(w, op.kind, shape, w.pick([dt.FP32, dt.FP16]))
    return _first_values(w, called(w, op, values.name, operand(w, op.kind, shape, dt.UINT32).name))


@way("tile.mrgsort", "tensor.mrgsort")
def _mrgsort(w: Writer, op: Op) -> Value | None:
    """Merge runs of a list, or lists of pairs of any kind."""
    dtype = w.pick([dt.FP32, dt.FP16])
    if w.chance(50):
        source = _partial_list(w, operand(w, op.kind, (1, w.pick([256, 300, 64])), dtype))
        return _first_values(w, called(w, op, source.name, "block_len=64"))
    widths = [2 * w.number(1, 9) for _ in range(w.number(2, 4))]
    lists = [_partial_list(w, operand(w, op.kind, (2, width), dtype)).name for width in widths]
    scratch = [f"tmp={_scratch((2, sum(widths)), dtype)}"] * (op.kind is Kind.TILE)
    return _first_values(w, called(w, op, *lists, *scratch, f"exhausted={w.chance(50)}"))


def _partial_list(w: Writer, pairs: Value) -> Value:
    """Return pairs of which often only the run knows how many there are."""
    if not isinstance(pairs.type, TileType) or w.chance(60):
        return pairs
    rows, columns = shape_of(pairs)
    text = f"pl.slice({pairs.name}, {[rows, columns]}, [0, 0], valid_shape=[{rows}, {w.index(columns // 2)[0]} * 2])"
    return w.make(text, keep=True) or pairs


def _first_values(w: Writer, pairs: Value | None) -> Value | None:
    """Return the largest value of each row of pairs as a tile, which nobody takes for a number where it is none."""
    if pairs is None:
        return None
    zeros, ones = ", ".join("0" for _ in shape_of(pairs)), (*shape_of(pairs)[:-1], 1)
    how = "slice" if isinstance(pairs.type, TileType) else "load"
    sizes = f"{list(ones)}, [{zeros}]" if how == "slice" else f"[{zeros}], {list(ones)}"
    first = w.make(f"pl.{how}({pairs.name}, {sizes})", "t", keep=True)
    w.values.pop(pairs.name, None)
    return first


# Generators


@way("tile.ci", "tensor.ci")
def _ci(w: Writer, op: Op) -> Value | None:
    dtype = w.pick([dt.INT32, dt.INT16, dt.UINT16, dt.UINT32])
    shape = [1, *[1] * w.chance(20), max(w.pick(w.extents), 2)]
    start = number(w, dtype).name if w.chance(50) else w.literal(dtype)
    return called(w, op, start, str(shape), f"dtype=pl.{dtype.symbol}", f"descending={w.chance(50)}")


@way("tile.iota")
def _iota(w: Writer, op: Op) -> Value | None:
    shape, dtype = some_shape(w), w.pick([d for d in DTYPES if d in op.spec.accepts])
    start = number(w, dtype).name if w.chance(50) else w.literal(dtype)
    counted = f"axis={w.number(-len(shape), len(shape) - 1)}", f"start={start}", f"step={w.literal(dtype)}"
    return called(w, op, str(list(shape)), *counted, f"dtype=pl.{dtype.symbol}")


@way("tile.arange")
def _arange(w: Writer, op: Op) -> Value | None:
    start, step = number(w, dt.INDEX).name if w.chance(50) else str(w.number(-5, 5)), w.pick([-3, -1, 1, 2])
    end = f"{start} + {step * w.pick(w.extents)}"
    return called(w, op, *([start, end, str(step)] if w.chance(70) else [str(w.pick(w.extents))]))


@way("tile.tri")
def _tri(w: Writer, op: Op) -> Value | None:
    shape, dtype = some_shape(w, (2,)), some_dtype(w, op.spec.accepts)
    diagonal = number(w, w.pick([dt.INT32, dt.INDEX])).name if w.chance(50) else str(w.number(-5, 5))
    valid = [f"valid_shape={[w.number(1, extent) for extent in shape]}"] * w.chance(40)
    return called(w, op, diagonal, str(list(shape)), *valid, f"dtype=pl.{dtype.symbol}", f"upper={w.chance(50)}")


@way("tile.random", "tensor.random")
def _random(w: Writer, op: Op) -> Value | None:
    shape = some_shape(w, (2,))
    words = [number(w, dt.INT32).name if w.chance(40) else str(w.number(-9, 9)) for _ in range(6)]
    sizes = ", ".join(w.index(extent)[0] for extent in shape)
    valid = [f"valid_shape=[{sizes}]"] * (op.kind is Kind.TILE and w.chance(40))
    dtype = w.pick([dt.UINT32, dt.INT32])
    return called(w, op, *words, str(list(shape)), *valid, f"dtype=pl.{dtype.symbol}", f"rounds={w.pick([7, 10])}")


@way("tile.rand", "tile.randn", "tile.randint")
def _draw(w: Writer, op: Op) -> Value | None:
    """Draw a tile from a number on, or an element for each of some numbers."""
    shape = some_shape(w)
    seed = number(w, dt.INT32).name if w.chance(40) else str(w.number(-9, 9))
    given = [seed, *["-3", str(w.number(-2, 99))] * (op.spec.name == "randint")]
    if w.chance(30):
        return called(w, op, *given, operand(w, Kind.TILE, shape, w.pick([dt.INT32, dt.INT64])).name)
    valid = [f"valid_shape=[{', '.join(w.index(extent)[0] for extent in shape)}]"] * w.chance(40)
    pitch = [f"pitch={w.number(0, 99)}"] * w.chance(40)
    return called(w, op, *given, str(list(shape)), w.pick(["0", "7", w.index(99)[0]]), *pitch, *valid)
