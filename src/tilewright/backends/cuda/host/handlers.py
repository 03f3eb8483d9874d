"""Handlers: the host's functions emitted as for the processor, but for what the GPU does.

Loops, branches, scalars and views are the processor's code. Calls of kernels and parallel loops become launches, new
tensors memory of the device; what touches more than one element of a tensor is a kernel of its own.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.backends.cpu.emit.function import HANDLERS as PROCESSOR
from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.handlers import Bound, Handlers
from tilewright.backends.cpu.emit.values import Binding
from tilewright.backends.cuda.host import elements, ranks
from tilewright.backends.cuda.host.grids import launch_call, launch_loop, launch_op
from tilewright.backends.cuda.host.regions import is_grid, is_kernel, is_launched
from tilewright.backends.cuda.ttir.recipes import refused
from tilewright.core.enums import ForKind
from tilewright.core.expr import Call, Invoke, Submit
from tilewright.core.op import Kind
from tilewright.core.stmt import ForStmt
from tilewright.core.types import TensorType


class HostHandlers(Handlers[FunctionEmitter]):
    """The processor's code, where it touches no elements of tensors."""

    def lower(self, e: FunctionEmitter, call: Call, bound: Bound) -> Binding:
        """Emit an op: what touches elements has code of its own, or is a kernel."""
        touches = any(isinstance(each.type, TensorType) for each in (call, *call.args))
        is_plain = call.op.spec.is_view or call.op.name == "tensor.dim" or call.op.name in _OWN
        if call.op.kind is Kind.TENSOR and touches and not is_plain:
            return launch_op(e, call, bound)
        return super().lower(e, call, bound)


_OWN = {
    "tensor.create": elements.create,
    "tensor.full": elements.create,
    "tensor.read": elements.read,
    "tensor.write": elements.write,
    "system.print_value": elements.show,
}
"""What the host does to elements itself."""

HANDLERS = HostHandlers(PROCESSOR)
HANDLERS.ops.update(_OWN | ranks.OPS)


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
        help = "call it in a loop, or submit the kernels that it starts"
        raise refused(f"a grid of `{function.name}`, which starts kernels itself,", expr.span, help)
    return PROCESSOR.emit(e, expr)
