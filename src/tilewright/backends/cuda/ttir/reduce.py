"""Reductions: rows and columns folded to one element each, what is not valid left out.

Sums and products of floats are folded in fp64 and rounded once: in which order threads fold is Triton's affair.
"""

from __future__ import annotations

from tilewright.backends.cuda.ttir.convert import as_element
from tilewright.backends.cuda.ttir.elements import FOLDS, Elements, computed
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.recipes import Bound, recipe, refused
from tilewright.backends.cuda.ttir.text import Value, type_of
from tilewright.backends.cuda.ttir.tiles import tile_type
from tilewright.backends.cuda.ttir.values import Tile
from tilewright.core.expr import Call
from tilewright.dtypes import FP64


@recipe("tile:reduction")
def _reduction(k: Kernel, call: Call, bound: Bound) -> Tile:
    spec, source, type_ = call.op.spec, bound["x"], tile_type(call)
    if type_.dtype in spec.stepwise:
        raise refused(f"`{call.op.name}` of {type_.dtype} elements", call.span)
    axis = len(type_.shape) - (1 if spec.name.startswith("row") else 2)
    given = computed(k.t, source.value, type_.dtype)
    if type_.dtype.is_float() and spec.combine in ("add", "multiply"):
        given = given.of(as_element(k.t, given.value, given.element, FP64), FP64)
    mask = k.mask(source)
    if mask is not None:
        assert spec.start is not None
        given = given.of(k.t.select(mask, given.value, given.like(spec.start(type_.dtype)).value))
    value = fold(k, given, axis, spec.combine)
    value = as_element(k.t, value, given.element, type_.dtype)
    valid = [1 if a == axis else extent for a, extent in enumerate(source.valid)]
    return k.tile(_kept(k, value, source.value.shape, axis), type_, valid)


def fold(k: Kernel, given: Elements, axis: int, combine: str) -> Value:
    """Return an axis folded by a NumPy function of two elements, and gone."""
    t, element, shape = k.t, given.value.element, given.value.shape
    result = t.fresh(element, (*shape[:axis], *shape[axis + 1 :]))
    a, b = t.fresh(element), t.fresh(element)
    tail = f"}}) : ({given.value.type}) -> {type_of(element, result.shape)}"
    with t.block(f'{result.ref} = "tt.reduce"({given.value}) <{{axis = {axis} : i32}}> ({{', tail):
        t.between(f"^bb0({a}: {element}, {b}: {element}):")
        found = FOLDS[combine](given.of(a), given.of(b))
        t.do(f"tt.reduce.return {found.value} : {element}")
    return result


def _kept(k: Kernel, value: Value, shape: tuple[int, ...], axis: int) -> Value:
    """Return a folded axis as one of a single element."""
    whole = (*shape[:axis], 1, *shape[axis + 1 :])
    if not value.shape:
        return k.t.splat(value, whole)
    return k.t.shaped("tt.expand_dims", value, whole, f" {{axis = {axis} : i32}}")
