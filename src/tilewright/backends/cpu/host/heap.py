"""The heap: memory that code asks for while it runs.

A kernel's tiles lie in an arena that ends with it, on the stack where it is small; buffers live until the program's
caller has read the results. Code that is refused memory notes that and leaves its function, and so does every caller.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.unit import LARGEST
from tilewright.backends.cpu.emit.values import static
from tilewright.native.context import Context
from tilewright.native.llvm import I64, PTR, Builder, Value, i64

ON_STACK = 4096
"""Bytes of an arena that lie on the stack of its kernel; with more it might reach past the page that guards its end."""

NO_ARENA = "there is no memory for the tiles of this kernel"


class Memory:
    """The memory of an arena, its size filled in once the code that uses it has been written.

    A small one lies on the stack; for a larger one there may be no memory, which is noted before a jump to the exit.
    """

    def __init__(self, b: Builder, context: Value, note: int, exit: str) -> None:
        self.b, self.context, self.note, self.exit = b, context, note, exit
        self.base = Value(PTR, f"%memory{next(b.numbers)}")
        self.ready = b.label("ready")
        self.is_on_heap = False
        b.lines.append("")  # how it is made goes here
        self.position = len(b.lines) - 1
        b.begin(self.ready)

    def fill(self, size: int) -> None:
        """Emit the making of so many bytes."""
        self.is_on_heap = size > ON_STACK
        made = self._on_heap(size) if self.is_on_heap else [self._on_stack(size), f"br label %{self.ready}"]
        self.b.lines[self.position] = "\n".join(f"  {line}" for line in made)

    def _on_stack(self, size: int) -> str:
        return f"{self.base.ref} = " + (f"alloca [{size} x i8], align 64" if size else "inttoptr i64 0 to ptr")

    def _on_heap(self, size: int) -> list[str]:
        self.b.module.intrinsic("aligned_alloc", PTR, I64, I64)
        refused, none, cell = (self.b.label(hint) for hint in ("refused", "none", "cell"))
        return [
            f"{self.base.ref} = call ptr @aligned_alloc(i64 64, i64 {size})",
            f"%{none} = icmp eq {self.base}, null",
            f"br i1 %{none}, label %{refused}, label %{self.ready}",
            f"{refused}:",
            f"%{cell} = getelementptr i64, {self.context}, i64 {Context.ERROR}",
            f"store atomic i64 {self.note}, ptr %{cell} monotonic, align 8",
            f"br label %{self.exit}",
        ]

    def free(self) -> None:
        """Emit the end of what runs in it: stores that bypass the caches become visible to others."""
        if self.b.module.streams:
            self.b.invoke(self.b.module.intrinsic("llvm.x86.sse.sfence", "void"))
        if self.is_on_heap:
            self.b.module.declare("declare void @free(ptr)")
            self.b.invoke("free", self.base)


def allocate(e: FunctionEmitter, nbytes: Value, clear: bool = False) -> Value:
    """Emit the making of a buffer that the context keeps until the caller has read the results."""
    size = e.b.intrinsic("llvm.uadd.sat", nbytes, i64(128))
    if clear:
        e.b.module.intrinsic("calloc", PTR, I64, I64)
        block = e.b.call(PTR, "calloc", size, i64(1))
    else:
        e.b.module.intrinsic("malloc", PTR, I64)
        block = e.b.call(PTR, "malloc", size)
    _leave_without(e.b, block, e.context, e.program.note("there is no memory for this tensor", e.at.span), e.exit)
    head = e.b.offset(e.context, i64(Context.BUFFERS), I64)
    older = e.b.value(PTR, f"atomicrmw xchg {head}, {block} monotonic")
    e.b.store(older, block, 8)
    address = e.b.value(I64, f"ptrtoint {block} to i64")
    aligned = e.b.op("and", e.b.op("add", address, i64(127)), i64(-64))
    return e.b.value(PTR, f"inttoptr {aligned} to ptr")


def size_of(e: FunctionEmitter, shape: Sequence[Value], element_bytes: int) -> Value:
    """Return how many bytes elements take; a number that there is no memory for where that is none of 64 bits."""
    known, size = element_bytes, None
    for extent in shape:
        number = static(extent)
        if number is not None:
            known = min(known * number, LARGEST)
        else:
            size = extent if size is None else _saturated(e.b, size, extent)
    return i64(known) if size is None else _saturated(e.b, size, i64(known))


def _saturated(b: Builder, x: Value, y: Value) -> Value:
    """Emit a product of numbers without a sign that is the largest one where it would be larger."""
    name = b.module.intrinsic("llvm.umul.fix.sat.i64", I64, I64, I64, "i32")
    return b.call(I64, name, x, y, Value("i32", "0"))


def _leave_without(b: Builder, memory: Value, context: Value, note: int, exit: str) -> None:
    with b.when(b.compare("icmp eq", memory, Value(PTR, "null"))):
        cell = b.offset(context, i64(Context.ERROR), I64)
        b.do(f"store atomic i64 {note}, {cell} monotonic, align 8")
        b.do(f"br label %{exit}")
        b.begin(b.label("unreached"))
