"""Capture: what a kernel reads from around it, as parameters; constants stay what they are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from tilewright.backends.cpu.emit import values as host
from tilewright.backends.cpu.emit.values import static
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.parameters import ALIGNED, Axis, Parameters, Plane
from tilewright.backends.cuda.ttir.planes import AXES
from tilewright.backends.cuda.ttir.recipes import refused
from tilewright.backends.cuda.ttir.text import I32, I64, pointer_to
from tilewright.backends.cuda.ttir.values import (
    Binding,
    Extent,
    Planes,
    Scalar,
    Tensor,
    element_of,
    memory_element,
    working,
)
from tilewright.dtypes import BOOL
from tilewright.native import llvm


def captured(k: Kernel, params: Parameters, binding: host.Binding) -> Binding:
    """Return a value of the host's as a kernel sees it."""
    if isinstance(binding, tuple):
        return tuple(captured(k, params, element) for element in binding)
    if isinstance(binding, host.Scalar):
        return _scalar(k, params, binding)
    if isinstance(binding, host.Tensor):
        return _tensor(params, binding)
    help = "write it to a tensor outside, and read that inside"
    raise refused("an array or a tile of the host's inside a kernel", k.t.span, help)


def _scalar(k: Kernel, params: Parameters, scalar: host.Scalar) -> Scalar:
    if re.fullmatch(r"-?\d+", scalar.value.ref) and scalar.dtype.is_int():
        return k.number(int(scalar.value.ref), scalar.dtype)
    if scalar.dtype == BOOL:
        return Scalar(k.t.convert("arith.trunci", params.add(I32, scalar.value), "i1"), BOOL)
    return Scalar(params.add(element_of(working(scalar.dtype)), scalar.value), scalar.dtype)


def _tensor(params: Parameters, tensor: host.Tensor) -> Tensor:
    element, roots = memory_element(tensor.dtype), (tensor.root,)
    several = max(1, ALIGNED // tensor.dtype.get_byte())
    pointer = params.add(pointer_to(element), tensor.pointer, ALIGNED, roots)
    strides = extents(params, tensor.strides, several, roots)
    shape = _along_rows(params, tensor.shape, several, roots)
    valid = shape if tensor.valid == tensor.shape else _along_rows(params, tensor.valid, several, roots)
    return Tensor(pointer, shape, strides, valid, tensor.dtype, tensor.root, _planes(params, tensor))


def _planes(params: Parameters, tensor: host.Tensor) -> Planes | None:
    if len(tensor.shape) < AXES or static(tensor.strides[-1]) != 1:
        return None
    (*counts, rows, columns), (*strides, stride, _) = tensor.valid, tensor.strides
    element, size = memory_element(tensor.dtype), tensor.dtype.get_byte()
    axes = tuple(Axis(*each, stride) for each in zip(counts, strides, strict=True))
    plane = Plane(tensor.pointer, rows, columns, stride, element, size, axes)
    return Planes(partial(params.described, plane), tuple(partial(params.apart, axis) for axis in axes))


def _along_rows(
    params: Parameters, words: Sequence[llvm.Value], divisor: int, roots: tuple[object, ...]
) -> tuple[Extent, ...]:
    """Return extents, of which the last says where rows end."""
    return (*extents(params, words[:-1]), *extents(params, words[-1:], divisor, roots))


def extents(
    params: Parameters, words: Sequence[llvm.Value], divisor: int = 1, roots: tuple[object, ...] = ()
) -> tuple[Extent, ...]:
    """Return numbers of the host's as extents, those of tensors with their roots."""
    found = ((word, static(word)) for word in words)
    return tuple(params.add(I64, word, divisor, roots) if known is None else known for word, known in found)
