"""Canaries: programs emitted so that every part of an arena and every buffer lies between bytes that must not change.

Nothing of this is in the product. A `GuardedArena` leaves zones between the parts it gives out; a `GuardedProgram`
fills the zones when a function is entered and looks at them when it is left, by calls put into the function's text.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any

import pytest

from tilewright.backends import host as native
from tilewright.backends.cpu import emission
from tilewright.backends.cpu.emit import memory
from tilewright.backends.cpu.emit.arena import ALIGNMENT, Arena
from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.host import heap, tensors
from tilewright.backends.cpu.host.program import ProgramEmitter
from tilewright.native.llvm import Value, i64
from tilewright.native.loader import Loaded
from tilewright.source import Span

ZONE, CANARY = 64, 0xA5
FILL = ("llvm.memset.p0.i64", "void", "ptr", "i8", "i64", "i1")

HELPERS = f"""
@damage = dso_local global i64 0
@looks = dso_local global i64 0
declare i32 @memcmp(ptr, ptr, i64)
@loud = internal constant [{2 * ZONE} x i8] [{", ".join([f"i8 {CANARY}"] * 2 * ZONE)}]

define internal void @guard(ptr %arena, ptr %zones, i64 %count, i1 %look) nounwind {{
entry:
  %none = icmp eq ptr %arena, null
  br i1 %none, label %done, label %head
head:
  %index = phi i64 [ 0, %entry ], [ %next, %following ]
  %more = icmp slt i64 %index, %count
  br i1 %more, label %body, label %done
body:
  %zone = getelementptr [2 x i64], ptr %zones, i64 %index
  %offset = load i64, ptr %zone
  %size.at = getelementptr i64, ptr %zone, i64 1
  %size = load i64, ptr %size.at
  %at = getelementptr i8, ptr %arena, i64 %offset
  br i1 %look, label %compare, label %fill
fill:
  call void @llvm.memset.p0.i64(ptr %at, i8 {CANARY}, i64 %size, i1 false)
  br label %following
compare:
  %same = call i32 @memcmp(ptr %at, ptr @loud, i64 %size)
  %changed = icmp ne i32 %same, 0
  %one = zext i1 %changed to i64
  %damaged = atomicrmw add ptr @damage, i64 %one monotonic
  %looked = atomicrmw add ptr @looks, i64 1 monotonic
  br label %following
following:
  %next = add i64 %index, 1
  br label %head
done:
  ret void
}}
"""


@dataclass
class GuardedArena(Arena):
    """An arena that gives every part its own bytes, from a zone to the next."""

    zones: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def take(self, nbytes: int) -> tuple[int, int]:
        start, end = self.size + ZONE, self.size + ZONE + nbytes
        size = -(-end // ALIGNMENT) * ALIGNMENT + ZONE
        self.zones += [(self.size, ZONE), (end, size - end)]
        self.size = size
        return start, nbytes

    def give_back(self, part: tuple[int, int]) -> None:
        """Parts stay apart: a zone of today must not be a part of tomorrow."""


class WatchedProgram(ProgramEmitter):
    """Emits functions that call `@guard` with the zones of their arenas when they begin and when they end."""

    helpers = ""
    """Where `@guard` is defined."""

    def settle(self, arena: Arena, span: Span) -> int:
        whole = super().settle(arena, span)
        if isinstance(arena, GuardedArena) and arena.zones:
            self.module.functions[-1] = self._watched(self.module.functions[-1], arena.base, arena.zones)
        return whole

    def _watched(self, text: str, base: Value, zones: list[tuple[int, int]]) -> str:
        self.module.declare(self.helpers)
        self.names += 1
        table = ", ".join(f"[2 x i64] [i64 {offset}, i64 {size}]" for offset, size in zones)
        self.module.declare(f"@zones{self.names} = internal constant [{len(zones)} x [2 x i64]] [{table}]")
        call = f"  call void @guard({base}, ptr @zones{self.names}, i64 {len(zones)}, i1 "
        lines, freed = text.splitlines(), f"  call void @free({base})"
        last = freed if freed in lines else "  ret void"
        made = next((i for i, line in enumerate(lines) if line.startswith(f"  {base.ref} = ")), None)
        first = made if made is not None else max(i for i, line in enumerate(lines[:200]) if _is_start(line))
        lines.insert(first + 1, f"{call}false)")
        return "\n".join(f"{call}true)\n{line}" if line == last else line for line in lines) + "\n"


class GuardedProgram(WatchedProgram):
    """Emits functions that look at the zones of their arenas."""

    helpers = HELPERS

    def _watched(self, text: str, base: Value, zones: list[tuple[int, int]]) -> str:
        self.module.intrinsic(*FILL)
        return super()._watched(text, base, zones)


def allocate(e: FunctionEmitter, nbytes: Value, clear: bool = False) -> Value:
    """Emit a buffer with a zone before and after."""
    block = heap.allocate(e, e.b.op("add", nbytes, i64(2 * ZONE)), clear)
    after = e.b.offset(block, e.b.op("add", nbytes, i64(ZONE)), "i8")
    fill = e.b.module.intrinsic(*FILL)
    for zone in (block, after):
        e.b.invoke(fill, zone, Value("i8", str(CANARY)), i64(ZONE), Value("i1", "false"))
    e.b.store(nbytes, block, 8)
    return e.b.offset(block, i64(ZONE), "i8")


def _is_start(line: str) -> bool:
    """Return whether a line begins a function's first block or is one of the words of its frame."""
    return line == "entry:" or " = alloca " in line


@dataclass
class Canaries:
    """What has been loaded and freed since the watch began."""

    loaded: list[Loaded] = field(default_factory=list[Loaded])
    dead: int = 0
    looks: int = 0

    def look_at_buffers(self, head: int) -> None:
        """Look at the zones of the buffers in a list that is about to be freed."""
        while head:
            start = (head + 127) & -64
            size = ctypes.c_int64.from_address(start).value
            zones = ctypes.string_at(start + 8, ZONE - 8), ctypes.string_at(start + ZONE + size, ZONE)
            self.dead += sum(set(zone) != {CANARY} for zone in zones)
            self.looks += 2
            head = ctypes.c_int64.from_address(head).value

    def count(self, name: str) -> int:
        words = [code.addresses[name] for code in self.loaded if name in code.addresses]
        return sum(ctypes.c_int64.from_address(word).value for word in words)

    def died(self) -> int:
        """Return how many zones were found changed."""
        return self.dead + self.count("damage")

    def were_looked_at(self) -> bool:
        return self.looks + self.count("looks") > 0


def watch(monkeypatch: pytest.MonkeyPatch) -> Canaries:
    """Let everything that is compiled from here on be guarded."""
    seen, load, free = Canaries(), native.load, native._free  # pyright: ignore[reportPrivateUsage]

    def keep(*args: Any) -> Loaded:
        seen.loaded.append(load(*args))
        return seen.loaded[-1]

    def look_and_free(head: int) -> None:
        seen.look_at_buffers(head)
        free(head)

    monkeypatch.setattr(memory, "Arena", GuardedArena)
    monkeypatch.setattr(tensors, "allocate", allocate)
    monkeypatch.setattr(emission, "ProgramEmitter", GuardedProgram)
    monkeypatch.setattr(native, "load", keep)
    monkeypatch.setattr(native, "_free", look_and_free)
    return seen
