"""Schedules: how the blocks of a kernel are run, chosen by rules from what is in it.

A schedule is what the text of a kernel leaves open: how many warps a block has, for how many turns ahead loops load,
and whether some warps load while others multiply. The rules were found by measuring on an H200, `bench/RESULTS.md`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.records import record
from tilewright.settings import PREFIX

PER_THREAD = 32
"""Elements of its largest tile that a thread has, where that leaves a block of 4 to 32 warps."""
OF_A_WARP = 32 * PER_THREAD
"""Pairs of indices, at most, that one warp compares where it would have the tile of indices alone."""
FEW, MOST = 8, 512
"""Elements that a thread has where it does little more than load and store, or folds a row once that is loaded again;
threads that are taken for that at most. Many that do little keep memory busier, until they wait for each other."""
TINY = 128
"""Elements of a tile that one warp has alone."""
OF_PRODUCTS, HEAVY = 128, 40
"""Elements of products, or of a factor, that a thread has; with more it runs out of registers. Half as many where it
does so much to each of them: the time that compiling takes grows faster than what a thread does."""
DEEP, DEEPEST, SMALL = 192 * 1024, 8, 128 * 64
"""Bytes that loops load ahead for products of so few elements that memory sets their pace, and for how many turns."""
WIDEST = 16
"""Warps of a block, at most, which has more than rules say because its threads would spill registers."""
BAND = 16
"""Rows of a product's blocks that neighbours are in."""
SPECIALIZED = "} {tt.warp_specialize}"
"""The end of a loop that some warps load blocks for while others multiply them."""
AHEAD = "} {tt.num_stages = 3 : i32}"
"""The end of a loop that loads two turns ahead, where Triton can do that."""
SPLIT_ROWS = 128
"""Rows of products that two groups of warps share, with a third that loads for them."""


@record
class Schedule:
    """How a kernel's blocks are run."""

    warps: int
    stages: int
    is_specialized: bool = False
    """Whether some warps load blocks by descriptors while others multiply."""
    has_roles: bool = False
    """Whether the kernel's text says itself what its warps do; its blocks take turns at those of the grid."""


def plain(
    largest: int,
    products: Sequence[tuple[int, int]],
    *,
    spread: int = 0,
    work: int = 0,
    most: int = 8,
) -> Schedule:
    """Return the schedule of a kernel with a largest tile of so many elements and products of such shapes.

    `spread` is how many elements are better had by many threads, a FEW each. `work` is how many operations on floats
    there are in its text, and `most` the warps that products have at most.
    """
    if not products:
        threads = max(largest // PER_THREAD, min(spread // FEW, MOST))
        return Schedule(_warps(threads, 32, 4 if largest > TINY else 1), 3)
    held = max(largest, sum(rows * columns for rows, columns in products))
    return Schedule(_warps(held // (OF_PRODUCTS if work < HEAVY else OF_PRODUCTS // 2), most), 3)


def of_part(count: int, each: int) -> Schedule:
    """Return the schedule of a block that goes through a row by parts of so many elements, so many a thread.

    It is of one warp, if that has all: the fewer warps there are, the less they wait for each other.
    """
    return Schedule(_warps(count // each, 32, 1), 3)


def described(largest: int, products: Sequence[tuple[int, int]], loaded: int, work: int = 0) -> tuple[Schedule, ...]:
    """Return the schedules of a kernel that loads so many bytes a turn by descriptors, the best first.

    What Triton cannot follow, or does not fit a block, is passed over.
    """
    usual = plain(largest, products, work=work)
    if sum(rows * columns for rows, columns in products) <= SMALL:
        return Schedule(usual.warps, min(max(DEEP // loaded, usual.stages), DEEPEST)), usual
    if len(products) > 1 and all(rows == SPLIT_ROWS for rows, _ in products):
        return Schedule(4, 2, True), usual
    return (usual,)


def wanted(text: str, usual: Schedule) -> Schedule:
    """Return a schedule with what a text says of it, as in `warps=8 stages=4 specialized=0`; ValueError for another.

    Warps are only specialized where rules would have it, too.
    """
    found: dict[str, int] = {}
    for word in text.split():
        name, _, value = word.partition("=")
        if name not in _WORDS or not value.isdecimal() or int(value) not in _WORDS[name]:
            known = ", ".join(f"{each} of {', '.join(map(str, values))}" for each, values in _WORDS.items())
            raise ValueError(f"{PREFIX}CUDA_SCHEDULE has {word!r}, and takes {known}")
        found[name] = int(value)
    is_specialized = usual.is_specialized and found.get("specialized", 1) == 1
    return Schedule(found.get("warps", usual.warps), found.get("stages", usual.stages), is_specialized)


def wants_roles(text: str) -> bool:
    """Return whether kernels may have roles: a text can say that they have not, or how Triton is to schedule them."""
    return not text.split() or "roles=1" in text.split()


_WORDS = {"warps": (1, 2, 4, 8, 16, 32), "stages": tuple(range(1, 9)), "specialized": (0, 1), "roles": (0, 1)}


def widest(text: str) -> int:
    """Return how many warps a block may have that would spill registers with fewer; 0 where a text says how many."""
    return 0 if "warps=" in text else WIDEST


def smaller(schedule: Schedule) -> tuple[Schedule, ...]:
    """Return a schedule, and those that need less and less of a block's memory."""
    return tuple(replace(schedule, stages=stages) for stages in range(schedule.stages, 0, -1))


def _warps(threads: int, most: int, least: int = 4) -> int:
    return min(max(1 << (max(threads, 1) // 32).bit_length() >> 1, least), most)
