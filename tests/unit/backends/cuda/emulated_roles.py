"""Kernels with roles run by NumPy: each group of warps is a thread, and barriers are what they wait for.

A copy takes a while on the GPU: here it is only made when somebody waits for it, and until then its place is loud.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Condition
from typing import Any

import numpy
from unit.backends.cuda.emulated import Line, Machine
from unit.backends.cuda.emulated_memory import Memory, numpy_type

np: Any = numpy  # elements are of any type here
_LAYOUT = re.compile(r"(tensor<(?:\d+x)+[^,<>]+(?:<[^<>]*>)?), #(?:ttg\.\w+<\{[^{}]*\}>|\w+)>")
PATIENCE = 20
"""Seconds after which threads that wait for one another are stuck."""


@dataclass
class Barrier:
    """What is waited for: arrivals, and copies that have been promised."""

    count: int = 1
    arrived: int = 0
    phase: int = 0
    copies: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    changed: Condition = field(default_factory=Condition)

    def arrive(self, count: int) -> None:
        with self.changed:
            self.arrived += count
            assert self.arrived <= self.count, "more arrive than are awaited"
            if self.arrived == self.count:
                self.arrived, self.phase = 0, self.phase ^ 1
                self.changed.notify_all()

    def wait(self, phase: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: self.phase != phase, PATIENCE), "nobody comes"
            while self.copies:
                self.copies.pop()()


class Roles(Machine):
    """A program with roles while it runs, or one of its groups of warps."""

    def __init__(self, text: str, memory: Memory, planes: dict[str, Any], program: int, programs: int) -> None:
        plain = _LAYOUT.sub(r"\1>", text)
        lines = [line for line in plain.splitlines() if not line.startswith("#")]
        super().__init__("\n".join(lines), memory)
        self.planes, self.program, self.programs = planes, program, programs
        self.copied = 0

    def run_program(self, args: Sequence[Any]) -> None:
        """Run one of the programs that take turns at the blocks of a grid."""
        self.values = {name: np.asarray(arg) for (name, _), arg in zip(self.params, args, strict=True)} | self.planes
        groups: list[tuple[Line, dict[str, Any]]] = []
        for line in self.body:
            if line.text.startswith("ttg.warp_specialize"):
                captured = self.named(line.text.partition(") attributes")[0])
            elif line.text.startswith(("default", "partition")):
                names = re.findall(r"(%\w+): ", line.text)
                own = dict(zip(names, captured, strict=True)) if names else dict(self.values)  # pyright: ignore
                groups.append((line, own))
            else:
                self.operation(line)
        with ThreadPoolExecutor(len(groups)) as pool:
            for done in [pool.submit(self._group, *each) for each in groups]:
                done.result()

    def _group(self, line: Line, values: dict[str, Any]) -> None:
        group = Roles.__new__(Roles)
        group.__dict__.update(self.__dict__)
        group.values = values
        with np.errstate(all="ignore"):
            group.region(line.regions[0], [])

    def _tt_get_program_id(self, line: Line, text: str) -> list[Any]:
        return [np.asarray(self.program, np.int32)]

    def _tt_get_num_programs(self, line: Line, text: str) -> list[Any]:
        return [np.asarray(self.programs, np.int32)]

    def _ttg_local_alloc(self, line: Line, text: str) -> list[Any]:
        found = re.search(r"memdesc<((?:\d+x)+)(\w+),", text)
        assert found is not None
        shape = tuple(map(int, found[1][:-1].split("x")))
        if found[2] == "i64":
            return [[Barrier() for _ in range(shape[0])]]
        return [np.full(shape, np.nan, numpy_type(found[2]))]

    def _ttg_memdesc_index(self, line: Line, text: str) -> list[Any]:
        ring, place = self.named(text.partition(" : ")[0])
        return [ring[int(place)]]

    def _ttg_memdesc_trans(self, line: Line, text: str) -> list[Any]:
        return [self.named(text.partition(" {")[0])[0].T]

    def _tt_elementwise_inline_asm(self, line: Line, text: str) -> list[Any]:
        assert '"ex2.approx.ftz.f32 $0, $1;"' in text
        power = np.exp2(self.named(text.partition("} ")[2])[0])
        return [np.where(np.abs(power) < np.finfo(np.float32).tiny, np.float32(0), power)]

    def _same(self, line: Line, text: str) -> list[Any]:
        return self.named(text.partition(" : ")[0])

    _ttg_convert_layout = _ttng_warp_group_dot_wait = _same

    def _nothing(self, line: Line, text: str) -> list[Any]:
        return []

    _ttng_fence_async_shared = _ttg_warp_yield = _ttg_warp_return = _nothing

    def _ttng_init_barrier(self, line: Line, text: str) -> list[Any]:
        (barrier,) = self.named(text.partition(" : ")[0])
        barrier.count = int(text.partition(", ")[2].partition(" ")[0])
        return []

    def _ttng_wait_barrier(self, line: Line, text: str) -> list[Any]:
        barrier, phase, is_asked = self.named(text.partition(" : ")[0])
        if is_asked:
            barrier.wait(int(phase))
        return []

    def _ttng_arrive_barrier(self, line: Line, text: str) -> list[Any]:
        barrier, is_asked = self.named(text.partition(" : ")[0])
        if is_asked:
            barrier.arrive(int(text.split(", ")[1]))
        return []

    def _ttng_barrier_expect(self, line: Line, text: str) -> list[Any]:
        self.copied = int(text.split(", ")[1])
        return []

    def _ttng_async_tma_copy_global_to_local(self, line: Line, text: str) -> list[Any]:
        plane, row, column, place, barrier, _ = self.named(text.partition(" : ")[0])
        assert place.nbytes == self.copied, "a barrier expects other bytes"
        place[...] = np.nan
        found = np.zeros(place.shape, place.dtype)
        (rows, columns), (height, width) = plane.shape, place.shape
        first, left = int(row), int(column)
        there = plane[max(first, 0) : min(first + height, rows), max(left, 0) : min(left + width, columns)]
        found[max(-first, 0) : max(-first, 0) + there.shape[0], max(-left, 0) : max(-left, 0) + there.shape[1]] = there

        def copy() -> None:
            place[...] = found

        barrier.copies.append(copy)
        barrier.arrive(1)
        return []

    def _ttng_warp_group_dot(self, line: Line, text: str) -> list[Any]:
        a, b, start, adds = self.named(text.partition(" {")[0])
        product = a.astype(np.float32) @ b.astype(np.float32)
        return [product + start if adds else product]


def run_with_roles(
    text: str, tensors: Sequence[Any], blocks: int, programs: int, apart: Sequence[int] = ()
) -> list[Any]:
    """Return what a kernel with roles leaves in tensors of static extents, run by so many programs.

    Its descriptors are of the first tensors, in order, all planes of them, which are so many rows apart; it notes no
    error.
    """
    memory, words = Memory(), list[Any]()
    for tensor in tensors:
        words += [memory.add(tensor), *(stride // tensor.itemsize for stride in tensor.strides[:-1])]
    words += apart
    described = (tensor.reshape(-1, tensor.shape[-1]) for tensor in tensors)
    planes = dict(zip(re.findall(r"(%map\d+):", text.partition(" attributes {noinline")[0]), described, strict=False))
    errors = np.zeros(8, np.uint8)
    for number in range(programs):
        machine = Roles(text, memory, planes, number, programs)
        rest = machine.params[len(words) :]
        machine.run_program([*words, *(blocks if type_ == "i64" else memory.add(errors) for _, type_ in rest)])
    noted = [int(data.view(np.int64)[0]) for _, data in memory.held[len(tensors) :]]
    assert not any(noted), f"a kernel notes errors: {noted}"
    return [memory.left(place, tensor) for place, tensor in enumerate(tensors)]
