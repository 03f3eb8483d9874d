"""Collectives inside kernels: written in puts, loads and signals, at the line that calls them.

Every rank meets the others before it touches their parts, and again before any goes on. Elements are reduced in the
order of ranks by one of them, which hands the result to all: they end with the same bits.
"""

from __future__ import annotations

import ast
from typing import Any

import tilewright.frontend.directives as pl
from tilewright.core.enums import NotifyOp, ReduceOp, WaitCmp
from tilewright.core.op import OpSpec
from tilewright.core.operands import bind, order_of
from tilewright.core.types import is_fully_valid, show_shape
from tilewright.dtypes import DataType
from tilewright.errors import AttributeValueError, OperandError
from tilewright.frontend.arguments import Arguments
from tilewright.frontend.inline import InlineFunction, inline
from tilewright.frontend.operators import apply
from tilewright.frontend.translator import Translator
from tilewright.frontend.walk.walker import Value
from tilewright.ops.elementwise import add, maximum, minimum, mul
from tilewright.ops.load import load
from tilewright.ops.masks import isnan, where
from tilewright.ops.memory import dim, read, store
from tilewright.ops.ranks import copies, nranks, part, rank
from tilewright.ops.reshape import reshape
from tilewright.ops.shape import set_validshape
from tilewright.ops.signals import notify, wait
from tilewright.ops.system import device_assert
from tilewright.ops.transfers import get, put

BLOCK = 4096
"""How many elements of a window are reduced at a time."""
LINK = 1024
"""And how many go around a ring together: each rank has the same number of such pieces, but for the last ones."""


@inline
def _met(signal: Any, axes: Any) -> Any:
    """Wait for all ranks: each tells all others, and takes back what it was told."""
    me = rank(signal)
    for peer in pl.range(nranks(signal)):
        notify(signal, peer, [me, 0] if axes == 2 else [me], 1, op=NotifyOp.AtomicAdd)
    for peer in pl.range(nranks(signal)):
        wait(signal, [peer, 0] if axes == 2 else [peer], 1, cmp=WaitCmp.Ge)
        notify(signal, me, [peer, 0] if axes == 2 else [peer], -1, op=NotifyOp.AtomicAdd)


@inline
def _checked(window: Any, message: Any) -> Any:
    """Stop where a window has no row for each rank: what ranks without one do there would be to nobody."""
    device_assert(window.shape[0] >= nranks(window), message=message)


@inline
def _checked_ring(window: Any, message: Any) -> Any:
    device_assert(window.shape[0] >= 2 * (nranks(window) - 1), message=message)


@inline
def _barrier(signal: Any) -> Any:
    _met(signal, signal.ndim)


@inline
def _one_nan(total: Any) -> Any:
    """Let every NaN be the same one: which of several a sum keeps is the processor's choice."""
    return where(isnan(total), float("nan"), total)


@inline
def _as_it_is(total: Any) -> Any:
    return total


def settling(dtype: DataType) -> Any:
    """Return what makes the bits of a reduction those that `ops/collectives.py` says."""
    return _one_nan if dtype.is_float() else _as_it_is


@inline
def _pieces(window: Any, size: Any) -> Any:
    """Return in how many pieces of so many elements a window comes."""
    return (window.numel() + size - 1) // size


@inline
def _piece(window: Any, number: Any, size: Any) -> Any:
    return load(reshape(window, [window.numel()]), [number * size], [size], clamp=True)


@inline
def _keep(made: Any, window: Any, number: Any, size: Any) -> Any:
    store(made, [number * size], reshape(window, [window.numel()]))


@inline
def _valid_pieces(window: Any, size: Any) -> Any:
    """Return in how many pieces of so many elements what is valid of a window comes, each of one row."""
    columns = dim(window, -1, valid=True)
    return window.numel() // _matrix(window) * dim(window, -2, valid=True) * ((columns + size - 1) // size)


@inline
def _matrix(window: Any) -> Any:
    return window.shape[-2] * window.shape[-1]


@inline
def _start(window: Any, number: Any, size: Any) -> Any:
    """Return where a piece begins in a window, and how many of its elements are valid."""
    columns = dim(window, -1, valid=True)
    rows = dim(window, -2, valid=True)
    each = (columns + size - 1) // size
    row = number // each
    column = number % each * size
    at = row // rows * _matrix(window) + row % rows * window.shape[-1] + column
    return at, min(columns - column, size)


@inline
def _flat(window: Any) -> Any:
    """Return the elements of a window one behind the other, valid or not."""
    return reshape(set_validshape(window, window.shape[-2], window.shape[-1]), [window.numel()])


@inline
def _valid_piece(window: Any, number: Any, size: Any) -> Any:
    at, count = _start(window, number, size)
    return load(_flat(window), [at], [size], valid_shape=[count], clamp=True)


@inline
def _valid_keep(made: Any, window: Any, number: Any, size: Any) -> Any:
    at, _ = _start(window, number, size)
    store(made, [at], _flat(window))


@inline
def _allreduce(target: Any, signal: Any, op: Any, combine: Any, settle: Any, pieces: Any, piece: Any, keep: Any) -> Any:
    """Reduce every so many blocks of all parts, and hand them to all."""
    _met(signal, signal.ndim)
    me = rank(target)
    every = nranks(target)
    for block in pl.range(me, pieces(target, BLOCK), every):
        total = piece(part(target, 0), block, BLOCK)
        for peer in pl.range(1, every):
            total = combine(total, piece(part(target, peer), block, BLOCK))
        made = settle(total)
        for peer in pl.range(every):
            keep(made, part(target, peer), block, BLOCK)
    _met(signal, signal.ndim)
    return target


@inline
def _passed(signal: Any, step: Any, peer: Any) -> Any:
    """Tell a peer that this rank has come so far."""
    notify(signal, peer, [step, rank(signal)], 1, op=NotifyOp.AtomicAdd)


@inline
def _awaited(signal: Any, step: Any, peer: Any) -> Any:
    """Wait until a peer has come so far, and take back what it told."""
    wait(signal, [step, peer], 1, cmp=WaitCmp.Ge)
    notify(signal, rank(signal), [step, peer], -1, op=NotifyOp.AtomicAdd)


@inline
def _met_by_row(signal: Any) -> Any:
    """Wait for all ranks, in the first row of the signals of a ring."""
    for peer in pl.range(nranks(signal)):
        _passed(signal, 0, peer)
    for peer in pl.range(nranks(signal)):
        _awaited(signal, 0, peer)


@inline
def _around(target: Any, signal: Any, op: Any, combine: Any, settle: Any, pieces: Any, piece: Any, keep: Any) -> Any:
    """Reduce around a ring: what a rank has of a share is added to by the next one, and the sums go around once more.

    Every rank reads from the one before it alone, and row k of the signal says that this one has taken k steps.
    """
    count = pieces(target, LINK)
    me = rank(target)
    every = nranks(target)
    before = (me + every - 1) % every
    behind = (me + 1) % every
    links = (count + every - 1) // every
    steps = every - 1
    if every > 1:
        _met_by_row(signal)
        for step in pl.range(steps):
            if step > 0:
                _awaited(signal, step, before)
            share = (me + every - step - 1) % every
            for link in pl.range(share * links, (share + 1) * links):
                if link < count:
                    summed = piece(part(target, before), link, LINK)
                    keep(settle(combine(summed, piece(target, link, LINK))), target, link, LINK)
            _passed(signal, step + 1, behind)
        for step in pl.range(steps):
            _awaited(signal, steps + step, before)
            share = (me + every - step) % every
            for link in pl.range(share * links, (share + 1) * links):
                if link < count:
                    keep(piece(part(target, before), link, LINK), target, link, LINK)
            if step < steps - 1:
                _passed(signal, steps + step + 1, behind)
        _met_by_row(signal)
    return target


@inline
def _broadcast(target: Any, signal: Any, root: Any) -> Any:
    _met(signal, signal.ndim)
    if rank(target) != root:
        get(target, root, target)
    _met(signal, signal.ndim)
    return target


@inline
def _allgather(local_data: Any, target: Any, signal: Any) -> Any:
    _met(signal, signal.ndim)
    me = rank(target)
    for step in pl.range(copies(target)):  # one where `target` is memory that all ranks see
        put(target, (me + step) % nranks(target), local_data, [me, 0], [0, 0], [1, local_data.shape[1]])
    _met(signal, signal.ndim)
    return target


@inline
def _reduce_scatter(target: Any, signal: Any, op: Any, combine: Any, settle: Any) -> Any:
    _met(signal, signal.ndim)
    me = rank(target)
    columns = target.shape[1]
    for block in pl.range((columns + BLOCK - 1) // BLOCK):
        total = load(part(target, 0), [me, block * BLOCK], [1, BLOCK], clamp=True)
        for peer in pl.range(1, nranks(target)):
            total = combine(total, load(part(target, peer), [me, block * BLOCK], [1, BLOCK], clamp=True))
        store(settle(total), [me, block * BLOCK], target)
    _met(signal, signal.ndim)
    return target


@inline
def _all_to_all(input: Any, target: Any, signal: Any) -> Any:
    _met(signal, signal.ndim)
    me = rank(target)
    rows = target.shape[0] // nranks(target)
    for peer in pl.range(nranks(target)):
        put(target, peer, input, [me * rows, 0], [peer * rows, 0], [rows, input.shape[1]])
    _met(signal, signal.ndim)
    return target


@inline
def _all_to_all_v(input: Any, target: Any, signal: Any, send_counts: Any, recv_counts: Any) -> Any:
    _met(signal, signal.ndim)
    me = rank(target)
    rows = target.shape[0] // nranks(target)
    for peer in pl.range(nranks(target)):
        put(target, peer, input, [me * rows, 0], [peer * rows, 0], [rows, input.shape[1]])
        sent = read(send_counts, [peer, 0] if send_counts.ndim == 2 else [peer])
        told = sent if sent < rows else rows
        notify(recv_counts, peer, [me, 0] if recv_counts.ndim == 2 else [me], told, op=NotifyOp.Set)
    _met(signal, signal.ndim)
    return target


_TEMPLATES: dict[str, InlineFunction] = {
    "all_to_all": _all_to_all, "all_to_all_v": _all_to_all_v, "allgather": _allgather, "allreduce": _allreduce,
    "barrier": _barrier, "broadcast": _broadcast, "reduce_scatter": _reduce_scatter,
}  # fmt: skip
COMBINED = {ReduceOp.Sum: add, ReduceOp.Max: maximum, ReduceOp.Min: minimum, ReduceOp.Prod: mul}
_HOST_OPTIONS = ("mode", "core_num")


def in_kernel(t: Translator, spec: OpSpec, given: Arguments, node: ast.Call) -> Value:
    """Return what a collective gives inside a kernel, written out."""
    bound: dict[str, Any] = bind(spec, given.args, given.kwargs)
    if bound.get("signal", ...) is None:
        help = f"{spec.name}(target, signal), with an int32 window of [nranks, 1]"
        raise t.error(OperandError, node, f"`{spec.name}` needs its signal in a kernel", help=help)
    spans = dict(zip(order_of(spec, given.args), given.nodes, strict=False)) | dict(given.keyword_nodes)
    apply(t, spec, bound, node, spans)  # its type rule checks what it is given
    if bound.get("core_num", 1) != 1:
        raise t.error(AttributeValueError, node, "core_num is for allreduce in a host function", help="leave it out")
    options = {name: value for name, value in bound.items() if name not in _HOST_OPTIONS}
    if "op" in bound:
        options |= {"combine": COMBINED[ReduceOp(bound["op"])], "settle": settling(bound["target"].type.dtype)}
    if spec.name == "allreduce":
        options |= dict(zip(_BY_PIECES, _WHOLE if is_fully_valid(bound["target"].type) else _VALID, strict=True))
    is_ring = bound.get("mode") == "ring"
    for name in (name for name in _ROWS if name in bound and (name != "target" or spec.name in _KEPT_BY_RANK)):
        _check_rows(t, spec, name, bound, is_ring, node)
    template = _around if is_ring else _TEMPLATES[spec.name]
    return template.expand(t, Arguments((), options, (), {}), node)


_BY_PIECES = "pieces", "piece", "keep"
_WHOLE, _VALID = (_pieces, _piece, _keep), (_valid_pieces, _valid_piece, _valid_keep)
"""How a window, and what is valid of one, comes in pieces."""
_KEPT_BY_RANK = ("allgather", "reduce_scatter", "all_to_all", "all_to_all_v")
"""Those whose target has a row, or several, for each rank."""
_ROWS = ("signal", "target", "recv_counts")
"""What has a row for each rank."""


def _check_rows(t: Translator, spec: OpSpec, name: str, bound: dict[str, Any], is_ring: bool, node: ast.Call) -> None:
    window = bound[name]
    needed = "a row for each step around the ring" if is_ring and name == "signal" else "a row for each rank"
    message = (
        f"`{name}` of {spec.name} is a window of {show_shape(window.type.shape)}, which has not {needed} of the domain"
    )
    given = {"window": window, "message": message}
    template = _checked_ring if is_ring and name == "signal" else _checked
    template.expand(t, Arguments((), given, (), {}), node)
