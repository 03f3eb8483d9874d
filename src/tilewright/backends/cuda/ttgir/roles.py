"""Roles: a chain written out for three groups of warps, one that loads blocks and two that multiply half of the rows.

Blocks go round in rings of shared memory. Each place has a barrier that says when it is full, and one when it is empty
again; rows that are held have two places, so that the next block's are there when this one's are stored. There are as
many blocks as the GPU has multiprocessors, and each takes its turns at what were blocks of the grid.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tilewright.backends.cuda.ttgir.chain import PART, Chain, Unfit, chain_of, sliced
from tilewright.backends.cuda.ttgir.group import Group, derived
from tilewright.backends.cuda.ttgir.layouts import Layouts
from tilewright.backends.cuda.ttgir.operations import NAME, Operation
from tilewright.backends.cuda.ttgir.products import Multiplier
from tilewright.backends.cuda.ttgir.rings import Rings
from tilewright.backends.cuda.ttgir.turns import Turns

_INTEGER = re.compile(r"arith\.constant (\d+) :")


def can_pair(chain: Chain, count: int | None) -> bool:
    """Return whether each two blocks of a grid, which may be known to have so many, stream the same.

    A kernel whose blocks have as many rows as one group of warps multiplies is computed two blocks at a time, where
    the number of the block has nothing to do with what is streamed but by its quotient with an even number.
    """
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


REGISTERS = "240, 24"
"""Registers of a thread that multiplies, and of one that loads."""


def written(
    name: str,
    text: str,
    params: Sequence[tuple[str, str, str]],
    count: str,
    known_count: int | None = None,
    *,
    rotates: bool = True,
) -> str:
    """Return the text of a kernel with roles, for as many blocks as a parameter says; Unfit where it is no chain.

    Parameters are names, types, and what is known of them. Products of two turns are side by side, unless one would
    rather not have that.
    """
    chain = chain_of(text)
    if chain.is_paired and not can_pair(chain, known_count):
        raise Unfit("neighbours that stream different blocks")
    rings, layouts = Rings(chain), Layouts(chain)
    typed = [(each, rings.descriptors.get(each, type_)) for each, type_, _ in params]
    captured = [*typed, *rings.places]
    multiplying = [_multiplying(chain, rings, layouts, count, half, rotates) for half in range(2)]
    loading = _loading(chain, rings, layouts, count)
    names = ", ".join(each for each, _ in captured)
    given = _inside(", ".join(f"{each}: {type_}" for each, type_ in captured), captured)
    types = ", ".join(type_ for _, type_ in captured)
    said = ", ".join(f"{each}: {type_}{known}" for (each, type_), (_, _, known) in zip(typed, params, strict=True))
    return "\n".join(
        [
            *layouts.declared(),
            *rings.declared(),
            'module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", '
            '"ttg.threads-per-warp" = 32 : i32} {',
            f"  tt.func public @{name}({said}) attributes {{noinline = false}} {{",
            *rings.made(),
            f"    ttg.warp_specialize({names}) attributes {{requestedRegisters = array<i32: {REGISTERS}>}}",
            "    default {",
            *multiplying[0],
            "      ttg.warp_yield",
            "    }",
            f"    partition0({given}) num_warps(4) {{",
            *(_inside(line, captured) for line in multiplying[1]),
            "      ttg.warp_return",
            "    }",
            f"    partition1({given}) num_warps(1) {{",
            *(_inside(line, captured) for line in loading),
            "      ttg.warp_return",
            f"    }} : ({types}) -> ()",
            "    tt.return",
            "  }",
            "}",
            "",
        ]
    )


def _moved(g: Group, before: Sequence[Operation], half: int) -> dict[str, str]:
    """Write where the rows of a group begin, its own block's or behind the other's; return what that is called."""
    rows = {load.places[0] for load in g.chain.held}
    if half == 0:
        return {}
    if g.chain.is_paired:
        g.say("%neighbour = arith.addi %block, %one : i32")
        start = len(g.lines)
        g.write(before)
        return g.rename(start, "other_", {"%block": "%neighbour"})
    g.say(f"%part = arith.constant {PART} : i32")
    for row in rows:
        g.say(f"{derived(row, 'lower')} = arith.addi {g.name(row)}, %part : i32")
    return {row: derived(row, "lower") for row in rows}


def _inside(text: str, captured: Sequence[tuple[str, str]]) -> str:
    """Return a text of a group of warps that has other names for what is captured."""
    names = {name for name, _ in captured}
    return NAME.sub(lambda found: f"%own_{found[0][1:]}" if found[0] in names else found[0], text)


def _multiplying(chain: Chain, rings: Rings, layouts: Layouts, count: str, half: int, rotates: bool) -> list[str]:
    """Return what a group of warps does that multiplies half of the rows."""
    g, loop = Group(chain, layouts, half), chain.loop
    after = sliced(chain.after, set(), chain)
    wanted = {name for op in after for name in op.operands} | {loop.low, loop.high, loop.step, *loop.starts}
    body = sliced(chain.loop.body, inner := set(loop.given), chain)
    before = sliced(chain.before, wanted | inner, chain)
    g.constants([*before, *body, *after], [loop.low, loop.high, loop.step, *loop.starts, *loop.given])
    with g.blocks(count) as done:
        g.write(before)
        turns = Turns(Multiplier(g, rings, rings.wait_for_held(g, half)), body).write(rotates)
        rings.release_held(g, half)
        g.write(after)
        done(turns)
    return g.lines


def _loading(chain: Chain, rings: Rings, layouts: Layouts, count: str) -> list[str]:
    """Return what the warp does that loads blocks."""
    g, loop = Group(chain, layouts, 0), chain.loop
    inner = {place for load in chain.streamed for place in load.places}
    body = [op for op in sliced(loop.body, inner, chain) if op.name not in ("tt.store", "scf.if")]
    wanted = {place for load in chain.held for place in load.places} | {loop.low, loop.high, loop.step} | inner
    before = [op for op in sliced(chain.before, wanted, chain) if op.name != "scf.if"]
    if inner & set(loop.carried) or any(op.types for op in (*before, *body)):
        raise Unfit("places that are computed with tensors")
    g.constants([*before, *body], [*wanted, loop.low, loop.high, loop.step])
    with g.blocks(count) as done:
        g.write(before)
        for half in range(2):
            moved = _moved(g, before, half)
            for load in chain.held:
                row, column = (moved.get(place, place) for place in load.places)
                rings.load_held(g, load, half, (row, column))
        g.say(f"%turns_made = scf.for {loop.index} = {loop.low} to {loop.high} step {loop.step} "
              "iter_args(%turn = %turns) -> (i32) : i64 {")  # fmt: skip
        rings.slot(g, "%turn")
        g.write(body)
        for load in chain.streamed:
            rings.load(g, load)
        g.say("%next_turn = arith.addi %turn, %one : i32")
        g.say("scf.yield %next_turn : i32")
        g.say("}")
        done("%turns_made")
    return g.lines
