"""Validation of passes: the first one that changes the answer is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from unit.programs.programs import HALVES, SEVERAL, program_of, rows

from tilewright import ir
from tilewright.core.program import Program
from tilewright.passes.manager import PassManager
from tilewright.passes.pipeline import DEFAULT, Pass
from tilewright.programs.validate import WrongPassError
from tilewright.runtime import validate_ir

X = rows(16)
NAMES = ["frontend", *(each.name for each in DEFAULT)]


def quarters(program: Program) -> Program:
    """Take a quarter where the program takes half."""
    return program_of(str(program).replace("0.5", "0.25"))


def broken_at(place: int) -> PassManager:
    def run(program: Program) -> Program:
        return quarters(DEFAULT[place].run(program))

    wrong = replace(DEFAULT[place], run=run)
    return PassManager([*DEFAULT[:place], wrong, *DEFAULT[place + 1 :]])


def test_every_pass_keeps_the_answer() -> None:
    assert validate_ir(program_of(HALVES), [X, 0]) == NAMES
    assert validate_ir(program_of(HALVES), [X, 0], [X / 2]) == NAMES


@pytest.mark.parametrize("place", [1, 4, len(DEFAULT) - 1])
def test_the_first_pass_that_changes_the_answer_is_named(place: int) -> None:
    name, before = NAMES[place + 1], NAMES[place]
    with pytest.raises(
        WrongPassError, match=rf"^{name} changed the answer; it was right after {before}: `out` is wrong"
    ):
        validate_ir(program_of(HALVES), [X, 0], manager=broken_at(place))


def test_results_that_the_program_does_not_have_are_named() -> None:
    with pytest.raises(ValueError, match="Halves does not give y; it gives out, result 0"):
        validate_ir(program_of(HALVES), [X, 0], {"y": X})
    with pytest.raises(ValueError, match="2 outputs are expected, and Halves gives out"):
        validate_ir(program_of(HALVES), [X, 0], [X, X])


def test_a_program_that_was_wrong_from_the_start_says_so() -> None:
    with pytest.raises(WrongPassError, match="^frontend changed the answer: `out` is wrong: 1024 of 1024"):
        validate_ir(program_of(HALVES), [X, 0], {"out": X})


def test_a_pass_whose_program_does_not_run_is_named() -> None:
    def outside(program: Program) -> Program:
        return program_of(str(program).replace("[row, n]", "[row, n + 1]"))

    manager = PassManager([DEFAULT[0], Pass("Outside", outside)])
    with pytest.raises(WrongPassError, match="the program does not run after Outside"):
        validate_ir(program_of(HALVES), [X, 0], manager=manager)


def test_the_arguments_stay_as_they_are() -> None:
    x, out = torch.ones(16, 64), torch.zeros(16, 64)
    validate_ir(program_of(HALVES), [x, 0, out])
    assert torch.equal(x, torch.ones(16, 64)) and not out.any()


def test_arguments_can_be_named() -> None:
    assert validate_ir(program_of(HALVES), {"x": X, "n": 0}) == NAMES


def test_a_compiled_program_is_held_to_it_as_far_as_its_machine_code() -> None:
    compiled = ir.compile(program_of(HALVES))
    assert compiled.validate_ir([X, 0], [X / 2]) == [*NAMES, "native code"]


def test_dumps_in_a_folder_are_read(tmp_path: Path) -> None:
    broken_at(NAMES.index("Simplify") - 1).run_passes(program_of(HALVES), dump_ir=True, output_dir=tmp_path)
    with pytest.raises(WrongPassError, match="^Simplify changed the answer; it was right after UnrollLoops"):
        validate_ir(tmp_path, [X, 0])


def test_without_dumps_it_says_how_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no pass dump in .* compile it with dump_passes=True"):
        validate_ir(tmp_path, [X, 0])


def test_several_entries_cannot_be_told_apart() -> None:
    with pytest.raises(ValueError, match="has several entries: double, repeat"):
        validate_ir(program_of(SEVERAL), [X])


RACE = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.InOut[pl.Tensor[[16, 64], pl.FP32]]):
        for i in pl.parallel(4):
            pl.write(x, [i // 2, 0], pl.read(x, [i, 1]))
"""


def test_turns_that_race_are_found_before_any_pass() -> None:
    with pytest.raises(WrongPassError, match="does not run after frontend: .*turn i = 1 writes x"):
        validate_ir(program_of(RACE), [rows(16)])
