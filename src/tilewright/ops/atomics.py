"""Atomic updates: elements of a tensor changed where indices say, in one step that nobody comes between.

Of several indices in one place each changes what those before it left, along rows. In turns that run side by side the
order is open, and nothing is lost.
"""

from collections.abc import Callable, Collection
from typing import Any, TypeVar

from tilewright import dtypes as dt
from tilewright.arrays import np
from tilewright.core.access import Access, touch_each
from tilewright.core.annotations import Number, Tensor, Tile
from tilewright.core.expr import Expr
from tilewright.core.foreign_names import called
from tilewright.core.op import Effect
from tilewright.core.region import Array, Region, embed, exact
from tilewright.core.types import TileType
from tilewright.dtypes import DataType, round_to
from tilewright.ops.declare import INTEGERS, NUMBERS, TILE, op
from tilewright.ops.families import check_dtype, shaped
from tilewright.ops.places import changed_part, check_given, find, given_elements, in_turn, look, places_type

__all__ = [
    "atomic_add", "atomic_and", "atomic_cas", "atomic_max", "atomic_min", "atomic_or", "atomic_xchg", "atomic_xor",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])

SWAPPED = frozenset((dt.INT32, dt.INT64, dt.UINT32, dt.UINT64, dt.FP16, dt.BF16, dt.FP32, dt.FP64))
EXCHANGE, SWAP = "exchange", "swap"
"""What updates are called that no NumPy function is: the new element, and that where the old one is as expected."""


def _update_type(accepted: Collection[DataType], x: Expr, indices: Expr, axis: int | None, **given: Any) -> TileType:
    values: dict[str, Expr] = {name: given[name] for name in ("compare", "values") if name in given}
    check_dtype(shaped(x).dtype, accepted, ["x"])
    result = places_type(x, indices, axis, given["mask"], given["values"])
    for name, value in values.items():
        result = check_given(value, name, x, result)
    return result


def _updated(combine: str, held: Any, given: Array, compare: Any, dtype: DataType) -> Array:
    """Return what elements become."""
    if compare is not None:
        word = f"u{dtype.get_byte()}"
        return np.where(held.view(word) == compare.view(word), given, held)
    if combine == EXCHANGE:
        return given
    with np.errstate(all="ignore"):
        return round_to(getattr(np, combine)(exact(held), exact(given)), dtype)


def _update(
    combine: str,
    result: TileType,
    x: Region,
    indices: Region,
    values: Any,
    mask: Region | None,
    axis: int | None,
    compare: Any = None,
) -> Region:
    valid = changed_part(result, indices, values, axis == 0 and x.data.ndim > 1)
    found = find(x, indices, axis, mask, valid)
    touch_each(Access.ADD, x.data[(..., *found.window)], found.numbers)
    picked = found.picked
    given = given_elements(values, "values", valid, x.dtype, picked)
    wanted = None if compare is None else given_elements(compare, "compare", valid, x.dtype, picked)
    old = np.zeros_like(given)
    for some in in_turn(x.data, found):
        places: Any = (*(number[some] for number in found.numbers), *found.window)
        held = look(x, places)
        old[some] = held
        x.data[places] = _updated(combine, held, given[some], None if wanted is None else wanted[some], x.dtype)
    live = np.zeros(valid, x.data.dtype)
    live[picked] = old
    return embed(live, result.shape, result.dtype)


def _atomic(combine: str, accepts: Collection[DataType], value: str = "1.0", compare: str = "") -> Callable[[F], F]:
    """Declare an atomic update by the NumPy function that makes the new element of the old and the given one."""
    accepted = frozenset(accepts)

    def infer(**operands: Any) -> TileType:
        return _update_type(accepted, **operands)

    def evaluate(result: TileType, **operands: Any) -> Region:
        return _update(combine, result, **operands)

    def declare(function: F) -> F:
        is_whole = accepted <= INTEGERS
        made = f"counts = pl.create_tensor([32], dtype=pl.{'INT32' if is_whole else 'FP32'}, init_value=2)\n"
        made += "places = pl.cast(pl.tile.full([16, 32], dtype=pl.FP32, value=3.0), pl.INT32)\n"
        old = f"pl.{function.__name__}(counts, places{compare}, {value})"
        example = f"{made}old = {old}\nout = pl.store({'pl.cast(old, pl.FP32)' if is_whole else 'old'}, [0, 0], out)"
        return op(
            kinds=TILE, infer=infer, evaluate=evaluate, family="atomic", combine=combine, effect=Effect.WRITE,
            writes="x", touches=("x",), accepts=accepted, domain=(0.0, 0.9), example=example,
        )(function)  # fmt: skip

    return declare


@called("triton", numpy="np.add.at bincount", torch="scatter_add index_add", numba="cuda.atomic.add")
@_atomic("add", NUMBERS)
def atomic_add(
    x: Tensor, indices: Tile, values: Tile | Number, *, mask: Tile | None = None, axis: int | None = 0
) -> Tile:
    """Add to the elements or rows of a tensor that indices name; return what they were.

    With `axis=0` an index names an element of a vector, or a row; with `axis=None` it counts elements along rows. One
    outside the tensor is an error. Where `mask` is false nothing is changed, and zero is returned.
    """
    ...


@called("triton", numba="cuda.atomic.max")
@_atomic("maximum", NUMBERS)
def atomic_max(
    x: Tensor, indices: Tile, values: Tile | Number, *, mask: Tile | None = None, axis: int | None = 0
) -> Tile:
    """Let the elements of a tensor that indices name be at least as large as what is given; return what they were.

    Indices, `mask` and `axis` are those of `atomic_add`.
    """
    ...


@called("triton", numba="cuda.atomic.min")
@_atomic("minimum", NUMBERS)
def atomic_min(
    x: Tensor, indices: Tile, values: Tile | Number, *, mask: Tile | None = None, axis: int | None = 0
) -> Tile:
    """Let the elements of a tensor that indices name be at most as large as what is given; return what they were.

    Indices, `mask` and `axis` are those of `atomic_add`.
    """
    ...


@called("triton", numba="cuda.atomic.and_")
@_atomic("bitwise_and", INTEGERS, "6")
def atomic_and(
    x: Tensor, indices: Tile, values: Tile | Number, *, mask: Tile | None = None, axis: int | None = 0
) -> Tile:
    """Keep the bits of integers that indices name which are given too; return what they were.

    Indices, `mask` and `axis` are those of `atomic_add`.
    """
    ...


@called("triton", numba="cuda.atomic.or_")
@_atomic("bitwise_or", INTEGERS, "5")
def atomic_or(
    x: Tensor, indices: Tile, values: Tile | Number, *, mask: Tile | None = None, axis: int | None = 0
) -> Tile:
    """Set the bits that are given in integers that indices name; return what they were.

    Indices, `mask` and `axis` are those of `atomic_add`.
    """
    ...


@called("triton", numba="cuda.atomic.xor_")
@_atomic("bitwise_xor", INTEGERS, "3")
def atomic_xor(
    x: Tensor, indices: Tile, values: Tile | Number, *, mask: Tile | None = None, axis: int | None = 0
) -> Tile:
    """Flip the bits that are given in integers that indices name; return what they were.

    Indices, `mask` and `axis` are those of `atomic_add`.
    """
    ...


@called("triton", numba="cuda.atomic.exch")
@_atomic(EXCHANGE, NUMBERS)
def atomic_xchg(
    x: Tensor, indices: Tile, values: Tile | Number, *, mask: Tile | None = None, axis: int | None = 0
) -> Tile:
    """Replace the elements of a tensor that indices name; return what they were.

    Indices, `mask` and `axis` are those of `atomic_add`.
    """
    ...


@called("triton", numba="cuda.atomic.cas")
@_atomic(SWAP, SWAPPED, compare=", 2.0")
def atomic_cas(
    x: Tensor,
    indices: Tile,
    compare: Tile | Number,
    values: Tile | Number,
    *,
    mask: Tile | None = None,
    axis: int | None = 0,
) -> Tile:
    """Replace the elements of a tensor that indices name where they have the bits of `compare`; return what they were.

    An element was replaced where what is returned is `compare`. Indices, `mask` and `axis` are those of `atomic_add`.
    """
    ...
