"""Lint: what a legal text says that its author can hardly have meant.

Each check is a function over one function of a module; its docstring is what `tilewright pto lint --list` prints.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator

from tilewright.pto.entries import callees
from tilewright.pto.module import Func, Module, Op, Value, word_of
from tilewright.pto.ops.registry import OPS
from tilewright.pto.types import Ptr, TileBuf
from tilewright.records import record
from tilewright.source import Span

SEEN = ("pto.subview", "pto.subset", "pto.treshape", "pto.bitcast")
"""The ops that give the bytes of a tile another shape or type."""


@record
class Finding:
    """One remark: which check made it, where, and what to do."""

    check: str
    span: Span
    message: str
    help: str


class Subject:
    """One function as checks look at it: its ops in order, and who uses what."""

    def __init__(self, func: Func, called: Collection[str]) -> None:
        self.func = func
        self.called = called
        """The names of the functions that some function of the module calls."""
        self.ops = list(_ops(func))
        """Every op, those inside others too, in the order of the text."""
        self.uses = Counter(value for op in self.ops for value in op.uses)
        """How often each value is an operand."""
        self.constants = {op.results[0]: op.attributes["value"] for op in self.ops if op.name == "arith.constant"}
        """What constants define values to be."""
        self.seen_as = {op.results[0]: op.operands[0] for op in self.ops if op.name in SEEN}
        """What windows and other views of tiles are views of."""

    def tile(self, value: Value) -> Value:
        """Return the tile whose bytes a value is, or the value."""
        while value in self.seen_as:
            value = self.seen_as[value]
        return value


Check = Callable[[Subject], Iterator[Finding]]
CHECKS: dict[str, Check] = {}
"""Every check by its name."""


def check(function: Callable[[Subject], Iterator[tuple[Span, str, str]]]) -> Check:
    """Sign a check in under the name of its function; it yields places, messages and helps."""
    name = function.__name__.strip("_").replace("_", "-")

    def findings(subject: Subject) -> Iterator[Finding]:
        return (Finding(name, *found) for found in function(subject))

    findings.__doc__ = function.__doc__
    CHECKS[name] = findings
    return findings


def _ops(func: Func) -> Iterator[Op]:
    for op in func.body.ops if func.body else ():
        yield from op.walk()


def lint(module: Module) -> list[Finding]:
    """Return what all checks find in a verified module, in the order of the text."""
    called = {name for func in module.funcs() for name in callees(func)}
    subjects = [Subject(func, called) for func in module.funcs()]
    found = [finding for subject in subjects for each in CHECKS.values() for finding in each(subject)]
    return sorted(found, key=lambda finding: (finding.span.line, finding.span.column))


# what a text says to the machine: where products find their operands, and events


@check
def _misfitting_load(subject: Subject) -> Iterator[tuple[Span, str, str]]:
    """A product that looks for its operands elsewhere than they were loaded to."""
    loaded: dict[Value, int | None] = {}
    for op in subject.ops:
        if op.name in _LOADS:
            extent = subject.constants.get(op.operands[_LOADS[op.name]])
            loaded[op.operands[1]] = _blocks(extent, _lane(op.operands[1]) if op.attributes.get("transpose") else 16)
        if not op.name.startswith("pto.mad") or len(op.operands) < 6:
            continue
        rows, cols, depth = (subject.constants.get(value) for value in op.operands[-3:])
        for value, extent in zip(op.operands[:2], (rows, cols), strict=True):
            found, wanted = loaded.get(value), _blocks(extent, 16)
            is_deep = isinstance(depth, int) and depth > _lane(value)
            if found and wanted and found != wanted and is_deep:
                yield (
                    op.span,
                    f"`%{value.name}` was loaded {found} blocks of 16 wide, and this takes it for {wanted}",
                    f"multiply {16 * found}, and bring out those you need",
                )


_LOADS = {"pto.mte_l1_l0a": 2, "pto.mte_l1_l0b": 3}
"""What loads operands of products, and which operand says how many rows or columns."""


def _lane(pointer: Value) -> int:
    """Return how many elements 32 bytes hold."""
    return 32 // pointer.type.element.nbytes if isinstance(pointer.type, Ptr) else 16


def _blocks(extent: object, lane: int) -> int | None:
    """Return how many blocks of 16 a number of rows or columns takes that comes in whole lanes."""
    whole = max(16, lane)
    return -(-extent // whole) * whole // 16 if isinstance(extent, int) else None


@check
def _early_wait(subject: Subject) -> Iterator[tuple[Span, str, str]]:
    """An event that is waited for before anything sets it."""
    known: set[tuple[object, ...]] = set()
    later = {_event(op) for op in subject.ops if op.name == "pto.set_flag"}
    for op in subject.ops:
        if op.name == "pto.set_flag":
            known.add(_event(op))
        elif op.name == "pto.wait_flag" and _event(op) in later - known:
            yield op.span, "this event is waited for before anything sets it", "move the `pto.set_flag` up"


@check
def _lone_flag(subject: Subject) -> Iterator[tuple[Span, str, str]]:
    """An event that is set and never waited for, or waited for and never set."""
    sides = {"pto.set_flag": "pto.wait_flag", "pto.wait_flag": "pto.set_flag"}
    known = {(op.name, _event(op)) for op in subject.ops if op.name in sides}
    for op in subject.ops:
        other = sides.get(op.name)
        if other is not None and (other, _event(op)) not in known:
            has = (
                "is set and nothing waits for it"
                if other.endswith("wait_flag")
                else "is waited for and nothing sets it"
            )
            yield op.span, f"this event {has}", f"add the `{other}` it belongs with"


def _event(op: Op) -> tuple[object, ...]:
    return (*((name, word_of(value)) for name, value in sorted(op.attributes.items())), *op.uses)


# values, tiles, loops and branches


_DOING = ("func.call", "pto.atomic_", "pto.tpop", "pto.talloc", "pto.comm.", "pto.pst")
"""What the names of ops begin with that do something beside what they give."""


@check
def _unused_value(subject: Subject) -> Iterator[tuple[Span, str, str]]:
    """A value that nothing uses."""
    for op in subject.ops:
        if op.regions or op.name == "pto.alloc_tile" or op.name.startswith(_DOING):
            continue  # tiles have a check of their own
        if op.results and not any(subject.uses[value] for value in op.results):
            yield op.span, f"nothing uses `%{op.results[0].name}`", "delete it"


@check
def _unused_parameter(subject: Subject) -> Iterator[tuple[Span, str, str]]:
    """A parameter that nothing uses; a name that begins with `_` says that this is meant."""
    for value in subject.func.arguments if subject.func.body else ():
        if not subject.uses[value] and not value.name.startswith("_"):
            yield (
                value.span,
                f"`@{subject.func.name}` never uses `%{value.name}`",
                f"delete it here and where it is passed, or call it `%_{value.name}`",
            )


@check
def _unread_attribute(subject: Subject) -> Iterator[tuple[Span, str, str]]:
    """An attribute that its op does not read."""
    for op in subject.ops:
        words = OPS[op.name].words
        for name in op.attributes if words else ():
            if name not in words:
                yield op.span, f"`{op.name}` does not read `{name}`", f"delete it; it reads {', '.join(words)}"


@check
def _uncalled_function(subject: Subject) -> Iterator[tuple[Span, str, str]]:
    """A private function that nothing calls."""
    func = subject.func
    if func.private and func.body is not None and func.name not in subject.called:
        yield func.span, f"nothing calls `@{func.name}`, which is private", "delete it, or let a kernel call it"


def _reads(op: Op, value: Value) -> bool:
    return value not in op.outs and op.name not in (*SEEN, "pto.set_validshape")


@check
def _idle_tile(subject: Subject) -> Iterator[tuple[Span, str, str]]:
    """A tile that is never written, or never read."""
    read = {subject.tile(value) for op in subject.ops for value in op.uses if _reads(op, value)}
    for op in subject.ops:  # who wants one result of an op has to name the other, too
        made = {subject.tile(value) for value in op.outs}
        read.update(made if made & read else ())
    written = {subject.tile(value) for op in subject.ops for value in (*op.outs, *_scratch(op))}
    for op in subject.ops:
        tile = op.results[0] if op.name == "pto.alloc_tile" else None
        if tile is None or op.clause("addr") is not None or not isinstance(tile.type, TileBuf):
            continue  # a tile at an address may share its bytes with another
        if 0 in (tile.type.valid_rows, tile.type.valid_cols):
            continue  # of which there is nothing to write or to read
        if tile in read and tile in written:
            continue
        if tile in read:
            yield (
                op.span,
                f"nothing writes `%{tile.name}`: it holds zeros",
                "load it, or say the zeros with `pto.texpands`",
            )
        else:
            state = "reads" if tile in written else "uses"
            yield op.span, f"nothing {state} `%{tile.name}`", "delete it and what writes it"


def _scratch(op: Op) -> tuple[Value, ...]:
    """Return the tiles that an op takes to work in: of communication any, else its last input, if it is there."""
    if op.name.startswith("pto.comm."):
        return tuple(value for value in op.uses if isinstance(value.type, TileBuf))
    if op.name == "pto.tmrgsort":
        return op.ins[-1:] if len(op.outs) > 1 else ()  # where it says how far lists got
    if op.name == "pto.tgather":
        return op.ins[2:3]  # behind indices, or what elements are compared with
    ins = OPS[op.name].form.words.get("ins")
    has_all = ins is not None and ins.kinds.endswith("z?") and len(op.ins) == len(ins.kinds) - 1
    return op.ins[-1:] if has_all else ()


@check
def _early_read(subject: Subject) -> Iterator[tuple[Span, str, str]]:
    """A tile that is read before anything writes it."""
    fresh = {
        op.results[0]: op for op in subject.ops if op.name == "pto.alloc_tile" and op.clause("addr") is None
    }  # a tile at an address may share its bytes with another
    written = {subject.tile(value) for op in subject.ops for value in op.outs}
    for op in subject.ops:
        scratch = _scratch(op)
        for value in op.uses if op.name not in (*SEEN, "pto.set_validshape") else ():
            tile = subject.tile(value)
            if fresh.pop(tile, None) and value in op.ins and value not in scratch and tile in written:
                yield op.span, f"nothing writes `%{tile.name}` before this: it holds zeros", "load or fill it first"


@check
def _idle_loop(subject: Subject) -> Iterator[tuple[Span, str, str]]:
    """A loop of constant bounds that makes no turn."""
    for op in subject.ops:
        if op.name != "scf.for":
            continue
        lower, upper = (subject.constants.get(value) for value in op.operands[:2])
        if isinstance(lower, int) and isinstance(upper, int) and lower >= upper:
            yield op.span, f"this loop goes from {lower} to {upper}: it makes no turn", "mend its bounds, or delete it"


@check
def _settled_branch(subject: Subject) -> Iterator[tuple[Span, str, str]]:
    """A branch whose condition is a constant."""
    for op in subject.ops:
        if op.name == "scf.if" and (value := subject.constants.get(op.operands[0])) is not None:
            yield op.span, f"this condition is always {str(bool(value)).lower()}", "compute it, or delete the branch"
