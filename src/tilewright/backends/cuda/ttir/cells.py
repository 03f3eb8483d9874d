"""Cells: signals in any memory of the GPU, as one rank alone sets them and looks at them."""

from __future__ import annotations

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.ranks import NOTIFY, SIGNALS, address, do
from tilewright.backends.cuda.ttir.recipes import Bound, recipe
from tilewright.backends.cuda.ttir.text import I32, Value
from tilewright.backends.cuda.ttir.values import Binding, Extent, Scalar, Tensor
from tilewright.core.enums import NotifyOp
from tilewright.core.expr import Call
from tilewright.dtypes import BOOL
from tilewright.ops.cells import ALONE

LOOK = "ld.acquire.sys.global.b32 $0, [$1];"
_COMPARED = {"eq": "eq", "ne": "ne", "gt": "sgt", "ge": "sge", "lt": "slt", "le": "sle"}


@recipe("distributed.post")
def _post(k: Kernel, call: Call, bound: Bound) -> Binding:
    """Change a cell, after all that the block has written."""
    how, number = SIGNALS[NotifyOp(bound["op"])], _number(k, bound)
    k.barrier()
    with k.t.block(f"scf.if {_is_there(k, bound['cell'])} {{"):
        do(k, NOTIFY.replace("SIGNAL", how), address(k, bound["cell"].pointer), number)
    k.barrier()
    return ()


@recipe("distributed.holds")
def _holds(k: Kernel, call: Call, bound: Bound) -> Scalar:
    return Scalar(_compared(k, bound), BOOL)


@recipe("distributed.until")
def _until(k: Kernel, call: Call, bound: Bound) -> Binding:
    """Look once: what is not there yet never will be."""
    broken = k.t.simple("arith.xori", _compared(k, bound), k.t.constant("true", "i1"))
    k.fail(broken, ALONE, call.span)
    return ()


def _compared(k: Kernel, bound: Bound) -> Value:
    """Return how the cell compares; where a view does not reach it, which was noted, something else is looked at."""
    k.barrier()
    cell = bound["cell"]
    at = k.t.select(_is_there(k, cell), address(k, cell.pointer), address(k, k.errors()))
    return k.t.compare(f"cmpi {_COMPARED[bound['cmp']]}", do(k, LOOK, at), _number(k, bound))


def _is_there(k: Kernel, cell: Tensor) -> Value:
    """Return whether a view has its element."""
    count: Extent = 1
    for extent in cell.shape:
        count = extents.times(k.t, count, extent)
    return k.t.compare("cmpi ne", extents.held(k.t, count), k.t.integer(0))


def _number(k: Kernel, bound: Bound) -> Value:
    given = extents.held(k.t, k.index(bound["value"]))
    return k.t.convert("arith.trunci", given, I32)
