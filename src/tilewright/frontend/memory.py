"""Memory: annotations that say where a local tile lives."""

from __future__ import annotations

import ast
from typing import Any

from tilewright.core.enums import MemorySpace
from tilewright.core.expr import Expr
from tilewright.core.memrefs import MemRef
from tilewright.core.types import NamedMemRef, ScalarType
from tilewright.errors import AnnotationError
from tilewright.frontend.translator import Translator


def check_place(t: Translator, memref: MemRef, memory: MemorySpace | None, node: ast.expr) -> None:
    """Raise for a slot that is not there, and for tiles of one name in overlapping turns or different memories."""
    if isinstance(memref.slot, int) and memref.slots is not None and not 0 <= memref.slot < memref.slots:
        message = f"{memref!r} is a slot that is not there: slots={memref.slots} are 0 to {memref.slots - 1}"
        raise t.error(AnnotationError, node, message, help="ask for more with slots=, or count around: [i % slots]")
    if not isinstance(memref.placed, NamedMemRef):
        return
    if any(stage > 1 for stage in t.stages):
        message = "a named pl.MemRef cannot stand in a pl.pipeline() of two stages or more, whose turns overlap"
        raise t.error(AnnotationError, node, message, help="use pl.range, or leave the place out")
    known = t.places.setdefault(memref.name, (memory, memref.slots))
    if known != (memory, memref.slots):
        message = f"'{memref.name}' is one place, and was declared with another memory or another number of slots"
        raise t.error(AnnotationError, node, message, help="give the other place a name of its own")


def without_values(t: Translator, annotation: ast.expr) -> ast.expr:
    """Return an annotation whose places in memory have the values of the program that they say."""
    if not isinstance(annotation, ast.Subscript) or not isinstance(annotation.slice, ast.Tuple):
        return annotation
    parts = annotation.slice.elts
    plain = [part if at < 2 else _plain(t, part) for at, part in enumerate(parts)]
    if all(new is old for new, old in zip(plain, parts, strict=True)):
        return annotation
    slice_ = ast.copy_location(ast.Tuple(plain, ast.Load()), annotation.slice)
    return ast.copy_location(ast.Subscript(annotation.value, slice_, ast.Load()), annotation)


def _plain(t: Translator, part: ast.expr) -> ast.expr:
    if isinstance(part, ast.Subscript) and isinstance(part.value, (ast.Call, ast.Name)):
        if isinstance(part.value, ast.Name) and not isinstance(t.evaluate(part.value), MemRef):
            return part
        place: Any = t.evaluate(_plain(t, part.value))
        return ast.copy_location(ast.Constant(place[_slot(t, part.slice)]), part)
    if isinstance(part, ast.Call) and part.args and t.evaluate(part.func) is MemRef:
        base = t.find(part.args[0].id) if isinstance(part.args[0], ast.Name) else None
        if base is not None and isinstance(base.value, Expr):
            name = ast.copy_location(ast.Constant(ast.unparse(part.args[0])), part.args[0])
            return ast.copy_location(ast.Call(part.func, [name, *part.args[1:]], part.keywords), part)
    return part


def _slot(t: Translator, node: ast.expr) -> Any:
    """Return which slot it is, as a number or as what the running program has for one."""
    index: Any = t.operand(node)
    is_scalar = isinstance(index, Expr) and isinstance(index.type, ScalarType) and index.type.dtype.is_int()
    if type(index) is not int and not is_scalar:
        message = f"a slot of pl.MemRef is an integer, got {t.describe(index)}"
        raise t.error(AnnotationError, node, message, help='pl.MemRef("name", slots=2)[i % 2]')
    return index
