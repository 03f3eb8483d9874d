"""Emission: a lowered program as one module of LLVM, and what there is to see of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tilewright.backends.cpu.emit.arena import Arena, Claim
from tilewright.backends.cpu.emit.memory import room_of
from tilewright.backends.cpu.emit.values import Array, Tile
from tilewright.backends.cpu.host.options import Options
from tilewright.backends.cpu.host.program import ProgramEmitter
from tilewright.backends.interface import Anatomy, Held, Line, Memory
from tilewright.core.program import Program
from tilewright.core.types import TileType
from tilewright.core.visitor import defined, statements
from tilewright.dtypes import BF16, FP16, FP64
from tilewright.native.assemble import assembly
from tilewright.native.target import Target
from tilewright.passes import ragged_turns, single_axes
from tilewright.passes.chosen_tiles import Widened, may_be_widened, may_have_long_rows
from tilewright.passes.few_rows import factors_of
from tilewright.records import record

if TYPE_CHECKING:
    from tilewright.passes.product_grids import Wanted

LARGE_L2 = 2 << 20
"""How large a second cache is that holds more than tiles of 512 x 128."""


@record
class Emission:
    """A program that has been written: by whom, the symbol of each entry, and which tiles were chosen for it."""

    emitter: ProgramEmitter
    symbols: Mapping[str, str]
    tiles: Widened

    @property
    def target(self) -> Target:
        """What the code is for: without matrix tiles where no product came to run on them."""
        target = self.emitter.target
        return target if self.emitter.module.on_tiles else target.without_amx


def emitted(program: Program, entries: Sequence[str] | None, target: Target, options: Options) -> Emission:
    """Return a lowered program written for a target."""
    target = _with_units(target, options)
    tiles = _tiled(program, target, options)
    tiles = replace(tiles, program=ragged_turns.run(single_axes.run(tiles.program)))
    program = tiles.program
    emitter = ProgramEmitter(program, target, options)
    functions = program.entries if entries is None else [program[name] for name in entries]
    symbols = {function.name: emitter.entry(function) for function in functions}
    return Emission(emitter, symbols, replace(tiles, units=tuple(emitter.module.on_tiles)))


def _with_units(target: Target, options: Options) -> Target:
    """Return a target with the matrix tiles that the options grant it."""
    return target if options.amx == "on" else replace(target.without_amx, emulates_tiles=options.amx == "emulated")


def _tiled(program: Program, target: Target, options: Options) -> Widened:
    """Return a program with tiles as the machine wants them."""
    if may_be_widened(program):
        return _multiplied(program, target, options)
    if not (options.chosen_tiles and may_have_long_rows(program)):
        return Widened(program)

    from tilewright.passes.long_rows import with_long_rows  # others go along rows as they are written

    return with_long_rows(program)


def _multiplied(program: Program, target: Target, options: Options) -> Widened:
    """Return a program with its products as the machine wants them."""
    from tilewright.backends.cpu.compute.matrix_tiles import depth_of_tile
    from tilewright.backends.cpu.compute.words import elements_of_word
    from tilewright.passes import (  # only programs with products need them
        added_products,
        chains,
        first_terms,
        halves,
        multiplied_casts,
        turned_loads,
    )
    from tilewright.passes.padded_rows import padded_rows
    from tilewright.passes.widen import widened

    program = added_products.run(turned_loads.run(program))
    wanted = replace(_wanted(program, target), cores=options.cores)
    tiles = widened(program, wanted) if options.chosen_tiles else Widened(program)
    tiles = replace(tiles, program=first_terms.run(tiles.program))
    is_short = [(dtype, depth_of_tile(target, dtype, dtype)) for dtype in (BF16, FP16)]
    wide = [dtype for dtype, depth in is_short if not depth and elements_of_word(target, dtype, dtype) == 1]
    whole = tiles.program.with_functions([padded_rows(function) for function in tiles.program.function_list])
    notes = tiles.notes
    if options.chosen_tiles:
        from tilewright.passes import shared_prefixes

        whole, more = shared_prefixes.run(whole, wanted)
        notes = (*notes, *more)
    return replace(tiles, program=halves.run(multiplied_casts.run(chains.run(whole)), wide), notes=notes)


def _wanted(program: Program, target: Target) -> Wanted:
    """Return the tiles that suit a program's products.

    For matrix tiles the words of 256 columns and the next rows stay in 2 MB of cache: an Emerald Rapids multiplies
    2048³ of bf16 in 14 ms in tiles of 1024 x 256 x 2048, in 20 in 256 x 256 x 1024. Bytes that are multiplied in words
    are a fourth as large as floats, and so fast that their sums had better be stored once: a Zen 5 multiplies 2048³ of
    int8 in 15.8 ms in tiles of 1024 x 128 x 2048, in 16.9 in 512 x 128 x 512. Pairs of bfloat16 numbers fill as much
    cache in steps of 1024 as floats do in 512: 1024³ takes 4.02 ms in these, and 4.11 in steps of 512. Doubles do in
    steps of 256. An Emerald Rapids, whose second cache has 2 MB, packs 64 columns at a time, for many rows: it
    multiplies 1024³ of floats in 13.5 ms in tiles of 1024 x 64 x 1024, in 14.5 in 512 x 128 x 512; 256 x 11008 x 4096
    in 158 in steps of 1376, in 168 in steps of 1024, which leave a rest. So few rows do better with longer rows of what
    is packed for them: 256 x 4096 x 1024 takes 11.2 ms in 256 x 128 x 640, and 11.7 in 64 columns.

    Rows that are folded, as attention's are, read what they are multiplied by again and again. On matrix tiles an
    Emerald Rapids had better take many at a time, and fold many keys into sums that are scaled each time: 4 heads of
    4096 x 128 take it 49 ms in 256 rows by 256 keys, 68 in 64 by 128. Floats do where keys and values do not fit half
    of the second cache: 192 ms, and 214; of 8 heads of 1024 x 64, which do, 64 rows take 12.2 ms, and 256 12.9.
    """
    from tilewright.backends.cpu.compute.matrix_tiles import depth_of_tile
    from tilewright.backends.cpu.compute.words import elements_of_word
    from tilewright.passes.product_grids import Wanted

    plain, pairs = Wanted(), factors_of(program.function_list)
    if pairs and all(depth_of_tile(target, *pair) for pair in pairs):
        return Wanted(rows=1024, columns=256, depth=2048, queries=256, keys=256, turns=4, few=plain)
    words = {elements_of_word(target, *pair) for pair in pairs}
    if words == {4}:
        return Wanted(rows=1024, depth=2048, few=plain)
    if words == {2}:
        return Wanted(depth=1024, few=plain)
    if all(FP64 in pair for pair in pairs):
        return Wanted(depth=256, few=plain)
    if target.fetches_along_rows and target.l2_bytes >= LARGE_L2:
        far = replace(plain, many_queries=256, keys=256, near=target.l2_bytes // 2)
        short = replace(far, rows=256, columns=128, depth=640)
        return replace(far, rows=1024, columns=64, depth=1280, few=plain, short=short)
    return plain


def anatomy(program: Program, entries: Sequence[str] | None, target: Target) -> Anatomy:
    """Return LLVM's text and the instructions with the lines they were made for, and who holds which memory."""
    from tilewright.backends.cpu.notes import notes  # which only those need who look
    from tilewright.native.assembly_lines import located

    made = emitted(program, entries, target, replace(Options.current(), located=True))
    emitter = made.emitter
    text, places = emitter.module.text(), emitter.module.places
    assert places is not None
    lines = {"llvm": places.lines(text), "assembly": located(assembly(text, made.target).splitlines())}
    texts = {stage: [Line(*line) for line in found] for stage, found in lines.items()}
    memory = [_memory(name, arena, made.tiles.program) for name, arena in emitter.arenas if arena.size]
    return Anatomy(texts, memory, notes(emitter.plans, (*made.tiles.notes, *made.tiles.units), texts["llvm"]))


def _memory(function: str, arena: Arena, program: Program) -> Memory:
    assert arena.plan is not None
    held = [_held(claim, arena.plan.now + 1) for claim in arena.plan.claims]
    return Memory(function, arena.size, held, _named(function.partition("_")[2], program))


def _named(function: str, program: Program) -> int:
    """Return how many bytes the tiles take that a function names; nothing where it is none of the program's."""
    stmts = statements(program[function].body) if function in program.function_names else ()
    types = [var.type for stmt in stmts for var in defined(stmt)]
    return sum(room_of(type_) for type_ in types if isinstance(type_, TileType))


def _held(claim: Claim, end: int) -> Held:
    until = end if claim.until is None else claim.until
    return Held(_name(claim.holder), *claim.part, claim.since, max(until, claim.since + 1), claim.span)


def _name(holder: object) -> str:
    """Return what an author calls a value, or what it is there for."""
    owners = holder.owners if isinstance(holder, (Tile, Array)) else []
    return owners[0].name_hint if owners else "scratch"
