"""Groups of a cube and a vector side as PTO text: the sections of an entry, which hand over the same tiles."""
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from property.exported import run_exported
from unit.test_pipes import POP, PUSH, TURNS, Halves, N, OneWay, ThereAndBack, grouped

from tilewright import ir, pto
from tilewright.frontend.programs import as_program
from tilewright.programs.pto_text.export import as_pto

ACCUMULATED = """
acc = pl.tile.full([16, 16], dtype=pl.FP32, value=0.0)
for i in pl.range(3):
    acc = pl.matmul_acc(acc, pl.load(x, [0, 0], [16, 16]), pl.load(x, [0, 0], [16, 16]))
pl.tpush_to_aiv(acc, split=0)
"""
HALF = """
t = pl.tpop_from_aic(shape=[8, 16], dtype=pl.FP32, split=1)
lane = pl.tile.get_subblock_idx()
out = pl.store(t + pl.cast(lane, pl.FP32), [lane * 8, 0], out)
"""
BLOCK = """
b = pl.tile.get_block_idx()
t = pl.tpop_from_aic(shape=[16, 16], dtype=pl.FP32)
out = pl.store(t + pl.cast(b, pl.FP32), [b * 16, 0], out)
"""
ON_BLOCKS = "out, _ = pl.spmd_submit(self.both, x, out, core_num=4)"


def grown(lines: str, turns: int) -> str:
    return f"for turn in pl.range({turns}):\n    " + lines.replace("\n", "\n    ")


PROGRAMS: dict[str, tuple[Any, list[tuple[int, int]]]] = {
    "one way": (OneWay, [(TURNS * N, N), (N, N), (TURNS * N, N)]),
    "there and back": (ThereAndBack, [(TURNS * N, N), (N, N), (TURNS * N, N)]),
    "accumulated": (grouped(ACCUMULATED, POP), [(16, 16), (64, 16)]),
    "more than slots": (grouped(f"{PUSH}\n" * 12, grown(POP, 12)), [(16, 16), (64, 16)]),
    "left over": (grouped(f"{PUSH}\n{PUSH}", POP), [(16, 16), (64, 16)]),
    "halves": (grouped(PUSH.replace("split=0", "split=1"), HALF), [(16, 16), (64, 16)]),
    "in part": (
        grouped("pl.tpush_to_aiv(pl.load(x, [0, 0], [16, 16], valid_shape=[5, 7]), split=0)", POP),
        [(16, 16), (64, 16)],
    ),
    "named buffers": (
        grouped(
            f'base = pl.import_peer_buffer(name="ring", peer_func="vector")\n{PUSH}',
            f'here = pl.reserve_buffer(name="ring", size=4096)\n{POP}\npl.tfree_to_aic(t, split=0)',
        ),
        [(16, 16), (64, 16)],
    ),
    "on blocks": (grouped(PUSH, BLOCK, ON_BLOCKS), [(16, 16), (64, 16)]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_group_read_back_hands_over_the_same(name: str) -> None:
    source, shapes = PROGRAMS[name]
    program = as_program(source)
    rng = np.random.default_rng(0)
    given = [rng.standard_normal(shape, np.float32) for shape in shapes]
    wanted, found = [torch.tensor(each) for each in given], [each.copy() for each in given]
    ir.compile(source, platform="interpret")(*wanted)
    run_exported(as_pto(program), program.entries[-1].name, found, {})
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(got, want.numpy())


def test_a_group_runs_natively() -> None:
    rng = np.random.default_rng(0)
    given = [rng.standard_normal(shape, np.float32) for shape in PROGRAMS["one way"][1]]
    found = [each.copy() for each in given]
    run_exported(as_pto(as_program(OneWay)), "main", found, {}, platform="cpu")
    np.testing.assert_allclose(found[2], given[0] @ given[1] + 1, rtol=1e-4, atol=1e-4)


BESIDE = "out = self.both(x, out)\npl.write(out, [0, 0], 1.0)"
UNBALANCED = grouped(f"{PUSH}\n{PUSH}", BLOCK, ON_BLOCKS)
WHOLE_TWICE = "pl.tpush_to_aic(pl.load(x, [0, 0], [16, 16]), split=0)\n" + HALF


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (Halves, "the cube multiplies, loads, stores and hands over, and this needs vectors"),
        (grouped(PUSH, POP, "out = self.both(x, out)\nout = self.both(x, out)"), "the group `both` after another one"),
        (grouped(PUSH, POP, grown("out = self.both(x, out)", 2)), "the group `both` in a loop"),
        (UNBALANCED, "may leave tiles in a pipe"),
        (grouped(PUSH, POP, BESIDE), "both cores of a group would do"),
        (grouped("pl.tpush_to_aiv(pl.exp(pl.load(x, [0, 0], [16, 16])), split=0)", POP), "this needs vectors"),
        (grouped(PUSH, POP, "out = self.cube(x, out)"), "outside of a group, where nobody takes it"),
        (grouped(PUSH.replace("split=0", "split=1") + "\nt = pl.tpop_from_aiv(shape=[16, 16], dtype=pl.FP32)",
                 WHOLE_TWICE), "of whole tiles, by two lanes"),
    ],
)  # fmt: skip
def test_what_the_sections_of_an_entry_do_not_say_is_refused(source: Any, why: str) -> None:
    with pytest.raises(pto.NoPtoError, match=why) as caught:
        as_pto(as_program(source))
    assert caught.value.place.is_known
