"""Changes: elements of memory made others, each in one step that nobody comes between.

What the GPU has no instruction for compares and swaps until nobody has come between.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.backends.cuda.ttir.convert import as_element
from tilewright.backends.cuda.ttir.elements import UFUNCS, Elements, computed, literal
from tilewright.backends.cuda.ttir.folds import some
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.text import I32, I64, Text, Value, pointer_to, type_of
from tilewright.backends.cuda.ttir.tiles import as_bits, bits_of
from tilewright.backends.cuda.ttir.values import Tensor, element_of
from tilewright.core.types import TensorType
from tilewright.dtypes import DataType
from tilewright.ops.atomics import EXCHANGE
from tilewright.records import record

_INTEGERS = {"add": "add", "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor", EXCHANGE: "exch"}
_EXTREMES = {"maximum": "max", "minimum": "min"}


@record
class Change:
    """What becomes of elements of a tensor: a NumPy function of them and given ones; those; or those on a condition."""

    combine: str
    tensor: Tensor
    given: Value
    compare: Value | None = None

    def applied(self, k: Kernel, addresses: Value, live: Value) -> Value:
        """Write the change of the live elements at some addresses; return what they were."""
        kind = _instruction(self.combine, self.tensor.dtype)
        if not kind:
            return _swapped(k, self.tensor, addresses, live, self._changed)
        t, given = k.t, self.given
        if kind == "exch":
            given = bits_of(t, given)
            addresses = _pointing(t, addresses, given.element)
        types = f"({addresses.type}, {given.type}, {live.type}) -> {given.type}"
        text = f"tt.atomic_rmw {kind}, relaxed, {scope(k)}, {addresses}, {given}, {live} : {types}"
        return as_bits(t, t.op(text, given.element, given.shape), element_of(self.tensor.dtype))

    def _changed(self, t: Text, held: Value) -> Value:
        if self.compare is not None:
            same = t.compare("cmpi eq", bits_of(t, held), bits_of(t, self.compare))
            return t.select(same, self.given, held)
        if self.combine == EXCHANGE:
            return self.given
        dtype = self.tensor.dtype
        result: Elements = UFUNCS[self.combine](*(computed(t, each, dtype) for each in (held, self.given)))
        return as_element(t, result.value, result.element, dtype)


def scope(k: Kernel) -> str:
    """Return among whom changes come one after the other: where there are windows, ranks on other GPUs are, too."""
    params = (param for function in k.program.function_list for param in function.params)
    return "sys" if any(isinstance(each.type, TensorType) and each.type.is_window for each in params) else "gpu"


def _instruction(combine: str, dtype: DataType) -> str:
    """Return the instruction that makes a change at once, none where there is none."""
    if dtype.is_float():
        return "fadd" if combine == "add" else "exch" if combine == EXCHANGE and dtype.bits >= 32 else ""
    if dtype.bits < 32:
        return ""
    if combine in _EXTREMES:
        return f"{'' if dtype.is_signed_int() else 'u'}{_EXTREMES[combine]}"
    return _INTEGERS.get(combine, "")


def _swapped(
    k: Kernel, tensor: Tensor, addresses: Value, live: Value, changed: Callable[[Text, Value], Value]
) -> Value:
    """Return what live elements were, after each has been replaced by what it becomes."""
    t, word = k.t, Words.at(k.t, addresses, tensor.dtype)
    safe = Words.at(t, t.splat(tensor.pointer, addresses.shape), tensor.dtype).pointers
    nothing = t.integer(0, word.element, addresses.shape)
    pointers = t.select(live, word.pointers, safe)
    start = t.op(f"tt.load {pointers}, {live}, {nothing} : {pointers.type}", word.element, live.shape)
    (pending, held), (left, old) = ([t.fresh("i1", live.shape), t.fresh(word.element, live.shape)] for _ in range(2))
    pair = f"{pending.type}, {held.type}"
    made = t.several(["i1", word.element], live.shape)
    head = f"{t.bound(made)} = scf.while ({pending} = {live}, {held} = {start}) : ({pair}) -> ({pair}) {{"
    with t.block(head):
        t.do(f"scf.condition({some(t, pending)}) {pending}, {held} : {pair}")
        t.between("} do {")
        t.between(f"^bb0({left}: {pending.type}, {old}: {held.type}):")
        new = t.select(left, word.with_element(t, old, changed(t, word.element_of(t, old))), nothing)
        expected = t.select(left, old, nothing)
        spots = t.select(left, pointers, safe)
        types = f"({spots.type}, {old.type}, {new.type}) -> {old.type}"
        seen = t.op(
            f"tt.atomic_cas relaxed, {scope(k)}, {spots}, {expected}, {new} : {types}", word.element, live.shape
        )
        missed = t.simple("arith.andi", left, t.compare("cmpi ne", seen, expected))
        now = t.select(missed, seen, old)
        t.do(f"scf.yield {missed}, {now} : {pair}")
    return word.element_of(t, made[1])


@record
class Words:
    """What is compared and swapped: elements themselves or, of bytes, the four around each."""

    pointers: Value
    element: str
    dtype: DataType
    shifts: Value | None
    """How many bits before a byte come in its word."""

    @staticmethod
    def at(t: Text, addresses: Value, dtype: DataType) -> Words:
        """Return the words at some addresses of elements."""
        if dtype.bits >= 16:
            element = f"i{dtype.bits}"
            return Words(_pointing(t, addresses, element), element, dtype, None)
        shape = addresses.shape
        numbers = t.op(f"tt.ptr_to_int {addresses} : {addresses.type} -> {type_of(I64, shape)}", I64, shape)
        first = t.simple("arith.andi", numbers, t.integer(-4, I64, shape))
        made = type_of(pointer_to(I32), shape)
        pointers = t.op(f"tt.int_to_ptr {first} : {first.type} -> {made}", pointer_to(I32), shape)
        within = t.convert("arith.trunci", t.simple("arith.andi", numbers, t.integer(3, I64, shape)), I32)
        return Words(pointers, I32, dtype, t.simple("arith.muli", within, t.integer(8, I32, shape)))

    def element_of(self, t: Text, word: Value) -> Value:
        """Return the element that a word holds."""
        if self.shifts is not None:
            word = t.convert("arith.trunci", t.simple("arith.shrui", word, self.shifts), "i8")
        return as_bits(t, word, element_of(self.dtype))

    def with_element(self, t: Text, word: Value, element: Value) -> Value:
        """Return a word with another element in it."""
        bits = bits_of(t, element)
        if self.shifts is None:
            return bits
        low = t.simple("arith.shli", literal(t, 255, word), self.shifts)
        rest = t.simple("arith.andi", word, t.simple("arith.xori", low, literal(t, -1, word)))
        return t.simple("arith.ori", rest, t.simple("arith.shli", t.convert("arith.extui", bits, I32), self.shifts))


def _pointing(t: Text, addresses: Value, element: str) -> Value:
    """Return addresses as those of elements of another type."""
    wanted = pointer_to(element)
    if addresses.element == wanted:
        return addresses
    return t.op(
        f"tt.bitcast {addresses} : {addresses.type} -> {type_of(wanted, addresses.shape)}", wanted, addresses.shape
    )
