"""Sums: products that are added to something, as products that begin with it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tilewright.backends.cuda.ttgir.operations import Operation

_ZERO = re.compile(r"arith\.constant dense<(0x0+|0\.0+e\+00)>")


def is_zero(op: Operation | None) -> bool:
    """Return whether an operation makes zeros."""
    return op is not None and _ZERO.match(op.text) is not None


def accumulated(
    body: Sequence[Operation], given: Sequence[str], constants: Mapping[str, Operation]
) -> tuple[Operation, ...]:
    """Return the operations of a turn, of which `given` is handed on, without sums of a product and something else."""
    products = {op.results[0]: op for op in body if op.name == "tt.dot" and is_zero(constants.get(op.operands[2]))}
    uses = [name for op in body for name in op.operands] + list(given)
    found: list[Operation] = []
    gone: set[Operation] = set()
    for op in body:
        product = next((products[name] for name in op.operands if name in products and uses.count(name) == 1), None)
        if op.name == "arith.addf" and product is not None:
            gone.add(product)
            start = next(name for name in op.operands if name != product.results[0])
            text = product.text.replace(product.operands[2], start, 1)
            op = Operation(product.name, op.results, text, product.place)
        found.append(op)
    return tuple(op for op in found if op not in gone)
