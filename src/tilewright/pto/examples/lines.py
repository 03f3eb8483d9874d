"""Lines: what an example says of an op, as its declaration has it or as its form and rules let it be written.

Lines are separated by `;`, in the shorthand of `shorthand`. The first may say what they are given, as the arguments of
a function, of any type: `(%a: t8x64xf32, %m: m32)`; a word after a type says what to fill it with, as in
`%i: v64xui32 = arange`. A frame makes it, and stores what the lines give.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from tilewright.errors import TilewrightError
from tilewright.pto.elements import table
from tilewright.pto.examples.frame import Frame, runnable
from tilewright.pto.module import Region
from tilewright.pto.op import Declaration
from tilewright.pto.ops.examples import own, shown_for
from tilewright.pto.ops.registry import OPS
from tilewright.pto.shorthand import written
from tilewright.pto.text.form import Form, Syntax, Typing
from tilewright.pto.text.kinds import signature
from tilewright.pto.text.parser import parse
from tilewright.pto.types import Scalar

_GIVEN = re.compile(r"%(\w+): (.+?)(?: = ([\w:.-]+))?(?=, %|\)$)")
_ELEMENTS = ("f32", "i32", "i16", "i8", "f16", "ui32", "ui16", "ui8", "bf16", "i64")
_KINDS = {
    **dict.fromkeys("tz", "t8x64x{element}"), **dict.fromkeys("vu", "v{lanes}x{element}"), "b": "i1",
    "i": "{integer}", "l": "!pto.ptr<{element}, ub>", **dict.fromkeys("mn", "m{bits}"),
    **dict.fromkeys("sef", "{element}"),
}  # fmt: skip
"""What an example passes for each kind of operand."""
_CASTS = [pair.split("-") for pair in "i16-i32 i32-i16 i32-index f32-i32 i32-f32 f16-f32 f32-f16 i32-ui32".split()]


@cache
def example(name: str) -> str:
    """Return the text of a kernel that runs an op, with the command that runs it; nothing for one that nothing runs."""
    declared = OPS[name]
    if declared.family:
        return ""
    if isinstance(declared.example, str):
        said = declared.example.replace("{op}", name).replace("{width}", name.rpartition("_b")[2]).strip()
        return f"{said}\n" if "func.func" in said else kernel(said)
    if (shown := own(name)) is None:
        derived = next((text for lines in _derived(name, declared) if (text := _tried(lines))), "")
        if derived or (shown := shown_for(name)) is None:
            return derived
    return runnable(shown.text, shown.example.command)


def kernel(short: str) -> str:
    """Return the kernel around lines, the first of which may say what they are given."""
    lines = [line.strip() for line in short.replace(";", "\n").splitlines() if line.strip()]
    head = lines.pop(0) if lines[0].startswith("(") else "()"
    fills = {name: fill for name, _, fill in _GIVEN.findall(head)}
    arguments = ", ".join(f"%{name}: {kind}" for name, kind, _ in _GIVEN.findall(head))
    body = _parsed([f"func.func @lines({arguments}) {{", *lines, "return", "}"])
    ops = [op for top in body.ops for op in top.walk()]
    outs, used = {value for op in ops for value in op.outs}, {value for op in ops for value in op.uses}
    frame = Frame()
    for value in body.arguments:
        frame.take(value, fills[value.name], value in outs)
    for value in (value for op in body.ops for value in op.results if value not in used):
        frame.give(value)
    return frame.around(lines)


def _parsed(lines: list[str]) -> Region:
    """Return the body of a function."""
    func = next(parse("\n".join(["module {", *written(lines), "}"])).funcs())
    assert func.body is not None
    return func.body


def _tried(lines: str) -> str:
    """Return the kernel around lines where it is read, verified and lowered as it is, else nothing."""
    from tilewright.pto.lower import lower
    from tilewright.pto.verify import verify

    try:
        text = kernel(lines)
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
    given = ", ".join(f"%{word}: {kind}" for word, kind in {**ins, "out": f"t8x64x{element}"}.items())
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
    size = Scalar(element).bits
    words = {"element": element, "integer": integer, "bits": min(32, size), "lanes": 2048 // size}
    found = [_KINDS[letter].format(**words) for letter in letters]
    return dict(zip(_names(letters), found, strict=True))


def _names(letters: str) -> list[str]:
    """Return a name for each operand: of a mask, a number, or anything else."""
    names = {"masks": iter(("m", "o", "q")), "numbers": iter("nkjhgf"), "others": iter("xyzuvw")}
    kinds = {**dict.fromkeys("mn", "masks"), **dict.fromkeys("seifb", "numbers")}
    return [next(names[kinds.get(letter, "others")]) for letter in letters]
