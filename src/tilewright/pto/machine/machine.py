"""The machine: a PTO function walked op by op, each lowered as its declaration says."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import repeat
from typing import TypeAlias, TypeVar

from tilewright.core.expr import Expr, Var
from tilewright.core.types import TileType
from tilewright.errors import KernelError, UnsupportedFeatureError
from tilewright.forks import computed_once
from tilewright.ops.builder import Builder
from tilewright.pto.errors import PtoNestingError, PtoOperandError
from tilewright.pto.machine.cores import VECTOR, Core, within
from tilewright.pto.machine.memory import Knowledge, LocalMemory
from tilewright.pto.machine.places import Slot
from tilewright.pto.machine.values import Lowered, Number, Pointer, Predicate, Tile, Token, Vector, View
from tilewright.pto.module import Func, Op, Region, Value
from tilewright.pto.op import Declaration
from tilewright.pto.types import Mask, Scalar, TensorView, Type, VReg
from tilewright.records import record

V = TypeVar("V", Number, Pointer, View, Tile, Vector, Predicate)
MOST_OPS = 1 << 16
"""How many ops a function may have, those of the functions it calls included, before it calls another."""

MOST_DEEP = 64
"""How many calls may be under way at once, and how many regions around one."""


@record
class Blocks:
    """Which block of the grid runs, and of how many."""

    index: Var
    count: Var


Place: TypeAlias = tuple[Expr, Expr, Expr]
"""Along x, y and z."""


@record
class Threads:
    """How many work items a launch has, where the one that runs is among them, and its number."""

    extents: Place
    place: Place
    number: Expr


@dataclass
class Simt:
    """What runs inside a launch."""

    threads: Threads | None = None
    """The work item that runs."""
    crew: object = None
    """The work items that run a function together, where they meet in it."""
    extents: Place | None = None
    """How many work items the next call of an entry has, where an op has said it."""


def _hint(op: Op) -> str:
    """Return a name for what an op makes: its result's, or that of the tile it writes."""
    named = op.results or op.outs
    name = named[0].name if named else ""
    return name if name.isidentifier() else f"v{name}" if name.isalnum() else "t"


def _value(result: Lowered | Expr, type_: Type | None) -> Lowered:
    """Return a result as what a value of its type stands for."""
    if not isinstance(result, Expr):
        return result
    if isinstance(type_, VReg):
        return Vector(result, type_.element)
    return Predicate(result, type_.bits) if isinstance(type_, Mask) else Number(result)


BINDING = ("pto.talloc", "pto.tpop")
"""The ops that say which slot a declared one is."""


class Machine:
    """A function being lowered: the statements so far, its memory, and what its values stand for."""

    def __init__(
        self,
        ops: Mapping[str, Declaration],
        funcs: dict[Func, dict[str, Func]],
        arch: str,
        blocks: Blocks,
        knowledge: Knowledge,
        core: Core | None = None,
    ) -> None:
        self.b = Builder()
        self.core = core
        """The core that this is lowered for, where several run the function together."""
        self.claimed = 0
        """How many functions and sections of that core surround the op being lowered."""
        self.ops = ops
        self.funcs = funcs
        """Every function of the module, with those it can call."""
        self.arch = arch
        self.blocks = blocks
        self.knowledge = knowledge
        self.memory = LocalMemory(self.b, arch, knowledge, core)
        if core is not None and core.kind == VECTOR and core.meeting.lanes > 1:
            self.memory.number = lane = self.b.held(self.b.op("tile.get_subblock_idx"), "lane")
            lane.bounds = (0, core.meeting.lanes - 1)
        self.values: dict[Value, Lowered] = {}
        self.written: set[Slot] = set()
        """The tiles that certainly hold a value by now."""
        self.calls: list[Func] = []
        self.walked = 0
        """How many ops have been lowered."""
        self.sites: tuple[Op, ...] = ()
        """The calls that lead to the function being walked."""
        self.made: dict[Hashable, Expr] = {}
        self.settings: dict[str, tuple[Expr, ...]] = {}
        self.pipes: dict[Hashable, object] = {}
        """What ops have said about pipes to other cores, by where they lead and their number."""
        self.simt = Simt()

    # walking

    def call(self, site: Op, name: str, arguments: Sequence[Lowered]) -> tuple[Lowered, ...]:
        """Lower the function that the one being walked calls so; return its results."""
        with self.calling(site, name) as func, within(self, site, func) as callee:
            return () if callee is None else self.function(callee, arguments)

    @contextmanager
    def calling(self, site: Op, name: str) -> Generator[Func]:
        """Let the function of a name be called where an op says; yield it."""
        self._refuse_sprawl(name)
        outer, self.sites = self.sites, (*self.sites, site)
        yield self.callee(name)
        self.sites = outer

    def _refuse_sprawl(self, name: str) -> None:
        """Refuse a call where calls, which are written out, have made too much of a function already."""
        if max(len(self.sites), len(self.b.blocks)) >= MOST_DEEP:
            message = f"calls and regions may lie {MOST_DEEP} deep in each other"
            raise PtoNestingError(message, help="call fewer functions")
        if self.walked > MOST_OPS:
            message = f"with `@{name}` written out where it is called, this would be more than {MOST_OPS} ops"
            raise UnsupportedFeatureError(message, help="call it in a loop")

    def callee(self, name: str) -> Func:
        """Return the function of a name: the one in sight, or where that has no body the only one that has."""
        seen = self.funcs[self.calls[-1]][name]
        defined = [seen] if seen.body else [func for func in self.funcs if func.name == name and func.body]
        if len(defined) != 1:
            found = "nowhere" if not defined else f"in {len(defined)} modules"
            raise UnsupportedFeatureError(f"`@{name}` is declared here, and its body is {found}")
        return defined[0]

    def function(self, func: Func, arguments: Sequence[Lowered]) -> tuple[Lowered, ...]:
        """Lower a function in place, given its arguments; return its results."""
        assert func.body is not None
        with self.inside(func):
            self.values = dict(zip(func.arguments, arguments, strict=True))
            return self.region(func.body, arguments if func.body.arguments else ())

    @contextmanager
    def inside(self, func: Func) -> Generator[None]:
        """Let a function be the one that is walked."""
        self.calls.append(func)
        outer = self.values
        yield
        self.values = outer
        self.calls.pop()

    def region(self, region: Region, arguments: Sequence[Lowered] = ()) -> tuple[Lowered, ...]:
        """Lower the ops of a region; return what its last one hands on."""
        self.values.update(zip(region.arguments, arguments, strict=True))
        handed: tuple[Lowered, ...] = ()
        for op in region.ops:
            results = self.op(op)
            handed = () if op.results else results
        return handed

    def op(self, op: Op) -> tuple[Lowered, ...]:
        """Lower one op; return what it hands on, which its results are unless it ends a region."""
        self.walked += 1
        outer, self.b.span = self.b.span, op.span
        self.b.hint = _hint(op)
        try:
            result = self.ops[op.name].lower(self, op, self.operands(op))
        except KernelError as error:
            error.locate([op.span])
            raise
        results = result if isinstance(result, tuple) else () if result is None else (result,)
        types = (value.type for value in op.results) if op.results else repeat(None)
        made = tuple(_value(one, type_) for one, type_ in zip(results, types, strict=False))
        self.values.update(zip(op.results, made, strict=False))
        self.b.span = outer
        return made

    @computed_once
    def has_images(self) -> bool:
        """Whether masks may have bits set that are no lane's: some op takes or makes them bit by bit."""
        bodies = (func.body.ops for func in self.funcs if func.body is not None)
        return any(self.ops[inner.name].is_by_bits for ops in bodies for op in ops for inner in op.walk())

    # operands

    def operands(self, op: Op) -> Iterator[Lowered | Expr]:
        """Yield the tile that an op writes, what it reads, and its positional operands; numbers as expressions."""
        for value in (*op.outs[:1], *op.ins, *op.operands):
            found = self.values[value]
            if isinstance(found, Pointer) and isinstance(value.type, Scalar) and op.name != "pto.castptr":
                message = f"`%{value.name}` is an address of global memory, whose number is not known here"
                raise UnsupportedFeatureError(message, help="offset the pointer with pto.addptr")
            if isinstance(found, Token) and isinstance(value.type, TensorView) and op.name not in BINDING:
                message = f"`%{value.name}` is a slot, and nothing says yet which one"
                raise PtoOperandError(message, help=f"let {' or '.join(f'`{name}`' for name in BINDING)} bind it first")
            yield found.expr if isinstance(found, Number) else found

    def get(self, value: Value, kind: type[V]) -> V:
        """Return what a value stands for, which must be of a kind."""
        found = self.values[value]
        if not isinstance(found, kind):
            word = kind.__name__.lower()
            raise UnsupportedFeatureError(
                f"`%{value.name}` is {value.type}, where a {word} is needed", spans=[self.b.span]
            )
        return found

    def expr(self, value: Value) -> Expr:
        """Return a scalar operand."""
        return self.get(value, Number).expr

    def index(self, value: Value) -> Expr:
        """Return a scalar operand as a number that counts or addresses."""
        return self.b.index(self.expr(value))

    def clause(self, op: Op, name: str) -> tuple[Expr, ...] | None:
        """Return the operands under a word as indices, or None where there is no such word."""
        values = op.clause(name)
        return None if values is None else tuple(self.index(v) for v in values)

    def once(self, key: Hashable, make: Callable[[], Expr]) -> Expr:
        """Return a value that depends on nothing, made ahead of the statement that first asks for it."""
        if key not in self.made:
            inner, self.b.blocks = self.b.blocks, self.b.blocks[:1]
            self.made[key] = make()
            self.b.blocks = inner
        return self.made[key]

    def here(self, op: Op) -> Hashable:
        """Return what tells an op of the function being walked from itself in other calls of that function."""
        return op, *self.sites

    # tiles that are variables

    def slot(self, key: Hashable, type_: TileType, valid: tuple[Expr, Expr]) -> Slot:
        """Return the variable of a tile, made the first time it is asked for."""
        if key not in self.memory.slots:
            shape = (type_.shape[0], type_.shape[1])
            open_ = valid if None in type_.valid else None
            self.memory.slots[key] = Slot(key, Var(self.b.hint, type_, self.b.span), shape, open_)
        return self.memory.slots[key]

    def placed(self, *tiles: Tile) -> bool:
        """Return whether all tiles have bytes; those that have none will, the next time."""
        slots = [tile.slot for tile in tiles if tile.slot is not None]
        for slot in slots:
            self.demote(slot)
        return not slots

    def demote(self, slot: Slot) -> None:
        """Note that a tile needs bytes after all: the function will be lowered again."""
        self.knowledge.placed.add(slot.key)

    # what branches and loops carry

    def parts(self, value: Lowered) -> tuple[Expr, ...]:
        """Return what must be carried for a value; a tile that is a variable turns out to need bytes."""
        return () if isinstance(value, Tile) and not self.placed(value) else value.parts
