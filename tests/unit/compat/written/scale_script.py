"""A script as PTODSL's users write it: a vector kernel, launched on an array's address."""
# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownParameterType=false, reportUnknownArgumentType=false, reportUnreachable=false

import numpy as np
from ptodsl import pto, scalar


@pto.simd
def scale(x: pto.Tile, y: pto.Tile, by: pto.f32, n: pto.i32):
    left = n
    for i in range(0, n, 64):
        mask, left = pto.make_mask(pto.f32, left)
        pto.vsts(pto.vmuls(pto.vlds(x[i:]), by, mask), y[i:], mask)


@pto.jit(target="a5", mode="explicit")
def scaled(a: pto.ptr(pto.f32, "gm"), out: pto.ptr(pto.f32, "gm"), n: pto.i32):
    x, y = pto.alloc_tile(shape=[256], dtype=pto.f32), pto.alloc_tile(shape=[256], dtype=pto.f32)
    pto.mte_gm_ub(a, x.as_ptr(), 0, n * 4, nburst=(1, 0, 0))
    scale(x, y, scalar.max(pto.f32(2.0), 3.0), n)
    pto.mte_ub_gm(y.as_ptr(), out, n * 4, nburst=(1, 0, 0))


a, out = np.arange(200, dtype=np.float32), np.zeros(200, np.float32)
scaled[1, None](a.ctypes.data, out.ctypes.data, 200)
print((out == 3 * a).all())
