"""Merging: sorted lists of pairs as one.

A value and the place of its pair make one integer of 64 bits, which no other equals: of equal values the earlier one is
the larger. Lists of such integers are merged two by two without a branch, each with a least integer behind its end, and
the pairs follow them.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cpu.compute.copies import element_at, known_or, rows_of, tile_type, with_adjacent_rows
from tilewright.backends.cpu.compute.sort import joined, order_key
from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.values import Scalar, Tile, static
from tilewright.core.expr import Call
from tilewright.native.llvm import I1, I32, I64, PTR, Builder, Module, Value, i64
from tilewright.ops.sort import BLOCK, LENGTH, UNEQUAL

_PAIRS, _OUT, _FIRST, _SECOND = (Value(PTR, f"%{name}") for name in ("pairs", "out", "first", "second"))
_COUNTS = [Value(I64, f"%count{number}") for number in range(4)]
_LEAST = Value(I64, str(-(1 << 63)))


@lowers("tile.mrgsort")
def _mrgsort(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    lists: list[Tile] = [bound[name] for name in ("src0", "src1", "src2", "src3") if bound[name] is not None]
    for each in lists:
        e.stored(each)
    lists = [with_adjacent_rows(e, each) for each in lists]
    return _one(e, call, lists[0], bound["block_len"]) if bound["block_len"] is not None else _several(e, call, lists)


def _one(e: FunctionEmitter, call: Call, source: Tile, length: Scalar) -> Tile:
    """Emit the merging of every four neighbouring runs of a list."""
    b, type_ = e.b, tile_type(call)
    run = _checked_length(e, call, e.index(length))
    width, dtype = source.valid[-1], type_.dtype
    result = e.fresh(type_, known_or(type_, source.valid))
    assert source.place is not None and result.place is not None
    group = b.op("shl", run, i64(2))
    whole = b.op("sub", width, b.op("urem", width, group))
    pairs = b.op("lshr", run, i64(1))
    merge = Merge(e, dtype.bits, type_.shape[-1] // 2, 4)
    with rows_of(e, source.rows) as row:
        with b.loop(i64(0), whole, group) as at:
            come, go = (element_at(e, dtype, place, (*row, at)) for place in (source.place, result.place))
            merge.emit(come, go, [pairs] * 4)
        come, go = (element_at(e, dtype, place, (*row, whole)) for place in (source.place, result.place))
        copy_bytes(b, go, come, b.op("mul", b.op("sub", width, whole), i64(dtype.get_byte())))
    return result


def _checked_length(e: FunctionEmitter, call: Call, length: Value) -> Value:
    """Return the length of runs; one that cannot be is an error, and means the least there is."""
    if static(length) is not None:
        return length
    rest = e.b.op("and", length, i64(BLOCK - 1))
    wrong = e.b.op("or", e.b.compare("icmp sle", length, i64(0)), e.b.compare("icmp ne", rest, i64(0)))
    e.fail(wrong, LENGTH, call)
    return e.b.select(wrong, i64(BLOCK), e.b.intrinsic("llvm.smin", length, i64(1 << 40)))


def _several(e: FunctionEmitter, call: Call, lists: Sequence[Tile]) -> Tile:
    """Emit the merging of lists, which are laid side by side first."""
    b, type_ = e.b, tile_type(call)
    size, widths = type_.dtype.get_byte(), [each.valid[-1] for each in lists]
    _check_alike(e, call, lists)
    total = widths[0]
    for width in widths[1:]:
        total = b.op("add", total, width)
    result = e.fresh(type_, known_or(type_, (*lists[0].rows, total)))
    assert result.place is not None
    merge = Merge(e, type_.dtype.bits, sum(each.type.shape[-1] for each in lists) // 2, len(lists))
    counts = [b.op("lshr", width, i64(1)) for width in widths] + [i64(0)] * (4 - len(lists))
    with rows_of(e, lists[0].rows) as row:
        at = i64(0)
        for each, width in zip(lists, widths, strict=True):
            assert each.place is not None
            source = element_at(e, type_.dtype, each.place, (*row, i64(0)))
            copy_bytes(b, b.offset(merge.beside, at, f"i{8 * size}"), source, b.op("mul", width, i64(size)))
            at = b.op("add", at, width)
        merge.emit(merge.beside, element_at(e, type_.dtype, result.place, (*row, i64(0))), counts)
    return result


def _check_alike(e: FunctionEmitter, call: Call, lists: Sequence[Tile]) -> None:
    for each in lists:
        for have, want in zip(each.rows, lists[0].rows, strict=True):
            if have != want:
                e.fail(e.b.compare("icmp ne", have, want), UNEQUAL, call)
        if static(each.valid[-1]) is None:
            odd = e.b.op("and", each.valid[-1], i64(1))
            e.fail(e.b.compare("icmp ne", odd, i64(0)), UNEQUAL, call)


def copy_bytes(b: Builder, to: Value, source: Value, count: Value) -> None:
    """Emit a copy of as many bytes as the running program says."""
    name = b.module.intrinsic("llvm.memcpy.p0.p0.i64", "void", PTR, PTR, I64, "i1")
    b.invoke(name, to, source, count, Value(I1, "false"))


class Merge:
    """The merging of up to four lists being emitted, with the room it takes for at most so many pairs."""

    def __init__(self, e: FunctionEmitter, bits: int, most: int, lists: int) -> None:
        sizes = (8 * (most + 4), 8 * (most + 4), most * bits // 4 + 8)
        parts = [e.arena.take(size) for size in sizes]
        self.first, self.second, self.beside = (e.address(part[0]) for part in parts)
        for part in parts:
            e.arena.give_back(part)
        self.e, self.name = e, emit_merge(e.b.module, bits, lists)

    def emit(self, pairs: Value, out: Value, counts: Sequence[Value]) -> None:
        """Emit the merging of lists that lie side by side."""
        self.e.b.invoke(self.name, pairs, out, self.first, self.second, *counts)


def emit_merge(module: Module, bits: int, lists: int) -> str:
    """Return the name of a function that merges two or up to four lists of pairs, adding it to the module once.

    Its parameters are `ptr pairs, ptr out, ptr first, ptr second`, the latter two being room for one number per pair
    and four more, and four times `i64 count`: how many pairs each list has.
    """
    name = f"merge{2 if lists == 2 else 4}_{bits}"
    if name not in module.defined:
        b = Builder(module, name, (_PAIRS, _OUT, _FIRST, _SECOND, *_COUNTS), attrs="noinline nounwind")
        starts = [i64(0)]
        for count in _COUNTS:
            starts.append(b.op("add", starts[-1], count))
        for number in range(2 if lists == 2 else 4):
            _numbered(b, bits, starts, number)
        merged = Lists(b, _FIRST, starts)
        if lists == 2:
            merged.into(_SECOND, [(0, 1)], starts[:1])
            _follow(b, bits, _SECOND, starts[4])
        else:
            merged.into(_SECOND, [(0, 1), (2, 3)], [i64(0), b.op("add", starts[2], i64(1))])
            Lists(b, _SECOND, [i64(0), starts[2], starts[4]]).into(_FIRST, [(0, 1)], [i64(0)])
            _follow(b, bits, _FIRST, starts[4])
        b.finish()
    return name


def _numbered(b: Builder, bits: int, starts: Sequence[Value], number: int) -> None:
    """Emit the numbers of one list: where its pairs lie below their values, the last of all pairs at zero."""
    value, last = f"i{bits}", b.op("sub", starts[4], i64(1))
    with b.loop(starts[number], starts[number + 1], i64(1)) as at:
        key = order_key(b, b.load(value, b.offset(_PAIRS, b.op("shl", at, i64(1)), value), bits // 8))
        place = b.convert("trunc", b.op("sub", last, at), I32)
        b.store(joined(b, key, place), b.offset(_FIRST, b.op("add", at, i64(number)), I64), 8)
    b.store(_LEAST, b.offset(_FIRST, b.op("add", starts[number + 1], i64(number)), I64), 8)


def _follow(b: Builder, bits: int, numbers: Value, total: Value) -> None:
    """Emit the pairs in the order of their numbers."""
    last, pair = b.op("sub", total, i64(1)), f"i{2 * bits}"
    with b.loop(i64(0), total, i64(1)) as at:
        place = b.op("and", b.load(I64, b.offset(numbers, at, I64), 8), i64(0xFFFFFFFF))
        source = b.offset(_PAIRS, b.op("sub", last, place), pair)
        b.store(b.load(pair, source, bits // 8), b.offset(_OUT, at, pair), bits // 8)


class Lists:
    """Lists of numbers one after the other, a least number behind each."""

    def __init__(self, b: Builder, numbers: Value, starts: Sequence[Value]) -> None:
        self.b, self.numbers, self.starts = b, numbers, starts

    def into(self, to: Value, which: Sequence[tuple[int, int]], places: Sequence[Value]) -> None:
        """Emit the merging of pairs of lists into other places, with a least number behind them; all go on at once."""
        b = self.b
        sizes = [b.op("sub", self.starts[second + 1], self.starts[first]) for first, second in which]
        heads = [self._begin(number) for pair in which for number in pair]
        together = sizes[0] if len(sizes) == 1 else b.intrinsic("llvm.smin", *sizes)
        heads = self._merge(to, i64(0), together, heads, places)
        for number, (size, place) in enumerate(zip(sizes, places, strict=True)):
            if len(sizes) > 1:
                self._merge(to, together, size, heads[2 * number : 2 * number + 2], [place])
            b.store(_LEAST, b.offset(to, b.op("add", place, size), I64), 8)

    def _begin(self, number: int) -> Value:
        return self.b.offset(self.numbers, self.b.op("add", self.starts[number], i64(number)), I64)

    def _merge(
        self, to: Value, begin: Value, end: Value, heads: Sequence[Value], places: Sequence[Value]
    ) -> Sequence[Value]:
        """Emit so many steps of some merges; return what is left of the lists."""
        b = self.b
        loop = b.open_loop(begin, end, i64(1), heads)
        following: list[Value] = []
        for number, place in enumerate(places):
            pair = loop.values[2 * number : 2 * number + 2]
            first, second = (b.load(I64, head, 8) for head in pair)
            takes = b.convert("zext", b.compare("icmp sgt", second, first), I64)
            b.store(b.intrinsic("llvm.smax", first, second), b.offset(to, b.op("add", place, loop.index), I64), 8)
            following.append(b.offset(pair[0], b.op("xor", takes, i64(1)), I64))
            following.append(b.offset(pair[1], takes, I64))
        return b.close_loop(loop, following)
