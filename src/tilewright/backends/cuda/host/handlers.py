"""Handlers: the host's functions emitted as for the processor, but for what the GPU does.

Loops, branches, scalars and views are the processor's code. Calls of kernels and parallel loops become launches, new
tensors memory of the device; what would touch a tensor's elements from the host is refused.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.backends.cpu.compute.addresses import packed_strides
from tilewright.backends.cpu.emit.function import HANDLERS as PROCESSOR
from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.handlers import Bound, Handlers
from tilewright.backends.cpu.emit.values import Binding, Tensor
from tilewright.backends.cpu.host.heap import size_of
from tilewright.backends.cuda.host import launch_code
from tilewright.backends.cuda.host.grids import launch_call, launch_loop
from tilewright.backends.cuda.host.regions import is_grid, is_kernel, is_launched
from tilewright.backends.cuda.ttir.recipes import refused
from tilewright.core.enums import ForKind
from tilewright.core.expr import Call, Const, Invoke, Submit
from tilewright.core.op import Kind
from tilewright.core.stmt import ForStmt
from tilewright.core.types import TensorType
from tilewright.native.llvm import FALSE, PTR, TRUE, i64
from tilewright.passes.overwritten import is_overwritten


class HostHandlers(Handlers[FunctionEmitter]):
    """The processor's code, where it touches no elements of tensors."""

    def lower(self, e: FunctionEmitter, call: Call, bound: Bound) -> Binding:
        """Emit an op; UnsupportedFeatureError where it reads or writes elements."""
        is_own = call.op.name in _OWN
        touches = any(isinstance(each.type, TensorType) for each in (call, *call.args))
        if call.op.kind is Kind.TENSOR and touches and not (is_own or call.op.spec.is_view):
            raise refused(f"`{call.op.name}` outside of a kernel", call.span)
        return super().lower(e, call, bound)


_OWN = ("tensor.dim", "tensor.create", "tensor.full")

HANDLERS = HostHandlers(PROCESSOR)


@HANDLERS.emits(ForStmt)
def _for(e: FunctionEmitter, stmt: ForStmt) -> None:
    """Emit a loop: on the GPU, or on the host, where its turns run one after the other."""
    if is_launched(e.program.program, stmt):
        launch_loop(e, stmt)
    else:
        PROCESSOR.emit(e, replace(stmt, kind=ForKind.Sequential) if stmt.kind is ForKind.Parallel else stmt)


@HANDLERS.emits(Invoke, Submit)
def _call(e: FunctionEmitter, expr: Invoke | Submit) -> Binding:
    function = e.program.program[expr.op.name]
    in_grid = isinstance(expr, Submit) and expr.core_num is not None
    if is_kernel(function) or (in_grid and is_grid(e.program.program, function)):
        return launch_call(e, expr, function)
    if in_grid:
        raise refused(f"a grid of `{function.name}`, which starts kernels itself,", expr.span)
    return PROCESSOR.emit(e, expr)


@HANDLERS.lowers("tensor.create", "tensor.full")
def _create(e: FunctionEmitter, call: Call, bound: Bound) -> Tensor:
    """Emit memory of the device, which is given back behind the last launch of the call."""
    value = call.kwargs.get("init_value")
    given = next((arg for arg in call.args if isinstance(arg, Const)), None)
    if call.op.spec.name == "full":
        value = None if given is None else given.value
        if value is None:
            raise refused(
                "`tensor.full` of a number that only the running program knows, outside of a kernel", call.span
            )
    if value not in (None, 0):
        raise refused(f"new tensors full of {value}, outside of a kernel,", call.span)
    clear = value is not None or not is_overwritten(call, e.last_use.body_of(call), e.program.program, e.defined)
    shape, dtype = e.indices(bound["shape"]), bound["dtype"]
    launch_code.add_to(e.b.module)
    note = i64(e.program.note("there is no memory on the GPU for this tensor", call.span))
    size = size_of(e, shape, dtype.get_byte())
    pointer = e.b.call(PTR, "device_memory", e.context, size, TRUE if clear else FALSE, note)
    e.leave_after_an_error()
    return Tensor(pointer, tuple(shape), packed_strides(e, shape)[0], tuple(shape), dtype, object())
