"""Pipes: what the two sides of a group hand each other, in queues between the cube and the vector cores.

Each side is a section of the entry. What a vector core takes is copied, and its slot is free at once; the cube's are at
the end of a turn. A pipe has eight slots, or four each way, and who pushes waits for one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from tilewright.core.build import arguments
from tilewright.core.enums import FunctionType, MemorySpace
from tilewright.core.expr import Call, Const
from tilewright.core.program import Function, Program
from tilewright.core.stmt import BreakStmt, ContinueStmt, ForStmt, ReturnStmt, SeqStmts, Stmt
from tilewright.core.types import Shape, TileType, is_fully_valid
from tilewright.core.visitor import bodies, evaluated, expressions, statements
from tilewright.dtypes import INT32
from tilewright.ops.pipes import PIPES, axis_of, number_of
from tilewright.passes.groups import Sides
from tilewright.programs.pto_text.values import NoPtoError, Number, Tile, room_of
from tilewright.programs.pto_text.words import Given, Pair, refuse, writes
from tilewright.programs.pto_text.writer import CUBE, Writer

VECTOR = "vector"
KINDS = {FunctionType.AIC: CUBE, FunctionType.AIV: VECTOR}
"""Which core runs the functions of a group."""
_TOWARDS = {"tpush_to_aiv": "aiv", "tpop_from_aic": "aiv", "tpush_to_aic": "aic", "tpop_from_aiv": "aic"}
_SLOTS = {1: 8, 2: 8, 3: 4}
"""How many slots a pipe has, by where it leads."""
_MASKS = {"aiv": 1, "aic": 2}


@dataclass
class Pipe:
    """A queue between the sides of a group."""

    mask: int = 0
    nbytes: int = 0
    """The bytes of its largest entry."""
    parts: Mapping[str, set[Shape]] = field(default_factory=lambda: {"aiv": set(), "aic": set()})
    """How much is valid of what is pushed each way, where its type says it and that is not all."""


def pipes_of(program: Program, sides: Sides) -> dict[int, Pipe]:
    """Return the pipes of a group, with all that its sides hand over."""
    found: dict[int, Pipe] = {}
    names = dict.fromkeys(side.call.op.name for side in sides.sides)
    for call in (call for name in names for call in _calls_of(program[name])):
        id, name = arguments(call).get("id"), call.op.spec.name
        pipe, towards = found.setdefault(number_of(id if isinstance(id, int) else None), Pipe()), _TOWARDS[name]
        type_ = call.args[0].type if name.startswith("tpush") else call.type
        assert isinstance(type_, TileType)
        rows, cols = room_of(type_.dtype, (type_.shape[0], type_.shape[1]), MemorySpace.Mat)
        pipe.mask |= _MASKS[towards]
        pipe.nbytes = max(pipe.nbytes, rows * cols * type_.dtype.get_byte())
        if name.startswith("tpush") and None not in type_.valid and not is_fully_valid(type_):
            pipe.parts[towards].add(type_.valid)
    return found


def _calls_of(function: Function) -> list[Call]:
    """Return the ops on pipes of a function."""
    every = (each for stmt in statements(function.body) for each in expressions(stmt))
    return [each for each in every if isinstance(each, Call) and each.op.spec.name in PIPES]


def is_balanced(program: Program, sides: Sides) -> bool:
    """Return whether all that one side of a group pushes is certainly taken by the other."""
    sections = [program[name].body for name in dict.fromkeys(side.call.op.name for side in sides.sides)]
    counts = [None if any(map(_is_left, body)) else _handed(body) for body in sections]
    if None in counts:
        return False
    total = Counter[tuple[str, int]]()
    for count in counts:
        total.update(count or {})
    return not any(total.values())


def _is_left(stmt: Stmt) -> bool:
    """Return whether something leaves a loop or the function from inside of a statement."""
    leaving = BreakStmt | ContinueStmt | ReturnStmt
    return any(isinstance(each, leaving) for body in bodies(stmt) for each in statements(body))


def _handed(body: SeqStmts) -> Counter[tuple[str, int]] | None:
    """Return how many tiles more statements push than take, by way and pipe; None where only the run knows."""
    total = Counter[tuple[str, int]]()
    for stmt in body:
        inner = [_handed(each) for each in bodies(stmt)]
        if isinstance(stmt, ForStmt) and any(inner):
            turns = _turns(stmt)
            inner = [None if turns is None or each is None else _times(each, turns) for each in inner]
        elif any(inner):
            return None
        for each in (*inner, _own(stmt)):
            if each is None:
                return None
            total.update(each)
    return total


def _own(stmt: Stmt) -> Counter[tuple[str, int]]:
    """Return what a statement itself hands over or takes."""
    call = evaluated(stmt)
    if not isinstance(call, Call) or call.op.spec.name not in PIPES:
        return Counter()
    id, name = arguments(call).get("id"), call.op.spec.name
    return Counter({(_TOWARDS[name], number_of(id if isinstance(id, int) else None)): 1 if "push" in name else -1})


def _times(counts: Counter[tuple[str, int]], turns: int) -> Counter[tuple[str, int]]:
    return Counter({key: count * turns for key, count in counts.items()})


def _turns(stmt: ForStmt) -> int | None:
    ends = [each.value if isinstance(each, Const) else None for each in (stmt.start, stmt.stop, stmt.step)]
    start, stop, step = (each if isinstance(each, int) else None for each in ends)
    return None if start is None or stop is None or not step else len(range(start, stop, step))


@contextmanager
def section(w: Writer, kind: str, pipes: Mapping[int, Pipe], entry: str) -> Generator[None]:
    """Let lines stand in the part of a function that one core runs, which begins with its ends of all pipes."""
    w.core = kind
    with w.block(f"pto.section.{kind}"):
        for id, pipe in pipes.items():
            _initialize(w, kind, id, pipe, entry)
        yield
    w.core = ""


def _initialize(w: Writer, kind: str, id: int, pipe: Pipe, entry: str) -> None:
    size = pipe.nbytes * _SLOTS[pipe.mask]
    buffers: dict[str, str] = {}
    for name, mask, consumer, location in (("c2v", 1, VECTOR, "vec"), ("v2c", 2, CUBE, "mat")):
        if not pipe.mask & mask:
            continue
        buffers[name] = w.name(f"{name}_{id}")
        if kind == consumer:
            where = f"location = #pto.address_space<{location}>, auto = true"
            words = f'reserve_buffer {{name = "{name}_{id}", size = {size}, {where}}}'
        else:
            words = f'import_reserved_buffer {{name = "{name}_{id}", peer_func = @{entry}}}'
        w.line(f"{buffers[name]} = pto.{words} -> i32")
    (first, *_), (*_, last) = buffers.values(), buffers.values()
    shared = f"c2v_consumer_buf = {first} : i32, v2c_consumer_buf = {last} : i32"
    side = "aic" if kind == CUBE else "aiv"
    w.line(f"pto.{side}_initialize_pipe {{id = {id}, dir_mask = {pipe.mask}, slot_size = {pipe.nbytes}}} ({shared})")


def _split(w: Writer, call: Call, given: Given) -> int:
    """Return how an entry is cut, as PTO counts it."""
    refuse(call, given.get("lane") is not None, "to or from one lane alone")
    axis = axis_of(given["split"])
    is_late = call.op.spec.name.endswith(("to_aic", "from_aiv"))
    refuse(
        call, w.lanes > 1 and axis is None and is_late, "of whole tiles, by two lanes", "say how they share it: split=1"
    )
    return 0 if axis is None or w.lanes == 1 else axis + 1


@writes("system.tpush_to_aiv", "system.tpush_to_aic")
def _push(w: Writer, call: Call, given: Given) -> None:
    refuse(call, not w.core, "outside of a group, where nobody takes it")
    tile: Tile = given["tile"]
    id, split = number_of(given["id"]), _split(w, call, given)
    wanted = _valid(w, call, w.pipes[id], tile.shape, split)
    is_as_taken = [extent.known for extent in tile.valid] == [extent.known for extent in wanted]
    refuse(call, not is_as_taken, "of a tile that is valid in part, as only the run knows", _WHOLE)
    w.line(f"pto.{call.op.spec.name}({tile.name} : {tile.type}) {{id = {id}, split = {split}}}")


_WHOLE = "PTO's pipes do not say how much is valid: push whole tiles, `pl.fillpad` makes them so"


@writes("system.tpop_from_aic", "system.tpop_from_aiv")
def _pop(w: Writer, call: Call, given: Given) -> Tile:
    refuse(call, not w.core, "outside of a group, where nobody pushes it")
    id, split, type_, name = number_of(given["id"]), _split(w, call, given), call.type, call.op.spec.name
    assert isinstance(type_, TileType)
    shape, memory = (type_.shape[0], type_.shape[1]), MemorySpace.Mat if w.core == CUBE else MemorySpace.Vec
    valid = _valid(w, call, w.pipes[id], shape, split)
    taken = Tile(w.name("taken"), type_.dtype, shape, valid, memory, room=room_of(type_.dtype, shape, memory))
    words = f"{{id = {id}, split = {split}}}"
    w.line(f"{taken.name} = pto.{name} {words} -> {taken.type}")
    free = f"pto.{name.replace('tpop', 'tfree')} {words}"
    if w.core == CUBE:
        w.ending.append(free)  # nothing leads from where it lies to another place there
        return taken
    kept = w.op("tmov", [taken], w.tile("kept", type_.dtype, shape, valid, memory))
    w.line(free)
    return kept


def _valid(w: Writer, call: Call, pipe: Pipe, shape: tuple[int, int], split: int) -> Pair:
    """Return how much is valid of all that goes one way through a pipe: who takes it has to know."""
    parts = pipe.parts[_TOWARDS[call.op.spec.name]]
    refuse(
        call, len(parts) > 1 or (split > 0 and len(parts) > 0), "of which a part is valid, now more, now less", _WHOLE
    )
    rows, cols = next(iter(parts), shape)
    assert isinstance(rows, int) and isinstance(cols, int)
    return w.constant(rows), w.constant(cols)


@writes("system.tfree_to_aic", "system.tfree_to_aiv", "system.aic_initialize_pipe", "system.aiv_initialize_pipe")
def _done(w: Writer, call: Call, given: Given) -> None:
    """Write nothing: what is taken is freed at once, and pipes are made where a side begins."""


@writes("system.reserve_buffer", "system.import_peer_buffer")
def _buffer(w: Writer, call: Call, given: Given) -> Number:
    """Return where a buffer lies, which is at zero unless the program says more; pipes reserve their own."""
    return w.constant(max(given.get("base") or 0, 0), INT32)


def refuse_around(w: Writer) -> None:
    """Raise where something is done beside the sides of a group: both cores would do it, whatever the other does."""
    end = ""
    for number, line in enumerate(w.lines):
        start = line.lstrip()
        if start.startswith("pto.section."):
            end = f"{line[: len(line) - len(start)]}}}"
        elif line == end:
            end = ""
        elif not end and start.startswith("pto."):
            message, help = "both cores of a group would do what stands beside it", "let the entry run the group alone"
            raise NoPtoError(message, spans=(w.place(number),), help=help)
    if w.lanes > 1 and not _TWO.search("\n".join(w.lines)):
        raise NoPtoError("both lanes of this group do the same", help="leave out `dual_aiv_dispatch`")


_TWO = re.compile(r"split = [12]|pto\.get_subblock_idx")
"""What makes two vector cores of one."""
