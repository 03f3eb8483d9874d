"""Lines: the 32 bytes of local memory that tiles begin at multiples of."""

from __future__ import annotations

from tilewright.core.expr import ConstInt, Expr
from tilewright.ops.builder import Builder
from tilewright.pto.errors import PtoTypeMismatchError

LINE = 32
"""Bytes that the start of a tile is a multiple of."""


def refuse_between(number: int | None) -> None:
    """Refuse an address that is known and lies between two lines."""
    if number is not None and number % LINE:
        message = f"a tile begins at a multiple of {LINE} bytes, got {number}"
        help = f"{number // LINE * LINE} and {(number // LINE + 1) * LINE} are such"
        raise PtoTypeMismatchError(message, help=help)


def check_begins(b: Builder, address: Expr) -> None:
    """Stop the program where an address that only it knows lies between two lines."""
    if not _is_multiple(b, address):
        begins = b.scalar("eq", b.scalar("mod", address, b.index(LINE)), b.index(0))
        said = f"a tile begins at a multiple of {LINE} bytes, and this address is none"
        b.act("system.device_assert", condition=begins, message=said)


def _is_multiple(b: Builder, number: Expr) -> bool:
    """Return whether what makes a number shows that it is a multiple of a line; one that wraps around stays one."""
    if isinstance(number, ConstInt):
        return int(number.value) % LINE == 0
    made = b.made.get(number)
    if made is None:
        return False
    parts = [_is_multiple(b, part) for part in made.args]
    return {"mul": any, "add": all, "sub": all, "cast": all}.get(made.op.spec.name, _never)(parts)


def _never(_: list[bool]) -> bool:
    return False
