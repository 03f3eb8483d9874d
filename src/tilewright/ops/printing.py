"""Printing: values of the running program as text, for whoever looks for a mistake."""

from collections.abc import Sequence
from typing import Any

from tilewright.core.annotations import Number, X
from tilewright.core.expr import Expr
from tilewright.core.op import Effect, Kind
from tilewright.core.region import Region
from tilewright.core.types import VOID, ScalarType, TensorType, TileType
from tilewright.errors import DTypeMismatchError
from tilewright.ops.declare import FLOATS, INTEGERS, op
from tilewright.ops.system import check_texts

__all__: list[str] = []

SHOWN = 16
"""How many elements of each axis are shown, from the first on."""

NAMES = FLOATS | INTEGERS
"""Elements that have a text; bools and counts do, too."""


def _printed(text: Any, value: Expr | None, end: Any) -> Any:
    check_texts(text=text, end=end)
    if value is not None:
        assert isinstance(value.type, (ScalarType, TensorType, TileType))
        dtype = value.type.dtype
        if dtype not in NAMES and dtype.name not in ("bool", "index"):
            raise DTypeMismatchError(f"{dtype} elements have no text", blame=["value"], help="pl.cast(x, pl.FP32)")
    return VOID


def _print(result: Any, text: str, value: Any, end: str) -> Any:
    said = "" if value is None else shown(value.seen() if isinstance(value, Region) else value)
    print(text + said, end=end, flush=True)
    return VOID


def shown(value: Any, extents: Sequence[int] = ()) -> str:
    """Return numbers as native code writes them: six digits of floats, and lists that end early.

    `extents` are those of the whole, where `value` is no more of it than is shown.
    """
    if getattr(value, "ndim", 0):
        count, *rest = extents or value.shape
        return f"[{', '.join([*(shown(each, rest) for each in value[:SHOWN]), *['...'] * (count > SHOWN)])}]"
    number = value.item() if hasattr(value, "item") else value
    if isinstance(number, (bool, int)):
        return str(number)
    return "nan" if number != number else f"{float(number):.6g}"


@op(
    kinds=(Kind.SYSTEM,), infer=_printed, evaluate=_print, effect=Effect.WRITE, control_plane=True,
    example='pl.system.print_value("a starts with ", pl.read(x, [0, 0]))',
)  # fmt: skip
def print_value(text: str, value: X | Number | None = None, end: str = "\n") -> None:
    """Write a text and the valid part of a value to standard output; `pl.print` is this for several of them."""
    ...
