"""Whole examples: kernels of a declaration for which no frame is made, and what NumPy says they leave behind.

Their lines are short ones (see `short`), one to a line, in which `%n8` is an i64 and `%yes` and `%no` are flags.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from tilewright.pto.examples.short import constants, written_out
from tilewright.records import record


@record
class Argument:
    """What a kernel is given: its name, its element, its extents (a number has none) and the integers it is made of."""

    name: str
    element: str
    shape: tuple[int, ...] = ()
    range: tuple[int, int] | None = None

    @property
    def is_written(self) -> bool:
        """Whether the kernel writes it, as its name says."""
        return self.name.startswith("out")

    @property
    def type(self) -> str:
        """Its type in text."""
        return f"!pto.ptr<{self.element}, gm>" if self.shape else self.element

    @property
    def value(self) -> str:
        """What the command line gives it."""
        if not self.shape:
            return str(self.range[1] if self.range else 3)
        filled = str(self.range[1]) if self.range else "zeros" if self.is_written else "random"
        return f"{filled}:{'x'.join(map(str, self.shape))}"


def _argument(text: str) -> Argument:
    """Return what `x: f32 8x64 in 1..9` says."""
    name, _, rest = text.partition(":")
    said, _, limits = rest.partition(" in ")
    element, _, shape = said.strip().partition(" ")
    low, _, high = limits.partition("..")
    extents = tuple(map(int, shape.split("x"))) if shape else ()
    return Argument(name.strip(), element, extents, (int(low), int(high)) if limits else None)


@record
class Kernel:
    """A kernel that runs an op.

    `arguments` are `x: f32 8x64` for memory and `n: i32` for a number, made of small integers or of those that
    `in 1..9` says. The kernel writes those called `out`, which are zero before it where no integers are said. `gives`
    takes the op's name and all arguments, and returns what is written then: an array, or a tuple of them.
    """

    arguments: str
    lines: str
    gives: Callable[..., Any]
    places: str = ""
    """Pointers to local memory, as `x1: f32 l1 0`: element, memory and first byte."""
    around: str = ""
    """Functions beside the kernel, with a blank line between them; the first line is `@name(%x: T) attributes`."""
    arch: str = "a5"

    @property
    def given(self) -> list[Argument]:
        """What the kernel is given."""
        return [_argument(text) for text in self.arguments.split(",") if text.strip()]

    def text(self, op: str) -> str:
        """Return the kernel for an op, whole; its first line says how it is run."""
        given = self.given
        head = f"@example({', '.join(f'%{each.name}: {each.type}' for each in given)})"
        places = [_place(text) for text in self.places.split(",") if text.strip()]
        own = [head, *places, *self.lines.strip().splitlines()]
        functions = [*(each.splitlines() for each in self.around.strip().split("\n\n") if each), own]
        inner = "\n".join(_function([line.replace("{op}", op) for line in each]) for each in functions)
        command = " ".join(["// tilewright pto run example.pto", *(f"{each.name}={each.value}" for each in given)])
        return f'{command}\nmodule attributes {{pto.target_arch = "{self.arch}"}} {{\n{inner}\n}}\n'


def _place(text: str) -> str:
    name, _, rest = text.strip().partition(":")
    element, space, start = rest.split()
    return f"%{name} = pto.castptr %n{start} -> !pto.ptr<{element}, {space}>"


def _function(lines: Sequence[str]) -> str:
    """Return a function in full, of the line that says what it is called and given, and those of its body."""
    named = [re.sub(r"%n(\d+)\b", r"%c\1_i64", line.strip()) for line in lines]
    head, *body = [line.replace("%yes", "%c1_i1").replace("%no", "%c0_i1") for line in named]
    name, _, rest = head.partition("(")
    parameters, _, attributes = rest.rpartition(")")
    full = written_out(";".join([f"({parameters})", *body])).lines
    types = parameters if "<" not in parameters else ", ".join(_in_full(parameters))
    written = [f"func.func {name}({types}){attributes} {{", *constants(full), *full, "return"]
    depth, shown = 1, list[str]()
    for line in written:
        depth -= line.startswith("}")
        shown.append("  " * depth + line)
        depth += line.endswith("{")
    return "\n".join([*shown, "  }"])


def _in_full(parameters: str) -> list[str]:
    """Return parameters with their types in full."""
    return [f"%{name}: {each.type}" for name, each in written_out(f"({parameters})").given.items()]
