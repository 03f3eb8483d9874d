"""The largest elements of a row: a short list in order, into which goes whatever is larger than its last.

Most elements are smaller, which one comparison tells of many at once. They are so from the start, since the row is
divided into as many parts as elements are asked for, or more: the largest of each are as many elements as that. An
element and its place make one integer of 64 bits, so that the list is one of integers, no two of which are equal.
"""

from __future__ import annotations

from tilewright.backends.cpu.compute.keys import record, unsigned_key
from tilewright.backends.cpu.compute.storage import splat
from tilewright.dtypes import DataType
from tilewright.native.llvm import I1, I8, I64, PTR, TRUE, Builder, Module, Value, i64, vector

MOST = BLOCK = 64
"""How many elements are found this way: of more, all are sorted. As many are compared at a time."""

PARTS = 16
"""How many parts a row is divided into where that is enough."""

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
        """Emit the search: for what is surely smaller, through blocks of some vectors, and through what is left."""
        b = self.b
        end = b.op("and", _WIDTH, i64(-BLOCK))
        self._clear()
        for part in self._largest_of_parts(end):
            with b.loop(i64(0), i64(self.lanes), i64(1)) as lane:
                key = b.value(self.raw, f"extractelement {part}, {lane}")
                self._insert(record(b, key, i64(1), 64))
        least = self._last_key()
        self._clear()
        with b.loop(i64(0), end, i64(BLOCK)) as at:
            self._block(at, least)
        with b.loop(end, _WIDTH, i64(1)) as at:
            self._insert(self._record(at))
        b.finish()

    def _clear(self) -> None:
        name = self.b.module.intrinsic("llvm.memset.p0.i64", "void", PTR, I8, I64, "i1")
        self.b.invoke(name, _LIST, Value(I8, "0"), i64(room_for(self.k)), Value(I1, "false"))

    def _last_key(self) -> Value:
        return self.b.convert("trunc", self.b.op("lshr", self.b.load(I64, self.last, 8), i64(32)), self.raw)

    def _largest_of_parts(self, end: Value) -> list[Value]:
        """Emit the search for the largest key of each of so many parts of a row; return them, some to a vector."""
        b, count = self.b, BLOCK // self.lanes
        loop = b.open_loop(i64(0), end, i64(BLOCK), [splat(vector(self.raw, self.lanes), 0)] * count)
        keys = [self._keys(loop.index, number * self.lanes) for number in range(count)]
        pairs = zip(loop.values, keys, strict=True)
        found = list(b.close_loop(loop, [b.intrinsic("llvm.umax", *pair) for pair in pairs]))
        while len(found) > 1 and len(found) * self.lanes > PARTS >= self.k:
            half = len(found) // 2
            found = [b.intrinsic("llvm.umax", *pair) for pair in zip(found[:half], found[half:], strict=True)]
        return found

    def _keys(self, at: Value, start: int) -> Value:
        """Emit the loading of the keys of one vector."""
        b, type_ = self.b, vector(self.raw, self.lanes)
        return self._key(b.load(type_, b.offset(_ROW, b.op("add", at, i64(start)), self.raw), self.size))

    def _key(self, raw: Value) -> Value:
        return unsigned_key(self.b, raw, self.dtype, self.is_flipped)

    def _record(self, at: Value) -> Value:
        b = self.b
        key = self._key(b.load(self.raw, b.offset(_ROW, at, self.raw), self.size))
        return record(b, key, b.op("xor", at, i64(-1)), 64)

    def _insert(self, new: Value) -> None:
        """Emit the insertion of what is larger than the last one."""
        b = self.b
        with b.when(b.compare("icmp ugt", new, b.load(I64, self.last, 8))):
            b.invoke(self.insert, _LIST, new)

    def _block(self, at: Value, least: Value) -> None:
        """Emit the comparison of a block with the last one, or with the least, and the insertion of what is larger."""
        b, count = self.b, self.lanes
        is_full = b.compare("icmp ne", b.load(I64, self.last, 8), i64(0))
        above = b.intrinsic("llvm.uadd.sat", self._last_key(), Value(self.raw, "1"))
        bound = b.splat(b.select(is_full, b.intrinsic("llvm.umax", above, least), least), count)
        found = i64(0)
        for start in range(0, BLOCK, count):
            larger = b.compare("icmp uge", self._keys(at, start), bound)
            bits = b.convert("zext", b.convert("bitcast", larger, f"i{count}"), I64)
            found = b.op("or", found, b.op("shl", bits, i64(start)))
        b.store(found, self.left, 8)
        head, body, done = (b.label(hint) for hint in ("head", "body", "done"))
        b.do(f"br label %{head}")
        b.begin(head)
        left = b.load(I64, self.left, 8)
        b.do(f"br {b.compare('icmp ne', left, i64(0))}, label %{body}, label %{done}")
        b.begin(body)
        at = b.op("add", at, b.intrinsic("llvm.cttz", left, TRUE))
        self._insert(self._record(at))
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
        move = b.module.intrinsic("llvm.memmove.p0.p0.i64", "void", PTR, PTR, I64, "i1")
        b.invoke(move, b.offset(here, i64(1), I64), here, size, Value(I1, "false"))
        b.store(_NEW, here, 8)
        b.finish()
    return name
