"""Triton IR as text: values, operations, regions.

Every operation says which line of the kernel it is for. Tensors have powers of two as extents, which whoever makes them
sees to; a value without a shape is a scalar.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from tilewright.dtypes import DataType
from tilewright.errors import InternalError
from tilewright.named_tuples import NamedTuple
from tilewright.records import mutable
from tilewright.source import UNKNOWN, Span

I1, I8, I32, I64, F32, F64 = "i1", "i8", "i32", "i64", "f32", "f64"


class Value(NamedTuple):
    """A typed operand: its name, the type of an element, and how many there are along each axis."""

    ref: str
    element: str
    shape: tuple[int, ...] = ()

    @property
    def type(self) -> str:
        """Its type, as the text has it."""
        return type_of(self.element, self.shape)

    def __str__(self) -> str:
        return self.ref


def type_of(element: str, shape: Sequence[int]) -> str:
    """Return the type of a tensor, or of a scalar where there is no shape."""
    return f"tensor<{'x'.join(map(str, shape))}x{element}>" if shape else element


def pointer_to(element: str) -> str:
    """Return the type of an address in global memory."""
    return f"!tt.ptr<{element}>"


def descriptor_of(element: str, shape: Sequence[int]) -> str:
    """Return the type of a descriptor, by which blocks of a tensor are loaded; as Triton up to 3.7 has it."""
    return f"!tt.tensordesc<{type_of(element, shape)}>"


def located(span: Span) -> str:
    """Return where an operation comes from, by the file's whole path, so that profilers find it."""
    if not span.is_known:
        return 'loc("kernel":0:0)'
    file = span.filename if span.filename.startswith("<") else os.path.abspath(span.filename)
    path = file.replace("\\", "/").replace('"', "")
    return f'loc("{path}":{span.line}:{span.column + 1})'


@mutable
class Tail:
    """The last line of a region, and the one in its place where blocks are loaded by descriptors."""

    text: str
    described: str = ""


class Either(NamedTuple):
    """A line of a kernel, and the one in its place where blocks are loaded by descriptors."""

    plain: str
    described: str


ANY_ROOM = 1 << 62


def _no_memory(sizes: Sequence[int]) -> Value:
    raise InternalError("a block without memory of its own")


class Text:
    """A kernel being written, operation by operation."""

    def __init__(self) -> None:
        self.lines: list[str | Either] = []
        self.span: Span = UNKNOWN
        """What the operations that follow are for."""
        self.small: dict[Value, Value] = {}
        """Bytes as the small floats that they are, where blocks are loaded by descriptors, for the matrix units."""
        self.widened: dict[Value, Value] = {}
        """Floats that were bfloat16, and as what they were loaded."""
        self.lengthened: dict[Value, tuple[Value, DataType]] = {}
        """Integers that were shorter, and what they were."""
        self.quick: dict[Value, Value] = {}
        """Exponentials that are zero where they should be subnormal, and of what they are, for who sums them up."""
        self.is_folded = False
        """Whether elements of a tensor meet, so that threads wait for each other."""
        self.pairs = 0
        """How many pairs of elements are compared at once, at most."""
        self.room = ANY_ROOM
        """Bytes of tiles that the shared memory of a block has room for, at a time."""
        self.reserve: Callable[[Sequence[int]], Value] = _no_memory
        """Gives the address of so many bytes of memory that the block has for itself."""
        self._numbers = itertools.count()
        self._constants: dict[tuple[str, str, tuple[int, ...]], Value] = {}
        self._head: list[str] = []
        self._known: list[dict[str, Value]] = [{}]
        """The scalars that have been computed, by what computes them, region by region."""
        self._depth = 2

    def fresh(self, element: str, shape: Sequence[int] = ()) -> Value:
        """Return a value that nothing has been written for yet."""
        return Value(f"%{next(self._numbers)}", element, tuple(shape))

    def several(self, elements: Sequence[str], shape: Sequence[int]) -> list[Value]:
        """Return the results of one operation, that nothing has been written for yet."""
        name = f"%{next(self._numbers)}"
        if len(elements) == 1:
            return [Value(name, elements[0], tuple(shape))]
        return [Value(f"{name}#{place}", element, tuple(shape)) for place, element in enumerate(elements)]

    def bound(self, results: Sequence[Value]) -> str:
        """Return how an operation names its results."""
        return results[0].ref if len(results) == 1 else f"{results[0].ref.partition('#')[0]}:{len(results)}"

    def do(self, text: str, described: str = "") -> None:
        """Write an operation without a result, and the one in its place where blocks are loaded by descriptors."""
        plain, other = (each and f"{'  ' * self._depth}{each} {located(self.span)}" for each in (text, described))
        self.lines.append(Either(plain, other) if described else plain)

    def op(self, text: str, element: str, shape: Sequence[int] = (), described: str = "") -> Value:
        """Write an operation and return its result; arithmetic of scalars is written once."""
        is_number = not shape and text.startswith("arith.")
        found = next((known[text] for known in self._known if text in known), None) if is_number else None
        if found is not None:
            return found
        result = self.fresh(element, shape)
        self.do(f"{result.ref} = {text}", described and f"{result.ref} = {described}")
        if is_number:
            self._known[-1][text] = result
        return result

    def described(self, text: str, element: str, shape: Sequence[int]) -> Value:
        """Write an operation that is only there where blocks are loaded by descriptors, and return its result."""
        result = self.fresh(element, shape)
        self.do("", f"{result.ref} = {text}")
        return result

    def simple(self, name: str, *operands: Value) -> Value:
        """Write an operation whose operands and result have one type."""
        first = operands[0]
        return self.op(f"{name} {', '.join(map(str, operands))} : {first.type}", first.element, first.shape)

    def convert(self, name: str, value: Value, element: str) -> Value:
        """Write a conversion to another element type, `name A to B`."""
        made = type_of(element, value.shape)
        return self.op(f"{name} {value} : {value.type} to {made}", element, value.shape)

    def bits(self, value: Value, element: str) -> Value:
        """Write the same bits as elements of another type of that width."""
        if value.element == element:
            return value
        made = type_of(element, value.shape)
        return self.op(f"tt.bitcast {value} : {value.type} -> {made}", element, value.shape)

    def shaped(self, name: str, value: Value, shape: Sequence[int], options: str = "") -> Value:
        """Write an operation that gives the same elements under another shape, `name A -> B`."""
        made = type_of(value.element, shape)
        return self.op(f"{name} {value}{options} : {value.type} -> {made}", value.element, shape)

    def turned(self, value: Value, order: Sequence[int]) -> Value:
        """Write elements with their axes in another order."""
        said = f" {{order = array<i32: {', '.join(map(str, order))}>}}"
        result = self.shaped("tt.trans", value, [value.shape[axis] for axis in order], said)
        if value in self.small:
            small = self.small[value]
            types = f"{small.type} -> {type_of(small.element, result.shape)}"
            self.small[result] = self.described(f"tt.trans {small}{said} : {types}", small.element, result.shape)
        return result

    def joined(self, first: Value, second: Value) -> Value:
        """Write the elements of two side by side, along a new last axis of two."""
        return self.shaped("tt.join", first, (*first.shape, 2), f", {second}")

    def doubled(self, first: Value, second: Value, axis: int) -> Value:
        """Write the elements of two of a shape one after the other along an axis."""
        rank, shape = len(first.shape), list(first.shape)
        shape[axis] *= 2
        turned = self.turned(self.joined(first, second), [*range(axis), rank, *range(axis, rank)])
        return self.shaped("tt.reshape", turned, shape)

    def split(self, value: Value) -> tuple[Value, Value]:
        """Write the elements of even and of odd number along the last axis."""
        *rows, count = value.shape
        pairs = self.shaped("tt.reshape", value, (*rows, count // 2, 2))
        first, second = (self.fresh(value.element, (*rows, count // 2)) for _ in range(2))
        self.do(f"{first}, {second} = tt.split {pairs} : {pairs.type} -> {first.type}")
        return first, second

    def constant(self, literal: str, element: str, shape: Sequence[int] = ()) -> Value:
        """Return a number in every element; equal ones are written once, before everything else."""
        key = literal, element, tuple(shape)
        if key not in self._constants:
            value = self.fresh(element, shape)
            held = f"dense<{literal}>" if shape else literal
            typed = "" if not shape and element == I1 else f" : {value.type}"
            self._head.append(f'    {value.ref} = arith.constant {held}{typed} loc("kernel":0:0)')
            self._constants[key] = value
        return self._constants[key]

    def integer(self, number: int, element: str = I64, shape: Sequence[int] = ()) -> Value:
        """Return an integer in every element."""
        return self.constant(str(number), element, shape)

    def splat(self, value: Value, shape: Sequence[int]) -> Value:
        """Return a scalar in every element of a shape."""
        return self.shaped("tt.splat", value, shape) if shape else value

    def compare(self, predicate: str, lhs: Value, rhs: Value) -> Value:
        """Write a comparison, as in `cmpi slt` or `cmpf olt`."""
        name, _, kind = predicate.partition(" ")
        return self.op(f"arith.{name} {kind}, {lhs}, {rhs} : {lhs.type}", I1, lhs.shape)

    def select(self, condition: Value, then: Value, other: Value) -> Value:
        """Write a choice, element by element, or of whole tensors by one condition."""
        types = f"{condition.type}, {then.type}" if condition.shape else then.type
        return self.op(f"arith.select {condition}, {then}, {other} : {types}", then.element, then.shape)

    def library(self, symbol: str, *operands: Value) -> Value:
        """Write a call of a function of CUDA's mathematical library."""
        first = operands[0]
        types = ", ".join(operand.type for operand in operands)
        said = f'{{libname = "", libpath = "", pure = true, symbol = "{symbol}"}}'
        text = f"tt.extern_elementwise {', '.join(map(str, operands))} {said} : ({types}) -> {first.type}"
        return self.op(text, first.element, first.shape)

    def machine(
        self, instruction: str, *operands: Value, element: str = "", registers: str = "=f,f", count: int = 1
    ) -> Value:
        """Write an instruction of the GPU's, from one float to another, or of elements in `registers`, so many each."""
        first = operands[0]
        said = f'{{constraints = "{registers}", packed_element = {count} : i32, pure = true}}'
        given, types = (", ".join(each) for each in zip(*((str(value), value.type) for value in operands), strict=True))
        made = element or first.element
        text = f'tt.elementwise_inline_asm "{instruction}" {said} {given} : {types} -> {type_of(made, first.shape)}'
        return self.op(text, made, first.shape)

    @contextmanager
    def block(self, head: str, tail: str = "}") -> Generator[Tail, None, None]:
        """Write a region: what is inside goes between its two lines, the last as whoever is inside leaves it."""
        self.lines.append(f"{'  ' * self._depth}{head}")
        self._depth += 1
        self._known.append({})
        last = Tail(tail)
        yield last
        self._depth -= 1
        self._known.pop()
        self.do(last.text, last.described)

    def between(self, line: str) -> None:
        """Write the line between two regions of one operation."""
        self._known[-1] = {}
        self.lines.append(f"{'  ' * (self._depth - 1)}{line}")

    def module(self, name: str, params: Sequence[str], *, is_described: bool = False) -> str:
        """Return the whole kernel."""
        lines = [line if isinstance(line, str) else line[is_described] for line in self.lines]
        lines = [line for line in lines if line]
        head = f"  tt.func public @{name}({', '.join(params)}) attributes {{noinline = false}} {{"
        body = [*self._head, *lines, f"    tt.return {located(self.span)}"]
        return "\n".join(["module {", head, *body, f"  }} {located(self.span)}", '} loc("kernel":0:0)', ""])
