"""Printing: values as text, put together in memory and written to standard output at once."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilewright.backends.cpu.compute.convert import number_of
from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.llvm_types import memory_type
from tilewright.backends.cpu.emit.values import Scalar, Tensor, Tile, static
from tilewright.core.expr import Call
from tilewright.digests import sha256
from tilewright.dtypes import BOOL, FP64, DataType
from tilewright.native.llvm import F64, I32, I64, PTR, Value, i64
from tilewright.native.terms import Term
from tilewright.ops.number_forms import NumberForm, number_form
from tilewright.ops.printing import SHOWN
from tilewright.records import record

WIDEST = 32
"""How many bytes a number takes at most, with what stands before it."""


@lowers("system.print_value")
def _print(e: FunctionEmitter, call: Call, bound: Bound) -> tuple[()]:
    return print_value(e, call, bound, Line)


def print_value(e: FunctionEmitter, call: Call, bound: Bound, kind: type[Line]) -> tuple[()]:
    """Emit the printing of a value as a text of some kind."""
    value, text, end = bound["value"], bound["text"], bound["end"]
    e.flush()
    if isinstance(value, Tile):
        e.look(call, "value", value, value.valid)
        place = e.stored(value)
        strides = tuple(map(i64, place.strides))
        value = Tensor(place.pointer, value.valid, strides, value.valid, value.type.dtype, object())
    count = SHOWN ** len(value.shape) if isinstance(value, Tensor) else 1
    form = number_form(bound["form"], value.dtype) if isinstance(value, Scalar) else None
    room = (2 * count) * WIDEST + len(text.encode()) + len(end.encode()) + 8 * WIDEST + (form.room if form else 0)
    for declared in ("ptr @malloc(i64)", "void @free(ptr)", "i64 @write(i32, ptr, i64)"):
        e.b.module.declare(f"declare {declared}")
    line = kind(e, e.b.call(PTR, "malloc", i64(room)), e.b.slot(I64))
    e.b.store(i64(0), line.length, 8)
    line.put(text)
    if isinstance(value, Scalar):
        line.number(value.value, value.dtype, form)
    elif value is not None:
        line.elements(value, (), value.valid)
    line.put(end)
    e.b.do(f"call i64 @write({I32} 1, {line.buffer}, {e.b.load(I64, line.length, 8)})")
    e.b.invoke("free", line.buffer)
    return ()


@record
class Line:
    """A text that grows: the memory it is in, and where its length is kept."""

    e: FunctionEmitter
    buffer: Value
    length: Value

    def put(self, text: str) -> None:
        """Add a text that is known."""
        if text:
            name = self._text(text)
            self._format("%s", Value(PTR, name), len(text.encode()) + 1)

    def number(self, value: Value, dtype: DataType, form: NumberForm | None = None) -> None:
        """Add a number in a form, or six digits of a float, an integer as it is, a bool by its name."""
        b = self.e.b
        if form is not None:
            self._format(form.in_c(), self._wide(value, dtype), form.room)
        elif dtype == BOOL:
            names = (Value(PTR, self._text(name)) for name in ("True", "False"))
            self._format("%s", b.select(value, *names))
        elif dtype.is_float():
            self._format("%.6g", self._wide(value, dtype))
        else:
            self._format("%llu" if dtype.is_unsigned_int() else "%lld", self._wide(value, dtype))

    def _wide(self, value: Value, dtype: DataType) -> Value:
        """Return a number as C takes it: a double, in which NaN has no sign, or an integer of 64 bits."""
        b = self.e.b
        if dtype.is_float():
            wide = Term(b, value if dtype == FP64 else b.convert("fpext", value, F64))
            return wide.is_nan().choose(wide.like(math.nan), wide).value
        is_plain = dtype == BOOL or dtype.is_unsigned_int()
        return value if dtype.bits == 64 else b.convert("zext" if is_plain else "sext", value, I64)

    def element(self, tensor: Tensor, pointer: Value) -> Value:
        """Return an element as it lies in memory."""
        return self.e.b.load(memory_type(tensor.dtype), pointer, tensor.dtype.get_byte())

    def elements(self, tensor: Tensor, indices: Sequence[Value], extents: Sequence[Value]) -> None:
        """Add the elements below some indices, axis by axis."""
        b = self.e.b
        if not extents:
            offset: Value = i64(0)
            for index, stride in zip(indices, tensor.strides, strict=True):
                offset = b.op("add", offset, b.op("mul", index, stride))
            raw = self.element(tensor, b.offset(tensor.pointer, offset, memory_type(tensor.dtype)))
            self.number(number_of(b, raw, tensor.dtype).value, tensor.dtype)
            return
        first, *rest = extents
        self.put("[")
        with b.loop(i64(0), b.intrinsic("llvm.smin", first, i64(SHOWN)), i64(1)) as index:
            with b.when(b.compare("icmp ne", index, i64(0))):
                self.put(", ")
            self.elements(tensor, [*indices, index], rest)
        if static(first) is None or (static(first) or 0) > SHOWN:
            with b.when(b.compare("icmp sgt", first, i64(SHOWN))):
                self.put(", ...")
        self.put("]")

    def _format(self, form: str, value: Value, room: int = WIDEST) -> None:
        b = self.e.b
        b.module.declare("declare i32 @snprintf(ptr, i64, ptr, ...)")
        at = b.load(I64, self.length, 8)
        place, spelled = b.offset(self.buffer, at, "i8"), Value(PTR, self._text(form))
        written = b.value(I32, f"call i32 (ptr, i64, ptr, ...) @snprintf({place}, {i64(room)}, {spelled}, {value})")
        b.store(b.op("add", at, b.convert("sext", written, I64)), self.length, 8)

    def _text(self, text: str) -> str:
        """Return the name of a constant text, which ends with a zero."""
        raw = text.encode() + b"\0"
        name = f"@text.{sha256(raw).hexdigest()[:16]}"
        spelled = "".join(f"\\{byte:02X}" for byte in raw)
        self.e.b.module.declare(f'{name} = internal constant [{len(raw)} x i8] c"{spelled}"')
        return name
