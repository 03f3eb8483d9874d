"""Gemm and packing functions agree with NumPy and touch nothing else."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tilewright.backends.cpu.compute.gemm import M, N, emit_gemm
from tilewright.backends.cpu.compute.gemm_blocks import GemmSpec
from tilewright.backends.cpu.compute.micro_kernels import ACCUMULATE, K, Operands
from tilewright.backends.cpu.compute.pack import Copy, PackSpec, emit_pack
from tilewright.dtypes import BF16, FP16, FP32, FP64, INT8, INT16, INT32, UINT8, DataType
from tilewright.native.assemble import assemble
from tilewright.native.llvm import Builder, Module, Value
from tilewright.native.target import PRESETS, Target, llvm, missing_features

Array = NDArray[Any]
TYPES = {"ptr": ctypes.c_void_p, "i64": ctypes.c_int64, "i1": ctypes.c_bool}
ENGINES: list[Any] = []  # code lives as long as the engine it was loaded into
EDGES = (0, 1, 2, 3, 4, 5, 6, 7, 11, 13, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 70)
FLOATS, INTEGERS = (FP32, FP16, BF16), (INT32, INT16, INT8, UINT8)


INTELS: dict[str, str] = {"skylake-avx512": "x86-64-v4", "haswell": "x86-64-v3"}
"""Processors that take several steps at a time, by what they can do."""


@pytest.fixture(params=["x86-64-v4", "x86-64-v3", "x86-64", *INTELS])
def target(request: pytest.FixtureRequest) -> Target:
    name = str(request.param)
    chosen = PRESETS[INTELS.get(name, name)]
    if name in INTELS:
        chosen = replace(chosen, cpu=name)
        assert GemmSpec(chosen).may_unroll
    if missing := missing_features(chosen):
        pytest.skip(f"this processor lacks {', '.join(missing)}")
    return chosen


def loaded(module: Module, name: str, params: tuple[Value, ...], target: Target) -> Callable[..., None]:
    """Return an internal function of a module as Python calls it."""
    entry = Builder(module, "entry", params, linkage="")
    entry.invoke(name, *params)
    entry.finish()
    binding = llvm()
    machine = binding.Target.from_default_triple().create_target_machine(jit=True)
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
    engine.add_object_file(binding.ObjectFileRef.from_data(assemble(module.text(), target).object))
    engine.finalize_object()
    ENGINES.append(engine)
    return ctypes.CFUNCTYPE(None, *(TYPES[param.type] for param in params))(engine.get_function_address("entry"))


@cache
def gemm(spec: GemmSpec) -> Callable[..., None]:
    module = Module()
    return loaded(module, emit_gemm(module, spec), (*Operands(), M, N, K, ACCUMULATE), spec.target)


@cache
def pack(spec: PackSpec) -> Callable[..., None]:
    module = Module()
    return loaded(module, emit_pack(module, spec), Copy(), spec.target)


def numbers(dtype: DataType, rows: int, width: int) -> Array:
    rng = np.random.default_rng(rows * 1000 + width)
    if dtype.is_float():
        return rng.uniform(-2, 2, (rows, width)).astype(dtype.numpy)
    low, high = dtype.limits
    return rng.integers(int(low), int(high), (rows, width), dtype=dtype.numpy, endpoint=True)


def strides(array: Array) -> tuple[int, int]:
    """Return how many elements apart the rows and the columns of a matrix are."""
    rows, columns = (stride // array.itemsize for stride in array.strides)
    return rows, columns


def at(array: Array) -> tuple[int, int]:
    """Return the address of a matrix and how many elements its rows are apart."""
    return array.ctypes.data, strides(array)[0]


def flipped(array: Array) -> Array:
    """Return the transposed view of a matrix."""
    return np.swapaxes(array, 0, 1)


def expected(a: Array, b: Array, c: Array | int) -> tuple[Array, Array | int]:
    """Return the product and how far from it sums may be."""
    if a.dtype.kind in "iu":
        return (a.astype(np.int64) @ b.astype(np.int64) + c).astype(np.int32), 0
    last = 2.0 ** (-52 if a.dtype == np.float64 else -23)
    a, b = a.astype(np.float64), b.astype(np.float64)
    return a @ b + c, (a.shape[1] + 1) * last * (np.abs(a) @ np.abs(b) + np.abs(c))


def check(spec: GemmSpec, a: Array, b: Array, accumulate: bool) -> None:
    """Run a gemm into the middle of a larger array and look at all of it."""
    (m, k), n = a.shape, b.shape[1]
    kinds = FP64 if spec.lhs == FP64 else FP32 if spec.lhs.is_float() else INT32
    around = numbers(kinds, m + 2, n + 23)
    before, c = np.array(around), around[1 : m + 1, 3 : n + 3]
    want, error = expected(a, b, c if accumulate else 0)
    gemm(spec)(a.ctypes.data, *strides(a), *at(b), *at(c), m, n, k, accumulate)
    assert np.all(np.abs(c - want) <= error), (spec, a.shape, b.shape, accumulate)
    c[:] = before[1 : m + 1, 3 : n + 3]
    assert np.array_equal(around, before), (spec, a.shape, b.shape, accumulate)


def operands(spec: GemmSpec, m: int, n: int, k: int) -> tuple[Array, Array]:
    return numbers(spec.lhs, m, k + 3)[:, :k], numbers(spec.rhs, k, n + 5)[:, :n]


@pytest.mark.parametrize("kind", [FP32, FP64, INT32], ids=str)
def test_products_of_every_edge_shape(target: Target, kind: DataType) -> None:
    spec = GemmSpec(target, kind, kind)
    for (m, n), (k, accumulate) in product(product(EDGES, EDGES), ((0, False), (0, True), (1, True), (9, False))):
        check(spec, *operands(spec, m, n, k), accumulate)


@pytest.mark.parametrize(
    ("lhs", "rhs"), [*product(FLOATS, FLOATS), *zip(INTEGERS, INTEGERS[1:] + INTEGERS[:1], strict=True)], ids=str
)
def test_products_of_every_storage(target: Target, lhs: DataType, rhs: DataType) -> None:
    spec = GemmSpec(target, lhs, rhs)
    for m, n, k, accumulate in ((17, 83, 33, False), (9, 64, 40, True)):
        check(spec, *operands(spec, m, n, k), accumulate)


@pytest.mark.parametrize("rhs", [FP32, BF16], ids=str)
@pytest.mark.parametrize("n", [33, 40, 56, 72, 80, 81, 120, 136, 145])
def test_the_last_columns_of_a_known_number_are_in_a_block_of_several_vectors(
    target: Target, n: int, rhs: DataType
) -> None:
    spec = GemmSpec(target, rhs=rhs, m=19, n=n)
    for accumulate in (False, True):
        check(spec, *operands(spec, 19, n, 21), accumulate)


@pytest.mark.parametrize(("m", "n"), [(0, 64), (6, 0), (1, 3), (5, 16), (6, 128), (16, 20), (64, 48), (13, 100)])
def test_products_of_extents_known_ahead(target: Target, m: int, n: int) -> None:
    spec = GemmSpec(target, m=m, n=n)
    check(spec, *operands(spec, m, n, 21), accumulate=True)


@pytest.mark.parametrize("bound", [1, 8, 16, 32, 40, 64, 512])
def test_products_of_bounded_width(target: Target, bound: int) -> None:
    spec = GemmSpec(target, n_bound=bound)
    for n in (bound // 2, bound - 1, bound):
        check(spec, *operands(spec, 13, n, 21), accumulate=False)


@pytest.mark.parametrize("lhs", [FP32, BF16, INT32, FP64], ids=str)
def test_steps_whose_distances_are_known_are_taken_several_at_a_time(target: Target, lhs: DataType) -> None:
    spec = GemmSpec(target, lhs, FP32 if lhs == BF16 else lhs, apart=90)
    for k in (0, 1, 3, 4, 5, 8, 11, 16, 31, 64):
        for m, n in ((6, 64), (7, 33), (13, 81)):
            a, b = numbers(spec.lhs, m, k + 3)[:, :k], numbers(spec.rhs, k, 90)[:, :n]
            check(spec, a, b, accumulate=k % 2 == 0)


def test_products_of_long_rows(target: Target) -> None:
    spec = GemmSpec(target)
    check(spec, *operands(spec, 7, 512, 4096), accumulate=True)


@pytest.mark.parametrize("lhs", [FP32, BF16], ids=str)
def test_a_transposed_lhs_is_read_in_place(target: Target, lhs: DataType) -> None:
    spec = GemmSpec(target, lhs)
    check(spec, flipped(numbers(lhs, 33, 20))[:17], numbers(FP32, 33, 70), accumulate=True)


def test_a_function_is_added_to_a_module_once(target: Target) -> None:
    module = Module()
    names = [emit_gemm(module, GemmSpec(target)) for _ in range(2)]
    names += [emit_pack(module, PackSpec(target, 4)) for _ in range(2)]
    heads = [function.split("(")[0] for function in module.functions]
    assert len(set(names)) == 2 and len(heads) == len(set(heads))


def last_bytes(array: Array) -> Array:
    """Return a copy that ends where memory does: the page after it faults."""
    room = -(-max(array.nbytes, 1) // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, room + mmap.PAGESIZE)
    copy = np.reshape(np.frombuffer(memory, array.dtype, array.size, room - array.nbytes), array.shape)
    protect = ctypes.CDLL(None).mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    assert protect(copy.ctypes.data + array.nbytes, mmap.PAGESIZE, 0) == 0
    copy[:] = array
    return copy


@pytest.mark.parametrize("kind", [FP32, FP16, INT8], ids=str)
def test_nothing_past_the_end_of_memory_is_touched(target: Target, kind: DataType) -> None:
    out = FP32 if kind.is_float() else INT32
    for m, n, k in ((7, 65, 3), (1, 1, 1), (5, 31, 2), (20, 19, 18)):
        a, b, c = (last_bytes(numbers(*of)) for of in ((kind, m, k), (kind, k, n), (out, m, n)))
        for apart in (None, n):
            gemm(GemmSpec(target, kind, kind, apart=apart))(*at(a), 1, *at(b), *at(c), m, n, k, False)
        straight, turned = last_bytes(numbers(kind, m, k)), last_bytes(numbers(kind, k, m))
        pack(PackSpec(target, a.itemsize))(*at(a), 1, *at(straight), m, k)
        pack(PackSpec(target, a.itemsize, transposed=True))(a.ctypes.data, 1, k, *at(turned), k, m)
        assert np.array_equal(straight, flipped(turned))


def packed(spec: PackSpec, source: Array) -> tuple[Array, Array]:
    """Return what a pack function makes of a view, and the rest of the array it writes to."""
    rows, cols = source.shape
    around = np.full((rows + 2, cols + 9), 77, source.dtype)
    inside = around[1 : rows + 1, 2 : cols + 2]
    pack(spec)(source.ctypes.data, *strides(source), inside.ctypes.data, cols + 9, rows, cols)
    result = np.array(inside)
    inside[:] = 77
    return result, around


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dtype", [INT8, BF16, FP32, FP64], ids=str)
def test_packs_of_any_strides(target: Target, dtype: DataType, transposed: bool) -> None:
    spec = PackSpec(target, dtype.get_byte(), transposed)
    for rows, cols in ((0, 5), (5, 0), (1, 1), (7, 9), (8, 8), (17, 33), (40, 70)):
        whole = numbers(dtype, rows + 4, 2 * cols + 3)
        turned = numbers(dtype, cols + 2, rows + 5)
        for source in (
            whole[2 : rows + 2, 1 : cols + 1],
            whole[:rows, 1 : 2 * cols : 2],
            flipped(turned[:cols, 3 : rows + 3]),
        ):
            result, around = packed(spec, source)
            assert np.array_equal(result, source), (rows, cols, source.strides)
            assert np.all(around == 77), (rows, cols, source.strides)


@pytest.mark.parametrize("dtype", [FP16, BF16], ids=str)
def test_every_short_float_is_multiplied_as_what_it_is(target: Target, dtype: DataType) -> None:
    every = np.reshape(np.frombuffer(np.arange(1 << 16, dtype=np.uint16).tobytes(), dtype.numpy), (1, 1 << 16))
    one, result = np.ones((1, 1), dtype.numpy), np.zeros(every.shape, np.float32)
    gemm(GemmSpec(target, dtype, dtype))(*at(one), 1, *at(every), *at(result), 1, 1 << 16, 1, False)
    with np.errstate(invalid="ignore"):
        assert np.array_equal(result, every.astype(np.float32), equal_nan=True)
