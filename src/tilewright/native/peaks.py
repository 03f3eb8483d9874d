"""Peaks: what this machine's processor can do at most, measured when somebody asks.

Multiply-adds are counted in a loop that keeps a dozen vectors in registers, bytes in one that copies far more than the
caches hold; each runs on as many threads as programs do, and on one: on a busy machine several wait for each other.
"""

from __future__ import annotations

import ctypes
from functools import cache
from time import perf_counter
from typing import Any

from tilewright.arrays import np
from tilewright.named_tuples import NamedTuple
from tilewright.native.assemble import assemble
from tilewright.native.loader import Loaded, load
from tilewright.native.matrix_units import amx, objection
from tilewright.native.target import host
from tilewright.native.threads import parallel_address

CHAINS = 12
"""Vectors that are summed at once: more than the latency of an addition times the adders there are."""
TURNS = 200_000
BYTES = 128 << 20
"""What is copied: half of it read, half written."""
ROUNDS, LONGEST = 4, 0.1
"""How often each is measured at least, and for how many seconds: the best round is the least disturbed one."""


class Peaks(NamedTuple):
    """Floating-point operations and bytes a second, and on how many threads."""

    flops: float
    bytes: float
    threads: int


MATRIX = {"bfloat16": ("amx_bf16", 16), "fp16": ("amx_fp16", 16), "int8": ("amx_int8", 32), "uint8": ("amx_int8", 32)}
"""Which kind of AMX multiplies elements, and how many times as many a cycle as a core's two vectors of FP32."""


def matrix_flops(threads: int, element: str) -> float:
    """Return the operations a second of AMX, 0 where no code uses it: a multiple of multiply-adds'."""
    kind, times = MATRIX.get(element, ("", 0))
    return times * peaks(threads).flops if kind in amx() and not objection() else 0.0


@cache
def peaks(threads: int) -> Peaks:
    """Return what so many threads can do; it takes a fraction of a second, once."""
    memory = np.ones(BYTES // 4, np.float32)
    found = [_rates(count, memory) for count in sorted({1, threads})]
    return Peaks(max(flops for flops, _ in found), max(moved for _, moved in found), threads)


def _rates(threads: int, memory: Any) -> tuple[float, float]:
    """Return the operations and the bytes a second of so many threads."""
    code, parallel = _code(), ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, ctypes.c_int64, ctypes.c_void_p)
    run = parallel(parallel_address(threads))
    words = np.array([memory.ctypes.data, memory.nbytes // 2 // threads // 64 * 64, memory.nbytes // 2], np.int64)

    def seconds(symbol: str) -> float:
        found: list[float] = []
        while len(found) < ROUNDS or sum(found) < LONGEST:
            begin = perf_counter()
            run(code.address(symbol), words.ctypes.data, threads, None)
            found.append(perf_counter() - begin)
        return min(found)

    flops = 2 * CHAINS * _lanes() * TURNS * threads / seconds("multiply")
    return flops, 2 * int(words[1]) * threads / seconds("copy")


def _lanes() -> int:
    target = host()
    return 16 if target.has("avx512f") else 8 if target.has("avx2") else 4


@cache
def _code() -> Loaded:
    return load(assemble(_text(_lanes()), host()).object).pin()


def _text(lanes: int) -> str:
    vector = f"<{lanes} x float>"
    sums = [f"%s{i} = phi {vector} [ zeroinitializer, %entry ], [ %n{i}, %loop ]" for i in range(CHAINS)]
    splat = f"<{', '.join(['float 1.0'] * lanes)}>"
    call = f"call {vector} @llvm.fma.v{lanes}f32({vector} %s{{0}}, {vector} {splat}, {vector} {splat})"
    adds = [f"%n{i} = {call.format(i)}" for i in range(CHAINS)]
    total = [f"%t{i} = fadd {vector} %{'n0' if i == 1 else f't{i - 1}'}, %n{i}" for i in range(1, CHAINS)]
    lines = "\n  ".join
    return f"""
declare {vector} @llvm.fma.v{lanes}f32({vector}, {vector}, {vector})
declare ptr @memcpy(ptr, ptr, i64)
@sink = global {vector} zeroinitializer, align 64

define void @multiply(ptr %data, i64 %chunk) nounwind {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  {lines(sums)}
  {lines(adds)}
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, {TURNS}
  br i1 %more, label %loop, label %done
done:
  {lines(total)}
  store volatile {vector} %t{CHAINS - 1}, ptr @sink, align 64
  ret void
}}

define void @copy(ptr %words, i64 %chunk) nounwind {{
entry:
  %base = load ptr, ptr %words
  %size.at = getelementptr i64, ptr %words, i64 1
  %size = load i64, ptr %size.at
  %half.at = getelementptr i64, ptr %words, i64 2
  %half = load i64, ptr %half.at
  %begin = mul i64 %chunk, %size
  %from = getelementptr i8, ptr %base, i64 %begin
  %to = getelementptr i8, ptr %from, i64 %half
  %ignored = call ptr @memcpy(ptr %to, ptr %from, i64 %size)
  ret void
}}
"""
