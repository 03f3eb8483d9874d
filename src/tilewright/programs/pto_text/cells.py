"""Cells: single elements of tensors, read and written one at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.core.expr import Call
from tilewright.core.types import ScalarType
from tilewright.dtypes import BOOL, INDEX
from tilewright.programs.pto_text.scalars import computed, converted
from tilewright.programs.pto_text.values import Number, Tensor, element
from tilewright.programs.pto_text.views import before_of
from tilewright.programs.pto_text.words import Given, writes
from tilewright.programs.pto_text.writer import Writer


@writes("tensor.write")
def _write(w: Writer, call: Call, given: Given) -> Tensor:
    set_cell(w, given["x"], given["indices"], given["value"])
    return given["x"]


@writes("tensor.read")
def _read(w: Writer, call: Call, given: Given) -> Number:
    read = cell_of(w, given["x"], given["indices"])
    return converted(w, read, BOOL) if call.type == ScalarType(BOOL) else read


def cell_of(w: Writer, tensor: Tensor, indices: Sequence[Number]) -> Number:
    """Write the element of a tensor at some place."""
    read, kind = Number(w.name("element"), tensor.dtype), element(tensor.dtype)
    w.line(f"{read.name} = pto.load_scalar {_place(w, tensor, indices)} : !pto.ptr<{kind}, gm> -> {kind}")
    return read


def set_cell(w: Writer, tensor: Tensor, indices: Sequence[Number], value: Number) -> None:
    """Write a number to some place of a tensor."""
    number, kind = converted(w, value, tensor.dtype), element(tensor.dtype)
    w.line(f"pto.store_scalar {number.name}, {_place(w, tensor, indices)} : !pto.ptr<{kind}, gm>, {kind}")


def _place(w: Writer, tensor: Tensor, indices: Sequence[Number]) -> str:
    """Write where an element of a tensor lies; return its pointer and offset."""
    return f"{tensor.pointer}[{before_of(w, replace(tensor, offsets=place_of(w, tensor, indices))).name}]"


def place_of(w: Writer, tensor: Tensor, indices: Sequence[Number]) -> tuple[Number, ...]:
    """Write the place of an element in the tensor that a window is of."""
    return tuple(computed(w, "add", [a, b], INDEX) for a, b in zip(tensor.offsets, indices, strict=True))
