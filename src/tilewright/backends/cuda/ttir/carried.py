"""Carried values: what loops and branches hand on, as the values that Triton IR hands on.

A number is one value. A tile is its elements, and how much of it is valid along the axes of which its type does not
know that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.convert import as_element
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.recipes import refused
from tilewright.backends.cuda.ttir.text import I64, Value
from tilewright.backends.cuda.ttir.values import Binding, Mask, Scalar, Tile, element_of, padded, working
from tilewright.core.expr import Var
from tilewright.core.types import ScalarType, TileType


def fresh(k: Kernel, vars: Sequence[Var]) -> list[Value]:
    """Return values for what variables hand on, that nothing has been written for yet."""
    return [k.t.fresh(element, shape) for var in vars for element, shape in _types(var)]


def _types(var: Var) -> Iterator[tuple[str, tuple[int, ...]]]:
    match var.type:
        case ScalarType():
            yield element_of(working(var.type.dtype)), ()
        case TileType():
            yield element_of(var.type.dtype), padded(var.type.shape)
            yield from ((I64, ()) for extent in var.type.valid if not isinstance(extent, int))
        case _:
            raise refused(f"a loop or branch that hands on {var.type}", var.span)


def values(k: Kernel, vars: Sequence[Var], bindings: Sequence[Binding]) -> list[Value]:
    """Return what variables hand on, for what they stand for."""
    return [value for var, binding in zip(vars, bindings, strict=True) for value in _values(k, var, binding)]


def _values(k: Kernel, var: Var, binding: Binding) -> Iterator[Value]:
    if isinstance(binding, Mask):
        binding = binding.packed()
    if isinstance(binding, Scalar) and isinstance(var.type, ScalarType):
        yield as_element(k.t, binding.value, working(binding.dtype), working(var.type.dtype))
    elif isinstance(binding, Tile) and isinstance(var.type, TileType):
        yield binding.value
        for known, extent in zip(var.type.valid, binding.valid, strict=True):
            if not isinstance(known, int):
                yield extents.held(k.t, extent)
    else:
        raise refused(f"a loop or branch that hands on {var.type}", var.span)


def bind(k: Kernel, vars: Sequence[Var], given: Sequence[Value]) -> None:
    """Let variables stand for values that were handed on."""
    left = iter(given)
    for var in vars:
        if isinstance(var.type, ScalarType):
            k.bindings[var] = Scalar(next(left), var.type.dtype)
            continue
        assert isinstance(var.type, TileType)
        value = next(left)
        valid = [extent if isinstance(extent, int) else next(left) for extent in var.type.valid]
        k.bindings[var] = k.tile(value, var.type, valid)
