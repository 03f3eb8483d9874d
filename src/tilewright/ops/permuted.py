"""Permuted tensors: exponents of scaled products, in memory in an order of their own."""

from tilewright.arrays import np
from tilewright.core.enums import TensorLayout
from tilewright.core.region import Array


def in_order(data: Array, layout: TensorLayout) -> Array:
    """Return exponents in the order of their rows and columns, from that of memory."""
    rows, columns = data.shape
    if layout is TensorLayout.MX_A_ZZ:
        return np.reshape(np.transpose(np.reshape(data, (rows // 16, columns // 2, 16, 2)), (0, 2, 1, 3)), data.shape)
    return np.reshape(np.transpose(np.reshape(data, (columns // 16, rows // 2, 16, 2)), (1, 3, 0, 2)), data.shape)
