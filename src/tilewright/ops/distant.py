"""Distant parts: what peers hold that share no memory with a rank, whose code works on copies.

`passes/distant.py` writes these around what reads and writes a part. By their meaning parts lie where they are, and
there is nothing to bring.
"""

from typing import Any

from tilewright.core.annotations import Extents, Tensor, X
from tilewright.core.enums import AtomicType
from tilewright.core.expr import Expr
from tilewright.core.op import Effect
from tilewright.core.types import VOID
from tilewright.ops.declare import ANY, op
from tilewright.ops.ranks import DISTRIBUTED, FAMILY, window_type


def _type(window: Expr, **_: Any) -> Any:
    window_type(window, "window")
    return VOID


def _nothing(result: Any, **_: Any) -> Any:
    return VOID


_brings = op(
    kinds=DISTRIBUTED, infer=_type, evaluate=_nothing, family=FAMILY, effect=Effect.WRITE, writes="view",
    is_fence=True, control_plane=True, accepts=ANY, unread=("window", "source"),
)  # fmt: skip


@_brings
def fetch(
    window: Tensor,
    view: Tensor,
    offsets: Extents | None = None,
    shapes: Extents | None = None,
    source: X | None = None,
    atomic: AtomicType = AtomicType.None_,
) -> None:
    """Bring a peer's part, or a region of it, to where code reads it: with `atomic`, zeros that are to be added to it.

    A region is as large as `shapes` say, or as `source` that is to be written there.
    """
    ...


@_brings
def send(
    window: Tensor,
    view: Tensor,
    offsets: Extents | None = None,
    shapes: Extents | None = None,
    source: X | None = None,
    atomic: AtomicType = AtomicType.None_,
) -> None:
    """Take what was written of a peer's part, or of a region of it, to where that lies: with `atomic` it is added."""
    ...
