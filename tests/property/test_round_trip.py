"""Round trips: a program written out, as text or as bytes, reads back as the same program."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from property.programs import programs
from property.running import QUICK, parsed

from tilewright.core.equality import assert_structural_equal, structural_hash
from tilewright.core.program import Program
from tilewright.core.serialize import deserialize, serialize
from tilewright.passes.pipeline import DEFAULT


def check_text(program: Program) -> None:
    assert_structural_equal(parsed(str(program)), program)


def check_concise_text(program: Program) -> None:
    assert_structural_equal(parsed(program.as_python(concise=True)), program)


def check_bytes(program: Program) -> None:
    read = deserialize(serialize(program))
    assert_structural_equal(read, program)
    assert structural_hash(read) == structural_hash(program)
    assert str(read) == str(program)


def check_stage(text: str, passes: int) -> None:
    program = parsed(text)
    for step in DEFAULT[:passes]:
        program = step.run(program)
    check_text(program)
    check_concise_text(program)
    check_bytes(program)


NARROWED = """
M = pl.dynamic("M")


@pl.program
class P:
    @pl.function(type=pl.FunctionType.Inline)
    def last(self, x: pl.Tensor[[7, M], pl.FP32], out: pl.InOut[pl.Tensor[[8, 8], pl.FP32]]):
        for i in pl.range(0, 5, 2):
            t = pl.load(x, [0, 0], [7, 8], valid_shape=[i, 8])
        pl.store(t, [0, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[7, 8], pl.FP32], out: pl.InOut[pl.Tensor[[8, 8], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            self.last(x, out)
"""


TURNED = """
M = pl.dynamic("M")
N = pl.dynamic("N")


@pl.program
class P:
    @pl.function(type=pl.FunctionType.Inline)
    def turn(self, x: pl.Tensor[[M, N, M], pl.FP32], out: pl.InOut[pl.Tensor[[8, 8, 8], pl.FP32]]):
        t = pl.load(x, [0, 0, 0], [8, 8, 8])
        for i in pl.range(0, 5, 2):
            t = pl.transpose(t, -2, -1)
        pl.store(t, [0, 0, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[4, 3, 4], pl.FP32], out: pl.InOut[pl.Tensor[[8, 8, 8], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            self.turn(x, out)
"""


@pytest.mark.parametrize("text", [NARROWED, TURNED])
@pytest.mark.parametrize("passes", range(len(DEFAULT) + 1))
def test_what_a_loop_carries_reads_back_as_narrow_as_turns_make_it(text: str, passes: int) -> None:
    check_stage(text, passes)


stages = st.integers(0, len(DEFAULT))


@QUICK
@given(programs(), stages)
def test_a_program_reads_back_as_it_was_at_every_stage(text: str, passes: int) -> None:
    check_stage(text, passes)


def test_a_slice_of_what_an_op_changes_in_place_is_one_variable_however_it_is_called() -> None:
    check_stage(
        """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, x: pl.Tensor[[2, 1], pl.INT32], z: pl.InOut[pl.Tensor[[3, 1], pl.INT32]]):
        z = pl.assemble(z, x, [0, 0])
        for i in pl.range(1):
            part = pl.slice(z, [3, 1], [i * 3, 0])
            part = pl.store(pl.load(x, [0, 0], [2, 1]), [i % 2, 0], part)
""",
        0,
    )


def test_a_number_read_from_what_is_changed_in_place_is_no_slice_of_it() -> None:
    check_stage(
        """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, n: pl.Scalar[pl.INDEX], z: pl.InOut[pl.Tensor[[17], pl.BOOL]]):
        for j in pl.range(4):
            for i in pl.range(3):
                pl.write(z, [i], True)
            s = z[3]
            s = n == j
            pl.write(z, [j], s)
""",
        0,
    )


def test_what_a_store_gives_of_a_slice_is_related_to_what_it_is_a_slice_of() -> None:
    check_stage(
        """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, x: pl.Tensor[[2, 1], pl.INT32], z: pl.Out[pl.Tensor[[2, 1], pl.INT32]]):
        kept = pl.create_tensor([2, 1], dtype=pl.INT32)
        kept = pl.store(pl.load(x, [0, 0], [2, 1]), [0, 0], kept)
        for i in pl.range(2):
            part = pl.slice(kept, [1, 1], [i, 0])
            part = pl.store(pl.load(x, [i, 0], [1, 1]), [0, 0], part)
            part = pl.assemble(part, pl.load(x, [0, 0], [1, 1]), [0, 0])
        z = pl.store(pl.load(kept, [0, 0], [2, 1]), [0, 0], z)
""",
        0,
    )


@pytest.mark.parametrize("passes", range(len(DEFAULT) + 1))
def test_a_number_whose_name_a_loop_yields_later_is_known_before(passes: int) -> None:
    check_stage(
        """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, n: pl.Scalar[pl.INT32], z: pl.InOut[pl.Tensor[[17], pl.BOOL]]):
        c = pl.const(3, pl.INT32) < 2
        pl.write(z, [1], c)
        for k, b in pl.while_(init_values=(0, c)):
            pl.cond(k < n)
            k_end, c = pl.yield_(k + 1, b)
        pl.write(z, [0], c)
        d = True
        if n < 2:
            d = pl.yield_(c)
        else:
            d = pl.yield_(False)
        pl.write(z, [2], d)
""",
        passes,
    )
