"""Peaks of GPUs: what one does at most, by its clocks and by what each of its multiprocessors has.

The numbers of a multiprocessor are those of NVIDIA's tables, for dense products that are added up in FP32:
https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#arithmetic-instructions
"""

from __future__ import annotations

from tilewright.backends.cuda.driver import Driver
from tilewright.backends.interface import Peak
from tilewright.dtypes import FP32, FP64, DataType
from tilewright.named_tuples import NamedTuple


class Rates(NamedTuple):
    """Operations a cycle of one multiprocessor: multiply-adds count as two."""

    fma: int
    half: int
    """Products of FP16 and BF16 on tensor cores."""
    double: int


RATES = {
    70: Rates(128, 1024, 64),
    75: Rates(128, 1024, 4),
    80: Rates(128, 2048, 128),
    86: Rates(256, 1024, 4),
    90: Rates(256, 4096, 256),
    100: Rates(256, 8192, 128),
    120: Rates(256, 1024, 4),
}
"""By compute capability; others are like the one below them."""

PARTS = 6
"""FP32 is multiplied as three products of TF32, each half as fast as those of FP16."""


def peaks(gpu: Driver, device: int, product: DataType | None) -> tuple[Peak, Peak]:
    """Return the bytes and the operations a second of a GPU: of its tensor cores, for products that they make."""
    cycles, memory = gpu.clocks(device)
    name, rate = _rate(gpu.capability(device), product)
    return Peak("memory", "B/s", memory), Peak(name, "FLOP/s", cycles * gpu.multiprocessors(device) * rate)


def _rate(capability: int, product: DataType | None) -> tuple[str, float]:
    rates = RATES[max((known for known in RATES if known <= capability), default=min(RATES))]
    if product is None:
        return "FMA", rates.fma
    if product == FP64:
        return "FP64", rates.double
    if product == FP32:
        return max(("FMA", float(rates.fma)), ("tensor cores", rates.half / PARTS), key=lambda each: each[1])
    return "tensor cores", rates.half * (2.0 if product.bits <= 8 else 1.0)
