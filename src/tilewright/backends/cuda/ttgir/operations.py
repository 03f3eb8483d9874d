"""Operations: a kernel's text read back, as far as a schedule looks at it.

The text is our own: an operation is a line, or lines from one that opens a region to the one that closes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from tilewright.records import entity

NAME = re.compile(r"%\w+(?:#\d+)?")
TENSOR = re.compile(r"tensor<((?:\d+x)+)([^<>,]+(?:<[^<>]*>)?)>")
"""A tensor's type: its extents, each with an x behind it, and its elements."""
_PLACE = re.compile(r" loc\(.*?\)$")
_FOR = re.compile(r"scf\.for (%\w+) = (%\w+) to (%\w+) step (%\w+)(?: iter_args\((.*?)\) -> \((.*)\))? : (i\d+) \{$")


@entity
class Operation:
    """Something that is done: what it is called, the names of its results, its text behind them, and its place."""

    name: str
    results: tuple[str, ...]
    text: str
    place: str

    @property
    def operands(self) -> tuple[str, ...]:
        """The values that it is given; those that its regions define are among them."""
        return tuple(NAME.findall(self.text))

    @property
    def types(self) -> tuple[tuple[tuple[int, ...], str], ...]:
        """The tensors that it says something about, in order: extents, and the type of an element."""
        found = TENSOR.findall(self.text)
        return tuple((tuple(map(int, extents.rstrip("x").split("x"))), element) for extents, element in found)


@entity
class Loop:
    """A loop that counts: its index, ends and step, what it carries, and what is done in a turn."""

    results: tuple[str, ...]
    index: str
    low: str
    high: str
    step: str
    carried: tuple[str, ...]
    starts: tuple[str, ...]
    types: tuple[str, ...]
    body: tuple[Operation, ...]
    given: tuple[str, ...]
    """What a turn hands on."""


def read(text: str) -> list[Operation | Loop]:
    """Return what the function of a module does; loops inside of loops are operations as any other."""
    return [_loop(lines) or _operation(lines) for lines in _groups(text.splitlines()[2:-3])]


def _groups(lines: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the lines of each operation."""
    number = 0
    while number < len(lines):
        last = _end(lines, number) if lines[number].endswith("{") else number
        yield lines[number : last + 1]
        number = last + 1


def _end(lines: Sequence[str], first: int) -> int:
    """Return which line closes the region that one opens."""
    margin = lines[first][: -len(lines[first].lstrip())]
    closing = (n for n in range(first + 1, len(lines)) if lines[n].startswith(margin + "}") and lines[n][-1] != "{")
    return next(closing)


def _operation(lines: Sequence[str]) -> Operation:
    found = _PLACE.search(lines[-1])
    text = "\n".join(_PLACE.sub("", line) for line in lines).strip()
    results, text = _results(text)
    name = re.match(r'"?([\w.]+)', text)
    return Operation(name[1] if name else "", results, text, found[0] if found else "")


def _results(text: str) -> tuple[tuple[str, ...], str]:
    """Return the names of an operation's results, and what it says behind them."""
    named = re.match(r"((?:%\w+(?::\d+)?(?:, )?)+) = ", text)
    if named is None:
        return (), text
    found: list[str] = []
    for each in named[1].split(", "):
        name, _, count = each.partition(":")
        found += [f"{name}#{number}" for number in range(int(count))] if count else [name]
    return tuple(found), text[named.end() :]


def _loop(lines: Sequence[str]) -> Loop | None:
    results, head = _results(lines[0].strip())
    found = _FOR.match(head)
    if found is None:
        return None
    index, low, high, step, carried, types, _ = found.groups()
    pairs = [pair.split(" = ") for pair in carried.split(", ")] if carried else []
    body = [_operation(each) for each in _groups(lines[1:-1])]
    given: tuple[str, ...] = ()
    if body and body[-1].name == "scf.yield":
        given = tuple(NAME.findall(body.pop().text))
    return Loop(
        results, index, low, high, step, tuple(name for name, _ in pairs), tuple(start for _, start in pairs),
        tuple(types.split(", ")) if types else (), tuple(body), given,
    )  # fmt: skip


_ZERO = re.compile(r"arith\.constant dense<(0x0+|0\.0+e\+00)>")


def is_zero(op: Operation | None) -> bool:
    """Return whether an operation makes zeros."""
    return op is not None and _ZERO.match(op.text) is not None


def accumulated(
    body: Sequence[Operation], given: Sequence[str], constants: Mapping[str, Operation]
) -> tuple[Operation, ...]:
    """Return the operations of a turn, of which `given` is handed on, without sums of a product and something else."""
    products = {op.results[0]: op for op in body if op.name == "tt.dot" and is_zero(constants.get(op.operands[2]))}
    uses = [name for op in body for name in op.operands] + list(given)
    found: list[Operation] = []
    gone: set[Operation] = set()
    for op in body:
        product = next((products[name] for name in op.operands if name in products and uses.count(name) == 1), None)
        if op.name == "arith.addf" and product is not None:
            gone.add(product)
            start = next(name for name in op.operands if name != product.results[0])
            text = product.text.replace(product.operands[2], start, 1)
            op = Operation(product.name, op.results, text, product.place)
        found.append(op)
    return tuple(op for op in found if op not in gone)
