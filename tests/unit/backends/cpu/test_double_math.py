"""Double math: exponentials, logarithms and error functions of doubles, against what has more digits."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from unit.backends.cpu.test_vectormath import CALL, TARGETS, Array, Compiled, Emit, llvm, loop, padded

from tilewright.backends.cpu.compute import (
    double_arcs,
    double_differences,
    double_logs,
    double_math,
    double_powers,
    double_tails,
    error_functions,
    library,
)
from tilewright.native.llvm import F64, Builder, Module, Value
from tilewright.native.terms import Term

WIDE = np.longdouble
FUNCTIONS: dict[str, Callable[[Term], Term]] = {
    "exp": double_math.exp,
    "exp2": double_math.exp2,
    "log": double_math.log,
    "log2": double_math.log2,
    "log10": double_math.log10,
    "tanh": double_math.tanh,
    "expm1": double_differences.expm1,
    "sinh": double_differences.sinh,
    "cosh": double_differences.cosh,
    "log1p": double_logs.log1p,
    "arcsinh": double_logs.arcsinh,
    "arccosh": double_logs.arccosh,
    "arctanh": double_logs.arctanh,
    "arcsin": double_arcs.arcsin,
    "arccos": double_arcs.arccos,
    "arctan": double_arcs.arctan,
    "erf": error_functions.erf,
    "erfc": double_tails.erfc,
}
BOUNDS = {"tanh": 2.0, "erf": 2.5, "erfc": 4.0}  # the last two against a library that is off itself
ODD = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308])
NEAR = (
    0.0703125,
    0.3465735,
    0.3984375,
    0.5,
    0.70710678,
    1.0,
    1.41421356,
    2.0,
    5.578125,
    5.94,
    9.0,
    20.0,
    708.3,
    709.782712893384,
    745.13,
)


def _reference(name: str, x: Array) -> Array:
    if name in ("erf", "erfc"):
        return np.array([getattr(math, name)(each) for each in x.tolist()]).astype(WIDE)
    with np.errstate(all="ignore"):
        return getattr(np, name)(x.astype(WIDE))


@cache
def _compiled(name: str, lanes: int, scales: bool) -> Compiled:
    return Compiled(_emitter(name), (F64,), F64, lanes, Module(scales=scales))


def _emitter(name: str) -> Emit:
    def emit(b: Builder, x: Value) -> Value:
        return FUNCTIONS[name](Term(b, x)).value

    return emit


@cache
def _every_kind() -> Array:
    generator = np.random.default_rng(3)
    bits = np.frombuffer(generator.integers(0, 2**64, 100_000, np.uint64).tobytes(), np.float64)
    spans = [generator.uniform(-span, span, 50_000) for span in (0.5, 2.0, 6.0, 25.0, 750.0)]
    close = [sign * point * (1 + np.arange(-500, 500) * 2.0**-52) for point in NEAR for sign in (1, -1)]
    small = np.exp(generator.uniform(-740, 0, 50_000))
    return padded(np.concatenate([bits, *spans, *close, small, 1 + small, ODD]))


def _off(got: Array, exact: Array) -> Array:
    """Return errors in units of the last place; infinite where kinds or signs of zero differ."""
    with np.errstate(all="ignore"):
        nearest = exact.astype(np.float64)
        unit = np.ldexp(1.0, np.maximum(np.frexp(nearest)[1] - 53, -1074))
        error = np.abs(got.astype(WIDE) - exact) / unit
    same = (got == nearest) | (np.isnan(got) & np.isnan(nearest))
    error = np.where(np.isfinite(nearest) & np.isfinite(got), error, np.where(same, 0.0, np.inf))
    return np.where((exact == 0) & (np.signbit(exact) != np.signbit(got)), np.inf, error)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_of_doubles_stay_within_the_bound(name: str) -> None:
    x = _every_kind()
    error = _off(_compiled(name, 8, False)(x, gives=np.float64), _reference(name, x))
    worst = int(np.argmax(error))
    assert error[worst] <= BOUNDS.get(name, 1.0), f"{name}({x[worst]!r}) is {error[worst]:.2f} off"


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("lanes", [1, 3, 8, 16])
def test_any_number_of_lanes_and_any_instructions_give_the_same_bits(name: str, lanes: int) -> None:
    x, want = _every_kind(), _compiled(name, 8, False)(_every_kind(), gives=np.float64)
    for scales in [False, True] if llvm.get_host_cpu_features().get("avx512f") else [False]:
        assert np.array_equal(_compiled(name, lanes, scales)(x, gives=np.float64), want, equal_nan=True)


@pytest.mark.parametrize("triple, cpu", [(triple, cpu) for triple, cpu, has_all in TARGETS if has_all])
@pytest.mark.parametrize("lanes", [1, 3, 16])
def test_no_target_calls_a_library_for_them(triple: str, cpu: str, lanes: int) -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, opt=2, reloc="pic", codemodel="default")
    for name in FUNCTIONS:
        text = loop(Module(scales=cpu == "x86-64-v4"), _emitter(name), (F64,), F64, lanes)
        assert not CALL.findall(machine.emit_assembly(llvm.parse_assembly(text)))


@cache
def _angles() -> Array:
    generator = np.random.default_rng(5)
    spans = [generator.uniform(-span, span, 100_000) for span in (0.8, 4.0, 100.0, 1e4, 8388608.0)]
    multiples = np.arange(1, 200_000) * (np.pi / 2)
    small = np.exp(generator.uniform(-740, 0, 50_000))
    return padded(np.concatenate([*spans, multiples, -multiples, small, ODD[:6]]))


def _of_angles(name: str, lanes: int, x: Array) -> Array:
    return Compiled(library.FUNCTIONS[name], (F64,), F64, lanes, Module())(x, gives=np.float64)


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_errors_of_angles_that_are_not_huge_stay_within_one_unit(name: str) -> None:
    x = _angles()
    error = _off(_of_angles(name, 8, x), _reference(name, x))
    worst = int(np.argmax(error))
    assert error[worst] <= 1.0, f"{name}({x[worst]!r}) is {error[worst]:.2f} off"


@pytest.mark.parametrize("name", ["sin", "cos"])
@pytest.mark.parametrize("lanes", [1, 3, 16])
def test_an_angle_gives_the_same_bits_beside_huge_ones(name: str, lanes: int) -> None:
    x = np.where(np.arange(_angles().size) % 5 == 0, 1e30, _angles())
    found = _of_angles(name, 8, x)
    assert np.array_equal(_of_angles(name, lanes, x), found, equal_nan=True)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(found, getattr(np, name)(x), rtol=1e-15, atol=1e-15)


PAIRS: dict[str, Callable[[Term, Term], Term]] = {"power": double_powers.power, "arctan2": double_arcs.arctan2}


@cache
def _pairs() -> tuple[Array, Array]:
    generator = np.random.default_rng(7)
    x, odd = _every_kind(), generator.choice(ODD, (2, 4096))
    near, grown = (np.exp(generator.uniform(-span, span, 100_000)) for span in (1e-3, 600.0))
    y = [generator.permutation(x), generator.uniform(-7e5, 7e5, near.size), generator.uniform(-1.2, 1.2, grown.size)]
    whole = generator.integers(-5, 6, x.size).astype(np.float64)
    return padded(np.concatenate([x, near, grown, x, odd[0]])), padded(np.concatenate([*y, whole, odd[1]]))


def _of_pairs(name: str, lanes: int, scales: bool = False) -> Array:
    def emit(b: Builder, x: Value, y: Value) -> Value:
        return PAIRS[name](Term(b, x), Term(b, y)).value

    return Compiled(emit, (F64, F64), F64, lanes, Module(scales=scales))(*_pairs(), gives=np.float64)


@pytest.mark.parametrize("name", PAIRS)
def test_errors_of_powers_and_angles_stay_within_the_bound(name: str) -> None:
    x, y = _pairs()
    with np.errstate(all="ignore"):
        error = _off(_of_pairs(name, 8), getattr(np, name)(x.astype(WIDE), y.astype(WIDE)))
    worst = int(np.argmax(error))
    assert error[worst] <= 1.25, f"{name}({x[worst]!r}, {y[worst]!r}) is {error[worst]:.2f} off"
    is_normal = np.abs(x) > 1e-290
    assert error[is_normal].max() <= 1.0


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("lanes", [1, 3, 16])
def test_any_number_of_lanes_gives_the_same_powers_and_angles(name: str, lanes: int) -> None:
    want = _of_pairs(name, 8)
    for scales in [False, True] if llvm.get_host_cpu_features().get("avx512f") else [False]:
        assert np.array_equal(_of_pairs(name, lanes, scales), want, equal_nan=True)


@pytest.mark.parametrize("lanes", [1, 8])
def test_remainders_of_doubles_are_exact(lanes: int) -> None:
    generator = np.random.default_rng(9)
    x, y = _pairs()
    tenths = [generator.integers(-limit, limit, 50_000) * 0.1 for limit in (1000, 30)]
    x, y = padded(np.concatenate([x, tenths[0], 1e12 * tenths[0]])), padded(np.concatenate([y, *tenths[1:] * 2]))
    found = Compiled(library.FUNCTIONS["fmod"], (F64, F64), F64, lanes, Module())(x, y, gives=np.float64)
    with np.errstate(all="ignore"):
        wanted = np.fmod(x, y)
    assert np.array_equal(found, wanted, equal_nan=True)
    assert np.array_equal(np.signbit(found)[~np.isnan(wanted)], np.signbit(wanted)[~np.isnan(wanted)])


def test_a_tail_is_off_by_a_few_units() -> None:
    x = padded(np.linspace(-6, 26, 20_000))

    def emit(b: Builder, x: Value) -> Value:
        return double_tails.tail(Term(b, x)).value

    found = Compiled(emit, (F64,), F64, 8, Module())(x, gives=np.float64)
    assert _off(found, _reference("erfc", x)).max() <= 8  # of a library that is off by three
