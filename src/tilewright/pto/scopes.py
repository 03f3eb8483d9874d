"""Vector scopes: stretches of ops in which registers live, as `pto.vecscope` says or as the text has them.

Where nothing says it, ops on registers, masks and alignment states that follow each other are one scope, numbers
between them included, and loops and branches of only such ops. What moves data or waits ends it: copies, tile ops,
flags, barriers, calls that pass no register, numbers in memory, settings, and the sorts that go through memory. Where
something says it, all of the region is one scope.
"""

from __future__ import annotations

from functools import cache

from tilewright.pto.errors import PtoOperandError
from tilewright.pto.module import Func, Op, Region, Value
from tilewright.pto.types import ALIGN, Mask, VReg

SCOPES = ("pto.vecscope", "pto.strict_vecscope")
_ENDS = frozenset(["pto.barrier", "pto.barrier_sync", "func.call", "pto.vbitsort", "pto.vmrgsort4", "pto.simt_launch"])
_FAMILIES = tuple(
    f"pto.{word}"
    for word in (
        *("mte_", "copy_", "load", "store", "ldg", "stg", "atomic_", "mad", "comm.", "tpush", "tpop", "tfree"),
        *("talloc", "set_", "wait_flag", "sync.", "get_buf", "rls_buf", "tprint", "print", "trap"),
    )
)
"""What moves data, sets a register of the machine, waits, or is seen from outside."""


def refuse_escapes(func: Func) -> None:
    """Raise where a register is used outside the scope that makes it, at what makes it."""
    if func.body is not None:
        _Scopes().region(func.body)


def _is_held(value: Value) -> bool:
    return isinstance(value.type, VReg | Mask) or value.type == ALIGN


def _ends(op: Op) -> bool:
    """Return whether an op ends a scope, itself or by what is inside it."""
    if op.name == "func.call" and any(map(_is_held, (*op.uses, *op.results))):
        return False
    if _ends_by_name(op.name) or op.outs:
        return True
    return bool(op.regions) and any(_ends(inner) for region in op.regions for inner in region.ops)


@cache
def _ends_by_name(name: str) -> bool:
    return name in _ENDS or name in SCOPES or name.startswith(_FAMILIES)


class _Scopes:
    """A walk over a function, which knows the scope it is in."""

    def __init__(self) -> None:
        self.scope = 0
        self.is_said = False
        """Whether an op around says that this is one scope."""
        self.homes: dict[Value, int] = {}
        """The scope that each register lives in."""
        self.makers: dict[Value, Op] = {}

    def region(self, region: Region) -> None:
        """Walk the ops of a region."""
        self.homes.update({value: self.scope for value in region.arguments if _is_held(value)})
        for op in region.ops:
            self._op(op)

    def _op(self, op: Op) -> None:
        is_apart = not self.is_said and (_ends(op) or (bool(op.regions) and op.name.startswith("pto.section.")))
        if is_apart:
            self.scope += 1
        if self.makers:
            for value in op.uses:
                self._check(value, op)
        around, self.is_said = self.is_said, self.is_said or op.name in SCOPES
        for region in op.regions:
            self.region(region)
        self.is_said = around
        if is_apart:
            self.scope += 1
        for value in op.results:
            if _is_held(value):
                self.homes[value], self.makers[value] = self.scope, op

    def _check(self, value: Value, user: Op) -> None:
        maker = self.makers.get(value)
        if maker is None or self.homes.get(value) == self.scope:
            return
        message = (
            f"`%{value.name}` is used by `{user.name}` in line {user.span.line}, outside the vector scope it lives in"
        )
        raise PtoOperandError(message, spans=(maker.span,), help="store it and load it again, or make it there")
