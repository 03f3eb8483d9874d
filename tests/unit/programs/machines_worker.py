"""One process of several on two machines: runs examples, and prints what it saw."""

from __future__ import annotations

import runpy
from pathlib import Path

import torch

from tilewright.programs.distributed.group import group_of

FOLDER = Path(__file__).parents[3] / "examples" / "distributed"
print(f"shares memory: {group_of().shares_memory}, beside: {group_of().beside}", flush=True)
for name, options in (("ring_put", {}), ("all_reduce", {"way": "on_host"}), ("moe_dispatch", {})):
    got, wanted = runpy.run_path(str(FOLDER / f"{name}.py"))["run"](group_of().size, **options)
    torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-3)
    print(f"{name}: right", flush=True)
