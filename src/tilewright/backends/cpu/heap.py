"""The heap: memory that code asks for while it runs.

A kernel's tiles lie in an arena that ends with it; buffers live until the program's caller has read the results. Code
that is refused memory notes that and leaves its function, and so does every caller.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cpu.emit import FunctionEmitter
from tilewright.backends.cpu.llvm import I64, PTR, Builder, Value, i64
from tilewright.backends.cpu.values import static

LARGEST = 1 << 48
"""No machine has more bytes."""

NO_ARENA = "there is no memory for the tiles of this kernel"


def new_arena(b: Builder, context: Value, size: int | str, note: int, exit: str) -> Value:
    """Emit the making of an arena; where there is no memory, the noting of that and a jump to the exit."""
    b.module.intrinsic("aligned_alloc", PTR, I64, I64)
    bytes_ = Value(I64, str(max(size, 64) if isinstance(size, int) else size))
    memory = b.call(PTR, "aligned_alloc", i64(64), bytes_)
    _leave_without(b, memory, context, note, exit)
    return memory


def free(b: Builder, pointer: Value) -> None:
    """Emit the end of an arena, and of what runs in it: stores that bypass the caches become visible to others."""
    if b.module.streams:
        b.invoke(b.module.intrinsic("llvm.x86.sse.sfence", "void"))
    b.module.declare("declare void @free(ptr)")
    b.invoke("free", pointer)


def allocate(e: FunctionEmitter, nbytes: Value) -> Value:
    """Emit the making of a buffer that the context keeps until the caller has read the results."""
    e.b.module.intrinsic("malloc", PTR, I64)
    block = e.b.call(PTR, "malloc", e.b.intrinsic("llvm.uadd.sat", nbytes, i64(128)))
    _leave_without(e.b, block, e.context, e.program.note("there is no memory for this tensor", e.at.span), e.exit)
    head = e.b.offset(e.context, i64(2), I64)
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
    name = b.module.intrinsic("llvm.umul.fix.sat.i64", I64, I64, I64, "i32 immarg")
    return b.call(I64, name, x, y, Value("i32", "0"))


def _leave_without(b: Builder, memory: Value, context: Value, note: int, exit: str) -> None:
    with b.when(b.compare("icmp eq", memory, Value(PTR, "null"))):
        cell = b.offset(context, i64(1), I64)
        b.do(f"store atomic i64 {note}, {cell} monotonic, align 8")
        b.do(f"br label %{exit}")
        b.begin(b.label("unreached"))
