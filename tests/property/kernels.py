"""Kernels: statements that load, compute and store, with ops drawn from the registry.

An op takes part by its family: each parameter is given what its role asks for, and the front end says whether the call
fits. The first tile of a call may be partly valid, since that part decides the result's; the others hold data
everywhere, so that nothing unspecified is ever read.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from property.operands import cast_to, fits, put_tile, some_shape
from property.values import Value, dtype_of, is_static_tensor, is_whole, shape_of
from property.writer import DTYPES, Writer

from tilewright import language as pl
from tilewright.core.enums import MemorySpace
from tilewright.core.op import REQUIRED, Effect, Kind, OpSpec, Parameter, Role, specs
from tilewright.core.types import Extent, TensorType, TileType, show_extent

FAMILIES = ("elementwise", "expansion", "reduction")
"""Families whose members are called by the roles of their parameters alone."""

OTHERS = ("concat", "expands", "fillpad", "transpose_view")
"""Ops outside those families for which the same way of calling works."""


def ordered_specs() -> list[OpSpec]:
    """Return the declared ops in an order that does not depend on which module was imported first."""
    return sorted(specs(), key=lambda spec: (spec.name, spec.kinds[0].value))


def callable_specs(kind: Kind) -> list[OpSpec]:
    """Return the ops of a kind that are called by the roles of their parameters."""
    known = [s for s in ordered_specs() if s.family in FAMILIES or s.name in OTHERS]
    return [s for s in known if kind in s.kinds and s.effect is Effect.PURE]


def spelled(spec: OpSpec, kind: Kind) -> str:
    """Return how a program names an op."""
    name = spec.function.__name__
    return f"pl.{name}" if getattr(pl, name, None) is spec.function else f"pl.{kind.value}.{spec.name}"


KEEPING = ("elementwise", "expansion")
"""Families whose results are valid where their first operand is."""

WHOLE = ("concat",)
"""Ops that read their first operand outside its valid part, too."""


def compute(w: Writer, kind: Kind = Kind.TILE, first: Value | None = None) -> Value | None:
    """Write one op on tiles or tensors and return what it gives, or None where nothing fits.

    With `first`, an op whose result is valid where that operand is.
    """
    pool = w.tiles() if kind is Kind.TILE else [t for t in w.tensors() if is_static_tensor(t) and is_whole(t)]
    if not pool:
        return None
    known = [s for s in callable_specs(kind) if first is None or s.family in KEEPING]
    family = w.pick(sorted({s.family for s in known}))
    spec = w.pick([s for s in known if s.family == family])
    starts = [v for v in pool if is_whole(v)] if spec.name in WHOLE else pool
    for _ in range(3 if starts else 0):
        arguments = arguments_of(w, spec, pool, first or w.pick(starts))
        made = w.make(f"{spelled(spec, kind)}({', '.join(arguments)})", keep=first is not None) if arguments else None
        if made is not None:
            return made
    return None


def arguments_of(w: Writer, spec: OpSpec, pool: Sequence[Value], first: Value) -> list[str]:
    """Return the arguments of a call as text; nothing where a required one cannot be had."""
    shown: list[str] = []
    by_name, is_first = False, True
    for p in spec.parameters:
        if p.role is Role.EITHER and is_first and not shown and w.chance(8):
            text = w.scalar(dtype_of(first))
        elif p.role in (Role.VALUE, Role.EITHER) and is_first:
            text, is_first = first.name, False
        else:
            text = _argument(w, p, pool, first)
        if text:
            shown.append(f"{p.name}={text}" if by_name else text)
        elif p.default is REQUIRED:
            return []
        by_name = by_name or not text
    return shown


def _argument(w: Writer, p: Parameter, pool: Sequence[Value], first: Value) -> str:
    if p.role is Role.NUMBER or (p.role is Role.EITHER and w.chance(40)):
        return w.scalar(dtype_of(first))
    if p.role is Role.ATTRIBUTE and p.name == "high_precision":
        return "True" if w.chance(20) else ""
    if p.role not in (Role.VALUE, Role.EITHER) or (p.default is None and not w.chance(15)):
        return ""
    whole = [v for v in pool if is_whole(v)]
    alike = [v for v in whole if shape_of(v) == shape_of(first)]
    if p.name == "vec" and w.chance(70):
        reductions = [s for s in ordered_specs() if s.family == "reduction"]
        return f"{spelled(w.pick(reductions), Kind.TILE)}({w.pick(alike or whole).name})" if whole else ""
    found = alike if p.role is Role.EITHER and not is_whole(first) or alike and w.chance(60) else whole
    return w.pick(found).name if found else ""


def load(w: Writer) -> None:
    """Load a window of some tensor: at a runtime offset, cut short, or past the end with `clamp`."""
    sources = w.tensors()
    if not sources:
        return
    source = w.pick(sources)
    assert isinstance(source.type, TensorType)
    windows = [_window(w, extent) for extent in source.type.shape]
    offsets, shapes, valid = (", ".join(part) for part in zip(*windows, strict=True))
    options = w.pick(["", "", "", ", clamp=True", ", target_memory=pl.Mem.Mat"])
    if valid != shapes:
        is_open = not all(isinstance(extent, int) for extent in source.type.shape)
        options = f", valid_shape=[{valid}]{', clamp=True' if is_open else options}"
    w.make(f"pl.load({source.name}, [{offsets}], [{shapes}]{options})", "t")


def _window(w: Writer, extent: Extent) -> tuple[str, str, str]:
    """Return offset, size and valid part of a window along one axis."""
    size = w.pick(w.extents)
    if not isinstance(extent, int):
        name = show_extent(extent)
        starts = (
            ["0", "0"]
            if extent is None
            else ["0", f"{name} // 2", f"pl.max({name} - {size}, 0)", f"pl.max({name} - 1, 0)"]
        )
        return w.pick(starts), str(size), str(size)
    size = size if w.chance(10) else max(1, min(size, extent))
    offset = w.index(max(0, extent - size))[0]
    return offset, str(size), w.index(size)[0] if w.chance(10) else str(size)


def store(w: Writer, tile: Value | None = None) -> None:
    """Store some tile, converted where needed, into some tensor it fits."""
    tiles, targets = w.tiles(), [t for t in w.targets() if is_static_tensor(t)]
    if not tiles or not targets:
        return
    tile = tile or w.pick(tiles)
    fitting = [t for t in targets if fits(shape_of(tile), shape_of(t))]
    if not fitting:
        return
    target = w.pick([t for t in fitting if dtype_of(t) == dtype_of(tile)] or fitting)
    source = cast_to(w, tile, dtype_of(target))
    if source is not None:
        put_tile(w, source, target)


def convert(w: Writer) -> None:
    """Convert a tile to another element type."""
    if tiles := w.tiles():
        tile = w.pick(tiles)
        cast_to(w, tile, w.pick([t for t in DTYPES if t != dtype_of(tile)]))


def multiply(w: Writer) -> None:
    """Multiply a tile by another one turned round, and add that to an earlier product where one fits."""
    whole = [t for t in w.tiles() if is_whole(t) and len(shape_of(t)) == 2]
    if not whole:
        return
    lhs = w.pick(whole)
    rhs = w.pick([t for t in whole if t.type == lhs.type])
    product = w.make(f"pl.matmul({lhs.name}, pl.tile.transpose_view({rhs.name}))")
    if product is not None and w.chance(50):
        started = f", init_cond={w.condition()}" if w.chance(30) else ""
        w.make(f"pl.matmul_acc({product.name}, {rhs.name}, pl.tile.transpose_view({lhs.name}){started})")


def select(w: Writer) -> None:
    """Choose between two tiles, element by element, by a comparison."""
    whole = [t for t in w.tiles() if is_whole(t)]
    if not whole:
        return
    tested = w.pick(whole)
    alike = [t for t in whole if shape_of(t) == shape_of(tested)]
    rhs = w.pick(alike).name if w.chance(50) else w.scalar(dtype_of(tested))
    mask = w.make(f"pl.cmp({tested.name}, {rhs}, cmp_type={w.number(0, 5)})", "m")
    if mask is None:
        return
    if w.chance(50):
        w.make(f"pl.sel({mask.name}, {w.pick(alike).name}, {w.pick(alike).name})")
    else:
        source = w.pick(alike)
        w.make(f"pl.sels({mask.name}, {source.name}, scalar={w.scalar(dtype_of(source))})")


def reshape(w: Writer) -> None:
    """Look at a tile another way: reshaped, transposed, cut out, padded, moved, or with fewer valid rows."""
    tiles = w.tiles()
    if not tiles:
        return
    tile = w.pick(tiles)
    shape = shape_of(tile)
    forms = [f"pl.fillpad({tile.name}, pad_value=pl.PadValue.{w.pick(['zero', 'max', 'min'])})"]
    sizes = [w.number(1, extent) for extent in shape]
    corner = [w.index(extent - size)[0] for extent, size in zip(shape, sizes, strict=True)]
    forms += [
        f"pl.slice({tile.name}, {sizes}, [{', '.join(corner)}])",
        f"pl.move({tile.name}, target_memory=pl.Mem.{w.pick(['Vec', 'Left', 'Right', 'Mat'])})",
        f"pl.reshape({tile.name}, {list(reversed(shape))})",
        f"pl.reshape({tile.name}, [1, {prod(shape)}])",
        f"pl.reshape({tile.name}, [{prod(shape)}])",
        f"pl.reshape({tile.name}, {[*shape[:-1], 1, shape[-1]]})",
    ]
    if len(shape) > 1:
        rows, columns = shape[-2:]
        cut = f"{rows - sizes[-2]}:{rows}, 0:{sizes[-1]}"
        forms += [
            f"pl.slice({tile.name}, {[1, *sizes[1:]]}, [{', '.join(corner)}], drop_dims=[0])",
            f"pl.transpose({tile.name}, {w.number(-len(shape), -2)}, -1)",
            f"{tile.name}[{', '.join(':' for _ in shape[:-2])}{', ' * (len(shape) > 2)}{cut}]",
            f"pl.set_validshape({tile.name}, {w.index(rows)[0]}, {w.index(columns)[0]})",
        ]
    form = w.pick(forms)
    if any(word in form for word in ("set_validshape", "reshape", "drop_dims")) and not is_whole(tile):
        return
    w.make(form)


def assemble(w: Writer) -> None:
    """Write one tile into another, which gives a new tile."""
    whole = [t for t in w.tiles() if is_whole(t)]
    pairs = [
        (a, b) for a in whole for b in whole if dtype_of(a) == dtype_of(b) and len(shape_of(a)) == len(shape_of(b))
    ]
    pairs = [(a, b) for a, b in pairs if fits(shape_of(b), shape_of(a))]
    if not pairs:
        return
    target, source = w.pick(pairs)
    offsets = ", ".join(w.index(t - s)[0] for t, s in zip(shape_of(target), shape_of(source), strict=True))
    if w.chance(50):
        w.make(f"pl.assemble({target.name}, {source.name}, [{offsets}])")
        return
    indices = ", ".join(w.index(extent - 1)[0] for extent in shape_of(target))
    is_here = target.depth == w.depth and target.name not in w.added_to
    if is_here and isinstance(target.type, TileType) and target.type.memory is MemorySpace.Vec:
        w.act(f"pl.write({target.name}, [{indices}], {w.scalar(dtype_of(target))})")


def fill(w: Writer) -> None:
    """Make a tile out of one number."""
    shape, dtype = some_shape(w), w.pick(DTYPES)
    w.make(f"pl.tile.full({list(shape)}, dtype=pl.{dtype.symbol}, value={w.scalar(dtype)})")
