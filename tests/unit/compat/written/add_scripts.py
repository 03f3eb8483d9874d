"""A script as PyPTO's users write them: a program of two planes, compiled and run from the command line."""

import argparse

import pypto
import pypto.language as pl
import torch
from pypto import ir
from pypto.backend import BackendType
from pypto.runtime import RunConfig

ROWS, COLS = 128, 64
DTYPE = pypto.DT_FP32


@pl.program
class AddThenScale:
    @pl.function(type=pl.FunctionType.InCore)
    def add(
        self,
        a: pl.Tensor[[ROWS, COLS], pl.FP32],
        b: pl.Tensor[[ROWS, COLS], pl.FP32],
        out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
    ) -> pl.Tensor[[ROWS, COLS], pl.FP32]:
        ta: pl.Tile[[ROWS, COLS], pl.FP32] = pl.load(a, [0, 0], [ROWS, COLS])
        tb: pl.Tile[[ROWS, COLS], pl.FP32] = pl.load(b, [0, 0], [ROWS, COLS])
        out_1: pl.Tensor[[ROWS, COLS], pl.FP32] = pl.store(pl.add(ta, tb), [0, 0], out)
        return out_1

    @pl.function(type=pl.FunctionType.InCore)
    def scale(
        self,
        a: pl.Tensor[[ROWS, COLS], pl.FP32],
        factor: pl.Scalar[pl.FP32],
        out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
    ) -> pl.Tensor[[ROWS, COLS], pl.FP32]:
        tile = pl.load(a, [0, 0], [ROWS, COLS])
        out_1 = pl.store(pl.mul(tile, factor), [0, 0], out)
        return out_1

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[ROWS, COLS], pl.FP32],
        b: pl.Tensor[[ROWS, COLS], pl.FP32],
        factor: pl.Scalar[pl.FP32],
        out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
    ) -> pl.Tensor[[ROWS, COLS], pl.FP32]:
        total: pl.Tensor[[ROWS, COLS], pl.FP32] = pl.create_tensor([ROWS, COLS], dtype=pl.FP32)
        total = self.add(a, b, total)
        out = self.scale(total, factor, out)
        return out


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("-p", "--platform", default="a2a3sim", choices=["a2a3", "a2a3sim", "a5", "a5sim"])
    parser.add_argument("-d", "--device", type=int, default=0)
    parser.add_argument("--output-dir")
    args = parser.parse_args()

    config = RunConfig(platform=args.platform, device_id=args.device, rtol=1e-6, atol=1e-6)
    compiled = ir.compile(
        AddThenScale, output_dir=args.output_dir, backend_type=BackendType.Ascend910B, platform=config.platform
    )
    torch.manual_seed(0)
    a, b, out = torch.randn(ROWS, COLS), torch.randn(ROWS, COLS), torch.zeros(ROWS, COLS)
    compiled(a, b, 0.5, out, config=config)
    torch.testing.assert_close(out, (a + b) * 0.5, rtol=config.rtol, atol=config.atol)
    assert DTYPE == pl.FP32
    print(f"{AddThenScale.name} passed on {compiled.platform}")


if __name__ == "__main__":
    main()
