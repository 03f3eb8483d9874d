"""Examples: small kernels that run an op, and what NumPy says they leave behind.

A declaration's example is what `tilewright pto explain` shows and what the test over the registry runs. It is written
in a shorthand, which `shorthand` has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
    def said(self) -> str:
        """What a command line gives it."""
        fill = f"{self.range[0]}..{self.range[1]}" if self.range else "zeros" if self.is_written else "random"
        if self.shape:
            return f"{self.name}={fill}:{'x'.join(map(str, self.shape))}"
        return f"{self.name}={self.range[0] if self.range else 3}"


def _argument(text: str) -> Argument:
    """Return what `x: f32 8x64 in 1..9` says."""
    name, _, rest = text.partition(":")
    said, _, limits = rest.partition(" in ")
    element, _, shape = said.strip().partition(" ")
    low, _, high = limits.partition("..")
    extents = tuple(map(int, shape.split("x"))) if shape else ()
    return Argument(name.strip(), element, extents, (int(low), int(high)) if limits else None)


@record
class Example:
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
    """Functions beside the kernel, in the same shorthand."""
    arch: str = "a5"

    @property
    def given(self) -> list[Argument]:
        """What the kernel is given."""
        return [_argument(text) for text in self.arguments.split(",") if text.strip()]

    @property
    def command(self) -> str:
        """What follows `tilewright pto run example.pto` to run it."""
        return " ".join(each.said for each in self.given)

    def text(self, op: str) -> str:
        """Return the kernel for an op, whole."""
        from tilewright.pto.shorthand import lines_of, needed, placed, written

        given = ", ".join(f"%{argument.name}: {argument.type}" for argument in self.given)
        places = [placed(text) for text in self.places.split(",") if text.strip()]
        lines = [
            *lines_of(self.around),
            f"func.func @example({given}) {{",
            *places,
            *lines_of(self.lines),
            "return",
            "}",
        ]
        inner = written([line.replace("{op}", op) for line in needed(lines)])
        return "\n".join([f'module attributes {{pto.target_arch = "{self.arch}"}} {{', *inner, "}", ""])
