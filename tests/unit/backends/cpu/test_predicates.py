"""Predicates: tasks that run where a condition holds, and otherwise leave everything as it was."""

from __future__ import annotations

import re

import numpy as np
import pytest
from unit.backends.cpu.running import Array, Native, floats, program_of

import tilewright.language as pl
from tilewright.core.equality import structural_equal
from tilewright.core.program import Program
from tilewright.core.region import whole
from tilewright.core.serialize import deserialize, serialize
from tilewright.errors import ArgumentCountError, ParserSyntaxError, ParserTypeError, PredicateError
from tilewright.interpret.machine import run
from tilewright.passes.manager import PassManager

HEAD = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def rows(self, x: pl.Tensor[[4, 8], pl.FP32], out: pl.InOut[pl.Tensor[[4, 8], pl.FP32]]):
        i = pl.tile.get_block_idx()
        out = pl.store(pl.load(x, [i, 0], [1, 8]), [i, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[4, 8], pl.FP32], flag: pl.Tensor[[2], pl.INT32],
             out: pl.InOut[pl.Tensor[[4, 8], pl.FP32]]):
"""

FORMS = {
    "submit": ("out, task = pl.submit(self.rows, x, out, predicate=flag[1] > 0)\nreturn out", 1),
    "another name": ("y, task = pl.submit(self.rows, x, out, predicate=flag[1] > 0)\nreturn y", 1),
    "one name": (
        "both: pl.Tuple[pl.Tensor[[4, 8], pl.FP32], pl.TaskId] = pl.submit(self.rows, x, out, predicate=flag[1] > 0)\n"
        "return both[0]",
        1,
    ),
    "spmd_submit": ("out, task = pl.spmd_submit(self.rows, x, out, core_num=4, predicate=0 < flag[1])\nreturn out", 4),
    "with": ("with pl.spmd(4, predicate=flag[1] > 0):\n    out = self.rows(x, out)\nreturn out", 4),
    "with, as": (
        "with pl.spmd(4, predicate=flag[1] > 0) as first:\n    y = self.rows(x, out)\n"
        "y, task = pl.submit(self.rows, x, y, deps=[first], predicate=flag[1] > 0)\nreturn y",
        4,
    ),
    "for": (
        "for i in pl.spmd(4, predicate=flag[1] > 0):\n"
        "    y = pl.store(pl.load(x, [i, 0], [1, 8]), [i, 0], out)\nreturn out",
        4,
    ),
    "for, another name": (
        "for i in pl.spmd(4, predicate=flag[1] > 0):\n"
        "    y = pl.store(pl.load(x, [i, 0], [1, 8]), [i, 0], out)\nreturn y",
        4,
    ),
    "a loop inside": (
        "with pl.spmd(4, predicate=flag[1] > 0):\n    i = pl.tile.get_block_idx()\n"
        "    for c in pl.range(0, 8, 4):\n"
        "        out = pl.store(pl.load(x, [i, c], [1, 4]), [i, c], out)\nreturn out",
        4,
    ),
    "a branch inside": (
        "with pl.spmd(4, predicate=flag[1] > 0):\n    i = pl.tile.get_block_idx()\n"
        "    if i < 4:\n        out = pl.store(pl.load(x, [i, 0], [1, 8]), [i, 0], out)\nreturn out",
        4,
    ),
    "in a loop": (
        "for turn in pl.range(2):\n    out, task = pl.submit(self.rows, x, out, predicate=flag[turn] > 0)\nreturn out",
        1,
    ),
}


def program(body: str) -> Program:
    return program_of(HEAD + "".join(f"        {line}\n" for line in body.splitlines()))


def arguments(flag: int) -> list[Array]:
    x = floats(4, 8)
    return [x, np.array([0, flag], np.int32), np.full((4, 8), -1, np.float32)]


def outcomes(source: Program, args: list[Array]) -> list[tuple[Array, Array]]:
    """Return the last argument and the result: of native code, and of the program before and after its passes."""
    given, returned = Native(source).run([np.array(arg) for arg in args])
    found = [(given[-1], returned[0])]
    for each in (source, PassManager.get_strategy().run_passes(source)):
        copies = [np.array(arg) for arg in args]
        found.append((copies[-1], run(each, "main", [whole(arg) for arg in copies])[0].live))
    return found


@pytest.mark.parametrize("form", FORMS)
def test_a_task_runs_where_its_predicate_holds(form: str) -> None:
    body, rows = FORMS[form]
    x = arguments(1)[0]
    for out, returned in outcomes(program(body), arguments(1)):
        assert out[:rows].tolist() == x[:rows].tolist()
        assert (out[rows:] == -1).all()
        assert returned.tolist() == out.tolist()


@pytest.mark.parametrize("form", FORMS)
def test_a_task_that_is_skipped_gives_back_what_was_there(form: str) -> None:
    for out, returned in outcomes(program(FORMS[form][0]), arguments(0)):
        assert (out == -1).all()
        assert (returned == -1).all()


@pytest.mark.parametrize("form", FORMS)
def test_a_predicate_is_part_of_the_program(form: str) -> None:
    source = program(FORMS[form][0])
    text = str(source)
    assert "predicate=" in text
    again = pl.parse(text)
    assert isinstance(again, Program) and str(again) == text
    assert structural_equal(again, source) and structural_equal(deserialize(serialize(source)), source)
    without = re.sub(r", predicate=\([^)]*\)", "", text)
    assert not structural_equal(pl.parse(without), source)


def test_a_predicate_sees_what_earlier_tasks_wrote() -> None:
    text = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def count(self, flag: pl.InOut[pl.Tensor[[1], pl.INT32]]):
        flag = pl.write(flag, [0], pl.read(flag, [0]) + 1)
        return flag

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, flag: pl.InOut[pl.Tensor[[1], pl.INT32]]):
        for turn in pl.range(9):
            flag, task = pl.submit(self.count, flag, predicate=flag[0] < 5)
        return flag
"""
    for flag, _ in outcomes(program_of(text), [np.array([2], np.int32)]):
        assert flag.tolist() == [5]


def test_a_skipped_task_cannot_make_its_result() -> None:
    text = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def made(self, x: pl.Tensor[[4], pl.FP32]):
        return pl.add(x, x)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[4], pl.FP32], flag: pl.Tensor[[1], pl.INT32]):
        y, task = pl.submit(self.made, x, predicate=flag[0] > 0)
        return y
"""
    with pytest.raises(PredicateError, match="gives back what it was given, but `made` makes"):
        Native(program_of(text))


def test_a_tile_made_in_a_skipped_grid_cannot_be_read_after_it() -> None:
    body = """
    with pl.spmd(4, predicate=flag[1] > 0):
        i = pl.tile.get_block_idx()
        s = pl.read(x, [i, 0])
    if s > 0:
        out = self.rows(x, out)
    return out
    """
    with pytest.raises(PredicateError, match="gives back what it was given, but .* makes"):
        Native(program("\n".join(line[4:] for line in body.strip("\n").splitlines())))


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ("1", ParserSyntaxError, "single comparison"),
        ("flag[1]", ParserSyntaxError, "single comparison"),
        ("True", ParserSyntaxError, "single comparison"),
        ("0 < flag[0] < 3", ParserSyntaxError, "single comparison"),
        ("flag[0] > flag[1]", ParserSyntaxError, "must compare one tensor element"),
        ("1 > 0", ParserSyntaxError, "must compare one tensor element"),
        ("flag > 0", ParserSyntaxError, "must compare one tensor element"),
        ("out.shape[0] > 0", ParserTypeError, "reads an element of a tensor"),
        ("x[0, 0] > 0", ParserTypeError, "signed integers, got fp32"),
        ("x[0] > 0", ParserTypeError, "takes 2 indices"),
        ("flag[-1] > 0", ParserTypeError, "non-negative"),
        ("flag[1.5] > 0", ParserTypeError, "must be an integer"),
    ],
)
def test_a_predicate_compares_one_element_with_a_number(value: str, error: type[Exception], message: str) -> None:
    grid = f"for i in pl.spmd(4, predicate={value}):\n    y = pl.load(x, [i, 0], [1, 8])"
    for body in (f"y, task = pl.submit(self.rows, x, out, predicate={value})", grid):
        with pytest.raises(error, match=message):
            program(body)


def test_a_predicate_waits_for_the_task_that_makes_its_element() -> None:
    text = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def count(self, flag: pl.InOut[pl.Tensor[[1], pl.INT32]]):
        flag = pl.write(flag, [0], pl.read(flag, [0]) + 1)
        return flag

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, flag: pl.InOut[pl.Tensor[[1], pl.INT32]]):
        counted, first = pl.submit(self.count, flag)
        flag, second = pl.submit(self.count, counted, {deps}predicate=counted[0] > 0)
        return flag
"""
    for flag, _ in outcomes(program_of(text.format(deps="deps=[first], ")), [np.array([2], np.int32)]):
        assert flag.tolist() == [4]
    with pytest.raises(ParserSyntaxError, match="is not in deps="):
        program_of(text.format(deps=""))


def test_a_grid_of_tasks_says_how_many_blocks_it_has() -> None:
    with pytest.raises(ParserSyntaxError, match="requires the core_num keyword"):
        program("y, task = pl.spmd_submit(self.rows, x, out)")


def test_a_plain_task_has_no_blocks() -> None:
    with pytest.raises(ArgumentCountError, match="does not accept keyword argument 'core_num'"):
        program("y, task = pl.submit(self.rows, x, out, core_num=4)")


def test_a_kernel_in_place_takes_no_predicate() -> None:
    with pytest.raises(ParserSyntaxError, match="Unknown keyword argument 'predicate' in pl.at"):
        program("with pl.at(level=pl.Level.CORE_GROUP, predicate=flag[0] > 0):\n    pass")
