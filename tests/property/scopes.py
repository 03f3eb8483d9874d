"""Scopes: kernels written in place, turns that do not meet, and what a kernel leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from property import buffers, kernels
from property.operands import tile_of
from property.values import Value, dtype_of, is_static_tensor, is_tensor, is_tile, shape_of
from property.writer import Plane, Writer, inside

from tilewright import dtypes as dt
from tilewright.core.types import ScalarType, TensorType


def parallel(w: Writer) -> None:
    """Write a loop or grid of independent turns, each with its own rows of some tensor."""
    targets = [t for t in w.targets() if is_static_tensor(t) and shape_of(t) and shape_of(t)[0] > 1]
    if not targets:
        return
    target = w.pick(targets)
    rows = shape_of(target)[0]
    count = w.pick([n for n in range(1, rows + 1) if rows % n == 0])
    shape, name = [rows // count, *shape_of(target)[1:]], w.fresh("p")
    is_grid = w.plane is Plane.CONTROL and w.depth == 0 and w.chance(40)
    head = f"for {name} in pl.spmd({count}):" if is_grid else f"for {name} in pl.parallel({count}):"
    with inside(w, loop="parallel", carried=(), depth=w.depth + 1), w.block(head):
        if is_grid:
            with inside(w, plane=Plane.KERNEL, returns=None):
                own_rows(w, target, name, count, str(shape))
        else:
            own_rows(w, target, name, count, str(shape))


def own_rows(w: Writer, target: Value, name: str, count: int, shape: str) -> None:
    """Write the body of one turn, which owns some rows of a tensor and may write nothing else from outside."""
    w.values[name] = Value(name, ScalarType(dt.INDEX), w.depth, (0, count - 1), fixed=True, known=True)
    for value in w.all(is_tensor, lambda v: bool(v.roots & target.roots)):
        del w.values[value.name]
    height = shape_of(target)[0] // count
    w.values[target.name] = target
    assert isinstance(target.type, TensorType)
    zeros = ", 0" * (len(target.type.shape) - 1)
    window = w.make(f"pl.slice({target.name}, {shape}, [{name} * {height}{zeros}])", "w")
    del w.values[target.name]
    if window is not None:
        w.values[window.name] = replace(window, readable=target.readable, writable=True, packed=False)
        w.body(4)
        if w.plane is Plane.KERNEL:
            finish(w)


def accumulate(w: Writer) -> None:
    """Write a loop or grid whose turns all add into one tensor, in whatever order."""
    sums = (dt.INT32, dt.INT16, dt.INT8)
    targets = [t for t in w.targets() if is_static_tensor(t) and t.readable and dtype_of(t) in sums]
    targets = [t for t in targets if all(shape_of(t))]
    if not targets:
        return
    target, name = w.pick(targets), w.fresh("p")
    is_grid = w.plane is Plane.CONTROL and w.depth == 0 and w.chance(40)
    head = f"for {name} in pl.{'spmd' if is_grid else 'parallel'}({w.number(1, 5)}):"
    with inside(w, loop="parallel", carried=(), depth=w.depth + 1), w.block(head):
        w.values[name] = Value(name, ScalarType(dt.INDEX), w.depth, (0, 4), fixed=True)
        for value in w.all(is_tensor, lambda v: bool(v.roots & target.roots)):
            del w.values[value.name]
        if is_grid or w.plane is Plane.KERNEL:
            with inside(w, plane=Plane.KERNEL, returns=None):
                _add(w, target)
        else:
            with inside(w, plane=Plane.KERNEL, returns=None, loop=""), w.block(AT):
                _add(w, target)


AT = "with pl.at(level=pl.Level.CORE_GROUP):"


def _add(w: Writer, target: Value) -> None:
    w.body(3)
    sizes = tuple(w.number(1, extent) for extent in shape_of(target))
    tile = tile_of(w, sizes, dtype_of(target))
    offsets = ", ".join(w.index(t - s)[0] for t, s in zip(shape_of(target), sizes, strict=True))
    w.line(f"pl.store({tile.name}, [{offsets}], {target.name}, atomic=pl.AtomicType.Add)")


def scope(w: Writer, finale: Callable[[Writer], object] | None = None, deps: str = "") -> None:
    """Write a kernel in place; its scalars and tensors stay visible after it, its tiles do not.

    `finale` has the last word.
    """
    hint = f', name_hint="{w.pick(["step", "other", w.fresh("part")])}"' if w.chance(30) else ""
    hint += deps or buffers.after(w)
    task = w.fresh("tid") if w.chance(10) else ""
    with inside(w, plane=Plane.KERNEL, returns=None, loop="", carried=()):
        before = dict(w.values)
        with w.block(f"with pl.at(level=pl.Level.CORE_GROUP{hint}){f' as {task}' * bool(task)}:") as made:
            w.body(8)
            finish(w)
            if finale is not None:
                finale(w)
            after = {name: value for name, value in w.values.items() if name in before}
    w.values.update({name: value for name, value in {**after, **made}.items() if not is_tile(value)})
    if task:
        w.values[task] = Value(task, ScalarType(dt.TASK_ID), w.depth, fixed=True)


def cluster(w: Writer) -> None:
    """Write statements in a scope that only groups them."""
    with inside(w, grouped=True), w.block("with pl.cluster():") as made:
        w.body(3)
        w.line("pass")
        after = dict(w.values)
    w.values.update({**after, **made})


def finish(w: Writer) -> None:
    """Store what a kernel has computed, so that it matters."""
    for _ in range(2):
        kernels.store(w)


def covered(w: Writer) -> None:
    """Cover some tensor, whatever it held."""
    targets = [t for t in w.targets() if isinstance(t.type, TensorType) and t.type.shape and None not in t.type.shape]
    if targets:
        buffers.cover(w, w.pick(targets))
