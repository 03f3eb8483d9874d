"""Memory of work items: elements loaded, stored, and changed in one step that nobody comes between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tilewright.arrays import np
from tilewright.core.expr import Expr, constant
from tilewright.dtypes import INT32
from tilewright.pto.errors import PtoAttributeError, PtoOperandError, PtoTypeMismatchError
from tilewright.pto.example import Example
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.pairs import MEMBERS
from tilewright.pto.machine.pairs import unpacked as members
from tilewright.pto.machine.tiles import cell_view, moved
from tilewright.pto.machine.values import Pointer
from tilewright.pto.module import Op
from tilewright.pto.op import Constants, declare, element_type, equal
from tilewright.pto.ops.simt_numbers import SIGNS, signed_integers
from tilewright.pto.text.form import free
from tilewright.pto.text.free import said, words_of
from tilewright.pto.text.suggestions import nearest
from tilewright.pto.types import SCALARS, Ptr, Scalar, Space


def _changed(op: str, v: Any, out: Any, out_was: Any) -> Any:
    """Return what is in memory after an atomic op, and what was there."""
    known: dict[str, Any] = {
        "exch": v + 0 * out, "add": out + v, "sub": out - v, "min": np.minimum(out, v), "max": np.maximum(out, v),
        "and": out & v, "or": out | v, "xor": out ^ v,
    }  # fmt: skip
    return known[op.rpartition("_")[2]], out


def _swapped(op: str, v: Any, expected: Any, out: Any, out_was: Any) -> Any:
    """Return the same after an element was replaced where it was as expected."""
    return np.where(out == expected, v, out), out


def _changes(line: str, gives: Callable[..., Any] = _changed, more: str = "") -> Example:
    stored = "pto.stg %r, %out_was[%c0] : !pto.ptr<i32, gm>, i32"
    given = f"v: i32 in 1..9, {more}out: i32 1 in 4..6, out_was: i32 1"
    return Example(given, f"%r = {line} -> i32\n{stored}", gives)


_ATOMICS = {
    **dict.fromkeys(
        "atomic_exch atomic_add atomic_sub atomic_and atomic_or atomic_xor".split(), _changes("{op} %out, %v")
    ),
    **dict.fromkeys(("atomic_min", "atomic_max"), _changes("{op} %out, %v signed")),
    "atomic_cas": _changes("{op} %out, %expected, %v", _swapped, "expected: i32 in 5..5, "),
}


def _same(op: str, x: Any, out: Any) -> Any:
    return x[2:3]


_MOVED = Example(
    "x: f32 8, out: f32 1", "%r = pto.ldg %x[%c2] -> f32\npto.stg %r, %out[%c0] : !pto.ptr<f32, gm>, f32", _same
)


_L1 = ("cache", "uncache")
_LOADED = (
    *(f"{a}{b}" for a in ("nm", "ids", "ex") for b in ("fv", "lv", "prs", "pref")),
    "nakeep",
    "naclean",
    "nadrop",
)
_STORED = (
    *(f"{a}{b}" for a in ("nm", "wbh", "wts") for b in ("fv", "lv", "prs", "red")),
    *("naci", "napw", "napi", "nared"),
)
"""The words for the second cache, of loads and of stores and atomics."""


def _refuse_cached(op: Op, second: Sequence[str]) -> None:
    """Raise where a word for a cache is none of those that there are."""
    for name, allowed in (("l1cache", _L1), ("l2cache", second)):
        given = said(op).get(name)
        if given is not None and given.words[:1] not in [(word,) for word in allowed]:
            message = f"`{name}` of `{op.name}` is {given.first or 'empty'}"
            raise PtoAttributeError(message, help=nearest(given.first, allowed))


def _loads_element(op: Op, _: Constants) -> None:
    """Refuse another type than the pointer's element, and words that no cache knows."""
    equal(op, "result", op.results[0].type, element_type(op.operands[0].type))
    _refuse_cached(op, _LOADED)


def _stores_element(op: Op, _: Constants) -> None:
    """Refuse another type than the pointer's element, and words that no cache knows."""
    equal(op, "value", op.operands[0].type, element_type(op.operands[1].type))
    _refuse_cached(op, _STORED)


@declare(
    "pto.ldg", free("gi", "x", "l1cache l2cache"), rule=_loads_element,
    is_by_bytes=True, knows_packed=True, example=_MOVED,
)  # fmt: skip
def _load(m: Machine, op: Op, pointer: Pointer, offset: Expr) -> Expr:
    """An element of global memory; words for caches change nothing."""
    return m.b.get(cell_view(m, moved(m, pointer, m.b.index(offset))), 0)


@declare(
    "pto.stg",
    free("xgi", words="l1cache l2cache"),
    rule=_stores_element,
    is_by_bytes=True,
    knows_packed=True,
    example=_MOVED,
)
def _store(m: Machine, op: Op, value: Expr, pointer: Pointer, offset: Expr) -> None:
    """Write an element of global memory."""
    m.b.set(cell_view(m, moved(m, pointer, m.b.index(offset))), value, 0)


# atomics

_BITWISE = ("and", "or", "xor")
_ATOMIC = frozenset(["i32", "ui32", "si32", "i64", "ui64", "si64", "f16", "bf16", "f32", *MEMBERS])
_CALLED = {"exch": "xchg", "sub": "add"}


def _atomic(op: Op, constants: Constants) -> None:
    """Refuse what no atomic op takes: other elements, 64 bits in ub, the bits of floats, words that no cache knows."""
    _refuse_cached(op, _STORED)
    pointer, value = op.operands[0].of(Ptr), op.operands[-1].type
    equal(op, "value", value, pointer.element)
    name = pointer.element.name
    if name not in _ATOMIC or (pointer.space is Space.VEC and pointer.element.bits == 64):
        where = "ub" if pointer.space is Space.VEC else "gm"
        raise PtoTypeMismatchError(f"there is no `{op.name}` on {pointer.element} in {where}", help="use i32 or f32")
    if pointer.space not in (Space.GM, Space.VEC):
        raise PtoOperandError(f"`{op.name}` changes elements of gm or ub, `%{op.operands[0].name}` is {pointer}")
    if op.name.rpartition("_")[2] in _BITWISE and not pointer.element.is_integer:
        raise PtoTypeMismatchError(f"`{op.name}` takes integers, got {pointer.element}")
    signed_integers(op, constants)


@declare(
    "pto.atomic_exch atomic_add atomic_sub atomic_min atomic_max atomic_and atomic_or atomic_xor",
    free("px", "x", f"l2cache {SIGNS}"), rule=_atomic, knows_packed=True, is_by_bytes=True,
    example=_ATOMICS,
)  # fmt: skip
def _update(m: Machine, op: Op, pointer: Pointer, value: Expr) -> Expr:
    """Change an element by a number; return what it was."""
    word = op.name.rpartition("_")[2]
    if pointer.element.name in MEMBERS and word != "exch":
        return _update_pair(m, op, word, pointer, value)
    if "unsigned" in words_of(op):
        pointer = replace(pointer, element=SCALARS[f"ui{pointer.element.bits}"])
    dtype = pointer.element.dtype
    given = m.b.cast(value, dtype)
    given = m.b.scalar("neg", given) if word == "sub" else given
    old = _atomically(m, _CALLED.get(word, word), pointer, values=given)
    return m.b.cast(old, op.results[0].of(Scalar).dtype)


def _update_pair(m: Machine, op: Op, word: str, pointer: Pointer, value: Expr) -> Expr:
    """Change two numbers of one element, each in a step of its own: nobody uses what they were together."""
    member = MEMBERS[pointer.element.name]
    old = m.b.get(cell_view(m, pointer), 0)
    for i, each in enumerate(members(m, op, value, pointer.element)):
        place = moved(m, replace(pointer, element=member), m.b.index(i))
        given = m.b.scalar("neg", each) if word == "sub" else each
        _atomically(m, _CALLED.get(word, word), place, values=given)
    return old


@declare(
    "pto.atomic_cas",
    free("pxx", "x", f"l2cache {SIGNS}"),
    rule=_atomic,
    knows_packed=True,
    is_by_bytes=True,
    example=_ATOMICS,
)
def _swap(m: Machine, op: Op, pointer: Pointer, expected: Expr, value: Expr) -> Expr:
    """Replace an element where it is as expected, bit by bit; return what it was."""
    return _atomically(m, "cas", pointer, compare=expected, values=value)


def _atomically(m: Machine, name: str, pointer: Pointer, **given: Expr) -> Expr:
    first = m.once("first place", lambda: m.b.tile("full", (1, 1), INT32, constant(0, INT32)))
    old = m.b.do(f"tile.atomic_{name}", x=cell_view(m, pointer), indices=first, **given)
    return m.b.tile("read", old, (0, 0))
