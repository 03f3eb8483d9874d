"""Elements of the device's tensors that the host's functions touch: read, written, filled in and printed.

Reading one waits for everything before it: where a kernel can read it itself, that is better.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cpu.compute.addresses import moved, packed_strides
from tilewright.backends.cpu.compute.convert import as_element, bits_of, number_of
from tilewright.backends.cpu.compute.copies import inside
from tilewright.backends.cpu.compute.traced import Lanes
from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.llvm_types import literal, memory_type
from tilewright.backends.cpu.emit.values import Scalar, Tensor
from tilewright.backends.cpu.host.heap import size_of
from tilewright.backends.cpu.host.printing import Line, print_value
from tilewright.backends.cuda.host import element_code, launch_code
from tilewright.backends.cuda.host.kernels import Kernels
from tilewright.backends.cuda.host.launch_code import REFUSED
from tilewright.core.expr import Call, constant
from tilewright.dtypes import DataType
from tilewright.native.llvm import FALSE, I64, PTR, TRUE, Value, i64
from tilewright.passes.overwritten import is_overwritten
from tilewright.source import Span


def create(e: FunctionEmitter, call: Call, bound: Bound) -> Tensor:
    """Emit memory of the device, which is given back behind the last launch of the call."""
    shape, dtype, value = e.indices(bound["shape"]), bound["dtype"], bound.get("value")
    if value is None and bound.get("init_value") is not None:
        held = constant(bound["init_value"], dtype)
        value = Scalar(literal(held.dtype, held.value, 1), held.dtype)
    unseen = value is not None or is_overwritten(call, e.last_use.body_of(call), e.program.program, e.defined)
    made = _made(e, shape, dtype, call.span, is_clear=not unseen)
    if value is not None:
        _fill(e, made, made.pointer, value, packed_strides(e, shape)[1])
    return made


def room(e: FunctionEmitter, shape: Sequence[int], dtype: DataType, span: Span) -> Tensor:
    """Emit memory of the device for a tensor that a kernel makes."""
    extents = tuple(map(i64, shape))
    return _made(e, extents, dtype, span, is_clear=False)


def _made(e: FunctionEmitter, shape: Sequence[Value], dtype: DataType, span: Span, *, is_clear: bool) -> Tensor:
    launch_code.add_to(e.b.module)
    note = i64(e.program.note("there is no memory on the GPU for this tensor", span))
    size = size_of(e, shape, dtype.get_byte())
    pointer = e.b.call(PTR, "device_memory", e.context, size, TRUE if is_clear else FALSE, note)
    e.leave_after_an_error()
    strides, _ = packed_strides(e, shape)
    return Tensor(pointer, tuple(shape), strides, tuple(shape), dtype, object())


def number_in(e: FunctionEmitter, tensor: Tensor, why: str) -> Value:
    """Emit the reading of a tensor's first element, for which the host waits."""
    return number_of(e.b, _fetched(e, tensor, tensor.pointer, why), tensor.dtype).value


def read(e: FunctionEmitter, call: Call, bound: Bound) -> Scalar:
    """Emit the reading of one element, for which the host waits."""
    tensor: Tensor = bound["x"]
    place, (read, *_) = _element(e, call, tensor, bound["indices"]), call.args
    raw = _fetched(e, tensor, place, f"to read an element of `{read}`")
    return Scalar(number_of(e.b, raw, tensor.dtype).value, tensor.dtype)


def write(e: FunctionEmitter, call: Call, bound: Bound) -> Tensor:
    """Emit the writing of one element, after what was launched before and before what follows."""
    tensor: Tensor = bound["x"]
    _fill(e, tensor, _element(e, call, tensor, bound["indices"]), bound["value"], i64(1))
    return tensor


def show(e: FunctionEmitter, call: Call, bound: Bound) -> tuple[()]:
    """Emit the printing of a value, of which elements are fetched one by one."""
    return print_value(e, call, bound, DeviceLine)


class DeviceLine(Line):
    """A text that grows, with elements of the device's tensors."""

    def element(self, tensor: Tensor, pointer: Value) -> Value:
        """Return an element as it lies in memory."""
        return _fetched(self.e, tensor, pointer, "to print a tensor, element by element")


def _element(e: FunctionEmitter, call: Call, tensor: Tensor, indices: Sequence[Scalar]) -> Value:
    """Return the address of one element; an index outside the tensor ends the function."""
    numbers = e.indices(indices)
    fits = inside(e, numbers, (i64(1),) * len(numbers), tensor.shape)
    if fits is not None:
        e.fail(e.negated(fits), "an index lies outside its tensor", call)
        e.leave_after_an_error()
    return moved(e, tensor, numbers)


def _fetched(e: FunctionEmitter, tensor: Tensor, pointer: Value, why: str) -> Value:
    cell = e.b.slot(I64)
    _ready(e)
    wait(e, "device_read", why, cell, pointer, i64(tensor.dtype.get_byte()))
    return e.b.load(memory_type(tensor.dtype), cell, 8)


def wait(e: FunctionEmitter, name: str, why: str, *words: Value) -> None:
    """Emit a call of `device_read` or `device_print`, for which the host waits, as the table of launches says."""
    unit = e.program
    assert isinstance(unit, Kernels)
    unit.wait(e.at.span, why)
    notes = (i64(e.program.note(message, e.at.span)) for message in (REFUSED, element_code.BUSY))
    e.b.invoke(name, e.context, *words, *notes)
    e.leave_after_an_error()


def _fill(e: FunctionEmitter, tensor: Tensor, pointer: Value, value: Scalar, count: Value) -> None:
    """Emit the writing of a number to elements that lie one after the other."""
    cell = e.b.slot(I64)
    _ready(e)
    e.b.store(i64(0), cell, 8)
    e.b.store(bits_of(as_element(Lanes(e.b, value.value, value.dtype), tensor.dtype)), cell, 8)
    note, size = i64(e.program.note(REFUSED, e.at.span)), i64(tensor.dtype.get_byte())
    e.b.invoke("device_fill", e.context, pointer, e.b.load(I64, cell, 8), size, count, note)
    e.leave_after_an_error()


def _ready(e: FunctionEmitter) -> None:
    e.flush()
    launch_code.add_to(e.b.module)
    element_code.add_to(e.b.module)
