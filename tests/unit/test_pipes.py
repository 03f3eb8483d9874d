"""Pipes: functions of a group hand each other tiles, natively and in the interpreter alike."""
# pyright: reportCallIssue=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# Functions of a program call each other, which type checkers do not know.

from __future__ import annotations

import pytest
import torch

import tilewright.language as pl
from tilewright import ir
from tilewright.errors import AttributeValueError, ExecutionError

N, TURNS = 16, 5
Square = pl.Tensor[[N, N], pl.FP32]
Many = pl.Tensor[[TURNS * N, N], pl.FP32]


@pl.program
class OneWay:
    """The cube multiplies, the vector side adds one."""

    @pl.function(type=pl.FunctionType.AIC)
    def cube(self, a: Many, b: Square, out: pl.InOut[Many]) -> Many:
        pl.system.aic_initialize_pipe(dir_mask=1, slot_size=1024)
        for i in pl.range(TURNS):
            product = pl.matmul(pl.load(a, [i * N, 0], [N, N]), pl.load(b, [0, 0], [N, N]))
            pl.tpush_to_aiv(product, split=0)
        return out

    @pl.function(type=pl.FunctionType.AIV)
    def vector(self, a: Many, b: Square, out: pl.InOut[Many]) -> Many:
        pl.system.aiv_initialize_pipe(dir_mask=1, slot_size=1024)
        for i in pl.range(TURNS):
            product: pl.Tile[[N, N], pl.FP32] = pl.tpop_from_aic(split=0)
            out = pl.store(product + 1.0, [i * N, 0], out)
            pl.tfree_to_aic(product, split=0)
        return out

    @pl.function(type=pl.FunctionType.Group)
    def both(self, a: Many, b: Square, out: pl.InOut[Many]) -> Many:
        out = self.cube(a, b, out)
        out = self.vector(a, b, out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: Many, b: Square, out: pl.InOut[Many]) -> Many:
        out = self.both(a, b, out)
        return out


def test_what_one_side_pushes_the_other_takes_in_order(target: str) -> None:
    a, b, out = torch.randn(TURNS * N, N), torch.randn(N, N), torch.zeros(TURNS * N, N)
    ir.compile(OneWay, platform=target)(a, b, out)
    torch.testing.assert_close(out, a @ b + 1, rtol=1e-4, atol=1e-4)


@pl.program
class ThereAndBack:
    """The vector side prepares, the cube multiplies, the vector side finishes; each turn waits for the other side."""

    @pl.function(type=pl.FunctionType.AIV)
    def vector(self, a: Many, b: Square, out: pl.InOut[Many]) -> Many:
        for i in pl.range(TURNS):
            pl.tpush_to_aic(pl.load(a, [i * N, 0], [N, N]) * 2.0, split=0, id=1)
            pl.tpush_to_aic(pl.load(b, [0, 0], [N, N]), split=0)
            product = pl.tpop_from_aic(shape=[N, N], dtype=pl.FP32, split=0)
            out = pl.store(pl.exp(product * 0.01), [i * N, 0], out)
        return out

    @pl.function(type=pl.FunctionType.AIC)
    def cube(self, a: Many, b: Square, out: pl.InOut[Many]) -> Many:
        for _ in pl.range(TURNS):
            rhs = pl.tpop_from_aiv(shape=[N, N], dtype=pl.FP32)
            lhs = pl.tpop_from_aiv(shape=[N, N], dtype=pl.FP32, id=1)
            pl.tpush_to_aiv(pl.matmul(lhs, rhs), split=0)
        return out

    @pl.function(type=pl.FunctionType.Group)
    def both(self, a: Many, b: Square, out: pl.InOut[Many]) -> Many:
        out = self.cube(a, b, out)
        out = self.vector(a, b, out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: Many, b: Square, out: pl.InOut[Many]) -> Many:
        out = self.both(a, b, out)
        return out


def test_sides_that_wait_for_each_other_take_turns(target: str) -> None:
    a, b, out = torch.randn(TURNS * N, N), torch.randn(N, N), torch.zeros(TURNS * N, N)
    ir.compile(ThereAndBack, platform=target)(a, b, out)
    torch.testing.assert_close(out, torch.exp(2 * a @ b * 0.01), rtol=1e-4, atol=1e-4)


Half = pl.Tensor[[N // 2, N], pl.FP32]


@pl.program
class Halves:
    """Two lanes take half of each product, and hand half of the next operand back."""

    @pl.function(type=pl.FunctionType.AIC)
    def cube(self, a: Square, b: Square, out: pl.InOut[Square]) -> Square:
        product = pl.matmul(pl.load(a, [0, 0], [N, N]), pl.load(b, [0, 0], [N, N]))
        pl.tpush_to_aiv(product, split=1)
        scaled = pl.tpop_from_aiv(shape=[N, N], dtype=pl.FP32, split=1)
        out = pl.store(scaled, [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.AIV)
    def vector(self, a: Square, b: Square, out: pl.InOut[Square]) -> Square:
        part: pl.Tile[[N // 2, N], pl.FP32] = pl.tpop_from_aic(split=1)
        lane = pl.cast(pl.tile.get_subblock_idx(), pl.FP32)
        pl.tpush_to_aic(part + lane, split=1)
        return out

    @pl.function(type=pl.FunctionType.Group)
    def both(self, a: Square, b: Square, out: pl.InOut[Square]) -> Square:
        out = self.cube(a, b, out)
        out = self.vector(a, b, out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: Square, b: Square, out: pl.InOut[Square]) -> Square:
        out = self.both(a, b, out)
        return out


def test_two_lanes_take_and_give_halves(target: str) -> None:
    a, b, out = torch.randn(N, N), torch.randn(N, N), torch.zeros(N, N)
    ir.compile(Halves, platform=target)(a, b, out)
    lane = torch.arange(N)[:, None] // (N // 2)
    torch.testing.assert_close(out, a @ b + lane, rtol=1e-4, atol=1e-4)


def grouped(cube: str, vector: str, main: str = "out = self.both(x, out)", rows: int = 64) -> ir.Program:
    """Return a program whose sides have these bodies, around tiles of a square `x`."""

    def function(name: str, kind: str, body: str) -> list[str]:
        head = f"def {name}(self, x: pl.Tensor[[16, 16], pl.FP32], out: pl.InOut[pl.Tensor[[{rows}, 16], pl.FP32]])"
        lines = [f"@pl.function(type=pl.FunctionType.{kind})", f"{head} -> pl.Tensor[[{rows}, 16], pl.FP32]:"]
        return ["    " + line for line in [*lines, *("    " + line for line in body.splitlines()), "    return out"]]

    both = "out = self.cube(x, out)\nout = self.vector(x, out)"
    functions = [("cube", "AIC", cube), ("vector", "AIV", vector), ("both", "Group", both)]
    text = [line for one in [*functions, ("main", "Orchestration", main)] for line in [*function(*one), ""]]
    program = pl.parse("\n".join(["@pl.program", "class Grouped:", *text]))
    assert isinstance(program, ir.Program)
    return program


def run(program: ir.Program, target: str, rows: int = 64) -> tuple[torch.Tensor, torch.Tensor]:
    x, out = torch.randn(16, 16), torch.zeros(rows, 16)
    ir.compile(program, platform=target)(x, out)
    return x, out


PUSH = "pl.tpush_to_aiv(pl.load(x, [0, 0], [16, 16]), split=0)"
POP = "t = pl.tpop_from_aic(shape=[16, 16], dtype=pl.FP32)\nout = pl.store(t, [0, 0], out)"


def test_taking_what_nobody_pushes_is_an_error(target: str) -> None:
    with pytest.raises(ExecutionError, match="wait for each other"):
        run(grouped("pass", POP), target)


def test_sides_that_wait_for_each_other_in_vain_are_an_error(target: str) -> None:
    waiting = "s = pl.tpop_from_aiv(shape=[16, 16], dtype=pl.FP32)\npl.tpush_to_aiv(s, split=0)"
    with pytest.raises(ExecutionError, match="wait for each other"):
        run(grouped(waiting, f"{POP}\npl.tpush_to_aic(t, split=0)"), target)


def test_another_tile_than_was_pushed_is_an_error(target: str) -> None:
    with pytest.raises(ExecutionError, match=r"pushed.*is taken|pushed than is taken"):
        run(grouped(PUSH, POP.replace("FP32", "FP16").replace("out = pl.store(t, [0, 0], out)", "")), target)


def test_an_error_on_one_side_ends_the_other(target: str) -> None:
    failing = 'pl.system.device_assert(pl.read(x, [0, 0]) > 1000.0, "too low")\n' + PUSH
    with pytest.raises(ExecutionError, match="too low"):
        run(grouped(failing, POP), target)


def test_what_is_left_in_a_queue_is_forgotten(target: str) -> None:
    x, out = run(grouped(f"{PUSH}\n{PUSH}\n{PUSH}", POP), target)
    torch.testing.assert_close(out[:16], x)


def test_a_partly_valid_tile_is_taken_as_it_was_pushed(target: str) -> None:
    some = "pl.tpush_to_aiv(pl.load(x, [0, 0], [16, 16], valid_shape=[5, 7]), split=0)"
    x, out = run(grouped(some, POP), target)
    torch.testing.assert_close(out[:5, :7], x[:5, :7])
    assert out.count_nonzero() == 35


def test_groups_run_beside_each_other(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", "2")
    block = "b = pl.tile.get_block_idx()\n"
    pop = f"{block}t = pl.tpop_from_aic(shape=[16, 16], dtype=pl.FP32)\n"
    pop += "out = pl.store(t + pl.cast(b, pl.FP32), [b * 16, 0], out)"
    x, out = run(grouped(PUSH, pop, "out, _ = pl.spmd_submit(self.both, x, out, core_num=4)"), target)
    torch.testing.assert_close(out, torch.cat([x + k for k in range(4)]))


def test_outside_of_a_group_nothing_can_be_pushed(target: str) -> None:
    with pytest.raises(ExecutionError, match="Group function"):
        run(grouped(PUSH, POP, "out = self.cube(x, out)"), target)


def test_the_program_prints_and_parses() -> None:
    parsed = pl.parse(str(ThereAndBack))
    assert str(parsed) == str(ThereAndBack)


def test_what_is_taken_and_not_used_is_taken(target: str) -> None:
    pushes = f"{PUSH}\npl.tpush_to_aiv(pl.load(x, [0, 0], [16, 16]) * 2.0, split=0)"
    x, out = run(grouped(pushes, f"s = pl.tpop_from_aic(shape=[16, 16], dtype=pl.FP32)\n{POP}"), target)
    torch.testing.assert_close(out[:16], 2 * x)


def test_sides_wait_at_the_barriers_of_a_launch(target: str) -> None:
    blocks, sync, first = 24, "pl.system.syncall()", "b = pl.tile.get_block_idx()"
    cube = f"{PUSH}\n{sync}\n{sync}"
    vector = [
        first,
        "t = pl.tpop_from_aic(shape=[16, 16], dtype=pl.FP32)",
        "out = pl.store(t + pl.cast(b, pl.FP32), [b * 16, 0], out)",
        sync,
        f"other = pl.load(out, [(b + 1) % {blocks} * 16, 0], [16, 16])",
        sync,
        "out = pl.store(other, [b * 16, 0], out)",
    ]
    main = f"out, _ = pl.spmd_submit(self.both, x, out, core_num={blocks})"
    x, out = run(grouped(cube, "\n".join(vector), main, 16 * blocks), target, 16 * blocks)
    torch.testing.assert_close(out, torch.cat([x + (k + 1) % blocks for k in range(blocks)]))


@pytest.mark.parametrize(
    ("cube", "message"),
    [
        ('base = pl.import_peer_buffer(name="ring", peer_func="vector")', "'vector' reserves no buffer named 'ring'"),
        ('base = pl.import_peer_buffer(name="ring", peer_func="other")', "there is no function 'other'"),
        (
            "t = pl.tpop_from_aiv(shape=[16, 16], dtype=pl.FP32, id=1)\npl.tfree_to_aiv(t, id=2)",
            "taken from pipe 1, not from 2",
        ),
    ],
)
def test_both_ends_of_a_pipe_agree(cube: str, message: str) -> None:
    with pytest.raises(AttributeValueError, match=message):
        ir.compile(grouped(f"{cube}\n{PUSH}", POP))


def test_a_buffer_that_the_peer_reserves_is_found(target: str) -> None:
    cube = f'base = pl.import_peer_buffer(name="ring", peer_func="vector")\n{PUSH}'
    x, out = run(grouped(cube, f'here = pl.reserve_buffer(name="ring", size=4096)\n{POP}'), target)
    torch.testing.assert_close(out[:16], x)
