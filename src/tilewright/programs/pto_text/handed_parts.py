"""Handed parts: where a part of a tensor begins and how far it reaches, as numbers that loops and branches hand on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tilewright.core.expr import Call, Const, Expr, Var, integer
from tilewright.core.types import Extent, TensorType
from tilewright.dtypes import INDEX
from tilewright.passes.aliases import Aliases
from tilewright.programs.pto_text.values import Choice, NoPtoError, Number, Tensor, Value
from tilewright.programs.pto_text.writer import Writer

NO_PARTS = "this export hands on tensors and windows of them, not other views, from branches and loops"
COPY_IT = "copy it to a tensor of its own, `pl.create_tensor`, and hand that on"
_TAKE_PARTS = ("tensor.slice", "tensor.set_validshape")
_PART = integer(1)
"""What stands among the values of a variable that may be a part."""


class Parts(Aliases):
    """Which tensors of a function may be parts of others."""

    def handed_on(self, expr: Expr) -> Sequence[Expr] | None:
        """Return the operand whose memory an expression's is, with a mark beside one that is a part of it."""
        given = super().handed_on(expr)
        return [*(given or ()), _PART] if isinstance(expr, Call) and expr.op.name in _TAKE_PARTS else given

    def has(self, var: Var) -> bool:
        """Return whether a variable may be a part of a tensor."""
        return any(isinstance(value, Const) for value in self.values(var))


def opened(w: Writer, var: Var, place: Value) -> Value:
    """Return what stands for any part of a tensor, or of one that is chosen."""
    if isinstance(place, Choice):
        which = Number(w.name(f"which_{var.name_hint}"), INDEX)
        return _alike(replace(place, which=which), _opened(w, var, place.options[0]))
    assert isinstance(place, Tensor)
    return _opened(w, var, place)


def _alike(choice: Choice, part: Tensor) -> Choice:
    """Return a choice among the same part of several tensors."""
    same = {"offsets": part.offsets, "shape": part.shape, "part": part.part, "is_whole": False, "is_open": True}
    return replace(choice, options=tuple(replace(each, **same) for each in choice.options))


def _opened(w: Writer, var: Var, tensor: Tensor) -> Tensor:
    type_ = var.type
    assert isinstance(type_, TensorType)
    if len(type_.shape) != len(tensor.offsets):
        raise NoPtoError(NO_PARTS, help=COPY_IT)

    def extent(known: Extent, is_known: bool, word: str) -> Number:
        is_known = is_known and isinstance(known, int)
        return w.constant(known) if is_known and isinstance(known, int) else Number(w.name(word), INDEX)

    pairs = [*zip(type_.shape, type_.valid, strict=True)]
    shape = (*(extent(n, isinstance(valid, int), "extent") for n, valid in pairs),)
    part = () if type_.shape == type_.valid else (*(extent(valid, True, "valid") for _, valid in pairs),)
    offsets = (*(Number(w.name("first"), INDEX) for _ in pairs),)
    return replace(tensor, offsets=offsets, shape=shape, part=part, is_whole=False, is_open=True)


def _numbers(tensor: Tensor, target: Tensor) -> Iterator[tuple[Number, Number]]:
    """Yield what says which part a tensor is, each beside what stands for it in a place for parts."""
    yield from zip(tensor.offsets, target.offsets, strict=True)
    yield from zip(tensor.shape, target.shape, strict=True)
    yield from zip(tensor.valid, target.part, strict=False)


def numbers_within(tensor: Tensor, target: Tensor) -> list[Number]:
    """Return the numbers that are handed on to say which part a tensor is."""
    return [number for number, place in _numbers(tensor, target) if place.known is None]


def with_part(target: Tensor, numbers: Iterator[Number]) -> Tensor:
    """Return a place for parts as the part that numbers say; a whole tensor as it is."""

    def taken(places: Sequence[Number]) -> tuple[Number, ...]:
        return tuple(next(numbers) if place.known is None else place for place in places)

    if not target.is_open:
        return target
    return replace(target, offsets=taken(target.offsets), shape=taken(target.shape), part=taken(target.part))


def chosen_part(choice: Choice, numbers: Iterator[Number]) -> Choice:
    """Return a choice among places for parts as one among the parts that numbers say."""
    return _alike(choice, with_part(choice.options[0], numbers)) if choice.is_open else choice
