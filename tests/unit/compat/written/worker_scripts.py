"""A script as PyPTO's users write them: weights stay on the device, a kernel is registered once and timed."""

import pypto.language as pl
import torch
from pypto import ir
from pypto.runtime import ChipWorker, RunConfig, benchmark

TOKENS, HIDDEN = 32, 64


@pl.program
class Project:
    @pl.function(type=pl.FunctionType.InCore)
    def tile_product(
        self,
        x: pl.Tensor[[TOKENS, HIDDEN], pl.FP16],
        w: pl.Tensor[[HIDDEN, HIDDEN], pl.FP16],
        y: pl.Out[pl.Tensor[[TOKENS, HIDDEN], pl.FP32]],
    ) -> pl.Tensor[[TOKENS, HIDDEN], pl.FP32]:
        left = pl.load(x, [0, 0], [TOKENS, HIDDEN], target_memory=pl.Mem.Mat)
        right = pl.load(w, [0, 0], [HIDDEN, HIDDEN], target_memory=pl.Mem.Mat)
        product = pl.matmul(pl.move(left, target_memory=pl.Mem.Left), pl.move(right, target_memory=pl.Mem.Right))
        return pl.store(product, [0, 0], y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def project(
        self,
        x: pl.Tensor[[TOKENS, HIDDEN], pl.FP16],
        w: pl.Tensor[[HIDDEN, HIDDEN], pl.FP16],
        y: pl.Out[pl.Tensor[[TOKENS, HIDDEN], pl.FP32]],
    ) -> pl.Tensor[[TOKENS, HIDDEN], pl.FP32]:
        y = self.tile_product(x, w, y)
        return y


def main():
    config = RunConfig(platform="a2a3sim")
    config.rtol = config.atol = 1e-2
    compiled = ir.compile(Project, platform=config.platform)
    torch.manual_seed(1)
    weight = torch.randn(HIDDEN, HIDDEN).half()
    with ChipWorker(config) as worker:
        w = worker.alloc_tensor((HIDDEN, HIDDEN), torch.float16, init=weight)
        project = worker.register(compiled)
        for _ in range(3):
            x, y = torch.randn(TOKENS, HIDDEN).half(), torch.zeros(TOKENS, HIDDEN)
            project(x, w, y)
            torch.testing.assert_close(y, x.float() @ weight.float(), rtol=config.rtol, atol=config.atol)
        assert worker.aicpu_dlopen_count == 1
        stats = benchmark(compiled, [x, w, y], rounds=5, warmup=1, config=config)
    assert len(stats.device_wall_us) == 5 and stats.device_us_min > 0
    print(f"projection passed: {stats.format_tree()}")


if __name__ == "__main__":
    main()
