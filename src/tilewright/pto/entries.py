"""Entries: what the verifier asks of functions that work items run, and of their launches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod

from tilewright.pto.errors import PtoAttributeError, PtoOperandError, PtoReturnError
from tilewright.pto.module import Func, Number, Op, SymbolRef
from tilewright.pto.op import Constants, number_of
from tilewright.pto.text.free import words_of
from tilewright.pto.types import Scalar

ENTRY = "pto.simt_entry"
"""The attribute of functions that are launched."""
LAUNCH = "pto.simt_launch"
_MOST = "pto.simt_max_threads"
_LIMITS = (_MOST, "pto.simt_max_regs")
_LAST = ("pto.keep", "pto.syncthreads", "func.return")
_TOGETHER = ("pto.syncthreads", "pto.threadfence", "pto.threadfence_block")
_ATOMIC = "pto.atomic_"


def is_entry(func: Func) -> bool:
    """Return whether a function is launched, not called."""
    return ENTRY in func.attributes


def launched(op: Op) -> str:
    """Return the name of the function that an op launches."""
    return next((word[1:] for word in words_of(op) if word.startswith("@")), "")


def callees(func: Func) -> Iterator[str]:
    """Yield the names of the functions that a function calls or launches."""
    for op in func.body.ops if func.body is not None else ():
        for inner in op.walk():
            callee = inner.attributes.get("callee")
            if inner.name == LAUNCH:
                yield launched(inner)
            elif isinstance(callee, SymbolRef):
                yield callee.name


def refuse_entry(func: Func) -> None:
    """Raise where a function is no entry and says it is, or the other way round."""
    for name in _LIMITS:
        if name in func.attributes and not (is_entry(func) and _is_positive(func.attributes[name])):
            help = f"a positive number, as in `{name} = 256 : i32`, on a function with `{ENTRY}`"
            raise PtoAttributeError(f"`@{func.name}` has a wrong `{name}`", spans=(func.span,), help=help)
    if not is_entry(func) or func.body is None:
        return
    if func.results:
        message = f"`@{func.name}` is an entry of work items and must return nothing"
        raise PtoReturnError(message, spans=(func.span,), help="write results through a pointer")
    every = [inner for op in func.body.ops for inner in op.walk()]
    for op in every:
        if op.name == LAUNCH:
            message = f"`@{func.name}` is launched itself, and launches `@{launched(op)}`"
            raise PtoOperandError(message, spans=(op.span,), help="call it instead")
    _refuse_old_pairs(every)
    _refuse_kept(func.body.ops)


def refuse_crowd(op: Op, func: Func, constants: Constants) -> None:
    """Raise for a launch of more work items than the function says it is for, as far as the text says how many."""
    extents = [constants.get(value, 1) for value in op.operands[:3]]
    limit = func.attributes.get(_MOST)
    most, count = limit.value if isinstance(limit, Number) else limit, prod(extents)
    if isinstance(most, int) and count > most:
        message = f"`@{func.name}` is for {most} work items at most, and {' x '.join(map(str, extents))} are launched"
        raise PtoOperandError(message, spans=(op.span,), help=f"launch several times, or raise `{_MOST}`")


def _refuse_old_pairs(ops: list[Op]) -> None:
    """Raise where somebody asks what two numbers were that were changed one after the other."""
    pairs = {op.results[0]: op for op in ops if changes_pair(op) and op.results}
    for user in ops if pairs else ():
        for value in user.uses:
            if value in pairs:
                message = (
                    f"no `{pairs[value].name}` of two numbers gives what was there, `{user.name}` uses `%{value.name}`"
                )
                help = "change f16 or bf16 elements one by one"
                raise PtoOperandError(message, spans=(pairs[value].span,), help=help)


def changes_pair(op: Op) -> bool:
    """Return whether an op changes two numbers of one value in memory."""
    type_ = op.operands[-1].type if op.name.startswith(_ATOMIC) and op.operands else None
    return isinstance(type_, Scalar) and type_.name.startswith("vector<2x")


def refuse_outside(op: Op) -> None:
    """Raise for what only work items do, in a function that is no entry of theirs."""
    if op.name in _TOGETHER or changes_pair(op):
        what = f"`{op.name}`{' of two numbers' * changes_pair(op)}"
        message = f"{what} is for the work items of a launch, and this function is no entry of theirs"
        raise PtoOperandError(message, help=f"add `attributes {{{ENTRY}}}` to it, and launch it")


def _is_positive(value: object) -> bool:
    found = value.value if isinstance(value, Number) else value
    return isinstance(found, int) and found > 0


def _refuse_kept(ops: list[Op]) -> None:
    """Raise where what is kept between launches is not asked for first and given last, each in slots of its own."""
    for i, op in enumerate(ops):
        before, behind = ops[:i], ops[i + 1 :]
        if op.name == "pto.resume" and any(o.name not in ("pto.resume", "arith.constant") for o in before):
            message = "`pto.resume` comes first in its function, after constants"
            raise PtoOperandError(message, spans=(op.span,), help="move it up")
        if op.name == "pto.keep" and any(other.name not in _LAST for other in behind):
            message = "`pto.keep` comes last in its function, before `pto.syncthreads` and `return`"
            raise PtoOperandError(message, spans=(op.span,), help="move it down")
    for name in ("pto.resume", "pto.keep"):
        _refuse_shared(op for op in ops if op.name == name)


def _refuse_shared(ops: Iterable[Op]) -> None:
    taken: set[int] = set()
    for op in ops:
        type_, first = (op.operands or op.results)[0].type, number_of(op, "slot") or 0
        slots = {first, first + 1} if isinstance(type_, Scalar) and type_.bits == 64 else {first}
        if slots & taken:
            message = f"slot {min(slots & taken)} has another value already"
            raise PtoAttributeError(message, spans=(op.span,), help="give each its own; 64 bits take two slots")
        taken |= slots
