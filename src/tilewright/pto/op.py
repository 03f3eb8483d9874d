"""Ops: one record per operation of PTO, which text, verifier, traced bodies and lowering ask.

A declaration in `tilewright.pto.ops` makes one: how the op is written, what is legal, what its text may leave out, and
its meaning as statements of the tile IR. Nothing else in the code base lists ops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from tilewright.pto.machine.machine import Lowering
from tilewright.pto.module import Op, Value
from tilewright.pto.text.form import Form
from tilewright.pto.types import Type
from tilewright.records import record

Constants: TypeAlias = Mapping[Value, int]
"""What values are that a constant defines."""
Rule: TypeAlias = Callable[[Op, Constants], None]
"""Raises where an op breaks a rule, without a place: the verifier knows it.

Numbers whose text already contradicts a type are refused; what only the running program knows is held to the same when
it runs.
"""


@record
class Declaration:
    """Everything known about an op."""

    form: Form
    lowering: Lowering
    rule: Rule | None = None
    """What the op asks beyond its form."""
    left_out: Callable[[Op], Type] | None = None
    """The type of a result that old text leaves out."""
    is_by_bytes: bool = False
    """Whether it asks no more of elements than how many bytes they take."""
    is_by_bits: bool = False
    """Whether it takes or makes masks bit by bit, not lane by lane."""


OPS: dict[str, Declaration] = {}
"""Every op by its full name."""


def declare(
    names: str,
    form: Form,
    *,
    rule: Rule | None = None,
    left_out: Callable[[Op], Type] | None = None,
    is_by_bytes: bool = False,
    is_by_bits: bool = False,
) -> Callable[[Lowering], Lowering]:
    """Declare ops that are written alike and that one function lowers.

    Their names follow the dialect, as in `"pto.tadd tsub"`.
    """
    dialect, _, words = names.partition(".")

    def signed_in(lowering: Lowering) -> Lowering:
        made = Declaration(form, lowering, rule, left_out, is_by_bytes, is_by_bits)
        for name in (f"{dialect}.{word}" for word in words.split()):
            if OPS.setdefault(name, made) is not made:
                raise ValueError(f"op {name} is declared twice")
        return lowering

    return signed_in
