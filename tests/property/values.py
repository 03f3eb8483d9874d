"""Values: what a name of a generated program stands for, as far as its generator must know."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import TypeGuard

from tilewright.core.expr import Var
from tilewright.core.types import ArrayType, ScalarType, TensorType, TileType, Type, is_fully_valid, is_static
from tilewright.dtypes import DataType

Interval = tuple[int, int]
_ROOTS = count(1)


@dataclass(frozen=True)
class Value:
    """A named value. `var` stands for it where the compiler's own type rules are asked.

    Tensors know the buffers they may share, and whether all of their elements hold data. Scalars that are never bound
    again know how far they reach. `depth` counts the parallel loops around the definition.
    """

    name: str
    type: Type
    depth: int = 0
    reach: Interval | None = None
    fixed: bool = False
    known: bool = False
    """Whether the front end knows the reach too."""
    literal: int | float | None = None
    """The number a name stands for, where the front end knows it."""
    roots: frozenset[int] = frozenset()
    readable: bool = True
    writable: bool = False
    packed: bool = True
    """Whether a tensor's elements lie in memory one after the other."""
    var: Var = field(init=False, compare=False)

    def __post_init__(self) -> None:
        """Make the variable that type rules see."""
        object.__setattr__(self, "var", Var(self.name, self.type, bounds=self.reach if self.known else None))

    @property
    def is_scalar(self) -> bool:
        """Whether this is one number."""
        return isinstance(self.type, ScalarType)


def fresh_root() -> frozenset[int]:
    """Return a buffer that no other value shares."""
    return frozenset((next(_ROOTS),))


def is_tile(value: Value) -> bool:
    """Return whether a value is a tile."""
    return isinstance(value.type, TileType)


def is_tensor(value: Value) -> bool:
    """Return whether a value is a tensor."""
    return isinstance(value.type, TensorType)


def is_array(value: Value) -> bool:
    """Return whether a value is an array of scalars."""
    return isinstance(value.type, ArrayType)


def is_whole(value: Value) -> bool:
    """Return whether every element of a tile or tensor is known to hold data."""
    return isinstance(value.type, (TileType, TensorType)) and is_fully_valid(value.type) and value.readable


def is_static_tensor(value: Value) -> bool:
    """Return whether a tensor's whole shape is known."""
    return isinstance(value.type, TensorType) and is_static(value.type.shape)


def shape_of(value: Value) -> tuple[int, ...]:
    """Return the shape of a tile or of a tensor whose shape is known."""
    assert isinstance(value.type, (TileType, TensorType))
    return tuple(extent for extent in value.type.shape if isinstance(extent, int))


def dtype_of(value: Value) -> DataType:
    """Return the type of a scalar, or of the elements of anything else."""
    assert has_dtype(value.type)
    return value.type.dtype


def has_dtype(type_: Type) -> TypeGuard[ScalarType | TensorType | TileType | ArrayType]:
    """Return whether a type says what its elements are."""
    return isinstance(type_, (ScalarType, TensorType, TileType, ArrayType))
