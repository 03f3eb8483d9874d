"""Radix sort: integers in the order of their keys, a byte of those at a time, equal ones as they came.

How often each byte occurs is counted for all places of the key at once; a place at which all bytes are equal is left
out. Few integers are inserted one after the other instead.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.native.llvm import I1, I8, I32, I64, PTR, Builder, Module, Value, i64

FEW = 32
"""How many are sorted by insertion."""

BYTES = 256
"""How many values a byte has."""

KeyOf = Callable[[Builder, Value], Value]
"""Emits the key of what is sorted."""

_FIRST, _OTHER, _COUNTS, _NUMBER = Value(PTR, "%first"), Value(PTR, "%other"), Value(PTR, "%counts"), Value(I64, "%n")


def room_for_counts(key_bits: int) -> int:
    """Return how many bytes the counts take."""
    return key_bits // 8 * BYTES * 4


def emit_radix(module: Module, name: str, bits: int, key_bits: int, key_of: KeyOf) -> str:
    """Return the name of a function that sorts integers of so many bits, adding it to the module once.

    Its parameters are `ptr first, ptr other, ptr counts, i64 n`: where they are, as much room besides, and room for
    counts. It returns which of the two rooms they are in at the end.
    """
    if name not in module.defined:
        params = (_FIRST, _OTHER, _COUNTS, _NUMBER)
        b = Builder(module, name, params, returns=PTR, attrs="noinline nounwind")
        _Sort(b, f"i{bits}", key_bits, key_of).emit()
    return name


class _Sort:
    """One sort being emitted."""

    def __init__(self, b: Builder, type_: str, key_bits: int, key_of: KeyOf) -> None:
        self.b, self.type, self.bytes, self.key_of = b, type_, key_bits // 8, key_of
        self.align = int(type_[1:]) // 8
        self.source, self.target = b.slot(PTR), b.slot(PTR)

    def emit(self) -> None:
        """Emit the sort."""
        b = self.b
        b.store(_FIRST, self.source, 8)
        b.store(_OTHER, self.target, 8)
        is_few = b.compare("icmp sle", _NUMBER, i64(FEW))
        with b.when(is_few):
            self._insert()
        with b.when(b.op("xor", is_few, Value(I1, "true"))):
            self._count()
            for place in range(self.bytes):
                self._place(place)
        b.finish(b.load(PTR, self.source, 8))

    def _load(self, base: Value, at: Value) -> Value:
        return self.b.load(self.type, self.b.offset(base, at, self.type), self.align)

    def _store(self, value: Value, base: Value, at: Value) -> None:
        self.b.store(value, self.b.offset(base, at, self.type), self.align)

    def _insert(self) -> None:
        """Emit the insertion of each integer before those that are larger."""
        b, hole = self.b, self.b.slot(I64)
        with b.loop(i64(1), _NUMBER, i64(1)) as at:
            own = self._load(_FIRST, at)
            key = self.key_of(b, own)
            b.store(at, hole, 8)
            head, look, move, done = (b.label(hint) for hint in ("head", "look", "move", "done"))
            b.do(f"br label %{head}")
            b.begin(head)
            here = b.load(I64, hole, 8)
            b.do(f"br {b.compare('icmp sgt', here, i64(0))}, label %{look}, label %{done}")
            b.begin(look)
            before = b.op("sub", here, i64(1))
            other = self._load(_FIRST, before)
            b.do(f"br {b.compare('icmp ugt', self.key_of(b, other), key)}, label %{move}, label %{done}")
            b.begin(move)
            self._store(other, _FIRST, here)
            b.store(before, hole, 8)
            b.do(f"br label %{head}")
            b.begin(done)
            self._store(own, _FIRST, b.load(I64, hole, 8))

    def _count(self) -> None:
        """Emit the counting of bytes at all places."""
        b = self.b
        name = b.module.intrinsic("llvm.memset.p0.i64", "void", PTR, I8, I64, "i1")
        b.invoke(name, _COUNTS, Value(I8, "0"), i64(self.bytes * BYTES * 4), Value(I1, "false"))
        with b.loop(i64(0), _NUMBER, i64(1)) as at:
            key = self.key_of(b, self._load(_FIRST, at))
            for place in range(self.bytes):
                cell = self._cell(self._byte(key, place), place)
                b.store(b.op("add", b.load(I32, cell, 4), Value(I32, "1")), cell, 4)

    def _byte(self, key: Value, place: int) -> Value:
        b = self.b
        moved = b.op("lshr", key, Value(key.type, str(8 * place))) if place else key
        low = b.op("and", moved, Value(key.type, "255"))
        return low if key.type == I64 else b.convert("zext", low, I64)

    def _cell(self, byte: Value, place: int) -> Value:
        return self.b.offset(_COUNTS, self.b.op("add", byte, i64(place * BYTES)), I32)

    def _place(self, place: int) -> None:
        """Emit the moving of all integers to where their byte at a place says, unless that is the same for all."""
        b = self.b
        source, target = b.load(PTR, self.source, 8), b.load(PTR, self.target, 8)
        first = self._byte(self.key_of(b, self._load(source, i64(0))), place)
        equal = b.convert("zext", b.load(I32, self._cell(first, place), 4), I64)
        with b.when(b.compare("icmp ne", equal, _NUMBER)):
            loop = b.open_loop(i64(0), i64(BYTES), i64(1), [Value(I32, "0")])
            cell = self._cell(loop.index, place)
            count = b.load(I32, cell, 4)
            b.store(loop.values[0], cell, 4)
            b.close_loop(loop, [b.op("add", loop.values[0], count)])
            with b.loop(i64(0), _NUMBER, i64(1)) as at:
                own = self._load(source, at)
                cell = self._cell(self._byte(self.key_of(b, own), place), place)
                to = b.load(I32, cell, 4)
                b.store(b.op("add", to, Value(I32, "1")), cell, 4)
                self._store(own, target, b.convert("zext", to, I64))
            b.store(target, self.source, 8)
            b.store(source, self.target, 8)
