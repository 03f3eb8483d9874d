"""Kernels of a program: their texts, each of them once, and how Triton is to schedule them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from tilewright.backends.cpu.emit.unit import Unit
from tilewright.backends.cpu.emit.values import static
from tilewright.backends.cuda import schedule
from tilewright.backends.cuda.prints import Print
from tilewright.backends.cuda.schedule import AHEAD, Schedule
from tilewright.backends.cuda.ttir import ahead, cuts, reloads
from tilewright.backends.cuda.ttir.facts import SEVERAL
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.parameters import Parameters
from tilewright.backends.cuda.ttir.text import ANY_ROOM, I64
from tilewright.native import llvm
from tilewright.native.llvm import spelled
from tilewright.records import mutable, record
from tilewright.source import Span

SPREAD = 1 << 15
"""Elements of a product, at most, of which blocks that load its factors element by element have twice as many warps:
Triton takes two thirds of the time then. For more of them the assembler has no registers."""
ROLES = Schedule(4, 1, has_roles=True)
WARPS = 8
"""Warps of a block that multiplies, at most; twice as many where its tiles go through memory, and are as large."""
LIGHT_WORK = 16
"""Operations on floats of a kernel that does little more than load and store."""
OF_LIBRARY = 32
"""Operations that a function of CUDA's library is, about."""
_WORK = re.compile(r"= (?:math\.|arith\.\w+f |tt\.elementwise)")
DESCRIBED = 9
"""The generation of GPUs on which blocks are loaded by descriptors."""


@record
class KernelText:
    """A kernel: its name, its text for aligned parameters and for others, and how its blocks are run.

    Where it can load blocks by descriptors, there is a text for that, and schedules of which the first that fits is
    taken; they have aligned parameters.
    """

    name: str
    aligned: str
    other: str
    schedule: Schedule
    described: str = ""
    schedules: tuple[Schedule, ...] = ()
    parts: int = 1
    """Blocks that share a turn out."""
    spread: int = WARPS
    """Warps of a block that loads factors element by element."""
    roles: tuple[str, ...] = ()
    """Texts that say themselves what warps do, the best first, where the kernel is of a kind that gains from it."""
    widest: int = 0
    """Warps of a block, at most, where fewer have no registers for what they hold."""

    @staticmethod
    def of(name: str, k: Kernel, params: Parameters, wanted: str, count: llvm.Value) -> KernelText:
        """Return a kernel of so many blocks that has been written; a text can say how it is to be scheduled."""
        name, facts = spelled(name), k.facts
        can_have_roles = facts.is_described and facts.is_apart and schedule.wants_roles(wanted)
        roles = _roles(name, k, params, count) if can_have_roles else ()
        aligned, other = (k.t.module(name, params.texts(is_aligned=is_aligned)) for is_aligned in (True, False))
        most = WARPS if not facts.is_large else 2 * WARPS
        plainly = len(_WORK.findall(aligned))
        work = plainly + OF_LIBRARY * aligned.count("= tt.extern_elementwise")
        is_alone = not (k.t.is_folded or facts.products or facts.reaches)
        parts = cuts.parts(aligned, str(params.errors_of())) if is_alone else 1
        if parts > 1:
            aligned, other = cuts.cut(aligned, parts), cuts.cut(other, parts)
        largest, spread = facts.largest // parts, 0
        if k.t.pairs > schedule.OF_A_WARP:
            largest = max(largest, k.t.pairs)
        if parts > 1:
            spread = cuts.PART
        elif is_alone and plainly <= LIGHT_WORK:
            spread = largest
        elif k.t.is_folded and "scf.for" not in aligned and len(facts.sums) < SEVERAL:
            spread = facts.floats
        is_ahead = False
        if k.t.is_folded and facts.is_apart and not facts.products:
            if "scf.for" not in aligned and facts.load[0] >= reloads.LEAST:
                aligned, other = reloads.reloaded(aligned), reloads.reloaded(other)
            elif facts.load[0] >= ahead.LEAST and facts.load[1] <= ahead.SMALL:
                before, aligned, other = aligned, ahead.loaded_ahead(aligned), ahead.loaded_ahead(other)
                is_ahead = before != aligned
        usual = schedule.plain(largest, facts.products, spread=spread, work=work, most=most)
        if is_ahead:
            usual = schedule.of_part(largest, ahead.PER_THREAD)
        plain = schedule.wanted(wanted, usual if not facts.reaches else replace(usual, stages=1))
        if not facts.is_described:
            return KernelText(name, aligned, other, plain, parts=parts, widest=schedule.widest(wanted))
        parameters = params.texts(is_aligned=True, is_described=True)
        described = k.t.module(name, parameters, is_described=True)
        tried = schedule.described(facts.largest, facts.products, facts.block_bytes, work)
        schedules = tuple(schedule.wanted(wanted, each) for each in tried)
        spread = min(2 * plain.warps, WARPS if _largest(facts.products) > SPREAD else 2 * WARPS)
        most = schedule.widest(wanted)
        return KernelText(name, aligned, other, plain, described, schedules, roles=roles, spread=spread, widest=most)

    def tries(self, capability: int, *, is_aligned: bool) -> tuple[tuple[str, Schedule], ...]:
        """Return texts and schedules for a GPU, the best first: the first is taken that Triton can make fit a block."""
        is_described = is_aligned and capability // 10 == DESCRIBED
        quick: list[tuple[str, Schedule]] = []
        if is_described:
            fewer = [each for last in self.schedules[-1:] for each in schedule.smaller(last)[1:-1]]
            quick = [(self.described, each) for each in (*self.schedules, *fewer)]
            quick = [*((each, ROLES) for each in self.roles), *quick]
        text, usual = (self.aligned, self.schedule) if is_aligned else (self.other, self._spread)
        plain = [(text, each) for each in schedule.smaller(usual)]
        return (*quick, *plain, *((text.replace(AHEAD, "}"), each) for text, each in plain[:1] if AHEAD in text))

    @property
    def _spread(self) -> Schedule:
        """How blocks are run that load factors element by element: by more threads, so that each loads fewer."""
        return replace(self.schedule, warps=self.spread) if self.described else self.schedule


def _largest(products: Sequence[tuple[int, int]]) -> int:
    return max((rows * columns for rows, columns in products), default=0)


def _roles(name: str, k: Kernel, params: Parameters, count: llvm.Value) -> tuple[str, ...]:
    """Return the texts with roles of a kernel, which then is given how many blocks it has; none where it has none."""
    from tilewright.backends.cuda.ttgir.chain import Unfit  # few kernels come here
    from tilewright.backends.cuda.ttgir.roles import written

    tried, text = params.copied(), k.t.module(name, (), is_described=True)
    turns = tried.add(I64, count)
    try:
        texts = [
            written(name, text, tried.listed(), str(turns), static(count), rotates=rotates) for rotates in (True, False)
        ]
    except Unfit:
        return ()
    params.found = tried.found
    return tuple(dict.fromkeys(texts))


@record
class Launch:
    """A place of a program that starts a kernel: which, for which line, over which grid and with which arguments."""

    kernel: int
    line: str
    grid: str
    arguments: Sequence[str]

    @property
    def kept(self) -> list[Any]:
        """What the table of launches is made of, which is kept with the program."""
        return [self.kernel, self.line, self.grid, [*self.arguments]]


@record
class Wait:
    """A place of a program where the host waits until all has ended that was launched before: its line, and why."""

    line: str
    why: str

    @property
    def kept(self) -> list[Any]:
        """What the table of launches is made of: no kernel, and what is waited for in place of a grid."""
        return [None, self.line, self.why, []]


@mutable
class Kernels(Unit):
    """A program being written, with the kernels that its functions start."""

    kernels: list[KernelText] = field(default_factory=list[KernelText])
    launches: list[Launch | Wait] = field(default_factory=list[Launch | Wait])
    """Where its functions start kernels, and where they wait for them, as they are written."""
    prints: list[Print] = field(default_factory=list[Print])
    """What the kernels print, by number from one on."""
    shared: int = ANY_ROOM
    """Bytes of shared memory that a block has."""
    schedule: str = ""
    """How the settings want kernels to be scheduled."""

    def kernel(self, text: KernelText) -> int:
        """Return the number of a kernel, the same for equal ones."""
        if text not in self.kernels:
            self.kernels.append(text)
        return self.kernels.index(text)

    def wait(self, span: Span, why: str) -> None:
        """Note that the host waits at a line, once for what is fetched there piece by piece."""
        found = Wait(place_of(span), why)
        if self.launches[-1:] != [found]:
            self.launches.append(found)


def place_of(span: Span) -> str:
    """Return the file and line of a span, as tables show it."""
    return f"{Path(span.filename).name}:{span.line}"
