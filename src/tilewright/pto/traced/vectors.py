"""Vectors: calls on registers that say more, or less, than their ops do."""

from __future__ import annotations

import inspect
from typing import Any

from tilewright.errors import OperandError, UnsupportedFeatureError
from tilewright.pto.module import Value
from tilewright.pto.ops.registry import OPS
from tilewright.pto.traced.arguments import Argument, Arguments
from tilewright.pto.traced.ops import emit, handles
from tilewright.pto.traced.scalars import as_number, as_type
from tilewright.pto.traced.tracer import Tracer
from tilewright.pto.traced.values import describe
from tilewright.pto.types import Ptr, Scalar, VReg


@handles("vlds", "vsts")
def _moved(t: Tracer, given: Arguments) -> Any:
    """Move a register; with `return_updated_base` at its base, and return the address an offset further on, too."""
    wanted = next((each for each in given.args if isinstance(each.value, VReg)), None) or given.kwargs.get("vreg_type")
    given.args = [each for each in given.args if each is not wanted]
    given.kwargs.pop("vreg_type", None)
    if wanted is not None and isinstance(wanted.value, VReg):
        given.kwargs["dtype"] = Argument(wanted.value.element, wanted.node)
    updates = given.kwargs.pop("return_updated_base", None)
    if updates is None or not updates.value:
        return emit(t, f"pto.{given.word}", given)
    bases = (each.value.type for each in given.args if isinstance(each.value, Value))
    base = next((type_ for type_ in bases if isinstance(type_, Ptr)), None)
    return emit(t, f"pto.{given.word}", given, () if base is None else (base,))


@handles("pstu")
def _stored_mask(t: Tracer, given: Arguments) -> Any:
    """Store a mask from anywhere on; return the alignment state, and the address behind what was stored."""
    bases = (each.value.type for each in given.args if isinstance(each.value, Value))
    base = next((type_ for type_ in bases if isinstance(type_, Ptr)), None)
    return emit(t, "pto.pstu", given, () if base is None else (base,))


_JOINED = {"vands": "vand", "vors": "vor", "vxors": "vxor"}


@handles(*_JOINED)
def _bits(t: Tracer, given: Arguments) -> Value:
    """Return the bits of lanes joined with those of a number."""
    bound = given.bind(t, "vec", "scalar", "mask")
    vector, number = _register(t, bound["vec"]), bound["scalar"]
    spread = _spread(t, given, number.value, _element(vector), bound["mask"])
    return _made(t, given, _JOINED[given.word], vector, spread, bound["mask"].value)


@handles("vrec", "vrsqrt")
def _inverse(t: Tracer, given: Arguments) -> Value:
    """Return one over lanes, or over their roots."""
    bound = given.bind(t, "vec", "mask")
    vector, mask = _register(t, bound["vec"]), bound["mask"].value
    if given.word == "vrsqrt":
        vector = _made(t, given, "vsqrt", vector, mask)
    return _made(t, given, "vdiv", _spread(t, given, 1.0, _element(vector), bound["mask"]), vector, mask)


def _register(t: Tracer, argument: Argument) -> Value:
    if not isinstance(argument.value, Value) or not isinstance(argument.value.type, VReg):
        raise t.error(OperandError, argument.node, f"a register is needed here, got {describe(argument.value)}")
    return argument.value


def _element(vector: Value) -> Scalar:
    assert isinstance(vector.type, VReg)
    return vector.type.element


def _spread(t: Tracer, given: Arguments, number: object, element: Scalar, mask: Argument) -> Value:
    """Return a register all of whose lanes are a number."""
    value = as_number(t, number, mask.node) if isinstance(number, Value) else as_type(t, number, element, mask.node)
    return _made(t, given, "vdup", value, mask.value)


def _made(t: Tracer, given: Arguments, name: str, *operands: Any) -> Value:
    args = [Argument(operand, given.node) for operand in operands]
    return emit(t, f"pto.{name}", Arguments(given.name, given.node, name, args))


@handles("get_op_attr")
def _attribute(t: Tracer, given: Arguments) -> Any:
    """Return the default: nothing here sets attributes of ops from outside."""
    return given.bind(t, "name", "default")["default"].value


@handles("chistv2", "sprsts", "vmi")
def _refused(t: Tracer, given: Arguments) -> Any:
    known = OPS.get(f"pto.{given.word}")
    if known is None:
        help, why = "keep numbers in variables, tiles or memory", ""
    else:
        help, why = inspect.getdoc(known.lowering) or "", f": `pto.{given.word}` is an op that text alone can have"
    raise t.error(UnsupportedFeatureError, given.node, f"there is no `{given.name}` here{why}", help=help)
