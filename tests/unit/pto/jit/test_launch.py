"""Launches: pointers of every kind, scalars, blocks and streams."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from typing import Any, cast

import ml_dtypes
import numpy
import pytest
import torch as pytorch
from unit.pto.jit.kernels import TEXT, copy_from, kernel_of

from tilewright import pto
from tilewright.errors import ExecutionError
from tilewright.pto.arguments import ScalarTaker
from tilewright.pto.declared import Declared
from tilewright.pto.signature import Kind, Parameter

np, torch = cast("Any", numpy), cast("Any", pytorch)
pytestmark = pytest.mark.usefixtures("lowering")


def arrays(count: int = 2) -> list[Any]:
    return [np.arange(8, dtype=np.float32) + 100 * i for i in range(count)]


class Address:
    """What knows its address."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def data_ptr(self) -> int:
        return int(self.array.ctypes.data)


class Stream:
    value = 7


GIVEN: dict[str, Callable[[Any], Any]] = {
    "array": lambda a: a,
    "matrix": lambda a: a.reshape(2, 4),
    "tensor": torch.from_numpy,
    "cube": lambda a: torch.from_numpy(a).reshape(2, 2, 2),
    "address": lambda a: a.ctypes.data,
    "number of NumPy": lambda a: np.int64(a.ctypes.data),
    "c_void_p": lambda a: ctypes.c_void_p(a.ctypes.data),
    "object": Address,
    "DLPack": lambda a: np.from_dlpack(torch.from_numpy(a)),
}


@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
@pytest.mark.parametrize("is_compiled", [False, True])
def test_a_pointer_may_be_given_as(given: Callable[[Any], Any], is_compiled: bool) -> None:
    handle, (x, out) = copy_from(TEXT), arrays()
    kernel: Any = handle.compile() if is_compiled else handle
    for _ in range(3):
        out[:] = -1
        kernel[5, None](given(x), given(out), 2)
        assert out.tolist() == [2, 3, 4, 5, 6, -1, -1, -1]


@pytest.mark.parametrize(
    "stream",
    [None, 0, 7, ctypes.c_void_p(7), ctypes.c_void_p(), Stream()],
    ids=lambda stream: type(stream).__name__,
)
def test_streams_order_nothing(stream: object) -> None:
    x, out = arrays()
    copy_from(TEXT)[8, stream](x, out, 0)
    assert out.tolist() == x.tolist()


def test_a_grid_may_be_a_number_of_numpy() -> None:
    x, out = arrays()
    copy_from(TEXT)[np.int32(2), None](x, out, 0)
    assert out.tolist()[:3] == [0, 1, 102]


@pytest.mark.parametrize(
    ("type_", "dtype"),
    [
        (pto.i8, np.int8), (pto.si16, np.int16), (pto.ui16, np.uint16), (pto.i32, np.int32), (pto.ui64, np.uint64),
        (pto.i1, np.bool_), (pto.index, np.int64), (pto.f16, np.float16), (pto.bf16, ml_dtypes.bfloat16),
        (pto.f8e4m3, ml_dtypes.float8_e4m3fn),
    ],
    ids=str,
)  # fmt: skip
def test_arrays_have_the_element_type_of_their_pointer(type_: Any, dtype: Any) -> None:
    x, out = np.array([1, 0, 1, 1]).astype(dtype), np.zeros(4, dtype)
    kernel = kernel_of(pto.ptr(type_, "gm"), pto.ptr(type_, "gm"))
    kernel[3, None](x, out)
    assert out.astype(np.float32).tolist() == [1, 0, 1, 0]
    with pytest.raises(TypeError, match=f"`a` points to {type_} elements, got an array of fp32"):
        kernel[3, None](np.zeros(4, np.float32), out)


@pytest.mark.parametrize("name", ["bfloat16", "float16", "int32", "uint8", "bool", "float8_e5m2"])
def test_tensors_have_the_element_type_of_their_pointer(name: str) -> None:
    types = {"bfloat16": pto.bf16, "float16": pto.f16, "int32": pto.i32, "uint8": pto.ui8, "bool": pto.i1}
    pointer = pto.ptr(types.get(name, pto.f8e5m2), "gm")
    x = torch.tensor([1, 0, 1, 1]).to(getattr(torch, name))
    out = torch.zeros_like(x)
    kernel = kernel_of(pointer, pointer)
    kernel[3, None](x, out)
    assert out.float().tolist() == [1, 0, 1, 0]
    with pytest.raises(TypeError, match="`b` points to .* elements, got an array of int16"):
        kernel[3, None](x, torch.zeros(4, dtype=torch.int16))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: torch.zeros(4, 4)[:, ::2], "gaps or another order"),
        (lambda: torch.zeros(2, 4).t(), "gaps or another order"),
        (lambda: torch.zeros(8, requires_grad=True), "requires grad, and gradients do not flow"),
        (lambda: torch.zeros(8, device="meta"), "is on device meta"),
        (lambda: torch.zeros(8).to_sparse(), "is a sparse_coo tensor"),
        (lambda: torch.zeros(8, dtype=torch.complex64).conj().imag, "gaps|negates"),
        (lambda: shrunk(torch.zeros(8)), "has no memory"),
    ],
)  # fmt: skip
def test_tensors_that_are_no_memory_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"parameter `out`.*({message})"):
        copy_from(TEXT)[1, None](torch.zeros(8), make(), 0)


def shrunk(tensor: Any) -> Any:
    tensor.untyped_storage().resize_(16)
    return tensor


def test_tensors_that_require_grad_are_taken_where_nobody_follows() -> None:
    x, out = torch.arange(8.0).requires_grad_(), torch.zeros(8)
    with torch.no_grad():
        copy_from(TEXT)[8, None](x, out, 0)
    assert out.tolist() == x.tolist()


def test_empty_arrays_have_no_elements_to_reach() -> None:
    copy = copy_from(TEXT).compile()
    empty, out = np.zeros(0, np.float32), np.zeros(8, np.float32)
    with pytest.raises(ExecutionError, match="outside"):
        copy[1, None](empty, out, 0)
    with pytest.raises(ExecutionError, match="outside"):
        copy[1, None](out, torch.zeros(0), 0)


def test_accesses_outside_an_array_are_refused_when_they_happen() -> None:
    x, out = arrays()
    copy = copy_from(TEXT).compile()
    for _ in range(2):
        with pytest.raises(ExecutionError, match="in kernel `copy`.*outside"):
            copy[9, None](x, out, 0)


# memory that is shared


def test_arrays_that_overlap_share_a_buffer(lowering: list[Any]) -> None:
    memory = np.arange(16, dtype=np.float32)
    copy = copy_from(TEXT).compile()
    copy[4, None](memory[:8], memory[6:], 0)
    assert memory[6:10].tolist() == [0, 1, 2, 3]
    assert lowering == [("copy", None), ("copy", (0, 0))]


def test_memory_is_copied_in_order_where_source_and_destination_overlap() -> None:
    memory = np.arange(8, dtype=np.float32)
    copy_from(TEXT)[7, None](memory[:7], memory[1:], 0)
    assert memory.tolist() == [0] * 8


def test_what_overlaps_is_found_among_many(lowering: list[Any]) -> None:
    pointer = pto.ptr(pto.f32, "gm")
    a, b, c = arrays(3)
    kernel_of(pointer, pointer, pointer, pointer)[4, None](a, b[:4], c, b[2:])
    assert b.tolist()[:6] == [0, 1, 2, 3, 2, 3]
    assert c.tolist()[:4] == [0, 1, 2, 3]
    assert lowering[-1] == ("kernel", (0, 1, 2, 1))


def test_arrays_between_elements_are_written_where_they_lie(lowering: list[Any]) -> None:
    memory = np.zeros(64, np.uint8)
    x, out = arrays(1)[0], memory[1:33].view(np.float32)
    copy_from(TEXT)[8, None](x, out, 0)
    assert out.tolist() == x.tolist()
    assert lowering[-1] == ("copy", (0, 1))


def test_variants_are_made_once() -> None:
    handle = copy_from(TEXT)
    x, out = arrays()
    for _ in range(3):
        handle[1, None](x, out, 0)
        handle[1, None](x.ctypes.data, out, 0)
        handle[1, None](x, x, 0)
    assert handle.cache_info().compiles == handle.cache_info().currsize == 2


def test_many_buffers_go_through_one_kernel() -> None:
    copy = copy_from(TEXT).compile()
    kept = [arrays() for _ in range(600)]
    for x, out in kept:
        copy[8, None](x, out, 0)
    assert all(out.tolist() == x.tolist() for x, out in kept)


# scalars


def taker(type_: Any) -> ScalarTaker:
    def kernel(n: Any) -> None: ...

    return ScalarTaker(Declared(kernel, "kernel"), Parameter("n", Kind.SCALAR, type_))


LIMITS = [
    (f"{sign}i{bits}", -(1 << bits - 1) if sign != "u" else 0, (1 << bits - (sign != "u")) - 1)
    for sign in ("", "s", "u")
    for bits in (8, 16, 32, 64)
]


@pytest.mark.parametrize(("name", "low", "high"), [*LIMITS, ("index", -(1 << 63), (1 << 63) - 1)])
def test_integers_reach_as_far_as_their_type(name: str, low: int, high: int) -> None:
    take = taker(getattr(pto, name))
    for value in (low, 0, high):
        assert take(value) == ((value + (1 << 63)) % (1 << 64) - (1 << 63),)
    for value in (low - 1, high + 1):
        with pytest.raises(ValueError, match=f"`n` is a scalar of {name}, which cannot hold {value}"):
            take(value)


@pytest.mark.parametrize("value", [1.0, True, "1", None, [1], np.zeros(2), 1j], ids=repr)
def test_what_is_no_integer_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match="parameter `n` is a scalar of i32, got"):
        taker(pto.i32)(value)


@pytest.mark.parametrize("value", [3, np.int8(3), np.uint64(3), np.array(3), torch.tensor(3)], ids=repr)
def test_integers_come_from_anywhere(value: object) -> None:
    assert taker(pto.i16)(value) == (3,)


@pytest.mark.parametrize(("value", "word"), [(True, 1), (False, 0), (1, 1), (0, 0), (np.bool_(True), 1)])
def test_booleans_are_true_or_false(value: object, word: int) -> None:
    assert taker(pto.i1)(value) == (word,)
    with pytest.raises(ValueError, match="cannot hold 2"):
        taker(pto.i1)(2)


def as_float(words: tuple[int, ...]) -> float:
    return float(np.array(words, np.int64).astype(np.int32).view(np.float32)[0])


@pytest.mark.parametrize(
    ("type_", "dtype"), [(pto.f16, np.float16), (pto.bf16, ml_dtypes.bfloat16), (pto.f32, np.float32)], ids=str
)
@pytest.mark.parametrize("value", [0.0, -0.0, 1 / 3, 2.0**-20, 1.00390625, 7, np.float32(1 / 3), float("inf")])
def test_floats_are_rounded_to_their_type(type_: Any, dtype: Any, value: float) -> None:
    taken, expected = as_float(taker(type_)(value)), float(np.array(value).astype(dtype))
    assert (taken, np.signbit(taken)) == (expected, np.signbit(expected))


def test_a_nan_is_passed() -> None:
    assert all(np.isnan(as_float(taker(t)(float("nan")))) for t in (pto.f16, pto.bf16, pto.f32))


@pytest.mark.parametrize(
    ("type_", "value"), [(pto.f16, 65520.0), (pto.bf16, 3.4e38), (pto.f32, 1e39), (pto.f32, 10**400)], ids=str
)
def test_floats_that_are_too_large_are_refused(type_: Any, value: float) -> None:
    with pytest.raises(ValueError, match=f"a scalar of {type_}, which cannot hold"):
        taker(type_)(value)


def test_a_bool_is_no_float() -> None:
    with pytest.raises(TypeError, match="scalar of f32, got True"):
        taker(pto.f32)(True)


@pytest.mark.parametrize("type_", [pto.f16, pto.bf16, pto.f32, pto.i1, pto.ui64], ids=str)
def test_kernels_take_scalars_of_every_type(type_: Any) -> None:
    x, out = arrays()
    kernel_of(pto.ptr(pto.f32, "gm"), pto.ptr(pto.f32, "gm"), type_)[8, None](x, out, 1)
    assert out.tolist() == x.tolist()


# threads


def test_threads_launch_one_kernel_at_once() -> None:
    handle = copy_from(TEXT)
    failures: list[object] = []

    def work(number: int) -> None:
        x, out = np.full(64, number, np.float32), np.zeros(64, np.float32)
        for _ in range(200):
            out[:] = 0
            handle[64, None](x, out, 0)
            if out.tolist() != x.tolist():
                failures.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert handle.cache_info().compiles == 1


def test_unchecked_code_is_other_code(monkeypatch: pytest.MonkeyPatch) -> None:
    handle, (x, out) = copy_from(TEXT), arrays()
    handle[1, None](x, out, 0)
    monkeypatch.setenv("TILEWRIGHT_CHECKED", "off")
    handle[2, None](x, out, 0)
    assert handle.cache_info().compiles == 2
    monkeypatch.delenv("TILEWRIGHT_CHECKED")
    with pytest.raises(ExecutionError):
        handle[9, None](x, out, 0)
    assert handle.cache_info().compiles == 2


def test_the_number_of_threads_may_change_between_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    handle, (x, out) = copy_from(TEXT), arrays()
    for count in ("1", "2", "1"):
        monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", count)
        handle[8, None](x, out, 0)
    monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", "none")
    with pytest.raises(ValueError, match="TILEWRIGHT_NUM_THREADS must be a positive number, got 'none'"):
        handle[8, None](x, out, 0)


def test_a_forked_child_launches_too() -> None:
    handle, (x, out) = copy_from(TEXT), arrays()
    handle[8, None](x, out, 0)
    child = os.fork()
    if child == 0:
        out[:] = 0
        handle[8, None](x, out, 0)
        handle[8, None](x, x, 0)
        os._exit(0 if out.tolist() == x.tolist() else 1)
    assert os.waitpid(child, 0)[1] == 0
