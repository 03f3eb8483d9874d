"""Polls: how running code learns that its program is over.

A program is over once an error has been noted, or a signal's handler has raised. Code counts its work down and, at
zero, calls `poll(context)`, which lets whoever started the program look for signals (`interrupts`) and tells whether
the error word is set; the function is left then, and every function around it. Between two polls lie at
least 30 microseconds: a turn of a loop is an instruction longer, small turns are counted thousands at a time, and a
poll takes twenty nanoseconds.
"""

from __future__ import annotations

from tilewright.backends.cpu.emit.work import SPAN
from tilewright.native.context import Context
from tilewright.native.llvm import I1, I64, PTR, Builder, Module, Value, i64

_CONTEXT = Value(PTR, "%context")


class Polls:
    """The polls of one function being written: they share a count, and leave to its exit."""

    def __init__(self, b: Builder, context: Value, exit: str) -> None:
        self.b, self.context, self.exit = b, context, exit
        self._left: Value | None = None

    def count(self, units: int) -> None:
        """Emit that so much work has been done."""
        if units >= SPAN:
            self._poll()
            return
        b, cell = self.b, self._cell()
        left = b.op("sub", b.load(I64, cell, 8), i64(units))
        b.store(left, cell, 8)
        with b.when(b.compare("icmp slt", left, i64(0))):
            b.store(i64(SPAN), cell, 8)
            self._poll()

    def _poll(self) -> None:
        over, on = self.b.call(I1, poll_of(self.b.module), self.context), self.b.label("on")
        self.b.do(f"br {over}, label %{self.exit}, label %{on}")
        self.b.begin(on)

    def _cell(self) -> Value:
        if self._left is None:
            self._left = self.b.slot(I64)
            self.b.lines[0] += f"\n  store i64 {SPAN}, {self._left}"
        return self._left


def poll_of(module: Module) -> str:
    """Return the name of the function that tells whether a program is over, adding it to the module once."""
    if "poll" not in module.defined:
        b = Builder(module, "poll", [_CONTEXT], returns=I1, attrs="noinline cold nounwind")
        look = b.load(PTR, b.offset(_CONTEXT, i64(Context.LOOK), I64), 8)
        with b.when(b.compare("icmp ne", look, Value(PTR, "null"))):
            b.do(f"call void {look.ref}({_CONTEXT})")
        b.finish(is_over(b, _CONTEXT))
    return "poll"


def is_over(b: Builder, context: Value) -> Value:
    """Emit the look at the error word."""
    cell = b.offset(context, i64(Context.ERROR), I64)
    return b.compare("icmp ne", b.value(I64, f"load atomic {I64}, {cell} monotonic, align 8"), i64(0))
