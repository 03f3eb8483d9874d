"""Printing: values of the running program as text, for whoever looks for a mistake."""

from collections.abc import Sequence
from typing import Any

from tilewright.core.annotations import Number, X
from tilewright.core.expr import Expr
from tilewright.core.op import Effect, Kind
from tilewright.core.region import Region
from tilewright.core.types import VOID, ScalarType, TensorType, TileType
from tilewright.errors import AttributeValueError, DTypeMismatchError
from tilewright.ops.declare import FLOATS, INTEGERS, op
from tilewright.ops.number_forms import number_form, said
from tilewright.ops.system import check_texts

__all__: list[str] = []

SHOWN = 16
"""How many elements of each axis are shown, from the first on."""

NAMES = FLOATS | INTEGERS
"""Elements that have a text; bools and counts do, too."""


def _printed(text: Any, value: Expr | None, end: Any, form: Any) -> Any:
    check_texts(text=text, end=end, form=form)
    if value is not None:
        assert isinstance(value.type, (ScalarType, TensorType, TileType))
        dtype = value.type.dtype
        if dtype not in NAMES and dtype.name not in ("bool", "index"):
            raise DTypeMismatchError(f"{dtype} elements have no text", blame=["value"], help="pl.cast(x, pl.FP32)")
        if form and (not isinstance(value.type, ScalarType) or number_form(form, dtype) is None):
            kind = f"a {dtype} number" if isinstance(value.type, ScalarType) else "a tile or tensor"
            raise AttributeValueError(f"`{form}` is no form of {kind}", blame=["form"], help="leave it out")
    return VOID


def _print(result: Any, text: str, value: Any, end: str, form: str) -> Any:
    told = "" if value is None else shown(value.seen() if isinstance(value, Region) else value, form=form)
    print(text + told, end=end, flush=True)
    return VOID


def shown(value: Any, extents: Sequence[int] = (), form: str = "") -> str:
    """Return numbers as native code writes them: six digits of floats, and lists that end early.

    `extents` are those of the whole, where `value` is no more of it than is shown, and `form` is that of a number.
    """
    if getattr(value, "ndim", 0):
        count, *rest = extents or value.shape
        return f"[{', '.join([*(shown(each, rest) for each in value[:SHOWN]), *['...'] * (count > SHOWN)])}]"
    number = value.item() if hasattr(value, "item") else value
    if form:
        return said(form, number)
    if isinstance(number, (bool, int)):
        return str(number)
    return "nan" if number != number else f"{float(number):.6g}"


@op(
    kinds=(Kind.SYSTEM,), infer=_printed, evaluate=_print, effect=Effect.WRITE, control_plane=True,
    example='pl.system.print_value("a starts with ", pl.read(x, [0, 0]))',
)  # fmt: skip
def print_value(text: str, value: X | Number | None = None, end: str = "\n", form: str = "") -> None:
    """Write a text and the valid part of a value to standard output; `pl.print` is this for several of them.

    A number is shown as `form` says, a conversion of C's `printf` such as `%+8.3f` or `%x`; without one as it is.
    """
    ...
