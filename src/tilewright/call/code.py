"""Code: a function of the dispatcher being written, in words of tables and pointers to objects of Python."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from tilewright.call.words import HASH_FACTOR
from tilewright.native.llvm import I1, I64, PTR, Builder, Module, Value, i64

YES, NO = "true", "false"
NULL = Value(PTR, "null")

OBJECT_TYPE, TYPE_VECTORCALL = 1, 7
"""Which word of an object is its type, and which of a type says where its instances keep how they are called."""

TUPLE_SIZE, TUPLE_ITEMS = 2, 3
"""Which word of a tuple says how many items it has, and where they start."""


class Code(Builder):
    """A function of the dispatcher being written; `refuse` leaves it with the answer that means no."""

    def __init__(self, module: Module, name: str, params: Sequence[Value], returns: str, no: str) -> None:
        super().__init__(module, name, params, returns=returns, linkage="internal", attrs="nounwind")
        self.no = Value(returns, no)
        self.out = self.label("no")

    def refuse(self, condition: Value) -> None:
        """Leave where a condition holds."""
        on = self.label("on")
        self.do(f"br {condition}, label %{self.out}, label %{on}")
        self.begin(on)

    def done(self, result: Value) -> None:
        """End the function with its other answer."""
        self.do(f"ret {result}")
        self.begin(self.out)
        self.finish(self.no)

    def word(self, base: Value, index: int | Value, type_: str = I64) -> Value:
        """Return a word of a table."""
        at = i64(index) if isinstance(index, int) else index
        return self.load(type_, self.offset(base, at, I64), 8)

    def put(self, base: Value, index: int | Value, value: Value) -> None:
        """Write a word of a table."""
        at = i64(index) if isinstance(index, int) else index
        self.store(value, self.offset(base, at, I64), 8)

    def at(self, base: Value, byte: Value, type_: str = I64) -> Value:
        """Return what lies some bytes past an address."""
        return self.load(type_, self.offset(base, byte, "i8"), 1)

    def is_not(self, one: Value, other: Value) -> Value:
        """Return whether two words differ."""
        return self.compare("icmp ne", one, other)

    def pointer(self, word: Value) -> Value:
        """Return a word as an address."""
        return self.value(PTR, f"inttoptr {word} to ptr")

    def number(self, pointer: Value) -> Value:
        """Return an address as a word."""
        return self.value(I64, f"ptrtoint {pointer} to i64")

    def negated(self, condition: Value) -> Value:
        """Return the opposite of a condition."""
        return self.op("xor", condition, Value(I1, "true"))

    def frame_bytes(self, size: int) -> Value:
        """Return so many bytes of the function's frame."""
        ref = f"%room{next(self.numbers)}"
        self.lines[0] += f"\n  {ref} = alloca [{size} x i8], align 8"
        return Value(PTR, ref)

    def mixed(self, digest: Value, word: Value) -> Value:
        """Return a hash with one more word in it."""
        product = self.op("mul", self.op("xor", digest, word), i64(HASH_FACTOR))
        return self.op("xor", product, self.op("lshr", product, i64(29)))

    @contextmanager
    def alternative(self, condition: Value) -> Generator[None, None, None]:
        """Emit code that is run, and leaves the function, where a condition holds."""
        then, after = self.label("then"), self.label("after")
        self.do(f"br {condition}, label %{then}, label %{after}")
        self.begin(then)
        yield
        self.begin(after)

    @contextmanager
    def each(self, count: Value, table: Value, size: int) -> Generator[Value, None, None]:
        """Emit a loop over records of so many words around what is emitted inside."""
        with self.loop(i64(0), count, i64(1)) as index:
            yield self.offset(table, self.op("mul", index, i64(size)), I64)
