"""The memory plan: tiles that live in their places compute what tiles with storage of their own do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from hypothesis import given
from numpy.typing import NDArray
from property.programs import programs
from property.running import QUICK, SEEDS, assert_same, outcome, parsed

from tilewright.core.enums import MemorySpace
from tilewright.core.expr import Var
from tilewright.core.program import Program
from tilewright.core.region import Region
from tilewright.core.stmt import AssignStmt
from tilewright.core.types import TileType, tile
from tilewright.core.visitor import statements
from tilewright.dtypes import BOOL
from tilewright.interpret.machine import Frame, Machine
from tilewright.passes.pipeline import DEFAULT


class ArenaMachine(Machine):
    """Keeps each placed tile in the bytes the plan gives it: two that overlap while both are needed spoil each other.

    What a loop carries or a branch yields has no place; it is copied out.
    """

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.arenas: dict[tuple[int, MemorySpace], NDArray[np.uint8]] = {}
        self.frames: list[Frame] = []

    def bind(self, frame: Frame, var: Var, value: Any) -> None:
        """Move a tile to where it lives."""
        if isinstance(value, Region) and isinstance(var.type, TileType):
            value = self._moved(frame, var.type, value)
        super().bind(frame, var, value)

    def _moved(self, frame: Frame, type_: TileType, value: Region) -> Region:
        if type_.memref is None:
            return Region(np.array(value.data), value.valid)
        arena = self._arena(frame, type_.memory, type_.memref.offset + type_.memref.size)
        place = arena[type_.memref.offset : type_.memref.offset + value.data.nbytes]
        data: NDArray[Any] = np.ndarray(value.data.shape, value.data.dtype, place.data)
        data[...] = np.array(value.data)
        return Region(data, value.valid)

    def _arena(self, frame: Frame, space: MemorySpace, size: int) -> NDArray[np.uint8]:
        key = id(frame), space
        if key not in self.arenas:
            self.frames.append(frame)
            self.arenas[key] = np.zeros(1 << 24, np.uint8)
        assert size <= len(self.arenas[key])
        return self.arenas[key]


def placed(program: Program) -> Iterator[TileType]:
    for function in program.function_list:
        for stmt in statements(function.body):
            if isinstance(stmt, AssignStmt) and isinstance(stmt.var.type, TileType):
                yield stmt.var.type


def check_places(text: str) -> None:
    program = parsed(text)
    for step in DEFAULT:
        program = step.run(program)
    for type_ in placed(program):
        assert type_.memref is not None and type_.memref.size == type_.nbytes
    for seed in SEEDS:
        assert_same(outcome(program, seed), outcome(program, seed, ArenaMachine))


def test_a_tile_of_bools_has_a_byte_per_element() -> None:
    assert tile((3, 5), BOOL).nbytes == 15


@QUICK
@given(programs())
def test_tiles_needed_at_the_same_time_do_not_overlap(text: str) -> None:
    check_places(text)
