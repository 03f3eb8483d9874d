"""Windows of tensors that loops and branches hand on, as PTO text: read back, they are the same ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from property.exported import read_back_text

from tilewright import pto

HEAD = (
    "x: pl.InOut[pl.Tensor[[20, 24], pl.FP32]], y: pl.InOut[pl.Tensor[[30, 24], pl.FP32]], n: pl.Scalar[pl.INDEX], "
    "out: pl.InOut[pl.Tensor[[20, 24], pl.FP32]]"
)
WAYS = {
    "one of two places": """
        if n > 3:
            c = pl.slice(x, [8, 24], [n, 0])
        else:
            c = pl.slice(x, [8, 24], [0, 0])
        out = pl.store(pl.load(c, [0, 0], [8, 24]), [0, 0], out)
    """,
    "of one tensor or another": """
        if n > 3:
            c = pl.slice(x, [8, 20], [n, 2])
        else:
            c = pl.slice(y, [8, 20], [1, n])
        out = pl.store(pl.load(c, [1, 0], [7, 20]) + pl.read(c, [2, 3]), [0, 0], out)
    """,
    "all of one or a part of another": """
        c = x
        if n > 3:
            c = pl.slice(y, [20, 24], [n, 0])
        out = pl.store(pl.load(c, [1, 0], [7, 20]) + pl.read(c, [2, 3]), [0, 0], out)
    """,
    "from turn to turn": """
        c = pl.slice(x, [4, 24], [0, 0])
        for i in pl.range(n):
            t = pl.load(c, [0, 0], [4, 24])
            out = pl.store(t*2.0,[i, 0], out)
            c = pl.slice(x, [4, 24], [i+1, 0])
    """,
    "changing places": """
        a = pl.slice(x, [6, 24], [0, 0])
        b = pl.slice(y, [6, 24], [6, 0])
        for i in pl.range(n):
            b = pl.store(pl.load(a, [0, 0], [6, 24]) + 1.0,[0, 0], b)
            a, b = b, a
        out = pl.store(pl.load(a, [0, 0], [6, 24]), [0, 0], out)
        out = pl.store(pl.load(b, [0, 0], [6, 24]), [6, 0], out)
    """,
    "in turns from both": """
        a = pl.slice(x, [6, 24], [0, 0])
        b = pl.slice(y, [6, 24], [6, 0])
        for i in pl.range(n):
            if i % 2 == 0:
                a = pl.slice(y, [6, 24], [i, 0])
            else:
                b = pl.slice(x, [6, 24], [i+1, 0])
            a, b = b, a
            out = pl.store(pl.load(a, [0, 0], [6, 24]), [i, 0], out)
        out = pl.store(pl.load(b, [0, 0], [6, 24]), [10, 0], out)
    """,
    "valid in part": """
        if n > 3:
            c = pl.slice(x, [8, 24], [n, 0], valid_shape=[n-2, 20])
        else:
            c = pl.slice(y, [8, 24], [0, 0], valid_shape=[4, n*3])
        t = pl.load(c, [0, 0], [8, 24])
        t = pl.fillpad(t, pad_value=pl.PadValue.max)
        out = pl.store(t,[0, 0], out)
    """,
    "as far as there is something": """
        if n > 3:
            c = pl.slice(x, [8, 24], [n*3, 0], clamp=True)
        else:
            c = pl.slice(y, [8, 24], [0, n], clamp=True)
        t = pl.load(c, [0, 0], [8, 24], clamp=True)
        t = pl.fillpad(t, pad_value=pl.PadValue.max)
        out = pl.store(t,[0, 0], out)
    """,
    "written through": """
        c = pl.slice(x, [8, 24], [n, 0])
        if n > 3:
            c = pl.slice(out, [8, 24], [n, 0])
        c = pl.store(pl.load(y, [0, 0], [8, 24]), [0, 0], c)
    """,
    "while there is more": """
        c = pl.slice(x, [8, 24], [0, 0])
        k = 0
        while k < n:
            c = pl.slice(y, [8, 24], [k, 0])
            k = k + 1
            if k == 4:
                break
        out = pl.store(pl.load(c, [0, 0], [8, 24]), [0, 0], out)
    """,
    "left early": """
        c = pl.slice(x, [8, 24], [0, 0])
        for i in pl.range(n):
            if pl.read(c, [0, 0]) > 0.5:
                break
            c = pl.slice(y, [8, 24], [i, 0])
        out = pl.store(pl.load(c, [0, 0], [8, 24]), [0, 0], out)
    """,
    "of extents that only the run knows": """
        if n > 3:
            c = pl.slice(x, [n, 24], [n, 0])
        else:
            c = pl.slice(y, [n+1, 24], [0, 0])
        out = pl.store(pl.load(c, [0, 0], [8, 24], clamp=True), [0, 0], out)
        out = pl.write(out, [19, 0], pl.cast(pl.tensor.dim(c, 0), pl.FP32))
    """,
    "written by elements": """
        c = pl.slice(x, [8, 24], [n, 0])
        for i in pl.range(n):
            c[i, 3:7] = pl.load(y, [i, 0], [1, 4])
            c = pl.slice(out, [8, 24], [i, 0])
        c[0,0:4] = pl.load(y, [9, 0], [1, 4])
    """,
    "from branches in loops": """
        c = pl.slice(x, [8, 24], [n, 0])
        for i in pl.range(n):
            if i == 1:
                for j in pl.range(i+1):
                    if j > 0:
                        c = pl.slice(y, [8, 24], [j+i, 0])
            elif i == 2:
                c = pl.slice(out, [8, 24], [9, 0])
            else:
                c = pl.slice(x, [8, 24], [i, 0])
            out = pl.store(pl.load(c, [0, 0], [2, 24])*0.5,[i, 0], out)
    """,
    "with less that is valid": """
        c = x
        if n > 3:
            c = pl.set_validshape(x, n, 20)
        out = pl.store(pl.fillpad(pl.load(c, [0, 0], [20, 24]), pad_value=pl.PadValue.max), [0, 0], out)
    """,
    "looked at otherwise": """
        if n > 3:
            c = pl.slice(x, [8, 20], [n, 2])
        else:
            c = pl.slice(y, [8, 20], [1, n])
        e = pl.transpose(c, 0, 1)
        out = pl.store(pl.load(e, [0, 0], [10, 4]), [8, 0], out)
        f = pl.slice(c, [1, 20], [n // 2, 0], drop_dims=[0])
        out = pl.store(pl.reshape(pl.load(f, [0], [20]), [1, 20]), [0, 0], out)
        g = pl.slice(e, [4, 4], [1, 1])
        out = pl.store(pl.load(g, [0, 0], [4, 4]), [2, 0], out)
    """,
    "written through another view": """
        if n > 3:
            c = x
        else:
            c = out
        d = pl.transpose(pl.slice(c, [20, 8], [0, n]), 0, 1)
        d = pl.store(pl.load(y, [0, 0], [8, 20]), [0, 0], d)
    """,
    "reshaped": """
        c = pl.slice(x, [4, 24], [n, 0])
        if n > 3:
            c = pl.slice(y, [4, 24], [n + 1, 0])
        out = pl.store(pl.load(pl.reshape(c, [8, 12]), [0, 0], [8, 12]), [0, 0], out)
    """,
}
REFUSED = {
    "turned": """
        c = pl.transpose(x, 0, 1)
        if n > 3:
            c = pl.transpose(pl.slice(y, [20, 24], [0, 0]), 0, 1)
        out = pl.store(pl.load(c, [0, 0], [20, 20]), [0, 0], out)
    """,
    "without an axis": """
        c = pl.slice(x, [1, 24], [n, 0], drop_dims=[0])
        if n > 3:
            c = pl.slice(y, [1, 24], [0, 0], drop_dims=[0])
        out = pl.store(pl.reshape(pl.load(c, [0], [24]), [1, 24]), [0, 0], out)
    """,
}


def made(n: int) -> list[Any]:
    rng = np.random.default_rng(3)
    shapes = (20, 24), (30, 24), (20, 24)
    x, y, out = (rng.normal(size=shape).astype(np.float32) for shape in shapes)
    return [x, y, n, out]


@pytest.mark.parametrize("platform", ["interpret", "cpu"])
@pytest.mark.parametrize("n", [0, 2, 5])
@pytest.mark.parametrize("way", WAYS)
def test_every_bit_is_the_same_when_it_is_read_back(way: str, n: int, platform: str) -> None:
    wanted, found = read_back_text(HEAD, WAYS[way], lambda: made(n), platform)
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("way", REFUSED)
def test_other_views_are_refused_where_they_are_chosen(way: str) -> None:
    with pytest.raises(pto.NoPtoError, match="not other views") as caught:
        read_back_text(HEAD, REFUSED[way], lambda: made(2), "interpret")
    assert "^" in str(caught.value) and "help: " in str(caught.value)
