"""Transfers: tiles and tensors between a rank and the parts of its peers. Each is a view of a part, and what reads it.

Signals alone order them: a transfer is there for a peer once it has seen a signal that was sent after it.
"""

from typing import Any

from tilewright.core.annotations import Extents, Index, Tensor, Tile, X
from tilewright.core.enums import AtomicType
from tilewright.core.expr import Expr
from tilewright.core.types import TensorType, TileType
from tilewright.errors import AttributeValueError, DTypeMismatchError, OperandError, ShapeMismatchError
from tilewright.ops.declare import ANY, op
from tilewright.ops.derived import Writing, written
from tilewright.ops.families import shaped
from tilewright.ops.ranks import DISTRIBUTED, FAMILY, window_type


def _part(w: Writing, target: Expr, peer: Any) -> Expr:
    return w.do("distributed.part", target=target, peer=peer)


def _remote_load(w: Writing, target: Expr, peer: Any, offsets: Any, shape: Any, valid_shape: Any) -> Expr:
    window_type(target, "target")
    return w.do(
        "tile.load", tensor=_part(w, target, peer), offsets=offsets, shapes=shape, valid_shape=valid_shape
    )  # fmt: skip


def _remote_store(w: Writing, src: Expr, target: Expr, peer: Any, offsets: Any, atomic: AtomicType) -> Expr:
    into, given = window_type(target, "target"), shaped(src)
    if isinstance(given, TensorType) and given.is_window:
        message = f"`src` is a window, {given}: a remote store writes what the kernel has computed"
        raise OperandError(message, blame=["src"], help="pld.tensor.put copies from a window")
    if len(into.shape) < 2:
        raise ShapeMismatchError(f"a remote store takes a window of two axes or more, got {into}", blame=["target"])
    part = _part(w, target, peer)
    if isinstance(given, TileType):
        return w.do("tile.store", tile=src, offsets=offsets, output_tensor=part, atomic=atomic)
    return w.do("tensor.assemble", target=part, source=src, offset=offsets, atomic=atomic)


def _check_staging(chunk_rows: int, chunk_cols: int, pipeline: bool) -> None:
    for name, chunk in (("chunk_rows", chunk_rows), ("chunk_cols", chunk_cols)):
        if chunk < 0:
            raise AttributeValueError(f"{name} is 0 or more, got {chunk}", blame=[name], help="0 leaves it open")
    if pipeline and not (chunk_rows > 0 and chunk_cols > 0):
        message = f"pipeline=True needs chunk_rows and chunk_cols, got {chunk_rows} and {chunk_cols}"
        raise AttributeValueError(message, blame=["pipeline"], help="chunk_rows=16, chunk_cols=64, pipeline=True")


def _check_region(**given: Any) -> None:
    """Raise where a transfer says only some of where its regions lie."""
    missing = [name for name, value in given.items() if value is None]
    if missing and len(missing) < len(given):
        message = f"a transfer takes all of {', '.join(given)}, or none of them: {', '.join(missing)} missing"
        raise AttributeValueError(message, blame=[name for name in given if name not in missing])


def _copied(
    w: Writing, into: Expr, source: Expr, to: Any, at: Any, shape: Any, atomic: AtomicType = AtomicType.None_
) -> Expr:
    if shape is not None:
        source = w.do("tensor.slice", x=source, shape=shape, offset=at)
    else:
        to = (0,) * len(shaped(into).shape)
        _check_alike(into, source)
    return w.do("tensor.assemble", target=into, source=source, offset=to, atomic=atomic)


def _check_alike(dst: Expr, src: Expr) -> None:
    have, want = shaped(src).shape, shaped(dst).shape
    differ = len(have) != len(want) or any(
        isinstance(a, int) and isinstance(b, int) and a != b for a, b in zip(have, want, strict=False)
    )
    if differ:
        message = f"the whole of {shaped(src)} does not fit {shaped(dst)}"
        raise ShapeMismatchError(message, blame=["dst", "src"], help="say dst_offsets, src_offsets and shape")


def _check_elements(dst: Expr, src: Expr) -> None:
    if shaped(dst).dtype != shaped(src).dtype:
        raise DTypeMismatchError(f"{shaped(src)} cannot be copied to {shaped(dst)}", blame=["dst", "src"])


def _put(
    w: Writing, dst: Expr, peer: Any, src: Expr, dst_offsets: Any, src_offsets: Any, shape: Any,
    atomic: AtomicType, chunk_rows: int, chunk_cols: int, pipeline: bool,
) -> Expr:  # fmt: skip
    window_type(dst, "dst")
    _check_elements(dst, src)
    _check_region(dst_offsets=dst_offsets, src_offsets=src_offsets, shape=shape)
    _check_staging(chunk_rows, chunk_cols, pipeline)
    return _copied(w, _part(w, dst, peer), src, dst_offsets, src_offsets, shape, atomic)


def _get(
    w: Writing, dst: Expr, peer: Any, src: Expr, dst_offsets: Any, src_offsets: Any, shape: Any,
    chunk_rows: int, chunk_cols: int, pipeline: bool,
) -> Expr:  # fmt: skip
    window_type(src, "src")
    _check_elements(dst, src)
    _check_region(dst_offsets=dst_offsets, src_offsets=src_offsets, shape=shape)
    _check_staging(chunk_rows, chunk_cols, pipeline)
    return _copied(w, dst, _part(w, src, peer), dst_offsets, src_offsets, shape)


def _transfer(expand: Any) -> Any:
    """Declare a transfer by how it is written in other ops."""
    return op(kinds=DISTRIBUTED, infer=written, evaluate=written, family=FAMILY, expand=expand, accepts=ANY,
              also={"src": ("src_tile",)} if expand is _remote_store else None)  # fmt: skip


@_transfer(_remote_load)
def remote_load(
    target: Tensor, peer: Index, offsets: Extents, shape: Extents, valid_shape: Extents | None = None
) -> Tile:
    """Return a tile from the part of a window that a peer holds."""
    ...


@_transfer(_remote_store)
def remote_store(
    src: X, target: Tensor, peer: Index, offsets: Extents, *, atomic: AtomicType = AtomicType.None_
) -> None:
    """Write the valid part of a tile, or a tensor that was computed, into the part of a window that a peer holds."""
    ...


@_transfer(_put)
def put(
    dst: Tensor,
    peer: Index,
    src: Tensor,
    dst_offsets: Extents | None = None,
    src_offsets: Extents | None = None,
    shape: Extents | None = None,
    *,
    atomic: AtomicType = AtomicType.None_,
    chunk_rows: int = 0,
    chunk_cols: int = 0,
    pipeline: bool = False,
) -> None:
    """Copy a tensor, or a region of it, into the part of a window that a peer holds, or add it to that."""
    ...


@_transfer(_get)
def get(
    dst: Tensor,
    peer: Index,
    src: Tensor,
    dst_offsets: Extents | None = None,
    src_offsets: Extents | None = None,
    shape: Extents | None = None,
    *,
    chunk_rows: int = 0,
    chunk_cols: int = 0,
    pipeline: bool = False,
) -> None:
    """Copy the part of a window that a peer holds, or a region of it, into a tensor."""
    ...
