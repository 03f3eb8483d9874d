"""Expressions in torch text: each as Python writes it."""

from __future__ import annotations

import inspect
import keyword
import re
from collections.abc import Mapping
from enum import Enum

from tilewright.core.build import arguments
from tilewright.core.enums import TensorLayout
from tilewright.core.expr import (
    Absent,
    Attribute,
    Call,
    Const,
    Expr,
    Invoke,
    MakeTuple,
    Submit,
    Symbol,
    TupleGetItem,
    Var,
)
from tilewright.core.op import Kind
from tilewright.core.types import ArrayType, ScalarType, Shape, TensorType, TileType, Type
from tilewright.dtypes import BOOL, INDEX, INT64, TASK_ID, TORCH_NAMES, UINT64, DataType
from tilewright.errors import NoTorchError
from tilewright.frontend.names import free_name
from tilewright.programs.torch_text.references import show_float, written
from tilewright.programs.torch_text.spelled import SPELLED

NUMBERS = {"div": "_quotient", "floordiv": "_floor_quotient", "mod": "_remainder", "min": "_smaller", "max": "_larger"}
"""The functions for what Python's own operators do differently."""

LOSES_UINT64 = (
    "tile.cast", "tensor.cast", "tile.cmp", "tensor.cmp", "tile.sort", "tensor.sort", "tile.argsort", "tensor.argsort",
    "tile.row_topk", "tile.gather_compare",
)  # fmt: skip
"""Ops that look at the size of integers, of which torch compares none of 64 bits without a sign."""

RESERVED = ("float", "range", "torch")
"""The names of others that a function of a text uses."""

WRAPS = (INDEX, INT64, BOOL, TASK_ID)
"""Types of numbers that are written as Python's own."""


class Expressions:
    """The expressions of one text, and the meanings of the ops in them."""

    def __init__(self) -> None:
        self.meanings: dict[str, str] = {}
        """The function of each op by element and element type, by its name."""
        self.names: dict[Var, str] = {}

    def begin(self) -> None:
        """Start another function: names are free again."""
        self.names = {}

    def name(self, var: Var) -> str:
        """Return what a variable is called here, which no other one is."""
        if var not in self.names:
            plain = re.sub(r"\W", "_", var.name_hint) or "v"
            is_ours = keyword.iskeyword(plain) or plain.startswith("_") or plain in RESERVED
            self.names[var] = free_name(f"{plain}_" if is_ours else plain, set(self.names.values()))
        return self.names[var]

    def text(self, expr: Expr) -> str:
        """Return an expression; NoTorchError for one that torch cannot say."""
        match expr:
            case Var():
                return self.name(expr)
            case Symbol():
                return symbol(expr.name)
            case Const():
                return show_float(expr.value) if isinstance(expr.value, float) else repr(expr.value)
            case MakeTuple():
                return f"({''.join(f'{self.text(each)}, ' for each in expr.elements).rstrip()})"
            case TupleGetItem():
                return f"{self.text(expr.value)}[{expr.index}]"
            case Invoke():
                return f"_only({self.called(expr)})"
            case Submit():
                return self._submitted(expr)
            case Call():
                return self._op(expr)
            case Absent():
                return "None"
            case _:
                raise NoTorchError(f"torch_codegen cannot write {type(expr).__name__}")

    def called(self, expr: Invoke | Submit) -> str:
        """Return the call of a function of the program, which gives all its results."""
        return f"{function_name(expr.op.name)}({', '.join(map(self.text, expr.args))})"

    def _submitted(self, expr: Submit) -> str:
        if expr.predicate is not None:
            raise NoTorchError(f"torch_codegen cannot write a task with a predicate, as that of `{expr.op.name}`")
        if expr.core_num is None:
            return f"(*{self.called(expr)}, 0)"
        blocks = f"_blocks({self.text(expr.core_num)})"
        return f"(*[{self.called(expr)} for _ in {blocks}][-1], 0)"

    def _op(self, call: Call) -> str:
        spec, given = call.op.spec, arguments(call)
        if call.op.kind is Kind.SCALAR and call.op.name not in SPELLED:
            return self._number(call)
        shown = {name: self._argument(value) for name, value in given.items()}
        if call.op.name in SPELLED:
            return self._spelled(call, shown)
        if spec.family == "position":
            _refuse_uint64(call)
            axis = -1 if spec.name.startswith("row") else -2
            return f"_position({result_dtype(call.type)}, {shown['x']}, {axis}, {spec.combine!r})"
        if spec.family == "reduction":
            return self._reduction(call, shown)
        if spec.family == "scan":
            return self._scan(call, shown)
        if spec.reference is not None and isinstance(call.type, (TensorType, TileType)):
            return self._meaning(call, shown)
        raise NoTorchError(f"torch_codegen has no torch for `{call.op.name}`")

    def _spelled(self, call: Call, shown: Mapping[str, str]) -> str:
        """Return an op that a function stands for, told what it asks for about the result."""
        if call.op.name in LOSES_UINT64:
            _refuse_uint64(call)
        function = SPELLED[call.op.name]
        there = {name: text for name, text in shown.items() if text != "None"}
        if isinstance(call.type, (TensorType, TileType)):
            known = {"part": self._extents(call.type.valid), "full": self._extents(call.type.shape)}
            known["turns"] = str(tuple(map(_is_turned, (call.args[0].type, call.type)) if call.args else ()))
            there |= {name: known[name] for name in inspect.signature(function).parameters if name in known}
        options = "".join(f", {name}={text}" for name, text in there.items())
        return f"{function.__name__}({result_dtype(call.type)}{options})"

    def _extents(self, box: Shape) -> str:
        found = [self.text(extent) if isinstance(extent, Expr) else str(extent) for extent in box]
        return f"({''.join(f'{each}, ' for each in found).rstrip()})"

    def _argument(self, value: object) -> str:
        if isinstance(value, Expr):
            return self.text(value)
        return show(value)  # pyright: ignore[reportArgumentType]

    def _reduction(self, call: Call, shown: Mapping[str, str]) -> str:
        _refuse_uint64(call)
        spec, dtype = call.op.spec, _element(call.type)
        axis = -1 if spec.name.startswith("row") else -2
        start = show(spec.start(dtype)) if spec.start is not None else "0"
        common = f"{torch_dtype(dtype)}, {shown['x']}, {axis}, {spec.combine!r}, {start}"
        if dtype in spec.stepwise:
            return f"_folded_stepwise({common}, {shown['tmp_tile'] != 'None'})"
        return f"_folded({common})"

    def _scan(self, call: Call, shown: Mapping[str, str]) -> str:
        """Return what all elements up to each one along an axis fold to."""
        combine = call.op.spec.combine
        if combine in ("maximum", "minimum"):
            _refuse_uint64(call)
        given = ", ".join(shown[name] for name in ("x", "axis", "reverse"))
        return f"_scanned({result_dtype(call.type)}, {given}, {combine!r})"

    def _meaning(self, call: Call, shown: Mapping[str, str]) -> str:
        """Return an op that is applied element by element, its meaning written down once for each element type."""
        spec, dtype = call.op.spec, _computed(call)
        operands = [p.name for p in spec.operands if p.name not in spec.unread or p.name == "x"]
        operands = [name for name in operands if shown[name] != "None"]
        if UINT64 in (dtype, _element(call.type)):
            raise NoTorchError(f"torch_codegen has no torch for `{call.op.name}` of {dtype}")
        assert spec.reference is not None
        try:
            count = min(len(operands), len(inspect.signature(spec.reference).parameters))
            text = written(spec.reference, operands[:count], dtype)
        except (NoTorchError, TypeError, AttributeError) as error:
            raise NoTorchError(f"torch_codegen has no torch for `{call.op.name}`: {error}") from error
        name = f"_{spec.name}_{dtype.symbol.lower()}"
        self.meanings[name] = f"def {name}({', '.join(operands[:count])}):\n    return {text}"
        values, element = [self._operand(call, shown, name) for name in operands], torch_dtype(dtype)
        while len(values) > count:  # of more operands than a meaning takes, the first ones are one
            values[:count] = [f"_each({name}, [{', '.join(values[:count])}], {element}, {element})"]
        given = ", ".join(values)
        if spec.family == "partial" and isinstance(call.type, TileType):
            return f"_partly({name}, {given}, {element})"
        return f"_each({name}, [{given}], {element}, {result_dtype(call.type)})"

    def _operand(self, call: Call, shown: Mapping[str, str], name: str) -> str:
        """Return an operand; rows of 32 bytes in place of one element are repeated."""
        is_row = call.op.spec.family == "expansion" and call.op.spec.name.startswith("row") and name == "vec"
        type_ = next((a.type for p, a in zip(call.op.spec.operands, call.args, strict=False) if p.name == name), None)
        is_wide = is_row and isinstance(type_, (TensorType, TileType)) and type_.shape[-1] != 1
        return f"_repeated({shown[name]}, {shown['x']})" if is_wide else shown[name]

    def _number(self, call: Call) -> str:
        """Return arithmetic on numbers."""
        spec, args = call.op.spec, [self.text(arg) for arg in call.args]
        assert isinstance(call.type, ScalarType)
        dtype = call.type.dtype
        if spec.name in NUMBERS:
            text = f"{NUMBERS[spec.name]}({', '.join(args)})"
        elif spec.name in ("shl", "shr"):
            text = f"({args[0]} {spec.symbol} ({args[1]} & {dtype.bits - 1}))"
        elif spec.symbol and len(args) == 2:
            text = f"({args[0]} {spec.symbol} {args[1]})"
        elif spec.symbol:
            text = f"({spec.symbol} {args[0]})"
        else:
            raise NoTorchError(f"torch_codegen has no torch for `{call.op.name}`")
        return text if dtype in WRAPS else f"_number({text}, {torch_dtype(dtype)})"


def _refuse_uint64(call: Call) -> None:
    """Raise NoTorchError where an op looks at the size of what torch has no order of."""
    if UINT64 in {_element(arg.type) for arg in call.args if _is_shaped(arg.type)}:
        raise NoTorchError(f"torch_codegen has no torch for `{call.op.name}` of {UINT64}")


def _computed(call: Call) -> DataType:
    """Return the element type that an op on elements computes in."""
    given = [t.dtype if isinstance(t, (TensorType, TileType)) else t for t in (arg.type for arg in call.args)]
    kept = [type_ for type_ in given if isinstance(type_, (DataType, ScalarType))]
    types = call.op.spec.element_types(_element(call.type), kept)
    return UINT64 if UINT64 in types else types[-1]


def symbol(name: str) -> str:
    """Return what an extent that arguments decide is called."""
    return f"_extent_{name}"


def function_name(name: str) -> str:
    """Return what the function is called that takes and returns values of a text's own."""
    return f"_run_{name}"


def show(value: Attribute) -> str:
    """Return a static option as Python writes it, members of enums by their names."""
    if isinstance(value, Enum):
        return str(value.value) if isinstance(value, int) else repr(value.name)
    if isinstance(value, DataType):
        return "None" if value in (TASK_ID,) else torch_dtype(value)
    if isinstance(value, tuple):
        return f"({''.join(f'{show(each)}, ' for each in value).rstrip()})"
    return show_float(value) if isinstance(value, float) else repr(value)


def torch_dtype(dtype: DataType) -> str:
    """Return torch's name of an element type; NoTorchError for one that it has not."""
    if dtype == INDEX:
        return "torch.int64"
    for name, known in TORCH_NAMES.items():
        if known == dtype:
            return f"torch.{name}"
    raise NoTorchError(f"torch has no element type for {dtype}")


def result_dtype(type_: Type) -> str:
    """Return the element type of what an op gives, or None where it has none of torch's."""
    if isinstance(type_, (TensorType, TileType)):
        return torch_dtype(type_.dtype)
    if isinstance(type_, (ScalarType, ArrayType)) and type_.dtype != TASK_ID:
        return torch_dtype(type_.dtype)
    return "None"


def _is_turned(type_: Type) -> bool:
    """Return whether a tensor's last two axes lie the other way round in memory."""
    return isinstance(type_, TensorType) and type_.layout is TensorLayout.DN


def _is_shaped(type_: Type) -> bool:
    return isinstance(type_, (TensorType, TileType))


def _element(type_: Type) -> DataType:
    assert isinstance(type_, (TensorType, TileType))
    return type_.dtype
