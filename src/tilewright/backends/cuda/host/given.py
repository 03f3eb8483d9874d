"""What a kernel that is launched gives back: tensors that it was given or makes, views of them, and numbers.

Tensors that it makes are made by the host before, and views of tensors by the host, too, as the kernel says. A number
is put into a cell of the device's memory, which the host reads when all has ended that was launched before: better, the
kernel that needs it computes it. Of several blocks, what the last one makes is given back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.values import Binding, Scalar, Tensor, static
from tilewright.backends.cpu.host.calls import NO_BLOCKS
from tilewright.backends.cuda.host.capture import captured
from tilewright.backends.cuda.host.elements import number_in, room
from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir import values as on_device
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.parameters import Parameters
from tilewright.backends.cuda.ttir.recipes import refused
from tilewright.backends.cuda.ttir.stores import put_number
from tilewright.backends.cuda.ttir.temporaries import temporary
from tilewright.backends.cuda.ttir.text import Value
from tilewright.core.build import arguments
from tilewright.core.expr import Call, Const, Expr, Invoke, MakeTuple, Submit, Var
from tilewright.core.op import Kind
from tilewright.core.program import Function
from tilewright.core.stmt import AssignStmt, ReturnStmt
from tilewright.core.types import ScalarType, TensorType, Type, is_static, static_shape
from tilewright.core.visitor import statements
from tilewright.dtypes import INDEX, INT64
from tilewright.errors import UnsupportedFeatureError
from tilewright.native import llvm
from tilewright.native.llvm import i64
from tilewright.passes.identity import Identities
from tilewright.records import record

MAKERS = ("tensor.create", "tensor.full")


@record
class Made:
    """A result that a kernel makes: where it lies, what it is, and of a tensor, where in the kernel it comes from."""

    place: Tensor | None
    type: Type
    origin: Origin | None


@record
class Origin:
    """A tensor of a kernel, made by it or given to it, and the views of it that follow each other."""

    root: Var
    views: tuple[Call, ...]


class Given:
    """The results of a kernel; UnsupportedFeatureError for those that cannot be handed over."""

    def __init__(self, e: FunctionEmitter, expr: Invoke | Submit, function: Function) -> None:
        self.results, self.function = e.program.returned[function.name], function
        self.in_grid = isinstance(expr, Submit) and expr.core_num is not None
        self.made: dict[int, Made] = {}
        """What the kernel makes, by which result it is."""
        self.rooms: dict[Var, Tensor] = {}
        """Where the tensors that it makes lie."""
        may_not_run = isinstance(expr, Submit) and expr.predicate is not None
        origins = _origins(function) if None in self.results else ()
        for number, (type_, position) in enumerate(zip(function.return_types, self.results, strict=True)):
            if position is not None:
                continue
            if may_not_run:
                raise self._refused("and may not run,", expr, "give it a tensor to write to, and return that")
            self.made[number] = self._made(e, expr, type_, origins[number])

    def _made(self, e: FunctionEmitter, expr: Invoke | Submit, type_: Type, origin: Origin | None) -> Made:
        if isinstance(type_, ScalarType):
            held = INT64 if type_.dtype == INDEX else type_.dtype
            return Made(room(e, (1,), held, expr.span), type_, None)
        if origin is None:
            help = "give it a tensor to write to, and return that; views are better made where they are used"
            raise self._refused("one that it chooses, or of an extent or at an offset that it finds,", expr, help)
        if origin.root in self.function.params:
            return Made(None, type_, origin)
        if origin.root not in self.rooms:
            assert isinstance(origin.root.type, TensorType)
            shape = static_shape(origin.root.type.shape)
            self.rooms[origin.root] = room(e, shape, origin.root.type.dtype, expr.span)
        return Made(self.rooms[origin.root], type_, origin)

    def _refused(self, how: str, expr: Expr, help: str) -> UnsupportedFeatureError:
        what = f"`{self.function.name}`, a kernel that gives back what it makes, {how}"
        return refused(what, expr.span, help)

    def ask_for_blocks(self, e: FunctionEmitter, count: llvm.Value) -> None:
        """Emit the end of the function where something is wanted of a grid of no blocks."""
        if self.in_grid and self.made and (static(count) or 0) < 1:
            e.fail(e.b.compare("icmp slt", count, i64(1)), NO_BLOCKS, e.at)
            e.leave_after_an_error()

    def lend(self, k: Kernel, params: Parameters) -> None:
        """Let a kernel make its tensors where the host has made room for them; of several blocks the last one."""
        for var, held in self.rooms.items():
            place = captured(k, params, held)
            assert isinstance(place, on_device.Tensor)
            if self.in_grid:
                own = temporary(k, place.shape, place.dtype)
                pointer = k.t.select(_is_last(k), place.pointer, own.pointer)
                place = replace(place, pointer=pointer, planes=None)
            k.lent[var] = place

    def put(self, k: Kernel, params: Parameters, given: Sequence[on_device.Binding]) -> None:
        """Write the storing of numbers that a kernel has computed; those of the last block stay."""
        for number, made in self.made.items():
            value = given[number]
            if not isinstance(value, on_device.Scalar) or made.place is None:
                continue
            place = captured(k, params, made.place)
            assert isinstance(place, on_device.Tensor)
            put_number(k, place, (0,), value, _is_last(k) if self.in_grid else None)

    def bindings(self, e: FunctionEmitter, arguments: Sequence[Binding]) -> list[Binding]:
        """Emit the reading of the numbers, and the views; return all results."""
        found: list[Binding] = []
        for number, position in enumerate(self.results):
            if position is not None:
                found.append(arguments[position])
                continue
            made = self.made[number]
            if isinstance(made.type, ScalarType) and made.place is not None:
                why = f"for numbers that `{self.function.name}` computes"
                found.append(Scalar(number_in(e, made.place, why), made.type.dtype))
            elif made.origin is not None:
                found.append(self._viewed(e, made.origin, arguments))
        return found

    def _viewed(self, e: FunctionEmitter, origin: Origin, arguments: Sequence[Binding]) -> Binding:
        """Emit the views of a tensor, by the names that the kernel has for what it is given."""
        outer, e.bindings = e.bindings, {**e.bindings, **dict(zip(self.function.params, arguments, strict=True))}
        place: Binding = self.rooms.get(origin.root) or e.bindings[origin.root]
        for call in origin.views:
            e.bindings[_viewed_by(call)] = place
            place = e.op(call)
        e.bindings = outer
        return place


def _is_last(k: Kernel) -> Value:
    """Return whether the running block is the last of its grid."""
    own, last = (extents.held(k.t, each) for each in (k.block_index, extents.minus(k.t, k.block_count, 1)))
    return k.t.compare("cmpi eq", own, last)


def _origins(function: Function) -> tuple[Origin | None, ...]:
    """Return for each result that is a tensor which the host can make, or make a view of, where it comes from."""
    found, every = Identities(function.body), [*statements(function.body)]
    calls = {stmt.var: stmt.value for stmt in every if isinstance(stmt, AssignStmt) and isinstance(stmt.value, Call)}
    returns = [stmt for stmt in every if isinstance(stmt, ReturnStmt)]
    roots = zip(*([found.root(value) for value in stmt.values] for stmt in returns), strict=True)
    return tuple(
        _origin(one, found, calls, function.params) if len({one, *others}) == 1 else None for one, *others in roots
    )


def _origin(value: Expr, found: Identities, calls: Mapping[Var, Call], params: Sequence[Var]) -> Origin | None:
    views: list[Call] = []
    while isinstance(value, Var) and isinstance(value.type, TensorType) and is_static(value.type.shape):
        call = calls.get(value)
        if value in params or (call is not None and call.op.name in MAKERS):
            return Origin(value, tuple(reversed(views)))
        if call is None or not call.op.spec.is_view or not _is_known(call, params):
            return None
        views.append(call)
        value = found.root(_viewed_by(call))
    return None


def _viewed_by(call: Call) -> Var:
    """Return the tensor that a call gives a view of."""
    viewed = arguments(call)[call.op.spec.alias or ""]
    assert isinstance(viewed, Var)
    return viewed


def _is_known(call: Call, params: Sequence[Var]) -> bool:
    """Return whether all that a view depends on besides its tensor are numbers, and what the kernel is given."""
    viewed = arguments(call)[call.op.spec.alias or ""]
    return isinstance(viewed, Var) and all(_is_given(arg, params) for arg in call.args if arg is not viewed)


def _is_given(expr: Expr, params: Sequence[Var]) -> bool:
    match expr:
        case Const():
            return True
        case Var():
            return expr in params
        case MakeTuple():
            return all(_is_given(each, params) for each in expr.elements)
        case Call():
            return expr.op.kind is Kind.SCALAR and all(_is_given(each, params) for each in expr.args)
        case _:
            return False
