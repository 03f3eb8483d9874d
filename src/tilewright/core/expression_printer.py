"""Printing expressions: values, options and types as Python that the front end reads back."""

from __future__ import annotations

import keyword
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any

from tilewright.core.build import arguments
from tilewright.core.enums import ArgDirection, MemorySpace
from tilewright.core.expr import (
    Absent,
    Attribute,
    Call,
    Const,
    Expr,
    Invoke,
    MakeTuple,
    ParameterName,
    Submit,
    Symbol,
    TupleGetItem,
    Var,
    constant,
)
from tilewright.core.op import Kind, OpSpec, Parameter
from tilewright.core.operands import literal
from tilewright.core.types import (
    ArrayType,
    MemRef,
    NamedMemRef,
    ScalarType,
    Shape,
    TensorType,
    TileType,
    TupleType,
    Type,
)
from tilewright.dtypes import DataType
from tilewright.errors import InternalError, OperandError

_OWNERS = {
    "MaskPattern": "tile.MaskPattern",
    "MemorySpace": "Mem",
    **{name: f"distributed.{name}" for name in ("NotifyOp", "ReduceOp", "WaitCmp")},
}
"""The enums that the language has under another name."""


_BY_NAME = frozenset({"task_dummy"})
"""The ops whose operands are all written by name."""


class ExpressionPrinter:
    """One printing: the names given out so far and the style."""

    def __init__(self, prefix: str, concise: bool) -> None:
        self.pl = prefix
        self.concise = concise
        self.names: dict[int, str] = {}
        self.used: set[str] = set()
        self.symbol_names: dict[str, str] = {}
        self.in_program = False
        self._kept: list[Var] = []

    def name(self, var: Var) -> str:
        """Return the name of a variable, unique within the function."""
        known = self.names.get(id(var))
        if known is None:
            known = self._free_name(var.name_hint)
            self._give(var, known)
        return known

    def _free_name(self, hint: str, suffix: str = "") -> str:
        """Return a name nobody has, made from a hint; with a suffix, the name with that suffix is free too."""
        hint = unicodedata.normalize("NFKC", hint)
        hint = hint if hint.isidentifier() and not keyword.iskeyword(hint) else "v"
        known, count = hint, 0
        while known in self.used or (suffix and known + suffix in self.used):
            count += 1
            known = f"{hint}_{count}"
        return known

    def _give(self, var: Var, name: str) -> None:
        self.used.add(name)
        self.names[id(var)] = name
        self._kept.append(var)

    def _several(self, values: Sequence[Expr]) -> str:
        return ", ".join(self.expr(value) for value in values)

    def _deps(self, deps: Sequence[Expr]) -> list[str]:
        return self._listed("deps", deps)

    def _listed(self, option: str, values: Sequence[Expr]) -> list[str]:
        return [f"{option}=[{self._several(values)}]"] if values else []

    def _flags(self, attrs: Mapping[str, Attribute], *names: str) -> list[str]:
        return [f"{name}=True" for name in names if attrs.get(name)]

    def _predicate(self, predicate: Expr | None) -> list[str]:
        return [] if predicate is None else [f"predicate=({self.expr(predicate)})"]

    def expr(self, expr: Expr, nested: bool = False) -> str:
        """Return an expression; `nested` arithmetic gets parentheses."""
        match expr:
            case Var():
                return self.name(expr)
            case Symbol():
                return self.symbol_names.get(expr.name, expr.name)
            case Const():
                return self.number(expr, lambda: constant(expr.value))
            case MakeTuple():
                return f"[{self._several(expr.elements)}]"
            case TupleGetItem():
                return f"{self.expr(expr.value)}[{expr.index}]"
            case Call():
                return self._call(expr, nested)
            case Invoke():
                device = [] if expr.device is None else [f"device={self.expr(expr.device)}"]
                return f"{self._callee(expr.op.name)}({', '.join([*map(self.expr, expr.args), *device])})"
            case Submit():
                return self._submit(expr)
            case Absent():
                return "None"
            case _:
                raise InternalError(f"no way to print {type(expr).__name__}")

    def number(self, const: Const, read: Callable[[], Const]) -> str:
        """Return a constant: bare where to `read` it gives it back, else with its type."""
        shown = repr(const.value)
        if isinstance(const.value, float) and not (const.value - const.value == 0):
            shown = f'float("{const.value}")'
        try:
            is_bare = read() == const
        except OperandError:
            is_bare = False
        return shown if is_bare else f"{self.pl}.const({shown}, {self.pl}.{const.dtype.symbol})"

    def _callee(self, name: str) -> str:
        return f"self.{name}" if self.in_program else name

    def _submit(self, expr: Submit) -> str:
        parts, said = [self._callee(expr.op.name), *(self.expr(arg) for arg in expr.args)], dict(expr.attributes)
        parts += [*self._deps(expr.deps), *self._listed("dumps", expr.dumps)]
        parts += [] if expr.core_num is None else [f"core_num={self.expr(expr.core_num)}"]
        parts += [*self._flags(said, "sync_start", "allow_early_resolve"), *self._predicate(expr.predicate)]
        return f"{self.pl}.{'submit' if expr.core_num is None else 'spmd_submit'}({', '.join(parts)})"

    def _call(self, call: Call, nested: bool) -> str:
        spec, bound = call.op.spec, arguments(call)
        if spec.symbol and call.op.kind is Kind.SCALAR:
            operands = [self._operand(spec, p, bound, nested=True) for p in spec.parameters]
            text = f"{spec.symbol} {operands[0]}" if spec.symbol == "not" else f"{spec.symbol}{operands[0]}"
            text = text if len(operands) == 1 else f"{operands[0]} {spec.symbol} {operands[1]}"
            return f"({text})" if nested else text
        parts: list[str] = []
        by_name = spec.name in _BY_NAME
        for p in spec.parameters:
            value = bound[p.name]
            if isinstance(value, Absent) or (
                not p.is_operand and value == p.default and type(value) is type(p.default)
            ):
                by_name = True
                continue
            by_name = by_name or not (p.is_operand or call.op.kind is Kind.SCALAR)
            shown = self._operand(spec, p, bound)
            parts.append(f"{p.name}={shown}" if by_name else shown)
        name = spec.name if call.op.kind is Kind.SCALAR else call.op.name
        return f"{self.pl}.{name}({', '.join(parts)})"

    def _operand(self, spec: OpSpec, parameter: Parameter, bound: Any, nested: bool = False) -> str:
        value = bound[parameter.name]
        if isinstance(value, Const):
            return self.number(value, lambda: literal(spec, parameter, value.value, bound | {parameter.name: None}))
        return self.expr(value, nested) if isinstance(value, Expr) else self.attribute(value)  # pyright: ignore[reportArgumentType]

    def attribute(self, value: Attribute) -> str:
        """Return a static option."""
        if isinstance(value, ArgDirection):
            return f"{self.pl}.adir.{value.value}"
        if isinstance(value, Enum):
            owner = _OWNERS.get(type(value).__name__, type(value).__name__)
            return f"{self.pl}.{owner}.{value.name}"
        if isinstance(value, DataType):
            return f"{self.pl}.{value.symbol}"
        if isinstance(value, ParameterName):
            return value.name
        if isinstance(value, tuple):
            return f"({listed([self.attribute(v) for v in value])})"
        if isinstance(value, float) and not (value - value == 0):
            return f'float("{value}")'
        return repr(value)

    def attributes(self, attrs: Mapping[str, Attribute]) -> str:
        """Return attributes as a dict literal."""
        return "{" + ", ".join(f'"{name}": {self.attribute(value)}' for name, value in attrs.items()) + "}"

    def type(self, type_: Type) -> str:
        """Return a type as an annotation."""
        pl = self.pl
        match type_:
            case ScalarType():
                return f"{pl}.Scalar[{pl}.{type_.dtype.symbol}]"
            case ArrayType():
                return f"{pl}.Array[{type_.extent}, {pl}.{type_.dtype.symbol}]"
            case TupleType():
                return f"{pl}.Tuple[{', '.join(map(self.type, type_.elements))}]"
            case TensorType():
                layout, is_partial = type_.layout.value, type_.valid != type_.shape
                extra = [] if layout in ("ND", "DN") or is_partial else [f"{pl}.{layout}"]
                if is_partial or layout == "DN":
                    valid = f"valid_shape={self._shape(type_.valid)}, " if is_partial else ""
                    extra = [f"{pl}.TensorView({valid}stride=[], layout={pl}.TensorLayout.{layout})"]
                name = "distributed.DistributedTensor" if type_.is_window else "Tensor"
                return f"{pl}.{name}[{', '.join([self._shape(type_.shape), f'{pl}.{type_.dtype.symbol}', *extra])}]"
            case TileType():
                extra = [self._memref(type_.memref)] if type_.memref is not None else []
                extra += [self.attribute(type_.memory)] if extra or type_.memory is not MemorySpace.Vec else []
                extra += (
                    [f"{pl}.TileView(valid_shape={self._shape(type_.valid)})"] if type_.valid != type_.shape else []
                )
                return f"{pl}.Tile[{', '.join([self._shape(type_.shape), f'{pl}.{type_.dtype.symbol}', *extra])}]"

    def _memref(self, memref: MemRef | NamedMemRef) -> str:
        is_known = isinstance(memref, MemRef)
        name, numbers = (memref.base, [memref.offset, memref.size]) if is_known else (memref.name, [])
        said = [*([repr(name)] if name else []), *map(str, numbers)]
        said += [] if memref.slots is None else [f"slots={memref.slots}"]
        slot = "" if memref.slot is None else self._shape((memref.slot,))
        return f"{self.pl}.MemRef({', '.join(said)}){slot}"

    def _shape(self, shape: Shape) -> str:
        return f"[{', '.join('None' if e is None else str(e) if isinstance(e, int) else self.expr(e) for e in shape)}]"  # pyright: ignore[reportArgumentType]


def listed(parts: Sequence[str]) -> str:
    """Return the elements of a tuple without its parentheses."""
    return f"{parts[0]}," if len(parts) == 1 else ", ".join(parts)
