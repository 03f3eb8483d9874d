"""Accumulators: tiles that an op adds to where they lie, by whatever names and slices they are known."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace

from tilewright.core.build import arguments, call
from tilewright.core.enums import AtomicType, MemorySpace
from tilewright.core.expr import Call, Expr, MakeTuple, Var, integer
from tilewright.core.op import OpSpec
from tilewright.core.stmt import EvalStmt
from tilewright.core.types import TensorType
from tilewright.errors import UnsupportedFeatureError
from tilewright.frontend.operators import apply
from tilewright.frontend.translator import Translator
from tilewright.frontend.walk.walker import Value
from tilewright.ops.registry import OPS


def accumulated(
    t: Translator, spec: OpSpec, bound: Mapping[str, Value], node: ast.Call, spans: Mapping[str, ast.AST]
) -> Expr | None:
    """Return the sum that an op makes of a slice, written back where the slice was taken; None for other operands."""
    acc = bound[spec.updates] if spec.updates else None
    if not isinstance(acc, Var) or not t.windows.is_slice(acc, t.scope.blocks):
        return None
    _check(t, acc, node)
    apart = {"tile": acc, "target_memory": MemorySpace.Acc, "blayout": None, "slayout": None}
    copy = t.placed(call(OPS["tile.move"].spec, apart, t.span(node)), node)
    summed = t.placed(apply(t, spec, {**bound, str(spec.updates): copy}, node, spans), node)
    _write_back(t, acc, summed, node)
    return summed


def _check(t: Translator, acc: Var, node: ast.Call) -> None:
    """Raise where it cannot be told which tile, by which name, a slice is part of."""
    window = t.windows.taken[acc]
    if not window.is_known:
        what = "it depends on the path to this line which slice of a tile is added to"
    elif not window.is_plain:
        what = "a slice that drops axes or is cut short cannot be added to in place"
    elif not _names(t, window.base):
        what = "the tile whose slice is added to has no name here"
    elif window.base in t.windows.taken:
        return _check(t, window.base, node)
    else:
        return None
    help = "add to the tile itself, or move the slice with pl.move and write the sum back with pl.assemble"
    raise t.error(UnsupportedFeatureError, node, what, help=help)


def _write_back(t: Translator, acc: Var, summed: Var, node: ast.Call) -> None:
    """Write a sum into the tile that a slice was taken of, and take the slices anew that overlap it."""
    window = t.windows.taken[acc]
    outer = t.windows.taken.get(window.base)
    slices, plain = t.windows.slices(window.base), t.windows.plain_in(t.scope.blocks)
    bound = {"target": window.base, "source": summed, "offset": MakeTuple(window.offset), "atomic": AtomicType.None_}
    whole = _rebind(t, window.base, call(OPS["tile.assemble"].spec, bound, t.span(node)), node)
    t.windows.taken |= {var: replace(found, base=whole) for var, found in slices.items()}
    t.windows.take(summed, replace(window, base=whole))
    t.windows.added_to |= {acc, summed}
    if outer is not None:
        t.windows.take(whole, outer)
        _write_back(t, whole, whole, node)
    _rebind(t, acc, summed, node)
    for var, found in slices.items():
        if var is not acc and var not in plain and not found.is_apart_from(window):
            if not found.is_known and _names(t, var):
                what = f"`{var.name_hint}` may be a slice of the tile that is added to, or another one"
                raise t.error(UnsupportedFeatureError, node, what, help="use another name for the other tile")
            _rebind(t, var, call(OPS["tile.slice"].spec, {**arguments(found.call), "x": whole}, t.span(node)), node)


def _rebind(t: Translator, old: Var, value: Expr, node: ast.Call) -> Var:
    """Let every name that stands for a variable stand for a value; return the variable that holds it."""
    found = old
    for name in _names(t, old) if value is not old else ():
        binding = t.scope.find(name)
        if binding is not None and name not in t.scope.shared and binding.block != t.scope.block:
            message = f"this changes `{name}` in place, which a block around this one has bound"
            help = "call the op by its own name, as in pl.matmul_acc(...), or assign its result"
            raise t.error(UnsupportedFeatureError, node, message, help=help)
        t.assign(name, value if found is old else found, node)
        bound = t.scope.find(name)
        assert bound is not None and isinstance(bound.value, Var)
        found = bound.value
    return found


def _names(t: Translator, var: Var) -> list[str]:
    """Return the names that stand for a variable here."""
    visible = {name: t.scope.find(name) for frame in t.scope.frames for name in frame}
    return [n for n, b in visible.items() if b is not None and b.value is var and not b.problem]


def keep_sum(t: Translator, value: Call, node: ast.Call) -> None:
    """Let an accumulator be the sum of a statement that does not bind it."""
    acc = arguments(value)[str(value.op.spec.updates)]
    assert isinstance(acc, Expr)
    if isinstance(acc.type, TensorType):
        zeros = MakeTuple(tuple(integer(0) for _ in acc.type.shape))
        bound = {"target": acc, "source": t.placed(value, node), "offset": zeros, "atomic": AtomicType.None_}
        t.emit(EvalStmt(call(OPS["tensor.assemble"].spec, bound, t.span(node)), t.span(node)))
    elif isinstance(acc, Var):
        _rebind(t, acc, value, node)
