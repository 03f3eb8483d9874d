"""Products of chains: rows that lie in shared memory, or were computed, by blocks that have been streamed."""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.backends.cuda.ttgir.chain import PART, Load, Product
from tilewright.backends.cuda.ttgir.group import Group, derived
from tilewright.backends.cuda.ttgir.operations import is_zero
from tilewright.backends.cuda.ttgir.rings import Rings
from tilewright.records import record


@record
class Multiplier:
    """Writes the products of a group of warps, given where the rows lie that it holds."""

    g: Group
    rings: Rings
    held: Mapping[Load, str]

    def multiply(self, product: Product) -> None:
        """Write a product that is waited for."""
        self.wait(self.begin(product), product.op.results[0], product)

    def begin(self, product: Product, of: str = "", left: str = "", start: str = "") -> str:
        """Write that a product begins, with the block of some turn; return what is waited for.

        Computed rows, and what is added to, can be those of an earlier turn.
        """
        g, out = self.g, product.op.results[0]
        block, block_type = self.rings.block(g, product.right, product.is_turned, out, of)
        if isinstance(product.left, Load):
            rows, rows_type = self.held[product.left], self.rings.part_type(product.left)
        else:
            rows, rows_type = self._operand(product, left or product.left, of)
        adds = "%false" if is_zero(g.chain.constants.get(product.start)) else "%true"
        said, begun = "{inputPrecision = 0 : i32, isAsync = true}", derived(out, f"{of}begun")
        types = f"{rows_type} * {block_type} -> {self.type_of(product)}"
        given = f"{rows}, {block}, {start or product.start}, {adds}"
        g.say(f"{begun} = ttng.warp_group_dot {given} {said} : {types}{product.op.place}")
        return begun

    def wait(self, begun: str, result: str, product: Product, others: int = 0) -> None:
        """Write that a product is waited for, while so many that began later go on."""
        said = f"{{pendings = {others} : i32}}"
        self.g.say(f"{result} = ttng.warp_group_dot_wait {begun} {said} : {self.type_of(product)}")

    def type_of(self, product: Product) -> str:
        """Return the type of a product."""
        return self.g.layouts.tensor((self.g.chain.rows, product.columns), "f32")

    def _operand(self, product: Product, left: str, of: str) -> tuple[str, str]:
        """Write rows that were computed as the matrix units take them from registers."""
        g, element = self.g, product.op.types[0][1]
        own, parent = derived(product.op.results[0], f"{of}left"), g.layouts.of(product.columns)
        source, taken = self.left_type(product), f"#ttg.dot_op<{{opIdx = 0, parent = {parent}, kWidth = 2}}>"
        target = f"tensor<{PART}x{product.common}x{element}, {taken}>"
        g.say(f"{own} = ttg.convert_layout {left} : {source} -> {target}")
        return own, target

    def left_type(self, product: Product) -> str:
        """Return the type of rows that were computed for a product."""
        return self.g.layouts.tensor((self.g.chain.rows, product.common), product.op.types[0][1])
