"""Uses of ops along axes: many calls in one kernel, against the interpreter and another reference."""

from __future__ import annotations

import numpy as np
import torch
from ops.kernels import Array, kernel, out, scalar, tensor
from ops.native import Native, assert_same

import tilewright.language as pl
from tilewright.dtypes import DataType, from_numpy

SHAPE, VALID = (3, 5, 21), (2, 4, 17)


def sample(dtype: DataType, shape: tuple[int, ...] = SHAPE) -> Array:
    rng = np.random.default_rng(3)
    numbers = rng.integers(-100, 100, shape) if dtype.is_int() else rng.uniform(-1.5, 1.5, shape)
    return numbers.astype(dtype.numpy)


def in_torch(x: Array) -> torch.Tensor:
    return torch.as_tensor(x.astype(np.int64 if x.dtype.kind in "iu" else np.float64))


class Uses:
    """Calls of ops on a tile, wholly and partly valid, each stored into an output of its own, all in one kernel."""

    def __init__(self, x: Array, valid: tuple[int, ...]) -> None:
        self.x, self.valid = x, valid
        self.seen = {"whole": x, "part": self._live(x), "cut": self._live(x)}
        self.parameters = {"x": tensor(from_numpy(x.dtype), *x.shape)}
        self.parameters |= {f"v{axis}": scalar(pl.INDEX) for axis in range(x.ndim)}
        load = f"pl.load(x, {[0] * x.ndim}, {[*x.shape]}"
        self.lines = [f"whole = {load})", f"part = {load}, valid_shape={[*valid]})"]
        self.lines.append(f"cut = {load}, valid_shape=[{', '.join(f'v{axis}' for axis in range(x.ndim))}])")
        self.wanted: list[tuple[str, Array, float, Array | None]] = []

    def _live(self, x: Array) -> Array:
        return x[tuple(slice(0, extent) for extent in self.valid)]

    def give(self, call: str, want: Array, ulp: float = 0, scale: Array | None = None) -> None:
        """Store what a call gives; a number goes into an array of one element."""
        name, shape = f"out{len(self.wanted)}", want.shape or (1,)
        self.parameters[name] = out(from_numpy(want.dtype), *shape)
        write = f"pl.store({call}, {[0] * want.ndim}, {name})" if want.ndim else f"pl.write({name}, [0], {call})"
        self.lines.append(f"{name} = {write}")
        self.wanted.append((call, np.reshape(want, shape), ulp, None if scale is None else np.reshape(scale, shape)))

    def check(self) -> None:
        """Run it natively and by the interpreter, against each other and against what is wanted."""
        native = Native(kernel("\n".join(self.lines), **self.parameters))
        outputs = [np.zeros_like(want) for _, want, _, _ in self.wanted]
        results = native.run([self.x, *map(np.asarray, self.valid), *outputs])[1:]
        for (got, meant), (call, want, ulp, scale) in zip(results, self.wanted, strict=True):
            try:
                assert_same(got, meant, ulp, scale)
                assert_same(got, want, ulp, scale, zeros=True)
            except AssertionError as error:
                raise AssertionError(f"{call}: {error}") from None
