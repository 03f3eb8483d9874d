"""Whole tensors: ops whose result is a tensor, or a part of one, written so many elements at a time.

Each says what it goes through, and what it does for some elements of that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.addresses import places as places_in
from tilewright.backends.cuda.ttir.convert import as_element
from tilewright.backends.cuda.ttir.gathers import compared
from tilewright.backends.cuda.ttir.indexed import fetched, written
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.loads import live_of, loaded
from tilewright.backends.cuda.ttir.picks import split
from tilewright.backends.cuda.ttir.places import addresses, inside, negated, product
from tilewright.backends.cuda.ttir.recipes import RECIPES, Bound, refused
from tilewright.backends.cuda.ttir.temporaries import temporary
from tilewright.backends.cuda.ttir.text import I64, Value
from tilewright.backends.cuda.ttir.tiles import as_bits, bits_of, in_memory
from tilewright.backends.cuda.ttir.values import Extent, Tensor, memory_element
from tilewright.core.expr import Call
from tilewright.core.extents import as_scalar
from tilewright.core.types import TensorType, TileType, TupleType, Type
from tilewright.dtypes import INT64
from tilewright.ops.indices import pattern_of
from tilewright.ops.row_gather import FIT
from tilewright.records import record

TILED = "load tiles of it and work on these, or give it extents that are known when it is compiled"
TOGETHER = 1024
"""How many elements are gone through at once."""

Places = Sequence[Value]
"""Where along each axis elements lie."""


@record
class Work:
    """What an op goes through, and what it does for elements of that: where they lie, and which of them there are."""

    shape: Sequence[Extent]
    each: Callable[[Places, Value], None]


Plan = Callable[[Kernel, Call, Bound, Tensor], Work]
"""Says what there is to do, given the tensor that the op gives back."""

PLANS: dict[str, tuple[str, Plan]] = {}
"""What writes each op, and the operand that it changes and gives back; none where it gives back a new tensor."""


def plan(name: str, changes: str = "") -> Callable[[Plan], Plan]:
    """Sign in the work of an op."""

    def sign(function: Plan) -> Plan:
        PLANS[name] = changes, function
        RECIPES[name] = _in_a_kernel
        return function

    return sign


def _in_a_kernel(k: Kernel, call: Call, bound: Bound) -> Tensor | tuple[Tensor, ...]:
    if isinstance(call.type, TupleType):
        return _compared(k, call, bound)
    changes, planned = PLANS[call.op.name]
    made = bound[changes] if changes else _new(k, call, call.type)
    work = planned(k, call, bound, made)
    t, turn = k.t, k.t.fresh(I64)
    low, high, step = (extents.held(t, end) for end in (0, product(k, work.shape), TOGETHER))
    k.barrier()
    with t.block(f"scf.for {turn} = {low} to {high} step {step} : i64 {{"):
        _one_turn(k, work, turn)
    k.barrier()
    return made


def _compared(k: Kernel, call: Call, bound: Bound) -> tuple[Tensor, ...]:
    """Return the places of elements that compare, and how many there are: of a tile that is all of a tensor."""
    assert isinstance(call.type, TupleType)
    made = [_new(k, call, each) for each in call.type.elements]
    places, counts = (TileType(shape, each.dtype, shape) for each in made if (shape := static(each)))
    source: Tensor = bound["input"]
    shape = static(source)
    if len(shape) != len(source.shape):
        raise refused(f"`{call.op.name}` of a tensor whose extents only the running program knows", call.span, TILED)
    found = compared(k, loaded(k, source, TileType(shape, source.dtype, shape)), bound, places, counts)
    for tensor, tile in zip(made, found, strict=True):
        live = live_of(k, tile.value.shape, tile.valid)
        written(k, tensor, places_in(k, tensor, tile.value.shape, (0, 0)), tile.value, live)
    return tuple(made)


def static(tensor: Tensor) -> tuple[int, ...]:
    """Return the extents of a tensor that are known."""
    return tuple(extent for extent in tensor.shape if isinstance(extent, int))


def _new(k: Kernel, call: Call, type_: Type) -> Tensor:
    assert isinstance(type_, TensorType)
    known = [extent for extent in type_.shape if extent is not None]
    wanted = k.indices([k.scalar(as_scalar(extent)) for extent in known])
    if len(wanted) != len(type_.shape) or not all(map(k.is_given, wanted)):
        raise refused(f"`{call.op.name}` inside a kernel, whose extents are computed there,", call.span, TILED)
    return temporary(k, wanted, type_.dtype)


def _one_turn(k: Kernel, work: Work, first: Value) -> None:
    """Write what is done for the elements from a number on."""
    t = k.t
    numbers = t.simple("arith.addi", extents.positions(t, (TOGETHER,), 0), t.splat(first, (TOGETHER,)))
    count = t.splat(extents.held(t, product(k, work.shape)), numbers.shape)
    live = t.compare("cmpi slt", numbers, count)
    safe = t.select(live, numbers, t.integer(0, I64, numbers.shape))
    sizes = [extents.most(t, 1, extent) for extent in work.shape]
    work.each(split(t, safe, sizes), live)


def _number(k: Kernel, tensor: Tensor, places: Places, live: Value) -> Value:
    """Return integers of a tensor as 64 bits."""
    found = fetched(k, tensor, addresses(k, tensor, places), live)
    return as_element(k.t, found, tensor.dtype, INT64)


def _moved(k: Kernel, source: Tensor, come: Places, target: Tensor, go: Places, live: Value) -> None:
    """Write elements of a tensor to another, converted where types differ."""
    value = fetched(k, source, addresses(k, source, come), live)
    given = in_memory(k, as_element(k.t, value, source.dtype, target.dtype), target.dtype)
    written(k, target, addresses(k, target, go), given, live)


def _only(k: Kernel, place: Value, live: Value) -> Value:
    return k.t.select(live, place, k.t.integer(0, I64, place.shape))


@plan("tensor.gather")
def _gather(k: Kernel, call: Call, bound: Bound, made: Tensor) -> Work:
    source: Tensor = bound["input"]
    if bound["index"] is None:
        return _every(k, call, bound, made)
    index: Tensor = bound["index"]
    axis = int(bound["dim"]) % len(source.shape)
    fits = _is_smaller(k, call, index.shape, source.shape, axis)

    def each(places: Places, live: Value) -> None:
        live = k.t.simple("arith.andi", live, k.t.splat(fits, live.shape))
        number = _number(k, index, places, live)
        there = inside(k, call, number, live, source.shape[axis], "index")
        come = [_only(k, number, there) if a == axis else place for a, place in enumerate(places)]
        _moved(k, source, come, made, places, there)

    return Work(index.shape, each)


def _is_smaller(k: Kernel, call: Call, want: Sequence[Extent], have: Sequence[Extent], but: int) -> Value:
    """Return whether an index is no larger than what it points into along other axes; else an error is noted."""
    t, found = k.t, k.t.constant("true", "i1")
    for axis, (a, b) in enumerate(zip(want, have, strict=True)):
        if axis != but and a != b and not (isinstance(a, int) and isinstance(b, int)):
            fits = t.compare("cmpi sle", extents.held(t, a), extents.held(t, b))
            k.fail(negated(t, fits), f"axis {axis}: an index is larger than an input", call.span)
            found = t.simple("arith.andi", found, fits)
    return found


def _every(k: Kernel, call: Call, bound: Bound, made: Tensor) -> Work:
    """Return the work of columns that a pattern takes, side by side."""
    t, source, pattern = k.t, bound["input"], pattern_of(bound["mask_pattern"])
    if not isinstance(source.shape[1], int):
        rest = t.simple("arith.remsi", source.shape[1], t.integer(pattern.step))
        said = f"{pattern.name} takes one of {pattern.step} columns, which must divide them"
        k.fail(t.compare("cmpi ne", rest, t.integer(0)), said, call.span)

    def each(places: Places, live: Value) -> None:
        row, column = places
        step = t.integer(pattern.step, I64, column.shape)
        come = t.simple("arith.addi", t.simple("arith.muli", column, step), t.integer(pattern.first, I64, column.shape))
        bits = bits_of(t, fetched(k, source, addresses(k, source, (row, come)), live))
        written(k, made, addresses(k, made, places), as_bits(t, bits, memory_element(made.dtype)), live)

    return Work(made.shape, each)


@plan("tensor.scatter")
def _scatter(k: Kernel, call: Call, bound: Bound, made: Tensor) -> Work:
    if bound["index"] is None:
        return _between(k, bound, made)
    t, target, index, source = k.t, bound["input"], bound["index"], bound["src"]
    _is_smaller(k, call, index.shape, target.shape, -1)

    def each(places: Places, live: Value) -> None:
        row, column = places
        start = fetched(k, target, addresses(k, target, places), live)
        own = t.simple("arith.andi", live, t.compare("cmpi slt", row, _held(k, index.shape[0], row)))
        safe = _only(k, row, own)

        def later(turn: Value, kept: Value) -> Value:
            at = (safe, t.splat(turn, row.shape))
            number = _number(k, index, at, own)
            there = inside(k, call, number, own, target.shape[1], "index")
            hit = t.simple("arith.andi", there, t.compare("cmpi eq", number, column))
            return t.select(hit, fetched(k, source, addresses(k, source, at), hit), kept)

        value = _loop(k, index.shape[1], start, later)
        written(k, made, addresses(k, made, places), in_memory(k, value, made.dtype), live)

    return Work(made.shape, each)


def _held(k: Kernel, extent: Extent, like: Value) -> Value:
    return k.t.splat(extents.held(k.t, extent), like.shape)


def _loop(k: Kernel, count: Extent, start: Value, body: Callable[[Value, Value], Value], first: Extent = 0) -> Value:
    """Return what a value becomes around a loop."""
    t = k.t
    low, high, by = (extents.held(t, end) for end in (first, count, 1))
    made, kept, turn = t.fresh(start.element, start.shape), t.fresh(start.element, start.shape), t.fresh(I64)
    head = f"{made} = scf.for {turn} = {low} to {high} step {by} iter_args({kept} = {start}) -> ({kept.type}) : i64 {{"
    with t.block(head):
        found = body(turn, kept)
        t.do(f"scf.yield {found} : {found.type}")
    return made


def _between(k: Kernel, bound: Bound, made: Tensor) -> Work:
    """Return the work of columns put where a pattern takes them, between those of another matrix."""
    t, source, target, pattern = k.t, bound["input"], bound["dst"], pattern_of(bound["mask_pattern"])

    def each(places: Places, live: Value) -> None:
        row, column = places
        apart = t.simple("arith.subi", column, t.integer(pattern.first, I64, column.shape))
        step = t.integer(pattern.step, I64, column.shape)
        is_own = t.compare("cmpi eq", t.simple("arith.remsi", apart, step), t.integer(0, I64, apart.shape))
        is_own = t.simple("arith.andi", is_own, t.compare("cmpi sge", apart, t.integer(0, I64, apart.shape)))
        own = t.simple("arith.andi", live, is_own)
        come = (row, _only(k, t.simple("arith.divsi", apart, step), own))
        value = fetched(k, source, addresses(k, source, come), own)
        rest = t.simple("arith.andi", live, negated(t, is_own))
        value = t.select(own, value, fetched(k, target, addresses(k, target, places), rest))
        written(k, made, addresses(k, made, places), in_memory(k, value, made.dtype), live)

    return Work(made.shape, each)


@plan("tensor.scatter_update", changes="input")
def _scatter_update(k: Kernel, call: Call, bound: Bound, made: Tensor) -> Work:
    """Go through the rows that are given: one that a later index names again is left out."""
    t, index, source = k.t, bound["index"], bound["src"]
    axes = 1 if len(made.shape) == 2 else 2
    count = product(k, index.shape)

    def named(number: Value, live: Value) -> Value:
        return _number(k, index, split(t, number, [extents.most(t, 1, extent) for extent in index.shape]), live)

    def each(places: Places, live: Value) -> None:
        heads = places[:axes]
        number = (
            heads[0]
            if axes == 1
            else t.simple("arith.addi", t.simple("arith.muli", heads[0], _held(k, source.shape[1], heads[0])), heads[1])
        )
        row = named(number, live)
        there = inside(k, call, row, live, product(k, made.shape[:axes]), "index")

        def again(turn: Value, kept: Value) -> Value:
            later = t.splat(turn, row.shape)
            same = t.compare("cmpi eq", named(later, live), row)
            after = t.compare("cmpi sgt", later, number)
            return t.simple("arith.ori", kept, t.simple("arith.andi", same, after))

        replaced = _loop(k, count, t.constant("false", "i1", row.shape), again)
        stays = t.simple("arith.andi", there, negated(t, replaced))
        go = split(t, _only(k, row, stays), [extents.most(t, 1, extent) for extent in made.shape[:axes]])
        _moved(k, source, places, made, [*go, *places[axes:]], stays)

    return Work(source.shape, each)


@plan("tensor.paged_gather")
def _paged(k: Kernel, call: Call, bound: Bound, made: Tensor) -> Work:
    t, source, indices, table = k.t, bound["src"], bound["indices"], bound["block_table"]
    asked, blocks = product(k, indices.shape), product(k, table.shape)
    size, offset = int(bound["block_size"]), k.index(bound["col_off"])
    fits = _inside_columns(k, call, source, offset, int(bound["size"]))
    _check_count(k, call, asked, int(bound["max_indices"]))

    def each(places: Places, live: Value) -> None:
        row, column = places[::-1] if bound["is_trans"] else places
        own = t.simple("arith.andi", live, t.compare("cmpi slt", row, _held(k, asked, row)))
        own = t.simple("arith.andi", own, t.splat(fits, own.shape))
        block = t.integer(size, I64, row.shape)
        number = _number(k, indices, _in_line(k, indices, _only(k, row, own)), own)
        there = inside(k, call, number, own, extents.times(t, blocks, size), "indices")
        number = _only(k, number, there)
        found = _number(k, table, _in_line(k, table, t.simple("arith.divsi", number, block)), there)
        place = t.simple("arith.addi", t.simple("arith.muli", found, block), t.simple("arith.remsi", number, block))
        there = inside(k, call, place, there, source.shape[0], "block_table")
        moved = t.simple("arith.addi", column, _held(k, offset, column))
        value = fetched(k, source, addresses(k, source, (_only(k, place, there), _only(k, moved, there))), there)
        written(k, made, addresses(k, made, places), in_memory(k, value, made.dtype), live)

    return Work(made.shape, each)


def _in_line(k: Kernel, tensor: Tensor, number: Value) -> Places:
    """Return where elements of a list lie, which may be the only row of a matrix."""
    return (*(k.t.integer(0, I64, number.shape) for _ in tensor.shape[:-1]), number)


def _inside_columns(k: Kernel, call: Call, source: Tensor, offset: Extent, size: int) -> Value:
    """Return whether columns are there; that they are not is noted as an error."""
    t = k.t
    first, last = extents.held(t, offset), extents.held(t, extents.minus(t, source.shape[1], size))
    fits = t.simple("arith.andi", t.compare("cmpi sge", first, t.integer(0)), t.compare("cmpi sle", first, last))
    k.fail(negated(t, fits), "columns that are gathered lie outside their tensor", call.span)
    return fits


def _check_count(k: Kernel, call: Call, asked: Extent, most: int) -> None:
    if not isinstance(asked, int):
        k.fail(k.t.compare("cmpi sgt", asked, k.t.integer(most)), f"more indices than max_indices, {most}", call.span)


@plan("tensor.gather_row", changes="dst")
def _gather_row(k: Kernel, call: Call, bound: Bound, made: Tensor) -> Work:
    t, source = k.t, bound["src"]
    size = k.indices(bound["valid_shape"] if bound["valid_shape"] is not None else bound["shapes"])
    come, go, turned = k.indices(bound["src_offset"]), k.indices(bound["dst_offset"]), bool(bound["transpose"])
    fits = t.constant("true", "i1")
    for tensor, starts, sizes in ((source, come, size), (made, go, size[::-1] if turned else size)):
        for start, count, extent in zip(starts, sizes, tensor.shape, strict=True):
            first = t.compare("cmpi sge", extents.held(t, start), t.integer(0))
            last = extents.held(t, extents.plus(t, start, count))
            fit = t.simple("arith.andi", first, t.compare("cmpi sle", last, extents.held(t, extent)))
            fits = t.simple("arith.andi", fits, fit)
    for want, most in zip(size, k.indices(bound["shapes"]), strict=True):
        fits = t.simple("arith.andi", fits, t.compare("cmpi ule", extents.held(t, want), extents.held(t, most)))
    k.fail(negated(t, fits), f"a window does not fit\n{FIT}", call.span)

    def each(places: Places, live: Value) -> None:
        there = t.simple("arith.andi", live, t.splat(fits, live.shape))

        def away(starts: Sequence[Extent], own: Places) -> Places:
            return [t.simple("arith.addi", place, _held(k, s, place)) for s, place in zip(starts, own, strict=True)]

        to = [_only(k, place, there) for place in away(go, places[::-1] if turned else places)]
        _moved(k, source, [_only(k, place, there) for place in away(come, places)], made, to, there)

    return Work([extents.most(t, 0, extent) for extent in size], each)
