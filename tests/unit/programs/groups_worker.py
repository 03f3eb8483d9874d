"""One process of three: a program runs on a group of two of them, and all of them go on to make others."""

from __future__ import annotations

import os
from typing import Any

import torch.distributed
from doubling import host

from tilewright.ir.distributed_compiled_program import DistributedConfig
from tilewright.runtime import RunConfig

dist: Any = torch.distributed
RANK = int(os.environ["RANK"])


def run_on(ranks: list[int]) -> None:
    group = dist.new_group(ranks)
    if RANK in ranks:
        x = torch.ones(len(ranks), 1, 8)
        y = torch.zeros_like(x)
        host(x, y, config=RunConfig(distributed_config=DistributedConfig(range(len(ranks)), process_group=group)))
        print(f"{ranks} have {int(y.sum())}", flush=True)


dist.init_process_group()  # as torch chooses for the machine
for ranks in ([0, 1], [0, 1, 2], [1, 2], [2, 0]):
    run_on(ranks)
dist.barrier(dist.new_group([0, 1, 2]))
dist.destroy_process_group()
