"""The largest elements of a row: a short list in order, into which goes whatever is larger than its last.

Most elements are smaller, which one comparison tells of many at once. An element and its place make one integer of 64
bits, so that the list is one of integers, no two of which are equal.
"""

from __future__ import annotations

from tilewright.backends.cpu.compute.keys import record, unsigned_key
from tilewright.dtypes import DataType
from tilewright.native.llvm import I1, I8, I64, PTR, Builder, Module, Value, i64, vector

MOST = 128
"""How many elements are found this way: of more, all are sorted."""

CHUNK = 8
"""How many of the list are compared at once."""

_ROW, _WIDTH, _LIST, _NEW = Value(PTR, "%row"), Value(I64, "%width"), Value(PTR, "%list"), Value(I64, "%new")


def room_for(k: int) -> int:
    """Return how many bytes a list takes."""
    return -(-k // CHUNK) * CHUNK * 8


def emit_largest(module: Module, dtype: DataType, k: int, is_largest: bool, lanes: int) -> str:
    """Return the name of a function that lists the first `k` elements of a row, adding it to the module once.

    Its parameters are `ptr row, i64 width, ptr list`. In the list are keys above inverted places, the largest first.
    """
    name = f"{'largest' if is_largest else 'smallest'}{k}_{dtype}"
    if name not in module.defined:
        b = Builder(module, name, (_ROW, _WIDTH, _LIST), attrs="noinline nounwind")
        _Search(b, dtype, k, not is_largest, lanes).emit()
    return name


class _Search:
    """One search being emitted."""

    def __init__(self, b: Builder, dtype: DataType, k: int, is_flipped: bool, lanes: int) -> None:
        self.b, self.dtype, self.k, self.is_flipped, self.lanes = b, dtype, k, is_flipped, lanes
        self.size = dtype.get_byte()
        self.raw = f"i{8 * self.size}"
        self.insert = _emit_insert(b.module, k)
        self.last = b.offset(_LIST, i64(k - 1), I64)
        self.left = b.slot(I64)

    def emit(self) -> None:
        """Emit the search: the first elements, blocks of some vectors, and what is left."""
        b = self.b
        name = b.module.intrinsic("llvm.memset.p0.i64", "void", PTR, I8, I64, "i1 immarg")
        b.invoke(name, _LIST, Value(I8, "0"), i64(room_for(self.k)), Value(I1, "false"))
        first = b.intrinsic("llvm.smin", _WIDTH, i64(self.k))
        with b.loop(i64(0), first, i64(1)) as at:
            b.invoke(self.insert, _LIST, self._record(at))
        end = b.op("add", first, b.op("and", b.op("sub", _WIDTH, first), i64(-64)))
        with b.loop(first, end, i64(64)) as at:
            self._block(at)
        with b.loop(end, _WIDTH, i64(1)) as at:
            self._try(at)
        b.finish()

    def _key(self, raw: Value) -> Value:
        return unsigned_key(self.b, raw, self.dtype, self.is_flipped)

    def _record(self, at: Value) -> Value:
        b = self.b
        key = self._key(b.load(self.raw, b.offset(_ROW, at, self.raw), self.size))
        return record(b, key, b.op("xor", at, i64(-1)), 64)

    def _try(self, at: Value) -> None:
        """Emit the insertion of an element that is larger than the last one."""
        b, new = self.b, self._record(at)
        with b.when(b.compare("icmp ugt", new, b.load(I64, self.last, 8))):
            b.invoke(self.insert, _LIST, new)

    def _block(self, at: Value) -> None:
        """Emit the comparison of 64 elements with the last one, and the insertion of those that are larger."""
        b, count, type_ = self.b, self.lanes, vector(self.raw, self.lanes)
        least = b.op("lshr", b.load(I64, self.last, 8), i64(32))
        least = b.splat(b.convert("trunc", least, self.raw), count)
        found = i64(0)
        for start in range(0, 64, count):
            place = b.offset(_ROW, b.op("add", at, i64(start)), self.raw)
            larger = b.compare("icmp ugt", self._key(b.load(type_, place, self.size)), least)
            bits = b.convert("zext", b.convert("bitcast", larger, f"i{count}"), I64)
            found = b.op("or", found, b.op("shl", bits, i64(start)))
        b.store(found, self.left, 8)
        head, body, done = (b.label(hint) for hint in ("head", "body", "done"))
        b.do(f"br label %{head}")
        b.begin(head)
        left = b.load(I64, self.left, 8)
        b.do(f"br {b.compare('icmp ne', left, i64(0))}, label %{body}, label %{done}")
        b.begin(body)
        b.module.declare("declare i64 @llvm.cttz.i64(i64, i1 immarg)")
        self._try(b.op("add", at, b.call(I64, "llvm.cttz.i64", left, Value(I1, "true"))))
        b.store(b.op("and", left, b.op("sub", left, i64(1))), self.left, 8)
        b.do(f"br label %{head}")
        b.begin(done)


def _emit_insert(module: Module, k: int) -> str:
    """Return the name of a function that puts an integer into a list in order, whose last one goes."""
    name = f"insert{k}"
    if name not in module.defined:
        b = Builder(module, name, (_LIST, _NEW), attrs="noinline nounwind")
        type_, rank = vector(I64, CHUNK), i64(0)
        for start in range(0, k, CHUNK):
            held = b.load(type_, b.offset(_LIST, i64(start), I64), 8)
            larger = b.compare("icmp ugt", held, b.splat(_NEW, CHUNK))
            rank = b.op(
                "add", rank, b.convert("zext", b.intrinsic("llvm.ctpop", b.convert("bitcast", larger, I8)), I64)
            )
        here = b.offset(_LIST, rank, I64)
        size = b.op("shl", b.op("sub", i64(k - 1), rank), i64(3))
        move = b.module.intrinsic("llvm.memmove.p0.p0.i64", "void", PTR, PTR, I64, "i1 immarg")
        b.invoke(move, b.offset(here, i64(1), I64), here, size, Value(I1, "false"))
        b.store(_NEW, here, 8)
        b.finish()
    return name
