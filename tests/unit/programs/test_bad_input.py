"""Calls with wrong arguments: each is refused in the caller's words, and nothing has been written.

Odd but legal arguments, whatever their strides, get the right answer.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from numpy.lib.stride_tricks import as_strided

import tilewright.language as pl
from tilewright import ir
from tilewright.core.program import Program
from tilewright.frontend.programs import as_program
from tilewright.runtime import CompiledProgram

ROWS, COLUMNS, UNTOUCHED = 4, 8, -77.0
TEXT = """
import tilewright.language as pl
M = pl.dynamic("M")

@pl.program
class Twice:
    @pl.function(type=pl.FunctionType.InCore)
    def row(self, x: pl.Tensor[[M, 8], pl.FP32], i: pl.Scalar[pl.INDEX], n: pl.Scalar[pl.INT8],
            out: pl.Out[pl.Tensor[[M, 8], pl.FP32]]):
        t = pl.add(pl.load(x, [i, 0], [1, 8]), pl.cast(n, pl.FP32))
        return pl.store(pl.add(t, t), [i, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[M, 8], pl.FP32], n: pl.Scalar[pl.INT8], out: pl.Out[pl.Tensor[[M, 8], pl.FP32]]):
        for i in pl.parallel(pl.tensor.dim(x, 0)):
            out = self.row(x, i, n, out)
        return out
"""
UNDECLARED = """
import tilewright.language as pl

@pl.program
class Undeclared:
    @pl.function(type=pl.FunctionType.InCore)
    def clear(self, a: pl.Tensor[[4, 8], pl.FP32]):
        b = pl.slice(a, [4, 8], [0, 0])
        pl.write(b, [0, 0], 0.0)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[4, 8], pl.FP32], y: pl.Tensor[[4, 8], pl.FP32]):
        self.clear(x)
"""

Given = Callable[[Any, Any], tuple[Any, ...]]
"""Makes the arguments of a call from a good input and a good output."""


WARM = "cpu, called often"
"""Calls that the shortcut of a program looks at first."""


@cache
def compiled(text: str, platform: str) -> CompiledProgram:
    program = pl.parse(text)
    assert isinstance(program, Program)
    made = ir.compile(program, platform="cpu" if platform == WARM else platform)
    if platform == WARM:
        warm(made)
    return made


def warm(program: CompiledProgram) -> None:
    """Call a program in place until it takes its shortcut, where it has one."""
    for make in FRAMEWORKS.values():
        for _ in range(4):
            tensors = [make(numbers()) for info in program.param_infos if info.dims in (("M", 8), (4, 8))]
            if len(tensors) == 2:
                program(*(tensors if len(program.param_names) == 2 else (tensors[0], 1, tensors[1])))


@pytest.fixture(params=["cpu", WARM, "interpret"])
def platform(request: pytest.FixtureRequest) -> str:
    return request.param


def numbers(rows: int = ROWS) -> Any:
    values: Any = np.arange(rows * COLUMNS, dtype=np.float32)
    return values.reshape(rows, COLUMNS)


def as_numpy(array: Any) -> Any:
    return array


def as_torch(array: Any) -> Any:
    return torch.as_tensor(array)


FRAMEWORKS = {"numpy": as_numpy, "torch": as_torch}


def refuse(platform: str, arguments: tuple[Any, ...], error: type[Exception], message: str, memory: Any) -> None:
    """Fail unless a call raises such an error and leaves the memory of its output as it was."""
    before = memory.tobytes()
    with pytest.raises(error) as caught:
        compiled(TEXT, platform)(*arguments)
    assert message in str(caught.value)
    assert memory.tobytes() == before, "a call that was refused has written"


BOTH: dict[str, tuple[Given, type[Exception], str]] = {
    "too few": (lambda x, out: (x,), TypeError, "expects 3 (in-place) or 2 (return) arguments, got 1"),
    "too many": (lambda x, out: (x, 1, out, out), TypeError, "expects 3 (in-place) or 2 (return) arguments, got 4"),
    "a list": (lambda x, out: ([[1.0] * 8], 1, out), TypeError, "`x` is a tensor: pass a torch tensor, a NumPy"),
    "nothing": (
        lambda x, out: (None, 1, out),
        TypeError,
        "`x` is a tensor: pass a torch tensor, a NumPy array",
    ),
    "no output": (
        lambda x, out: (x, 1, None),
        TypeError,
        "`out` is a tensor: pass a torch tensor, a NumPy array",
    ),
    "a number": (
        lambda x, out: (3.0, 1, out),
        TypeError,
        "`x` is a tensor: pass a torch tensor, a NumPy array",
    ),
    "a tensor as scalar": (lambda x, out: (x, x, out), TypeError, "`n` is a scalar, got a tensor"),
    "text as scalar": (lambda x, out: (x, "1", out), TypeError, "`n` is a scalar of int8, got str"),
    "a float as integer": (lambda x, out: (x, 1.0, out), TypeError, "`n` is a scalar of int8, which cannot hold 1.0"),
    "a bool as integer": (lambda x, out: (x, True, out), TypeError, "`n` is a scalar of int8, got bool"),
    "a large scalar": (lambda x, out: (x, 128, out), TypeError, "`n` is a scalar of int8, which cannot hold 128"),
    "rank": (lambda x, out: (x[0], 1, out), ValueError, "`x` expects rank 2, got 1"),
    "columns": (lambda x, out: (x[:, :7], 1, out), ValueError, "`x` expects shape [M, 8] = [4, 8], got [4, 7]"),
    "rows": (lambda x, out: (x[:3], 1, out), ValueError, "`out` expects shape [M, 8] = [3, 8], got [4, 8]"),
    "the output's shape": (lambda x, out: (x, 1, out.T), ValueError, "`out` expects shape [M, 8] = [4, 8], got [8, 4]"),
    "the same array": (lambda x, out: (out, 1, out), ValueError, "`out` is written and shares memory with `x`"),
    "the same rows": (lambda x, out: (out[:3], 1, out[1:]), ValueError, "`out` is written and shares memory with `x`"),
}


@pytest.mark.parametrize("case", BOTH)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_wrong_argument_is_refused(case: str, framework: str, platform: str) -> None:
    given, error, message = BOTH[case]
    memory = np.full((ROWS, COLUMNS), UNTOUCHED, np.float32)
    make = FRAMEWORKS[framework]
    refuse(platform, given(make(numbers()), make(memory)), error, message, memory)


def frozen(array: Any) -> Any:
    array = array.view()
    array.flags.writeable = False
    return array


NUMPY: dict[str, tuple[Given, type[Exception], str]] = {
    "fp64": (
        lambda x, out: (x.astype("f8"), 1, out),
        TypeError,
        "`x` expects dtype fp32, got fp64",
    ),
    "objects": (lambda x, out: (x.astype(object), 1, out), TypeError, "`x`: Unsupported array dtype object; supported"),
    "records": (lambda x, out: (x.view("f4,f4"), 1, out), TypeError, "`x`: Unsupported array dtype [("),
    "another type": (lambda x, out: (x.astype("i4"), 1, out), TypeError, "`x` expects dtype fp32, got int32"),
    "the output's type": (lambda x, out: (x, 1, out.view("i4")), TypeError, "`out` expects dtype fp32, got int32"),
    "byte order": (lambda x, out: (x.astype(">f4"), 1, out), ValueError, "`x` is in another byte order: pass `x.asty"),
    "the output's bytes": (lambda x, out: (x, 1, out.view(">f4")), ValueError, "`out` is in another byte order"),
    "a mask": (lambda x, out: (np.ma.array(x), 1, out), ValueError, "`x` is a masked array"),
    "read-only": (lambda x, out: (x, 1, frozen(out)), ValueError, "`out` is written, but the array given is read-only"),
    "expanded": (
        lambda x, out: (x, 1, as_strided(out, (4, 8), (0, 4))),
        ValueError,
        "`out` is written, but several of its elements share memory",
    ),
    "no axes": (lambda x, out: (np.float32(1), 1, out), TypeError, "`x` is a tensor"),
    "an array of no axes": (lambda x, out: (np.array(1.0, "f4"), 1, out), ValueError, "`x` expects rank 2, got 0"),
}


@pytest.mark.parametrize("case", NUMPY)
def test_a_wrong_array_is_refused(case: str, platform: str) -> None:
    given, error, message = NUMPY[case]
    memory = np.full((ROWS, COLUMNS), UNTOUCHED, np.float32)
    refuse(platform, given(numbers(), memory), error, message, memory)


def emptied(tensor: Any) -> Any:
    tensor = tensor.clone()
    tensor.untyped_storage().resize_(0)
    return tensor


def negated(tensor: Any) -> Any:
    return torch.complex(tensor, tensor).conj().imag


def nested(tensor: Any) -> Any:
    untyped: Any = torch
    return untyped.nested.nested_tensor([tensor])


zeros: Any = torch._efficientzerotensor  # pyright: ignore[reportPrivateUsage, reportPrivateImportUsage, reportAttributeAccessIssue, reportUnknownMemberType]


class Broken:
    """What claims to hand memory over, and does not."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def __dlpack_device__(self) -> Any:
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, **_: Any) -> int:
        return 5


FUNCTIONAL: Any = torch._to_functional_tensor  # pyright: ignore[reportPrivateUsage, reportPrivateImportUsage]

TORCH: dict[str, tuple[Given, type[Exception], str]] = {
    "fp64": (
        lambda x, out: (x.double(), 1, out),
        TypeError,
        "`x` expects dtype fp32, got fp64",
    ),
    "complex": (lambda x, out: (x.cfloat(), 1, out), TypeError, "`x`: Unsupported torch dtype torch.complex64"),
    "another type": (lambda x, out: (x.bfloat16(), 1, out), TypeError, "`x` expects dtype fp32, got bfloat16"),
    "the output's type": (lambda x, out: (x, 1, out.int()), TypeError, "`out` expects dtype fp32, got int32"),
    "meta": (
        lambda x, out: (x.to("meta"), 1, out),
        ValueError,
        "`x` is on device meta, where tensors have no elements: pass one with data",
    ),
    "the output on meta": (lambda x, out: (x, 1, out.to("meta")), ValueError, "`out` is on device meta"),
    "a scalar on meta": (lambda x, out: (x, torch.tensor(1, device="meta"), out), TypeError, "`n` is a scalar of int8"),
    "sparse": (lambda x, out: (x.to_sparse(), 1, out), ValueError, "`x` is a sparse_coo tensor: pass `x.to_dense()`"),
    "compressed": (lambda x, out: (x.to_sparse_csr(), 1, out), ValueError, "`x` is a sparse_csr tensor: pass `x.to_"),
    "nested": (lambda x, out: (nested(x), 1, out), ValueError, "`x` is a nested tensor, which has no shape: pass its"),
    "zeros without memory": (
        lambda x, out: (zeros(4, 8), 1, out),
        ValueError,
        "`x` is zeros that torch has made no mem",
    ),
    "a broken producer": (lambda x, out: (Broken(x), 1, out), ValueError, "`x` cannot be read as memory: "),
    "negated": (lambda x, out: (negated(x), 1, out), ValueError, "`x` is a view that torch negates as it reads"),
    "freed": (lambda x, out: (emptied(x), 1, out), ValueError, "`x` has no memory: its storage was freed or shrunk"),
    "followed by autograd": (
        lambda x, out: (x, 1, out.requires_grad_()),
        ValueError,
        "`out` requires grad, and gradients do not flow through a call: call under torch.no_grad(), pass `x.detach()`",
    ),
    "an input followed by autograd": (
        lambda x, out: (x.requires_grad_(), 1, out),
        ValueError,
        "`x` requires grad, and gradients do not flow through a call",
    ),
    "functional": (
        lambda x, out: (FUNCTIONAL(x), 1, out),
        ValueError,
        "`x` is a functional tensor of torch, which stands for memory elsewhere: call it as an operator",
    ),
    "expanded": (
        lambda x, out: (x, 1, out[:1].expand(4, 8)),
        ValueError,
        "`out` is written, but several of its elements share memory",
    ),
    "another framework's memory": (
        lambda x, out: (out.numpy(), 1, out),
        ValueError,
        "`out` is written and shares memory with `x`",
    ),
}


@pytest.mark.filterwarnings("ignore:Sparse CSR:UserWarning", "ignore:The PyTorch API of nested:UserWarning")
@pytest.mark.parametrize("case", TORCH)
def test_a_wrong_tensor_is_refused(case: str, platform: str) -> None:
    given, error, message = TORCH[case]
    memory = np.full((ROWS, COLUMNS), UNTOUCHED, np.float32)
    refuse(platform, given(as_torch(numbers()), as_torch(memory)), error, message, memory)


def embedded(place: Callable[[Any], Any], values: Any) -> tuple[Any, Any]:
    """Return a larger block of memory, and the array of some values that a view of it is."""
    memory = np.full(256, UNTOUCHED, np.float32)
    view = place(memory)[: len(values)]
    view[...] = values
    return memory, view


def misaligned(memory: Any) -> Any:
    return memory.view(np.uint8)[1 : 1 + 4 * 64].view(np.float32).reshape(8, 8)


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "packed": lambda memory: memory[:64].reshape(8, 8),
    "padded rows": lambda memory: memory[:128].reshape(8, 16)[:, 3:11],
    "every other column": lambda memory: memory[:128].reshape(8, 16)[:, ::2],
    "every other row": lambda memory: memory[:128].reshape(16, 8)[::2],
    "turned": lambda memory: memory[:64].reshape(8, 8).T,
    "rows backwards": lambda memory: memory[:64].reshape(8, 8)[::-1],
    "columns backwards": lambda memory: memory[:64].reshape(8, 8)[:, ::-1],
    "both backwards": lambda memory: memory[:64].reshape(8, 8)[::-1, ::-1],
    "not aligned": misaligned,
}


@pytest.mark.parametrize("rows", [0, 1, 4])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_inputs_may_have_any_strides(layout: str, rows: int, platform: str) -> None:
    values = numbers(rows)
    memory, x = embedded(LAYOUTS[layout], values)
    before = memory.tobytes()
    result = compiled(TEXT, platform)(x, 1)
    np.testing.assert_array_equal(result, 2 * values + 2)
    assert memory.tobytes() == before


@pytest.mark.parametrize("rows", [0, 1, 4])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_outputs_may_have_any_strides(layout: str, rows: int, platform: str) -> None:
    values = numbers(rows)
    memory, out = embedded(LAYOUTS[layout], np.zeros_like(values))
    expected, wanted = embedded(LAYOUTS[layout], 2 * values + 2)
    compiled(TEXT, platform)(values, 1, out)
    np.testing.assert_array_equal(out, wanted)
    assert memory.tobytes() == expected.tobytes(), "something around an output was written"


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_expanded_inputs_are_read(framework: str, platform: str) -> None:
    row = FRAMEWORKS[framework](numbers(1))
    for x in (np.broadcast_to(row, (ROWS, COLUMNS)), np.broadcast_to(row[:, 3:4], (ROWS, COLUMNS))):
        given = x if framework == "numpy" else row.expand(ROWS, COLUMNS) if x[0, 0] == 0 else row[:, 3:4].expand(4, 8)
        np.testing.assert_array_equal(np.asarray(compiled(TEXT, platform)(given, 1)), 2 * x + 2)


def test_read_only_inputs_are_read(platform: str) -> None:
    np.testing.assert_array_equal(compiled(TEXT, platform)(frozen(numbers()), 1), 2 * numbers() + 2)


def test_inputs_that_require_grad_are_read_and_outputs_written_where_nobody_follows(platform: str) -> None:
    x, out = torch.ones(4, 8, requires_grad=True), torch.zeros(4, 8, requires_grad=True)
    with torch.no_grad():
        assert torch.equal(compiled(TEXT, platform)(x, 1), torch.full((4, 8), 4.0))
        compiled(TEXT, platform)(x, 1, out)
    assert torch.equal(out, torch.full((4, 8), 4.0))


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_parts_of_one_array_that_do_not_meet_are_apart(framework: str, platform: str) -> None:
    both = numbers(8)
    make = FRAMEWORKS[framework]
    for x, out in (
        (make(both)[:4], make(both)[4:]),
        (make(both)[::2], make(both)[1::2]),
        (make(both.reshape(4, 16))[:, :8], make(both.reshape(4, 16))[:, 8:]),
        (make(both.reshape(4, 16))[:, ::2], make(both.reshape(4, 16))[:, 1::2]),
    ):
        expected: Any = 2 * np.asarray(x) + 2
        compiled(TEXT, platform)(x, 1, out)
        np.testing.assert_array_equal(np.asarray(out), expected)


def test_what_is_written_undeclared_must_be_writable_and_apart(platform: str) -> None:
    run, x, y = compiled(UNDECLARED, platform), numbers() + 1, frozen(numbers())
    run(x, y)
    assert x[0, 0] == 0
    with pytest.raises(ValueError, match="`x` is written, but the array given is read-only"):
        run(y, x)
    with pytest.raises(ValueError, match="`x` is written and shares memory with `y`"):
        run(x, x)
    assert y[0, 0] == 0 and x[0, 1] == 2


class Elsewhere:
    """An array on a device that is not there."""

    device = "tpu:3"

    def __dlpack__(self, **_: Any) -> Any:
        raise AssertionError("memory of another device was asked for")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (12, 3)


class Shared:
    """A producer that hands over the memory of an array."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


def test_other_producers_are_read_and_written_where_they_lie(platform: str) -> None:
    x, out = numbers(), np.zeros((4, 8), np.float32)
    compiled(TEXT, platform)(Shared(x), 1, Shared(out))
    np.testing.assert_array_equal(out, 2 * x + 2)
    with pytest.raises(
        ValueError, match="`x` is on device tpu:3: programs run on memory of the host, so pass a copy there"
    ):
        compiled(TEXT, platform)(Elsewhere(), 1)
    with pytest.raises(ValueError, match="`out` is written, but its producer hands it over read-only"):
        compiled(TEXT, platform)(x, 1, Shared(frozen(out)))


def test_scalars_of_any_framework_are_numbers(platform: str) -> None:
    for one in (1, np.int8(1), np.int64(1), np.array(1), torch.tensor(1), torch.tensor(1, dtype=torch.int8)):
        np.testing.assert_array_equal(compiled(TEXT, platform)(numbers(), one), 2 * numbers() + 2)


def test_numbers_of_c_are_numbers_of_their_type_alone(platform: str) -> None:
    np.testing.assert_array_equal(compiled(TEXT, platform)(numbers(), ctypes.c_int8(1)), 2 * numbers() + 2)
    for wrong in (ctypes.c_int16(1), ctypes.c_uint8(1), ctypes.c_float(1), ctypes.c_char_p(b"1")):
        with pytest.raises(TypeError, match="`n` is a scalar of int8, which is c_byte in C, got c_"):
            compiled(TEXT, platform)(numbers(), wrong)


BOUNDED = """
import tilewright.language as pl
M = pl.dynamic("M")

@pl.program
class Bounded:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, at: pl.Scalar[pl.INDEX, (0, 3)], s: pl.Scalar[pl.FP32], x: pl.Tensor[[M], pl.FP32],
             out: pl.Out[pl.Tensor[[M - 2], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.write(out, [at], s + pl.read(x, [at]))
        return out
"""


def test_a_scalar_outside_its_bounds_is_refused_before_anything_runs(platform: str) -> None:
    run, out = compiled(BOUNDED, platform), np.zeros(6, np.float32)
    with pytest.raises(ValueError, match="`at` must lie within 0 to 3, got 4"):
        run(4, 1.0, np.zeros(8, np.float32), out)
    assert not out.any()
    assert run(3, 1.0, np.zeros(8, np.float32))[3] == 1


def test_a_float_that_no_type_holds_is_refused(platform: str) -> None:
    with pytest.raises(
        TypeError, match="`s` is a scalar of fp32, which cannot hold an integer of 1329 bits: fp32 reaches"
    ):
        compiled(BOUNDED, platform)(0, 10**400, np.zeros(8, np.float32))


def test_an_output_whose_extent_would_be_negative_is_refused(platform: str) -> None:
    with pytest.raises(ValueError, match=r"`out` cannot have shape \[.*\] = \[-1\]: an extent is negative"):
        compiled(BOUNDED, platform)(0, 1.0, np.zeros(1, np.float32))


FORMULA = """
import tilewright.language as pl
M = pl.dynamic("M")

@pl.program
class Formula:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[M], pl.INT8], out: pl.Out[pl.Tensor[[M * M], pl.INT8]],
             rest: pl.Out[pl.Tensor[[8 // M], pl.INT8]]):
        pl.write(out, [0], pl.read(x, [0]))
        return out, rest
"""


@pytest.mark.parametrize("count", [1 << 32, 1 << 62, (1 << 63) - 1])
def test_an_extent_beyond_counting_is_refused_and_not_wrapped_around(count: int, platform: str) -> None:
    memory: Any = np.ones(1, np.int8)
    given: list[Any] = [np.broadcast_to(memory, (count,)), torch.ones(1, dtype=torch.int8).expand(count)]
    for x in given:
        with pytest.raises(ValueError, match=r"the extent M \* M is \d{20,}, which is more than any memory holds"):
            compiled(FORMULA, platform)(x)
    with pytest.raises(ValueError, match="which is more than any memory holds"):
        compiled(FORMULA, platform)(given[0], memory, np.zeros(8, np.int8))
    assert memory[0] == 1


def test_an_extent_that_divides_by_zero_is_refused(platform: str) -> None:
    with pytest.raises(ValueError, match="the extent 8 // M divides by zero"):
        compiled(FORMULA, platform)(np.zeros(0, np.int8))


RETURNED = """
import tilewright.language as pl

@pl.program
class Returned:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[4, 8], pl.FP32]):
        part = pl.slice(x, [3, 8], [1, 0])
        return part
"""


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_returned_part_of_an_input_is_what_lies_there(layout: str, platform: str) -> None:
    _, x = embedded(LAYOUTS[layout], numbers())
    np.testing.assert_array_equal(compiled(RETURNED, platform)(x), numbers()[1:])


def test_programs_that_are_called_often_take_their_shortcut() -> None:
    for text in (TEXT, UNDECLARED):
        assert type(compiled(text, WARM)) is not CompiledProgram


def test_extents_beyond_all_memory_are_a_plain_memory_error() -> None:
    with pytest.raises(MemoryError):
        compiled(TEXT, "cpu")(np.broadcast_to(numbers(1), (1 << 44, COLUMNS)), 1)


def test_an_extent_that_is_annotated_none_is_told_what_to_write() -> None:
    text = "@pl.function\ndef kernel(x: pl.Tensor[[4, None], pl.FP32]):\n    pass\n"
    with pytest.raises(ValueError, match=r"an extent that is annotated None: write a number or a pl\.dynamic name"):
        ir.compile(as_program(pl.parse(text)))(numbers())
