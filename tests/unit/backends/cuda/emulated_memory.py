"""Memory that emulated kernels were given, and the types of what lies in it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy

np: Any = numpy  # elements are of any type here
TYPES: dict[str, Any] = {
    "i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip
APART = 1 << 16
"""How far apart tensors lie, at least."""


def numpy_type(element: str) -> Any:
    """Return the type of an element; addresses are integers."""
    return np.dtype(np.int64 if element.startswith("!tt.ptr") else TYPES[element])


def typed(text: str) -> tuple[tuple[int, ...], str]:
    """Return the shape and the element of a type."""
    found = re.fullmatch(r"tensor<((?:\d+x)+)(.*)>", text.strip())
    return (tuple(map(int, found[1][:-1].split("x"))), found[2]) if found else ((), text.strip())


def pointed(element: str) -> Any:
    """Return the type of what an address points at."""
    return numpy_type(element.removeprefix("!tt.ptr<").removesuffix(">"))


@dataclass
class Memory:
    """What a kernel was given, at addresses far apart."""

    held: list[tuple[int, Any]] = field(default_factory=list[tuple[int, Any]])
    end: int = APART

    def add(self, data: Any) -> int:
        """Return the address of a copy of some bytes."""
        start, content = self.end, data.tobytes()
        self.held.append((start, np.frombuffer(bytearray(content + bytes(-len(content) % 16)), np.uint8)))
        self.end += (len(self.held[-1][1]) // APART + 2) * APART
        return start

    def at(self, addresses: Any, size: int) -> tuple[Any, Any]:
        """Return the bytes that addresses lie in, and which of them they are; fail where there are none."""
        low, high = int(addresses.min()), int(addresses.max()) + size
        for start, data in self.held:
            if start <= low and high <= start + len(data):
                return data, (addresses - start)[:, None] + np.arange(size)
        raise AssertionError(f"{low} to {high} is nobody's memory")

    def load(self, addresses: Any, dtype: Any) -> Any:
        """Return the elements at some addresses."""
        if not addresses.size:
            return np.zeros(0, dtype)
        data, places = self.at(addresses, dtype.itemsize)
        return np.ascontiguousarray(data[places]).view(dtype)[:, 0]

    def store(self, addresses: Any, values: Any) -> None:
        """Write elements to some addresses, one after the other."""
        if addresses.size:
            data, places = self.at(addresses, values.dtype.itemsize)
            data[places] = np.ascontiguousarray(values)[:, None].view(np.uint8)

    def left(self, place: int, like: Any) -> Any:
        """Return what a kernel has left of the tensor that was added at some place."""
        data: Any = self.held[place][1]
        return data[: like.nbytes].view(like.dtype).reshape(like.shape)
