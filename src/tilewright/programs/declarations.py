"""Declarations: the entries of a program as callers see them, as plain data and back.

    entry  := {"name": "main", "kind": "Orchestration", "params": [param ...], "returns": [type ...]}
              and "gives": [1] where what it returns are parameters, which is all that is left of its body
    param  := {"name": "x", "direction": "In", "type": type}      and "bounds": [0, 9] where a scalar has some
    type   := {"dtype": "fp32"} | {"dtype": "fp32", "shape": [extent ...], "valid": [extent ...], "layout": "ND"}
    extent := 64 | "M" | ["scalar.mul", extent, extent] | null

An extent that is null is one that only the running program knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.core.enums import FunctionType, ParamDirection, TensorLayout
from tilewright.core.expr import Call, ConstInt, Expr, Symbol, Var
from tilewright.core.extents import as_scalar
from tilewright.core.program import STEPPED, TURNED, Function, Program
from tilewright.core.stmt import ReturnStmt, SeqStmts
from tilewright.core.types import Extent, ScalarType, Shape, TensorType, Type
from tilewright.dtypes import BY_NAME, INDEX
from tilewright.errors import UnsupportedFeatureError
from tilewright.passes.aliases import actual_directions


def plain_entries(program: Program) -> list[dict[str, Any]]:
    """Return what a caller needs to know of a program as JSON can hold it; what entries write, they declare here."""
    return [_plain_entry(entry, actual_directions(program, entry)) for entry in program.entries]


def read_entries(name: str, entries: list[dict[str, Any]]) -> Program:
    """Return the declared program whose `plain_entries` these are; LookupError, TypeError or ValueError for others."""
    return Program(name, tuple(map(_read_entry, entries)))


def is_declaration(program: Program) -> bool:
    """Return whether a program says no more than what it takes and gives."""
    return all(isinstance(stmt, ReturnStmt) for function in program.function_list for stmt in function.body)


def _plain_entry(entry: Function, directions: Sequence[ParamDirection]) -> dict[str, Any]:
    from tilewright.frontend.outputs import returned_parameters  # which who reads does without

    given_back = returned_parameters(entry) if entry.return_types and entry.body else None
    return {
        "name": entry.name,
        "kind": entry.func_type.name,
        "params": [_plain_param(*each) for each in zip(entry.params, directions, strict=True)],
        "returns": [_plain_type(type_) for type_ in entry.return_types],
        **({} if given_back is None else {"gives": list(given_back)}),
        **{how: entry.attrs[how] for how in (TURNED, STEPPED) if how in entry.attrs},
    }


def _read_entry(entry: dict[str, Any]) -> Function:
    params: list[dict[str, Any]] = entry["params"]
    read = tuple(map(_read_param, params))
    positions: list[int] = entry.get("gives", [])
    given_back = tuple([read[position] for position in positions])
    return Function(
        entry["name"],
        read,
        tuple(map(_read_type, entry["returns"])),
        SeqStmts((ReturnStmt(given_back),) if given_back else ()),
        func_type=FunctionType[entry["kind"]],
        param_directions=tuple(ParamDirection[param["direction"]] for param in params),
        attrs={how: entry[how] for how in (TURNED, STEPPED) if how in entry},
    )


def _plain_param(param: Var, direction: ParamDirection) -> dict[str, Any]:
    bounds = {} if param.bounds is None else {"bounds": list(param.bounds)}
    return {"name": param.name_hint, "direction": direction.name, "type": _plain_type(param.type), **bounds}


def _read_param(param: dict[str, Any]) -> Var:
    low, high = param.get("bounds", (None, None))
    return Var(param["name"], _read_type(param["type"]), bounds=None if low is None else (low, high))


def _plain_type(type_: Type) -> dict[str, Any]:
    if isinstance(type_, ScalarType):
        return {"dtype": type_.dtype.name}
    if not isinstance(type_, TensorType):
        raise UnsupportedFeatureError(f"a program cannot take or return {type_}")
    shape, valid = ([_plain_extent(extent) for extent in extents] for extents in (type_.shape, type_.valid))
    return {"dtype": type_.dtype.name, "shape": shape, "valid": valid, "layout": type_.layout.name}


def _read_type(plain: dict[str, Any]) -> Type:
    dtype = BY_NAME[plain["dtype"]]
    if "shape" not in plain:
        return ScalarType(dtype)
    return TensorType(_read_shape(plain["shape"]), dtype, _read_shape(plain["valid"]), TensorLayout[plain["layout"]])


def _read_shape(extents: list[Any]) -> Shape:
    return tuple(map(_read_extent, extents))


def _plain_extent(extent: Extent | Expr) -> Any:
    match extent:
        case Symbol():
            return extent.name
        case ConstInt():
            return int(extent.value)
        case Call():
            return _plain_formula(extent)
        case int():
            return int(extent)
        case _:
            return None


def _plain_formula(call: Call) -> list[Any] | None:
    """Return arithmetic over extents; of other formulas, which only results have, the running program knows."""
    args = [_plain_extent(arg) for arg in call.args]
    is_arithmetic = call.type == ScalarType(INDEX) and not call.attributes and None not in args
    return [call.op.name, *args] if is_arithmetic else None


def _read_extent(plain: Any) -> Extent:
    match plain:
        case str():
            return Symbol(plain)
        case [str(name), *args]:
            from tilewright.ops.registry import get_op  # most programs are declared without one

            return Call(get_op(name), tuple(as_scalar(_read_extent(arg)) for arg in args), (), ScalarType(INDEX))
        case int() | None:
            return plain
        case _:
            raise TypeError(f"{plain!r} is no extent")
