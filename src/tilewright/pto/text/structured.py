"""Structured ops: those with regions, and those whose text follows no other."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.errors import KernelError
from tilewright.pto.errors import PtoSyntaxError
from tilewright.pto.module import Attribute, Clause, Op, Region, SymbolRef, Value
from tilewright.pto.ops.registry import OPS
from tilewright.pto.text.attributes import dictionary, number
from tilewright.pto.text.cursor import Cursor
from tilewright.pto.text.form import NO_INLINE, Syntax
from tilewright.pto.text.free import read_free
from tilewright.pto.text.generic import read_generic
from tilewright.pto.text.literals import constant, dense
from tilewright.pto.text.op_reader import read_plain
from tilewright.pto.text.pieces import Head, Names, Pieces, Placed, check_enclosed, finished, operands_in, values_of
from tilewright.pto.text.spellings import NAMES, missing
from tilewright.pto.types import I1, INDEX, Type


def read_region(cursor: Cursor, arguments: list[tuple[str, Type, int]] | None = None) -> Region:
    """Return the region in braces here; `arguments` are those its op names, a `^bb0(...)` names others."""
    cursor.expect("{")
    with cursor.nested():
        own = [cursor.define(name, type, at) for name, type, at in arguments or ()]
        if cursor.token.startswith("^") and arguments is None:
            own = _block_arguments(cursor)
        ops: list[Op] = []
        while not cursor.accept("}"):
            ops.append(read_op(cursor))
    return Region(tuple(own), ops)


def _block_arguments(cursor: Cursor) -> list[Value]:
    cursor.at += 1
    own: list[Value] = []
    if cursor.accept("("):
        for at in cursor.items(")"):
            name = new_name(cursor)
            cursor.expect(":")
            own.append(cursor.define(name, cursor.type(), at))
    cursor.expect(":")
    return own


def new_name(cursor: Cursor) -> str:
    """Return the name of a value that is defined here."""
    token = cursor.token
    if not token.startswith("%") or len(token) == 1:
        raise cursor.unexpected("a value such as `%x`")
    if "#" in token:
        raise cursor.unexpected("a name without `#`")
    cursor.at += 1
    return token[1:]


def read_op(cursor: Cursor) -> Op:
    """Return the op that stands here."""
    texts = cursor.tokens.texts
    names = _result_names(cursor) if texts[cursor.at][:1] == "%" else ()
    at, token = cursor.at, texts[cursor.at]
    name = NAMES.get(token)
    if name is None:
        return read_generic(cursor, names) if token.startswith('"') and len(token) > 1 else _refuse(cursor)
    cursor.at += 1
    form = OPS[name].form
    return _RULES[form.syntax](cursor, Head(name, form, names, at))


def _refuse(cursor: Cursor) -> Op:
    token = cursor.token
    if not token[:1].isalpha():
        raise cursor.unexpected("an op or `}`" if token else "`}`", begins=True)
    if token in ("module", "func.func", "builtin.module"):
        raise cursor.unexpected("an op or `}`", "functions stand in modules: is a `}` missing?", begins=True)
    raise cursor.placed(missing(token), cursor.at)


def _result_names(cursor: Cursor) -> Names:
    names: list[tuple[str, int]] = []
    while True:
        at, name = cursor.at, new_name(cursor)
        if cursor.accept(":"):
            count_at, count = cursor.at, number(cursor)
            if not isinstance(count, int) or not 1 <= count <= 64:
                raise PtoSyntaxError("results are counted from 1 to 64", spans=(cursor.span(count_at, count_at),))
            names += [(f"{name}#{i}" if count > 1 else name, at) for i in range(count)]
        else:
            names.append((name, at))
        if not cursor.accept(","):
            break
    if not cursor.accept("="):
        raise cursor.unexpected("`=` after the names of results")
    return names


def _read_constant(cursor: Cursor, head: Head) -> Op:
    attributes = dictionary(cursor) if cursor.token == "{" else {}
    at, token = cursor.at, cursor.token
    if token == "dense" and cursor.following.startswith("<"):
        return _read_dense(cursor, head, attributes)
    if token in ("true", "false"):
        cursor.at += 1
        type = cursor.type() if cursor.accept(":") else I1
        value: bool | int | float = token == "true"
    else:
        value = number(cursor)
        cursor.expect(":")
        type = cursor.type()
    try:
        settled = constant(value, type, is_hexadecimal="0x" in token)
    except KernelError as error:
        raise cursor.placed(error, at) from None
    op = finished(cursor, head, Pieces(attributes={**attributes, "value": settled}), [type])
    if isinstance(settled, int):
        cursor.constants[op.results[0]] = settled
    return op


def _read_dense(cursor: Cursor, head: Head, attributes: dict[str, Attribute]) -> Op:
    """Return a constant of several numbers, `dense<[1, 2]> : vector<2xi16>`, whose text is its value."""
    at, value = cursor.at, cursor.take() + cursor.take()
    cursor.expect(":")
    type = cursor.type()
    try:
        dense(value, type)
    except KernelError as error:
        raise cursor.placed(error, at, at + 1) from None
    return finished(cursor, head, Pieces(attributes={**attributes, "value": value}), [type])


def _read_for(cursor: Cursor, head: Head) -> Op:
    iv_at, iv = cursor.at, new_name(cursor)
    cursor.expect("=")
    bounds = [(cursor.value(), cursor.at - 1)]
    for word in ("to", "step"):
        cursor.expect(word)
        bounds.append((cursor.value(), cursor.at - 1))
    names: Names = ()
    types: list[Type] = []
    clauses: tuple[Clause, ...] = ()
    if cursor.token == "iter_args":
        at = cursor.at
        cursor.at += 1
        names, placed = _assignments(cursor)
        clauses = (Clause("iter_args", values_of(placed), cursor.span(at)),)
        cursor.expect("->")
        types = check_enclosed(cursor, placed)
    type: Type = cursor.type() if cursor.accept(":") else INDEX
    for value, at in bounds:
        if value.type != type:
            message = f"the bounds of this loop are {type}, `%{value.name}` is {value.type}"
            raise PtoSyntaxError(message, spans=(cursor.span(at, at),), help=f"write `: {value.type}` before `{{`")
    span = cursor.span(head.at)
    region = read_region(cursor, [(iv, type, iv_at), *_arguments(names, types)])
    attributes = dictionary(cursor) if cursor.token == "{" else {}
    results = cursor.bind(head.names, types, head.at)
    return Op(head.name, values_of(bounds), clauses, attributes, results, (region,), span)


def _assignments(cursor: Cursor) -> tuple[Names, list[Placed]]:
    """Return the names that `(%a = %x, %b = %y)` defines, and the values that they begin with."""
    names: list[tuple[str, int]] = []
    placed: list[Placed] = []
    cursor.expect("(")
    for at in cursor.items(")"):
        names.append((new_name(cursor), at))
        cursor.expect("=")
        placed.append((cursor.value(), cursor.at - 1))
    return names, placed


def _arguments(names: Names, types: list[Type]) -> list[tuple[str, Type, int]]:
    return [(name, type, at) for (name, at), type in zip(names, types, strict=True)]


def _read_if(cursor: Cursor, head: Head) -> Op:
    at = cursor.at
    condition = cursor.value()
    if condition.type != I1:
        message = f"a condition is i1, `%{condition.name}` is {condition.type}"
        raise PtoSyntaxError(message, spans=(cursor.span(at, at),), help="compare it with `arith.cmpi`")
    types = cursor.types() if cursor.accept("->") else []
    span = cursor.span(head.at)
    regions = [read_region(cursor, [])]
    if cursor.accept("else"):
        regions.append(read_region(cursor, []))
    attributes = dictionary(cursor) if cursor.token == "{" else {}
    results = cursor.bind(head.names, types, head.at)
    return Op(head.name, (condition,), (), attributes, results, tuple(regions), span)


def _read_switch(cursor: Cursor, head: Head) -> Op:
    index = cursor.value()
    attributes = dictionary(cursor) if cursor.token == "{" else {}
    types = cursor.types() if cursor.accept("->") else []
    span = cursor.span(head.at)
    cases: list[int] = []
    regions: list[Region] = []
    while cursor.accept("case"):
        cases.append(_whole(cursor))
        regions.append(read_region(cursor, []))
    cursor.expect("default")
    regions.append(read_region(cursor, []))
    results = cursor.bind(head.names, types, head.at)
    return Op(head.name, (index,), (), {**attributes, "cases": tuple(cases)}, results, tuple(regions), span)


def _whole(cursor: Cursor) -> int:
    """Return the whole number that stands here."""
    at, found = cursor.at, number(cursor)
    if not isinstance(found, int):
        cursor.at = at
        raise cursor.unexpected("a whole number")
    return found


def _read_execute(cursor: Cursor, head: Head) -> Op:
    attributes: dict[str, Attribute] = {NO_INLINE: True} if cursor.accept(NO_INLINE) else {}
    types = cursor.types() if cursor.accept("->") else []
    span = cursor.span(head.at)
    region = read_region(cursor, [])
    attributes |= dictionary(cursor) if cursor.token == "{" else {}
    results = cursor.bind(head.names, types, head.at)
    return Op(head.name, (), (), attributes, results, (region,), span)


def _read_while(cursor: Cursor, head: Head) -> Op:
    names, placed = ((), []) if cursor.token == ":" else _assignments(cursor)
    cursor.expect(":")
    carried = check_enclosed(cursor, placed)
    cursor.expect("->")
    types = cursor.types()
    span = cursor.span(head.at)
    before = read_region(cursor, _arguments(names, carried))
    cursor.expect("do")
    after = read_region(cursor)
    attributes = dictionary(cursor) if cursor.accept("attributes") else {}
    results = cursor.bind(head.names, types, head.at)
    return Op(head.name, values_of(placed), (), attributes, results, (before, after), span)


def _read_condition(cursor: Cursor, head: Head) -> Op:
    cursor.expect("(")
    condition = cursor.value()
    cursor.expect(")")
    op = read_plain(cursor, Head(head.name, OPS["scf.yield"].form, head.names, head.at))
    op.operands = (condition, *op.operands)
    return op


def _read_call(cursor: Cursor, head: Head) -> Op:
    callee = cursor.token
    if not callee.startswith("@") or len(callee) == 1:
        raise cursor.unexpected("the function to call, such as `@helper`")
    cursor.at += 1
    placed = operands_in(cursor, "(", ")")
    attributes = dictionary(cursor) if cursor.token == "{" else {}
    cursor.expect(":")
    if cursor.token != "(":
        raise cursor.unexpected("`(` and the types of the arguments")
    check_enclosed(cursor, placed)
    cursor.expect("->")
    types = cursor.types()
    pieces = Pieces(list(values_of(placed)), attributes={**attributes, "callee": SymbolRef(callee[1:].strip('"'))})
    return finished(cursor, head, pieces, types)


def _read_scope(cursor: Cursor, head: Head) -> Op:
    placed = operands_in(cursor, "(", ")") if head.form.operands else []
    attributes = dictionary(cursor) if cursor.accept("attributes") else {}
    span = cursor.span(head.at)
    region = read_region(cursor)
    if cursor.token == "{":
        attributes = {**attributes, **dictionary(cursor)}
    if head.form.operands and cursor.accept(":"):
        check_enclosed(cursor, placed)
        cursor.expect("->")
        cursor.expect("(")
        cursor.expect(")")
    cursor.bind(head.names, [], head.at)
    return Op(head.name, values_of(placed), (), attributes, (), (region,), span)


_RULES: dict[Syntax, Callable[[Cursor, Head], Op]] = {
    Syntax.PLAIN: read_plain,
    Syntax.CONSTANT: _read_constant,
    Syntax.FOR: _read_for,
    Syntax.IF: _read_if,
    Syntax.WHILE: _read_while,
    Syntax.CONDITION: _read_condition,
    Syntax.CALL: _read_call,
    Syntax.SWITCH: _read_switch,
    Syntax.EXECUTE: _read_execute,
    Syntax.REGION: _read_scope,
    Syntax.FREE: read_free,
}
