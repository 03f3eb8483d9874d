"""Kernels whose values Python looks at, in a file whose assertions nobody rewrites."""
# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportOptionalMemberAccess=false, reportIndexIssue=false, reportOperatorIssue=false

from __future__ import annotations

from typing import Any

import numpy as np

import tilewright.language as pl

SEEN: list[Any] = []


@pl.jit
def looking(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [3, 4])
        looked = t.numpy()
        more = looked + 1
        SEEN.extend([t + 1, t > 100, -t, t / 0, more, t[0]])
        SEEN.extend([np.max(t), t.numpy().sum(), np.maximum.reduce(t), t[2, 2], t[0, 1], t @ np.ones((4, 2))])
        assert np.isfinite(t.numpy()).all()
        assert (more == looked + 1).all()
        print(t)
        pl.store(t, [0, 0], out)
        assert x.shape[0] > 2, f"there are {t[1, 0]}"
    return out


@pl.jit
def misspelling(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    t = pl.load(x, [0, 0], [2, 3])
    print(t.numbers)
    pl.store(t, [0, 0], out)
    return out


@pl.jit
def rebinding(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    t = pl.load(x, [0, 0], [2, 3])
    t = t.numpy()
    pl.store(t, [0, 0], out)
    return out


@pl.jit
def hiding(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    t = pl.load(x, [0, 0], [2, 3])
    SEEN = t.numpy()  # noqa: F841 - the kernel would go on to read the module's
    pl.store(t, [0, 0], out)
    return out


@pl.jit
def filling(x: pl.Tensor, out: pl.Out[pl.Tensor], other: pl.Out[pl.Tensor]):
    for r in pl.range(0, 4, 2):
        with pl.at(level=pl.Level.CORE_GROUP):
            before = pl.load(out, [r, 0], [2, 4])
            pl.store(pl.load(x, [r, 0], [2, 3]), [r, 1], out)
            SEEN.extend([out.numpy(), before.numpy(), other.numpy()])
            pl.store(before, [r, 0], other)
    return out, other


def show(*values: Any) -> None:
    """Keep what is looked at, as somebody's own function that prints would."""
    SEEN.extend(values)


@pl.jit
def deciding(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [2, 3])
        if t.numpy().max() > 50:
            show("large")
        v = t.max()
        w = np.abs(t)
        show(t.max(), t.sum(axis=0), t.tolist(), v, [float(v) for v in w[0]])
        for r in t.numpy():
            if r[0] > 2:
                break
            show(r)
        v += 1
        show(v)
        del v
        if (t.numpy() > 50).all():
            raise ValueError("all are large")
        pl.store(t, [0, 0], out)
    return out


@pl.jit
def using(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [2, 3])
        v = t.max()
        show(v)
        pl.store(t * v, [0, 0], out)
    return out


@pl.jit
def catching(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [2, 3])
        try:
            raise ValueError("caught")
        except ValueError as error:
            show(str(error))
        n = 0
        while n < t.max():
            n += 1
        pl.store(t, [0, 0], out)
    return out


@pl.jit
def storing(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [2, 3])
        pl.store(np.abs(t), [0, 0], out)
    return out


@pl.jit
def collecting(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        tiles = [pl.load(x, [0, 0], [2, 3])]
        tiles.append(np.abs(tiles[0]))
        pl.store(tiles[-1], [0, 0], out)
    return out


@pl.jit
def leaving(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for r in pl.range(2):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [r, 0], [1, 3])
            pl.store(t, [r, 0], out)
        if x.numpy().max() > 2:
            break
    return out
