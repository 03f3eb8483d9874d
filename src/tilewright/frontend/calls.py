"""Calls: ops, functions of the program, inlined templates, and the little Python that runs while compiling."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import FunctionType

from tilewright.core.build import arguments as op_arguments
from tilewright.core.enums import AtomicType, Level
from tilewright.core.enums import FunctionType as FunctionKind
from tilewright.core.expr import Call, Const, Expr, Var
from tilewright.core.extents import bounds
from tilewright.core.op import Kind, OpSpec, spec_of
from tilewright.core.operands import bind, called_op, order_of
from tilewright.core.program import Function
from tilewright.core.types import Extent, TensorType, TileType
from tilewright.errors import (
    ArgumentCountError,
    InvalidOperationError,
    KernelError,
    NotStaticError,
    OperandError,
    OutOfBoundsError,
    UncallableError,
)
from tilewright.frontend.arguments import UNREAD, Arguments, arguments, values_of
from tilewright.frontend.derived import between_numbers, element_of, expanded, held_number
from tilewright.frontend.indexed import one_number, one_tile
from tilewright.frontend.inline import InlineFunction
from tilewright.frontend.kernels import Kernel, KernelKind
from tilewright.frontend.launchable import Launchable, Launching
from tilewright.frontend.operators import FULL, apply
from tilewright.frontend.properties import BindDynamic, Method, answer, asked
from tilewright.frontend.signature import Dim
from tilewright.frontend.translator import Translator
from tilewright.frontend.walk.known import sequence
from tilewright.frontend.walk.walker import Listed, Value
from tilewright.ops.lanes import OF_LANES
from tilewright.ops.registry import OPS


def call(t: Translator, node: ast.Call) -> Value:
    """Return what a call gives, as what is called says."""
    if _changes_list(t, node):
        from tilewright.frontend.lists import change  # which few kernels have

        return change(t, node)
    if (owner := asked(t, node)) is not None:
        return answer(t, owner, node)
    callee = t.evaluate(node.func)
    spec = spec_of(callee)
    if spec is not None:
        return _named_op(t, spec, node)
    handler = _directive(callee) if isinstance(callee, FunctionType) else None
    if handler is not None:
        return handler(t, node)
    if isinstance(callee, InlineFunction):
        return callee.expand(t, values_of(t, node), node)
    if isinstance(callee, (Method, Function, Kernel)):
        return _dispatched(t, callee, node)
    if isinstance(callee, Launching):
        from tilewright.frontend.launches import launched  # few functions launch kernels of other languages

        return launched(t, callee, values_of(t, node), node)
    if isinstance(callee, Launchable):
        message = f"`{ast.unparse(node.func)}` is launched, on the blocks of a grid"
        raise t.error(UncallableError, node.func, message, help=f"{ast.unparse(node.func)}[grid, None](...)")
    if isinstance(callee, BindDynamic):
        from tilewright.frontend.dynamic import bind_dynamic  # which few kernels need

        return bind_dynamic(t, callee, node)
    from tilewright.frontend.static_calls import call_python

    return call_python(t, callee, arguments(t, node), node)


def _changes_list(t: Translator, node: ast.Call) -> bool:
    """Return whether a call changes a list of the kernel in place."""
    match node.func:
        case ast.Attribute(value=ast.Name(id=name), attr=method) if method in Listed.CHANGED_BY:
            binding = t.find(name)
            return binding is not None and not binding.problem and isinstance(binding.value, Listed)
        case _:
            return False


def _dispatched(t: Translator, callee: Method | Function | Kernel, node: ast.Call) -> Value:
    """Return the call of another function of the program."""
    from tilewright.frontend.hosts import dispatched  # few kernels call others
    from tilewright.frontend.invocations import invoke

    if isinstance(callee, Kernel):
        unread = ("device",) if callee.kind is KernelKind.ENTRY else ()
        return dispatched(t, t.callees.kernels.call(t, callee, values_of(t, node, unread), node), node)
    span = t.span(node)
    function = t.callees.method(callee.name, span) if isinstance(callee, Method) else t.callees.free(callee, span)
    return dispatched(t, invoke(t, function, values_of(t, node, UNREAD), node), node, function)


def _directive(callee: FunctionType) -> Callable[[Translator, ast.Call], Value] | None:
    """Return what the compiler does in place of one of the language's functions that are no ops."""
    from tilewright.frontend.static_calls import DIRECTIVES  # many kernels call ops alone

    return DIRECTIVES.get(callee)


def _named_op(t: Translator, spec: OpSpec, node: ast.Call) -> Value:
    if Kind.DISTRIBUTED in spec.kinds:
        from tilewright.frontend.hosts import check_level  # which only programs of several ranks need

        check_level(t, spec, node)
    if spec.name == "task_dummy":
        from tilewright.frontend.tasks import task_dummy  # which few kernels need

        return task_dummy(t, node)
    if spec.name == "concat":
        from tilewright.frontend.joins import cat, names_several

        if names_several(node):
            return cat(t, node)
    if spec.name in OF_LANES:
        from tilewright.frontend.lanes import check_mode

        check_mode(t, spec, node)
    given = values_of(t, node)
    if spec.name == "alloc_window_buffer":
        from tilewright.frontend.hosts import completed

        given = completed(t, given, node)
    if spec.family == "collective" and t.level is not Level.HOST:
        from tilewright.frontend.collectives import in_kernel  # its templates are read when they are loaded

        return in_kernel(t, spec, given, node)
    held = held_number(t, spec, given.args, node)
    if held is None:
        return _op(t, spec, given, node)
    return element_of(t, _op(t, spec, replace(given, args=(held, *given.args[1:])), node), node)


def _op(t: Translator, spec: OpSpec, given: Arguments, node: ast.Call) -> Value:
    try:
        return _of_values(t, spec, given, node)
    except InvalidOperationError as error:
        from tilewright.frontend.pypto_errors import reworded

        raise reworded(error, t.captured.source, spec, given.args, node) from error.__cause__


def _meets_tiles(t: Translator, node: ast.Call) -> bool:
    """Return whether what `pl.full` makes here has met tiles, and there can be one."""
    return (FULL, t.span(node)) in t.widened and bool(t.kernels or t.func_type is not FunctionKind.Orchestration)


def _of_values(t: Translator, spec: OpSpec, given: Arguments, node: ast.Call) -> Value:
    if spec.name in ("gather", "take"):
        from tilewright.frontend.picks import of_tile  # which few kernels need

        if (taken := of_tile(t, spec, given, node)) is not None:
            return taken
    if spec is OPS["tensor.full"].spec and ("valid_shape" in given.kwargs or _meets_tiles(t, node)):
        spec = OPS["tile.full"].spec  # tensors are valid as a whole
    spec = called_op(spec, given.args, given.kwargs)
    spec = between_numbers(spec, given.args) or spec
    try:
        bound = bind(spec, given.args, given.kwargs)
    except KernelError as error:
        is_name = isinstance(error, ArgumentCountError)
        words = {word.arg or "": word if is_name else word.value for word in node.keywords}
        error.locate([t.span(words.get(name, node)) for name in error.blame] or [t.span(node)])
        _advise(error, spec, given.args)
        raise
    if spec.annotated and isinstance(t.declared, TileType) and bound["shape"] is None and bound["dtype"] is None:
        bound |= {"shape": t.declared.shape, "dtype": t.declared.dtype}
    spans = dict(zip(order_of(spec, given.args), given.nodes, strict=False)) | dict(given.keyword_nodes)
    if spec.name == "reshape":
        from tilewright.frontend.reshapes import counted  # which few kernels need

        bound = counted(bound)
    indices = bound.get("indices")
    bound = one_tile(t, spec, bound, node)
    if spec.name == "where":
        from tilewright.frontend.choices import for_all  # which few kernels need

        bound = for_all(t, bound, node)
    _check_attributes(t, spec, bound, spans, node)
    is_shared = t.lane is not None or spec.name in OF_LANES
    if is_shared:
        from tilewright.frontend.lanes import in_lane

        if (lane := in_lane(t, spec, bound, node)) is not None:
            return lane
    if spec.updates:
        from tilewright.frontend.accumulators import accumulated  # which few kernels need

        if (summed := accumulated(t, spec, bound, node, spans)) is not None:
            return summed
    if spec.expand is not None:
        return expanded(t, spec, bound, node, spans)
    try:
        result = apply(t, spec, bound, node, spans)
    except OperandError as error:
        _advise(error, spec, given.args)
        raise
    except OutOfBoundsError:
        if not _may_be_cut(t, bound):
            raise
        result = apply(t, spec, {**bound, "clamp": True}, node, spans)
    _check_namespace(t, result, node)
    if "atomic" in bound:
        _check_source(t, result, node)
    if is_shared:
        from tilewright.frontend.lanes import note_pending

        return note_pending(t, spec, result, node)
    return one_number(t, spec, indices, result, node)


def _advise(error: KernelError, spec: OpSpec, args: Sequence[Value]) -> None:
    """Tell authors who take an op on numbers for one on tiles what the latter is called."""
    is_scalar = spec.kinds == (Kind.SCALAR,)
    if is_scalar and any(isinstance(a, Expr) and isinstance(a.type, (TensorType, TileType)) for a in args):
        from tilewright.frontend.foreign import meant

        error.hint = meant(spec.name) or error.hint


def _may_be_cut(t: Translator, bound: Mapping[str, Value]) -> bool:
    """Return whether a load that starts inside its tensor may take what is there.

    Where an argument decides the extent, a tile that is larger than the whole tensor, or a part of it, is as good as a
    ragged last one.
    """
    tensor, offsets = bound.get("tensor"), bound.get("offsets")
    if t.frame is None or bound.get("clamp") is not False or not isinstance(tensor, Expr):
        return False
    shape = tensor.type.shape if isinstance(tensor.type, TensorType) else ()
    starts = [bounds(t.expr(offset, t.captured.node)) for offset in sequence(offsets)]
    return any(isinstance(extent, Dim) for extent in _viewed_extents(t, tensor)) and all(
        reach is None or not isinstance(extent, int) or 0 <= reach[0] < max(extent, 1)
        for reach, extent in zip(starts, shape, strict=False)
    )


def _viewed_extents(t: Translator, tensor: Expr) -> list[Extent]:
    """Return the extents of a tensor and of those that it is a part of."""
    shape = tensor.type.shape if isinstance(tensor.type, TensorType) else ()
    made = t.assigned.get(tensor) if isinstance(tensor, Var) else tensor
    if not isinstance(made, Call) or not made.op.spec.is_view or not made.args:
        return [*shape]
    return [*shape, *_viewed_extents(t, made.args[0])]


def _check_attributes(
    t: Translator, spec: OpSpec, bound: Mapping[str, Value], spans: Mapping[str, ast.AST], node: ast.AST
) -> None:
    for p in spec.options:
        value = bound[p.name]
        if isinstance(value, Expr) and not isinstance(value, Const):
            message = f"`{p.name}` of `{spec.name}` must be known before the program runs, got {value.type}"
            help = "pass a constant, or a Python value from outside the kernel"
            raise t.error(NotStaticError, spans.get(p.name, node), message, help=help)


def _check_source(t: Translator, result: Expr, node: ast.Call) -> None:
    """Raise where something is added atomically that is a buffer, and no result of this kernel."""
    if not isinstance(result, Call) or ("atomic", AtomicType.Add) not in result.attributes:
        return
    source = op_arguments(result).get("source")
    if not isinstance(source, Var) or not isinstance(source.type, TensorType):
        return
    made = t.assigned.get(source)
    if id(source) not in t.given and not (isinstance(made, Call) and made.op.spec.computes):
        message = f"`{source.name_hint}` is a buffer: an atomic assemble adds what a kernel has computed"
        raise t.error(OperandError, node, message, help="pl.load it, and add the tile")


def _check_namespace(t: Translator, result: Expr, node: ast.Call) -> None:
    """Raise when `pl.tile.x` was given tensors, or `pl.tensor.x` tiles."""
    if not (
        isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Attribute) and isinstance(result, Call)
    ):
        return
    asked, got = node.func.value.attr, result.op.kind
    if {asked, got.value} == {Kind.TILE.value, Kind.TENSOR.value} and len(result.op.spec.kinds) > 1 and result.args:
        help = f"pl.{node.func.attr} takes either"
        raise t.error(OperandError, node, f"`{ast.unparse(node.func)}` takes {asked}s, got {got.value}s", help=help)
