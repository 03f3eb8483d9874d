"""LLVM IR as text: values, instructions, structured control flow.

Text is quick to make and easy to read; LLVM parses and verifies it before anything is emitted. A `Value` is what an
instruction gave, with its type. Control flow is structured: loops are opened and closed around what is emitted between,
and carried values are phis.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import field
from typing import TYPE_CHECKING

from tilewright.named_tuples import NamedTuple
from tilewright.native.constants import computed, held, is_number, joined
from tilewright.records import mutable
from tilewright.source import UNKNOWN, Span

if TYPE_CHECKING:
    from tilewright.native.places import Places

PTR, I1, I8, I32, I64, F32, F64, VOID = "ptr", "i1", "i8", "i32", "i64", "float", "double", "void"


class Value(NamedTuple):
    """A typed operand: an instruction's result, a parameter or a constant."""

    type: str
    ref: str

    def __str__(self) -> str:
        return f"{self.type} {self.ref}"


TRUE, FALSE = Value(I1, "true"), Value(I1, "false")
_KNOWN = {I64: computed, I1: joined}
"""What instructions over constants of a type give."""


def spelled(name: str) -> str:
    """Return a name in the letters that LLVM, linkers and C compilers share; different names stay different."""
    if name.isascii() and name.isidentifier():
        return name
    return re.sub(r"[^A-Za-z0-9_]", lambda found: f"${ord(found[0]):x}$", name)


def i64(number: int) -> Value:
    """Return a 64-bit constant."""
    return Value(I64, str(int(number)))


def i32(number: int) -> Value:
    """Return a 32-bit constant."""
    return Value(I32, str(number))


def vector(type_: str, lanes: int) -> str:
    """Return the type of `lanes` elements; one lane is the element itself."""
    return type_ if lanes == 1 else f"<{lanes} x {type_}>"


def element(type_: str) -> str:
    """Return the element type of a vector type; other types are their own."""
    return type_.split(" x ")[1].rstrip(">") if type_.startswith("<") else type_


def lanes(type_: str) -> int:
    """Return how many elements a type holds."""
    return int(type_[1:].split(" ")[0]) if type_.startswith("<") else 1


@mutable
class Module:
    """One compilation unit: declarations, globals and functions as text, and what its target does in hardware."""

    fused: bool = True  # multiply-add in one instruction; where it is missing `llvm.fma` would call libm
    converts_half: bool = True  # half to and from float; where it is missing `fpext` would call compiler-rt
    streams: bool = False  # some store bypasses the caches: other threads may see it only after a fence
    scales: bool = False  # a float by a power of two in one instruction, AVX-512's; elsewhere `llvm.ldexp` calls libm
    registers: int = 16  # how many vectors those of the target hold
    declarations: dict[str, None] = field(default_factory=dict[str, None])
    functions: list[str] = field(default_factory=list[str])
    defined: set[str] = field(default_factory=set[str])
    """The names of the functions written or being written, for helpers that are emitted once."""
    on_tiles: dict[str, None] = field(default_factory=dict[str, None])
    """What is multiplied on matrix tiles, which a process has to ask for."""
    places: Places | None = None
    """Where instructions were written, where somebody wants to know."""

    def declare(self, line: str) -> None:
        """Add a declaration or global once."""
        self.declarations[line] = None

    def intrinsic(self, name: str, returns: str, *params: str) -> str:
        """Declare a function of LLVM's or of the outside and return its name."""
        self.declare(f"declare {returns} @{name}({', '.join(params)})")
        return name

    def text(self) -> str:
        """Return the whole module."""
        places = self.places.text() if self.places is not None else []
        return "\n".join([*self.declarations, "", *self.functions, *places]) + "\n"


@mutable
class Loop:
    """A counted loop being emitted: its index, the values it carries, and what its phis still wait for."""

    index: Value
    values: tuple[Value, ...]
    starts: tuple[Value, ...]
    before: str
    step: Value
    head: str
    done: str
    position: int


class Lines:
    """The lines of one function being written."""

    def __init__(
        self,
        module: Module,
        name: str,
        params: Sequence[Value],
        *,
        returns: str = VOID,
        linkage: str = "internal",
        attrs: str = "",
    ) -> None:
        self.module = module
        self.name = name
        self.scope, self.tag = 0, ""
        if module.places is not None:
            self.scope = module.places.function(name)
            attrs, self.tag = f"{attrs} !dbg !{self.scope}", module.places.tag(self.scope, UNKNOWN)
        self.head = f"define {linkage} {returns} @{name}({', '.join(map(str, params))}) {attrs} {{"
        self.lines: list[str] = ["entry:"]
        self.marked: int | None = None
        """Where what is emitted goes, if it goes elsewhere."""
        self.block = "entry"
        self.numbers = itertools.count()
        module.defined.add(name)

    def finish(self, result: Value | None = None) -> None:
        """End the function, with its result where it has one, and hand it to its module."""
        self.lines.append(f"  ret {result or VOID}")
        self.module.functions.append("\n".join([self.head, *self.lines, "}", ""]))

    def do(self, text: str) -> None:
        """Emit an instruction without a result."""
        self.lines.append(f"  {text}{self.tag}")

    def place_at(self, span: Span) -> None:
        """Let what follows be made for a place."""
        if self.module.places is not None:
            self.tag = self.module.places.tag(self.scope, span)

    def value(self, type_: str, text: str) -> Value:
        """Emit an instruction and return its result."""
        ref = f"%t{next(self.numbers)}"
        self.lines.append(f"  {ref} = {text}{self.tag}")
        return Value(type_, ref)

    def slot(self, type_: str) -> Value:
        """Return a word of the function's frame: what is stored in it on several paths is a phi once optimised."""
        ref = f"%slot{next(self.numbers)}"
        self.lines[0] += f"\n  {ref} = alloca {type_}"
        return Value(PTR, ref)

    def label(self, hint: str) -> str:
        """Return a fresh block name."""
        return f"{hint}{next(self.numbers)}"

    def begin(self, label: str) -> None:
        """Start a basic block."""
        self.lines.append(f"{label}:")
        self.block = label

    def mark(self) -> int:
        """Return a place in the code at which more can be emitted later, after what is there by now."""
        self.lines.append("")
        return len(self.lines) - 1

    @contextmanager
    def earlier(self, mark: int) -> Generator[None, None, None]:
        """Emit what is inside at a mark instead of here: instructions, no blocks."""
        if self.marked == mark:
            yield
            return
        (here, self.lines), outer, self.marked = (self.lines, [self.lines[0]]), self.marked, mark
        yield
        (here[0], *added), self.lines, self.marked = self.lines, here, outer
        self.lines[mark] = "\n".join(filter(None, [self.lines[mark], *added]))


class Builder(Lines):
    """One function being written, instruction by instruction."""

    def op(self, name: str, *operands: Value) -> Value:
        """Emit an arithmetic instruction, whose result has the type of its operands."""
        type_ = operands[0].type
        if type_ in _KNOWN and len(operands) == 2:
            known = _KNOWN[type_](name, operands[0].ref, operands[1].ref)
            if known is not None:
                return Value(type_, known)
        refs = ", ".join(operand.ref for operand in operands)
        return self.value(type_, f"{name} {type_} {refs}")

    def compare(self, predicate: str, lhs: Value, rhs: Value) -> Value:
        """Emit a comparison, as in `icmp slt` or `fcmp olt`."""
        known = held(predicate, lhs.ref, rhs.ref) if lhs.type == I64 else None
        if known is not None:
            return Value(I1, known)
        return self.value(vector(I1, lanes(lhs.type)), f"{predicate} {lhs.type} {lhs.ref}, {rhs.ref}")

    def select(self, condition: Value, then: Value, other: Value) -> Value:
        """Emit a choice by condition, lane by lane for vectors."""
        if condition in (TRUE, FALSE):
            return then if condition == TRUE else other
        return self.value(then.type, f"select {condition}, {then}, {other}")

    def convert(self, name: str, value: Value, to: str) -> Value:
        """Emit a conversion, as in `fptrunc`; a value of that type already is returned as it is."""
        return value if value.type == to else self.value(to, f"{name} {value} to {to}")

    def call(self, returns: str, function: str, *args: Value, flags: str = "") -> Value:
        """Emit a call of a function with a result; flags that say what may be assumed end with a space."""
        return self.value(returns, f"call {flags}{returns} @{function}({', '.join(map(str, args))})")

    def invoke(self, function: str, *args: Value) -> None:
        """Emit a call for its effect."""
        self.do(f"call void @{function}({', '.join(map(str, args))})")

    def intrinsic(self, name: str, *operands: Value, returns: str = "", flags: str = "") -> Value:
        """Emit an LLVM intrinsic over operands of one type, as in `llvm.fma`."""
        type_ = returns or operands[0].type
        if type_ == I64 and len(operands) == 2 and (known := computed(name, operands[0].ref, operands[1].ref)):
            return Value(type_, known)
        full = self.module.intrinsic(f"{name}.{mangled(operands[0].type)}", type_, *(o.type for o in operands))
        return self.call(type_, full, *operands, flags=flags)

    def splat(self, scalar: Value, count: int) -> Value:
        """Return a vector all of whose lanes are `scalar`."""
        if count == 1:
            return scalar
        type_ = vector(scalar.type, count)
        if not scalar.ref.startswith("%"):
            return Value(type_, f"splat ({scalar})")
        first = self.value(type_, f"insertelement {type_} poison, {scalar}, i32 0")
        mask = f"<{count} x i32> zeroinitializer"
        return self.value(type_, f"shufflevector {first}, {type_} poison, {mask}")

    def offset(self, pointer: Value, index: Value, type_: str) -> Value:
        """Return the address `index` elements of `type_` past a pointer."""
        return self.value(PTR, f"getelementptr {type_}, {pointer}, {index}")

    def load(self, type_: str, pointer: Value, align: int) -> Value:
        """Emit a load."""
        return self.value(type_, f"load {type_}, {pointer}, align {align}")

    def store(self, value: Value, pointer: Value, align: int, extra: str = "") -> None:
        """Emit a store."""
        self.do(f"store {value}, {pointer}, align {align}{extra}")

    def open_loop(self, start: Value, stop: Value, step: Value, carried: Sequence[Value] = ()) -> Loop:
        """Open `for index in range(start, stop, step)` carrying values; close it with `close_loop`."""
        before, head, body, done = self.block, self.label("head"), self.label("body"), self.label("done")
        self.do(f"br label %{head}")
        self.begin(head)
        self.lines.append("")  # the phis go here once the values of the next turn are known
        position = len(self.lines) - 1
        index = Value(start.type, f"%t{next(self.numbers)}")
        values = tuple(Value(v.type, f"%t{next(self.numbers)}") for v in carried)
        more = self.compare("icmp slt", index, stop)
        self.do(f"br {more}, label %{body}, label %{done}")
        self.begin(body)
        return Loop(index, values, (start, *carried), before, step, head, done, position)

    def close_loop(self, loop: Loop, values: Sequence[Value] = ()) -> tuple[Value, ...]:
        """Close a loop with the values of its next turn; return what it carried at the end."""
        following = self.op("add", loop.index, loop.step)
        phis = [
            f"  {now.ref} = phi {now.type} [ {first.ref}, %{loop.before} ], [ {then.ref}, %{self.block} ]"
            for now, first, then in zip((loop.index, *loop.values), loop.starts, (following, *values), strict=True)
        ]
        self.lines[loop.position] = "\n".join(phis)
        self.do(f"br label %{loop.head}")
        self.begin(loop.done)
        return loop.values

    def leave_loop(self, loop: Loop, condition: Value) -> None:
        """Leave a loop where a condition holds: its index and values stay those of the turn."""
        following = self.label("next")
        self.do(f"br {condition}, label %{loop.done}, label %{following}")
        self.begin(following)

    @contextmanager
    def loop(self, start: Value, stop: Value, step: Value) -> Generator[Value, None, None]:
        """Emit a counted loop that carries nothing around what is emitted inside."""
        if is_number(start.ref) and is_number(stop.ref) and is_number(step.ref):
            turns = len(range(int(start.ref), int(stop.ref), int(step.ref)))
            if turns <= 1:
                with nullcontext() if turns else self.when(FALSE):
                    yield start
                return
        opened = self.open_loop(start, stop, step)
        yield opened.index
        self.close_loop(opened)

    def either(self, condition: Value, then: Callable[[], Value], other: Callable[[], Value]) -> Value:
        """Emit two ways to a value, of which only the one that the condition names is gone."""
        labels = self.label("then"), self.label("else")
        after = self.label("after")
        self.do(f"br {condition}, label %{labels[0]}, label %{labels[1]}")
        found: list[tuple[Value, str]] = []
        for label, way in zip(labels, (then, other), strict=True):
            self.begin(label)
            found.append((way(), self.block))
            self.do(f"br label %{after}")
        self.begin(after)
        (first, first_end), (second, second_end) = found
        return self.value(
            first.type, f"phi {first.type} [ {first.ref}, %{first_end} ], [ {second.ref}, %{second_end} ]"
        )

    @contextmanager
    def when(self, condition: Value) -> Generator[None, None, None]:
        """Emit what is inside under a condition."""
        then, after = self.label("then"), self.label("after")
        self.do(f"br {condition}, label %{then}, label %{after}")
        self.begin(then)
        yield
        self.do(f"br label %{after}")
        self.begin(after)


def mangled(type_: str) -> str:
    """Return a type as intrinsic names spell it, as in `v16f32`."""
    base = {"float": "f32", "double": "f64", "half": "f16", "bfloat": "bf16", PTR: "p0"}.get(
        element(type_), element(type_)
    )
    return base if lanes(type_) == 1 else f"v{lanes(type_)}{base}"


def shuffled(b: Builder, first: Value, second: Value, order: Sequence[int]) -> Value:
    """Return lanes of two vectors in an order."""
    mask = ", ".join(f"i32 {lane}" for lane in order)
    type_ = vector(element(first.type), len(order))
    return b.value(type_, f"shufflevector {first}, {second}, <{len(order)} x i32> <{mask}>")
