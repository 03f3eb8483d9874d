"""Scalars: numbers of a program as `arith` ops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from operator import add, mul, sub

from tilewright import dtypes as dt
from tilewright.dtypes import DataType
from tilewright.programs.pto_text.values import NoPtoError, Number, element
from tilewright.programs.pto_text.writer import Writer

_OPS = {
    "add": ("addi", "addf"), "sub": ("subi", "subf"), "mul": ("muli", "mulf"), "div": ("", "divf"),
    "floordiv": ("floordivsi", ""), "min": ("minsi", "minimumf"), "max": ("maxsi", "maximumf"),
    "bit_and": ("andi", ""), "bit_or": ("ori", ""), "bit_xor": ("xori", ""), "and_": ("andi", ""), "or_": ("ori", ""),
    "shl": ("shli", ""), "shr": ("shrsi", ""),
}  # fmt: skip
_COMPARED = {
    "eq": ("eq", "oeq"), "ne": ("ne", "une"), "lt": ("slt", "olt"), "le": ("sle", "ole"), "gt": ("sgt", "ogt"),
    "ge": ("sge", "oge"),
}  # fmt: skip


def computed(w: Writer, name: str, operands: list[Number], dtype: DataType) -> Number:
    """Write what a scalar op gives; NoPtoError for one that this export has no words for."""
    if name == "not_":
        return w.number("arith.xori", [operands[0], w.constant(True, dt.BOOL)], dt.BOOL, "i1")
    if name == "neg":
        operands, name = [w.constant(0, dtype), operands[0]], "sub"
    if len(operands) != 2:
        raise NoPtoError(f"this export has no words for `{name}` of a number")
    common = _common(operands) if name in _COMPARED else dtype
    a, b = (converted(w, operand, common) for operand in operands)
    if (folded := _folded(w, name, a, b)) is not None:
        return folded
    floats, kind = common.is_float(), element(common)
    if name in _COMPARED:
        word = _COMPARED[name][floats]
        return w.number(f"arith.cmp{'f' if floats else 'i'} {word},", [a, b], dt.BOOL, kind)
    if name == "mod" and not floats:
        whole = w.number("arith.floordivsi", [a, b], common, kind)
        return w.number("arith.subi", [a, w.number("arith.muli", [whole, b], common, kind)], common, kind)
    op = _OPS.get(name, ("", ""))[floats]
    if not op or element(common).startswith("ui"):
        raise NoPtoError(f"this export has no words for `{name}` of {common}")
    made = w.number(f"arith.{op}", [a, b], common, kind)
    return replace(made, counts=common == dt.INDEX and _is_natural(name, a, b))


def _is_natural(name: str, a: Number, b: Number) -> bool:
    """Return whether what an op gives is never negative, given what it is told."""
    if name == "max":
        return a.is_natural or b.is_natural
    return name in ("add", "mul", "min", "floordiv") and a.is_natural and b.is_natural


def _folded(w: Writer, name: str, a: Number, b: Number) -> Number | None:
    """Return what needs no op: of indices that are known, and of those that change nothing."""
    if a.dtype != dt.INDEX or name not in _FOLDED:
        return None
    if isinstance(a.known, int) and isinstance(b.known, int):
        return w.constant(_FOLDED[name](a.known, b.known))
    if (name == "add" and b.known == 0) or (name == "mul" and b.known == 1):
        return a
    return b if (name == "add" and a.known == 0) or (name == "mul" and a.known == 1) else None


_FOLDED: dict[str, Callable[[int, int], int]] = {
    "add": add, "sub": sub, "mul": mul, "min": min, "max": max, "floordiv": lambda a, b: a // b,
}  # fmt: skip


def _common(operands: list[Number]) -> DataType:
    """Return what two numbers are compared as."""
    found = [operand.dtype for operand in operands if operand.known is None] or [operands[0].dtype]
    return dt.INDEX if dt.INDEX in found else found[0]


def converted(w: Writer, value: Number, dtype: DataType, mode: str = "round") -> Number:
    """Return a number as one of another type; NoPtoError for a float that becomes an integer in another `mode`."""
    have = value.dtype
    if have == dtype:
        return value
    if dtype == dt.BOOL:
        return computed(w, "ne", [value, w.constant(0, have)], dt.BOOL)
    if mode != "trunc" and have.is_float() and not dtype.is_float():
        raise NoPtoError(f"PTO's numbers become integers towards zero, not by {mode!r}", help='write `mode="trunc"`')
    if value.known is not None and (dtype.is_float() or not have.is_float()):
        return w.constant(float(value.known) if dtype.is_float() else value.known, dtype)
    typing = f"{element(have)} to {element(dtype)}"
    return w.number(f"arith.{_conversion(have, dtype)}", [value], dtype, typing)


def _conversion(have: DataType, dtype: DataType) -> str:
    if have == dt.BOOL:
        return "index_castui" if dtype == dt.INDEX else "uitofp" if dtype.is_float() else "extui"
    if dt.INDEX in (have, dtype) and not have.is_float() and not dtype.is_float():
        return "index_cast"
    if dt.INDEX in (have, dtype):
        raise NoPtoError(f"this export does not convert {have} to {dtype} in one step")
    if have.is_float() and dtype.is_float():
        return "extf" if have.bits < dtype.bits else "truncf"
    if have.is_float() or dtype.is_float():
        return "fptosi" if have.is_float() else "sitofp"
    return "extsi" if have.bits < dtype.bits else "trunci" if have.bits > dtype.bits else "bitcast"
