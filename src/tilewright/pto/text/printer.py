"""The printer: modules to canonical text, which parses to an equal module and prints the same again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from tilewright.frontend.names import free_name
from tilewright.pto.module import Attribute, Attributes, Clause, Enumerated, Func, Module, Op, Region, Value, cases_of
from tilewright.pto.ops.registry import OPS
from tilewright.pto.text.attributes import fits_slot
from tilewright.pto.text.form import NO_INLINE, Form, Layout, Slot, Syntax, Typing
from tilewright.pto.text.free import WRITTEN, free_text
from tilewright.pto.text.literals import attribute, constant_text, dictionary, items, symbol
from tilewright.pto.types import INDEX, Type

_UNUSUAL = re.compile(r"[^\w$.]", re.ASCII)
_MODIFIERS = ("fastmath", "overflow")
_SHORT = {"func.return": "return"}
_STEP = "  "


def print_module(module: Module) -> str:
    """Return the canonical text of `module`."""
    return "\n".join(_module_lines(module, "")) + "\n"


def _module_lines(module: Module, indent: str) -> Iterator[str]:
    name = f" {symbol(module.name)}" if module.name is not None else ""
    attributes = f" attributes {dictionary(module.attributes)}" if module.attributes else ""
    yield f"{indent}module{name}{attributes} {{"
    for item in module.items:
        if isinstance(item, Module):
            yield from _module_lines(item, indent + _STEP)
        else:
            yield from _Names().function(item, indent + _STEP)
    yield f"{indent}}}"


class _Names:
    """The printer inside one function: it knows what every value is called."""

    def __init__(self) -> None:
        self._names: dict[Value, str] = {}
        self._taken: set[str] = set()

    def function(self, func: Func, indent: str) -> Iterator[str]:
        private = " private" if func.private else ""
        results = f" -> {_returned(func.results)}" if func.results else ""
        attributes = f" attributes {dictionary(func.attributes)}" if func.attributes else ""
        if func.body is None:
            arguments = ", ".join(str(value.type) for value in func.arguments)
            yield f"{indent}func.func{private} {symbol(func.name)}({arguments}){results}{attributes}"
            return
        arguments = ", ".join(f"{self._define(value)}: {value.type}" for value in func.arguments)
        yield f"{indent}func.func{private} {symbol(func.name)}({arguments}){results}{attributes} {{"
        for op in func.body.ops:
            yield from self.op(op, indent + _STEP)
        yield f"{indent}}}"

    def op(self, op: Op, indent: str) -> Iterator[str]:
        form = OPS[op.name].form
        write = self._writers.get(form.syntax)
        if write is None:
            text = self._plain(op, form)
            yield f"{indent}{self._results(op)}{text}"
            return
        first, *rest = write(self, op, indent)
        yield f"{indent}{self._results(op)}{first}"  # named after the regions, which cannot see them
        yield from rest

    def _define(self, value: Value) -> str:
        self._names[value] = name = free_name(_UNUSUAL.sub("_", value.name) or "v", self._taken)
        self._taken.add(name)
        return f"%{name}"

    def _results(self, op: Op) -> str:
        return f"{', '.join(map(self._define, op.results))} = " if op.results else ""

    def _use(self, value: Value) -> str:
        return f"%{self._names[value]}" if value in self._names else f"%{value.name or 'v'}"

    def _uses(self, values: Iterable[Value]) -> str:
        return ", ".join(map(self._use, values))

    def _region(self, region: Region, indent: str, arguments: bool = True) -> Iterator[str]:
        """Yield the lines between a region's braces; its values are forgotten afterwards."""
        taken = set(self._taken)
        if arguments and region.arguments:
            listed = ", ".join(f"{self._define(value)}: {value.type}" for value in region.arguments)
            yield f"{indent}^bb0({listed}):"
        for op in region.ops:
            yield from self.op(op, indent + _STEP)
        self._taken = taken

    def _plain(self, op: Op, form: Form) -> str:
        statics, shown = _slots(op, form)
        words = [self._word(clause, form) for clause in op.clauses]
        bracket = [self._use(clause.values[0]) for clause in op.clauses if form.is_bracketed and clause.values]
        operands = [self._operand(op, form, i) for i in range(len(op.operands))]
        listed = ", ".join([*statics, *operands] if form.is_leading else [*operands, *statics])
        if form.is_bracketed:
            listed = ", ".join(filter(None, [f"[{', '.join([*statics, *bracket])}]", *operands]))
        numbers = [f"{name} [{items(op.attributes[name])}]" for name in form.numbers if name in op.attributes]
        kept = {name: value for name, value in op.attributes.items() if name not in (*shown, *form.numbers)}
        modifiers = [f"{name}<{kept.pop(name)}>" for name in _MODIFIERS if isinstance(kept.get(name), str)]
        attributes = [dictionary(kept)] if kept else []
        lists = ", ".join(word for word, layout in words if layout is Layout.LIST)
        others = [word for word, layout in words if word and layout is not Layout.LIST]
        head = f"{listed}, {lists}" if lists and listed else listed or lists
        gap = "" if form.is_bracketed else " "
        pieces = " ".join(filter(None, [head, *numbers, *others, *modifiers, *attributes]))
        name = _SHORT.get(op.name, op.name)
        return (f"{name}{gap}{pieces}" if pieces else name) + self._typing(op, form)

    def _operand(self, op: Op, form: Form, i: int) -> str:
        text = self._use(op.operands[i])
        index = op.clause(form.index) if form.index and i == form.indexed else None
        return text if index is None else f"{text}[{self._uses(index)}]"

    def _word(self, clause: Clause, form: Form) -> tuple[str, Layout]:
        layout, values = form.words[clause.name].layout, self._uses(clause.values)
        types = ", ".join(str(value.type) for value in clause.values)
        is_elsewhere = layout in (Layout.INDEX, Layout.SLOT)
        return "" if is_elsewhere else layout.text(clause.name, values, types), layout

    def _typing(self, op: Op, form: Form) -> str:
        results = ", ".join(str(value.type) for value in op.results)
        operands = [value.type for value in op.operands]
        if form.typing is Typing.EACH:
            typed = _typed(op, form)
            colon = f" : {', '.join(typed)}" if typed else ""
            return f"{colon} -> {results}" if results else colon
        if form.typing is Typing.RESULT:
            return f" outs : {results}" if "ins" in form.words else f" : {results}"
        if form.typing is Typing.CAST:
            return f" : {operands[0]} to {results}"
        if form.typing is Typing.IMPLIED:
            return ""
        return f" : {results}" if form.typing is Typing.EXTENDED else f" : {operands[-1]}"

    def _constant(self, op: Op, indent: str) -> Iterator[str]:
        kept = {name: value for name, value in op.attributes.items() if name != "value"}
        attributes = f" {dictionary(kept)}" if kept else ""
        value, type = op.attributes["value"], op.results[0].type
        yield f"{op.name}{attributes} {constant_text(value, type)}"

    def _for(self, op: Op, indent: str) -> Iterator[str]:
        lower, upper, step = map(self._use, op.operands)
        region, taken = op.regions[0], set(self._taken)
        inits = [self._use(value) for value in op.clause("iter_args") or ()]
        iv, *carried = map(self._define, region.arguments)
        pairs = ", ".join(f"{name} = {init}" for name, init in zip(carried, inits, strict=True))
        carries = op.clause("iter_args") is not None
        iter_args = f" iter_args({pairs}) -> {_types(value.type for value in region.arguments[1:])}" if carries else ""
        type = f" : {region.arguments[0].type}" if region.arguments[0].type != INDEX else ""
        yield f"{op.name} {iv} = {lower} to {upper} step {step}{iter_args}{type} {{"
        yield from self._region(region, indent, arguments=False)
        self._taken = taken
        yield f"{indent}}}{_after(op.attributes)}"

    def _if(self, op: Op, indent: str) -> Iterator[str]:
        results = f" -> {_types(value.type for value in op.results)}" if op.results else ""
        yield f"{op.name} {self._use(op.operands[0])}{results} {{"
        yield from self._region(op.regions[0], indent)
        if len(op.regions) > 1:
            yield f"{indent}}} else {{"
            yield from self._region(op.regions[1], indent)
        yield f"{indent}}}{_after(op.attributes)}"

    def _switch(self, op: Op, indent: str) -> Iterator[str]:
        kept = {name: value for name, value in op.attributes.items() if name != "cases"}
        results = f" -> {_types(value.type for value in op.results)}" if op.results else ""
        yield f"{op.name} {self._use(op.operands[0])}{_after(kept)}{results}"
        for start, region in zip([*(f"case {case}" for case in cases_of(op)), "default"], op.regions, strict=True):
            yield f"{indent}{start} {{"
            yield from self._region(region, indent)
            yield f"{indent}}}"

    def _execute(self, op: Op, indent: str) -> Iterator[str]:
        kept = {name: value for name, value in op.attributes.items() if name != NO_INLINE}
        mark = f" {NO_INLINE}" if NO_INLINE in op.attributes else ""
        results = f" -> {_types(value.type for value in op.results)}" if op.results else ""
        yield f"{op.name}{mark}{results} {{"
        yield from self._region(op.regions[0], indent)
        yield f"{indent}}}{_after(kept)}"

    def _while(self, op: Op, indent: str) -> Iterator[str]:
        before, after = op.regions
        taken = set(self._taken)
        inits = [self._use(value) for value in op.operands]
        pairs = zip(map(self._define, before.arguments), inits, strict=True)
        assigned = ", ".join(f"{name} = {init}" for name, init in pairs)
        types = f"{_types(v.type for v in op.operands)} -> {_types(v.type for v in op.results)}"
        yield f"{op.name} ({assigned}) : {types} {{"
        yield from self._region(before, indent, arguments=False)
        self._taken = taken
        yield f"{indent}}} do {{"
        yield from self._region(after, indent)
        yield f"{indent}}}{f' attributes {dictionary(op.attributes)}' if op.attributes else ''}"

    def _condition(self, op: Op, indent: str) -> Iterator[str]:
        condition, *values = op.operands
        passed = f" {self._uses(values)}" if values else ""
        types = f" : {', '.join(str(value.type) for value in values)}" if values else ""
        yield f"{op.name}({self._use(condition)}){passed}{_after(op.attributes)}{types}"

    def _call(self, op: Op, indent: str) -> Iterator[str]:
        callee = op.attributes["callee"]
        kept = {name: value for name, value in op.attributes.items() if name != "callee"}
        types = f"{_types(v.type for v in op.operands)} -> {_returned([v.type for v in op.results])}"
        yield f"{op.name} {attribute(callee)}({self._uses(op.operands)}){_after(kept)} : {types}"

    def _scope(self, op: Op, indent: str) -> Iterator[str]:
        is_strict = bool(OPS[op.name].form.operands)
        taken = f"({self._uses(op.operands)})" if is_strict else ""
        yield f"{op.name}{taken} {{"
        yield from self._region(op.regions[0], indent)
        types = f" : {_types(value.type for value in op.operands)} -> ()" if is_strict else ""
        yield f"{indent}}}{_after(op.attributes)}{types}"

    def _free(self, op: Op, indent: str) -> Iterator[str]:
        kept = {name: value for name, value in op.attributes.items() if name != WRITTEN}
        yield f"{op.name}{free_text(op, self._use, dictionary(kept))}"

    _writers: dict[Syntax, Callable[[_Names, Op, str], Iterator[str]]] = {
        Syntax.CONSTANT: _constant,
        Syntax.FOR: _for,
        Syntax.IF: _if,
        Syntax.WHILE: _while,
        Syntax.CONDITION: _condition,
        Syntax.CALL: _call,
        Syntax.SWITCH: _switch,
        Syntax.EXECUTE: _execute,
        Syntax.REGION: _scope,
        Syntax.FREE: _free,
    }


def _slots(op: Op, form: Form) -> tuple[list[str], tuple[str, ...]]:
    """Return the static tokens of `op` as text, and the names of the attributes they are."""
    texts: list[str] = []
    for slot in form.slots:
        if slot.name not in op.attributes or not fits_slot(op.attributes[slot.name], slot):
            break
        texts.append(_slot(op.attributes[slot.name], slot))
    return texts, tuple(slot.name for slot in form.slots[: len(texts)])


def _slot(value: Attribute, slot: Slot) -> str:
    if isinstance(value, Enumerated) and value.family == slot.family:
        return f"<{value.word}>"
    return value if slot.family == "word" and isinstance(value, str) else attribute(value)


def _typed(op: Op, form: Form) -> list[str]:
    """Return the types that the text of `op` lists before the arrow."""
    if form.order:
        return [str(op.operands[i].type) for i in form.order]
    operands = [str(value.type) for value in op.operands[: max(0, len(op.operands) - form.untyped)]]
    for clause in op.clauses:
        if form.words[clause.name].layout is Layout.PLAIN:
            operands += [str(value.type) for value in clause.values]
    return operands


def _types(types: Iterable[Type]) -> str:
    return f"({', '.join(map(str, types))})"


def _returned(types: Sequence[Type]) -> str:
    return str(types[0]) if len(types) == 1 else _types(types)


def _after(attributes: Attributes) -> str:
    return f" {dictionary(attributes)}" if attributes else ""
