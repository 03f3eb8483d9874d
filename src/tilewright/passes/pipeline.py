"""The pipeline: which passes run, in which order."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.core.program import Program
from tilewright.passes import (
    barriers,
    block_tensors,
    control_plane,
    cse,
    dce,
    defined,
    independence,
    inline,
    narrow_parameters,
    open_parameters,
    outline,
    pipes,
    predicated_tasks,
    simplify,
    ssa,
    tensor_to_tile,
    unroll,
)
from tilewright.records import record


@record
class Pass:
    """A named step from program to program."""

    name: str
    run: Callable[[Program], Program]
    gives_ssa: bool = False
    """Whether every variable has one definition from here on."""


DEFAULT = (
    Pass("CheckControlPlane", control_plane.run),
    Pass("CheckTurns", independence.run),
    Pass("CheckBarriers", barriers.run),
    Pass("CheckPipes", pipes.run),
    Pass("ConvertToSSA", ssa.run, gives_ssa=True),
    Pass("InlineFunctions", inline.run),
    Pass("UnrollLoops", unroll.run),
    Pass("Simplify", simplify.run),
    Pass("CommonSubexpressions", cse.run),
    Pass("DeadCode", dce.run),
    Pass("NarrowParameters", narrow_parameters.run),
    Pass("OpenParameters", open_parameters.run),
    Pass("OutlineScopes", outline.run),
    Pass("CheckSkippedTasks", predicated_tasks.run),
    Pass("ConvertTensorToTileOps", tensor_to_tile.run),
    Pass("BlockTensorOps", block_tensors.run),
    Pass("SimplifyKernels", simplify.run),
    Pass("CommonSubexpressionsInKernels", cse.run),
    Pass("DeadCodeInKernels", dce.run),
    Pass("CheckDefined", defined.run),
)
"""The passes of the default strategy."""
