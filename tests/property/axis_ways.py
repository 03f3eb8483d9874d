"""Axis ways: how ops along axes come into random programs."""

from __future__ import annotations

from property.kernels import spelled
from property.operands import operand, some_dtype, some_shape
from property.values import Value, shape_of
from property.way import called, cut_short, way
from property.writer import Writer

from tilewright.core.op import OPS, Kind, Op


def names(module: str) -> list[str]:
    """Return the ops that a module declares, by their full names."""
    return sorted(name for name, op in OPS.items() if op.spec.function.__module__ == f"tilewright.ops.{module}")


def derived_in(text: str) -> frozenset[str]:
    """Return the derived ops that a program calls: what it is made of after that says nothing of them."""
    derived = sorted((name, op.spec.name) for name, op in OPS.items() if op.spec.family == "derived")
    return frozenset(name for name, short in derived if f".{short}(" in text)


def source(w: Writer, op: Op) -> Value:
    """Return a value of one to three axes, not all of it valid where it is a tile."""
    value = operand(w, op.kind, some_shape(w, (1, 2, 2, 3)), some_dtype(w, op.spec.accepts))
    may_be_empty = op.kind is Kind.TILE and not op.spec.name.startswith("arg")
    return cut_short(w, value) if may_be_empty and w.chance(30) else value


@way(*names("axes"))
def _folded(w: Writer, op: Op) -> Value | None:
    value = source(w, op)
    rank = len(shape_of(value))
    axes = ["None", *map(str, range(-rank, rank))]
    if not op.spec.name.startswith("arg"):
        axes.append(str(tuple(range(rank))[-2:]))
    keepdims = w.chance(60) or op.kind is Kind.TENSOR
    axis = w.pick(axes[keepdims:])
    return called(w, op, value.name, f"axis={axis}", f"keepdims={keepdims}")


@way(*names("normalize"))
def _shares(w: Writer, op: Op) -> Value | None:
    value = source(w, op)
    return called(w, op, value.name, f"axis={w.number(-len(shape_of(value)), -1)}")


@way(*names("scan"))
def _scanned(w: Writer, op: Op) -> Value | None:
    value = source(w, op)
    axis = w.number(-len(shape_of(value)), -1)
    return called(w, op, value.name, f"axis={axis}", f"reverse={w.chance(40)}")


@way(*[name for name in names("order") if "topk" not in name])
def _ordered(w: Writer, op: Op) -> Value | None:
    value = source(w, op)
    axis = w.number(-len(shape_of(value)), -1)
    return called(w, op, value.name, f"axis={axis}", f"descending={w.chance(40)}")


@way(*[name for name in names("order") if "topk" in name])
def _taken(w: Writer, op: Op) -> Value | None:
    """Take the first elements in order, and show them, or where they are."""
    value = operand(w, op.kind, some_shape(w, (1, 2, 2, 3)), some_dtype(w, op.spec.accepts))
    axis = -1 if op.spec.name == "row_topk" else w.number(-len(shape_of(value)), -1)
    options = [f"largest={w.chance(60)}", *([f"axis={axis}"] if op.spec.name == "topk" else [])]
    pair = f"{spelled(op.spec, op.kind)}({value.name}, {w.number(1, shape_of(value)[axis])}, {', '.join(options)})"
    return w.make(f"{pair}[{w.number(0, 1)}]", keep=True)
