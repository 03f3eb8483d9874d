"""The examples: each runs, agrees with its torch reference, and its programs survive being printed."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from examples.loading import LOADED, Example, Kernel, on, several

import tilewright.language as pl
from tilewright import ir
from tilewright.core.program import Program
from tilewright.programs.loading import load as load_artifact
from tilewright.runtime import CompiledProgram, RunConfig

DEMO = "softmax"
"""What `make demo` runs; the others print one line."""

TOLERANCE = {  # relative and absolute, against a reference that rounds and sums in another order
    torch.float32: (1e-4, 1e-4),
    torch.float16: (1e-2, 2e-3),
    torch.bfloat16: (2e-2, 1e-2),
}

KERNELS = [pytest.param(e, k, id=f"{e.name}-{name}") for e in LOADED.values() for name, k in e.kernels.items()]
JITS = [param for param in KERNELS if isinstance(param.values[1], pl.JITFunction)]
PROGRAMS = [
    pytest.param(e, e.program(k), id=f"{e.name}-{name}") for e in LOADED.values() for name, k in e.kernels.items()
]

each_kernel = pytest.mark.parametrize(("example", "kernel"), KERNELS)
each_program = pytest.mark.parametrize(("example", "program"), PROGRAMS)


def interpreted(program: Program) -> CompiledProgram:
    return ir.compile(program, platform="interpret")


def in_order(program: CompiledProgram, inputs: tuple[Any, ...], outputs: list[Any]) -> list[Any]:
    """Return the arguments of an in-place call: outputs where the entry has them, inputs elsewhere."""
    given, made = iter(inputs), iter(outputs)
    positions = range(len(inputs) + len(outputs))
    return [next(made) if position in program.output_indices else next(given) for position in positions]


def as_numpy(value: Any) -> Any:
    """Return a tensor as a NumPy array of its own memory; scalars stay what they are."""
    if not isinstance(value, torch.Tensor):
        return value
    bits: Any = value.view(torch.int16).numpy() if value.dtype == torch.bfloat16 else value.numpy()
    return bits.view(ml_dtypes.bfloat16) if value.dtype == torch.bfloat16 else bits


def assert_close(actual: Any, expected: torch.Tensor) -> None:
    rtol, atol = TOLERANCE[expected.dtype]
    torch.testing.assert_close(actual, expected, rtol=rtol, atol=atol)


def check(results: object, expected: tuple[torch.Tensor, ...]) -> None:
    for actual, wanted in zip(several(results), expected, strict=True):
        assert_close(actual, wanted)


def test_every_example_shows_a_kernel() -> None:
    assert [example.name for example in LOADED.values() if not example.kernels] == []


@each_kernel
def test_return_style_agrees_with_torch(
    example: Example, kernel: Kernel, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = on(target, kernel)
    for seed, threads in ((0, 1), (1, 2)):
        monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", str(threads))
        inputs = example.make_inputs(seed)
        check(run(*inputs), example.expected(inputs))


@each_kernel
def test_in_place_style_overwrites_whatever_the_outputs_held(
    example: Example, kernel: Kernel, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = example.make_inputs(0)
    expected = example.expected(inputs)
    compiled = example.compiled(kernel, target)
    for threads in (1, 2):
        monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", str(threads))
        outputs = [torch.full_like(tensor, float("nan")) for tensor in expected]
        assert compiled(*in_order(compiled, inputs, outputs)) is None
        check(tuple(outputs), expected)


@each_kernel
def test_numpy_arrays_give_what_torch_tensors_give(example: Example, kernel: Kernel) -> None:
    inputs, run = example.make_inputs(0), on("interpret", kernel)
    arrays = several(run(*map(as_numpy, inputs)))
    assert all(isinstance(array, np.ndarray) for array in arrays)
    for array, tensor in zip(arrays, several(run(*inputs)), strict=True):
        np.testing.assert_array_equal(array, as_numpy(tensor))


@each_kernel
def test_numpy_outputs_are_written_in_place(example: Example, kernel: Kernel) -> None:
    inputs, run = example.make_inputs(0), on("interpret", kernel)
    outputs = [as_numpy(torch.full_like(tensor, float("nan"))) for tensor in example.expected(inputs)]
    run(*in_order(example.compiled(kernel, "interpret"), tuple(map(as_numpy, inputs)), outputs))
    for array, tensor in zip(outputs, several(run(*inputs)), strict=True):
        np.testing.assert_array_equal(array, as_numpy(tensor))


@each_kernel
def test_inputs_are_left_as_they_were(example: Example, kernel: Kernel) -> None:
    inputs = example.make_inputs(0)
    on("interpret", kernel)(*inputs)
    torch.testing.assert_close(inputs, example.make_inputs(0), rtol=0, atol=0)


@pytest.mark.parametrize(("example", "kernel"), JITS)
def test_one_compiled_program_serves_all_the_inputs_of_an_example(example: Example, kernel: pl.JITFunction) -> None:
    config = RunConfig(platform="interpret")
    first, second = (kernel.compile(*example.make_inputs(seed), config=config) for seed in (0, 1))
    assert first is second


@each_program
def test_an_artifact_holds_all_that_running_takes(example: Example, program: Program) -> None:
    artifact = ir.compile(program).artifact
    assert artifact is not None
    inputs, loaded = example.make_inputs(0), load_artifact(artifact.to_bytes())
    check(loaded(*inputs), example.expected(inputs))


@each_program
def test_printed_program_parses_to_one_that_prints_the_same(example: Example, program: Program) -> None:
    parsed = pl.parse(str(program))
    assert isinstance(parsed, Program)
    assert parsed.name == program.name
    assert str(parsed) == str(program)


@each_program
@pytest.mark.parametrize("concise", [False, True])
def test_printed_program_computes_the_same(example: Example, program: Program, concise: bool) -> None:
    inputs = example.make_inputs(0)
    parsed = pl.parse(program.as_python(concise=concise))
    assert isinstance(parsed, Program)
    results = zip(several(interpreted(parsed)(*inputs)), several(interpreted(program)(*inputs)), strict=True)
    for actual, expected in results:
        torch.testing.assert_close(actual, expected, rtol=0, atol=0)


@pytest.mark.parametrize("example", [e for e in LOADED.values() if e.name != DEMO], ids=lambda e: e.name)
def test_main_says_in_one_line_what_it_did(example: Example, capsys: pytest.CaptureFixture[str]) -> None:
    example.main()
    output = capsys.readouterr().out
    assert output.startswith(f"{example.name}: ")
    assert output.count("\n") == 1


def test_the_demo_shows_the_kernel_its_error_its_speed_and_what_to_read_next(
    capsys: pytest.CaptureFixture[str],
) -> None:
    LOADED[DEMO].main()
    output = capsys.readouterr().out
    shown = ("@pl.jit", "pl.tile.row_max", "from torch.softmax", "compile", "times its speed", "attention")
    assert not [text for text in shown if text not in output]
