"""Every op: the example of its declaration is legal, and leaves what its NumPy sentence says."""

from __future__ import annotations

import zlib
from typing import Any, cast

import numpy
import pytest

from tilewright import ir
from tilewright.pto.example import Argument
from tilewright.pto.lower import lower
from tilewright.pto.ops.examples import own
from tilewright.pto.ops.registry import OPS
from tilewright.pto.text.parser import parse
from tilewright.pto.types import SCALARS
from tilewright.pto.verify import verify

np = cast("Any", numpy)
RELATIVE = {"f32": 1e-5, "f16": 2e-3, "bf16": 1e-2}
EXAMPLES = [shown for name in OPS if (shown := own(name)) is not None]


def made(argument: Argument, rng: Any) -> Any:
    """Return what a kernel is given: small integers, of floats quarters of them where no range is said."""
    scalar = SCALARS[argument.element]
    if argument.range is None and argument.is_written:
        return np.zeros(argument.shape, scalar.dtype.numpy)
    low, high = argument.range or ((0, 9) if scalar.name.startswith("ui") else (-9, 9))
    numbers = rng.integers(low, high, argument.shape, endpoint=True)
    scaled = numbers / 4 if scalar.is_float and argument.range is None else numbers
    return np.asarray(scaled).astype(scalar.dtype.numpy) if argument.shape else scaled


@pytest.mark.parametrize("shown", EXAMPLES, ids=lambda shown: shown.op)
def test_an_example_leaves_what_its_meaning_says(shown: Any) -> None:
    example, rng = shown.example, np.random.default_rng(zlib.crc32(shown.op.encode()))
    given = [made(each, rng) for each in example.given]
    wanted = example.gives(shown.op, *(np.copy(each) for each in given))
    module = parse(shown.text, f"{shown.op}.pto")
    verify(module)
    *_, func = module.funcs()
    flat = [np.reshape(each, -1) if isinstance(each, numpy.ndarray) else each for each in given]
    ir.compile(lower(module, func, target=example.arch), platform="interpret")(1, *flat)
    results = cast("tuple[Any, ...]", wanted if isinstance(wanted, tuple) else (wanted,))
    written = [(each, left) for each, left in zip(example.given, flat, strict=True) if each.is_written]
    for (argument, left), right in zip(written, results, strict=True):
        assert np.shape(right) == argument.shape
        exact = left.astype(np.float64) if argument.element == "bf16" else left
        near = RELATIVE.get(argument.element, 0)
        np.testing.assert_allclose(exact, np.reshape(right, -1), rtol=near, atol=near, err_msg=argument.name)
