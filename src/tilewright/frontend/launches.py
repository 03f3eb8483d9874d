"""Launches: what `kernel[grid, stream](...)` becomes in a function, for kernels of another language.

Such a kernel is written out where it is launched. Tensors are handed to it as the memory that they are: dense, of one
axis, so that it may reach into a window of the rank that runs, or into the part of a peer.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from tilewright.core.build import call, scalar
from tilewright.core.enums import Level
from tilewright.core.expr import Call, Const, Expr, GlobalVar, Invoke, MakeTuple, Var, integer
from tilewright.core.extents import as_scalar
from tilewright.core.program import Function, Program
from tilewright.core.rewrite import Rewriter
from tilewright.core.stmt import AssignStmt
from tilewright.core.types import ScalarType, TensorType
from tilewright.errors import ArgumentCountError, AttributeValueError, OperandError, UncallableError
from tilewright.frontend.arguments import Arguments
from tilewright.frontend.invocations import invoke
from tilewright.frontend.launchable import Launchable, Launching
from tilewright.frontend.names import Changed, free_name
from tilewright.frontend.translator import Translator
from tilewright.frontend.walk.walker import Value
from tilewright.ops.registry import OPS

_SPEC = "kernel[grid, None](...)"


def launching(t: Translator, kernel: Launchable, node: ast.Subscript) -> Launching:
    """Return what `kernel[grid, stream]` stands for; the stream orders nothing."""
    digest = t.resolver.attribute(kernel, "text_digest")
    spec = t.operand(node.slice)
    if not isinstance(spec, tuple) or len(spec) != 2:  # pyright: ignore[reportUnknownArgumentType]
        message = f"a launch has a grid and a stream in its brackets, got `{ast.unparse(node.slice)}`"
        raise t.error(AttributeValueError, node.slice, message, help=_SPEC)
    grid = t.expr(spec[0], node.slice, "the grid")  # pyright: ignore[reportUnknownArgumentType]
    is_known = isinstance(grid, Const)
    if not isinstance(grid.type, ScalarType) or not grid.type.dtype.is_int() or (is_known and grid.value <= 0):
        shown = grid.value if is_known else grid.type
        message = f"the grid of a launch is a positive integer, got {shown}"
        raise t.error(AttributeValueError, node.slice, message, help=f"{_SPEC}; `//` divides integers")
    return Launching(kernel, digest, grid)


def launched(t: Translator, launching: Launching, given: Arguments, node: ast.Call) -> Value:
    """Return the launch of a kernel on some blocks: a call of the function that it is."""
    if t.level is Level.HOST or t.kernels or t.func_type.is_incore:
        where = "a host function" if t.level is Level.HOST else "a kernel"
        message = f"`{ast.unparse(node.func)}` stands in {where}, and an orchestration function launches kernels"
        help = "launch it in a function decorated with @pl.jit, outside of pl.at"
        raise t.error(UncallableError, node.func, message, help=help)
    if given.kwargs:
        name, where = next(iter(given.keyword_nodes.items()))
        message = f"a launch takes its arguments by position, got `{name}` by name"
        help = f"{_SPEC}; a constant is given outside of the function: kernel.compile({name}=...)[grid, None](...)"
        raise t.error(ArgumentCountError, where, message, help=help)
    function = _taken(t, launching, _are_apart(t, given.args), node)
    params = function.params[1:]
    if len(given.args) != len(params):
        names = ", ".join(p.name_hint for p in params)
        message = f"`{function.name}` takes {len(params)} argument(s) ({names}), got {len(given.args)}"
        raise t.error(ArgumentCountError, node, message)
    pairs = zip(given.args, given.nodes, strict=True)
    args = [_memory(t, value, where) for value, where in pairs]
    every = Arguments((launching.grid, *args), {}, (node.func, *given.nodes), {})
    return invoke(t, function, every, node)


def _memory(t: Translator, value: Value, node: ast.expr) -> Value:
    """Return an argument as kernels take it: a tensor as dense memory, a number as it is."""
    if not isinstance(value, Expr) or isinstance(value.type, ScalarType):
        return value
    if not isinstance(value.type, TensorType):
        message = f"a kernel is given tensors and numbers, got {value.type}"
        raise t.error(OperandError, node, message, help="store it to a tensor first")
    count: Expr = integer(1)
    for extent in value.type.shape:
        count = scalar("mul", count, as_scalar(extent))
    span = t.span(node)
    flat = call(OPS["tensor.reshape"].spec, {"x": value, "shape": MakeTuple((count,))}, span)
    name = value.name_hint if isinstance(value, Var) else "memory"  # as errors call it
    t.emit(AssignStmt(made := Var(name, flat.type, span), flat, span))
    return made


def _are_apart(t: Translator, args: Sequence[Value]) -> bool:
    """Return whether no two tensors can share memory: each is another parameter, or made here."""
    owners = [_owner(t, arg) for arg in args if isinstance(arg, Expr) and isinstance(arg.type, TensorType)]
    return None not in owners and len(set(owners)) == len(owners)


def _owner(t: Translator, tensor: Expr) -> Var | None:
    """Return the tensor that another one is a view of; None where only the running program knows."""
    while isinstance(tensor, Var):
        made = t.assigned.get(tensor)
        if not isinstance(made, Call):
            is_parameter = made is None and id(tensor) not in t.given | t.variables
            return tensor if is_parameter else None
        if not made.op.spec.is_view:
            return tensor if made.op.name == "tensor.create" else None
        tensor = made.args[0]
    return None


def _taken(t: Translator, launching: Launching, are_apart: bool, node: ast.AST) -> Function:
    """Return the function that a kernel is, taken into the program when it is first launched there.

    Changed where its text is another one by now than the function has read.
    """
    kernel = launching.kernel
    known: dict[tuple[Launchable, bool], Function] = t.callees.launched
    if (kernel, are_apart) not in known:
        functions = _named(kernel.for_grids(are_apart), t.callees.names())
        if kernel.text_digest != launching.text_digest:
            raise Changed(f"the text of `{functions[-1].name}` has changed as it was compiled")
        for function in functions:
            t.callees.free(function, t.span(node))
        known[kernel, are_apart] = functions[-1]
    return known[kernel, are_apart]


def _named(program: Program, taken: Collection[str]) -> list[Function]:
    """Return the functions of a kernel under names that nobody has."""
    names: dict[str, str] = {}
    for function in program.function_list:
        names[function.name] = free_name(function.name, {*taken, *names.values()})
    calls = _Renamed(names)
    return [replace(f, name=names[f.name], body=calls.body(f.body)) for f in program.function_list]


class _Renamed(Rewriter):
    """Calls functions by other names."""

    def __init__(self, names: Mapping[str, str]) -> None:
        super().__init__()
        self._names = names

    def expr(self, expr: Expr) -> Expr:
        """Rewrite an expression."""
        made = super().expr(expr)
        return replace(made, op=GlobalVar(self._names[made.op.name])) if isinstance(made, Invoke) else made
