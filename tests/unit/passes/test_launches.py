"""Launches: what runs side by side, in which order, and what each reads and writes."""

from __future__ import annotations

import pytest
from unit.passes.texts import PARAMS, function, main, program

from tilewright.core.program import Program
from tilewright.core.stmt import ForStmt
from tilewright.core.visitor import statements
from tilewright.passes.launches import launches, runs_side_by_side
from tilewright.passes.manager import PassManager

STORE = "pl.store(pl.load(x, [{i}, 0], [1, 8]), [{i}, 0], y)"
TMP = "tmp = pl.create_tensor([16, 8], pl.FP32)\n"


def shown(before: Program) -> list[str]:
    after = PassManager.get_strategy().run_passes(before)
    return [f"{launch.what}: {launch.does}" for launch in launches(after, after["main"])]


def test_a_parallel_loop_is_one_launch_with_everything_in_it() -> None:
    scope = "    with pl.at(level=pl.Level.CORE_GROUP):\n        "
    assert shown(main(f"for i in pl.parallel(16):\n{scope}{STORE.format(i='i')}")) == [
        "parallel i [0:16:1]: reads x; writes y"
    ]


def test_a_grid_waits_for_what_writes_what_it_reads() -> None:
    found = shown(
        main(
            TMP
            + """
for i in pl.spmd(16):
    pl.store(pl.load(x, [i, 0], [1, 8]), [i, 0], tmp)
for i in pl.spmd(8):
    pl.store(pl.load(tmp, [i, 0], [1, 8]), [i, 0], y)
"""
        )
    )
    assert found == [
        "grid main_spmd_0 [16]: reads x; writes tmp",
        "grid main_spmd_1 [8]: reads tmp; writes y; after 1",
    ]


def test_launches_that_share_nothing_written_wait_for_nobody() -> None:
    found = shown(
        main(
            TMP
            + """
for i in pl.spmd(16):
    pl.store(pl.load(x, [i, 0], [1, 8]), [i, 0], tmp)
for i in pl.spmd(16):
    pl.store(pl.load(x, [i, 0], [1, 8]), [i, 0], y)
pl.write(y, [0, 0], pl.read(tmp, [0, 0]))
"""
        )
    )
    assert [line.partition("after")[2] for line in found] == ["", ""]


def test_atomic_stores_add() -> None:
    add = "pl.store(pl.load(x, [i, 0], [1, 8]), [0, 0], y, atomic=pl.AtomicType.Add)"
    assert shown(main(f"for i in pl.spmd(4):\n    {add}")) == ["grid main_spmd_0 [4]: reads x; writes y; adds to y"]


def test_what_a_called_function_starts_is_named_as_its_caller_does() -> None:
    inner = function("inner", f"for i in pl.spmd(4):\n    {STORE.format(i='i')}")
    called = "tmp = pl.create_tensor([16, 8], pl.FP32)\nfor k in pl.range(n):\n    self.inner(tmp, y, n, a, b)"
    assert shown(program(inner, function("main", called))) == ["grid inner_spmd_0 [4] in for k: reads tmp; writes y"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("for i in pl.parallel(4):\n    pl.write(y, [i, 0], a)", True),
        ("for i in pl.range(4):\n    pl.write(y, [i, 0], a)", False),
        (
            "for i, (c,) in pl.parallel(4, init_values=(n,)):\n    pl.write(y, [c, 0], a)\n    r = pl.yield_(c + 1)",
            False,
        ),
        ("for i in pl.parallel(4):\n    pl.write(y, [i, 0], a)\n    if b:\n        return\n", False),
        ("for i in pl.parallel(4):\n    for j in pl.range(4):\n        if b:\n            break", True),
    ],
)
def test_turns_run_side_by_side_where_none_hands_on_or_ends_another(body: str, expected: bool) -> None:
    loop = next(stmt for stmt in statements(main(body, "InCore", PARAMS)["main"].body) if isinstance(stmt, ForStmt))
    assert runs_side_by_side(loop) is expected
