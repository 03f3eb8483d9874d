"""The families: elementwise ops, reductions and expansions, each in every element type it accepts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from ops import references
from ops.kernels import Array, floating, kernel, out, run, scalar, tensor, type_of

import tilewright.language as pl
from tilewright.core.build import call
from tilewright.core.expr import Var
from tilewright.core.op import OPS, Kind, Op, Parameter, Role
from tilewright.core.program import Function
from tilewright.core.types import ScalarType, TensorType, TileType, static_shape, tile
from tilewright.core.types import tensor as tensor_type
from tilewright.dtypes import DataType

SHAPE = (5, 37)
SENTINEL = 77


@dataclass(frozen=True)
class Case:
    """One op on elements of one type."""

    op: Op
    dtype: DataType

    def __str__(self) -> str:
        return f"{self.op.name}-{self.dtype}"

    @property
    def takes_a_scalar(self) -> bool:
        return any(p.name == "rhs" and p.role is Role.EITHER for p in self.op.spec.operands)

    @property
    def reference(self) -> Callable[..., Any] | None:
        """What `references.py` says about the op on such elements, if anything."""
        if self.dtype == pl.FP64 and self.op.spec.name in ("fmod", "rem"):
            return None  # torch gives NaN where the quotient of two doubles is none
        return references.table(self.op.spec.family, self.dtype).get(self.op.spec.name)


def cases(family: str) -> Iterator[Case]:
    for op in OPS.values():
        if op.spec.family == family:
            yield from (Case(op, dtype) for dtype in sorted(op.spec.accepts, key=str))


def each(chosen: Sequence[Case]) -> Callable[[Callable[[Case], None]], Callable[[Op], None]]:
    """Make a test of each op out of what is asked about one case: all its element types in one go."""
    by_op: dict[str, list[Case]] = {}
    for case in chosen:
        by_op.setdefault(case.op.name, []).append(case)

    def decorate(check: Callable[[Case], None]) -> Callable[[Op], None]:
        def test(op: Op) -> None:
            for case in by_op[op.name]:
                check(case)

        return pytest.mark.parametrize("op", [OPS[name] for name in by_op], ids=lambda op: op.name)(test)

    return decorate


ALL = [*cases("elementwise"), *cases("reduction"), *cases("expansion")]
every_case = each(ALL)
every_tile_case = each([c for c in ALL if c.op.kind is Kind.TILE])


def required(case: Case) -> list[Parameter]:
    return [p for p in case.op.spec.operands if p.default is not None]


def operand_shapes(case: Case) -> list[tuple[int, ...]]:
    """Return the shape of each operand; a plain number has none."""
    vector = (SHAPE[0], 1) if case.op.spec.name.startswith("row") else (1, SHAPE[1])
    shapes = {"vec": vector} if case.op.spec.family == "expansion" else {}
    return [() if p.role is Role.NUMBER else shapes.get(p.name, SHAPE) for p in required(case)]


def sampled(case: Case, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Return ordinary elements from the op's domain."""
    low, high = case.op.spec.domain
    values = rng.uniform(low, high, shape)
    if case.dtype.is_float():
        return np.minimum(values, float(floating(case.dtype.numpy).max)).astype(case.dtype.numpy)
    low = max(low, case.dtype.limits[0])
    return np.floor(low + (values - values.min(initial=0)) % (high - low)).astype(case.dtype.numpy)


def special(dtype: DataType, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Return the elements where meanings go wrong, in random places."""
    return rng.choice(np.array(_specials(dtype), dtype.numpy), shape)


def _specials(dtype: DataType) -> list[float]:
    if dtype == pl.BOOL:
        return [0, 1]
    if dtype.is_int():
        low, high = dtype.limits
        return [low, low + 1, 0, 1, 2, 3, high - 1, high, *([-1, -7] if low else [])]
    info = floating(dtype.numpy)
    tiny, top = float(info.smallest_subnormal), float(info.max)
    return [math.nan, math.inf, -math.inf, 0.0, -0.0, tiny, -tiny, 1.0, -1.5, float(info.tiny), top, -top]


def operands(case: Case) -> list[tuple[Array, ...]]:
    """Return two sets of operands, ordinary and special; a plain number is an array of no axes."""
    rng = np.random.default_rng(len(case.op.name))
    shapes = operand_shapes(case)
    ordinary = tuple(sampled(case, shape, rng) for shape in shapes)
    return [ordinary, tuple(special(case.dtype, shape, rng) for shape in shapes)]


def parameters(case: Case) -> dict[str, str]:
    return {
        p.name: tensor(case.dtype, *shape) if shape else scalar(case.dtype)
        for p, shape in zip(required(case), operand_shapes(case), strict=True)
    }


@cache
def computed(case: Case) -> TileType | TensorType:
    """Return the type an op computes."""
    made = tile if case.op.kind is Kind.TILE else tensor_type
    given = dict.fromkeys(p.name for p in case.op.spec.parameters) | {
        p.name: Var(p.name, made(shape, case.dtype) if shape else ScalarType(case.dtype))
        for p, shape in zip(required(case), operand_shapes(case), strict=True)
    }
    result = call(case.op.spec, given).type
    assert isinstance(result, (TileType, TensorType))
    return result


@cache
def family_kernel(case: Case, valid: tuple[int, int] | None = None) -> Function:
    """Return a kernel that applies the op to whole tensors, or to tiles of which `valid` is loaded."""
    lines, names = list[str](), list[str]()
    for p, shape in zip(required(case), operand_shapes(case), strict=True):
        loads = case.op.kind is Kind.TILE and shape
        names.append(f"{p.name}_tile" if loads else p.name)
        if loads:
            part = [min(v, extent) for v, extent in zip(valid or SHAPE, shape, strict=True)]
            lines.append(f"{p.name}_tile = pl.load({p.name}, [0, 0], {list(shape)}, valid_shape={part})")
    lines.append(f"result = pl.{case.op.name}({', '.join(names)})")
    result = computed(case)
    store = "pl.store(result, [0, 0], out)" if case.op.kind is Kind.TILE else "pl.assemble(out, result, [0, 0])"
    return kernel(
        "\n".join([*lines, f"out = {store}", "return out"]),
        **parameters(case),
        out=out(result.dtype, *static_shape(result.shape)),
    )


def arguments(values: tuple[Array, ...]) -> list[Array | float]:
    return [value if value.ndim else value.item() for value in values]


def result_type(function: Function) -> TileType | TensorType:
    type_ = type_of(function, "result")
    assert isinstance(type_, (TileType, TensorType))
    return type_


@every_case
def test_a_result_has_the_shape_its_family_says(case: Case) -> None:
    result = result_type(family_kernel(case))
    folded = {"row": (SHAPE[0], 1), "col": (1, SHAPE[1])}.get(case.op.spec.name[:3], SHAPE)
    assert result.shape == (folded if case.op.spec.family == "reduction" else SHAPE)


@every_case
def test_a_kernel_reads_back_as_it_prints(case: Case) -> None:
    text = str(family_kernel(case, valid=(3, 17)))
    assert str(pl.parse(text)) == text


@each([c for c in ALL if c.reference])
def test_elements_are_what_the_reference_says(case: Case) -> None:
    function = family_kernel(case)
    for values in operands(case):
        assert_elements(run(function, *arguments(values)), expected(case, values))


@every_case
def test_running_twice_gives_the_same_bits(case: Case) -> None:
    function = family_kernel(case)
    for values in operands(case):
        first, second = (run(function, *arguments(values)) for _ in range(2))
        assert first.tobytes() == second.tobytes()


@every_tile_case
def test_only_the_valid_part_is_computed_and_stored(case: Case) -> None:
    rows, columns = 3, 17
    function = family_kernel(case, valid=(rows, columns))
    values = operands(case)[0]
    cut = tuple(v[:rows, :columns] if v.ndim else v for v in values)
    result = run(function, *arguments(values), fill=SENTINEL)
    valid = static_shape(result_type(function).valid)
    if case.reference:
        assert_elements(result[: valid[0], : valid[1]], expected(case, cut))
    result[: valid[0], : valid[1]] = SENTINEL
    assert (result == np.full_like(result, SENTINEL)).all()


@every_tile_case
def test_a_tile_that_holds_nothing_gives_nothing(case: Case) -> None:
    function = family_kernel(case, valid=(0, 0))
    result = run(function, *arguments(operands(case)[0]), fill=SENTINEL)
    assert 0 in static_shape(result_type(function).valid)
    assert (result == np.full_like(result, SENTINEL)).all()


@each([c for c in cases("elementwise") if c.takes_a_scalar])
def test_a_scalar_operand_acts_like_a_tile_full_of_it(case: Case) -> None:
    prepare = "" if case.op.kind is Kind.TENSOR else "lhs = pl.load(x, [0, 0], [5, 37])\n"
    lhs, store = ("x", "pl.assemble(out, r, [0, 0])") if not prepare else ("lhs", "pl.store(r, [0, 0], out)")
    number = operands(case)[0][1]
    whole = np.full(SHAPE, number[0, 0], number.dtype)
    x, *others = operands(case)[1]
    given = ", ".join([lhs, "n", *[lhs] * len(others[1:])])
    function = kernel(
        f"{prepare}r = pl.{case.op.name}({given})\nout = {store}\nreturn out",
        x=tensor(case.dtype, *SHAPE),
        n=scalar(case.dtype),
        out=out(result_type(family_kernel(case)).dtype, *SHAPE),
    )
    tiles = [x, whole, *[x] * len(others[1:])]
    assert run(function, x, number[0, 0].item()).tobytes() == run(family_kernel(case), *tiles).tobytes()


def test_a_reference_belongs_to_an_op() -> None:
    known = {op.spec.name for op in OPS.values()}
    tables = [references.table(f, t) for f in ("elementwise", "reduction", "expansion") for t in (pl.FP32, pl.INT8)]
    assert set().union(*tables) <= known


def expected(case: Case, values: tuple[Array, ...]) -> Array:
    """Return exact results: integers still to be wrapped, floats still to be rounded."""
    assert case.reference
    if case.dtype.is_float():
        return case.reference(*(references.in_torch(v) for v in values)).numpy()
    if case.op.spec.family == "reduction":
        return _folded(case.reference, values[0], case.op.spec.name)
    return _one_by_one(case.reference, values)


def _folded(fold: Callable[[list[int]], int], values: Array, name: str) -> Array:
    if name.startswith("row"):
        return np.array([[fold(row.tolist())] for row in values], object)
    return np.array([[fold(column.tolist()) for column in np.transpose(values)]], object)


def _one_by_one(meaning: Callable[..., int], values: tuple[Array, ...]) -> Array:
    arrays = np.broadcast_arrays(*values)
    flat = [meaning(*numbers) for numbers in zip(*(a.ravel().tolist() for a in arrays), strict=True)]
    return np.reshape(np.array([*flat, None], object)[:-1], arrays[0].shape)


def assert_elements(result: Array, want: Array) -> None:
    """Fail unless integers are equal and floats are the nearest ones: the interpreter rounds once.

    Doubles are as exact as the reference, which has nothing wider to compute in.
    """
    assert result.shape == want.shape
    if result.dtype.kind in "iub":
        bits = 1 if result.dtype == bool else result.dtype.itemsize * 8
        assert [v % 2**bits for v in result.ravel().tolist()] == [v % 2**bits for v in want.ravel().tolist()]
        return
    got = result.astype(np.float64)
    with np.errstate(all="ignore"):
        slack = 16.0 if result.dtype == np.float64 else 0.5 + 1e-6
        wrong = np.abs(got - want) > ulp(want, result.dtype) * slack
    finite = np.isfinite(got) & np.isfinite(want)
    assert not (wrong & finite).any()
    assert_not_finite_where(got[~finite], want[~finite], result.dtype)


def assert_not_finite_where(got: Array, want: Array, dtype: np.dtype[Any]) -> None:
    """Fail unless NaN meets NaN, and infinity meets what the type cannot hold."""
    info = floating(dtype)
    limit = float(info.max) * (1 + float(info.eps) / 4)
    rounded = np.where(np.abs(want) > limit, np.copysign(np.inf, want), want)
    np.testing.assert_array_equal(got, rounded)


def ulp(values: Array, dtype: np.dtype[Any]) -> Array:
    """Return the distance between neighbours of `dtype` around each value."""
    info = floating(dtype)
    exponent = np.frexp(values)[1] - 1
    return np.maximum(np.ldexp(float(info.eps), exponent), float(info.smallest_subnormal))
