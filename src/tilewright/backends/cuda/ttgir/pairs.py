"""Pairs: neighbours of a grid that stream the same blocks past rows of their own, so that two groups can share them.

A kernel whose blocks have as many rows as one group of warps multiplies is computed two blocks at a time, where the
number of the block has nothing to do with what is streamed but by its quotient with an even number.
"""

from __future__ import annotations

import re

from tilewright.backends.cuda.ttgir.chain import Chain
from tilewright.backends.cuda.ttgir.operations import Operation

_INTEGER = re.compile(r"arith\.constant (\d+) :")


def can_pair(chain: Chain, count: int | None) -> bool:
    """Return whether each two blocks of a grid, which may be known to have so many, stream the same."""
    numbers = {op.results[0] for op in chain.before if op.name == "tt.get_program_id"}
    apart, is_divided = set[str](), False
    for op in (*chain.before, *chain.loop.body):
        given = set(op.operands)
        if op.name == "arith.extsi" and given & numbers:
            numbers.add(op.results[0])
        elif op.name == "arith.divsi" and op.operands[0] in numbers and _is_even(chain.constants.get(op.operands[1])):
            is_divided = True
        elif given & (apart | numbers):
            apart.update(op.results)
    apart |= numbers
    loop = chain.loop
    needed = {loop.low, loop.high, loop.step, *(place for load in chain.streamed for place in load.places)}
    return not needed & apart and (is_divided or (count is not None and count % 2 == 0))


def _is_even(op: Operation | None) -> bool:
    found = _INTEGER.match(op.text) if op is not None else None
    return found is not None and int(found[1]) % 2 == 0
