"""`tilewright.ir.distributed_compiled_program`: what `ir.compile` returns for many ranks, and on which devices."""

from tilewright.programs.distributed.config import DistributedConfig
from tilewright.programs.distributed.program import DistributedCompiledProgram

__all__ = ["DistributedCompiledProgram", "DistributedConfig"]
