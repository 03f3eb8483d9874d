"""Subscripts as NumPy has them: `...`, None, steps, and indices from the end, of tiles and of tensors."""

from __future__ import annotations

import numpy as np
import pytest
from unit.frontend.texts import Array, in_core, jitted, ramp

import tilewright.language as pl
from tilewright.errors import AttributeValueError, OutOfBoundsError, SubscriptError
from tilewright.runtime import RunConfig

X = ramp(3, 5, 8)
SUBSCRIPTS = [
    "..., 0::2", "..., 1::2", "-1", "..., -3:", "1:, ..., ::3", "None", ":, None, 1:-1", "..., None",
    "0, None, ..., ::2", "::2, ::2, ::3", "-2:, 1:4:2", "-1, ..., None, -1:", ":, -2, 1:7:4", "...",
]  # fmt: skip
TENSOR = "x: pl.Tensor, " + ", ".join(f"o{n}: pl.Out[pl.Tensor]" for n in range(len(SUBSCRIPTS)))


def expected(subscript: str, is_tile: bool) -> Array:
    found = eval(f"x[{subscript}]", {"x": X})
    return np.reshape(found, (1,) * (2 - found.ndim) + found.shape) if is_tile and found.ndim < 2 else found


@pytest.mark.parametrize("is_tile", [True, False], ids=["tile", "tensor"])
@pytest.mark.parametrize("platform", ["cpu", "interpret"])
def test_subscripts_mean_what_numpy_says(is_tile: bool, platform: str) -> None:
    lines: list[str] = ["t = pl.load(x, [0, 0, 0], x.shape)"]
    for n, subscript in enumerate(SUBSCRIPTS):
        zeros = [0] * expected(subscript, is_tile).ndim
        part = f"t[{subscript}]" if is_tile else f"pl.load(v{n}, {zeros}, v{n}.shape)"
        lines += [] if is_tile else [f"v{n} = x[{subscript}]"]
        lines.append(f"pl.store({part} + 1.0, {zeros}, o{n})")
    outputs = [np.zeros_like(expected(subscript, is_tile)) for subscript in SUBSCRIPTS]
    kernel = jitted(in_core(*lines), TENSOR, out=None)
    kernel(X, *outputs, config=RunConfig(platform=platform))
    for subscript, out in zip(SUBSCRIPTS, outputs, strict=True):
        np.testing.assert_array_equal(out, expected(subscript, is_tile) + 1, err_msg=subscript)


def test_steps_of_ragged_tiles_and_named_axes_count_what_is_there() -> None:
    body = in_core(
        "t = pl.load(x, [0, 0], [8, 16])",
        "pl.store(t[::2, 1::3], [0, 0], out)",
        "v = x[-3:, ::2]",
        "pl.store(pl.load(v, [0, 0], [3, 16]), [4, 0], out)",
    )
    parameters = "x: pl.Tensor[[M, N], pl.FP32], out: pl.InOut[pl.Tensor]"
    kernel = jitted(body, parameters, M=pl.dynamic("M"), N=pl.dynamic("N"))
    for rows, columns in ((8, 16), (5, 11), (3, 4)):
        x, out = ramp(rows, columns), np.zeros((8, 16), np.float32)
        kernel(x, out)
        first, second = x[:8:2, 1:16:3], x[-3:, ::2]
        want = np.zeros_like(out)
        want[: first.shape[0], : first.shape[1]] = first
        want[4:7, : second.shape[1]] = second
        np.testing.assert_array_equal(out, want)


def test_steps_and_new_axes_are_written() -> None:
    out, column = np.zeros((4, 8), np.float32), ramp(4, 4)
    kernel = jitted(
        in_core(
            "t = pl.load(x, [0, 0], x.shape)",
            "out[:, 0::2] = t",
            "out[..., 1::2] = t * 2.0",
            "out[-1:, -2:] = t[0:1, 0:2] + 7.0",
        )
    )
    kernel(column, out)
    want = np.reshape(np.stack([column, column * 2], -1), (4, 8))
    want[-1:, -2:] = column[0:1, 0:2] + 7
    np.testing.assert_array_equal(out, want)


def test_a_tensor_tells_its_extents() -> None:
    kernel = jitted(
        "pl.static_assert(x.ndim == 3 and x.dim() == 3 and x.size() == (3, 5, 8) and x.size(-1) == 8)\n"
        "pl.static_assert(x.numel() == 120 and len(x) == 3 and x.shape[-2:] == (5, 8))\n"
        "pl.static_assert(pl.cdiv(x.size(1), 2) == 3)\n"
        + in_core("t = pl.load(x, [0, 0, 0], x.shape)", "pl.store(t[0].T, [0, 0], out)"),
    )
    out = np.zeros((8, 5), np.float32)
    kernel(X, out)
    np.testing.assert_array_equal(out, X[0].T)


def test_cdiv_of_running_numbers_rounds_up_in_their_type() -> None:
    body = in_core("pl.store(pl.tile_full([1, 1], pl.FP32, 0.0) + pl.cast(pl.cdiv(n, d), pl.FP32), [0, 0], out)")
    running = "n: pl.Scalar[pl.{0}, pl.RUNTIME], d: pl.Scalar[pl.{0}, pl.RUNTIME], out: pl.InOut[pl.Tensor]"
    for dtype, pairs in {"UINT8": [(250, 32), (255, 255), (0, 3)], "INT32": [(-7, 2), (7, -2), (8, 2)]}.items():
        kernel = jitted(body, running.format(dtype))
        for n, d in pairs:
            out = np.zeros((1, 1), np.float32)
            kernel(n, d, out)
            assert out[0, 0] == -(-n // d)


@pytest.mark.parametrize(
    ("subscript", "kind", "message"),
    [
        ("::-1", SubscriptError, "goes forward"),
        ("..., ...", SubscriptError, "stands in a subscript once"),
        ("-4", OutOfBoundsError, "lie outside 0 to 3"),
        ("-9:", OutOfBoundsError, "lie outside 0 to 3"),
    ],
)
def test_what_lies_outside_or_runs_backwards_is_refused(subscript: str, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        jitted(f"y = x[{subscript}]")(X)
    with pytest.raises(AttributeValueError, match="counts forward"):
        jitted("y = pl.strided(x, [1, 1, 0])")(X)


ADDED = [
    "t[2][None, :]", "t[2][None]", "t[:, 3][:, None]", "t[:, 3][None, :]", "t[2, None, :]", "t[None, 2]",
    "t[2, :, None]",
    "t[1:3][None, :, 2:5]", "t[2][None, 2:5]", "t[-1][:, None]", "(t[2] * 2.0)[None, :]", "t[2][..., None]",
]  # fmt: skip


@pytest.mark.parametrize("platform", ["cpu", "interpret"])
def test_new_axes_stand_beside_those_that_numpy_has(platform: str) -> None:
    x = ramp(4, 8)
    wanted = [eval(text, {"t": x}) for text in ADDED]
    stores = [f"pl.store({ADDED[n]}, {[0] * want.ndim}, o{n})" for n, want in enumerate(wanted)]
    outputs = [np.zeros_like(want) for want in wanted]
    parameters = "x: pl.Tensor, " + ", ".join(f"o{n}: pl.Out[pl.Tensor]" for n in range(len(ADDED)))
    kernel = jitted(in_core("t = pl.load(x, [0, 0], x.shape)", *stores), parameters, out=None)
    kernel(x, *outputs, config=RunConfig(platform=platform))
    for text, out, want in zip(ADDED, outputs, wanted, strict=True):
        np.testing.assert_array_equal(out, want, err_msg=text)


UPDATES = [
    "o[0:2, :] += {x[0:2]}", "o[3:4, :] -= {x[1:2]}", "o[:, 2:3] *= {x[:, 1:2]}", "o[::2, 1:] += {x[:10, 1:]}",
    "o[...] /= {x}",
    "o[4:8, 0:4] //= {x[0:4, 0:4]}", "o[4:8, 0:4] @= {x[4:8, 0:4]}", "o[-2:, :] %= {x[0:2]}", "o[5:9, :] **= {x[1:2]}",
    "o[1:3] += 1.5",
]  # fmt: skip


@pytest.mark.parametrize("platform", ["cpu", "interpret"])
def test_a_window_of_a_tensor_is_updated_by_a_tile(platform: str) -> None:
    x = 1 + ramp(20, 8) % 3
    body = [line for text in UPDATES for line in _with_view(text)]
    want, out = np.ones_like(x), np.ones_like(x)
    for text in UPDATES:
        exec(text.replace("{", "").replace("}", ""), {"x": x, "o": want})
    kernel = jitted(in_core(*body), "x: pl.Tensor, o: pl.InOut[pl.Tensor]", out=None)
    kernel(x, out, config=RunConfig(platform=platform))
    np.testing.assert_allclose(out, want, rtol=1e-5)


def _with_view(text: str) -> list[str]:
    """Return an update whose other side is loaded from a view."""
    before, brace, part = text.partition("{")
    if not brace:
        return [text]
    return [f"v = {part.rstrip('}')}", f"{before}pl.load(v, [0, 0], v.shape)"]


def test_an_update_is_as_far_as_its_tile_is_valid() -> None:
    body = in_core("for i in pl.range(0, 20, 16):", "    t = pl.load(x, [i, 0], [16, 8])", "    o[i : i + 16, :] -= t")
    kernel = jitted(body, "x: pl.Tensor, o: pl.InOut[pl.Tensor]", out=None)
    x, out = ramp(20, 8), np.ones((23, 8), np.float32)
    kernel(x, out)
    np.testing.assert_array_equal(out, np.concatenate([1 - x, np.ones((3, 8), np.float32)]))
