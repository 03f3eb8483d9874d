"""Cores: what of a kernel runs on the cube and what on the vector cores, and where they meet.

A function of a kind, or a section, belongs to one core; everything else runs on both. They meet in queues: those of
pipes hold tiles, those of events and of slots in global memory hold nothing but that something has happened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from tilewright.dtypes import DataType
from tilewright.errors import UnsupportedFeatureError
from tilewright.ops.pipes import MOST_PIPES
from tilewright.pto.errors import PtoOperandError, PtoTypeMismatchError
from tilewright.pto.module import Func, Module, Op, Region, SymbolRef, Value, word_of
from tilewright.pto.op import number_of
from tilewright.pto.types import Space, TileBuf
from tilewright.records import record

CUBE, VECTOR = "cube", "vector"
SECTIONS = {
    "pto.section.cube": CUBE, "pto.section.vector": VECTOR, "pto.vecscope": VECTOR, "pto.strict_vecscope": VECTOR,
}  # fmt: skip
"""The core that runs a region, by the op that it belongs to."""
_EVENTS = ("pto.sync.set", "pto.sync.wait")
_LANES = 2
FEWEST_SLOTS = 4
"""How many entries every pipe holds."""
EVENTS = 16
"""The events of one vector core; the cube counts those of the second from there on."""

PIPED: Mapping[str, tuple[str, str]] = {
    f"pto.{name.format(own=own, other=other)}": (kind, towards.format(own=own, other=other))
    for kind, own, other in ((CUBE, "aic", "aiv"), (VECTOR, "aiv", "aic"))
    for name, towards in (
        ("{own}_initialize_pipe", ""), ("talloc_to_{other}", "{other}"), ("tpush_to_{other}", "{other}"),
        ("tpop_from_{other}", "{own}"), ("tfree_from_{other}", "{own}"),
    )
}  # fmt: skip
"""The core that each op on pipes is for, and where the pipe leads that it is about."""
PUSHES, POPS = (
    {name: towards for name, (_, towards) in PIPED.items() if name.startswith(f"pto.{word}")}
    for word in ("tpush", "tpop")
)

MADE = ("pto.initialize_l2g2l_pipe", "pto.initialize_l2l_pipe")
"""The ops whose result is a pipe: the first of one core leads to the first of the other."""
_HANDED = {"pto.tpush": False, "pto.tpop": True}
_MEETS = frozenset((*PUSHES, *POPS, *_HANDED, *_EVENTS))
OWN, OTHER = {CUBE: "aic", VECTOR: "aiv"}, {CUBE: "aiv", VECTOR: "aic"}
"""Where pipes lead that a core takes from, and those that it pushes to."""


def number(op: Op, name: str) -> int:
    """Return an attribute that is a whole number, zero where there is none."""
    return number_of(op, name) or 0


def refuse_larger(op: Op, id: Hashable, nbytes: int, slot: int) -> None:
    """Refuse an entry of more bytes than a slot of its pipe has."""
    if nbytes > slot:
        named = f"pipe {id}" if isinstance(id, int) else "its pipe"
        message = f"an entry of `{op.name}` has {nbytes} bytes, and a slot of {named} {slot}"
        help = f"write slot_size = {nbytes} where it is initialized, on both cores"
        raise PtoOperandError(message, spans=(op.span,), help=help)


@record
class Entry:
    """What a queue of tiles holds: one vector core's part of it, and along which axis there are two."""

    dtype: DataType
    shape: tuple[int, int]
    axis: int | None

    @property
    def nbytes(self) -> int:
        """The bytes of one vector core's part."""
        return self.shape[0] * self.shape[1] * self.dtype.get_byte()

    @property
    def whole(self) -> tuple[int, int]:
        """Both parts together."""
        rows, cols = self.shape
        return (2 * rows, cols) if self.axis == 0 else (rows, 2 * cols) if self.axis == 1 else (rows, cols)


@dataclass
class Meeting:
    """Where the cores of a kernel meet."""

    kinds: Mapping[Func, str]
    lanes: int
    entries: Mapping[tuple[str, Hashable], Entry]
    bounded: frozenset[tuple[str, Hashable]]
    """The pipes of tiles in which there may be more than they have slots for."""
    queues: dict[tuple[str, Hashable], int] = field(default_factory=dict[tuple[str, Hashable], int])
    shared: set[Space] = field(default_factory=set[Space])
    """The memories that another core than their own writes or reads."""

    def queue(self, towards: str, key: Hashable) -> int:
        """Return the number of a queue."""
        taken = [number for (way, _), number in self.queues.items() if way == towards]
        found = self.queues.setdefault((towards, key), len(taken))
        if found >= MOST_PIPES:
            message = f"this kernel needs more than the {MOST_PIPES} queues that lead to one kind of core here"
            raise UnsupportedFeatureError(message, help="use fewer pipes and events")
        return found


@record
class Core:
    """The core that a kernel is lowered for, of those that run it together."""

    kind: str
    meeting: Meeting

    def skips(self, op: Op, callee: Func | None) -> bool:
        """Return whether an op is for the other core."""
        kind = SECTIONS.get(op.name) if callee is None else self.meeting.kinds.get(callee)
        return kind is not None and kind != self.kind

    def owns(self, space: Space) -> bool:
        """Return whether a memory is this core's own."""
        return (space is Space.VEC) == (self.kind == VECTOR)


class Inside(Protocol):
    """Who lowers a kernel, for one core where several run it."""

    core: Core | None
    claimed: int
    """How many functions and sections of that core surround what is lowered."""


@contextmanager
def within(m: Inside, op: Op, callee: Func | None = None) -> Generator[Func | None]:
    """Go into a section, or the function that an op calls; yield the function, None where it is another core's."""
    if m.core is not None and m.core.skips(op, callee):
        yield None
        return
    is_own = callee is None or (m.core is not None and callee in m.core.meeting.kinds)
    m.claimed += is_own
    yield callee
    m.claimed -= is_own


def kinds_said(module: Module, outer: str = "") -> Iterator[tuple[Func, str]]:
    """Yield every function with the core that it, or the modules around it, say it is for; empty where nobody does."""
    said = word_of(module.attributes.get("pto.kernel_kind", outer))
    for item in module.items:
        if isinstance(item, Module):
            yield from kinds_said(item, said)
        else:
            kind = word_of(item.attributes.get("pto.kernel_kind", said))
            yield item, kind if kind in (CUBE, VECTOR) else ""


def kinds_of(module: Module) -> dict[Func, str]:
    """Return the functions that belong to one core: as is said, or by the pipe ops they have."""
    found = {func: kind or _kind_by_ops(func) for func, kind in kinds_said(module)}
    return {func: kind for func, kind in found.items() if kind}


def _kind_by_ops(func: Func) -> str:
    ops = func.body.ops if func.body is not None else ()
    walked = (inner for op in ops if op.name not in SECTIONS for inner in op.walk())
    kinds = {PIPED[op.name][0] for op in walked if op.name in PIPED}
    return kinds.pop() if len(kinds) == 1 else ""


class Around(Protocol):
    """What is known of the functions around one."""

    @property
    def scopes(self) -> dict[Func, dict[str, Func]]:
        """What each can call."""
        ...

    @property
    def kinds(self) -> Mapping[Func, str]:
        """The core of each that is for one alone."""
        ...

    @property
    def named(self) -> Mapping[str, Func]:
        """The first of each name that has a body."""
        ...


def meeting_of(around: Around, func: Func) -> Meeting | None:
    """Return where the cores that run a function meet, None where one core runs all of it."""
    kinds = around.kinds
    if func in kinds:
        return None
    placed = list(_placed(func, around))
    names = {op.name for op, _ in placed}
    if {CUBE, VECTOR} - {kind for _, kind in placed} or names.isdisjoint(_MEETS):
        return None
    lanes, uses = _LANES if _uses_both(op for op, _ in placed) else 1, _uses(placed)
    entries = _entries(uses, lanes)
    pushed = Counter(use.key for use in uses if not use.is_taken)
    bounded = (key for key, count in pushed.items() if count > FEWEST_SLOTS or _is_repeated(placed))
    return Meeting(
        kinds, lanes, entries, frozenset(key for key in bounded if _is_freed_by_all(key, entries[key], lanes))
    )


def _is_repeated(placed: Iterable[tuple[Op, str]]) -> bool:
    """Return whether an op may run more than once."""
    callees = Counter((kind, str(op.attributes.get("callee"))) for op, kind in placed if "callee" in op.attributes)
    return any(op.name in ("scf.for", "scf.while") for op, _ in placed) or max(callees.values(), default=0) > 1


def _is_freed_by_all(key: tuple[str, Hashable], entry: Entry, lanes: int) -> bool:
    """Return whether every core that a pipe leads to takes what is pushed: of a whole tile, one vector core may."""
    return key[0] != "aiv" or lanes == 1 or entry.axis is not None


def _placed(func: Func, around: Around) -> Iterator[tuple[Op, str]]:
    """Yield every op that a function leads to, once for each core that runs it there; empty where any may."""
    left, seen = [(func, "")], set[tuple[Func, str]]()
    while left:
        now = left.pop()
        if now in seen or now[0].body is None:
            continue
        seen.add(now)
        for op, kind in _inside(now[0].body, around.kinds.get(*now)):
            yield op, kind
            callee = op.attributes.get("callee")
            if isinstance(callee, SymbolRef):
                near = around.scopes[now[0]].get(callee.name)
                found = near if near is not None and near.body else around.named.get(callee.name)
                left += [(found, kind)] if found is not None else []


def _inside(region: Region, kind: str) -> Iterator[tuple[Op, str]]:
    for op in region.ops:
        yield op, kind
        for inner in op.regions:
            yield from _inside(inner, SECTIONS.get(op.name, kind))


def _uses_both(ops: Iterable[Op]) -> bool:
    """Return whether the second vector core has something to do: halves, its own events, or its number."""
    for op in ops:
        said = f"{op.attributes.get('written', '')} {word_of(op.attributes.get('accToVecMode', ''))}"
        if (
            number(op, "split")
            or any(word in said for word in ("split_", "_vec1"))
            or op.name.startswith("pto.get_subblock")
        ):
            return True
        if op.name in _EVENTS and number(op, "event") >= EVENTS:
            return True
    return False


@record
class Use:
    """A tile that is pushed to a pipe, or taken from it."""

    op: Op
    key: tuple[str, Hashable]
    """Where the pipe leads, and which one it is."""
    type: TileBuf
    is_taken: bool


def _uses(placed: Iterable[tuple[Op, str]]) -> list[Use]:
    """Return what pipes of tiles are used for, pushes first."""
    found: list[Use] = []
    made: dict[Value, Hashable] = {}
    counts: Counter[str] = Counter()
    for op, kind in placed:
        if op.name in MADE:
            made[op.results[0]] = ("made", counts[kind])
            counts[kind] += 1
        if op.name in _HANDED and kind and op.operands[-1] in made and isinstance(op.operands[0].type, TileBuf):
            key = (OWN if _HANDED[op.name] else OTHER)[kind], made[op.operands[-1]]
            found.append(Use(op, key, op.operands[0].type, _HANDED[op.name]))
        if op.name not in PUSHES and op.name not in POPS:
            continue
        is_taken = op.name in POPS
        type_ = (op.results if is_taken else op.operands)[0].type
        if isinstance(type_, TileBuf):
            found.append(Use(op, (PIPED[op.name][1], number(op, "id")), type_, is_taken))
    return sorted(found, key=lambda use: use.is_taken)


def _entries(uses: Iterable[Use], lanes: int) -> dict[tuple[str, Hashable], Entry]:
    """Return what queues of tiles hold: as much as is pushed or taken, as what it is taken."""
    found: dict[tuple[str, Hashable], Entry] = {}
    taken: dict[tuple[str, Hashable], DataType] = {}
    for use in uses:
        type_, split, before, dtype = use.type, number(use.op, "split"), found.get(use.key), use.type.element.dtype
        axis = split - 1 if split and lanes == _LANES else None
        is_part = use.is_taken == (use.key[0] == "aiv")
        shape = (type_.rows, type_.cols) if is_part else _halved((type_.rows, type_.cols), axis)
        if before is not None and before.axis != axis:
            ways = {None: "not at all", 0: "by rows", 1: "by columns"}
            message = f"pipe {use.key[1]} is split {ways[axis]} here, and {ways[before.axis]} elsewhere"
            raise PtoTypeMismatchError(message, spans=[use.op.span], help="use a pipe for each")
        if before is not None and axis is not None and before.shape != shape:
            sizes = " and ".join("x".join(map(str, each)) for each in (before.shape, shape))
            message = f"pipe {use.key[1]} is split, and its halves are tiles of two sizes, {sizes}"
            raise PtoTypeMismatchError(
                message, spans=[use.op.span], help="push and take tiles of one size, or use a pipe for each"
            )
        if use.is_taken and taken.setdefault(use.key, dtype) != dtype:
            message = f"pipe {use.key[1]} gives {taken[use.key]} and {dtype}"
            raise PtoTypeMismatchError(message, spans=[use.op.span], help="use a pipe for each")
        rows, cols = shape if before is None else map(max, zip(before.shape, shape, strict=True))
        found[use.key] = Entry(dtype, (rows, cols), axis)
    return found


def _halved(shape: tuple[int, int], axis: int | None) -> tuple[int, int]:
    rows, cols = shape
    return (-(-rows // 2), cols) if axis == 0 else (rows, -(-cols // 2)) if axis == 1 else shape
