"""What a kernel that is launched gives back: tensors that it was given or makes, and numbers.

Tensors that it makes are made by the host before. A number is put into a cell of the device's memory, which the host
reads when all has ended that was launched before: it is better had by the kernel that needs it.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.values import Binding, Scalar, Tensor
from tilewright.backends.cuda.host.capture import captured
from tilewright.backends.cuda.host.elements import number_in, room
from tilewright.backends.cuda.ttir import values as on_device
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.parameters import Parameters
from tilewright.backends.cuda.ttir.recipes import refused
from tilewright.backends.cuda.ttir.stores import put_number
from tilewright.core.expr import Call, Invoke, Submit, Var
from tilewright.core.program import Function
from tilewright.core.stmt import AssignStmt, ReturnStmt
from tilewright.core.types import ScalarType, TensorType, Type, is_static, static_shape
from tilewright.core.visitor import statements
from tilewright.dtypes import INDEX, INT64
from tilewright.passes.identity import Identities
from tilewright.records import record

MAKERS = ("tensor.create", "tensor.full")


@record
class Made:
    """A result that a kernel makes: where it lies, and the variable of the kernel that is it, none of a number."""

    place: Tensor
    type: Type
    var: Var | None


class Given:
    """The results of a kernel; UnsupportedFeatureError for those that cannot be handed over."""

    def __init__(self, e: FunctionEmitter, expr: Invoke | Submit, function: Function) -> None:
        returned = e.program.returned[function.name]
        vars = _made_in(function) if None in returned else ()
        self.results, self.name = returned, function.name
        self.made: dict[int, Made] = {}
        """What the kernel makes, by which result it is."""
        is_certain = not isinstance(expr, Submit) or (expr.core_num is None and expr.predicate is None)
        for number, (type_, position) in enumerate(zip(function.return_types, returned, strict=True)):
            if position is None and is_certain and isinstance(type_, ScalarType):
                held = INT64 if type_.dtype == INDEX else type_.dtype
                self.made[number] = Made(room(e, (1,), held, expr.span), type_, None)
            elif position is None and is_certain and (var := vars[number]) is not None:
                assert isinstance(var.type, TensorType)
                place = room(e, static_shape(var.type.shape), var.type.dtype, expr.span)
                self.made[number] = Made(place, type_, var)
            elif position is None:
                help = "give it a tensor to write to, and return that"
                raise refused(f"`{function.name}`, a kernel that gives back what it computes,", expr.span, help)

    def lend(self, k: Kernel, params: Parameters) -> None:
        """Let a kernel make its tensors where the host has made room for them."""
        for made in self.made.values():
            place = captured(k, params, made.place) if made.var is not None else None
            if made.var is not None and isinstance(place, on_device.Tensor):
                k.lent[made.var] = place

    def put(self, k: Kernel, params: Parameters, given: Sequence[on_device.Binding]) -> None:
        """Write the storing of numbers that a kernel has computed."""
        for number, made in self.made.items():
            value, place = given[number], captured(k, params, made.place)
            if isinstance(value, on_device.Scalar) and isinstance(place, on_device.Tensor):
                put_number(k, place, (0,), value)

    def bindings(self, e: FunctionEmitter, arguments: Sequence[Binding]) -> list[Binding]:
        """Emit the reading of the numbers; return all results."""
        found: list[Binding] = []
        for number, position in enumerate(self.results):
            if position is not None:
                found.append(arguments[position])
            elif isinstance(type_ := self.made[number].type, ScalarType):
                place, why = self.made[number].place, f"for numbers that `{self.name}` computes"
                found.append(Scalar(number_in(e, place, why), type_.dtype))
            else:
                found.append(self.made[number].place)
        return found


def _made_in(function: Function) -> tuple[Var | None, ...]:
    """Return for each result the variable of a tensor that the function makes, as large as its type says."""
    found, every = Identities(function.body), [*statements(function.body)]
    makes = {
        stmt.var
        for stmt in every
        if isinstance(stmt, AssignStmt)
        and isinstance(stmt.value, Call)
        and stmt.value.op.name in MAKERS
        and isinstance(stmt.var.type, TensorType)
        and is_static(stmt.var.type.shape)
    }
    returns = [stmt for stmt in every if isinstance(stmt, ReturnStmt)]
    roots = zip(*([found.root(value) for value in stmt.values] for stmt in returns), strict=True)
    return tuple(one if len({one, *others}) == 1 and one in makes else None for one, *others in roots)
