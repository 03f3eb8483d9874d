"""Host helpers: what programs around kernels ask for."""

from __future__ import annotations

from typing import Any, TypeVar

from tilewright.arrays import np

T = TypeVar("T")


def empty_like(tensor: T) -> T:
    """Return a tensor of the same kind, shape and element type, with whatever was in its memory; torch's or NumPy's."""
    given: Any = tensor
    if hasattr(given, "new_empty"):
        return given.new_empty(given.shape)
    if type(given) is not np.ndarray:
        raise TypeError(f"pto.empty_like takes a torch tensor or a NumPy array, got {type(given).__name__}")
    made: Any = np.empty_like(given)
    return made
