"""Rings: the shared memory that blocks are loaded into, and the barriers that say whether they are there."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.backends.cuda.ttgir.chain import PART, WIDTHS, Chain, Load, Unfit
from tilewright.backends.cuda.ttgir.group import Group, derived

MEMORY = 226 * 1024
"""Bytes of shared memory that blocks have; the rest is for barriers."""
DEEPEST = 4
_BARRIER = "!ttg.memdesc<1xi64, #bars, #smem, mutable>"


class Rings:
    """The rings of a chain: of blocks that are streamed, and of rows that are held, for each half of them."""

    def __init__(self, chain: Chain) -> None:
        self.streamed = {load: number for number, load in enumerate(chain.streamed)}
        self.held = {load: number for number, load in enumerate(chain.held)}
        rows = 2 * PART * sum(load.row_bytes for load in self.held)
        turn = sum(load.rows * load.row_bytes for load in self.streamed)
        self.places_of_rows = 2 if 2 * rows + 2 * turn <= MEMORY else 1
        self.depth = min((MEMORY - self.places_of_rows * rows) // turn, DEEPEST)
        if self.depth < 2:
            raise Unfit("blocks that do not fit shared memory")

    @property
    def descriptors(self) -> dict[str, str]:
        """The types of the descriptors, by name."""
        held = {load.map: self._descriptor(PART, load) for load in self.held}
        return held | {load.map: self._descriptor(load.rows, load) for load in self.streamed}

    def _descriptor(self, rows: int, load: Load) -> str:
        return f"!tt.tensordesc<tensor<{rows}x{load.columns}x{load.element}, {_shared(load)}>>"

    @property
    def places(self) -> list[tuple[str, str]]:
        """The names and types of what lies in shared memory."""
        found: list[tuple[str, str]] = []
        for load, number in self.held.items():
            count = 2 * self.places_of_rows
            found += self._ring(f"rows{number}", count, PART, load)
        for load, number in self.streamed.items():
            found += self._ring(f"ring{number}", self.depth, load.rows, load)
        return found

    def _ring(self, name: str, count: int, rows: int, load: Load) -> list[tuple[str, str]]:
        barriers = f"!ttg.memdesc<{count}x1xi64, #bars, #smem, mutable>"
        memory = f"!ttg.memdesc<{count}x{rows}x{load.columns}x{load.element}, {_shared(load)}, #smem, mutable>"
        return [(f"%{name}", memory), (f"%{name}_full", barriers), (f"%{name}_empty", barriers)]

    def declared(self) -> list[str]:
        """Return the layouts of shared memory as a module declares them."""
        found = [
            "#bars = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>",
            "#smem = #ttg.shared_memory",
        ]
        for bytes_ in sorted({_swizzle(load) for load in (*self.held, *self.streamed)}):
            for name, turned in (("shared", "false"), ("turned", "true")):
                said = f"swizzlingByteWidth = {bytes_}, transposed = {turned}, elementBitWidth = 16"
                found.append(f"#{name}{bytes_} = #ttg.nvmma_shared<{{{said}}}>")
        return found

    def made(self) -> Iterator[str]:
        """Yield what makes the rings, with barriers that await one load, and each group that multiplies."""
        for name, type_ in self.places:
            yield f"    {name} = ttg.local_alloc : () -> {type_}"
        count = max(self.depth, 2 * self.places_of_rows)
        yield from (f"    %place{number} = arith.constant {number} : i32" for number in range(count))
        for name, type_ in self.places:
            if name.endswith(("_full", "_empty")):
                waits = 2 if name.startswith("%ring") and name.endswith("_empty") else 1
                for number in range(int(type_.removeprefix("!ttg.memdesc<").partition("x")[0])):
                    own = f"{name}{number}"
                    yield f"    {own} = ttg.memdesc_index {name}[%place{number}] : {type_} -> {_BARRIER}"
                    yield f"    ttng.init_barrier {own}, {waits} : {_BARRIER}"
        yield "    ttng.fence_async_shared {bCluster = false}"

    # what groups do

    def slot(self, g: Group, turn: str, of: str = "") -> None:
        """Write which place of the rings a turn has, and how often they have gone round; `of` tells turns apart."""
        g.say(f"%{of}depth = arith.constant {self.depth} : i32")
        g.say(f"%{of}slot = arith.remui {turn}, %{of}depth : i32")
        g.say(f"%{of}gone_round = arith.divui {turn}, %{of}depth : i32")
        g.say(f"%{of}phase = arith.andi %{of}gone_round, %one : i32")
        g.say(f"%{of}other_phase = arith.xori %{of}phase, %one : i32")

    def _row_slot(self, g: Group, half: int) -> None:
        g.say(f"%row_places{half} = arith.constant {self.places_of_rows} : i32")
        g.say(f"%half{half} = arith.constant {half} : i32")
        g.say(f"%row_slot{half} = arith.remui %round, %row_places{half} : i32")
        g.say(f"%row_pair{half} = arith.muli %row_slot{half}, %two : i32")
        g.say(f"%row_place{half} = arith.addi %row_pair{half}, %half{half} : i32")
        g.say(f"%row_rounds{half} = arith.divui %round, %row_places{half} : i32")
        g.say(f"%row_phase{half} = arith.andi %row_rounds{half}, %one : i32")
        g.say(f"%row_other{half} = arith.xori %row_phase{half}, %one : i32")

    def _at(self, g: Group, name: str, place: str, own: str) -> str:
        type_ = dict(self.places)[name]
        rest = type_.partition("x")[2]
        one = _BARRIER if name.endswith(("_full", "_empty")) else f"!ttg.memdesc<{rest}"
        g.say(f"{own} = ttg.memdesc_index {name}[{place}] : {type_} -> {one}")
        return one

    def wait_for_held(self, g: Group, half: int) -> dict[Load, str]:
        """Write that rows are waited for that are held; return where they lie."""
        self._row_slot(g, half)
        found: dict[Load, str] = {}
        for load, number in self.held.items():
            self._at(g, f"%rows{number}_full", f"%row_place{half}", f"%rows{number}_ready")
            g.say(f"ttng.wait_barrier %rows{number}_ready, %row_phase{half}, %true : {_BARRIER}")
            self._at(g, f"%rows{number}", f"%row_place{half}", f"%rows{number}_here")
            found[load] = f"%rows{number}_here"
        return found

    def release_held(self, g: Group, half: int) -> None:
        """Write that rows are not needed any more."""
        for number in self.held.values():
            self._at(g, f"%rows{number}_empty", f"%row_place{half}", f"%rows{number}_done")
            g.say(f"ttng.arrive_barrier %rows{number}_done, 1, %true : {_BARRIER}")

    def load_held(self, g: Group, load: Load, half: int, places: tuple[str, str]) -> None:
        """Write that rows are loaded for a group, from some place on."""
        number = self.held[load]
        if number == 0:
            self._row_slot(g, half)
        place, phase, own = f"%row_place{half}", f"%row_other{half}", f"%rows{number}_{half}"
        self._copy(g, load, f"rows{number}", own, place, phase, places, PART)

    def load(self, g: Group, load: Load) -> None:
        """Write that a block is loaded."""
        number = self.streamed[load]
        self._copy(g, load, f"ring{number}", f"%ring{number}", "%slot", "%other_phase", load.places, load.rows)

    def _copy(
        self, g: Group, load: Load, name: str, own: str, place: str, phase: str, at: tuple[str, str], rows: int
    ) -> None:
        self._at(g, f"%{name}_empty", place, f"{own}_free")
        g.say(f"ttng.wait_barrier {own}_free, {phase}, %true : {_BARRIER}")
        self._at(g, f"%{name}_full", place, f"{own}_there")
        g.say(f"ttng.barrier_expect {own}_there, {rows * load.row_bytes}, %true : {_BARRIER}")
        memory = self._at(g, f"%{name}", place, f"{own}_space")
        start, types = ", ".join(map(g.name, at)), f"{self.descriptors[load.map]}, {_BARRIER} -> {memory}"
        moved = f"{load.map}[{start}] {own}_space, {own}_there, %true : {types}"
        g.say(f"ttng.async_tma_copy_global_to_local {moved}")

    def wait_for(self, g: Group, load: Load, of: str = "") -> None:
        """Write that a block is waited for."""
        number = self.streamed[load]
        self._at(g, f"%ring{number}_full", f"%{of}slot", f"%{of}ring{number}_ready")
        g.say(f"ttng.wait_barrier %{of}ring{number}_ready, %{of}phase, %true : {_BARRIER}")

    def release(self, g: Group, load: Load, of: str = "") -> None:
        """Write that a block is not needed any more."""
        number = self.streamed[load]
        self._at(g, f"%ring{number}_empty", f"%{of}slot", f"%{of}ring{number}_done")
        g.say(f"ttng.arrive_barrier %{of}ring{number}_done, 1, %true : {_BARRIER}")

    def block(self, g: Group, load: Load, is_turned: bool, own: str, of: str = "") -> tuple[str, str]:
        """Write where a block lies; return that and its type."""
        block, turned_block = derived(own, f"{of}block"), derived(own, f"{of}turned")
        type_ = self._at(g, f"%ring{self.streamed[load]}", f"%{of}slot", block)
        if not is_turned:
            return block, type_
        size = f"{load.columns}x{load.rows}x{load.element}"
        turned = f"!ttg.memdesc<{size}, #turned{_swizzle(load)}, #smem, mutable>"
        g.say(f"{turned_block} = ttg.memdesc_trans {block} {{order = array<i32: 1, 0>}} : {type_} -> {turned}")
        return turned_block, turned

    def part_type(self, load: Load) -> str:
        """Return the type of half of the rows that are held."""
        return f"!ttg.memdesc<{PART}x{load.columns}x{load.element}, {_shared(load)}, #smem, mutable>"


def _swizzle(load: Load) -> int:
    """Return by how many bytes of a row shared memory is swizzled."""
    return min(load.columns * WIDTHS[load.element], 128)


def _shared(load: Load) -> str:
    return f"#shared{_swizzle(load)}"
