"""Examples of work items: numbers computed by one, and by the items of a launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.pto.example import Example


def number(arguments: str, line: str, gives: Callable[..., Any], result: str = "f32") -> Example:
    """Return a kernel that computes `%r` of numbers, and stores it."""
    stored = f"pto.store_scalar %r, %out[%c0] : !pto.ptr<{result}, gm>, {result}"
    return Example(f"{arguments}, out: {result} 1 in 7..7", f"{line}\n{stored}", gives)


def _item(axis: str) -> str:
    return f"%{axis} = pto.get_tid_{axis} : i32"


def items(
    lines: str, gives: Callable[..., Any], result: str = "i32", extents: tuple[int, int, int] = (8, 2, 2)
) -> Example:
    """Return a kernel whose work items each compute `%r`, of their lane and its number plus one, and store it."""
    along, across, down = extents
    type_ = f"!pto.ptr<{result}, gm>"
    around = f"""
    func.func @body(%out: {type_}) attributes {{pto.simt_entry}} {{
    {_item("x")}
    {_item("y")}
    {_item("z")}
    %zy = arith.muli %z, %i{across} : i32
    %row = arith.addi %zy, %y : i32
    %far = arith.muli %row, %i{along} : i32
    %at = arith.addi %far, %x : i32
    %lane = pto.get_laneid : i32
    %one = arith.addi %lane, %i1 : i32
    %bit = arith.andi %lane, %i1 : i32
    %even = arith.cmpi eq, %bit, %i0 : i32
    {lines}
    pto.stg %r, %out[%at] : {type_}, {result}
    return
    }}
    """
    launch = f"pto.simt_launch @body<<<%i{along}, %i{across}, %i{down}>>>(%out) : ({type_}) -> ()"
    return Example(f"out: {result} {along * across * down} in 7..7", launch, gives, around=around)
