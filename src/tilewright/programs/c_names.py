"""C names: what programs, parameters, extents and types are called in C."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tilewright.core.expr import Call, Const, Symbol
from tilewright.core.types import Extent
from tilewright.dtypes import BOOL, DataType
from tilewright.errors import ExportError

KEYWORDS = frozenset(
    "auto break case char const continue default do double else enum extern float for goto if inline int long register "
    "restrict return short signed sizeof static struct switch typedef union unsigned void volatile while bool true "
    "false alignas alignof class delete export friend namespace new operator private protected public template this "
    "throw try typename using virtual main NULL".split()
)
"""Names that C, or C++ through the header, has for itself."""

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def function_name(name: str, help: str = "pass name= with another") -> str:
    """Return the name of an exported function; ExportError, with what to do, for one that C does not allow."""
    if not _PLAIN.fullmatch(name) or name in KEYWORDS:
        raise ExportError(f"no C function can be called {name!r}: {help}")
    return name


def distinct(names: Iterable[str]) -> list[str]:
    """Return a name in C for each parameter or extent: as it is, where C allows it and no other has it."""
    found: list[str] = []
    for number, name in enumerate(names):
        plain = name if _PLAIN.fullmatch(name) else f"arg{number}"
        while plain in found or plain in KEYWORDS or plain.startswith("tw_"):
            plain = plain.removeprefix("tw_") + "_"
        found.append(plain)
    return found


def element_type(dtype: DataType) -> str:
    """Return the C type that holds one element; types that C lacks are their bits."""
    if dtype == BOOL:
        return "bool"
    if dtype.is_float():
        return {32: "float", 64: "double"}.get(dtype.bits) or f"uint{8 * dtype.get_byte()}_t"
    return f"{'' if dtype.is_signed_int() else 'u'}int{8 * dtype.get_byte()}_t"


def scalar_type(dtype: DataType) -> str:
    """Return the C type in which a number is passed: narrow floats come as `float`."""
    return "float" if dtype.is_float() and dtype.bits < 64 else element_type(dtype)


def string(text: str) -> str:
    """Return a text as a literal; what is not plain ASCII is written in octal."""
    escaped = (chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in text.encode())
    return '"' + "".join(escaped) + '"'


def extent(value: Extent, names: dict[str, str]) -> str:
    """Return an extent as an expression over the extents that the function takes, by `names`."""
    match value:
        case int() | Const():
            return str(int(value if isinstance(value, int) else value.value))
        case Symbol():
            return names[value.name]
        case Call() if value.op.spec.symbol in ("+", "-", "*"):
            lhs, rhs = (extent(arg, names) for arg in value.args)  # pyright: ignore[reportArgumentType]
            return f"({lhs} {value.op.spec.symbol} {rhs})"
        case Call() if value.op.spec.symbol in ("//", "%"):
            lhs, rhs = (extent(arg, names) for arg in value.args)  # pyright: ignore[reportArgumentType]
            return f"tw_{'div' if value.op.spec.symbol == '//' else 'mod'}({lhs}, {rhs})"
        case _:
            raise ExportError(f"C cannot be told the extent {value}: give the tensor one that is a number or a name")


def symbols(value: Extent) -> list[str]:
    """Return the names in an extent."""
    if isinstance(value, Symbol):
        return [value.name]
    if isinstance(value, Call):
        return [name for arg in value.args for name in symbols(arg)]  # pyright: ignore[reportArgumentType]
    return []
