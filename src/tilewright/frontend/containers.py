"""Containers of classes derived from Python's, which a kernel would read as plain ones.

Lists, tuples and dicts are copied while a kernel is read, so that nobody changes them meanwhile, and a copy has no
methods but Python's. A class that reads its elements in a way of its own would give other numbers there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PLAIN: tuple[Any, ...] = (list, tuple, dict, set, frozenset)
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class that somebody wrote in Python, unlike torch.Size
_TRUSTED = ("collections", "typing", __name__.partition(".")[0])
"""Packages whose containers hold what plain ones do."""

_READING = frozenset(
    """__getitem__ __len__ __iter__ __reversed__ __contains__ __bool__ keys values items get count index
    __add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __neg__ __and__ __or__ __ror__ __xor__
    __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __getattribute__""".split()
)
"""What tells somebody about the elements of a container."""


class OddContainer(TypeError):
    """A container whose class reads its elements in a way of its own."""

    help = "read what it gives before the call and pass that, or a plain copy such as `dict(...)` or `list(...)`"


def check_read_plainly(value: object, around: tuple[object, ...] = ()) -> None:
    """Raise OddContainer where a container, or one inside it, is not what a plain one with its elements is."""
    if not isinstance(value, PLAIN) or any(value is outer for outer in around):
        return
    base: Any = next(each for each in PLAIN if issubclass(type(value), each))
    if method := _own_method(type(value), base):
        raise OddContainer(
            f"{type(value).__name__} is a {base.__name__} with a `{method}` of its own, which kernels do not call"
        )
    elements: list[object] = list(getattr(base, "values", base.__iter__)(value))
    for item in elements:
        check_read_plainly(item, (*around, value))


def _own_method(kind: type, base: type) -> str:
    """Return a method by which a class derived from `base` reads its elements otherwise, or nothing."""
    for each in kind.__mro__[: kind.__mro__.index(base)]:
        is_trusted = each.__module__.partition(".")[0] in _TRUSTED or not each.__flags__ & _HEAP_TYPE
        own: Mapping[str, object] = {} if is_trusted else vars(each)
        if found := next((name for name in own if name in _READING), ""):
            return found
    return ""
