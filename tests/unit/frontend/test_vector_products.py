"""Products with vectors: `@` between matrices and vectors gives what NumPy's gives."""

import numpy as np
import pytest
from numpy.typing import NDArray

import tilewright.language as pl
from tilewright.errors import ShapeMismatchError
from tilewright.runtime import RunConfig

M, K = pl.dynamic("M"), pl.dynamic("K")


@pl.jit
def whole(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = a @ b
    return out


@pl.jit
def matrix_in_tiles(a: pl.Tensor[[M, K], pl.FP32], v: pl.Tensor[[K], pl.FP32], out: pl.Out[pl.Tensor[[M], pl.FP32]]):
    for r in pl.parallel(0, M, 32):
        with pl.at(level=pl.Level.CORE_GROUP):
            acc = pl.zeros([32], pl.FP32)
            for k in pl.range(0, K, 16):
                acc += pl.load(a, [r, k], [32, 16]) @ pl.load(v, [k], [16])
            pl.store(acc, [r], out)
    return out


@pl.jit
def vector_in_tiles(v: pl.Tensor, a: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(v, [0], [16]) @ pl.load(a, [0, 0], [16, 32]), [0], out)
    return out


@pl.jit
def dot(v: pl.Tensor, w: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        number = pl.load(v, [0], [16]) @ pl.load(w, [0], [16])
        pl.write(out, [0], number)  # pyright: ignore[reportArgumentType]: two vectors give a number
    return out


def drawn(*shape: int) -> NDArray[np.float32]:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("platform", ["cpu", "interpret"])
@pytest.mark.parametrize(("left", "right"), [((5, 7), (7,)), ((7,), (7, 5)), ((3, 5, 7), (7,)), ((1, 1), (1,))])
def test_tensors_multiply_by_vectors(platform: str, left: tuple[int, ...], right: tuple[int, ...]) -> None:
    a, b = drawn(*left), drawn(*right)
    out = np.empty_like(a @ b)
    whole(a, b, out, config=RunConfig(platform=platform))
    np.testing.assert_allclose(out, a @ b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("platform", ["cpu", "interpret"])
@pytest.mark.parametrize(("rows", "columns"), [(64, 32), (45, 13), (1, 1), (33, 100)])
def test_a_matrix_in_tiles_adds_up_along_a_vector(platform: str, rows: int, columns: int) -> None:
    a, v = drawn(rows, columns), drawn(columns)
    result = matrix_in_tiles(a, v, config=RunConfig(platform=platform))
    np.testing.assert_allclose(result, a @ v, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("rows", "columns"), [(16, 32), (13, 29)])
def test_a_vector_multiplies_a_tile_from_the_left(rows: int, columns: int) -> None:
    v, a, out = drawn(rows), drawn(rows, columns), np.empty(columns, np.float32)
    vector_in_tiles(v, a, out)
    np.testing.assert_allclose(out, v @ a, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("extent", [16, 11])
def test_two_vectors_give_a_number(extent: int) -> None:
    v, w, out = drawn(extent), drawn(extent) + 1, np.empty(1, np.float32)
    dot(v, w, out)
    np.testing.assert_allclose(out[0], v @ w, rtol=1e-4, atol=1e-4)


def test_a_vector_of_another_length_is_shown_at_its_operands() -> None:
    with pytest.raises(ShapeMismatchError, match="inner sizes"):
        whole(drawn(5, 7), drawn(6), np.empty(5, np.float32))


@pytest.mark.parametrize("rows", [8, 5])
def test_folds_take_their_axis_as_torch_names_it(rows: int) -> None:
    @pl.jit
    def centered(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [8, 16])
            mean = pl.mean(t, dim=1, keepdim=True)  # pyright: ignore[reportCallIssue, reportUnknownVariableType]
            pl.store(t - mean, [0, 0], out)  # pyright: ignore[reportUnknownArgumentType]
        return out

    x = drawn(rows, 16)
    np.testing.assert_allclose(centered(x), x - x.mean(1, keepdims=True), rtol=1e-5, atol=1e-5)
