"""Printing: a value written down where the host finds it when the kernel is done.

A block asks for room by one atomic addition, and fills in its record if it is given any.
"""

from __future__ import annotations

from tilewright.backends.cuda.prints import HEAD, Print
from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.addresses import places
from tilewright.backends.cuda.ttir.convert import as_element
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.loads import windowed
from tilewright.backends.cuda.ttir.recipes import Bound, recipe
from tilewright.backends.cuda.ttir.text import I64, Value
from tilewright.backends.cuda.ttir.values import Binding, Extent, Scalar, Tensor, Tile, working
from tilewright.core.expr import Call
from tilewright.core.types import TileType
from tilewright.dtypes import BOOL, FP64, INT64, UINT64, DataType
from tilewright.ops.printing import SHOWN


@recipe("system.print_value")
def _print(k: Kernel, call: Call, bound: Bound) -> Binding:
    value: Scalar | Tensor | Tile | None = bound["value"]
    valid: tuple[Extent, ...] = () if value is None or isinstance(value, Scalar) else value.valid
    if isinstance(value, Tensor):
        value = _beginning(k, value)
    box = tuple(min(extent, SHOWN) for extent in value.type.shape) if isinstance(value, Tile) else ()
    kind = "" if value is None else _kind(value.dtype if isinstance(value, Scalar) else value.type.dtype)
    own = Print(str(bound["text"]), str(bound["end"]), kind, box, str(bound["form"]))
    number, base, room = k.printed(own)
    k.facts.prints = True
    t, size = k.t, k.t.integer(own.size)
    yes = t.constant("true", "i1")
    begin = t.op(f"tt.atomic_rmw add, acq_rel, gpu, {base}, {size}, {yes} : ({base.type}, i64, i1) -> i64", I64)
    fits = t.compare("cmpi sle", t.simple("arith.addi", begin, size), room)
    with t.block(f"scf.if {fits} {{"):
        for place, word in enumerate((number, k.turn(), *valid), 1):
            _put(k, base, extents.plus(t, begin, place), extents.held(t, word))
        if value is not None:
            _put(k, base, extents.plus(t, begin, 1 + HEAD + len(valid)), value)
    return ()


def _beginning(k: Kernel, tensor: Tensor) -> Tile:
    """Return as much of a tensor as is shown."""
    shape = tuple(min(have, SHOWN) if isinstance(have, int) else SHOWN for have in tensor.shape)
    some = tuple(extents.least(k.t, have, SHOWN) for have in tensor.valid)
    return windowed(k, tensor, TileType(shape, tensor.dtype, shape), [0] * len(shape), some)


def _kind(dtype: DataType) -> str:
    return "b" if dtype == BOOL else "f" if dtype.is_float() else "u" if dtype.is_unsigned_int() else "i"


def _put(k: Kernel, base: Value, at: Extent, given: Value | Scalar | Tile) -> None:
    """Write a word, a number, or those elements of a tile that are shown, from some word of the buffer on."""
    t, start = k.t, extents.held(k.t, at)
    pointer = t.op(f"tt.addptr {base}, {start} : {base.type}, i64", base.element)
    if isinstance(given, Value):
        t.do(f"tt.store {pointer}, {given} : {pointer.type}")
        return
    if isinstance(given, Scalar):
        t.do(f"tt.store {pointer}, {_words(k, given.value, working(given.dtype))} : {pointer.type}")
        return
    words, shape = _words(k, given.value, given.type.dtype), given.value.shape
    strides = [1]
    for extent in reversed(given.type.shape[1:]):
        strides.insert(0, strides[0] * min(extent, SHOWN))
    box = Tensor(pointer, shape, tuple(strides), shape, INT64, object())
    mask = k.inside(shape, [extents.least(t, have, SHOWN) for have in given.valid])
    found = places(k, box, shape, [0] * len(shape))
    t.do(f"tt.store {found}, {words}{'' if mask is None else f', {mask}'} : {found.type}")


def _words(k: Kernel, value: Value, dtype: DataType) -> Value:
    """Return elements as words of 64 bits."""
    if dtype.is_float():
        return k.t.bits(as_element(k.t, value, dtype, FP64), I64)
    if dtype == BOOL:
        return k.t.convert("arith.extui", value, I64)
    return as_element(k.t, value, dtype, UINT64 if dtype.is_unsigned_int() else INT64)
