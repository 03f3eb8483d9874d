"""Chains: kernels that stream blocks past rows that they hold, product by product.

A block of rows is loaded once, or computed; a loop loads blocks, multiplies the rows with them, works on the rows of
what comes out, and may multiply those with other blocks; after the loop, rows are stored. Each row is computed from its
own elements alone, which is why two groups of warps can have half of the rows each, and need not know of one another.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from tilewright.backends.cuda.ttgir.operations import Loop, Operation, accumulated, read
from tilewright.backends.cuda.ttgir.powers import Powers
from tilewright.records import entity, record

PART = 64
"""Rows that a group of four warps multiplies at a time."""
ROWS = (PART, 2 * PART)
"""Rows that a chain has: those of a group, of two neighbours each, or of both groups."""
WIDTHS = {"bf16": 2, "f16": 2}
"""The bytes of what is multiplied."""
NARROWEST, WIDEST = 16, 256
"""Columns of a product."""
REGISTERS = 200
"""Registers that products take of a thread's 240, at most."""

BY_ROW = re.compile(
    r"arith\.\w+|math\.\w+|tt\.(splat|broadcast|expand_dims|make_range|bitcast|elementwise_inline_asm|"
    r"extern_elementwise|addptr|load|precise_\w+|fp_to_fp|reduce|get_program_id)"
)
"""What is done row by row, or with numbers."""


_OTHERS = ("tt.descriptor_load", "tt.dot", "tt.trans", "tt.store", "scf.if")
"""What else a chain may have in it; a branch only stores numbers, which two groups may do as well as one."""
_TWICE = re.compile(r"atomic|tt\.descriptor_store|tt\.print|tt\.assert|scf\.(for|while)|barrier")
"""What must not be done by two groups, or be waited for."""


class Unfit(Exception):
    """A kernel is no chain, or not one that is scheduled here."""


@record
class Load:
    """A block that is loaded by a descriptor: by which, from where, and how large it is."""

    result: str
    map: str
    places: tuple[str, str]
    rows: int
    columns: int
    element: str

    @property
    def row_bytes(self) -> int:
        """The bytes of one of its rows."""
        return self.columns * WIDTHS[self.element]


@entity
class Product:
    """A product: rows that are held or computed, a block, turned or not, and what is added to."""

    op: Operation
    left: Load | str
    right: Load
    is_turned: bool
    start: str
    common: int
    columns: int


@entity
class Chain:
    """A kernel by its parts: what is done before its loop, the loop, and what is done after it."""

    before: tuple[Operation, ...]
    loop: Loop
    after: tuple[Operation, ...]
    held: tuple[Load, ...]
    streamed: tuple[Load, ...]
    products: Mapping[Operation, Product]
    rows: int

    @cached_property
    def constants(self) -> dict[str, Operation]:
        """The constants, by name."""
        return {op.results[0]: op for op in self.before if op.name == "arith.constant"}

    @property
    def is_paired(self) -> bool:
        """Whether each group of warps has a block of its own."""
        return self.rows == PART

    @property
    def operations(self) -> tuple[Operation, ...]:
        """Everything that is done, in order."""
        return (*self.before, *self.loop.body, *self.after)


def chain_of(text: str) -> Chain:
    """Return the text of a kernel as a chain; Unfit where it is none."""
    found = read(text)
    loops = [number for number, each in enumerate(found) if isinstance(each, Loop)]
    if len(loops) != 1:
        raise Unfit("not one loop")
    loop = found[loops[0]]
    assert isinstance(loop, Loop)
    before, after = (_plain(part) for part in (found[: loops[0]], found[loops[0] + 1 :]))
    constants = {op.results[0]: op for op in before if op.name == "arith.constant"}
    loop = replace(loop, body=accumulated(loop.body, loop.given, constants))
    powers = Powers(before, loop.body)
    loop = replace(loop, body=powers.rewritten(loop.body))
    before = (*before, *powers.constants)
    held, streamed = _loads(before), _loads(loop.body)
    if _loads(after) or any(op.name == "tt.dot" for op in (*before, *after)):
        raise Unfit("blocks outside of the loop")
    products = _products(loop.body, held, streamed)
    rows = {op.types[0][0][0] for op in products}
    if len(rows) != 1 or not rows <= set(ROWS):
        raise Unfit("products of other rows")
    chain = Chain(before, loop, after, tuple(held.values()), tuple(streamed.values()), products, rows.pop())
    _check(chain)
    return chain


def _plain(found: Sequence[Operation | Loop]) -> tuple[Operation, ...]:
    return tuple(each for each in found if isinstance(each, Operation))


def _loads(ops: Sequence[Operation]) -> dict[str, Load]:
    found: dict[str, Load] = {}
    for op in ops:
        if op.name == "tt.descriptor_load":
            source, row, column = op.operands
            (rows, columns), element = op.types[-1]
            if element not in WIDTHS or columns * WIDTHS[element] % 32:
                raise Unfit(f"blocks of {columns} {element}")
            found[op.results[0]] = Load(op.results[0], source, (row, column), rows, columns, element)
    return found


def _products(
    body: Sequence[Operation], held: Mapping[str, Load], streamed: Mapping[str, Load]
) -> dict[Operation, Product]:
    turned = {op.results[0]: op.operands[0] for op in body if op.name == "tt.trans" and op.operands[0] in streamed}
    found: dict[Operation, Product] = {}
    for op in body:
        if op.name != "tt.dot":
            continue
        left, right, start = op.operands
        (_, common), element = op.types[0]
        (_, columns), total = op.types[2]
        block = streamed.get(turned.get(right, right))
        if block is None or left in streamed or left in turned:
            raise Unfit("a product of other blocks")
        if element not in WIDTHS or total != "f32" or not NARROWEST <= columns <= WIDEST or "inputPrecision" in op.text:
            raise Unfit("a product of other elements")
        found[op] = Product(op, held.get(left, left), block, right in turned, start, common, columns)
    return found


def _check(chain: Chain) -> None:
    """Raise Unfit where a chain has something that cannot be shared out by rows."""
    for op in chain.operations:
        if not (BY_ROW.fullmatch(op.name) or op.name in _OTHERS) or (op.name == "scf.if" and _TWICE.search(op.text)):
            raise Unfit(op.name)
    products = chain.products.values()
    if not any(isinstance(each.left, Load) for each in products):
        raise Unfit("no rows that are held")
    lefts = [each.columns for each in products]
    computed = [each.common for each in products if isinstance(each.left, str)]
    if sum(lefts) // 2 + sum(computed) // 4 > REGISTERS:
        raise Unfit("too much for a thread's registers")
    blocks = {load.result for load in (*chain.held, *chain.streamed)}
    multiplied = {load.result for each in products for load in (each.left, each.right) if isinstance(load, Load)}
    if blocks != multiplied or any(load.rows != chain.rows for load in chain.held):
        raise Unfit("blocks that are not multiplied")
    if {load.map for load in chain.held} & {load.map for load in chain.streamed}:
        raise Unfit("blocks of one shape and tensor, held and streamed")
    users = {
        name for op in chain.operations if op not in chain.products and op.name != "tt.trans" for name in op.operands
    }
    if users & blocks or blocks & set(chain.loop.given):
        raise Unfit("blocks that are worked on by element")


def sliced(ops: Sequence[Operation], wanted: set[str], chain: Chain) -> list[Operation]:
    """Return the operations that values take, in order, and add to those what the operations take themselves."""
    kept: list[Operation] = []
    for op in reversed(ops):
        if op.name in EFFECTS or wanted & set(op.results):
            kept.append(op)
            wanted.update(_taken(op, chain))
    return kept[::-1]


EFFECTS = ("tt.store", "scf.if")


def _taken(op: Operation, chain: Chain) -> Sequence[str]:
    product = chain.products.get(op)
    if product is None:
        return op.operands
    return (product.start,) if isinstance(product.left, Load) else (product.start, product.left)
