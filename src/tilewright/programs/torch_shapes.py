"""Torch shapes: what a program declares of its tensors, over sizes that torch may only know by name.

While torch traces a graph, a size is a `SymInt`: arithmetic on it stays a formula, and looking at its value would tie
the graph to it. So formulas are computed with Python's operators, and conditions are handed to torch to remember.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from tilewright.core.expr import Call, Const, Symbol, Var
from tilewright.core.extents import as_extent
from tilewright.core.solving import GIVEN, located, solved
from tilewright.core.types import Extent, Shape, TensorType, show_shape
from tilewright.dtypes import TORCH_NAMES, DataType

Size: TypeAlias = Any
"""An int, or one of torch's that stand for it."""

Given: TypeAlias = "Sequence[tuple[Var, Any]]"
"""Parameters, and what a call gives for them."""

_OPERATORS: dict[str, Callable[[Size, Size], Size]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": lambda lhs, rhs: lhs // rhs,
    "mod": operator.mod,
}
"""Arithmetic that torch keeps symbolic; all else takes a size's value, and torch compiles again for another."""


def extents_of(torch: Any, given: Given) -> dict[str, Size]:
    """Return the size that each symbol stands for, from the first argument that carries it."""
    found: dict[str, Size] = {}
    for param, value in given:
        if isinstance(param.type, TensorType):
            for extent, size in zip(param.type.shape, value.shape, strict=False):
                if isinstance(extent, Symbol):
                    found.setdefault(extent.name, size)
    for name, told in solved(located([param.type for param, _ in given]), found).items():
        size = given[told.position][1].shape[told.axis]
        found[name] = _size(torch, as_extent(told.value), {**found, GIVEN.name: size})
    return found


def check_shapes(torch: Any, given: Given, extents: Mapping[str, Size]) -> None:
    """Raise, or let torch raise once it knows, where an argument is not what the program declares."""
    for param, value in given:
        if isinstance(param.type, TensorType):
            _check(torch, param.name_hint, param.type, value, extents)


def _check(torch: Any, name: str, type_: TensorType, value: Any, extents: Mapping[str, Size]) -> None:
    wanted = torch_dtype(torch, type_.dtype)
    if value.dtype != wanted:
        raise TypeError(f"`{name}` expects dtype {type_.dtype}, got {str(value.dtype).removeprefix('torch.')}")
    if value.ndim != len(type_.shape):
        raise ValueError(f"`{name}` expects rank {len(type_.shape)}, got {value.ndim}")
    declared = show_shape(type_.shape)
    for axis, (size, want) in enumerate(zip(value.shape, shape_of(torch, type_.shape, extents), strict=True)):
        if size is not want:
            torch._check(size == want, lambda axis=axis: f"`{name}` expects shape {declared}: axis {axis} differs")


def shape_of(torch: Any, shape: Shape, extents: Mapping[str, Size]) -> tuple[Size, ...]:
    """Return a shape with its symbols replaced; ValueError when no input decides one."""
    return tuple(_size(torch, extent, extents) for extent in shape)


def _size(torch: Any, extent: Extent, extents: Mapping[str, Size]) -> Size:
    match extent:
        case int():
            return int(extent)
        case Symbol() if extent.name in extents:
            return extents[extent.name]
        case Const():
            return int(extent.value)
        case Call():
            return _computed(torch, extent, [_size(torch, arg, extents) for arg in extent.args])
        case _:
            raise ValueError(f"no input decides the extent {extent}, so torch cannot know the shape of an output")


def _computed(torch: Any, call: Call, sizes: Sequence[Size]) -> Size:
    spec = call.op.spec
    symbolic = {**_OPERATORS, "min": torch.sym_min, "max": torch.sym_max}
    if spec.name in symbolic:
        return symbolic[spec.name](*sizes)
    return spec.evaluate(call.type, **dict(zip((p.name for p in spec.operands), map(int, sizes), strict=True)))


def torch_dtype(torch: Any, dtype: DataType) -> Any:
    """Return torch's own name for an element type; TypeError where it has none."""
    name = next((name for name, known in TORCH_NAMES.items() if known == dtype), None)
    if name is None:
        raise TypeError(f"torch has no tensors of {dtype}")
    return getattr(torch, name)
