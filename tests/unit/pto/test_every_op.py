"""Every op: what its declaration says in NumPy, of a kernel of its own or of lines, is what running it leaves."""

from __future__ import annotations

import zlib
from typing import Any, cast

import numpy
import pytest
from unit.pto.sentences import Sentence, words_of

from tilewright import ir
from tilewright.pto.example import Argument
from tilewright.pto.examples.lines import example
from tilewright.pto.lower import lower
from tilewright.pto.ops.examples import own, shown_for
from tilewright.pto.ops.registry import OPS
from tilewright.pto.text.parser import parse
from tilewright.pto.types import SCALARS
from tilewright.pto.verify import verify
from tilewright.tools.pto import entry_of, given_values, launch

np = cast("Any", numpy)
RELATIVE = {"f32": 1e-5, "f16": 2e-3, "bf16": 1e-2}
EXAMPLES = [shown for name in OPS if (shown := own(name)) is not None]
SENTENCES = {name: said for name, declared in OPS.items() if (said := declared.meaning(name))}
NEGATIVE = {"n": "-77", "k": "5"}
"""Other integers for ops on numbers: whether these have a sign makes a difference to them."""


def made(argument: Argument, rng: Any) -> Any:
    """Return what a kernel is given: small integers, of floats quarters of them where no range is said."""
    scalar = SCALARS[argument.element]
    if argument.range is None and argument.is_written:
        return np.zeros(argument.shape, scalar.dtype.numpy)
    low, high = argument.range or ((0, 9) if scalar.name.startswith("ui") else (-9, 9))
    numbers = rng.integers(low, high, argument.shape, endpoint=True)
    scaled = numbers / 4 if scalar.is_float and argument.range is None else numbers
    return np.asarray(scaled).astype(scalar.dtype.numpy) if argument.shape else np.asarray(scaled).item()


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


def test_every_op_that_runs_means_something_in_numpy() -> None:
    silent = [name for name, declared in OPS.items() if not declared.family and name not in SENTENCES]
    assert [name for name in silent if shown_for(name) is None] == []
    assert not [shown.op for shown in EXAMPLES if shown.op in SENTENCES], "two meanings"


@pytest.mark.parametrize("name", SENTENCES)
def test_lines_leave_what_their_sentence_says(name: str) -> None:
    text = example(name)
    module = parse(text, f"{name}.pto")
    verify(module)
    func = entry_of(module, None)
    words = words_of(text)
    others = [f"{word}={NEGATIVE.get(word, value)}" for word, _, value in (each.partition("=") for each in words)]
    has_sign = name.startswith("arith.") and words[0] == "n=77"
    for given in (words, others) if has_sign else (words,):
        values = given_values(func, given, 0)
        wanted = Sentence(name, SENTENCES[name], module, func).left(values)
        launch(lower(module, func, target="a5"), "interpret", 1, values)
        for argument, left in zip(func.arguments, values, strict=True):
            if argument.name in wanted:
                assert_same(argument.name, left, wanted[argument.name])


def assert_same(name: str, left: Any, right: Any) -> None:
    """Floats are as near as their type lets them be, and tiny ones, which are bits of integers, equal."""
    near = {4: 1e-5, 2: 2e-3, 1: 0.1}.get(left.dtype.itemsize, 0) if left.dtype.kind not in "iub" else 0
    wide = [np.asarray(each).astype(np.float64) if near else each for each in (left, right)]
    np.testing.assert_allclose(*wide, rtol=near, atol=near, err_msg=name)
    tiny = np.abs(wide[1]) < np.finfo(np.float32).tiny
    if near and left.dtype == np.float32:
        assert np.array_equal(left[tiny].view(np.uint32) << 1, right[tiny].view(np.uint32) << 1), name
