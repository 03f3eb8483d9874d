"""Peers of natural kernels: the same work by torch.compile, numba and jax, where they are there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import natural_kernels as kernels
import torch
import torch.nn.functional as F

Run = Callable[[], Any]
COMPILE, NUMBA, JAX = "torch.compile", "numba", "jax"


def _rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    one, two = x.chunk(2, dim=-1)
    return torch.cat([one * cos - two * sin, two * cos + one * sin], dim=-1)


TORCH: dict[str, Callable[..., torch.Tensor]] = {
    "add": lambda x, y: x + y,
    "softmax": lambda x: torch.softmax(x, -1),
    "log_softmax": lambda x: torch.log_softmax(x, -1),
    "rms_norm": lambda x, w: F.rms_norm(x, (x.shape[1],), w[0], 1e-5),
    "layer_norm": lambda x, w, b: F.layer_norm(x, (x.shape[1],), w[0], b[0]),
    "gelu": lambda x, w, b: F.gelu(x * w + b, approximate="tanh"),
    "quantize": lambda x: (x * kernels.SCALE).round().clamp(-128, 127).to(torch.int8),
    "halve": lambda x: x.to(torch.bfloat16),
    "argmax": lambda x: torch.argmax(x, -1, keepdim=True),
    "cross_entropy": lambda x, target: F.cross_entropy(x, target[:, 0].long(), reduction="none")[:, None],
    "rope": _rope,
    "silu_mul": lambda x, y: F.silu(x) * y,
    "dequantize": lambda x, scale: x * scale,
    "column_sums": lambda x: x.sum(0, keepdim=True),
    "transpose": lambda x: x.T.contiguous(),
}
"""What torch.compile is given, by the name of the kernel."""


def _in_jax() -> dict[str, Callable[..., Any]]:
    import jax
    import jax.numpy as jnp

    def norm(x: Any, w: Any, b: Any) -> Any:
        t = x - x.mean(-1, keepdims=True)
        return t * jax.lax.rsqrt((t * t).mean(-1, keepdims=True) + 1e-5) * w + b

    def rope(x: Any, cos: Any, sin: Any) -> Any:
        one, two = jnp.split(x, 2, axis=-1)
        return jnp.concatenate([one * cos - two * sin, two * cos + one * sin], axis=-1)

    def entropy(x: Any, target: Any) -> Any:
        return jax.nn.logsumexp(x, -1, keepdims=True) - jnp.take_along_axis(x, target, axis=-1)

    return {
        "add": lambda x, y: x + y,
        "softmax": jax.nn.softmax,
        "log_softmax": jax.nn.log_softmax,
        "rms_norm": lambda x, w: x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5) * w,
        "layer_norm": norm,
        "gelu": lambda x, w, b: jax.nn.gelu(x * w + b, approximate=True),
        "quantize": lambda x: jnp.clip(jnp.rint(x * kernels.SCALE), -128, 127).astype(jnp.int8),
        "halve": lambda x: x.astype(jnp.bfloat16),
        "argmax": lambda x: jnp.argmax(x, -1, keepdims=True),
        "cross_entropy": entropy,
        "rope": rope,
        "silu_mul": lambda x, y: jax.nn.silu(x) * y,
        "dequantize": lambda x, scale: x.astype(jnp.float32) * scale,
        "column_sums": lambda x: x.sum(0, keepdims=True),
        "transpose": lambda x: x.T.copy(),
    }


def peers(name: str, inputs: Sequence[torch.Tensor], out: torch.Tensor, threads: int) -> dict[str, Run]:
    """Return who else does the work of a kernel, ready to run: each gives a tensor or an array.

    torch.compile takes seconds for each kernel and number of threads, so it takes part on one.
    """
    found: dict[str, Run] = {}
    if threads == 1 and shutil.which(os.environ.get("CXX", "g++")) is not None:
        torch.compiler.reset()
        compiled = torch.compile(TORCH[name])
        found[COMPILE] = lambda: compiled(*inputs)
    if find_spec("numba") is not None:
        found |= _numba(name, inputs, out, threads)
    if find_spec("jax") is not None:
        found |= _jax(name, inputs)
    return found


def _numba(name: str, inputs: Sequence[torch.Tensor], out: torch.Tensor, threads: int) -> dict[str, Run]:
    import natural_numba
    import numba

    function = getattr(natural_numba, name, None)
    if function is None:
        return {}
    numba.set_num_threads(threads)
    torch.set_num_threads(threads)  # numba's first call tells the OpenMP that both use about every core
    target = torch.zeros_like(out).numpy()
    arrays = [each.numpy() for each in inputs]

    def run() -> Any:
        function(*arrays, target)
        return target

    return {NUMBA: run}


def _jax(name: str, inputs: Sequence[torch.Tensor]) -> dict[str, Run]:
    import jax

    function, arrays = jax.jit(_in_jax()[name]), [jax.numpy.asarray(each.numpy()) for each in inputs]
    return {JAX: lambda: function(*arrays).block_until_ready()}
