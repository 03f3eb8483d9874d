"""Found: programs that random search once found wrong, cut down to what mattered."""

from __future__ import annotations

import pytest
from property.native import check

PARAMETERS = {
    "x": "pl.Tensor[[4, 4], pl.FP32]",
    "n": "pl.Tensor[[4, 4], pl.INT32]",
    "bytes": "pl.Tensor[[4, 32], pl.UINT8]",
    "y": "pl.InOut[pl.Tensor[[4, 4], pl.FP32]]",
    "mask": "pl.InOut[pl.Tensor[[4, 32], pl.UINT8]]",
    "half": "pl.InOut[pl.Tensor[[4, 4], pl.FP16]]",
    "k": "pl.Scalar[pl.INDEX]",
}

KERNELS = {
    "a tensor op that stays one loads nothing for its neighbours": """
        product = pl.matmul(half, half)
        half = pl.assemble(product, half, [0, 0])
        """,
    "part of a tensor is seen where it lies": """
        part = pl.set_validshape(y, 2, 3)
        y = pl.store(pl.tile.full([4, 4], dtype=pl.FP32, value=9.0), [0, 0], y)
        y = pl.store(pl.fillpad(pl.load(part, [0, 0], [4, 4], clamp=True)), [0, 0], y)
        """,
    "what is computed from part of a tensor is part of one": """
        part = pl.add(pl.set_validshape(x, 2, k % 3), 1.0)
        y = pl.store(pl.load(part, [0, 0], [4, 4], clamp=True), [0, 0], y)
        """,
    "bytes of tensors compare to bytes, not to packed bits": """
        mask[:, :] = pl.cmp(bytes, 3, cmp_type=pl.CmpType.LT)
        """,
    "what is computed from turned or repeated elements lies in order": """
        turned = pl.add(pl.transpose(y, 0, 1), pl.col_max(y))
        y[:, :] = pl.reshape(pl.reshape(turned, [2, 8]), [4, 4])
        joined = pl.concat(pl.transpose(x, 0, 1), pl.transpose(x, 0, 1))
        half[:, :] = pl.cast(pl.slice(pl.reshape(joined, [8, 4]), [4, 4], [3, 0]), pl.FP16)
        """,
    "integers are summed in int32 whatever the product holds": """
        wide = pl.mul(pl.cast(n, pl.INT64), 1000000)
        y[:, :] = pl.cast(pl.matmul(wide, wide), pl.FP32)
        """,
    "a product of integers and floats is added to floats": """
        y[:, :] = pl.matmul_acc(x, n, x)
        """,
    "half of infinity's logarithm is infinity, whatever roots are": """
        least = pl.full([4, 4], dtype=pl.FP32, value=-float("inf"))
        y[:, :] = pl.pow(pl.minimum(x, least), pl.cast(k * 0 + 1, pl.FP32) / 2.0)
        """,
    "a lone half has an angle": """
        column = pl.load(half, [0, 0], [4, 1])
        half = pl.store(pl.atan2(column, pl.load(half, [0, 1], [4, 1])), [0, 2], half)
        """,
    "where a tile has no column, nothing is read": """
        y = pl.store(pl.fillpad(pl.load(y, [0, 1 << 40], [4, 1], clamp=True)), [0, 1], y)
        y = pl.store(pl.fillpad(pl.load(y, [0, k + (1 << 40)], [4, 1], clamp=True)), [0, 2], y)
        """,
}


@pytest.mark.parametrize("body", KERNELS.values(), ids=KERNELS.keys())
def test_a_program_that_was_wrong_once_is_right(body: str) -> None:
    parameters = ", ".join(f"{name}: {annotation}" for name, annotation in PARAMETERS.items())
    check(f"""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, {parameters}):
{body}""")
