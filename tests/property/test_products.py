"""Products of integers: one of a random program once differed from the interpreter, and never again.

It was a product of UINT8 elements in the program of seed 510 about `tensor.matmul`. A product of integers cannot differ
by how it is computed. Its terms are multiplied and added modulo 2**32, where neither the order of the sums, nor the
width of vectors and register blocks, nor the number of threads matters: each of those gives the same 32 bits, of which
UINT8 keeps the last eight. The operands are converted to 32 bits without loss. So what differs must have been read from
other places or written twice, and that depends on what memory held and on which thread came first. This test makes
both loud: fresh memory is filled with a pattern, programs run on more threads than there are processors, and code is
made for each set of features, with and without checks. Searched this way over seeds 495 to 529 in all three spellings,
at three sizes, nothing differed; what is kept here is seed 510 itself.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from functools import partialmethod
from random import Random

import pytest
from property.native import check
from property.programs import program

from tilewright.backends.cpu.backend import CPU
from tilewright.backends.cpu.host.options import Options
from tilewright.native.target import Target, by_name, host, missing_features

M_PERTURB = -6
"""The option of `mallopt` that fills memory as it is handed out."""


@pytest.fixture(autouse=True)
def loud_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fill fresh memory, and run on more threads than there are processors."""
    monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", "4")
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        pytest.skip("this C library cannot fill memory")
    mallopt(M_PERTURB, 0xA5)
    yield
    mallopt(M_PERTURB, 0)


def targets() -> list[Target]:
    """Return the processors whose code runs here."""
    return [host(), *(t for t in map(by_name, ("x86-64-v3", "x86-64")) if not missing_features(t))]


@pytest.mark.parametrize("spelling", ["{}", "tensor.matmul {}", "number"])
def test_a_product_of_integers_is_the_same_on_every_processor(spelling: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seed = 510 if spelling == "number" else spelling.format(510)
    text = program(Random(seed).randint, 40, about=["tensor.matmul"])
    for target in targets():
        for checked in (True, False):
            with monkeypatch.context() as patch:
                made = partialmethod(CPU.compile, target=target, options=Options(checked=checked))
                patch.setattr(CPU, "compile", made)
                check(text)
