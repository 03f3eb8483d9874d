"""The back-end interface: a third back end in forty lines, which counts ops instead of computing.

It is compiled for, called, shown and refused like the others, and nothing outside this file knows of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from unit.programs.programs import HALVES, program_of, rows

import tilewright.language as pl
from tilewright import ir
from tilewright.backends import interface
from tilewright.backends.interface import Backend, Code, Timed, find, serving
from tilewright.call.argument import Argument
from tilewright.call.devices import device_objection
from tilewright.call.frameworks import TorchTensors
from tilewright.core.expr import Call
from tilewright.core.program import Program
from tilewright.core.visitor import expressions, statements
from tilewright.errors import ArtifactError
from tilewright.programs.config import RunConfig

COUNTED: Counter[str] = Counter()


class Counting(Backend):
    """Counts the ops of a program when it runs, and writes nothing."""

    name = "count"
    stages = ("counts",)

    def compile(
        self,
        program: Program,
        entries: Sequence[str] | None = None,
        target: Any = None,
        options: Any = None,
        timed: Timed = nullcontext,
    ) -> Code:
        with timed("counting"):
            found = Counter(
                expr.op.spec.name
                for function in program.function_list
                for stmt in statements(function.body)
                for expr in expressions(stmt)
                if isinstance(expr, Call)
            )
        text = "".join(f"{name} {count}\n" for name, count in sorted(found.items()))
        return Code(self, target, {}, {}, (), {"counts": lambda: text})

    def load(self, program: Program, code: Code) -> Counts:
        return Counts(code)


class Counts:
    def __init__(self, code: Code) -> None:
        self.code = code

    def run(self, name: str, args: Sequence[Any], /) -> tuple[Any, ...]:
        COUNTED.update(line.split()[0] for line in self.code.texts["counts"]().splitlines())
        return ()

    def address(self, name: str, /) -> None:
        """Python stands for the host function."""


@pytest.fixture(autouse=True)
def counting(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(interface._backends, "count", Counting())  # pyright: ignore[reportPrivateUsage]
    COUNTED.clear()
    yield


def test_programs_are_compiled_for_it_by_name() -> None:
    compiled = ir.compile(program_of(HALVES), platform="count")
    assert compiled.platform == "count" and compiled.artifact is None
    assert "load 1\n" in compiled.stages["counts"] and "counting" in compiled.stages["profile"]


def test_calls_bind_and_check_arguments_and_reach_it() -> None:
    compiled = ir.compile(program_of(HALVES), platform="count")
    out = np.zeros_like(rows(3))
    compiled(rows(3), 0, out)
    assert COUNTED["load"] == 1 and not out.any()
    with pytest.raises(TypeError, match="is a tensor"):
        compiled("x", 0, out)


@pl.jit
def doubled(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.mul(pl.load(x, [0, 0], [4, 8]), 2.0), [0, 0], out)
    return out


def test_kernels_are_specialized_for_it_beside_their_other_programs() -> None:
    x, out = np.ones((4, 8), np.float32), np.zeros((4, 8), np.float32)
    doubled(x, out, config=RunConfig(platform="count"))
    assert COUNTED["mul"] == 1 and not out.any()
    doubled(x, out)
    assert (out == 2).all()


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a tensor on a device of its own, whose memory the third back end takes and no other."""
    torch = pytest.importorskip("torch")

    def argument(_: TorchTensors, value: Any) -> Argument:
        return Argument(value.data_ptr(), tuple(value.shape), (32, 4), pl.FP32, "abacus:1", value)

    monkeypatch.setattr(Counting, "devices", ("abacus",))
    monkeypatch.setattr(TorchTensors, "argument", argument)
    return torch.zeros(4, 8)


def numbers() -> Any:
    return np.ones((4, 8), np.float32)


def test_the_device_of_tensors_decides_which_back_end_takes_them(elsewhere: Any) -> None:
    assert serving("cpu") is find("cpu") and serving("abacus:0") is find("count") and serving("xpu") is None
    doubled(elsewhere, elsewhere.clone())
    assert COUNTED["mul"] == 1
    doubled(elsewhere, elsewhere.clone(), config=RunConfig())
    assert COUNTED["mul"] == 2


def test_a_back_end_that_is_named_takes_no_other_devices(elsewhere: Any) -> None:
    with pytest.raises(ValueError, match="^platform 'interpret' takes tensors on cpu, and those .* are on abacus:1$"):
        doubled(elsewhere, elsewhere.clone(), config=RunConfig(platform="interpret"))
    with pytest.raises(ValueError, match="^platform 'cpu' takes tensors on cpu, and those .* are on abacus:1$"):
        doubled(elsewhere, elsewhere.clone(), config=RunConfig(platform="cpu"))
    with pytest.raises(ValueError, match="^platform 'count' takes tensors on abacus, and those .* are on cpu$"):
        doubled(numbers(), numbers(), config=RunConfig(platform="count"))


def test_a_program_takes_tensors_of_its_back_end_alone(elsewhere: Any) -> None:
    compiled = doubled.compile(elsewhere, elsewhere.clone())
    assert compiled.platform == "count"
    with pytest.raises(ValueError, match="^`x` is on device cpu, and the program is of back end count, which takes"):
        compiled(numbers(), numbers())
    of_cpu = doubled.compile(numbers(), numbers())
    with pytest.raises(ValueError, match="^`x` is on device abacus:1, and the program is of back end cpu, which takes"):
        of_cpu(elsewhere, elsewhere.clone())


def test_tensors_of_two_devices_meet_in_no_call(elsewhere: Any) -> None:
    with pytest.raises(ValueError, match="^`x` is on abacus:1 and `out` on cpu: bring them to one device$"):
        doubled(elsewhere, numbers())


def test_a_device_that_no_back_end_takes_is_named_with_those_there_are() -> None:
    ours = "cpu, which takes cpu; interpret, which takes cpu; cuda, which takes cuda"
    assert f"whose memory no back end takes ({ours}; count, which takes cpu)" in device_objection("xpu:1")


def test_what_it_does_not_do_is_refused_in_its_name() -> None:
    compiled = ir.compile(program_of(HALVES), platform="count")
    with pytest.raises(ValueError, match="save it"):
        compiled.save("nowhere")
    with pytest.raises(ArtifactError, match="of back end 'count', which keeps none"):
        find("count").restored({}, {}, {}, ())


def test_it_is_listed_where_platforms_are() -> None:
    with pytest.raises(ValueError, match="Invalid platform 'npu'; one of cpu, interpret, cuda, count, a2a3sim"):
        ir.compile(program_of(HALVES), platform="npu")
