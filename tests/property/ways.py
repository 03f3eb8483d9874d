"""Ways: how each op of the registry comes into a random program, or why it does not.

Random statements alone reach some ops rarely, since operands have to fit by chance. A way makes what its op needs, and
what the op gives is written where it can be seen. Ops of the families need no way of their own: the roles of their
parameters say how to call them, so a new op of a family takes part by being declared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from property import axis_ways as axis_ways
from property import generated_ways as generated_ways
from property import indexed_ways as indexed_ways
from property import scopes
from property.kernels import FAMILIES, arguments_of, spelled
from property.mask_ways import masked_load, masked_store
from property.operands import MODES, Shape, land, number, operand, some_dtype, some_shape, stored, tensor_of, tile_of
from property.values import Value, dtype_of, is_static_tensor, is_whole, shape_of
from property.way import WAYS, called, cut_short, way
from property.writer import DTYPES, Plane, Writer

from tilewright import dtypes as dt
from tilewright.core.op import OPS, Kind, Op
from tilewright.core.types import ScalarType
from tilewright.dtypes import DataType
from tilewright.ops.declare import NUMBERS as SEEN

PIPED = "joins two functions of a group: tests/unit/test_pipes.py has programs of them"

RANKED = "needs ranks to meet: tests/property/test_ranks.py has programs of them"

LEFT_OUT: dict[str, str] = {
    "tensor.get_block_idx": "the front end writes tile.get_block_idx",
    "tensor.get_block_num": "the front end writes tile.get_block_num",
    "tensor.get_subblock_idx": "the front end writes tile.get_subblock_idx",
    "system.print_value": "writes to standard output: it has tests of its own",
    "system.device_assert": "stops a program, or is not there: it has tests of its own",
    **dict.fromkeys(
        ("system.tpush_to_aic", "system.tpush_to_aiv", "system.tpop_from_aic", "system.tpop_from_aiv"), PIPED
    ),
    **dict.fromkeys(("system.aic_initialize_pipe", "system.aiv_initialize_pipe"), "declares what needs no declaration"),
    **dict.fromkeys(("system.tfree_to_aic", "system.tfree_to_aiv"), "frees what is freed anyway"),
    **dict.fromkeys(("system.reserve_buffer", "system.import_peer_buffer"), "gives a number that means nothing here"),
    "system.set_ffts": "takes a workspace that nothing is written to: it has tests of its own",
    "system.syncall": "makes blocks wait for each other: it has tests of its own",
    **dict.fromkeys(
        ("prefetch.make_context", "prefetch.async_prefetch", "prefetch.session", "prefetch.wait"),
        "is a hint that no value depends on: nothing of it is left in native code",
    ),
    **{name: RANKED for name in OPS if name.startswith("distributed.")},
    "system.available_thread_count": "is not the same everywhere: it has tests of its own",
    "system.task_invalid": "only orders tasks, which run in order anyway: nothing of it is left in native code",
}
"""Ops that random programs do not use, with the reason."""


def covered() -> list[str]:
    """Return the ops that random programs use."""
    taken = (name for name, op in OPS.items() if name in WAYS or (op.spec.family in FAMILIES and name not in LEFT_OUT))
    return sorted(taken)  # ops are declared in the order in which modules are imported


def use(w: Writer, name: str) -> Value | None:
    """Write a call of an op and return what it gives."""
    return WAYS.get(name, _family)(w, OPS[name])


def show(w: Writer, name: str) -> None:
    """Write a call of an op inside a kernel, and its result where that matters."""
    value = use(w, name)
    if value is not None:
        land(w, value)


def anything(w: Writer) -> None:
    """Write a call of whatever op may stand here."""
    names = [n for n in covered() if w.plane is Plane.KERNEL or OPS[n].spec.control_plane]
    name = w.pick(names)
    show(w, name) if w.plane is Plane.KERNEL and w.chance(50) else use(w, name)


def _family(w: Writer, op: Op) -> Value | None:
    """Call an op by the roles of its parameters, on operands made for it."""
    for _ in range(8):
        shape, dtype = some_shape(w), some_dtype(w, op.spec.accepts)
        pool = [operand(w, op.kind, shape, dtype) for _ in range(2)]
        first = cut_short(w, pool[0]) if op.kind is Kind.TILE and w.chance(25) else pool[0]
        given = arguments_of(w, op.spec, pool, first)
        made = called(w, op, *given) if given else None
        if made is not None:
            return made
    return None


# Elements: chosen, compared, converted


@way("tile.expands", "tensor.expands")
def _expands(w: Writer, op: Op) -> Value | None:
    target = operand(w, op.kind, some_shape(w), some_dtype(w, op.spec.accepts))
    return called(w, op, target.name, w.scalar(dtype_of(target)))


@way("tile.cmp", "tensor.cmp")
def _cmp(w: Writer, op: Op) -> Value | None:
    shape, dtype = some_shape(w), some_dtype(w, op.spec.accepts)
    lhs, other = operand(w, op.kind, shape, dtype), some_dtype(w, op.spec.accepts) if w.chance(40) else dtype
    meets = tuple(w.pick((extent, extent, 1)) for extent in shape)
    if w.chance(40):
        return called(w, op, lhs.name, w.scalar(dtype), f"cmp_type={w.number(0, 5)}")
    sides = lhs.name, operand(w, op.kind, meets, other).name
    return called(w, op, *(sides if w.chance(70) else sides[::-1]), f"cmp_type={w.number(0, 5)}")


@way("tile.sel", "tile.sels")
def _sel(w: Writer, op: Op) -> Value | None:
    shape, dtype = some_shape(w), some_dtype(w, op.spec.accepts)
    mask = _cmp_of(w, shape)
    lhs = tile_of(w, shape, dtype)
    other = tile_of(w, shape, dtype).name if op.spec.name == "sel" else f"scalar={w.scalar(dtype)}"
    return called(w, op, mask.name, lhs.name, other)


def _cmp_of(w: Writer, shape: Shape) -> Value:
    if w.chance(40):
        return tile_of(w, shape, dt.BOOL)
    higher = tuple(extent + w.number(0, 2) for extent in shape) if w.chance(30) else shape
    tested = tile_of(w, higher, w.pick([d for d in DTYPES if d != dt.BOOL]))
    mask = w.make(f"pl.cmp({tested.name}, {w.literal(dtype_of(tested))}, cmp_type={w.number(0, 5)})", "m", keep=True)
    assert mask is not None
    return mask


@way("tile.cast", "tensor.cast")
def _cast(w: Writer, op: Op) -> Value | None:
    source = operand(w, op.kind, some_shape(w), w.pick(DTYPES))
    target = w.pick([d for d in DTYPES if d != dtype_of(source)])
    return called(w, op, source.name, f"pl.{target.symbol}", f'mode="{w.pick(MODES)}"')


@way("scalar.cast")
def _cast_scalar(w: Writer, op: Op) -> Value | None:
    source = number(w, w.pick(DTYPES))
    target = w.pick([d for d in DTYPES if d != dtype_of(source)])
    return w.make(f'pl.cast({source.name}, pl.{target.symbol}, mode="{w.pick(MODES)}")', "s", keep=True)


# Products


def _factors(w: Writer, op: Op, rows: int | None = None, batch: Shape = ()) -> tuple[Value, Value, Shape]:
    """Return two matrices that can be multiplied, and the shape of their product."""
    dtype, other = _factor_dtypes(w, op)
    m, k, n = rows or w.pick(w.extents), w.pick(w.extents), w.pick(w.extents)
    return operand(w, op.kind, (*batch, m, k), dtype), operand(w, op.kind, (*batch, k, n), other), (*batch, m, n)


def _factor_dtypes(w: Writer, op: Op) -> tuple[DataType, DataType]:
    """Return the types of two factors; those of tensors need not agree."""
    dtype = some_dtype(w, op.spec.accepts)
    return dtype, some_dtype(w, op.spec.accepts) if op.kind is Kind.TENSOR and w.chance(30) else dtype


def _summed(*factors: Value) -> DataType:
    return dt.FP32 if any(dtype_of(factor).is_float() for factor in factors) else dt.INT32


@way("tile.matmul", "tile.batch_matmul", "tile.gemv")
def _product(w: Writer, op: Op) -> Value | None:
    batch = (w.pick([1, 2, 3]),) if op.spec.name == "batch_matmul" and w.chance(80) else ()
    lhs, rhs, _ = _factors(w, op, 1 if op.spec.name == "gemv" else None, batch)
    return called(w, op, lhs.name, rhs.name, *_phase(w, op))


FLOATS = (dt.FP32, dt.FP16, dt.BF16)
INTEGERS = (dt.INT32, dt.INT16, dt.INT64, dt.UINT8, dt.UINT64)
"""What products may give; a sum of floats as an integer says too little of how accurate it is."""


@way("tensor.matmul")
def _tensor_product(w: Writer, op: Op) -> Value | None:
    (dtype, other), flags = _factor_dtypes(w, op), (w.chance(40), w.chance(40))
    m, k, n = (w.pick(w.extents) for _ in range(3))
    lhs = tensor_of(w, (k, m) if flags[0] else (m, k), dtype)
    rhs = tensor_of(w, (n, k) if flags[1] else (k, n), other)
    results = FLOATS if _summed(lhs, rhs).is_float() or w.chance(30) else INTEGERS
    wanted = f"out_dtype=pl.{w.pick(results).symbol}"
    given = [wanted] * w.chance(60) + [f"a_trans={flags[0]}", f"b_trans={flags[1]}"]
    return called(w, op, lhs.name, rhs.name, *given)


@way("tile.matmul_acc", "tensor.matmul_acc", "tile.batch_matmul_acc", "tile.gemv_acc")
def _sum_of_products(w: Writer, op: Op) -> Value | None:
    batch = (w.pick([1, 2, 3]),) if op.spec.name != "gemv_acc" and w.chance(40) else ()
    lhs, rhs, shape = _factors(w, op, 1 if op.spec.name == "gemv_acc" else None, batch)
    more = (w.pick([1, 2]),) if batch and w.chance(30) else ()
    acc = operand(w, op.kind, (*more, *shape), _summed(lhs, rhs))
    acc = cut_short(w, acc) if op.kind is Kind.TILE and w.chance(25) else acc
    w.added_to |= {tile.name for tile in w.tiles() if dtype_of(tile) == dtype_of(acc)}
    start = [f"init_cond={w.condition()}"] if op.spec.name == "matmul_acc" and not batch and w.chance(40) else []
    return called(w, op, acc.name, lhs.name, rhs.name, *start, *_phase(w, op))


def _phase(w: Writer, op: Op) -> list[str]:
    phases = ["unspecified", "partial", "final"]
    return [f'acc_phase="{w.pick(phases)}"'] if op.spec.name.startswith("gemv") and w.chance(50) else []


@way("tile.matmul_bias", "tile.gemv_bias")
def _product_and_bias(w: Writer, op: Op) -> Value | None:
    lhs, rhs, shape = _factors(w, op, 1 if op.spec.name == "gemv_bias" else None)
    bias = tile_of(w, (1, shape[-1]), _summed(lhs))
    return called(w, op, lhs.name, rhs.name, bias.name, *_phase(w, op))


@way("tile.matmul_mx", "tile.matmul_mx_acc", "tile.matmul_mx_bias")
def _scaled_product(w: Writer, op: Op) -> Value | None:
    """Multiply small floats with exponents that keep sums within reach of how accurate they are."""
    m, k, n = 16 * w.number(1, 2), 64 * w.number(1, 2), 32

    def some(name: str, rows: int, columns: int) -> str:
        number = w.pick([0.5, 1.0, 2.0]) if name == "FP8E8M0" else w.pick([-1.5, 0.25, 1.0])
        made = w.make(f"pl.cast(pl.tile.full([{rows}, {columns}], dtype=pl.FP32, value={number}), pl.{name})", "t")
        assert made is not None
        return made.name

    lhs, rhs = some("FP8E4M3FN", m, k), some("FP8E4M3FN", k, n)
    if w.chance(40):
        rows, short, columns = (w.index(high)[0] for high in (m, 31, n))
        lhs, rhs = _as_far_as(w, lhs, rows, f"{k} - {short}"), _as_far_as(w, rhs, f"{k} - {short}", columns)
    factors = [lhs, some("FP8E8M0", m, k // 32), rhs, some("FP8E8M0", k // 32, n)]
    if op.spec.name == "matmul_mx":
        return called(w, op, *factors)
    other = tile_of(w, (m if op.spec.name.endswith("acc") else 1, n), dt.FP32).name
    return called(w, op, *([other, *factors] if op.spec.name.endswith("acc") else [*factors, other]))


def _as_far_as(w: Writer, tile: str, rows: str, columns: str) -> str:
    """Return a tile of which only so many rows and columns hold data."""
    made = w.make(f"pl.set_validshape({tile}, {rows}, {columns})", "t", keep=True)
    return made.name if made is not None else tile


# Memory


@way("tile.load")
def _load(w: Writer, op: Op) -> Value | None:
    if w.chance(30):
        return masked_load(w)
    shape = some_shape(w)
    source = tensor_of(w, shape, w.pick(DTYPES))
    have = shape_of(source)
    offsets = [w.index(extent)[0] for extent in have]
    valid = f", valid_shape=[{', '.join(w.index(s)[0] for s in shape)}]" if w.chance(30) else ""
    return w.make(f"pl.load({source.name}, [{', '.join(offsets)}], {list(shape)}{valid}, clamp=True)", "t", keep=True)


@way("tile.store")
def _store(w: Writer, op: Op) -> Value | None:
    """Store a tile into a new tensor, as it is or in another shape, and read that."""
    tile = tile_of(w, some_shape(w), w.pick(DTYPES))
    shape = shape_of(tile)
    turned = tuple(reversed(shape)) if w.chance(40) else shape
    extra = [w.number(0, 2) for _ in turned]
    wide = [t + e for t, e in zip(turned, extra, strict=True)]
    dtype = dtype_of(tile)
    made = w.make(f"pl.create_tensor({wide}, dtype=pl.{dtype.symbol}, init_value={w.literal(dtype)})", "b")
    assert made is not None
    if turned == shape and w.chance(30):
        masked_store(w, tile, made)
        return made
    offsets = ", ".join(w.index(e)[0] for e in extra)
    shapes = f", shapes={list(turned)}" if turned != shape else ""
    add = ", atomic=pl.AtomicType.Add" if dtype in (dt.FP32, dt.INT32, dt.INT16) and w.chance(30) else ""
    w.act(f"pl.store({tile.name}, [{offsets}], {made.name}{shapes}{add})")
    return made


@way("tile.move")
def _move(w: Writer, op: Op) -> Value | None:
    tile = tile_of(w, some_shape(w), w.pick(DTYPES))
    return called(w, op, tile.name, f"target_memory=pl.Mem.{w.pick(['Vec', 'Left', 'Right', 'Mat'])}")


@way("tensor.create")
def _create(w: Writer, op: Op) -> Value | None:
    return stored(w, tile_of(w, some_shape(w), w.pick(DTYPES))) if w.plane is Plane.KERNEL else None


@way("tile.create")
def _create_tile(w: Writer, op: Op) -> Value | None:
    """Make a tile nobody has written, and write all of it."""
    tile = tile_of(w, some_shape(w), w.pick(DTYPES))
    text = f"pl.create_tile({list(shape_of(tile))}, dtype=pl.{dtype_of(tile).symbol})"
    zeros = ", ".join("0" for _ in shape_of(tile))
    return w.make(f"pl.assemble({text}, {tile.name}, [{zeros}])", keep=True)


@way("tile.full", "tensor.full")
def _full(w: Writer, op: Op) -> Value | None:
    dtype = w.pick(DTYPES)
    return called(w, op, str(list(some_shape(w))), f"dtype=pl.{dtype.symbol}", f"value={w.scalar(dtype)}")


@way("tile.zeros", "tile.ones")
def _zeros(w: Writer, op: Op) -> Value | None:
    return called(w, op, str(list(some_shape(w))), f"dtype=pl.{w.pick(DTYPES).symbol}")


@way("tile.flip", "tile.roll")
def _turned(w: Writer, op: Op) -> Value | None:
    source = operand(w, op.kind, some_shape(w), w.pick(DTYPES))
    axis, rank = w.number(0, 2), len(shape_of(source))
    if op.spec.name == "roll":
        return called(w, op, source.name, str(w.number(-9, 9)), f"axis={axis % rank - rank}")
    source = cut_short(w, source) if w.chance(40) else source
    return called(w, op, source.name, w.pick([f"axis={axis % rank - rank}", ""]))


@way("tile.read", "tensor.read")
def _read(w: Writer, op: Op) -> Value | None:
    source = _held(w, op.kind)
    if source is None:
        return None
    indices = ", ".join(w.index(extent - 1)[0] for extent in shape_of(source))
    return w.make(f"pl.read({source.name}, [{indices}])", "s", keep=True)


def _held(w: Writer, kind: Kind) -> Value | None:
    """Return something to read from; outside a kernel it has to be there."""
    if w.plane is Plane.KERNEL:
        return operand(w, kind, some_shape(w), w.pick(DTYPES))
    found = _static_tensors(w)
    return w.pick(found) if found and kind is Kind.TENSOR else None


def _static_tensors(w: Writer) -> list[Value]:
    return [t for t in w.tensors() if is_static_tensor(t) and is_whole(t) and shape_of(t) and all(shape_of(t))]


@way("tile.write", "tensor.write")
def _write(w: Writer, op: Op) -> Value | None:
    if w.plane is not Plane.KERNEL:
        return None
    tile = tile_of(w, some_shape(w), w.pick(DTYPES))
    target = stored(w, tile) if op.kind is Kind.TENSOR else tile
    indices = ", ".join(w.index(extent - 1)[0] for extent in shape_of(target))
    text = f"pl.write({target.name}, [{indices}], {w.scalar(dtype_of(target))})"
    if op.kind is Kind.TILE:
        return w.make(text, keep=True)
    w.act(text)
    return target


@way("tensor.dim")
def _dim(w: Writer, op: Op) -> Value | None:
    """Ask for the extent of a view that only the running program knows."""
    sources, count = _static_tensors(w), _runtime_count(w)
    if not sources or count is None:
        return None
    source = w.pick(sources)
    size = w.make(f"pl.min(pl.max({count.name}, 0), {shape_of(source)[0]})", "i", keep=True)
    assert size is not None
    shape = ", ".join([size.name, *(str(w.number(1, extent)) for extent in shape_of(source)[1:])])
    view = w.make(f"pl.slice({source.name}, [{shape}], [{', '.join('0' for _ in shape_of(source))}])", "w")
    if view is None:
        return None
    w.values[view.name] = replace(view, roots=source.roots, writable=False, packed=False)
    return w.make(f"pl.tensor.dim({view.name}, 0)", "s", keep=True)


def _runtime_count(w: Writer) -> Value | None:
    """Return a number that the front end knows nothing about."""
    if w.plane is Plane.KERNEL:
        read = w.make(f"pl.read({tile_of(w, (1, 1), dt.INT32).name}, [0, 0])", "s", keep=True)
        return w.make(f"pl.cast({read.name}, pl.INDEX)", "s", keep=True) if read else None
    found = w.all(lambda v: v.type == ScalarType(dt.INDEX) and v.fixed and v.literal is None and v.reach is None)
    return w.pick(found) if found else None


# Shape


@way("tile.slice", "tensor.slice")
def _slice(w: Writer, op: Op) -> Value | None:
    source = _held(w, op.kind)
    if source is None:
        return None
    sizes = [w.number(1, extent) for extent in shape_of(source)]
    if op.kind is Kind.TENSOR and w.plane is Plane.KERNEL and w.chance(40):
        return _chosen_window(w, source, sizes)
    sizes[0] = 1 if w.chance(30) else sizes[0]
    offsets = [w.index(e - s)[0] for e, s in zip(shape_of(source), sizes, strict=True)]
    dropped = ", drop_dims=[0]" if sizes[0] == 1 and len(sizes) > 1 and w.chance(60) else ""
    return _viewed(w, source, f"pl.slice({source.name}, {sizes}, [{', '.join(offsets)}]{dropped})")


def _chosen_window(w: Writer, source: Value, sizes: Sequence[int]) -> Value | None:
    """Choose among windows of one or two tensors, in a branch or from turn to turn of a loop that reads them."""
    count = _runtime_count(w)
    other = tensor_of(w, shape_of(source), dtype_of(source)) if w.chance(60) else source
    room = [extent - size for extent, size in zip(shape_of(source), sizes, strict=True)]
    zeros, offsets = ", ".join("0" for _ in sizes), [w.index(most)[0] for most in room]
    first = w.make(f"pl.slice({source.name}, {list(sizes)}, [{', '.join(offsets)}])", "w", keep=True)
    if first is None or count is None:
        return None
    again = [w.index(most)[0] for most in room]
    if w.chance(40):
        with w.block(f"if {count.name} > {w.number(0, 2)}:"):
            w.line(f"{first.name} = pl.slice({other.name}, {list(sizes)}, [{', '.join(again)}])")
    else:
        sums, turn = stored(w, tile_of(w, (*sizes,), dtype_of(source))), w.fresh("i")
        again[0] = f"pl.min({turn}, {room[0]})"
        with w.block(f"for {turn} in pl.range(pl.max({count.name}, 0) % 4):"):
            loaded = w.fresh("t")
            w.line(f"{loaded} = pl.load({first.name}, [{zeros}], {list(sizes)})")
            w.line(f"{sums.name} = pl.store({loaded}, [{zeros}], {sums.name})")
            w.line(f"{first.name} = pl.slice({other.name}, {list(sizes)}, [{', '.join(again)}])")
    roots, readable = source.roots | other.roots, source.readable and other.readable
    made = replace(first, roots=roots, readable=readable, writable=False, packed=False)
    w.values[made.name] = made
    return made


@way("tile.strided", "tensor.strided")
def _strided(w: Writer, op: Op) -> Value | None:
    source = _held(w, op.kind)
    if source is None:
        return None
    return _viewed(w, source, f"pl.strided({source.name}, {[w.number(1, 3) for _ in shape_of(source)]})")


def _viewed(w: Writer, source: Value, text: str) -> Value | None:
    made = w.make(text, "w", keep=True)
    if made is not None and source.roots:
        made = replace(made, roots=source.roots, readable=source.readable, writable=False, packed=False)
        w.values[made.name] = made
    return made


@way("tile.reshape", "tensor.reshape")
def _reshape(w: Writer, op: Op) -> Value | None:
    source = _held(w, op.kind)
    if source is not None and not source.packed and w.plane is Plane.KERNEL:
        source = stored(w, tile_of(w, shape_of(source), dtype_of(source)))
    if source is None or not source.packed:
        return None
    shape = shape_of(source)
    size = 1
    for extent in shape:
        size *= extent
    forms: Sequence[Sequence[int]] = [[size], [1, size], [size, 1], [*shape, 1], [1, *shape], shape[::-1]]
    if op.kind is Kind.TILE and w.chance(40):
        source, forms = cut_short(w, source), [[*shape, 1], [1, *shape], [*shape[:1], 1, *shape[1:]]]
    return _viewed(w, source, f"pl.reshape({source.name}, {list(w.pick(forms))})")


@way("tensor.view")
def _view(w: Writer, op: Op) -> Value | None:
    source = _held(w, op.kind)
    if source is None or len(shape_of(source)) < 2 or (not source.packed and w.chance(50)):
        return None
    *rest, rows, columns = shape_of(source)
    forms = [f"{[*rest, columns, rows]}", f"{[*rest, 1, rows * columns]}, layout=pl.DN"] if source.packed else []
    return _viewed(w, source, f"pl.tensor.view({source.name}, {w.pick([*forms, 'layout=pl.DN'])})")


REINTERPRETED = tuple(d for d in DTYPES if d in SEEN)


@way("tile.reinterpret_view", "tensor.reinterpret_view")
def _reinterpret(w: Writer, op: Op) -> Value | None:
    """See bytes as other elements; as integers, since what is computed from any bytes as floats is not told apart."""
    if w.plane is not Plane.KERNEL:
        return None
    dtype, target = w.pick(REINTERPRETED), w.pick([d for d in REINTERPRETED if d.is_int()])
    *rows, columns = some_shape(w, (2, 2, 3))
    if dtype == target:
        return None
    columns = 8 * (columns % 5 + 1)
    if op.kind is Kind.TENSOR:
        source = stored(w, tile_of(w, (*rows, columns), dtype))
        return _viewed(w, source, f"pl.reinterpret_view({source.name}, pl.{target.symbol})")
    rows, ends = (rows[1:], (columns, 1)) if w.chance(25) else (rows, (columns,))
    shape = (*rows, *ends)
    source, size = tile_of(w, shape, dtype), dtype.get_byte()
    if w.chance(30):
        count = columns * size // target.get_byte()
        form = w.pick([form for form in ([count], [1, count], [count, 1], [2, count // 2]) if prod(form) == count])
        return _viewed(w, source, f"pl.reinterpret_view({source.name}, pl.{target.symbol}, {[*rows, *form]})")
    if w.chance(40):
        source = _cut_beside(w, source, -2 if shape[-1] == 1 else -1)
    return _viewed(w, source, f"pl.reinterpret_view({source.name}, pl.{target.symbol})")


def _cut_beside(w: Writer, tile: Value, axis: int) -> Value:
    """Return a tile of which a part holds data along every axis but one."""
    shape = shape_of(tile)
    sizes = [w.index(extent)[0] if at != axis % len(shape) else str(extent) for at, extent in enumerate(shape)]
    zeros = ", ".join("0" for _ in shape)
    text = f"pl.slice({tile.name}, {list(shape)}, [{zeros}], valid_shape=[{', '.join(sizes)}])"
    return w.make(text, keep=True) or tile


@way("tensor.as_strided")
def _as_strided(w: Writer, op: Op) -> Value | None:
    """Look at the bytes of a new buffer through any type, the elements of the view perhaps on top of each other."""
    if w.plane is not Plane.KERNEL:
        return None
    source, dtype = (w.pick([d for d in DTYPES if d != dt.BOOL]) for _ in range(2))
    buffer = stored(w, tile_of(w, (8 * w.pick(w.extents),), source))
    shape = [w.number(1, 5) for _ in range(w.number(1, 3))]
    strides = [w.number(0, 3) for _ in shape]
    end = (sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + 1) * dtype.get_byte()
    room = shape_of(buffer)[0] * source.get_byte() - end
    if room < 0:
        return None
    offset = f"{dtype.get_byte()} * {w.index(room // dtype.get_byte())[0]}"
    return _viewed(w, buffer, f"pl.tensor.as_strided({buffer.name}, {shape}, {strides}, {offset}, pl.{dtype.symbol})")


@way("tile.transpose", "tensor.transpose", "tile.transpose_view")
def _transpose(w: Writer, op: Op) -> Value | None:
    source = _held(w, op.kind)
    if source is None or len(shape_of(source)) < 2:
        return None
    axes = [] if op.spec.name == "transpose_view" else [str(w.number(0, len(shape_of(source)) - 1)), "-1"]
    return _viewed(w, source, f"{spelled(op.spec, op.kind)}({', '.join([source.name, *axes])})")


@way("tile.assemble", "tensor.assemble")
def _assemble(w: Writer, op: Op) -> Value | None:
    if w.plane is not Plane.KERNEL:
        return None
    tile = tile_of(w, some_shape(w), w.pick(DTYPES))
    into = stored(w, tile) if op.kind is Kind.TENSOR else tile
    sizes, dtype = tuple(w.number(1, extent) for extent in shape_of(into)), dtype_of(into)
    rounds = dtype in (dt.BF16, dt.FP16) and w.chance(50)
    part = tile_of(w, sizes, dt.FP32) if rounds else operand(w, op.kind, sizes, dtype)
    add = op.kind is Kind.TENSOR and not rounds and dtype in (dt.FP32, dt.INT32, dt.INT16) and w.chance(40)
    part = (w.make(f"pl.add({part.name}, {part.name})", keep=True) or part) if add else part
    offsets = ", ".join(w.index(e - s)[0] for e, s in zip(shape_of(into), sizes, strict=True))
    atomic = ", atomic=pl.AtomicType.Add" if add else ""
    text = f"pl.assemble({into.name}, {part.name}, [{offsets}]{atomic})"
    if op.kind is Kind.TILE:
        return w.make(text, keep=True)
    w.act(text)
    return into


@way("tile.aiv_shard", "tensor.aiv_shard")
def _shard(w: Writer, op: Op) -> Value | None:
    rows, columns = some_shape(w, (2,))
    grown = (2 * rows, 2 * columns) if op.kind is Kind.TENSOR else (rows, columns)
    source = operand(w, op.kind, grown, w.pick(DTYPES))
    source = cut_short(w, source) if op.kind is Kind.TILE and w.chance(40) else source
    text = f"{spelled(op.spec, op.kind)}({source.name}, split={w.number(0, 4)}, lane={w.number(0, 1)})"
    return _viewed(w, source, text)


@way("tile.aic_gather", "tensor.aic_gather")
def _gather_lanes(w: Writer, op: Op) -> Value | None:
    shape, dtype = some_shape(w, (2,)), w.pick(DTYPES)
    first, second = (operand(w, op.kind, shape, dtype) for _ in range(2))
    second = cut_short(w, second) if op.kind is Kind.TILE and w.chance(40) else second
    return called(w, op, first.name, second.name, f"split={w.number(0, 4)}")


@way("tile.extract")
def _extract(w: Writer, op: Op) -> Value | None:
    source = tile_of(w, some_shape(w, (2,)), w.pick(DTYPES))
    source = cut_short(w, source) if w.chance(40) else source
    sizes = [w.number(1, extent) for extent in shape_of(source)]
    starts = [w.index(e - s)[0] for e, s in zip(shape_of(source), sizes, strict=True)]
    return called(w, op, source.name, *starts, str(sizes), "target_memory=pl.Mem.Mat")


@way("tensor.expand_clone")
def _expand_clone(w: Writer, op: Op) -> Value | None:
    shape, dtype = some_shape(w, (3,)), some_dtype(w, op.spec.accepts)
    into, axis = stored(w, tile_of(w, shape, dtype)), w.number(0, 2)
    source = tensor_of(w, (*shape[:axis], 1, *shape[axis + 1 :]), dtype)
    w.act(f"pl.expand_clone({source.name}, {into.name})")
    return into


@way("tile.concat", "tensor.concat")
def _concat(w: Writer, op: Op) -> Value | None:
    shape, dtype = some_shape(w), w.pick(DTYPES)
    parts = [operand(w, op.kind, (*shape[:-1], w.pick(w.extents)), dtype).name for _ in range(2)]
    return called(w, op, *parts)


@way("tile.fillpad", "tensor.fillpad", "tile.fillpad_expand", "tensor.fillpad_expand", "tile.fillpad_inplace")
def _fillpad(w: Writer, op: Op) -> Value | None:
    source = operand(w, op.kind, some_shape(w), w.pick(DTYPES))
    source = cut_short(w, source) if op.kind is Kind.TILE else source
    larger = [str([extent + w.number(0, 3) for extent in shape_of(source)])] * (op.spec.name == "fillpad_expand")
    return called(w, op, source.name, *larger, f"pad_value=pl.PadValue.{w.pick(['zero', 'max', 'min'])}")


PARTIAL = [f"{kind}.part_{name}" for kind in ("tile", "tensor") for name in ("add", "mul", "max", "min")]


@way(*PARTIAL)
def _partial(w: Writer, op: Op) -> Value | None:
    shape, dtype = some_shape(w), some_dtype(w, op.spec.accepts)
    first, second = (operand(w, op.kind, shape, dtype) for _ in range(2))
    second = cut_short(w, second) if op.kind is Kind.TILE else second
    first = cut_short(w, first) if op.kind is Kind.TILE and w.chance(40) else first
    return called(w, op, first.name, second.name)


@way("tile.set_validshape", "tensor.set_validshape")
def _set_validshape(w: Writer, op: Op) -> Value | None:
    source = operand(w, op.kind, some_shape(w, (2, 2, 3)), w.pick(DTYPES))
    sizes = [w.index(extent)[0] for extent in shape_of(source)[-2:]]
    cut = called(w, op, source.name, *sizes)
    return cut if cut is None or op.kind is Kind.TILE else _computed(w, cut)


def _computed(w: Writer, tensor: Value) -> Value | None:
    """Return a tile made from a tensor of which only a part holds data; nothing else may know that tensor."""
    forms = [f"pl.fillpad({tensor.name})", f"pl.neg({tensor.name})", f"pl.maximum({tensor.name}, {tensor.name})"]
    given = w.make(w.pick(forms), keep=True) or tensor
    zeros = ", ".join("0" for _ in shape_of(tensor))
    tile = w.make(f"pl.load({given.name}, [{zeros}], {list(shape_of(tensor))}, clamp=True)", "t", keep=True)
    for value in (tensor, given):
        w.values.pop(value.name, None)
    return tile


# Scalars


NUMBERS = (dt.INDEX, dt.INT32, dt.FP32, dt.INT64, dt.UINT8, dt.FP16, dt.BF16, dt.INT8, dt.INT16, dt.UINT32)


def _scalar(w: Writer, op: Op) -> Value | None:
    """Apply a scalar op to two runtime numbers; a divisor is never zero."""
    name, symbol = op.spec.name, op.spec.symbol
    wide = [d for d in NUMBERS if d.is_int()] if _is_bitwise(name) else NUMBERS
    dtype = dt.BOOL if name in ("and_", "or_", "not_") else w.pick(wide if w.plane is Plane.KERNEL else (dt.INDEX,))
    lhs, rhs = number(w, dtype).name, number(w, dtype).name
    if name in ("div", "floordiv", "mod"):
        rhs = f"pl.max({rhs}, {1 if dtype.is_int() else 0.25})"
    if name in ("min", "max"):
        return w.make(f"pl.{name}({lhs}, {rhs})", "s", keep=True)
    is_unary = len(op.spec.parameters) == 1
    return w.make(f"({symbol} {lhs})" if is_unary else f"({lhs} {symbol} {rhs})", "s", keep=True)


def _is_bitwise(name: str) -> bool:
    return name.startswith("bit_") or name in ("shl", "shr", "invert")


WAYS.update({name: _scalar for name, op in OPS.items() if op.spec.family == "scalar"})


# Arrays, blocks, tasks


@way("array.create", "array.update_element", "array.get_element")
def _array(w: Writer, op: Op) -> Value | None:
    """Write a runtime number somewhere into an array, and read another place."""
    dtype = w.pick([dt.INT32, dt.INT64, dt.INT16, dt.UINT8, dt.BOOL] if w.plane is Plane.KERNEL else [dt.INT64])
    made = w.make(f"pl.array.create(4, pl.{dtype.symbol})", "a", keep=True)
    assert made is not None
    for _ in range(w.number(1, 3)):
        w.line(f"{made.name}[{w.index(3)[0]}] = {number(w, dtype if w.plane is Plane.KERNEL else dt.INDEX).name}")
    return made


@way("tile.get_block_idx", "tile.get_block_num", "tile.get_subblock_idx")
def _block(w: Writer, op: Op) -> Value | None:
    return w.make(f"pl.tile.{op.spec.name}()", "s", keep=True)


@way("system.available_cluster_count", "system.available_aiv_count")
def _count(w: Writer, op: Op) -> Value | None:
    return w.make(f"pl.system.{op.spec.name}()", "s", keep=True)


@way("system.task_dummy")
def _task(w: Writer, op: Op) -> Value | None:
    """Let a kernel wait for a task that never was; inside a kernel there is nothing to wait."""
    if w.plane is Plane.CONTROL:
        made = w.make(f"pl.system.{op.spec.name}(deps=[None])", "tid", keep=True)
        assert made is not None
        w.values[made.name] = replace(made, fixed=True)
        scopes.scope(w, deps=f", deps=[{made.name}]")
    return None


@way("system.bar_v", "system.bar_m", "system.bar_all", "system.fence")
def _barrier(w: Writer, op: Op) -> Value | None:
    w.line(f"pl.system.{op.spec.name}()")
    return None


FLAGS = "set_pipe=pl.PipeType.V, wait_pipe=pl.PipeType.S, event_id=0"
ORDERED = {
    "sync_src": FLAGS,
    "sync_dst": FLAGS,
    "sync_set": "{i}, pipe=pl.PipeType.M, ffts_mode=2",
    "sync_wait": '{i}, pipe=pl.PipeType.M, core_type="aiv"',
    "cacheinvalid": "",
}


@way(*(f"system.{name}" for name in ORDERED))
def _order(w: Writer, op: Op) -> Value | None:
    w.line(f"pl.system.{op.spec.name}({ORDERED[op.spec.name].format(i=w.index(13)[0])})")
    return None
