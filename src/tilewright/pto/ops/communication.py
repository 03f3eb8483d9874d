"""Communication: copies, signals and collectives between ranks, whose memory is reached through ordinary pointers.

A rank copies what its pointers lead to, and what it waits for others may set. A launch from Python is one rank alone: a
signal that nobody has set when it waits for it never will be. Staging tiles are left as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from tilewright.core.enums import AtomicType, NotifyOp
from tilewright.core.expr import Expr, constant
from tilewright.dtypes import BOOL, INT32
from tilewright.errors import UnsupportedFeatureError
from tilewright.ops.builder import known
from tilewright.pto.errors import PtoAttributeError, PtoOperandError, PtoTypeMismatchError
from tilewright.pto.examples.ranks import EXAMPLES
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.tiles import bytes_view, moved
from tilewright.pto.machine.values import Pointer, Token, View
from tilewright.pto.module import Op, Value, word_of
from tilewright.pto.op import Constants, Rule, declare, number_of
from tilewright.pto.text.form import Form, free
from tilewright.pto.text.free import said
from tilewright.pto.types import Space, TensorView, TileBuf, show

_COMPARED = ("eq", "ne", "gt", "ge", "lt", "le")
_SUMS = {"sum": "add", "max": "maximum", "min": "minimum"}


def _shape(value: Value) -> str:
    type_ = value.of(TensorView)
    return f"{'x'.join(map(show, type_.shape))}x{type_.element}"


def _alike(op: Op, _: Constants) -> None:
    """Refuse a copy between windows that differ."""
    shapes = [_shape(value) for value in op.operands[:2]]
    if shapes[0] != shapes[1]:
        message = f"`{op.name}` copies between equal windows, got {shapes[0]} and {shapes[1]}"
        raise PtoTypeMismatchError(message, help="make one as large as the other, of the same elements")
    _staged(op)


def _staged(op: Op) -> None:
    """Refuse staging tiles outside of the vector memory."""
    for value in op.operands:
        if isinstance(value.type, TileBuf) and value.type.space is not Space.VEC:
            message = f"`{op.name}` stages in vec, `%{value.name}` lies in {value.type.space.loc}"
            raise PtoOperandError(message, help="allocate the tile in vec")


def _signalled(name: str, words: Sequence[str], is_one: bool) -> Rule:
    """Return the rule of an op on signals: what its word may be, and of how many it takes."""

    def rule(op: Op, _: Constants) -> None:
        word, view = word_of(op.attributes.get(name, "")), op.operands[0].of(TensorView)
        if word not in words:
            raise PtoAttributeError(f"`{name}` of `{op.name}` is {word or 'missing'}", help=" or ".join(words))
        if view.element.name not in ("i32", "si32") or (is_one and set(view.shape) != {1}):
            wanted = "one i32 signal" if is_one else "i32 signals"
            help = "make it a window of i32" + (", one element large" if is_one else "")
            raise PtoTypeMismatchError(f"`{op.name}` takes {wanted}, got {_shape(op.operands[0])}", help=help)
        if str(op.operands[1].type) != "i32":
            message = f"signals of `{op.name}` are i32, `%{op.operands[1].name}` is {op.operands[1].type}"
            raise PtoTypeMismatchError(message, help="make it i32")

    return rule


def _collective(op: Op, _: Constants) -> None:
    """Refuse a group whose members differ, that lacks its root, or that is not as large as the root's window."""
    words = said(op)
    if "group" not in words:
        raise PtoOperandError(f"`{op.name}` needs its `group`", help="as in group(%a, %b), a window of each member")
    _staged(op)
    group, root = words["group"].values, number_of(op, "root") or 0
    if not 0 <= root < len(group):
        raise PtoAttributeError(f"`root` of `{op.name}` is {root}, in a group of {len(group)}", help="count from 0")
    if len({value.type for value in group}) > 1:
        shapes = " and ".join(dict.fromkeys(map(_shape, group)))
        raise PtoTypeMismatchError(f"members of a group are equal windows, got {shapes}", help="make them equal")
    mine, theirs = op.operands[0].of(TensorView), group[0].of(TensorView)
    shape = list(theirs.shape)
    if op.name in ("pto.comm.tgather", "pto.comm.tscatter") and shape[-2:-1] != [None]:
        shape[-2] = (shape[-2] or 0) * len(group)
    known_ones = zip(mine.shape, shape, strict=False)
    if len(mine.shape) != len(shape) or any(None not in pair and pair[0] != pair[1] for pair in known_ones):
        wanted = "x".join(map(show, shape))
        message = f"`{op.name}` of {len(group)} windows of {_shape(group[0])} needs {wanted} elements"
        raise PtoTypeMismatchError(
            f"{message}, got {_shape(op.operands[0])}", help=f"make it {wanted}x{theirs.element}"
        )


# copies


@contextmanager
def _rows(m: Machine, *views: View) -> Generator[list[Expr]]:
    """Write loops over the rows of windows of one shape around what is written inside; yield the row of each."""
    shape = views[0].shape
    pointers = [view.pointer for view in views]
    with ExitStack() as loops:
        for axis, extent in enumerate(shape[:-1]):
            index = loops.enter_context(m.b.loop(0, extent))
            steps = [m.b.scalar("mul", index, view.strides[axis]) for view in views]
            pointers = [moved(m, pointer, step) for pointer, step in zip(pointers, steps, strict=True)]
        pairs = zip(pointers, views, strict=True)
        yield [bytes_view(m, pointer, (1, shape[-1]), (0, view.strides[-1])) for pointer, view in pairs]


def _width(op: Op, view: View) -> int:
    width = known(view.shape[-1])
    if width is None:
        message = f"`{op.name}` takes windows whose last extent is a constant here"
        raise UnsupportedFeatureError(message, help="write it in the window's shape")
    return width


def _copy(m: Machine, op: Op, target: View, source: View) -> None:
    atomic = AtomicType.Add if word_of(op.attributes.get("atomicType", "")) == "atomic_add" else AtomicType.None_
    with _rows(m, target, source) as (go, come):
        m.b.store(go, m.b.load(come, (1, _width(op, source))), atomic=atomic)


@declare(
    "pto.comm.tput comm.tget",
    free("yyzz?", phrase="(%dst, %src, buf(%buf*) : #) {atomicType#atomic_type}"),
    rule=_alike,
    example=EXAMPLES,
)
def _transfer(m: Machine, op: Op, target: View, source: View) -> None:
    """A window of one rank's memory copied to another's, or added to it."""
    _copy(m, op, target, source)


@declare(
    "pto.comm.build_async_session",
    free("zp", "o", phrase="(%scratch, %workspace : #) -> !pto.async_session"),
    is_by_bytes=True,
)
def _session(m: Machine, op: Op) -> Token:
    """What copies that end later belong to."""
    return Token()


@declare(
    "pto.comm.tput_async comm.tget_async",
    free("yyo", "o", phrase="(%dst, %src, %session : #) -> !pto.async_event"),
    rule=_alike,
    example=EXAMPLES,
)
def _transfer_later(m: Machine, op: Op, target: View, source: View) -> Token:
    """A copy that may end later: it has ended when the next op runs."""
    _copy(m, op, target, source)
    return Token()


@declare("pto.comm.wait_async_event comm.test_async_event", free("oo", "b", phrase="(%event, %session : #) -> i1"))
def _has_ended(m: Machine, op: Op) -> Expr:
    """Whether a copy has ended, which it has."""
    return constant(True, BOOL)


# signals


def _signal(more: str, results: str = "") -> Form:
    """Return the form of an op on a signal and a number."""
    return free("yi", results, phrase=f"(%signal, %value : #) {more}")


@declare(
    "pto.comm.tnotify",
    _signal("{notifyOp#notify_op}"),
    rule=_signalled("notifyOp", ("set", "atomic_add"), True),
    example=EXAMPLES,
)
def _notify(m: Machine, op: Op, signal: View, value: Expr) -> None:
    """Set a signal, or add to it."""
    adds = word_of(op.attributes["notifyOp"]) == "atomic_add"
    m.b.act(
        "distributed.post",
        cell=_cell(m, signal.pointer),
        value=m.b.cast(value, INT32),
        op=NotifyOp.AtomicAdd if adds else NotifyOp.Set,
    )


def _cell(m: Machine, pointer: Pointer) -> Expr:
    """Return the memory of a signal."""
    return bytes_view(m, pointer, (1, 1), (1, 1))


@contextmanager
def _each(m: Machine, signals: View) -> Generator[Expr]:
    """Write loops over signals around what is written inside; yield the memory of each."""
    pointer = signals.pointer
    with ExitStack() as loops:
        for extent, stride in zip(signals.shape, signals.strides, strict=True):
            if known(extent) != 1:
                index = loops.enter_context(m.b.loop(0, extent))
                pointer = moved(m, pointer, m.b.scalar("mul", index, stride))
        yield _cell(m, pointer)


@declare("pto.comm.ttest", _signal("{cmp#wait_cmp} -> i1", "b"), rule=_signalled("cmp", _COMPARED, False))
def _test(m: Machine, op: Op, signals: View, value: Expr) -> Expr:
    """Whether all signals compare so with a number."""
    return _all_hold(m, op, signals, value)


def _all_hold(m: Machine, op: Op, signals: View, value: Expr) -> Expr:
    all_do = m.b.held(constant(True, BOOL), "all")
    with _each(m, signals) as cell:
        m.b.assign(
            all_do, m.b.scalar("and_", all_do, m.b.do("distributed.holds", cell=cell, **_compared(m, op, value)))
        )
    return all_do


@declare("pto.comm.twait", _signal("{cmp#wait_cmp}"), rule=_signalled("cmp", _COMPARED, False))
def _wait(m: Machine, op: Op, signals: View, value: Expr) -> None:
    """Go on once all signals compare so with a number, which other ranks see to; a lone one has set them by now."""
    if all(known(extent) == 1 for extent in signals.shape):
        m.b.act("distributed.until", cell=_cell(m, signals.pointer), **_compared(m, op, value))
        return
    waits = m.b.held(constant(True, BOOL), "waits")
    with m.b.block() as body:
        with _each(m, signals) as cell:
            m.b.act("distributed.until", cell=cell, **_compared(m, op, value))
        m.b.assign(waits, m.b.scalar("not_", _all_hold(m, op, signals, value)))
    m.b.repeat(waits, body)  # a signal may change while others are waited for


def _compared(m: Machine, op: Op, value: Expr) -> dict[str, Any]:
    return {"value": m.b.cast(value, INT32), "cmp": word_of(op.attributes["cmp"])}


# collectives

_GROUPED = free("yzx*", phrase="(%src, recv(%recv*), group(%group*) : #) {root:i32}")


def _group(m: Machine, op: Op) -> list[View]:
    return [m.get(value, View) for value in said(op)["group"].values]


@declare("pto.comm.tbroadcast", _GROUPED, rule=_collective, example=EXAMPLES)
def _broadcast(m: Machine, op: Op, source: View) -> None:
    """A window copied to every member of a group."""
    for member in _group(m, op):
        _copy(m, op, member, source)


@declare("pto.comm.tgather comm.tscatter", _GROUPED, rule=_collective, example=EXAMPLES)
def _gather(m: Machine, op: Op, whole: View) -> None:
    """The windows of a group one below the other, or such a window dealt out to them."""
    for number, member in enumerate(_group(m, op)):
        rows = m.b.mul(m.b.scalar("mul", member.shape[-2], whole.strides[-2]), number)
        part = replace(whole, pointer=moved(m, whole.pointer, rows), shape=member.shape)
        _copy(m, op, *((part, member) if op.name.endswith("gather") else (member, part)))


def _reduces(op: Op, constants: Constants) -> None:
    word = word_of(op.attributes.get("reduceOp", ""))
    if word not in _SUMS:
        raise PtoAttributeError(f"`reduceOp` of `{op.name}` is {word or 'missing'}", help=" or ".join(_SUMS))
    _collective(op, constants)


@declare(
    "pto.comm.treduce",
    free("yzzx*", phrase="(%dst, %acc, recv(%recv*), group(%group*) : #) {reduceOp#reduce_op, root:i32}"),
    rule=_reduces,
    example=EXAMPLES,
)
def _reduce(m: Machine, op: Op, target: View) -> None:
    """The sum, largest or smallest of what the windows of a group hold at each place."""
    members, name = _group(m, op), _SUMS[word_of(op.attributes["reduceOp"])]
    width = _width(op, target)
    with _rows(m, target, *members) as (go, *come):
        first, *others = (m.b.load(row, (1, width)) for row in come)
        m.b.store(go, _folded(lambda a, b: m.b.tile(name, a, b), first, others))


def _folded(combine: Callable[[Expr, Expr], Expr], first: Expr, others: Sequence[Expr]) -> Expr:
    for each in others:
        first = combine(first, each)
    return first
