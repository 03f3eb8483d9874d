"""Arrays: a few numbers that a program keeps together, each value of them in an array of its own."""

from __future__ import annotations

from tilewright.core.expr import Call
from tilewright.core.types import ArrayType
from tilewright.dtypes import BOOL, INDEX
from tilewright.programs.pto_text.scalars import converted
from tilewright.programs.pto_text.values import Array, Number, kept
from tilewright.programs.pto_text.words import Given, writes
from tilewright.programs.pto_text.writer import Writer


@writes("array.create")
def _create(w: Writer, call: Call, given: Given) -> Array:
    assert isinstance(call.type, ArrayType)
    made = declared(w, "array", call.type)
    zero = w.constant(0, made.dtype)
    with w.counted(w.constant(made.extent), "place") as place:
        _set(w, made, place, zero)
    return made


def declared(w: Writer, hint: str, type_: ArrayType) -> Array:
    """Write an array that nothing has written to."""
    array = Array(w.name(hint), kept(type_.dtype), type_.extent)
    w.line(f"{array.name} = pto.declare_local_array -> {array.type}")
    return array


def copied(w: Writer, source: Array, target: Array) -> Array:
    """Write the numbers of one array to another."""
    with w.counted(w.constant(source.extent), "place") as place:
        _set(w, target, place, _number(w, source, place))
    return target


@writes("array.get_element")
def _get(w: Writer, call: Call, given: Given) -> Number:
    array: Array = given["array"]
    found = _number(w, array, converted(w, given["index"], INDEX))
    assert isinstance(call.args[0].type, ArrayType)
    return converted(w, found, BOOL) if call.args[0].type.dtype == BOOL else found


def _number(w: Writer, array: Array, place: Number) -> Number:
    found = Number(w.name("kept"), array.dtype)
    w.line(f"{found.name} = pto.local_array_get {array.name}[{place.name}] : {array.type} -> {array.element}")
    return found


@writes("array.update_element")
def _update(w: Writer, call: Call, given: Given) -> Array:
    assert isinstance(call.type, ArrayType)
    changed = copied(w, given["array"], declared(w, "array", call.type))
    _set(w, changed, converted(w, given["index"], INDEX), converted(w, given["value"], changed.dtype))
    return changed


def _set(w: Writer, array: Array, place: Number, value: Number) -> None:
    w.line(f"pto.local_array_set {array.name}[{place.name}], {value.name} : {array.type}, {array.element}")
