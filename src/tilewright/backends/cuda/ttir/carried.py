"""Carried values: what loops and branches hand on, as the values that Triton IR hands on.

A number is one value. A tile is its elements, and how much of it is valid along the axes of which its type does not
know that. A tensor is its address, its extents, how far they are apart and how much of them is valid; which of several
it is nobody knows then, so that it may share its memory with any.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.convert import as_element
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.recipes import refused
from tilewright.backends.cuda.ttir.text import I1, I64, Value, pointer_to
from tilewright.backends.cuda.ttir.tiles import zeros
from tilewright.backends.cuda.ttir.values import (
    ANY,
    Binding,
    Mask,
    Scalar,
    Tensor,
    Tile,
    element_of,
    memory_element,
    padded,
    working,
)
from tilewright.core.expr import Absent, Expr, Var
from tilewright.core.stmt import IterArg
from tilewright.core.types import ScalarType, TensorType, TileType
from tilewright.dtypes import BOOL

HANDED = "hand on tiles, numbers and tensors, one name each"


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
        case TensorType():
            yield pointer_to(memory_element(var.type.dtype)), ()
            yield from ((I64, ()) for _ in range(3 * len(var.type.shape)))
        case _:
            raise refused(f"a loop or branch that hands on {var.type}", var.span, HANDED)


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
    elif isinstance(binding, Tensor) and isinstance(var.type, TensorType):
        yield binding.pointer
        for extent in (*binding.shape, *binding.strides, *binding.valid):
            yield extents.held(k.t, extent)
    else:
        raise refused(f"a loop or branch that hands on {var.type}", var.span, HANDED)


def bind(k: Kernel, vars: Sequence[Var], given: Sequence[Value]) -> None:
    """Let variables stand for values that were handed on."""
    left = iter(given)
    for var in vars:
        if isinstance(var.type, ScalarType):
            k.bindings[var] = Scalar(next(left), var.type.dtype)
            continue
        value = next(left)
        if isinstance(var.type, TensorType):
            k.bindings[var] = _tensor(var.type, value, left)
            continue
        assert isinstance(var.type, TileType)
        valid = [extent if isinstance(extent, int) else next(left) for extent in var.type.valid]
        k.bindings[var] = k.tile(value, var.type, valid)


def _tensor(type_: TensorType, pointer: Value, left: Iterator[Value]) -> Tensor:
    found, strides, live = (tuple(next(left) for _ in type_.shape) for _ in range(3))
    shape, valid = (
        tuple(n if isinstance(n, int) else extent for n, extent in zip(known, each, strict=True))
        for known, each in ((type_.shape, found), (type_.valid, live))
    )
    return Tensor(pointer, shape, strides, valid, type_.dtype, ANY)


class Handed:
    """What a loop or branch hands on: its variables and, for those that may be missing, whether they are there."""

    def __init__(self, k: Kernel, vars: Sequence[Var], may_be_missing: Sequence[bool]) -> None:
        self.k, self.vars = k, vars
        self.unsure = [number for number, is_unsure in enumerate(may_be_missing) if is_unsure]
        self._flags = [Var("is_there", ScalarType(BOOL)) for _ in self.unsure]

    @staticmethod
    def around(k: Kernel, args: Sequence[IterArg]) -> Handed:
        """Return what a loop carries, which may not have anything to start with."""
        return Handed(k, [arg.var for arg in args], [_is_unsure(k, arg.init) for arg in args])

    def fresh(self) -> list[Value]:
        """Return values that nothing has been written for yet."""
        return fresh(self.k, [*self.vars, *self._flags])

    def values(self, given: Sequence[Expr]) -> list[Value]:
        """Return what is handed on, for what variables stand for."""
        pairs = zip(self.vars, given, strict=True)
        found = [self._held(var, expr, number in self.unsure) for number, (var, expr) in enumerate(pairs)]
        flags = [Scalar(_is_there(self.k, given[number]), BOOL) for number in self.unsure]
        return values(self.k, [*self.vars, *self._flags], [*found, *flags])

    def _held(self, var: Var, expr: Expr, is_unsure: bool) -> Binding:
        if isinstance(expr, Absent):
            return _nothing(self.k, var)
        return self.k.bindings[expr] if is_unsure and isinstance(expr, Var) else self.k.value(expr)

    def bind(self, vars: Sequence[Var], given: Sequence[Value]) -> None:
        """Let variables stand for values that were handed on."""
        bind(self.k, [*vars, *self._flags], given)
        for number, value in zip(self.unsure, given[len(given) - len(self.unsure) :], strict=True):
            self.k.missing[vars[number]] = value


def _is_unsure(k: Kernel, expr: Expr) -> bool:
    return isinstance(expr, Absent) or (isinstance(expr, Var) and expr in k.missing)


def _is_there(k: Kernel, expr: Expr) -> Value:
    if isinstance(expr, Var) and expr in k.missing:
        return k.missing[expr]
    return k.t.constant("false" if isinstance(expr, Absent) else "true", I1)


def _nothing(k: Kernel, var: Var) -> Binding:
    """Return what stands for a value that is not there."""
    if isinstance(var.type, ScalarType):
        return k.number(0, var.type.dtype)
    if not isinstance(var.type, TileType):
        raise refused(f"a loop that binds {var.type} for the first time", var.span, "bind it before the loop, too")
    like = Value("", element_of(var.type.dtype), padded(var.type.shape))
    return k.tile(zeros(k, like), var.type, (0,) * len(var.type.shape))
