"""Sorting: runs of 32 values in descending order, each beside its index.

A value and its index make one integer of 64 bits, whose order is theirs. Some runs are sorted together, one in each
lane, by a network of comparisons. Zeros below zero and NaN do not survive that: runs with such values are ranked one by
one.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from tilewright.backends.cpu.compute.copies import element_at, known_or, rows_of, tile_type, with_adjacent_rows
from tilewright.backends.cpu.compute.keys import INFINITY, float_key
from tilewright.backends.cpu.compute.storage import splat
from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.values import Tile
from tilewright.core.expr import Call
from tilewright.dtypes import FP16, FP32
from tilewright.native.llvm import I1, I32, I64, PTR, Builder, Module, Value, element, i64, lanes, mangled, vector
from tilewright.ops.sort import APART, RUN

_VALUES, _INDICES, _OUT, _COUNT = (
    Value(PTR, "%values"),
    Value(PTR, "%indices"),
    Value(PTR, "%out"),
    Value(I64, "%count"),
)


@lowers("tile.sort32")
def _sort32(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    type_, b, src, idx = tile_type(call), e.b, bound["src"], bound["idx"]
    for have, want in zip(src.valid, idx.valid, strict=True):
        if have != want:
            e.fail(b.compare("icmp ne", have, want), APART, call)
    e.stored(src)
    e.stored(idx)
    values, indices = with_adjacent_rows(e, src), with_adjacent_rows(e, idx)
    width = values.valid[-1]
    result = e.fresh(type_, known_or(type_, (*values.rows, b.op("shl", width, i64(1)))))
    assert values.place is not None and indices.place is not None and result.place is not None
    bits, together = 8 * type_.dtype.get_byte(), e.lanes // 2
    whole = b.op("and", width, i64(-RUN * together)) if type_.dtype == FP32 else i64(0)
    with rows_of(e, values.rows) as row:

        def places(at: Value) -> list[Value]:
            tiles = ((values, at), (indices, at), (result, b.op("shl", at, i64(1))))
            return [element_at(e, t.type.dtype, t.place, (*row, column)) for t, column in tiles if t.place is not None]

        if type_.dtype == FP32:
            with b.loop(i64(0), whole, i64(RUN * together)) as at:
                b.invoke(emit_runs(b.module, together), *places(at))
        with b.loop(whole, width, i64(RUN)) as at:
            count = b.intrinsic("llvm.smin", b.op("sub", width, at), i64(RUN))
            b.invoke(emit_run(b.module, bits), *places(at), count)
    return result


def order_key(b: Builder, bits: Value) -> Value:
    """Return integers of 32 bits in the order of floats: NaN is the largest, and both zeros are equal."""
    key = float_key(b, bits, INFINITY[FP16 if element(bits.type) == "i16" else FP32])
    return b.convert("sext", key, vector(I32, lanes(bits.type)))


def joined(b: Builder, key: Value, below: Value) -> Value:
    """Return two integers of 32 bits as one of 64, the first above the second."""
    wide = vector(I64, lanes(key.type))
    high = b.op("shl", b.convert("sext", key, wide), splat(wide, 32))
    return b.op("or", high, b.convert("zext", below, wide))


def emit_run(module: Module, bits: int) -> str:
    """Return the name of a function that sorts up to 32 values of so many bits, adding it to the module once.

    Its parameters are `ptr values, ptr indices, ptr out, i64 count`. A value goes after as many as are before it.
    """
    name, type_ = f"sort_run{bits}", f"i{bits}"
    if name not in module.defined:
        b = Builder(module, name, (_VALUES, _INDICES, _OUT, _COUNT), attrs="noinline nounwind")
        keys = b.slot(f"[{RUN} x i64]")
        with b.loop(i64(0), _COUNT, i64(1)) as at:
            key = order_key(b, b.load(type_, b.offset(_VALUES, at, type_), bits // 8))
            index = b.load(I32, b.offset(_INDICES, at, I32), 4)
            b.store(joined(b, key, b.op("xor", index, Value(I32, "-1"))), b.offset(keys, at, I64), 8)
        with b.loop(i64(0), _COUNT, i64(1)) as at:
            rank = _rank(b, keys, at)
            to = b.offset(_OUT, b.op("shl", rank, i64(1)), type_)
            b.store(b.load(type_, b.offset(_VALUES, at, type_), bits // 8), to, bits // 8)
            index = b.load(I32, b.offset(_INDICES, at, I32), 4)
            b.store(b.convert("trunc", index, type_), b.offset(to, i64(1), type_), bits // 8)
        b.finish()
    return name


def _rank(b: Builder, keys: Value, at: Value) -> Value:
    """Emit how many of the keys come before one of them."""
    own = b.load(I64, b.offset(keys, at, I64), 8)
    loop = b.open_loop(i64(0), _COUNT, i64(1), [i64(0)])
    other = b.load(I64, b.offset(keys, loop.index, I64), 8)
    earlier = b.op("and", b.compare("icmp eq", other, own), b.compare("icmp slt", loop.index, at))
    before = b.op("or", b.compare("icmp sgt", other, own), earlier)
    return b.close_loop(loop, [b.op("add", loop.values[0], b.convert("zext", before, I64))])[0]


def emit_runs(module: Module, together: int) -> str:
    """Return the name of a function that sorts several runs of 32 floats each, adding it to the module once.

    Its parameters are `ptr values, ptr indices, ptr out`.
    """
    name = f"sort_runs{together}"
    if name not in module.defined:
        run = emit_run(module, 32)
        b = Builder(module, name, (_VALUES, _INDICES, _OUT), attrs="noinline nounwind")
        bits = [_apart(b, _VALUES, at, together) for at in range(RUN)]
        special = reduce(lambda x, y: b.op("or", x, y), [_is_special(b, each) for each in bits])
        some = b.compare("icmp ne", b.convert("bitcast", special, f"i{together}"), Value(f"i{together}", "0"))
        with b.when(some):
            with b.loop(i64(0), i64(together * RUN), i64(RUN)) as at:
                places = (b.offset(_VALUES, at, I32), b.offset(_INDICES, at, I32), b.offset(_OUT, at, I64))
                b.invoke(run, *places, i64(RUN))
            b.do("ret void")
            b.begin(b.label("unreached"))
        pairs = [_pair(b, each, _apart(b, _INDICES, at, together)) for at, each in enumerate(bits)]
        for first, second in network(RUN):
            high, low = pairs[first], pairs[second]
            pairs[first], pairs[second] = b.intrinsic("llvm.smax", high, low), b.intrinsic("llvm.smin", high, low)
        for at, pair in enumerate(pairs):
            _put_apart(b, _unpaired(b, pair), at)
        b.finish()
    return name


def network(count: int) -> Iterator[tuple[int, int]]:
    """Yield what is compared with what to sort a power of two: Batcher's odd-even merge sort."""
    merged = 1
    while merged < count:
        step = merged
        while step:
            for start in range(step % merged, count - step, 2 * step):
                for first in range(start, start + min(step, count - start - step)):
                    if first // (2 * merged) == (first + step) // (2 * merged):
                        yield first, first + step
            step //= 2
        merged *= 2


def _is_special(b: Builder, bits: Value) -> Value:
    """Return where floats are NaN or the zero below zero."""
    nan = b.compare("icmp sgt", b.op("and", bits, splat(bits.type, 0x7FFFFFFF)), splat(bits.type, 0x7F800000))
    return b.op("or", nan, b.compare("icmp eq", bits, splat(bits.type, -(1 << 31))))


def _flipped(b: Builder, bits: Value) -> Value:
    """Return the bits of floats as integers in their order, and the other way round."""
    sign = b.op("ashr", bits, splat(bits.type, 31))
    return b.op("xor", bits, b.op("and", sign, splat(bits.type, 0x7FFFFFFF)))


def _pair(b: Builder, bits: Value, index: Value) -> Value:
    return joined(b, _flipped(b, bits), b.op("xor", index, splat(index.type, -1)))


def _unpaired(b: Builder, pair: Value) -> Value:
    """Return values in the low halves of lanes, and indices in the high ones."""
    narrow = vector(I32, lanes(pair.type))
    value = _flipped(b, b.convert("trunc", b.op("ashr", pair, splat(pair.type, 32)), narrow))
    index = b.op("shl", b.op("xor", pair, splat(pair.type, -1)), splat(pair.type, 32))
    return b.op("or", index, b.convert("zext", value, pair.type))


def _places(b: Builder, base: Value, at: int, count: int, type_: str) -> Value:
    """Return where one element of each of several runs lies."""
    offsets = ", ".join(f"i64 {run * RUN + at}" for run in range(count))
    return b.value(vector(PTR, count), f"getelementptr {type_}, {base}, <{count} x i64> <{offsets}>")


def _apart(b: Builder, base: Value, at: int, count: int) -> Value:
    """Emit the loading of one element of each of several runs."""
    places, type_, mask = _places(b, base, at, count, I32), vector(I32, count), vector(I1, count)
    name = b.module.intrinsic(f"llvm.masked.gather.{mangled(type_)}.v{count}p0", type_, places.type, I32, mask, type_)
    return b.call(type_, name, places, Value(I32, "4"), splat(mask, "true"), Value(type_, "poison"))


def _put_apart(b: Builder, pair: Value, at: int) -> None:
    """Emit the storing of one pair of each of several runs."""
    count = lanes(pair.type)
    places, mask = _places(b, _OUT, at, count, I64), vector(I1, count)
    name = f"llvm.masked.scatter.{mangled(pair.type)}.v{count}p0"
    b.module.intrinsic(name, "void", pair.type, places.type, I32, mask)
    b.invoke(name, pair, places, Value(I32, "4"), splat(mask, "true"))
