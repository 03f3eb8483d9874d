"""Launches: `@pto.simt` functions run by work items, and `with pto.simt(x, y, z):` around what they do.

Each becomes a function of the module of its own, which the body launches.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.errors import ArgumentCountError, OperandError, ReturnMismatchError
from tilewright.frontend.names import defaults_of
from tilewright.frontend.walk.expressions import EXPRESSIONS
from tilewright.pto.declared import name_span
from tilewright.pto.entries import ENTRY, LAUNCH
from tilewright.pto.module import Attribute, Func, Number, Op, Region, Value
from tilewright.pto.text.free import OPERAND, WRITTEN
from tilewright.pto.traced.arguments import Argument, Arguments
from tilewright.pto.traced.nested import Nested, call_nested
from tilewright.pto.traced.scalars import as_integer
from tilewright.pto.traced.subkernels import SubKernel, simt
from tilewright.pto.traced.tracer import Tracer
from tilewright.pto.traced.values import describe
from tilewright.pto.types import SCALARS

Extents = tuple[Value, Value, Value]


@dataclass(frozen=True)
class Launch:
    """A sub-kernel and how many work items run it, waiting for its arguments."""

    callee: SubKernel | Nested
    extents: Extents


@dataclass(frozen=True)
class LaunchScope:
    """What `with pto.simt(x, y, z):` opens."""

    extents: Extents


def item(t: Tracer, node: ast.Subscript) -> Any:
    """Return `body[x, y, z]`, or an item of anything else."""
    owner = t.evaluate(node.value) if isinstance(node.value, ast.Name | ast.Attribute) else None
    if not isinstance(owner, SubKernel | Nested) or owner.kind is not simt:
        return EXPRESSIONS[ast.Subscript](t, node)
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return Launch(owner, extents_of(t, [Argument(t.evaluate(part), part) for part in parts], node))


def extents_of(t: Tracer, parts: Sequence[Argument], node: ast.expr) -> Extents:
    """Return how many work items there are along x, y and z: one where nothing is said."""
    if len(parts) > 3:
        message = f"work items have three axes, got {len(parts)}"
        raise t.error(ArgumentCountError, node, message, help="as in `body[x, y, z](...)`")
    i32 = SCALARS["i32"]
    given = [as_integer(t, part.value, i32, part.node) for part in parts]
    x, y, z = (*given, *(as_integer(t, 1, i32, node) for _ in range(3 - len(given))))
    return x, y, z


def launch(t: Tracer, launched: Launch, given: Arguments) -> None:
    """Add a launch of a sub-kernel: what the body computes is passed, what Python knows is written into it."""
    if isinstance(launched.callee, Nested):
        with t.writer.region() as region:
            call_nested(t, launched.callee, given)
        launch_region(t, LaunchScope(launched.extents), region, given.node)
        return
    function = launched.callee.function
    inner = t.of(function, t.program)
    inner.resolver.read_defaults()
    parameters = inner.captured.node.args
    positional = [arg.arg for arg in (*parameters.posonlyargs, *parameters.args)]
    names = [*positional, *(arg.arg for arg in parameters.kwonlyargs)]
    defaults = defaults_of(function)
    bound = given.bound(t, positional, names, [name for name in names if name not in defaults])
    passed = {name: each.value for name, each in bound.items() if isinstance(each.value, Value)}
    known = {**defaults, **{name: each.value for name, each in bound.items() if name not in passed}}
    key = id(launched.callee), (*((n, v.type) for n, v in passed.items()), *((n, repr(v)) for n, v in known.items()))
    func = t.program.funcs.get(key)
    if func is None:
        func = t.program.funcs[key] = _traced(t, inner, launched.callee, passed, known)
        t.program.kept.append(launched.callee)
    _emit(t, func, launched.extents, tuple(passed.values()), given.node)


def _traced(t: Tracer, inner: Tracer, callee: SubKernel, passed: dict[str, Value], known: dict[str, Any]) -> Func:
    """Return the function that a sub-kernel is for arguments of some types."""
    node = inner.captured.node
    arguments = [Value(inner.writer.fresh(name), value.type, inner.span(node)) for name, value in passed.items()]
    for name, value in (*zip(passed, arguments, strict=True), *known.items()):
        inner.let(name, value, node)
    inner.execute(node.body)
    span = name_span(inner.captured)
    if inner.returned is not None and inner.returned.value is not None:
        message = f"a pto.simt function returns nothing, got {describe(inner.returned.value)}"
        raise ReturnMismatchError(message, spans=[inner.returned.span], help="write it to memory")
    inner.writer.emit(Op("func.return", span=span))
    name = t.program.symbol(callee.function.__name__)
    body = inner.writer.body(tuple(arguments))
    return Func(name, tuple(arguments), attributes=_marks(callee.max_threads), body=body, span=span)


def _marks(max_threads: int | None) -> dict[str, Attribute]:
    limit = {} if max_threads is None else {"pto.simt_max_threads": Number(max_threads, SCALARS["i32"])}
    return {ENTRY: None, **limit}


def _emit(t: Tracer, func: Func, extents: Extents, passed: Sequence[Value], node: ast.expr) -> None:
    rows = [OPERAND, ",", OPERAND, ",", OPERAND], _listed([OPERAND] * len(passed))
    types = _listed([str(value.type) for value in passed])
    written = (
        f"@{func.name}", *"<<<", *rows[0], *">>>", "(", *rows[1], ")", ":", "(", *types, ")", "->", "(", ")"
    )  # fmt: skip
    t.writer.emit(Op(LAUNCH, (*extents, *passed), attributes={WRITTEN: written}, span=t.span(node)))


def _listed(words: Sequence[str]) -> list[str]:
    return [part for word in words for part in (",", word)][1:]


def launch_region(t: Tracer, scope: LaunchScope, region: Region, node: ast.expr) -> None:
    """Add a launch of what stands in a scope; the values it uses from outside are passed."""
    inside = {value for op in region.ops for each in op.walk() for value in _made(each)}
    used = dict.fromkeys(use for op in region.ops for each in op.walk() for use in each.uses if use not in inside)
    constants = {op.results[0]: op for op in t.writer.constants.values()}
    passed = tuple(value for value in used if value not in constants)
    for value in (*passed, *inside):
        value.name = value.name or t.writer.fresh("v")
    ops = [*(constants[value] for value in used if value in constants), *region.ops, Op("func.return")]
    name = t.program.symbol(f"{t.captured.node.name}_items")
    func = Func(name, passed, attributes=_marks(None), body=Region(passed, ops), span=t.span(node))
    t.program.funcs[id(func), ()] = func
    _emit(t, func, scope.extents, passed, node)


def _made(op: Op) -> list[Value]:
    return [*op.results, *(argument for region in op.regions for argument in region.arguments)]


def launched_by_name(t: Tracer, given: Arguments) -> None:
    """Launch what `pto.simt_launch(body, *args, dims=(x, y, z))` names."""
    callee = given.args.pop(0) if given.args else None
    dims = given.kwargs.pop("dims", Argument((1, 1, 1), given.node))
    if callee is None or not isinstance(callee.value, SubKernel | Nested) or callee.value.kind is not simt:
        message = f"`{given.name}` launches a @pto.simt function"
        raise t.error(OperandError, given.node, message, help="pto.simt_launch(body, a, b, dims=(32, 1, 1))")
    parts = [Argument(part, dims.node) for part in dims.value]
    launch(t, Launch(callee.value, extents_of(t, parts, dims.node)), given)
