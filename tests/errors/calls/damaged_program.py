"""A saved program that was cut off."""

from tempfile import TemporaryDirectory

import tilewright.language as pl
from tilewright.runtime import CompiledProgram

EXPECTED = "ArtifactError"


@pl.jit
def kernel(x: pl.Tensor[[8, 16], pl.FP32], out: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [8, 16]) * 2.0, [0, 0], out)
    return out


with TemporaryDirectory() as folder:
    kernel.compile().save(folder)
    with open(f"{folder}/program.twar", "r+b") as file:
        file.truncate(100)
    CompiledProgram.load(folder)
