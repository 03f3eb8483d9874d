"""Remedies: what help lines tell an author to write instead works as they say it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch
from unit.frontend.texts import Array, in_core, jitted, ramp

import tilewright.language as pl
from tilewright.errors import KernelError, UnknownOpError
from tilewright.frontend import foreign

X = ramp(4, 8) / 8 + 0.5
RESULTS: dict[str, tuple[str, Array]] = {
    "where": ("pl.where(x > y, x, y)", np.maximum(X, 2)),
    "clip": ("pl.minimum(pl.maximum(x, 1.0), 2.0)", np.minimum(np.maximum(X, 1), 2)),
    "sigmoid": ("pl.sigmoid(x)", 1 / (np.exp(-X) + 1)),
    "silu": ("pl.silu(x)", X / (np.exp(-X) + 1)),
    "gelu": (
        "pl.gelu_tanh(x)",
        torch.nn.functional.gelu(torch.tensor(X), approximate="tanh").numpy(),
    ),
    "exp2": ("pl.exp2(x)", np.exp2(X)),
    "expm1": ("pl.expm1(x)", np.expm1(X)),
    "log2": ("pl.log2(x)", np.log2(X)),
    "log10": ("pl.log10(x)", np.log10(X)),
    "log1p": ("pl.log1p(x)", np.log1p(X)),
    "floor": ("pl.floor(x)", np.floor(X)),
    "ceil": ("pl.ceil(x)", np.ceil(X)),
    "round": ("pl.round(x)", np.rint(X)),
    "trunc": ("pl.trunc(x)", np.trunc(X)),
    "square": ("pl.square(x)", X * X),
    "power": ("pl.pow(x, y)", X**2),
    "power by sign": ("x**y", X**2),
    "square by sign": ("x**2", X**2),
    "root by sign": ("x**0.5", np.sqrt(X)),
    "reciprocal": ("pl.recip(x)", 1 / X),
    "absolute": ("pl.abs(-x)", X),
    "fmod": ("pl.fmod(x, y)", np.fmod(X, 2)),
    "zeros": ("pl.zeros([4, 8], dtype=pl.FP32)", np.zeros_like(X)),
    "transpose": ("pl.transpose(pl.reshape(x, [8, 4]), 0, 1)", np.transpose(np.reshape(X, (8, 4)))),
    "concatenate": ("pl.slice(pl.concat(x, x), [4, 8], [0, 8])", X),
    "sels": (
        "pl.sels(pl.cmp(x, y, cmp_type=pl.CmpType.GT), x, scalar=0.0)",
        np.where(X > 2, X, np.float32(0)),
    ),
    "tile_full": (
        "pl.sel(pl.cmp(x, y, cmp_type=pl.CmpType.GT), x, pl.tile_full([4, 8], dtype=pl.FP32, value=0.0))",
        np.where(X > 2, X, np.float32(0)),
    ),
    "softmax": (
        "pl.exp(x - pl.row_max(x)) / pl.row_sum(pl.exp(x - pl.row_max(x)))",
        torch.softmax(torch.tensor(X), 1).numpy(),
    ),
    "norm": ("x / pl.sqrt(pl.row_sum(x * x))", X / np.linalg.norm(X, axis=1, keepdims=True)),
    "var": (
        "x * 0.0 + pl.row_sum((x - pl.row_sum(x) / 8.0) * (x - pl.row_sum(x) / 8.0)) / 8.0",
        np.broadcast_to(X.var(1, keepdims=True), X.shape),
    ),
}  # fmt: skip
"""What a help line says for each name, as an expression of two tiles, and what it should give; `y` is all twos."""


@pytest.mark.parametrize("name", RESULTS)
def test_what_a_help_line_says_to_write_gives_what_the_name_meant(name: str) -> None:
    text, expected = RESULTS[name]
    lines = "a = pl.load(x, [0, 0], [4, 8])", "y = pl.tile_full([4, 8], dtype=pl.FP32, value=2.0)"
    value = re.sub(r"\bx\b", "a", text)
    kernel = jitted(in_core(*lines, f"pl.store({value}, [0, 0], out)"))
    np.testing.assert_allclose(kernel(X), expected, rtol=2e-5, atol=1e-6)


HELPS = sorted({help for help in vars(foreign)["_MEANT"].values()})


def test_no_help_line_names_anything_that_the_language_lacks() -> None:
    for path in (path for help in HELPS for path in re.findall(r"\bpl(?:\.\w+)+", help)):
        found: Any = pl
        for name in path.split(".")[1:]:
            found = getattr(found, name)


SHARED = ["full_like"]
OTHERS = ["torch.argmax", "torch.cumsum", "np.sort", "torch.rand", "torch.softmax"]
PATHS = [*(f"{owner}.{name}" for owner in ("pl", "np", "torch") for name in SHARED), *OTHERS]


@pytest.mark.parametrize("path", [*PATHS, "pl.uniform", "pl.device_print", "pl.constexpr", "pl.program_id"])
def test_a_name_of_another_library_is_told_what_does_it_here(path: str) -> None:
    owner, name = path.split(".")
    lines = "t = pl.load(x, [0, 0], [4, 8])", f"pl.store({path}(t), [0, 0], out)"
    with pytest.raises(KernelError) as caught:
        jitted(in_core(*lines), torch=torch)(X)
    assert caught.value.help == foreign.meant(name) and "did you mean" not in caught.value.help
    assert isinstance(caught.value, UnknownOpError) == (owner == "pl")


def test_a_list_grows_by_being_bound_again() -> None:
    kernel = jitted(
        in_core(
            "tiles = []",
            "for k in pl.unroll(2):",
            "    pass",
            "tiles = tiles + [pl.load(x, [0, 0], [4, 8])]",
            "tiles += [tiles[0] * 2.0]",
            "pl.store(tiles[1], [0, 0], out)",
        )
    )
    np.testing.assert_array_equal(kernel(X), 2 * X)


def test_a_list_from_outside_is_told_the_same() -> None:
    with pytest.raises(KernelError, match="SHAPES") as caught:
        jitted("SHAPES.append(1)", SHAPES=[4])(X, X)
    assert "`SHAPES = SHAPES + [value]`" in caught.value.help


def test_locals_may_be_annotated_with_types_of_python() -> None:
    kernel = jitted(
        in_core(
            "n: int = 3",
            "factor: float = 0.5",
            "rows: int = x.shape[0]",
            "shape: tuple[int, ...] = (rows, 8)",
            "offset: list[int] = [0, 0]",
            "is_scaled: bool = n > 2",
            "name: str = 'scaled'",
            "pl.static_assert(is_scaled, name)",
            "pl.store(pl.load(x, offset, shape) * factor * n, [0, 0], out)",
        )
    )
    np.testing.assert_array_equal(kernel(X), X * 0.5 * 3)


def test_a_number_that_the_program_computes_may_be_an_int_too() -> None:
    kernel = jitted(
        "first: int = pl.read(rows, [0])\n" + in_core("pl.store(pl.load(x, [first, 0], [1, 8]), [0, 0], out)"),
        "x: pl.Tensor, rows: pl.Tensor, out: pl.Out[pl.Tensor[[1, 8], pl.FP32]]",
    )
    np.testing.assert_array_equal(kernel(X, np.array([2])), X[2:3])


@pytest.mark.parametrize("line", ["y = THING(3)", "for i in THING(3):\n    pass", "with THING(3):\n    pass"])
@pytest.mark.parametrize(
    "thing", [X, torch.ones(2), pl.Out[pl.Tensor], [1], {}], ids=lambda thing: type(thing).__name__
)
def test_a_call_of_what_is_no_function_is_refused_at_its_line(line: str, thing: object) -> None:
    with pytest.raises(KernelError) as caught:
        jitted(line, THING=thing)(X, X)
    assert caught.value.place.line == 3 and caught.value.help


def test_data_from_outside_is_taken_as_an_argument() -> None:
    body = in_core("pl.store(pl.load(weight, [0, 0], [4, 8]) + pl.load(x, [0, 0], [4, 8]), [0, 0], out)")
    with pytest.raises(KernelError, match="`weight` is a torch.Tensor from outside") as caught:
        jitted(body, weight=torch.tensor(X))(X)
    assert "add a parameter `weight: pl.Tensor`" in caught.value.help
    kernel = jitted(body, "x: pl.Tensor, weight: pl.Tensor, out: pl.Out[pl.Tensor]")
    np.testing.assert_array_equal(kernel(X, X), 2 * X)


def test_a_part_of_a_tensor_has_fewer_axes() -> None:
    x = np.reshape(ramp(2, 2, 4, 8), (2, 2, 4, 8))
    kernel = jitted("""
        for b in pl.range(2):
            for h in pl.range(2):
                with pl.at(level=pl.Level.CORE_GROUP):
                    pl.store(pl.load(x[b, h], [0, 0], [4, 8]), [0, 0], out[b, h])
    """)
    np.testing.assert_array_equal(kernel(x), x)
