"""The walk: kernels and `@pto.jit` bodies read Python alike, whatever they build of it."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from tilewright.errors import KernelError
from tilewright.frontend.capture import capture
from tilewright.frontend.kernel_builder import KernelBuilder
from tilewright.frontend.names import Resolver
from tilewright.frontend.walk.walker import Walker
from tilewright.pto.traced.body_builder import BodyBuilder
from tilewright.pto.traced.tracer import Program

SIZES = (4, 8, 16)


def body() -> tuple[int, ...]:
    return SIZES


def kernel_walk() -> Walker:
    callees: Any = None  # nothing is called
    return KernelBuilder(captured=capture(body), resolver=Resolver.of(body), callees=callees)


def body_walk() -> Walker:
    return BodyBuilder.of(body, Program())


WALKS = pytest.mark.parametrize("walk", (kernel_walk(), body_walk()), ids=("pl", "pto"))


def expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


@WALKS
@pytest.mark.parametrize(
    "text",
    (
        *("7 // 2 - 7 % 4 ** 2", "-(1 << 3) | 5 & ~2", "'ab' * 2 + 'c'", "(1, 2) + SIZES[1:]", "SIZES[-1] - SIZES[0]"),
        *("SIZES == (4, 8, 16)", "not SIZES[0] > 4 and 3 or 5", "1 if SIZES[0] != 4 else 2.5", "None is not None"),
        *("max(SIZES[0], 9)", "len(SIZES) + sum(SIZES)", "divmod(17, 5)", "f'{SIZES[0]}x{8}'", "pow(3, 4, 7)"),
    ),
)
def test_what_is_known_is_what_python_computes(walk: Walker, text: str) -> None:
    assert walk.evaluate(expression(text)) == eval(text)


@WALKS
@pytest.mark.parametrize(
    ("text", "message"),
    (
        ("SIZE[0]", "Undefined variable 'SIZE'"),
        ("SIZES[3]", "`SIZES[3]`: tuple index out of range"),
        ("SIZES.append", "`SIZES` cannot grow in place: a kernel's lists are fixed"),
        ("SIZES.shape", "`SIZES` has no attribute 'shape'"),
        ("1 // 0", "cannot evaluate `1 // 0`: integer division or modulo by zero"),
        ("9 ** 99999", "cannot evaluate `9 ** 99999`: the result would have more than 65536 bits or elements"),
    ),
)
def test_a_mistake_reads_the_same(walk: Walker, text: str, message: str) -> None:
    with pytest.raises(KernelError) as caught:
        walk.evaluate(expression(text))
    assert caught.value.message == message


@WALKS
def test_names_share_the_parts_of_a_tuple(walk: Walker) -> None:
    walk.execute(ast.parse("first, (second, third) = SIZES[0], SIZES[1:]").body)
    assert [walk.evaluate(expression(name)) for name in ("first", "second", "third")] == [4, 8, 16]


@WALKS
def test_a_known_condition_takes_one_branch(walk: Walker) -> None:
    walk.execute(ast.parse("if SIZES[0] > 4:\n    nowhere\nelse:\n    size = 1\n    size += 2").body)
    assert walk.evaluate(expression("size")) == 3
