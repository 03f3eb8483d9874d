"""Vector math: every emitter stays within its declared error over all floats, and treats the odd ones as C does."""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, cast

import llvmlite.binding as llvmlite  # pyright: ignore[reportMissingTypeStubs]
import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from tilewright.backends.cpu.compute import doubles, narrow, trigonometry
from tilewright.backends.cpu.compute.vectormath import EMITTERS, Emitter, one_and_tanh
from tilewright.native.llvm import F32, F64, I64, PTR, Builder, Module, Value, i64, vector

Array = npt.NDArray[Any]
Emit = Callable[..., Value]

llvm = cast("Any", llvmlite)
ALIGN = {F32: 4, F64: 8, "half": 2, "i16": 2}
ODD = np.array(
    [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1.1754944e-38, 3.4028235e38, -3.4028235e38], np.float32
)
NEAR = (
    0.0,
    0.35,
    0.5,
    0.707,
    1.0,
    1.4142,
    0.7854,
    1.5708,
    3.1416,
    4.0,
    9.0,
    20.0,
    88.7,
    -87.3,
    -103.9,
    8192.0,
    2.0**20,
)


def erf(x: Array) -> Array:
    """Return the error function in double precision."""
    return np.fromiter(map(math.erf, x.tolist()), np.float64, x.size)


def erfc(x: Array) -> Array:
    """Return one less the error function in double precision."""
    return np.fromiter(map(math.erfc, x.tolist()), np.float64, x.size)


def times_normal(x: Array) -> Array:
    """Return x times the normal distribution in double precision."""
    return x * (erfc(x * -math.sqrt(0.5)) * 0.5)


def times_fast_normal(x: Array) -> Array:
    """Return x times the approximation of the normal distribution, the tail below zero from the one above it."""
    e = np.exp(-np.abs(y := x * (1 + 0.044715 * x * x) * math.sqrt(8 / math.pi)))
    return x * (np.where(y < 0, e, 1) / (1 + e))


def rsqrt(x: Array) -> Array:
    """Return one over the square root."""
    return np.reciprocal(np.sqrt(x))


def round_half_away(x: Array) -> Array:
    """Return the nearest integers, of two the ones farther from zero; x is exact to more than a half."""
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def between(start: Array, end: Array, weight: Array) -> Array:
    return start + weight * (end - start)


REFERENCES: dict[str, Callable[..., Array]] = {
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "erf": erf,
    "sin": np.sin,
    "cos": np.cos,
    "sqrt": np.sqrt,
    "rsqrt": rsqrt,
    "recip": np.reciprocal,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round_half_even": np.rint,
    "round_half_away": round_half_away,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "fmod": np.fmod,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "power": np.power,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "arcsinh": np.arcsinh,
    "arccosh": np.arccosh,
    "arctanh": np.arctanh,
    "arcsin": np.arcsin,
    "arccos": np.arccos,
    "arctan": np.arctan,
    "arctan2": np.arctan2,
    "erfc": erfc,
    "times_normal": times_normal,
    "times_fast_normal": times_fast_normal,
    "between": between,
}
EXACT = ["maximum", "minimum", "fmod"]
BINARY = [*EXACT, "power", "arctan2"]
UNARY = [name for name in REFERENCES if name not in (*BINARY, "between")]
TARGETS = [
    ("x86_64-linux-gnu", "x86-64-v2", False),
    ("x86_64-linux-gnu", "x86-64-v3", True),
    ("x86_64-linux-gnu", "x86-64-v4", True),
    ("aarch64-linux-gnu", "generic", True),
]
CALL = re.compile(r"^\t(?:callq?|bl)\s+\.?L?(\w+)", re.MULTILINE)


class Compiled:
    """A loop over arrays around what an emitter emits, compiled for this machine."""

    def __init__(self, emit: Emit, takes: tuple[str, ...], gives: str, lanes: int, module: Module) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        parsed = llvm.parse_assembly(loop(module, emit, takes, gives, lanes))
        parsed.verify()
        features = llvm.get_host_cpu_features().flatten()
        machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=llvm.get_host_cpu_name(), features=features, opt=2, jit=True
        )
        self.engine = llvm.create_mcjit_compiler(parsed, machine)
        self.engine.finalize_object()
        types = [ctypes.c_void_p] * (len(takes) + 1) + [ctypes.c_int64]
        self.function = ctypes.CFUNCTYPE(None, *types)(self.engine.get_function_address("f"))

    def __call__(self, *operands: Array, gives: Any = np.float32) -> Array:
        out = np.empty(operands[0].size, gives)
        arrays = [np.ascontiguousarray(operand) for operand in operands]
        assert out.size % 48 == 0  # whole vectors of any number of lanes tried here
        self.function(*(array.ctypes.data for array in arrays), out.ctypes.data, out.size)
        return out


def loop(module: Module, emit: Emit, takes: tuple[str, ...], gives: str, lanes: int) -> str:
    """Return the text of `void f(ptr in..., ptr out, i64 n)`."""
    ins, out, size = [Value(PTR, f"%in{i}") for i in range(len(takes))], Value(PTR, "%out"), Value(I64, "%n")
    b = Builder(module, "f", [*ins, out, size], linkage="external")
    with b.loop(i64(0), size, i64(lanes)) as index:
        operands = [
            b.load(vector(kind, lanes), b.offset(pointer, index, kind), ALIGN[kind])
            for kind, pointer in zip(takes, ins, strict=True)
        ]
        b.store(emit(b, *operands), b.offset(out, index, gives), ALIGN[gives])
    b.finish()
    return module.text()


@cache
def compiled(name: str, lanes: int = 16, fused: bool = True, scales: bool = False) -> Compiled:
    """Return an emitter of vector math, compiled."""
    takes = (F32,) * operand_count(name)
    return Compiled(EMITTERS[name], takes, F32, lanes, Module(fused=fused, scales=scales))


@cache
def every_kind_of_float() -> Array:
    """Return four million floats: a thousandth of all bit patterns evenly, the rest close to interesting points."""
    patterns = reinterpreted(np.arange(0, 2**32, 2053, dtype=np.uint32), np.float32)
    close: list[Array] = [np.float32(sign) * around(point) for point in NEAR for sign in (1, -1)]
    spread = np.linspace(-110, 110, 1_500_000, dtype=np.float32)
    return padded(np.concatenate([patterns, *close, spread, ODD]))


def around(point: float, count: int = 20_000) -> Array:
    """Return the floats nearest to a point, on both sides."""
    middle = int(reinterpreted(np.array([abs(point)], np.float32), np.int32)[0])
    bits = np.arange(max(middle - count, 0), middle + count, dtype=np.int32)
    return np.copysign(reinterpreted(bits, np.float32), np.float32(point))


def reinterpreted(bits: Array, kind: Any) -> Array:
    """Return the same bytes as elements of another kind."""
    return np.frombuffer(bits.tobytes(), kind)


def padded(x: Array) -> Array:
    """Return an array of a whole number of vectors."""
    return np.concatenate([x, np.zeros(-x.size % 48, x.dtype)])


def ulps(got: Array, exact: Array) -> Array:
    """Return errors in units in the last place of the exact result; infinite where kinds or signs of zero differ."""
    with np.errstate(all="ignore"):
        nearest = exact.astype(np.float32)
        _, exponent = np.frexp(np.abs(exact))
        unit = np.ldexp(1.0, np.maximum(exponent - 24, -149))
        error = np.abs(got.astype(np.float64) - exact) / unit
    overflow = np.isinf(nearest) | np.isinf(got)
    largest = np.abs(exact) >= 3.4028234e38  # about there either side of overflow is within an ulp
    same = (got == nearest) | (np.isnan(got) & np.isnan(nearest)) | (largest & (np.abs(got) >= 3.4028233e38))
    error = np.where(overflow | np.isnan(nearest) | np.isnan(got), np.where(same, 0, np.inf), error)
    return np.where((exact == 0) & (np.signbit(exact) != np.signbit(got)), np.inf, error)


def operand_count(name: str) -> int:
    return 3 if name == "between" else 2 if name in BINARY else 1


def worst(name: str, *operands: Array, fused: Sequence[bool] = (True, False)) -> str:
    """Return the largest error over some floats, with and without fused multiplications, in words where over the bound.

    What is the nearest float is half a unit off at the most: nobody needs to look at how much exactly.
    """
    with np.errstate(all="ignore"):
        exact = REFERENCES[name](*(x.astype(np.float64) for x in operands))
        nearest = exact.astype(np.float32)
    for is_fused in fused:
        got = compiled(name, fused=is_fused)(*operands)
        bound = EMITTERS[name].ulp if is_fused else EMITTERS[name].unfused
        is_off = reinterpreted(got, np.int32) != reinterpreted(nearest, np.int32)
        off = np.flatnonzero(is_off) if bound >= 0.5 else np.arange(got.size)
        error = ulps(got[off], exact[off])
        at = int(np.argmax(error)) if error.size else 0
        if error.size and not error[at] <= bound:
            given = ", ".join(repr(x[off[at]]) for x in operands)
            return f"{name}({given}) is {error[at]:.3f} ulp off, fused: {is_fused}"
    return ""


def test_every_emitter_has_a_reference() -> None:
    assert set(EMITTERS) == set(REFERENCES)
    assert trigonometry.sin is EMITTERS["sin"]
    assert doubles.erfc is EMITTERS["erfc"]


def test_the_sweep_is_dense() -> None:
    assert every_kind_of_float().size > 4_000_000


@pytest.mark.parametrize("name", UNARY)
def test_errors_stay_within_the_declared_bound_over_all_floats(name: str) -> None:
    assert worst(name, every_kind_of_float()) == ""


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_angles_near_multiples_of_a_quarter_turn_keep_their_digits(name: str) -> None:
    multiples = (np.arange(1, 2**20) * (math.pi / 2)).astype(np.float32)
    hardest = np.ldexp(np.float32(16367173), np.array([72, 71, 73])).astype(np.float32)
    assert worst(name, padded(np.concatenate([multiples, hardest])), fused=[True]) == ""


@pytest.mark.skipif(not llvm.get_host_cpu_features().get("avx512f"), reason="needs AVX-512")
@pytest.mark.parametrize("lanes", [1, 3, 8, 16])
def test_scaling_by_instruction_gives_the_same_bits(lanes: int) -> None:
    x = every_kind_of_float()
    assert same_bits(compiled("exp", lanes, scales=True)(x), compiled("exp")(x))


@pytest.mark.skipif(not llvm.get_host_cpu_features().get("avx512f"), reason="needs AVX-512")
def test_errors_of_what_is_looked_up_in_registers_stay_within_the_declared_bound() -> None:
    x = padded(np.concatenate([every_kind_of_float(), np.linspace(-4.2, 4.2, 2_000_000, dtype=np.float32)]))
    got = compiled("erf", scales=True)(x)
    with np.errstate(all="ignore"):
        exact = REFERENCES["erf"](x.astype(np.float64))
    assert np.max(ulps(got, exact)) <= EMITTERS["erf"].ulp
    for lanes in (1, 3, 8):
        few = padded(x[::4099])
        assert np.array_equal(
            compiled("erf", lanes, scales=True)(few), compiled("erf", scales=True)(few), equal_nan=True
        )


@pytest.mark.skipif(not llvm.get_host_cpu_features().get("avx512f"), reason="needs AVX-512")
@pytest.mark.parametrize("name", ["log", "log2", "log10", "log1p", "exp2", "arctan", "arcsin", "arccos"])
def test_errors_of_what_has_instructions_for_sixteen_floats_stay_within_the_declared_bound(name: str) -> None:
    x = padded(np.concatenate([every_kind_of_float(), np.linspace(-1.01, 1.01, 2_000_000, dtype=np.float32)]))
    with np.errstate(all="ignore"):
        exact = REFERENCES[name](x.astype(np.float64))
    assert np.max(ulps(compiled(name, scales=True)(x), exact)) <= EMITTERS[name].ulp
    few = padded(x[::4099])
    for lanes in (1, 3, 8):
        assert np.array_equal(compiled(name, lanes, scales=True)(few), compiled(name, scales=True)(few), equal_nan=True)


@pytest.mark.skipif(not llvm.get_host_cpu_features().get("avx512f"), reason="needs AVX-512")
def test_one_and_a_tangent_keep_the_digits_that_their_sum_would_lose() -> None:
    x = every_kind_of_float()
    emitter = Emitter(one_and_tanh, 2.5, 2.5)
    wide, single = (Compiled(emitter, (F32,), F32, lanes, Module(scales=True))(x) for lanes in (16, 1))
    assert np.array_equal(wide, single, equal_nan=True)
    with np.errstate(all="ignore"):
        exact = 2 / (1 + np.exp(-2 * x.astype(np.float64)))
    assert np.max(ulps(wide, exact)[~(x < -43)]) <= emitter.ulp
    assert np.max(wide[x < -43]) < 1e-37


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("lanes", [1, 3, 8])
def test_any_number_of_lanes_gives_the_same_bits(name: str, lanes: int) -> None:
    x = padded(np.concatenate([every_kind_of_float()[::4099], ODD]))
    assert np.array_equal(compiled(name, lanes)(x), compiled(name)(x), equal_nan=True)


def pairs() -> tuple[Array, Array]:
    """Return floats of all kinds against each other."""
    generator = np.random.default_rng(0)
    random = np.stack([reinterpreted(generator.integers(0, 2**32, 2**20, np.uint32), np.float32) for _ in range(2)])
    close: Array = generator.uniform(-1000, 1000, (2, 2**20)).astype(np.float32)
    whole: Array = np.round(close / np.array([[1], [100]], np.float32))
    few = np.concatenate([ODD, np.array([1, -1, 2.5, 3, 7], np.float32)])
    odd: Array = np.stack([grid.ravel() for grid in np.meshgrid(few, few)])
    x, y = np.concatenate([random, close, whole, odd], axis=1)
    return padded(x), padded(y)


@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("name", EXACT)
def test_functions_of_two_are_exact(name: str, lanes: int) -> None:
    x, y = pairs()
    with np.errstate(all="ignore"):
        expected = REFERENCES[name](x, y)
    got = compiled(name, lanes)(x, y)
    assert same_bits(got, expected) if name == "fmod" else np.array_equal(got, expected, equal_nan=True)


@pytest.mark.parametrize("name", [name for name in BINARY if name not in EXACT])
def test_errors_of_functions_of_two_stay_within_the_declared_bound(name: str) -> None:
    x, y = pairs()
    near: Array = np.random.default_rng(1).uniform(-5, 5, (2, 2**20)).astype(np.float32)
    assert worst(name, x, y) == ""
    assert worst(name, padded(np.abs(near[0])), padded(near[1])) == ""


def test_errors_of_blends_stay_within_the_declared_bound() -> None:
    start, apart, weight = np.random.default_rng(2).uniform(0.5, 2, (3, 48 * 1024)).astype(np.float32)
    assert worst("between", start, start + apart, weight) == ""


@pytest.mark.parametrize("triple, cpu, has_all", TARGETS)
@pytest.mark.parametrize("lanes", [1, 3, 16])
def test_no_target_calls_a_library(triple: str, cpu: str, has_all: bool, lanes: int) -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, opt=2, reloc="pic", codemodel="default")
    for name, emit in (EMITTERS | {"half": to_half, "bfloat": to_bfloat}).items():
        module = Module(fused=has_all, converts_half=has_all, scales=cpu == "x86-64-v4")
        takes, gives = (F32,) * operand_count(name), {"half": "half", "bfloat": "i16"}.get(name, F32)
        assembly: str = machine.emit_assembly(llvm.parse_assembly(loop(module, emit, takes, gives, lanes)))
        assert set(CALL.findall(assembly)) <= {"within_a_turn"}, name


@pytest.mark.parametrize("hardware", [True, False])
@pytest.mark.parametrize("lanes", [1, 8, 16])
def test_every_half_becomes_the_float_it_is(hardware: bool, lanes: int) -> None:
    halves = reinterpreted(padded(np.arange(2**16, dtype=np.uint16)), np.float16)
    widen = Compiled(narrow.to_f32, ("half",), F32, lanes, Module(converts_half=hardware))
    assert same_bits(widen(halves), halves.astype(np.float32))


@pytest.mark.parametrize("hardware", [True, False])
def test_floats_round_to_the_nearest_half(hardware: bool) -> None:
    x = np.concatenate([every_kind_of_float(), halfway(np.float16)])
    shrink = Compiled(to_half, (F32,), "half", 16, Module(converts_half=hardware))
    with np.errstate(all="ignore"):
        assert same_bits(shrink(x, gives=np.float16), x.astype(np.float16))


def test_bfloat_is_the_upper_half_of_a_float() -> None:
    bits = padded(np.arange(2**16, dtype=np.uint16))
    widen = Compiled(narrow.to_f32, ("i16",), F32, 16, Module())
    assert same_bits(widen(bits), reinterpreted(bits, ml_dtypes.bfloat16).astype(np.float32))


def test_floats_round_to_the_nearest_bfloat() -> None:
    x = np.concatenate([every_kind_of_float(), halfway(ml_dtypes.bfloat16)])
    shrink = Compiled(to_bfloat, (F32,), "i16", 16, Module())
    got = reinterpreted(shrink(x, gives=np.uint16), ml_dtypes.bfloat16)
    with np.errstate(all="ignore"):
        assert same_bits(got.astype(np.float32), x.astype(ml_dtypes.bfloat16).astype(np.float32))


def to_half(b: Builder, x: Value) -> Value:
    """Emit the conversion to half."""
    return narrow.from_f32(b, x, "half")


def to_bfloat(b: Builder, x: Value) -> Value:
    """Emit the conversion to bfloat16."""
    return narrow.from_f32(b, x, "bfloat")


def halfway(kind: Any) -> Array:
    """Return the floats half between neighbours of a narrow type, and those next to them."""
    every = reinterpreted(np.arange(2**15, dtype=np.uint16), kind).astype(np.float32)
    finite = every[np.isfinite(every)]
    middle = ((finite[:-1].astype(np.float64) + finite[1:]) / 2).astype(np.float32)
    sides = [np.nextafter(middle, np.float32(to)) for to in (np.inf, 0)]
    positive = np.concatenate([finite, middle, *sides])
    return padded(np.concatenate([positive, -positive]))


def same_bits(got: Array, expected: Array) -> bool:
    """Return whether two arrays agree, signs of zeros too; NaNs are all alike."""
    signs = np.signbit(got) == np.signbit(expected)
    return np.array_equal(got, expected, equal_nan=True) and bool(np.all(signs | np.isnan(expected)))
