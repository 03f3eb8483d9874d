"""Layouts: which thread of a group of warps has which elements of a chain's tensors.

All have those of the matrix units: a thread has elements of the same rows in all tensors, whatever their columns.
"""

from __future__ import annotations

import re

from tilewright.backends.cuda.ttgir.chain import PART, Chain, Unfit
from tilewright.backends.cuda.ttgir.operations import TENSOR, Operation

NARROWEST, WIDEST = 8, 256
"""Columns that the matrix units compute at once."""
ACROSS, DOWN = "across", "down"
"""Which way the elements of a vector lie: one for each column, or one for each row."""


class Layouts:
    """The layouts of a chain's tensors, gathered while its text is written."""

    def __init__(self, chain: Chain) -> None:
        self.rows = chain.rows
        self.main = next(iter(chain.products.values())).columns
        """The columns of the product that vectors of rows are laid out by."""
        self.used = {self.main}
        self._ways = _ways(chain)

    def way(self, op: Operation) -> str:
        """Return which way vectors lie that an operation has to do with; nothing where it has none."""
        if all(len(extents) != 1 for extents, _ in op.types):
            return ""
        found = {self._ways[name] for name in (*op.results, *op.operands) if name in self._ways}
        if len(found) > 1:
            raise Unfit("vectors of rows and of columns")
        return next(iter(found), "")

    def typed(self, text: str, way: str = "", main: int = 0) -> str:
        """Return a text with layouts in the types of its tensors; vectors lie as is said, by some product's columns."""

        def laid(found: re.Match[str]) -> str:
            extents = tuple(map(int, found[1].rstrip("x").split("x")))
            return self.tensor(extents, found[2], way, main)

        return TENSOR.sub(laid, text)

    def tensor(self, extents: tuple[int, ...], element: str, way: str = "", main: int = 0) -> str:
        """Return the type of a tensor, of which a group of warps has its part of the rows."""
        if len(extents) == 2:
            rows, columns = extents
            if rows not in (self.rows, 1):
                raise Unfit(f"tensors of {rows} rows")
            held = PART if rows == self.rows else 1
            return f"tensor<{held}x{columns}x{element}, {self.of(main or columns)}>"
        if len(extents) != 1 or not way:
            raise Unfit("tensors of other ranks")
        if way == ACROSS:
            return f"tensor<{extents[0]}x{element}, #ttg.slice<{{dim = 0, parent = {self.of(extents[0])}}}>>"
        if extents[0] != self.rows:
            raise Unfit(f"vectors of {extents[0]} rows")
        return f"tensor<{PART}x{element}, #ttg.slice<{{dim = 1, parent = {self.of(main or 1)}}}>>"

    def of(self, columns: int) -> str:
        """Return the layout of a tensor of so many columns; one column lies as the first product's do."""
        if columns != 1 and columns < NARROWEST:
            raise Unfit(f"tensors of {columns} columns")
        width = self.main if columns == 1 else min(columns, WIDEST)
        self.used.add(width)
        return f"#mma{width}"

    def declared(self) -> list[str]:
        """Return the layouts as a module declares them."""
        version = "versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1]"
        return [f"#mma{n} = #ttg.nvidia_mma<{{{version}, instrShape = [16, {n}, 16]}}>" for n in sorted(self.used)]


def _ways(chain: Chain) -> dict[str, str]:
    """Return which way vectors lie: those of reductions down, others as they are made matrices of."""
    vectors = [op for op in chain.operations if any(len(extents) == 1 for extents, _ in op.types)]
    made = {name for op in vectors for name in op.results} - set(chain.constants)
    found: dict[str, str] = {}
    for op in vectors:
        if op.name == "tt.expand_dims":
            found[op.operands[0]] = DOWN if "axis = 1" in op.text else ACROSS
        elif op.name == "tt.reduce":
            found[op.results[0]] = DOWN
    for op in (*vectors, *reversed(vectors)):
        if op.name in ("tt.expand_dims", "tt.reduce"):
            continue
        near = [name for name in (*op.results, *op.operands) if name in made]
        ways = {found[name] for name in near if name in found}
        if len(ways) == 1:
            found.update(dict.fromkeys(near, next(iter(ways))))
    return {name: way for name, way in found.items() if name in made}
