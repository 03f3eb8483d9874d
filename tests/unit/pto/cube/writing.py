"""Writing: kernels for the cube as text, with the types behind its ops filled in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

import numpy

from tilewright import ir
from tilewright.pto.lower import lower
from tilewright.pto.text.parser import parse
from tilewright.pto.verify import verify

np = cast("Any", numpy)

_NUMBER = re.compile(r"%n(\d+)\b")


def kernel(arguments: Mapping[str, str], places: Mapping[str, tuple[str, int]], lines: Iterable[str]) -> str:
    """Return a kernel: pointers to global memory or numbers, pointers to local memories at bytes, and ops.

    `%n40` is the number 40; an op gets the types of its operands unless it has a colon.
    """
    body = [line.strip() for line in lines]
    types = {name: f"!pto.ptr<{type_}>" if "," in type_ else type_ for name, type_ in arguments.items()}
    made: list[str] = []
    for name, (type_, start) in places.items():
        types[name] = f"!pto.ptr<{type_}>"
        made.append(f"%{name} = pto.castptr %n{start} : i64 -> {types[name]}")
    text = [line if ":" in line else _typed(line, types) for line in body]
    numbers = sorted({int(n) for n in _NUMBER.findall("\n".join([*made, *text]))})
    heads = [f"%n{n} = arith.constant {n if n < 1 << 63 else n - (1 << 64)} : i64" for n in numbers]
    heads += ["%yes = arith.constant true", "%no = arith.constant false", "%zero = arith.constant 0 : index"]
    given = ", ".join(f"%{name}: {types[name]}" for name in arguments)
    inner = "\n    ".join([*heads, *made, *text, "return"])
    return f'module attributes {{pto.target_arch = "a5"}} {{\n  func.func @k({given}) {{\n    {inner}\n  }}\n}}\n'


_EXTENTS = {"mte_l1_l0a": 2, "mte_l1_l0b": 2, "mad": 3, "mte_l0c": 2, "mte_l1_bt": 1, "mte_l1_bias": 1}
"""How many of the first numbers of ops are extents, by what their names begin with."""


def opened(arguments: Mapping[str, str], lines: Iterable[str]) -> tuple[dict[str, str], list[str], list[int]]:
    """Return arguments and lines in which extents are arguments, too, and the numbers that these are."""
    found: dict[str, int] = {}

    def given(match: re.Match[str]) -> str:
        found[f"extent{match[1]}"] = int(match[1])
        return f"%extent{match[1]}"

    made: list[str] = []
    for line in lines:
        count = next((count for name, count in _EXTENTS.items() if line.startswith(name)), 0)
        made.append(_NUMBER.sub(given, line, count=count) if count else line)
    return {**arguments, **dict.fromkeys(found, "i64")}, made, list(found.values())


def _typed(line: str, types: Mapping[str, str]) -> str:
    if line[0] in "%}":
        return line
    if "%" not in line:
        return f"pto.{line}"
    flags = {"yes": "i1", "no": "i1"}
    names = re.findall(r"%(\w+)", line)
    return f"pto.{line} : {', '.join(types.get(name, flags.get(name, 'i64')) for name in names)}"


def run(text: str, target: str, *arguments: Any, arch: str = "a5") -> None:
    """Run the last function of a text; its buffers change in place."""
    module = parse(text, "k.pto")
    verify(module, is_portable=True)
    *_, func = module.funcs()
    given: list[Any] = [np.reshape(each, -1) if isinstance(each, numpy.ndarray) else each for each in arguments]
    ir.compile(lower(module, func, target=arch), platform=target)(1, *given)
