"""Masked windows: which elements of a tensor a mask admits to a load or a store."""

from collections.abc import Mapping, Sequence

from tilewright.arrays import np
from tilewright.core.access import Access, touch_each
from tilewright.core.region import Array, Region
from tilewright.core.types import ShapedType, is_fully_valid, show_shape
from tilewright.dtypes import BOOL, round_to
from tilewright.errors import AttributeValueError, DTypeMismatchError, ExecutionError, ShapeMismatchError
from tilewright.ops.families import broadcast

MASKS = "a mask is what comparing gives: pl.arange(64) < n"


def check_mask(mask: ShapedType, shape: tuple[int, ...], *, is_whole: bool = True) -> None:
    """Raise unless a mask of bools says of each element of a tile whether it is admitted; of a part unless whole."""
    if mask.dtype != BOOL:
        raise DTypeMismatchError(f"a mask has {BOOL} elements, got {mask}", blame=["mask"], help=MASKS)
    met = broadcast(shape, shape, mask.shape, mask.shape)
    if met is None or met[0] != shape:
        message = f"a mask of {show_shape(mask.shape)} does not broadcast to {show_shape(shape)}"
        raise ShapeMismatchError(message, blame=["mask"], help="compare a column [rows, 1] or a row [1, columns]")
    if not is_fully_valid(mask) and is_whole:
        message = f"a mask has to hold data everywhere, got {mask}"
        raise ShapeMismatchError(message, blame=["mask"], help="pl.fillpad(mask) is False where there is none")


def check_alone(given: Mapping[str, object], name: str) -> None:
    """Raise where a mask meets what does not go with it."""
    for other, value in given.items():
        if value is not None:
            help = f"leave `{other}` out, and let the mask say it" if name == "load" else "pl.atomic_add takes a mask"
            raise AttributeValueError(f"a {name} takes a mask or `{other}`", blame=["mask"], help=help)


def places_of(own: Sequence[Array], offsets: Sequence[int], extents: Sequence[int]) -> tuple[Array, ...]:
    """Return where admitted elements lie in a tensor; ExecutionError where it has none."""
    places = tuple(indices + start for indices, start in zip(own, offsets, strict=True))
    for axis, (found, extent) in enumerate(zip(places, extents, strict=True)):
        wrong = found[(found < 0) | (found >= extent)]
        if wrong.size:
            raise ExecutionError(
                f"axis {axis}: a mask is True for element {wrong[0]}, which lies outside 0 to {extent}"
            )
    return places


def write_masked(target: Region, source: Region, offsets: Sequence[int], mask: Region) -> Region:
    """Write the valid elements of `source` where a mask is True into `target`'s buffer and return `target`."""
    own_part = source.window[source.data.ndim - mask.data.ndim :]
    looked = tuple(slice(0, 1) if n == 1 else part for n, part in zip(mask.data.shape, own_part, strict=True))
    live, admitted = source.seen(), np.broadcast_to(mask.seen(looked), source.valid)
    leading, own = target.data.ndim - source.data.ndim, np.nonzero(admitted)
    places = places_of((*(np.zeros_like(own[-1]),) * leading, *own), offsets, target.data.shape)
    touch_each(Access.WRITE, target.data, places)
    target.data[places] = round_to(live[own], target.dtype)
    if target.shadow is not None:
        target.shadow[places] = 0
    return target
