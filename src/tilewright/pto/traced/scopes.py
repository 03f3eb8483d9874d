"""Scopes: what `with` opens in a body."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tilewright.errors import UncallableError, UnsupportedFeatureError
from tilewright.frontend.walk.bindings import Binding
from tilewright.frontend.walk.statements import bind_target
from tilewright.pto.module import Op, Region, Value
from tilewright.pto.traced.handles import BranchHandle, BranchSide, LoopHandle
from tilewright.pto.traced.launches import LaunchScope, launch_region
from tilewright.pto.traced.liveness import assigned_in
from tilewright.pto.traced.namespace import Scope
from tilewright.pto.traced.nesting import alone, is_on_the_cube
from tilewright.pto.traced.tracer import Tracer
from tilewright.pto.traced.values import Handle, describe, is_runtime


def with_(t: Tracer, node: ast.With) -> None:
    """Trace a scope."""
    item = node.items[0]
    if len(node.items) != 1:
        help = "write one `with` for each scope"
        raise t.error(UnsupportedFeatureError, item.context_expr, "a `with` opens one scope here", help=help)
    opened = t.evaluate(item.context_expr)
    if isinstance(opened, LoopHandle):
        _name(t, item, opened.opened(t, node))
        opened.closed(t, _region(t, node, opened.arguments, opened), node)
    elif isinstance(opened, BranchHandle):
        _name(t, item, opened)
        _sides(t, node)
        opened.closed(t, node)
    elif isinstance(opened, LaunchScope) and item.optional_vars is None:
        launch_region(t, opened, _region(t, node), item.context_expr)
    elif item.optional_vars is not None or not isinstance(opened, Scope | BranchSide):
        raise _no_scope(t, item, opened)
    elif isinstance(opened, BranchSide):
        opened.owner.open = opened
        opened.region = _region(t, node, yields_to=opened.owner)
        opened.owner.open = None
    else:
        with alone(t, opened.kind, item.context_expr):
            region = _region(t, node)
        if opened.kind == "tileop" and is_on_the_cube(t, opened.kind, region, item.context_expr):
            t.writer.ops += region.ops
            return
        t.writer.emit(Op(opened.op, regions=(region,), span=t.span(item.context_expr)))


def _no_scope(t: Tracer, item: ast.withitem, opened: object) -> UncallableError | UnsupportedFeatureError:
    if isinstance(opened, Scope | BranchSide):
        help = "`as` is for pto.for_ and pto.if_"
        return t.error(UnsupportedFeatureError, item.context_expr, "this scope gives nothing to name", help=help)
    help = "scopes are pto.vecscope(), pto.section.vector(), pto.section.cube(), pto.for_(...) and pto.if_(...)"
    return t.error(UncallableError, item.context_expr, f"{describe(opened)} is no scope", help=help)


def _sides(t: Tracer, node: ast.With) -> None:
    """Trace the sides of a branch; refuse ops that belong to neither."""
    before = len(t.writer.ops)
    t.execute(node.body)
    if len(t.writer.ops) > before:
        beside = next((stmt for stmt in node.body if not isinstance(stmt, ast.With)), node)
        help = "move them before the branch, or into one of its sides"
        raise t.error(UnsupportedFeatureError, beside, "ops stand beside the sides of this branch", help=help)


def _name(t: Tracer, item: ast.withitem, value: object) -> None:
    if item.optional_vars is not None:
        bind_target(t, item.optional_vars, value, item.context_expr)


def _region(t: Tracer, node: ast.With, arguments: Sequence[Value] = (), yields_to: Handle | None = None) -> Region:
    """Trace a region; what it binds ends with it."""
    before, outer = dict(t.names), t.yields_to
    t.region_depth += 1
    t.yields_to = yields_to
    with t.writer.region(tuple(arguments)) as region:
        t.execute(node.body)
    t.yields_to = outer
    t.region_depth -= 1
    for name in assigned_in(node.body):
        binding = t.names.get(name)
        if binding is not None and before.get(name) is not binding and is_runtime(binding.value):
            problem = f"'{name}' was bound inside the scope of line {node.lineno}, and values do not leave it"
            t.names[name] = Binding(
                None, binding.span, problem, "store it to memory inside, or bind it before the scope"
            )
    return region
