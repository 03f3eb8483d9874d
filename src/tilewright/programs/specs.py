"""Specs: what a test hands to a program, described before it is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tilewright.arrays import np
from tilewright.call.device_tensor import element_type, is_torch_dtype
from tilewright.call.frameworks import NUMPY, TORCH, array_of, is_tensor
from tilewright.imported import imported

Initial: TypeAlias = int | float | Callable[..., Any] | Any
"""A number for every element, an array, or something that gives one when it is called."""

FACTORIES = frozenset({"zeros", "ones", "rand", "randn"})
"""Functions of torch and NumPy that are called with the shape and the element type; all others with nothing."""

CTYPES = ("int64", "int32", "uint64", "uint32", "float", "double")


@dataclass(frozen=True)
class TensorSpec:
    """A tensor of a test: a torch tensor where `dtype` is one of torch's, else a NumPy array.

    Without an initial value, and always where the program is to fill it, it is all zeros.
    """

    name: str
    shape: Sequence[int]
    dtype: Any
    init_value: Initial | None = None
    is_output: bool = False

    def create_tensor(self) -> Any:
        """Return a new tensor; ValueError when the initial value has another shape, TypeError when it is none."""
        framework, dtype = TORCH if is_torch_dtype(self.dtype) else NUMPY, element_type(self.dtype)
        made = framework.zeros(tuple(self.shape), dtype)
        if self.init_value is not None and not self.is_output:
            view = array_of(made)
            view[...] = self._initial().astype(view.dtype)
        return made

    def _initial(self) -> Any:
        value = self.init_value
        if callable(value):
            value = value(tuple(self.shape), dtype=self.dtype) if _is_factory(value) else value()
        if is_tensor(value):
            value = array_of(value)
        elif not isinstance(value, (int, float, list, tuple)):
            raise TypeError(f"`{self.name}` cannot start as {type(value).__name__}: give a number or an array")
        initial = np.asarray(value)
        if initial.shape not in ((), tuple(self.shape)):
            raise ValueError(f"`{self.name}` has shape {list(self.shape)}, and starts as {list(initial.shape)}")
        return initial


@dataclass(frozen=True)
class ScalarSpec:
    """A number of a test, and the type C would give it."""

    name: str
    value: int | float
    ctype: str = "int64"

    def __post_init__(self) -> None:
        if self.ctype not in CTYPES:
            raise ValueError(f"`{self.name}` cannot be {self.ctype!r}; one of {', '.join(CTYPES)}")


@dataclass(frozen=True)
class RunResult:
    """How a test went: `execution_time` in seconds, and what is wrong where it did not pass."""

    passed: bool
    test_name: str | None = None
    error: str | None = None
    execution_time: float | None = None
    profile: Any = None

    def __str__(self) -> str:
        name = f" {self.test_name}" if self.test_name else ""
        time = f" in {self.execution_time:.3f} s" if self.execution_time is not None else ""
        return f"{'PASS' if self.passed else 'FAIL'}{name}{time}" + (f": {self.error}" if self.error else "")


def _is_factory(value: Any) -> bool:
    torch = imported("torch")
    name = getattr(value, "__name__", "")
    return name in FACTORIES and value in (getattr(torch, name, None), getattr(np, name, None))
