"""Products of chains: rows that lie in shared memory, or were computed, by blocks that have been streamed."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tilewright.backends.cuda.ttgir.chain import PART, ROWS, Load, Product
from tilewright.backends.cuda.ttgir.group import Group, derived
from tilewright.backends.cuda.ttgir.rings import Rings

_ZERO = re.compile(r"dense<(0x0+|0\.0+e\+00)>")


def multiply(g: Group, product: Product, held: Mapping[Load, str], rings: Rings) -> None:
    """Write a product, and that it is waited for."""
    out, columns = product.op.results[0], product.columns
    block, block_type = rings.block(g, product.right, product.is_turned, out)
    if isinstance(product.left, Load):
        left, left_type = held[product.left], rings.part_type(product.left)
    else:
        left, left_type = _operand(g, product, product.left)
    start, type_ = g.chain.constants.get(product.start), g.layouts.tensor((ROWS, columns), "f32")
    adds = "%false" if start is not None and _ZERO.search(start.text) else "%true"
    said, begun = "{inputPrecision = 0 : i32, isAsync = true}", derived(out, "begun")
    types = f"{left_type} * {block_type} -> {type_}"
    g.say(f"{begun} = ttng.warp_group_dot {left}, {block}, {product.start}, {adds} {said} : {types}{product.op.place}")
    g.say(f"{out} = ttng.warp_group_dot_wait {begun} {{pendings = 0 : i32}} : {type_}")


def _operand(g: Group, product: Product, left: str) -> tuple[str, str]:
    """Write rows that were computed as the matrix units take them from registers."""
    own, element = derived(product.op.results[0], "left"), product.op.types[0][1]
    source, parent = g.layouts.tensor((ROWS, product.common), element), g.layouts.of(product.columns)
    taken = f"#ttg.dot_op<{{opIdx = 0, parent = {parent}, kWidth = 2}}>"
    target = f"tensor<{PART}x{product.common}x{element}, {taken}>"
    g.say(f"{own} = ttg.convert_layout {left} : {source} -> {target}")
    return own, target
