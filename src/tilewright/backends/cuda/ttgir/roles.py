"""Roles: a chain written out for three groups of warps, one that loads blocks and two that multiply half of the rows.

Blocks go round in rings of shared memory. Each place has a barrier that says when it is full, and one when it is empty
again; rows that are held have two places, so that the next block's are there when this one's are stored. There are as
many blocks as the GPU has multiprocessors, and each takes its turns at what were blocks of the grid.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cuda.ttgir.chain import Chain, Load, Unfit, chain_of, sliced
from tilewright.backends.cuda.ttgir.group import Group
from tilewright.backends.cuda.ttgir.layouts import Layouts
from tilewright.backends.cuda.ttgir.masks import Masks
from tilewright.backends.cuda.ttgir.operations import NAME, Operation
from tilewright.backends.cuda.ttgir.products import multiply
from tilewright.backends.cuda.ttgir.rings import Rings

REGISTERS = "240, 24"
"""Registers of a thread that multiplies, and of one that loads."""


def written(name: str, text: str, params: Sequence[tuple[str, str, str]], count: str) -> str:
    """Return the text of a kernel with roles, for as many blocks as a parameter says; Unfit where it is no chain.

    Parameters are names, types, and what is known of them.
    """
    chain = chain_of(text)
    rings, layouts = Rings(chain), Layouts(chain)
    typed = [(each, rings.descriptors.get(each, type_)) for each, type_, _ in params]
    captured = [*typed, *rings.places]
    multiplying = [_multiplying(chain, rings, layouts, count, half) for half in range(2)]
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


def _inside(text: str, captured: Sequence[tuple[str, str]]) -> str:
    """Return a text of a group of warps that has other names for what is captured."""
    names = {name for name, _ in captured}
    return NAME.sub(lambda found: f"%own_{found[0][1:]}" if found[0] in names else found[0], text)


def _multiplying(chain: Chain, rings: Rings, layouts: Layouts, count: str, half: int) -> list[str]:
    """Return what a group of warps does that multiplies half of the rows."""
    g, loop = Group(chain, layouts, half), chain.loop
    after = sliced(chain.after, set(), chain)
    wanted = {name for op in after for name in op.operands} | {loop.low, loop.high, loop.step, *loop.starts}
    body = sliced(chain.loop.body, inner := set(loop.given), chain)
    before = sliced(chain.before, wanted | inner, chain)
    g.constants([*before, *body, *after], [loop.low, loop.high, loop.step, *loop.starts, *loop.given])
    with g.blocks(count) as done:
        g.write(before)
        held = rings.wait_for_held(g, half)
        turns = _turns(g, rings, body, held)
        rings.release_held(g, half)
        g.write(after)
        done(turns)
    return g.lines


def _turns(g: Group, rings: Rings, body: Sequence[Operation], held: dict[Load, str]) -> str:
    """Write the loop; return how many turns have been made when it ends."""
    loop = g.chain.loop
    types = [g.layouts.typed(each) for each in loop.types]
    pairs = ", ".join(f"{now} = {start}" for now, start in zip(loop.carried, loop.starts, strict=True))
    results = ", ".join((*loop.results, "%turns_made"))
    all_types = ", ".join((*types, "i32"))
    g.say(f"{results} = scf.for {loop.index} = {loop.low} to {loop.high} step {loop.step} "
          f"iter_args({pairs}{', ' if pairs else ''}%turn = %turns) -> ({all_types}) : i64 {{")  # fmt: skip
    rings.slot(g, "%turn")
    left = [product.right for product in g.chain.products.values()]
    masks = Masks(g, body)
    for op in body:
        product = g.chain.products.get(op)
        if op in masks.found:
            masks.write(op)
            continue
        if op in masks.later:
            continue
        if product is None:
            g.write([op])
            continue
        rings.wait_for(g, product.right)
        left.remove(product.right)
        multiply(g, product, held, rings)
        if product.right not in left:
            rings.release(g, product.right)
    g.say("%next_turn = arith.addi %turn, %one : i32")
    g.say(f"scf.yield {', '.join((*loop.given, '%next_turn'))} : {all_types}")
    g.say("}")
    return "%turns_made"


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
        for load in chain.held:
            rings.load_held(g, load)
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
