"""Native code against the interpreter: every tile op, in every element type it accepts."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from ops.kernels import Array, kernel, out, scalar
from ops.native import Native, assert_same
from ops.test_every_op import example, title
from ops.test_families import Case, computed, operand_shapes, operands, parameters, required
from ops.test_families import cases as cases_of

import tilewright.language as pl
from tilewright.backends.cpu.host.program import HANDLERS
from tilewright.core.op import OPS, Kind, Op, OpSpec, specs
from tilewright.core.types import static_shape

SHAPE, VALID = (5, 37), (3, 17)
FAMILIES = ("elementwise", "reduction", "expansion")


@dataclass
class Batch:
    """Several uses of an op in one kernel: what it says, and what it is given."""

    lines: list[str] = field(default_factory=list[str])
    parameters: dict[str, str] = field(default_factory=dict[str, str])
    values: list[Array] = field(default_factory=list[Array])
    outputs: dict[str, Case] = field(default_factory=dict[str, Case])

    def give(self, name: str, annotation: str, value: Array) -> None:
        """Add a parameter and its argument."""
        self.parameters[name] = annotation
        self.values.append(value)


def family_cases(op: Op) -> list[Case]:
    return [case for case in cases_of(op.spec.family) if case.op is op]


def batch(op: Op, special: bool) -> Batch:
    """Return an op applied in each of its types to whole tiles, to partly valid ones, and to a scalar."""
    result = Batch()
    result.give("rows", scalar(pl.INDEX), np.asarray(VALID[0]))
    result.give("columns", scalar(pl.INDEX), np.asarray(VALID[1]))
    for case in family_cases(op):
        values = operands(case)[special]
        if special and op.spec.combine == "multiply" and case.dtype.is_float():
            values = tuple(_without_extremes(value) for value in values)
        names = [f"{p.name}_{case.dtype}" for p in required(case)]
        for name, annotation, value in zip(names, parameters(case).values(), values, strict=True):
            result.give(name, annotation, value)
        for variant, valid in enumerate((SHAPE, VALID, ("rows", "columns"))):
            _use(result, case, names, f"{case.dtype}_{variant}", valid)
        if case.takes_a_scalar:
            result.give(f"n_{case.dtype}", scalar(case.dtype), values[1][1, 1])
            _use(result, case, [names[0], f"n_{case.dtype}", *names[2:]], f"{case.dtype}_n", SHAPE)
    return result


def _use(result: Batch, case: Case, names: list[str], suffix: str, valid: tuple[int | str, int | str]) -> None:
    """Add one use of an op on tiles of which `valid` is loaded."""
    given: list[str] = []
    shapes = operand_shapes(case)
    for position, name in enumerate(names):
        shape = () if name.startswith("n_") else shapes[position]
        given.append(f"t{position}_{suffix}" if shape else name)
        if shape:
            part = [1 if extent == 1 else v for v, extent in zip(valid, shape, strict=True)]
            load = f"pl.load({name}, [0, 0], {list(shape)}, valid_shape=[{part[0]}, {part[1]}])"
            result.lines.append(f"{given[-1]} = {load}")
    result.lines.append(f"r_{suffix} = pl.{case.op.name}({', '.join(given)})")
    type_ = computed(case)
    shape = static_shape(type_.shape)
    result.give(f"out_{suffix}", out(type_.dtype, *shape), np.full(shape, 77, type_.dtype.numpy))
    result.lines.append(f"out_{suffix} = pl.store(r_{suffix}, [0, 0], out_{suffix})")
    result.outputs[f"out_{suffix}"] = case


def _without_extremes(values: Array) -> Array:
    """Return elements whose products stay within the range of floats, or leave it for good."""
    size = np.abs(values.astype(np.float64))
    return np.where((size < 0.1) & (size > 0) | (size > 10) & np.isfinite(size), np.ones_like(values), values)


TILE_OPS = [op for op in OPS.values() if op.kind is Kind.TILE and op.spec.expand is None]
family_ops = [op for op in TILE_OPS if op.spec.family in FAMILIES]


@pytest.mark.parametrize("op", family_ops, ids=lambda op: op.spec.name)
def test_an_op_of_a_family_computes_what_the_interpreter_does(op: Op) -> None:
    ordinary, special = batch(op, False), batch(op, True)
    native = Native(kernel("\n".join(ordinary.lines), **ordinary.parameters))
    for given in (ordinary, special):
        arrays = [name for name, value in zip(given.parameters, given.values, strict=True) if value.ndim]
        for name, (got, want) in zip(arrays, native.run(given.values), strict=True):
            if name in given.outputs:
                compare(given.outputs[name], got, want, given)


def compare(case: Case, got: Array, want: Array, given: Batch) -> None:
    """Fail unless a result is within what its op allows; a sum is as exact as its terms are large."""
    scale = None
    if case.op.spec.combine == "add":
        terms = np.abs(np.nan_to_num(given.values[list(given.parameters).index(f"x_{case.dtype}")].astype(np.float64)))
        with np.errstate(over="ignore"):
            total = np.sum(terms, axis=-1 if want.shape[-1] == 1 else 0, keepdims=True)
        scale = np.broadcast_to(total, want.shape)
    assert_same(got, want, case.op.spec.accuracy(case.dtype), scale)


@pytest.mark.parametrize("spec", [s for s in specs() if Kind.TILE in s.kinds and s.example], ids=title)
def test_an_example_does_what_the_interpreter_does(spec: OpSpec) -> None:
    rng = np.random.default_rng(1)
    x, y, result = (rng.uniform(0.5, 2.0, (16, 32)).astype(np.float32) for _ in range(3))
    for got, want in Native(example(spec)).run([x, y, result, np.ones((16, 16), np.float32)]):
        assert_same(got, want, max(spec.ulp, 4))


def test_every_op_of_tiles_has_native_code() -> None:
    missing = [op.name for op in TILE_OPS if op.spec.family != "derived" and HANDLERS.found(op) is None]
    assert not missing
