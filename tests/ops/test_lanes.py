"""Vector lanes: a loop over both, the halves they are handed and what is gathered from them."""

from __future__ import annotations

import numpy as np
import pytest
from ops.kernels import Array, counting, inout, kernel, launch, out, run, scalar, tensor

import tilewright.language as pl
from tilewright.errors import AttributeValueError, MisplacedDirectiveError, OutsideKernelError, ShapeMismatchError

pytestmark = pytest.mark.usefixtures("on_target")

MODES = {"UP_DOWN": 0, "LEFT_RIGHT": 1}


def parameters(*shape: int) -> dict[str, str]:
    return {"x": tensor(pl.FP32, *shape), "n": scalar(pl.INDEX), "m": scalar(pl.INDEX)}


def test_the_body_runs_for_both_lanes() -> None:
    body = """
    for a in pl.split_aiv(2, mode=pl.SplitMode.NONE):
        pl.write(out, [a], 10 + a)
        pl.write(out, [2 + a], pl.tile.get_subblock_idx())
    pl.write(out, [4], pl.tile.get_subblock_idx())
    """
    assert run(kernel(body, out=out(pl.INT32, 5))).tolist() == [10, 11, 0, 1, 0]


def test_one_lane_goes_on_with_what_the_other_left() -> None:
    body = """
    total = pl.load(x, [0, 0], [2, 2])
    for a in pl.split_aiv(2, mode=pl.SplitMode.NONE):
        total = pl.add(total, 1.0)
    out = pl.store(total, [0, 0], out)
    """
    function = kernel(body, x=tensor(pl.FP32, 2, 2), out=out(pl.FP32, 2, 2))
    assert run(function, counting(2, 2)).tolist() == [[2, 3], [4, 5]]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("rows", "columns"), [(4, 6), (5, 7), (1, 1)])
@pytest.mark.parametrize("kind", ["tile", "tensor"])
def test_each_lane_gets_its_half(mode: str, rows: int, columns: int, kind: str) -> None:
    if kind == "tensor" and (rows % 2 or columns % 2):
        return
    axis = MODES[mode]
    h = -(-(rows, columns)[axis] // 2)
    shape = (h, columns) if axis == 0 else (rows, h)
    data = f"pl.load(x, [0, 0], [{rows}, {columns}], valid_shape=[n, m])"
    if kind == "tensor":
        data = f"pl.slice(x, [{rows}, {columns}], [0, 0], valid_shape=[n, m])"
    half = "pl.aiv_shard(a)" if kind == "tile" else f"pl.load(pl.aiv_shard(a), [0, 0], {list(shape)}, clamp=True)"
    body = f"""
    a = {data}
    for lane in pl.split_aiv(2, mode=pl.SplitMode.{mode}):
        out = pl.store(pl.reshape({half}, [1, {shape[0]}, {shape[1]}]), [lane, 0, 0], out)
    """
    function = kernel(body, **parameters(rows, columns), out=out(pl.FP32, 2, *shape))
    x = counting(rows, columns)
    for n, m in {(rows, columns), (max(rows - 1, 0), columns), (rows, max(columns - 2, 0)), (1, 1), (0, columns)}:
        want = np.full((2, *shape), -1, np.float32)
        for lane in range(2):
            live = x[:n, :m]
            live = live[lane * h : lane * h + h] if axis == 0 else live[:, lane * h : lane * h + h]
            want[lane, : live.shape[0], : live.shape[1]] = live
        np.testing.assert_array_equal(run(function, x, n, m, fill=-1), want)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["tile", "tensor"])
def test_what_both_lanes_computed_is_joined(mode: str, kind: str) -> None:
    rows, columns = 4, 6
    data = f"pl.load(x, [0, 0], [{rows}, {columns}], valid_shape=[n, m])"
    if kind == "tensor":
        data = f"pl.slice(x, [{rows}, {columns}], [0, 0], valid_shape=[n, m])"
    result = "both" if kind == "tile" else "pl.load(both, [0, 0], [4, 6], clamp=True)"
    body = f"""
    a = {data}
    for lane in pl.split_aiv(2, mode=pl.SplitMode.{mode}):
        half = pl.mul(pl.aiv_shard(a), 2.0)
        both = pl.aic_gather(half)
    out = pl.store({result}, [0, 0], out)
    """
    function = kernel(body, **parameters(rows, columns), out=out(pl.FP32, rows, columns))
    assert str(pl.parse(str(function))) == str(function)
    for n, m in [(4, 6), (3, 6), (4, 5), (1, 2), (0, 6)]:
        want = np.full((rows, columns), -1, np.float32)
        want[:n, :m] = 2 * counting(rows, columns)[:n, :m]
        np.testing.assert_array_equal(run(function, counting(rows, columns), n, m, fill=-1), want)


def test_a_product_of_what_the_lanes_computed() -> None:
    body = """
    a = pl.load(x, [0, 0], [4, 4])
    for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
        full = pl.aic_gather(pl.tile.neg(pl.tile.aiv_shard(a)))
    out = pl.store(pl.matmul(full, a), [0, 0], out)
    """
    x: Array = counting(4, 4)
    np.testing.assert_array_equal(run(kernel(body, x=tensor(pl.FP32, 4, 4), out=out(pl.FP32, 4, 4)), x), -x @ x)


def test_without_a_split_lane_0_counts() -> None:
    body = """
    for lane in pl.split_aiv(2, mode=pl.SplitMode.NONE):
        one = pl.aic_gather(pl.aiv_shard(pl.load(x, [0], [4])))
    out = pl.store(one, [0], out)
    """
    assert run(kernel(body, x=tensor(pl.FP32, 4), out=out(pl.FP32, 4)), counting(4)).tolist() == [0, 1, 2, 3]


def test_lanes_write_their_parts_of_a_tensor() -> None:
    body = """
    for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
        view = pl.aiv_shard(x)
        view = pl.store(pl.tile.full([2, 4], dtype=pl.FP32, value=5.0), [0, 0], view)
    """
    x = counting(4, 4)
    launch(kernel(body, x=inout(pl.FP32, 4, 4)), x)
    assert x.tolist() == [[5] * 4] * 4


@pytest.mark.parametrize(
    ("body", "error", "message"),
    [
        ("r = pl.aiv_shard(a)", MisplacedDirectiveError, "stands in a loop over pl.split_aiv"),
        ("r = pl.aic_gather(a)", MisplacedDirectiveError, "stands in a loop over pl.split_aiv"),
        ("r = pl.aiv_shard(a, split=1)", MisplacedDirectiveError, "stands in a loop over pl.split_aiv"),
        ("r = pl.aiv_shard(a, split=7, lane=0)", AttributeValueError, "split cannot be 7"),
        ("r = pl.aiv_shard(a, split=1, lane=2)", AttributeValueError, "lane cannot be 2"),
        ("r = pl.aiv_shard(pl.reshape(a, [2, 2, 4]), split=1, lane=0)", ShapeMismatchError, "2-D value"),
        ("r = pl.aiv_shard(pl.slice(x, [3, 4], [0, 0]), split=1, lane=0)", ShapeMismatchError, "even number"),
    ],
)
def test_what_is_refused(body: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        kernel(f"a = pl.load(x, [0, 0], [4, 4])\n{body}", x=tensor(pl.FP32, 4, 4))


def test_what_is_gathered_is_there_after_the_loop() -> None:
    body = """
    for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
        both = pl.aic_gather(pl.aiv_shard(pl.load(x, [0, 0], [4, 4])))
        out = pl.store(both, [0, 0], out)
    """
    with pytest.raises(MisplacedDirectiveError, match="there after the loop"):
        kernel(body, x=tensor(pl.FP32, 4, 4), out=out(pl.FP32, 4, 4))


def test_lanes_are_no_plain_python() -> None:
    for function in (pl.aiv_shard, pl.aic_gather):
        with pytest.raises(OutsideKernelError):
            function(None)  # pyright: ignore[reportArgumentType]
