"""Windows: parts of tensors and tiles, and the mistakes that can be made with them."""

from collections.abc import Sequence

from tilewright.core.expr import Expr
from tilewright.core.extents import as_extent, as_shape, bounds
from tilewright.core.types import Extent, Shape, is_static, show_shape, static_shape
from tilewright.errors import ExecutionError, NotStaticError, OutOfBoundsError, ShapeMismatchError


def tile_shape(shapes: Sequence[Expr], blame: str) -> tuple[int, ...]:
    """Return the extents of a tile, which must be static and positive, one at least."""
    shape = as_shape(shapes)
    if not shape:
        help = "pl.read(x, []) is the number that a tensor without axes holds, pl.write(out, [], n) writes one"
        raise ShapeMismatchError("a tile has one axis or more", blame=[blame], help=help)
    if not is_static(shape):
        raise NotStaticError(
            f"a tile's shape must be static, got {show_shape(shape)}",
            blame=[blame],
            help="give the tile a fixed shape and say how much of it holds data with valid_shape",
        )
    if any(extent <= 0 for extent in static_shape(shape)):
        help = "where an argument is empty, a tile of a fixed size holds nothing of it: [32, 64], cut to what is there"
        raise ShapeMismatchError(f"extents must be positive, got {show_shape(shape)}", blame=[blame], help=help)
    return static_shape(shape)


def check_rank(given: Sequence[object], rank: int, blame: str, of: str) -> None:
    """Raise unless there is one entry per axis."""
    if len(given) != rank:
        message = f"`{blame}` needs one entry per axis of the {rank}-D {of}, got {len(given)}"
        raise ShapeMismatchError(message, blame=[blame], help=_other_rank(len(given), rank, of))


def _other_rank(given: int, rank: int, of: str) -> str:
    """Return what to write where there are too few or too many entries; a subscript takes leading axes away."""
    if not 0 < given < rank or of != "tensor":
        return f"write {rank}, one for each axis"
    letters = ", ".join("bhijklmn"[: rank - given]) if rank - given <= 8 else "..."
    return f"write {rank}, one for each axis, or give a {given}-D part: x[{letters}] of a tensor x"


def valid_extents(shape: Shape, valid_shape: Sequence[Expr] | None) -> Shape:
    """Return the asked valid part of a shape; what only the running program knows is None."""
    if valid_shape is None:
        return shape
    valid = tuple(extent if isinstance(extent := as_extent(v), int) else None for v in valid_shape)
    for have, want in zip(shape, valid, strict=True):
        if isinstance(want, int) and (want < 0 or (isinstance(have, int) and want > have)):
            raise ShapeMismatchError(
                f"a valid part of {show_shape(valid)} does not fit {show_shape(shape)}", blame=["valid_shape"]
            )
    return valid


BEFORE = "start at 0 or after it: pl.max(i, 0) keeps an offset there"
CLAMP = "make the region smaller; pl.load and pl.slice with clamp=True read only what is there"
NARROW = (
    "the valid part of a tile is stored: a load knows its own, and pl.set_validshape narrows that of other tiles, "
    "such as a sum to which a loop of no turns added nothing"
)
CUT = "pl.load is cut to what the tensor holds, and so is pl.slice with clamp=True"


def starts_inside(offset: Expr) -> bool:
    """Return whether an offset may be zero or more."""
    reach = bounds(offset)
    return reach is None or reach[1] >= 0


def outside(axis: int, offset: Expr, size: Extent, extent: Extent, blame: str, help: str = "") -> OutOfBoundsError:
    """Return the error for a region that cannot lie inside its tensor."""
    reach = bounds(offset)
    if help and reach is not None and reach[1] < 0:
        help = BEFORE
    low, high = (
        (str(reach[0]), str(reach[1] + size)) if reach and isinstance(size, int) else (offset, f"{offset} + {size}")
    )
    return OutOfBoundsError(
        f"axis {axis}: elements {low} to {high} lie outside 0 to {extent}", blame=[blame], help=help
    )


def check_part(valid: Sequence[int], shape: Sequence[int]) -> None:
    """Raise ExecutionError unless a valid part fits a shape."""
    if any(not 0 <= want <= size for want, size in zip(valid, shape, strict=True)):
        raise ExecutionError(f"a valid part of {list(valid)} does not fit {list(shape)}")
