"""One of several processes: every collective of the host and of kernels."""

import os

from unit.programs.collectives import LEVELS, OPS, is_right

for op in OPS:
    for level in LEVELS:
        print(
            f"{op} {level}: {'right' if is_right(int(os.environ['WORLD_SIZE']), op, level, 'cpu') else 'wrong'}",
            flush=True,
        )
