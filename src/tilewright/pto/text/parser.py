"""The parser: PTO text to modules, or an error that shows the place."""

from __future__ import annotations

from tilewright.collector import paused_collection
from tilewright.frontend.tracebacks import brief
from tilewright.pto.errors import PtoRedefinitionError
from tilewright.pto.module import Attribute, Func, Module, Region, Value
from tilewright.pto.text.aliases import drop_locations, read_aliases
from tilewright.pto.text.attributes import dictionary
from tilewright.pto.text.cursor import Cursor
from tilewright.pto.text.lexer import Tokens
from tilewright.pto.text.structured import new_name, read_op
from tilewright.pto.types import Type


@brief
def parse(text: str, filename: str = "<pto>") -> Module:
    """Return the module that `text` spells; a `KernelError` with its place where it spells none."""
    with paused_collection():
        return _whole(Tokens(text, filename))


def _whole(tokens: Tokens) -> Module:
    drop_locations(tokens)
    cursor = Cursor(tokens)
    read_aliases(cursor)
    if cursor.token in ("module", "builtin.module"):
        module = _module(cursor)
        read_aliases(cursor)
        if cursor.token:
            raise cursor.unexpected("the end of the text after the module", begins=True)
    else:
        module = Module(_items(cursor, ""), span=cursor.span(0, 0))
        if not module.items:
            raise cursor.unexpected("`module`")
    module.source, module.text = tokens.source, tokens.text
    return module


def _items(cursor: Cursor, closing: str) -> list[Func | Module]:
    items: list[Func | Module] = []
    names: dict[str, Func] = {}
    while cursor.token != closing:
        item = _item(cursor)
        items.append(item)
        if not isinstance(item, Func):
            continue
        before = names.setdefault(item.name, item)
        if before is not item:
            message = f"`@{item.name}` is already defined on line {before.span.line}"
            raise PtoRedefinitionError(message, spans=(item.span,))
    return items


def _item(cursor: Cursor) -> Func | Module:
    if cursor.token in ("module", "builtin.module"):
        return _module(cursor)
    if cursor.token == "func.func":
        return _function(cursor)
    raise cursor.unexpected("`func.func`, `module` or `}`", begins=True)


def _module(cursor: Cursor) -> Module:
    at = cursor.at
    cursor.at += 1
    name = cursor.take()[1:].strip('"') if cursor.token.startswith("@") else None
    attributes = dictionary(cursor) if cursor.accept("attributes") else {}
    span = cursor.span(at)
    cursor.expect("{")
    with cursor.nested():
        items = _items(cursor, "}")
    cursor.expect("}")
    return Module(items, attributes, name, span)


def _function(cursor: Cursor) -> Func:
    at = cursor.at
    cursor.at += 1
    private = cursor.accept("private")
    if not private:
        cursor.accept("public")
    name = cursor.token
    if not name.startswith("@") or len(name) == 1:
        raise cursor.unexpected("the function's name, such as `@kernel`")
    cursor.at += 1
    with cursor.isolated():
        arguments = _arguments(cursor)
        results = _results(cursor) if cursor.accept("->") else []
        attributes: dict[str, Attribute] = dictionary(cursor) if cursor.accept("attributes") else {}
        span = cursor.span(at)
        body = _body(cursor, arguments) if cursor.token == "{" else None
    return Func(name[1:].strip('"'), arguments, tuple(results), attributes, body, private, span)


def _body(cursor: Cursor, arguments: tuple[Value, ...]) -> Region:
    if any(not argument.name for argument in arguments):
        raise cursor.unexpected("no body, as the arguments have no names")
    cursor.expect("{")
    region = Region(arguments)
    if cursor.token.startswith("^") and cursor.following == ":":  # the block's name, which nothing jumps to
        cursor.at += 2
    while not cursor.accept("}"):
        region.ops.append(read_op(cursor))
    return region


def _arguments(cursor: Cursor) -> tuple[Value, ...]:
    """Return the arguments of a function; those of a declaration may lack names."""
    arguments: list[Value] = []
    cursor.expect("(")
    for at in cursor.items(")", "`,` or `)`"):
        if cursor.token.startswith("%"):
            name = new_name(cursor)
            cursor.expect(":")
            arguments.append(cursor.define(name, cursor.type(), at))
        else:
            type = cursor.type()
            arguments.append(Value("", type, cursor.span(at)))
        if cursor.token == "{":
            dictionary(cursor)
    return tuple(arguments)


def _results(cursor: Cursor) -> list[Type]:
    if not cursor.accept("("):
        return [cursor.type()]
    results: list[Type] = []
    for _ in cursor.items(")"):
        results.append(cursor.type())
        if cursor.token == "{":
            dictionary(cursor)
    return results
