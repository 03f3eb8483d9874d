"""Ops: one record per operation of PTO, which text, verifier, traced bodies and lowering ask.

A declaration in `tilewright.pto.ops` makes one: how the op is written, what is legal, what its text may leave out, and
its meaning as statements of the tile IR. Nothing else in the code base lists ops.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from inspect import CO_VARARGS
from itertools import islice
from types import CodeType, MappingProxyType
from typing import Any, TypeAlias

from tilewright.core.expr import Expr
from tilewright.core.op import place_of
from tilewright.pto.errors import PtoOperandError, PtoTypeMismatchError, PtoUnsupportedOpError, PtoValidShapeError
from tilewright.pto.example import Example
from tilewright.pto.machine.values import Lowered
from tilewright.pto.module import Constants as Constants
from tilewright.pto.module import Number, Op
from tilewright.pto.text.form import Form
from tilewright.pto.text.kinds import row_of
from tilewright.pto.text.typetext import brief_text
from tilewright.pto.types import INDEX, Ptr, Scalar, Space, TensorView, TileBuf, Type, VReg
from tilewright.records import record

Result: TypeAlias = Lowered | Expr | tuple[Lowered | Expr, ...] | None
"""What lowering an op gives: its result, or a tuple of several."""
Lowering: TypeAlias = Callable[..., Result]
"""Writes what an op does, given the machine, the op, and as many of its operands as it takes."""
Rule: TypeAlias = Callable[[Op, Constants], None]
"""Raises where an op breaks a rule, without a place: the verifier knows it.

Numbers whose text already contradicts a type are refused; what only the running program knows is held to the same when
it runs.
"""
Examples: TypeAlias = Example | Mapping[str, Example] | str | None
"""A kernel that runs each of an op's names, kernels by the names that they run, or lines for a frame around them."""


@record
class Declaration:
    """Everything known about an op."""

    form: Form
    lowering: Lowering
    rule: Rule | None = None
    """What the op asks beyond its form."""
    law: Rule | None = None
    """What the machines ask beyond its meaning, which holds for text that is for one of them."""
    left_out: Callable[[Op, Constants], Type] | None = None
    """The type of a result that text may leave out."""
    is_by_bytes: bool = False
    """Whether it asks no more of elements than how many bytes they take."""
    is_by_bits: bool = False
    """Whether it takes or makes masks bit by bit, not lane by lane."""
    counts: Scalar = INDEX
    """The type of Python numbers that it counts with."""
    is_by_source: bool = False
    """Whether Python numbers go with the elements that it reads, not with those it writes."""
    family: str = ""
    """What it belongs to, where nothing here runs it."""
    widens: float = 1
    """How many times as wide the elements of its result are as its operand's; zero where only a `dtype=` says it."""
    knows_packed: bool = False
    """Whether it knows what the bits of numbers mean of which one value holds several, or that no type here has."""
    meets: int = 1
    """How many work items see each other at it."""
    example: Examples = None
    """A kernel that runs it, for all of its names or by name; ops without one stand in those of others."""
    means: str | Mapping[str, str] = ""
    """What lines of an example leave, in NumPy, for all of its names or by name.

    An expression is what the op writes or gives; a mask that it does not name leaves zeros where it is not set.
    """
    words: Mapping[str, str] = MappingProxyType({})
    """The attributes that it reads, and the words that each may be."""

    def lower(self, machine: object, op: Op, operands: Iterable[Lowered | Expr]) -> Result:
        """Write what an op does, given as many of its operands as its lowering takes; return its results."""
        function: Any = self.lowering
        code: CodeType = function.__code__
        taken = None if code.co_flags & CO_VARARGS else code.co_argcount - 2
        return self.lowering(machine, op, *islice(operands, taken))

    def meaning(self, name: str) -> str:
        """Return what one of its ops means in NumPy, nothing where kernels of examples say it."""
        return self.means if isinstance(self.means, str) else self.means[name.partition(".")[2]]


OPS: dict[str, Declaration] = {}
"""Every op by its full name."""


def declare(
    names: str,
    form: Form,
    *,
    rule: Rule | None = None,
    law: Rule | None = None,
    left_out: Callable[[Op, Constants], Type] | None = None,
    is_by_bytes: bool = False,
    is_by_bits: bool = False,
    counts: Scalar = INDEX,
    is_by_source: bool = False,
    family: str = "",
    widens: float = 1,
    knows_packed: bool = False,
    meets: int = 1,
    example: Examples = None,
    means: str | Mapping[str, str] = "",
    words: Mapping[str, str] = MappingProxyType({}),
) -> Callable[[Lowering], Lowering]:
    """Declare ops that are written alike and that one function lowers.

    Their names follow the dialect, as in `"pto.tadd tsub"`.
    """
    dialect, _, called = names.partition(".")

    def signed_in(lowering: Lowering) -> Lowering:
        made = Declaration(
            form, lowering, rule, law, left_out, is_by_bytes, is_by_bits, counts, is_by_source, family, widens,
            knows_packed, meets, example, means, words,
        )  # fmt: skip
        for name in (f"{dialect}.{word}" for word in called.split()):
            if name in OPS and place_of(OPS[name].lowering) != place_of(lowering):
                raise ValueError(f"op {name} is declared twice")
            OPS[name] = made
        return lowering

    return signed_in


def unmeant(names: str, form: Form, family: str, reason: str) -> None:
    """Declare ops that are read, printed and verified, and that nothing can run: a kernel with one is refused."""

    def refuse(machine: object, op: Op) -> None:
        raise PtoUnsupportedOpError(f"`{op.name}` cannot be run here ({family})", help=reason)

    refuse.__module__ = sys._getframe(1).f_globals["__name__"]  # pyright: ignore[reportPrivateUsage]
    refuse.__doc__ = f"Read, printed and verified, and refused where it would run: {reason}."
    declare(names, form, is_by_bytes=True, family=family)(refuse)


# what rules share


def number_of(op: Op, name: str) -> int | None:
    """Return an attribute that is a whole number, None where it is none."""
    value = op.attributes.get(name)
    found = value.value if isinstance(value, Number) else value
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def equal(op: Op, what: str, found: Type, expected: Type) -> None:
    """Raise where a type is not the one that an op needs."""
    if found != expected:
        raise PtoTypeMismatchError(f"the {what} of `{op.name}` is {brief_text(expected)}, got {brief_text(found)}")


def gives(expected: Callable[[Op], Type]) -> Rule:
    """Return the rule of an op whose result has a type that follows from its operands."""
    return lambda op, _: equal(op, "result", op.results[0].type, expected(op))


def element_type(type: Type) -> Scalar:
    """Return what something holds."""
    assert isinstance(type, TensorView | TileBuf | Ptr | VReg)
    return type.element


def within(*spaces: Space) -> Rule:
    """Return the rule of an op whose first operands are pointers to certain memories."""

    def rule(op: Op, _: Constants) -> None:
        for number, (value, space) in enumerate(zip(op.operands, spaces, strict=False), 1):
            if value.of(Ptr).space is not space:
                message = f"`{op.name}` takes a pointer to {space.value} as operand {number}"
                help = f"operand {number} lies in {space.value}"
                raise PtoOperandError(f"{message}, `%{value.name}` is {brief_text(value.type)}", help=help)

    return rule


def reach(op: Op, _: Constants) -> None:
    """Raise where a pointwise op would read beyond a source to fill its output."""
    target, kinds = op.outs[0].of(TileBuf), OPS[op.name].form.words["ins"].kinds
    for value, letter in zip(op.ins, row_of(kinds, [value.type for value in op.ins]), strict=False):
        source = value.type
        if not isinstance(source, TileBuf) or (letter == "z" and "t" in kinds):
            continue  # a scratch tile is as large as it likes
        if (target.valid_rows or 0) > source.rows or (target.valid_cols or 0) > source.cols:
            filled = f"{target.valid_rows or '?'}x{target.valid_cols or '?'}"
            message = f"`{op.name}` fills {filled} elements, `%{value.name}` holds {source.rows}x{source.cols}"
            raise PtoValidShapeError(message, help="make the source as large as the output's valid region")
