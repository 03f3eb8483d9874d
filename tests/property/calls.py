"""Calls: generated functions as their callers see them, and calls of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from property import buffers
from property.values import Value, is_tensor
from property.writer import Writer

from tilewright import dtypes as dt
from tilewright.core.enums import ParamDirection
from tilewright.core.expr import Symbol
from tilewright.core.printer import python_print_type
from tilewright.core.types import Extent, ScalarType, TensorType, Type, tensor


@dataclass(frozen=True)
class Param:
    """A parameter of a generated function."""

    name: str
    type: ScalarType | TensorType
    direction: ParamDirection

    def __str__(self) -> str:
        shown = python_print_type(self.type)
        return (
            f"{self.name}: {shown}"
            if self.direction is ParamDirection.In
            else f"{self.name}: pl.{self.direction.name}[{shown}]"
        )


@dataclass(frozen=True)
class Helper:
    """A generated function that others call; a grid kernel runs once per block."""

    name: str
    kind: str
    params: tuple[Param, ...]
    returned: tuple[Param | Type, ...]
    blocks: int
    text: tuple[str, ...]


def call(w: Writer, helper: Helper) -> None:
    """Write a call of a helper, with tensors of shapes its symbols can take."""
    known: dict[str, Extent] = {}
    chosen: list[Value] = []
    texts: list[str] = []
    for p in helper.params:
        if isinstance(p.type, ScalarType):
            texts.append(w.scalar(p.type.dtype))
            continue
        value = _argument(w, p, known, chosen)
        chosen.append(value)
        texts.append(value.name)
    _called(w, helper, texts, known)
    for p, text in zip(helper.params, texts, strict=True):
        if p.direction is not ParamDirection.In and not helper.blocks:
            w.written(w.values[text], whole=True)


def _argument(w: Writer, p: Param, known: dict[str, Extent], chosen: Sequence[Value]) -> Value:
    assert isinstance(p.type, TensorType)
    writes = p.direction is not ParamDirection.In
    pool = w.targets() if writes else w.tensors()
    pool = [v for v in pool if v.readable or p.direction is ParamDirection.Out]
    pool = [v for v in pool if is_tensor(v) and not any(v.roots & c.roots for c in chosen if writes or c.writable)]
    pool = [v for v in pool if _matches(p.type, v.type, dict(known))]
    if pool and w.chance(80):
        value = w.pick(pool)
    else:
        shape = [known.setdefault(e.name, w.pick(w.extents)) if isinstance(e, Symbol) else e for e in p.type.shape]
        value = buffers.create(w, tensor(shape, p.type.dtype), filled=True)
    _matches(p.type, value.type, known)
    return value


def _matches(want: TensorType, have: Type, known: dict[str, Extent]) -> bool:
    """Return whether a tensor fits a parameter, noting what its symbols are worth."""
    if not isinstance(have, TensorType) or have.dtype != want.dtype or len(have.shape) != len(want.shape):
        return False
    for wanted, extent in zip(want.shape, have.shape, strict=True):
        if extent is None:
            return False
        if (known.setdefault(wanted.name, extent) if isinstance(wanted, Symbol) else wanted) != extent:
            return False
    return True


def _called(w: Writer, helper: Helper, texts: list[str], known: dict[str, Extent]) -> None:
    arguments = ", ".join(texts)
    if helper.blocks:
        if w.chance(50):
            w.line(f"_, {w.fresh('tid')} = pl.spmd_submit(self.{helper.name}, {arguments}, core_num={helper.blocks})")
        else:
            with w.block(f"with pl.spmd({helper.blocks}):"):
                w.line(f"self.{helper.name}({arguments})")
        return
    submits = helper.kind != "Inline" and w.chance(30)
    waits = buffers.after(w)
    names = [_result(w, helper, texts, item) for item in helper.returned]
    if submits:
        task = w.fresh("tid")
        w.values[task] = Value(task, ScalarType(dt.TASK_ID), w.depth, fixed=True)
        results = f"({', '.join(names)})" if len(names) > 1 and w.chance(50) else ", ".join(names) or "_"
        flag = ", allow_early_resolve=True" * (w.chance(20) and not w.grouped)
        waits = "" if w.grouped else waits
        w.line(f"{results}, {task} = pl.submit(self.{helper.name}, {arguments}{waits}{flag})")
        return
    target = f"{', '.join(names)} = " if names else ""
    w.line(f"{target}self.{helper.name}({arguments})")


def _result(w: Writer, helper: Helper, texts: list[str], item: Param | Type) -> str:
    """Return a name for one result of a call; a tensor is the argument it was given as."""
    if not isinstance(item, Param):
        name = w.fresh("s")
        w.values[name] = Value(name, item, w.depth)
        return name
    argument = w.values[texts[helper.params.index(item)]]
    if w.chance(50) and argument.depth == w.depth:
        return argument.name
    name = w.fresh("o")
    w.values[name] = replace(argument, name=name, depth=w.depth, readable=True, fixed=True)
    return name
