"""Every use of an op: what its rule accepts, native code and the interpreter do alike.

`sampling.py` finds the uses from the declarations: every accepted element type and pairs of them, every keyword alone
and in pairs, on tiles and on tensors, on matrices and on batches of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from ops.kernels import Array, inout, kernel, launch, out, scalar, tensor
from ops.native import Native, assert_same
from ops.sampling import ABSENT, Sampler, Use
from ops.torch_texts import can_be_said, check_torch
from soon import soon

from tilewright import dtypes as dt
from tilewright.core.op import OPS, Kind, Op, Role
from tilewright.core.types import ScalarType, TensorType, TileType, is_static, static_shape
from tilewright.errors import ExecutionError, OperandError

TOGETHER, IN_TORCH = 24, 2
"""How many uses share a kernel, and how many kernels are written as torch text."""
DTYPE_PAIRS, OPTION_PAIRS = 4, 1
"""How many pairs of element types an op gets, of all that `make fuzz` tries, and how many values a pair of keywords."""

LEFT_OUT = (
    "tensor.paged_gather", "tile.matmul_mx", "tile.matmul_mx_acc", "tile.matmul_mx_bias", "tile.put",
    *(name for name, op in OPS.items() if op.spec.is_atomic),
)  # fmt: skip
"""Ops whose operands have shapes and element types of their own, each: `test_memory_gather.py`, `test_mx.py`,
`test_indexed.py` and `test_atomics.py` have their uses."""

SHAPED = [
    op
    for op in OPS.values()
    if op.kind in (Kind.TILE, Kind.TENSOR) and op.spec.operands and op.name not in LEFT_OUT and op.spec.expand is None
]


class Kernel:
    """Several uses of one op in one kernel: its text, and what it is given."""

    def __init__(self, op: Op, uses: Sequence[Use]) -> None:
        self.op = op
        self.rng = np.random.default_rng(len(uses))
        self.parameters: dict[str, str] = {}
        self.values: dict[str, Array | float] = {}
        self.loads: dict[str, str] = {}
        self.lines: list[str] = []
        for number, use in enumerate(uses):
            self._use(number, use)
        function = kernel("\n".join([*self.loads.values(), *self.lines]), **self.parameters)
        self.function = function

    @property
    def arguments(self) -> list[Any]:
        return [np.array(v) if isinstance(v, np.ndarray) else v for v in self.values.values()]

    def _use(self, number: int, use: Use) -> None:
        text = use.text
        for name, given in use.given:
            if given.tensor is not None:
                type_ = given.tensor.type
                assert isinstance(type_, TensorType)
                source = given.tensor.name_hint
                if source.startswith("w"):
                    text = text.replace(f"{name}={source}", f"{name}={source}_{number}")
                    self._give(f"{source}_{number}", inout(type_.dtype, *static_shape(type_.shape)), self._data(type_))
                    continue
                self._give(source, tensor(type_.dtype, *static_shape(type_.shape)), self._data(type_))
                if given.text != source:
                    shape = list(static_shape(type_.shape))
                    self.loads[given.text] = f"{given.text} = pl.load({source}, {[0] * len(shape)}, {shape})"
            for word in ("n0", "n2"):
                if word in given.text:
                    self._give(word, scalar(dt.INDEX), int(word[1:]))
            if given.text.startswith("s_"):
                dtype = given.value.type.dtype
                self._give(given.text, scalar(dtype), 1.5 if dtype.is_float() else 2)
            if given.text == "flag":
                self._give("flag", scalar(dt.BOOL), True)
        self.lines += [f"r{number} = {text}", *self._kept(number, use)]

    def _kept(self, number: int, use: Use) -> Iterator[str]:
        """Yield the statement that shows what a use gave."""
        name, type_ = f"out{number}", use.type
        if isinstance(type_, ScalarType):
            dtype = dt.INT64 if type_.dtype == dt.INDEX else type_.dtype
            value = f"pl.cast(r{number}, pl.INT64)" if type_.dtype == dt.INDEX else f"r{number}"
            self._give(name, out(dtype, 1), np.zeros(1, dtype.numpy))
            yield f"{name} = pl.write({name}, [0], {value})"
        elif isinstance(type_, (TileType, TensorType)):
            shape = static_shape(type_.shape)
            self._give(name, out(type_.dtype, *shape), np.full(shape, 1, type_.dtype.numpy))
            zeros = [0] * len(shape)
            is_tile = isinstance(type_, TileType)
            yield (
                f"{name} = pl.store(r{number}, {zeros}, {name})"
                if is_tile
                else f"{name} = pl.assemble({name}, r{number}, {zeros})"
            )

    def _give(self, name: str, annotation: str, value: Array | float) -> None:
        if name not in self.parameters:
            self.parameters[name], self.values[name] = annotation, value

    def _data(self, type_: TensorType) -> Array:
        """Return numbers in quarters, whose sums and products are exact; of the op's domain, where it has one."""
        low, high = self.op.spec.domain
        shape, dtype = static_shape(type_.shape), type_.dtype
        if dtype == dt.BOOL:
            return self.rng.integers(0, 2, shape).astype(bool)
        if dtype.is_int():
            least, most = (int(bound) for bound in (max(low, dtype.limits[0], -8), min(high, dtype.limits[1], 8)))
            return self.rng.integers(least, most, shape, endpoint=True).astype(dtype.numpy)
        if self.op.spec.combine == "multiply":  # of so many that one order of them may overflow, and another not
            return self.rng.choice([1.0] * 28 + [-1.0] * 4 + [0.5, 2.0], shape).astype(dtype.numpy)
        values = self.rng.uniform(low, high, shape)
        with np.errstate(over="ignore"):
            return (np.round(values * 4) / 4 if low < 0 else values).astype(dtype.numpy)


def can_be_kept(use: Use) -> bool:
    """Return whether a kernel can store what a use gives, which must be all there."""
    type_ = use.type
    if isinstance(type_, ScalarType):
        return type_.dtype in (*dt.STORABLE, dt.INDEX)
    return isinstance(type_, (TileType, TensorType)) and is_static(type_.shape) and bool(type_.shape)


def is_determined(use: Use) -> bool:
    """Return whether there is something that a use computes from: memory that was only asked for holds anything."""
    roles = {p.name: p.role for p in use.op.spec.parameters}
    return any(
        given.tensor is not None
        or (given is not ABSENT and roles[name] is Role.NUMBER)
        or (type(given.value) in (int, float) and roles[name] is Role.ATTRIBUTE)
        for name, given in use.given
    )


@dataclass(frozen=True, eq=False)
class Tried:
    """A kernel of several uses of an op, and what the interpreter leaves in its arguments."""

    kernel: Kernel
    uses: Sequence[Use]
    left: Sequence[Any]

    @property
    def is_sayable(self) -> bool:
        """Whether torch has all the element types."""
        return all(map(can_be_said, self.uses))


def tried(op: Op, uses: Sequence[Use]) -> list[Tried]:
    """Return the uses with numbers that their elements can have and to which the interpreter has no objection.

    Most run, so they are tried together, and in halves where something is refused. What is refused is tested elsewhere.
    """
    try:
        together = Kernel(op, uses)
        launch(together.function, *(arguments := together.arguments))
    except (ExecutionError, OperandError):
        half = len(uses) // 2
        return [*tried(op, uses[:half]), *tried(op, uses[half:])] if half else []
    return [Tried(together, uses, arguments)]


def gathered(op: Op, uses: Sequence[Use]) -> list[Tried]:
    """Return uses in as few kernels as may be: those whom only others kept from running run together."""
    found = [one for start in range(0, len(uses), TOGETHER) for one in tried(op, uses[start : start + TOGETHER])]
    small = [one for one in found if len(one.uses) < TOGETHER]
    if len(small) < 2 or len(small) == len(found):
        return found
    return [*(one for one in found if one not in small), *gathered(op, [use for one in small for use in one.uses])]


def found(op: Op, seed: int, dtype_pairs: int, option_pairs: int) -> list[Tried]:
    """Return the uses of an op that can be run and shown, those that torch can say apart from the others."""
    uses = Sampler(op, Random(seed)).uses(dtype_pairs, option_pairs)
    assert uses, f"no use of {op.name} was found: give sampling.py what it takes"
    kept = [use for use in uses if can_be_kept(use) and is_determined(use)]
    return [one for said in (True, False) for one in gathered(op, [use for use in kept if can_be_said(use) is said])]


def check_native(op: Op, one: Tried) -> None:
    """Fail unless native code leaves what the interpreter left."""
    arrays = [name for name, value in one.kernel.values.items() if isinstance(value, np.ndarray)]
    for name, (got, want) in zip(arrays, outcomes(one), strict=True):
        try:
            accuracy = op.spec.accuracy(dt.FP64 if got.dtype == np.float64 else dt.FP32)
            assert_same(numbers(got), numbers(want), accuracy, zeros=True)
        except AssertionError as error:
            raise AssertionError(f"{name} of\n{one.kernel.function}\n{error}") from None


def check_uses(op: Op, seed: int, dtype_pairs: int, option_pairs: int) -> None:
    """Fail unless native code does what the interpreter does in uses of an op that a number leads to."""
    for one in found(op, seed, dtype_pairs, option_pairs):
        check_native(op, one)


@pytest.fixture(scope="module", params=SHAPED, ids=lambda op: op.name)
def sampled(request: pytest.FixtureRequest) -> tuple[Op, list[Tried]]:
    """An op and uses of it; native code and torch are asked about it one after the other."""
    op: Op = request.param
    return op, found(op, crc32(op.name.encode()), DTYPE_PAIRS, OPTION_PAIRS)


def test_every_use_that_is_accepted_does_natively_what_the_interpreter_does(sampled: tuple[Op, list[Tried]]) -> None:
    op, uses = sampled
    for one in uses:
        check_native(op, one)


def test_torch_text_computes_what_the_interpreter_does(sampled: tuple[Op, list[Tried]]) -> None:
    pytest.importorskip("torch")
    op, uses = sampled
    said = [one for one in uses if one.is_sayable]
    for one in Random(op.name).sample(said, min(len(said), IN_TORCH)):
        check_torch(one.kernel.function, one.kernel.arguments, one.left, max(op.spec.accuracy(dt.FP64), 1))


def outcomes(one: Tried) -> list[tuple[Array, Array]]:
    """Return what native code and the interpreter leave; what needs arrays without gaps gets such."""
    with soon(crc32(one.uses[0].text.encode()) % 2 == 0):
        native = Native(one.kernel.function)
    try:
        return native.run(one.kernel.arguments, left=one.left)
    except ExecutionError:
        return native.run(one.kernel.arguments, left=one.left, packed=True)


def numbers(array: Array) -> Array:
    """Return elements of four bits as bytes: what is beside those bits is nobody's."""
    return array.astype(np.int8) if array.dtype in (dt.INT4.numpy, dt.UINT4.numpy) else array
