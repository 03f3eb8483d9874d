"""The memory plan: a place for every tile, shared by tiles that are never needed together."""

from __future__ import annotations

from unit.passes.texts import kernel, leaves, main

from tilewright.core.program import Program
from tilewright.core.stmt import AssignStmt
from tilewright.core.types import MemRef, TileType
from tilewright.core.visitor import statements
from tilewright.passes import memory_plan, ssa

LOAD = "pl.load(x, [0, 0], [16, 8])"
SIZE = 16 * 8 * 4


def places(program: Program) -> dict[str, MemRef | None]:
    """Return where each tile of a kernel lives."""
    planned = memory_plan.run(ssa.run(program))
    found = [s.var for s in statements(planned["main"].body) if isinstance(s, AssignStmt)]
    return {v.name_hint: v.type.memref for v in found if isinstance(v.type, TileType)}


def test_tiles_needed_together_lie_side_by_side() -> None:
    found = places(kernel(f"t = {LOAD}\nu = pl.exp(t)\npl.store(pl.add(t, u), [0, 0], y)"))
    assert found["t"] == MemRef(0, SIZE)
    assert found["u"] == MemRef(SIZE, SIZE)


def test_a_tile_takes_the_place_of_one_that_is_no_longer_read() -> None:
    found = places(kernel(f"t = {LOAD}\nu = pl.exp(t)\nv = pl.exp(u)\npl.store(v, [0, 0], y)"))
    assert found["v"] == found["t"]


def test_what_a_loop_reads_from_outside_lives_as_long_as_the_loop() -> None:
    found = places(
        kernel(f"t = {LOAD}\nfor i in pl.range(4):\n    u = pl.exp(t)\n    v = pl.exp(u)\n    pl.store(v, [0, 0], y)")
    )
    assert found["t"] not in (found["u"], found["v"])


def test_memory_spaces_are_planned_apart() -> None:
    left = "u = pl.move(t, target_memory=pl.Mem.Left)"
    found = places(kernel(f"t = {LOAD}\n{left}\npl.store(t, [0, 0], y)\npl.store(u, [0, 0], y)"))
    assert found["t"] == found["u"] == MemRef(0, SIZE)


def test_places_are_aligned() -> None:
    small = "pl.load(x, [0, 0], [1, 3])"
    found = places(kernel(f"t = {small}\nu = pl.exp(t)\npl.store(pl.add(t, u), [0, 0], y)"))
    assert found["u"] == MemRef(memory_plan.ALIGNMENT, 12)


def test_a_function_without_tiles_is_left_alone() -> None:
    leaves(memory_plan.run, main("pl.write(y, [n, 0], a)"))


def test_a_plan_is_kept_by_a_second_run() -> None:
    planned = memory_plan.run(kernel(f"t = {LOAD}\nu = pl.exp(t)\npl.store(pl.add(t, u), [0, 0], y)"))
    leaves(memory_plan.run, planned)
