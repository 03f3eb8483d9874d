"""Lines: what an example says of an op, as its declaration has it or as its form and rules let it be written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

from tilewright.errors import TilewrightError
from tilewright.pto.elements import table
from tilewright.pto.examples.frame import Frame
from tilewright.pto.examples.kernel import Kernel
from tilewright.pto.examples.short import Lines, constants, is_constant, written_out
from tilewright.pto.module import Region
from tilewright.pto.op import Declaration, Examples
from tilewright.pto.ops.registry import OPS
from tilewright.pto.text.form import Form, Syntax, Typing
from tilewright.pto.text.kinds import signature
from tilewright.pto.text.parser import parse
from tilewright.pto.types import Scalar

_ELEMENTS = ("f32", "i32", "i16", "i8", "f16", "ui32", "ui16", "ui8", "bf16", "i64")
_KINDS = {
    **dict.fromkeys("tz", "T<8x64x{element}>"), **dict.fromkeys("vu", "V<{element}>"), "i": "{integer}", "b": "i1",
    **dict.fromkeys("mn", "M<{bits}>"), **dict.fromkeys("se", "{element}"), "f": "{element}", "l": "P<{element}>",
}  # fmt: skip
"""What an example passes for each kind of operand."""
_NAMED = re.compile(r"\bpto\.[a-z][\w.]*")
_CASTS = [pair.split("-") for pair in "i16-i32 i32-i16 i32-index f32-i32 i32-f32 f16-f32 f32-f16 i32-ui32".split()]


@cache
def example(name: str) -> str:
    """Return the text of a kernel that runs an op, with the command that runs it; nothing for one that nothing runs."""
    declared = OPS[name]
    if declared.family:
        return ""
    if declared.example and isinstance(declared.example, str):
        said = declared.example.replace("{op}", name).replace("{width}", name.rpartition("_b")[2])
        return said if "func.func" in said else _kernel(said)
    whole = kernel_of(name, declared.example)
    if whole is not None:
        return whole.text(name)
    return next((text for lines in _derived(name, declared) if (text := _tried(lines))), _elsewhere().get(name, ""))


def kernel_of(name: str, found: Examples) -> Kernel | None:
    """Return the whole kernel that a declaration has for an op, None where it has none."""
    if isinstance(found, Mapping):
        return found.get(name.partition(".")[2])
    return found if isinstance(found, Kernel) else None


@cache
def _elsewhere() -> dict[str, str]:
    """Return for each op that stands in the kernel of another the first of these."""
    found: dict[str, str] = {}
    for name, declared in OPS.items():
        text = kernel.text(name) if (kernel := kernel_of(name, declared.example)) else ""
        for used in _NAMED.findall(text):
            found.setdefault(used, text)
    return found


def _kernel(short: str) -> str:
    """Return the kernel around short lines."""
    said = written_out(short)
    body = _parsed(said)
    ops = [op for top in body.ops for op in top.walk()]
    written, used = {value for op in ops for value in op.outs}, {value for op in ops for value in op.uses}
    frame = Frame()
    for value in body.arguments:
        frame.take(value, said.given[value.name].fill, value in written)
    for value in (value for op in body.ops for value in op.results):
        if value not in used and not is_constant(value.name):
            frame.give(value)
    return frame.around(said.lines)


def _parsed(said: Lines) -> Region:
    """Return the lines as the body of a function, which is given what they are."""
    arguments = ", ".join(f"%{name}: {each.type}" for name, each in said.given.items())
    lines = "\n".join([*constants(said.lines), *said.lines, "return"])
    func = next(parse(f"module {{ func.func @lines({arguments}) {{\n{lines}\n}} }}").funcs())
    assert func.body is not None
    return func.body


def _tried(lines: str) -> str:
    """Return the kernel around lines where it is read, verified and lowered as it is, else nothing."""
    from tilewright.pto.lower import lower
    from tilewright.pto.verify import verify

    try:
        text = _kernel(lines)
        module = parse(text)
        verify(module)
        lower(module, next(module.funcs()), target="a5")
    except TilewrightError:
        return ""
    return text


def _derived(name: str, declared: Declaration) -> Iterator[str]:
    """Yield lines that an op's form allows, one element type after the other."""
    form = declared.form
    if form.typing is Typing.CAST:
        yield from (f"(%n: {come}); %r = {name} %n : {come} to {go}" for come, go in _CASTS)
    elements = table()[name].a5 if name in table() else ()
    for element in [each for each in _ELEMENTS if each in elements] if elements else _ELEMENTS:
        for integer in ("i32", "i16", "index"):
            lines = _in_words(name, form, element, integer) if form.words else _in_order(name, form, element, integer)
            if lines:
                yield lines


def _in_words(name: str, form: Form, element: str, integer: str) -> str:
    """Return lines of an op on tiles."""
    if set(form.words) != {"ins", "outs"} or form.words["outs"].kinds not in ("t", "z"):
        return ""
    ins = _types(form.words["ins"].kinds, element, integer)
    if not ins:
        return ""
    given = ", ".join(f"%{word}: {kind}" for word, kind in {**ins, "out": f"T<8x64x{element}>"}.items())
    return f"({given}); {name} ins({', '.join(f'%{word}' for word in ins)}) outs(%out)"


def _in_order(name: str, form: Form, element: str, integer: str) -> str:
    """Return lines of an op on registers or numbers."""
    if form.syntax is not Syntax.PLAIN or form.slots or form.numbers or form.index:
        return ""
    ins, results = _types(form.operands, element, integer), _types(form.results, element, integer)
    if not ins or not results:
        return ""
    given = ", ".join(f"%{word}: {kind}" for word, kind in ins.items())
    made = ", ".join(f"%{word}" for word in ("r", "s")[: len(results)])
    line = f"({given}); {made} = {name} {', '.join(f'%{word}' for word in ins)}"
    first, last = next(iter(ins.values())), list(results.values())[-1]
    if form.typing is Typing.EACH:
        return f"{line} -> {', '.join(results.values())}"
    said = {Typing.SAME: last, Typing.RESULT: last, Typing.EXTENDED: f"{first}, {last}"}.get(form.typing)
    return f"{line} : {said}" if said else ""


def _types(kinds: str, element: str, integer: str) -> dict[str, str]:
    """Return the operands of a signature's first row by name, none where an example cannot make one."""
    row = signature(kinds)
    letters = row.rows[0][: row.count[0]]
    if set(letters) - _KINDS.keys():
        return {}
    bits = min(32, Scalar(element).bits)
    found = [_KINDS[letter].format(element=element, integer=integer, bits=bits) for letter in letters]
    return dict(zip(_names(letters), found, strict=True))


def _names(letters: str) -> list[str]:
    """Return a name for each operand: of a mask, a number, or anything else."""
    names = {"masks": iter(("m", "o", "q")), "numbers": iter("nkjhgf"), "others": iter("xyzuvw")}
    kinds = {**dict.fromkeys("mn", "masks"), **dict.fromkeys("seifb", "numbers")}
    return [next(names[kinds.get(letter, "others")]) for letter in letters]
