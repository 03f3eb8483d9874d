"""`pl.array`: small on-core arrays."""

from tilewright.ops.array import *
