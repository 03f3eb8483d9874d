"""Collectives: what the work items of a warp find out about each other. Only those that take part count."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from tilewright import dtypes
from tilewright.arrays import np
from tilewright.core.expr import Expr, Var, constant
from tilewright.dtypes import BOOL, UINT32, UNSIGNED, DataType
from tilewright.pto.errors import PtoAttributeError, PtoTypeMismatchError
from tilewright.pto.examples.items import items
from tilewright.pto.machine.crews import Crew, crew_of
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.threads import WARP
from tilewright.pto.module import Op
from tilewright.pto.op import Constants, declare, number_of
from tilewright.pto.ops.arithmetic import chosen
from tilewright.pto.ops.simt_numbers import SIGNS, signed_integers, takes
from tilewright.pto.text.form import free
from tilewright.pto.text.free import words_of
from tilewright.pto.types import SCALARS, Scalar


@contextmanager
def _lanes(crew: Crew, first: Expr, end: Expr) -> Generator[Expr]:
    """Write a loop over the lanes of a warp that take part."""
    with crew.m.b.loop(first, end, hint="lane") as index, crew.among(index):
        yield index


def _gathered(
    m: Machine, op: Op, start: Expr, step: Callable[[Var, Expr, Expr], Expr], end: Callable[[Expr], Expr]
) -> None:
    """Let all lanes of each warp have one result: what `step` makes of the one so far and each lane's number."""
    crew = crew_of(m, op)
    made = crew.made(op.results[0])
    with crew.warps() as (first, last):
        found = m.b.held(start, "found")
        with _lanes(crew, first, last) as index:
            m.b.assign(found, step(found, crew.at(op.operands[0], index), m.b.scalar("sub", index, first)))
        result = end(found)
        with _lanes(crew, first, last) as index:
            crew.set(made, result, index)


_LANES = (32, 1, 1)


def _meant(op: str, out: Any) -> Any:
    """Return what NumPy says each of 32 lanes finds out, of whether it is even or of its number plus one."""
    lane = np.arange(WARP)
    word, others = op.rpartition("_")[2], {"idx": 0 * lane + 3, "up": lane - 3, "down": lane + 3, "bfly": lane ^ 3}
    if word in others:
        other = others[word]
        return np.where((other >= 0) & (other < WARP), other, lane) + 1
    known = {"all": 0, "any": 1, "uni": 0, "ballot": 0x55555555, "add": 528, "max": WARP, "min": 1}
    return np.full(WARP, known[word])


_VOTE = items("%v = {op} %even : i1 -> i1\n%r = arith.extui %v : i1 to i32", _meant, extents=_LANES)


@declare("pto.vote_all vote_any", free("b", "b"), meets=WARP, example=_VOTE)
def _vote(m: Machine, op: Op) -> None:
    """Whether a condition holds for all lanes, or for any."""
    joined, is_all = ("and_", True) if op.name == "pto.vote_all" else ("or_", False)
    start = constant(is_all, BOOL)
    _gathered(m, op, start, lambda found, flag, _: m.b.scalar(joined, found, flag), lambda found: found)


@declare("pto.vote_uni", free("b", "b"), meets=WARP, example=_VOTE)
def _vote_alike(m: Machine, op: Op) -> None:
    """Whether a condition holds for all lanes or for none."""

    def step(found: Var, flag: Expr, lane: Expr) -> Expr:
        return m.b.scalar("bit_or", found, chosen(m, flag, constant(1, UINT32), constant(2, UINT32)))

    _gathered(m, op, constant(0, UINT32), step, lambda found: m.b.scalar("ne", found, constant(3, UINT32)))


@declare(
    "pto.vote_ballot", free("b", "i"), meets=WARP, example=items("%r = {op} %even : i1 -> i32", _meant, extents=_LANES)
)
def _ballot(m: Machine, op: Op) -> None:
    """A bit for each lane of which a condition holds."""

    def step(found: Var, flag: Expr, lane: Expr) -> Expr:
        return m.b.scalar("bit_or", found, m.b.scalar("shl", m.b.cast(flag, UINT32), m.b.cast(lane, UINT32)))

    dtype = op.results[0].of(Scalar).dtype
    _gathered(m, op, constant(0, UINT32), step, lambda found: m.b.cast(found, dtype))


# sums and extremes


@declare(
    "pto.redux_add redux_max redux_min",
    free("x", "x", SIGNS),
    rule=signed_integers,
    law=takes("i32 f16 f32"),
    meets=WARP,
    example={
        "redux_add": items("%r = {op} %one -> i32", _meant, extents=_LANES),
        **dict.fromkeys(("redux_max", "redux_min"), items("%r = {op} %one signed -> i32", _meant, extents=_LANES)),
    },
)
def _redux(m: Machine, op: Op) -> None:
    """The sum, or the largest or smallest, of a number of all lanes; shorter floats are added as f32."""
    dtype = op.results[0].of(Scalar).dtype
    word = op.name.rpartition("_")[2]
    held = _held(op, dtype)
    start = {"add": 0, "max": held.limits[0], "min": held.limits[1]}[word]
    number = constant(float(start) if held.is_float() else int(start), held)

    def step(found: Var, value: Expr, lane: Expr) -> Expr:
        return m.b.scalar(word, found, m.b.cast(value, held))

    _gathered(m, op, number, step, lambda found: m.b.cast(found, dtype, "rint"))


def _held(op: Op, dtype: DataType) -> DataType:
    """Return the type in which numbers are compared or added."""
    if dtype.is_float():
        return dtypes.FP32
    return UNSIGNED[dtype.get_byte()] if "unsigned" in words_of(op) else dtype


# shuffles


def _width(op: Op, _: Constants) -> None:
    width = number_of(op, "width")
    if width not in (None, 16, 32):
        raise PtoAttributeError(f"`{op.name}` has groups of {width} lanes", help="width is 16 or 32")
    by = op.operands[1]
    if by.type != SCALARS["i32"]:
        raise PtoTypeMismatchError(f"`{op.name}` counts lanes in i32, `%{by.name}` is {by.type}", help="make it i32")


_SHUFFLES = "pto.shuffle_idx shuffle_up shuffle_down shuffle_bfly"


@declare(
    _SHUFFLES,
    free("xi", "x"),
    rule=_width,
    law=takes("i32 i64 f16 f32 2xf16"),
    counts=SCALARS["i32"],
    meets=WARP,
    knows_packed=True,
    example=items("%r = {op} %one, %i3 -> i32", _meant, extents=_LANES),
)
def _shuffle(m: Machine, op: Op) -> None:
    """Another lane's value, of the same group of lanes; its own where there is no such lane, or it takes no part."""
    crew, (value, by) = crew_of(m, op), op.operands
    made, width = crew.made(op.results[0]), number_of(op, "width") or WARP
    with crew.warps() as (first, last), _lanes(crew, first, last) as index:
        lane = m.b.scalar("sub", index, first)
        base = m.b.scalar("sub", lane, m.b.scalar("mod", lane, m.b.index(width)))
        other = _other(m, op.name, lane, base, m.b.index(crew.at(by, index)))
        there = m.b.scalar("and_", m.b.scalar("ge", other, base), m.b.scalar("lt", other, m.b.add(base, width)))
        at = m.b.add(first, other)
        there = m.b.scalar("and_", there, m.b.scalar("lt", at, last))
        result = m.b.held(crew.at(value, index), "own")
        inside = m.b.scalar("max", m.b.scalar("min", at, m.b.add(last, -1)), first)  # also where nobody looks
        with m.b.when(there), crew.among(inside):
            m.b.assign(result, crew.at(value, inside))
        crew.set(made, result, index)


def _other(m: Machine, name: str, lane: Expr, base: Expr, by: Expr) -> Expr:
    """Return the lane whose value one wants."""
    if name.endswith("bfly"):
        return m.b.scalar("bit_xor", lane, by)
    start, word = (base, "add") if name.endswith("idx") else (lane, "sub" if name.endswith("up") else "add")
    return m.b.scalar(word, start, by)
