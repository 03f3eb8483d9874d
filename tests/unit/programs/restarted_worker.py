"""One process of two that torchrun starts again once one of them has failed: it waited for the other in vain."""

from __future__ import annotations

import os
import signal

import numpy as np
from doubling import host
from processes import LATE

from tilewright.ir.distributed_compiled_program import DistributedConfig
from tilewright.runtime import RunConfig

RANK, ATTEMPT = (int(os.environ[name]) for name in ("RANK", "TORCHELASTIC_RESTART_COUNT"))

if ATTEMPT == 0 and RANK == 1:
    signal.pause()  # until the launcher ends it
x, y = np.ones((2, 1, 8), np.float32), np.zeros((2, 1, 8), np.float32)
host(x, y, config=RunConfig(distributed_config=DistributedConfig([0, 1], timeout_s=3 * LATE if ATTEMPT else 5.0)))
print(f"attempt {ATTEMPT}: {y.sum():g}", flush=True)
