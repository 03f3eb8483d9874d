"""Peers of natural kernels: the same work by torch.compile, numba, jax and C, where they are there."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import natural_kernels as kernels
import torch
import torch.nn.functional as F

Run = Callable[[], Any]
COMPILE, NUMBA, JAX, COPY = "torch.compile", "numba", "jax", "C copy"

STREAM = r"""
#include <immintrin.h>
#include <stddef.h>
void stream(const char *in, size_t nin, char *out, size_t nout) {
    __m256i all = _mm256_setzero_si256();
    size_t most = nin > nout ? nin : nout, i = 0, o = 0;
    for (size_t done = 0; done < most; done += 4096) {
        double part = done + 4096 < most ? (double)(done + 4096) / most : 1.0;
        for (size_t end = part * nin; i + 64 <= end; i += 64) {
            _mm_prefetch(in + i + 2048, _MM_HINT_T1);
            all = _mm256_xor_si256(all, _mm256_loadu_si256((const __m256i *)(in + i)));
            all = _mm256_xor_si256(all, _mm256_loadu_si256((const __m256i *)(in + i + 32)));
        }
        for (size_t end = part * nout; o + 64 <= end; o += 64) {
            _mm256_stream_si256((__m256i *)(out + o), all);
            _mm256_stream_si256((__m256i *)(out + o + 32), all);
        }
    }
    _mm_sfence();
}
"""


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


def streamed(folder: str) -> Callable[[int, int, int], Run] | None:
    """Return a copy in C on so many threads, compiled in a folder; None where there is no compiler."""
    if shutil.which("gcc") is None:
        return None
    source = Path(folder) / "stream.c"
    source.write_text(STREAM)
    subprocess.run(["gcc", "-O2", "-mavx2", "-shared", "-fPIC", "-o", f"{folder}/stream.so", str(source)], check=True)
    function = ctypes.CDLL(f"{folder}/stream.so").stream
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t] * 2
    pool = ThreadPoolExecutor()

    def copy(nin: int, nout: int, threads: int) -> Run:
        come = torch.rand(nin // 4 + 1024).view(torch.uint8)  # a Zen 5 streams lines of zeros twice as fast as others
        go = torch.ones(nout + 64, dtype=torch.uint8)
        begin, end = come.data_ptr(), go.data_ptr() + -go.data_ptr() % 64
        parts = [(nin * at // threads // 64 * 64, nout * at // threads // 64 * 64) for at in range(threads + 1)]
        calls = [(begin + i, j - i, end + o, p - o) for (i, o), (j, p) in zip(parts, parts[1:], strict=False)]

        def run() -> object:
            if threads == 1:
                return function(*calls[0]), come, go
            return [each.result() for each in [pool.submit(function, *call) for call in calls]], come, go

        return run

    return copy
