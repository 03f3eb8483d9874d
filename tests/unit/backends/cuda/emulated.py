"""Triton IR run by NumPy, as far as recipes write it: numbers of kernels where there is no GPU.

Threads come in any order: so do the elements of a store, of an atomic update and of a reduction. Memory that a kernel
was not given is never there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy
from unit.backends.cuda.emulated_functions import NAMED, called, computed, instruction
from unit.backends.cuda.emulated_memory import APART, Memory, numpy_type, pointed, typed
from unit.backends.cuda.written import written

from tilewright.backends.cuda.host.kernels import KernelText
from tilewright.backends.cuda.ttir.text import ANY_ROOM
from tilewright.core.program import Function

np: Any = numpy  # elements are of any type here
Value = Any


@dataclass
class Line:
    """An operation, with the regions that it holds."""

    text: str
    regions: list[list[Line]] = field(default_factory=list["list[Line]"])


def parsed(lines: Sequence[str], at: int = 0) -> tuple[list[Line], int]:
    """Return the operations of a region, and where it ends."""
    found: list[Line] = []
    while at < len(lines) and not lines[at].startswith("}"):
        line = Line(lines[at])
        found.append(line)
        at += 1
        is_open = line.text.endswith("{")
        while is_open:
            region, at = parsed(lines, at)
            line.regions.append(region)
            is_open = lines[at].endswith("{")
            at += 1
    return found, at


def unsigned(x: Any) -> Any:
    """Return integers as those without a sign that have their bits."""
    return x if x.dtype == np.bool_ else x.view(f"u{x.dtype.itemsize}")


def _shift(x: Any, count: Any, shifted: Callable[[Any, Any], Any], beyond: Any) -> Any:
    width = x.dtype.itemsize * 8
    return np.where((count < 0) | (count >= width), beyond, shifted(x, count & (width - 1)))


def _extreme(chosen: Callable[[Any, Any], Any], joined: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return the larger or smaller of two floats: of two zeros, one that has a sign is the smaller."""

    def extreme(a: Any, b: Any) -> Any:
        zeros = (a == 0) & (b == 0)
        found = chosen(a, b)
        return np.where(zeros, joined(a, b), found) if zeros.any() else found

    return extreme


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "addi": np.add, "addf": np.add, "subi": np.subtract, "subf": np.subtract, "muli": np.multiply, "mulf": np.multiply,
    "divf": np.divide, "precise_divf": np.divide, "andi": np.bitwise_and, "ori": np.bitwise_or, "xori": np.bitwise_xor,
    "maxsi": np.maximum, "minsi": np.minimum, "maximumf": _extreme(np.maximum, np.add),
    "minimumf": _extreme(np.minimum, lambda a, b: -(-a + -b)),
    "maxui": lambda a, b: np.maximum(unsigned(a), unsigned(b)).view(a.dtype),
    "minui": lambda a, b: np.minimum(unsigned(a), unsigned(b)).view(a.dtype),
    "shli": lambda a, n: _shift(a, n, np.left_shift, 0),
    "shrsi": lambda a, n: _shift(a, n, np.right_shift, a >> (a.dtype.itemsize * 8 - 1)),
    "shrui": lambda a, n: _shift(a, n, lambda x, c: (unsigned(x) >> unsigned(c)).view(x.dtype), 0),
    "remsi": np.fmod, "divsi": lambda a, b: (a - np.fmod(a, b)) // b,
    "remui": lambda a, b: np.fmod(unsigned(a), unsigned(b)).view(a.dtype),
    "divui": lambda a, b: np.floor_divide(unsigned(a), unsigned(b)).view(a.dtype),
    "mulhiui": lambda a, b: ((unsigned(a).astype(np.uint64) * unsigned(b)) >> np.uint64(32)).astype("u4").view("i4"),
    "minnumf": np.fmin, "maxnumf": np.fmax, "absf": np.abs, "absi": np.abs, "precise_sqrt": np.sqrt,
}  # fmt: skip
COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
ATOMIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add, "fadd": np.add, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "exch": lambda a, b: b, "max": np.maximum, "min": np.minimum, "umax": BINARY["maxui"], "umin": BINARY["minui"],
}  # fmt: skip


class Operations:
    """What operations without regions make of their operands."""

    def __init__(self, memory: Memory) -> None:
        self.memory, self.values, self.rng, self.block = memory, dict[str, Value](), np.random.default_rng(1), 0

    def named(self, text: str) -> list[Value]:
        """Return the values that a text lists."""
        return [self.values[name] for name in re.findall(r"%[\w#]+", text)]

    def simple(self, name: str, left: str, type_: str) -> Value:
        family, _, kind = name.partition(".")
        if family == "arith" and " to " in type_:
            return self._converted(kind, self.named(left)[0], type_.partition(" to ")[2])
        values = self.named(left)
        shape, element = typed(type_)
        assert all(x.dtype == numpy_type(element) for x in values), name
        assert not shape or all(x.shape in (shape, ()) for x in values), name
        if kind == "fma":
            wide = [x.astype(np.float64 if x.dtype == np.float32 else np.longdouble) for x in values]
            return np.asarray(wide[0] * wide[1] + wide[2]).astype(values[0].dtype)
        if family == "math" and kind in NAMED:
            return computed(kind, *values)
        return np.asarray(BINARY[kind](*values)).astype(values[0].dtype)

    def _converted(self, kind: str, x: Any, to: str) -> Any:
        dtype = numpy_type(typed(to)[1])
        if kind == "trunci" and dtype == np.bool_:
            return (x & 1).astype(np.bool_)
        return (unsigned(x) if kind in ("extui", "uitofp") else x).astype(dtype)

    def _arith_constant(self, line: Line, text: str) -> list[Value]:
        found = re.match(r"arith\.constant (?:dense<(.*?)>|(\S+))(?: : (.*))?$", text)
        assert found is not None
        literal, (shape, element) = found[1] or found[2], typed(found[3] or "i1")
        if literal.startswith("0x"):
            bits = np.asarray(int(literal, 16), f"u{numpy_type(element).itemsize}")
            return [np.broadcast_to(bits.view(numpy_type(element)), shape)]
        number = literal == "true" if element == "i1" else float(literal) if element[0] in "fb" else int(literal)
        return [np.broadcast_to(np.asarray(number).astype(numpy_type(element)), shape)]

    def _arith_select(self, line: Line, text: str) -> list[Value]:
        condition, then, other = self.named(text.partition(" : ")[0])
        assert then.dtype == other.dtype
        return [np.where(condition, then, other).astype(then.dtype)]

    def _compare(self, line: Line, text: str) -> list[Value]:
        name, kind, *_ = text.replace(",", "").split(" ")
        a, b = self.named(text.partition(" : ")[0])
        assert a.dtype == b.dtype
        if name == "arith.cmpi":
            a, b = (unsigned(a), unsigned(b)) if kind[0] == "u" else (a, b)
            return [COMPARED[kind if kind in COMPARED else kind[1:]](a, b)]
        nan = np.isnan(a) | np.isnan(b)
        if kind in ("uno", "ord"):
            return [nan if kind == "uno" else ~nan]
        found = COMPARED[kind[1:]](a, b)
        return [found & ~nan if kind[0] == "o" else found | nan]

    _arith_cmpi = _arith_cmpf = _compare

    def _tt_get_program_id(self, line: Line, text: str) -> list[Value]:
        return [np.asarray(self.block, np.int32)]

    def _tt_make_range(self, line: Line, text: str) -> list[Value]:
        start = int(text.partition("start = ")[2].partition(" ")[0])
        return [start + np.arange(typed(text.rpartition(" : ")[2])[0][0], dtype=np.int32)]

    def _shaped(self, line: Line, text: str) -> list[Value]:
        name, (x, *_) = text.partition(" ")[0], self.named(text.partition(" : ")[0])
        shape, element = typed(text.rpartition(" -> ")[2])
        if name == "tt.bitcast":
            return [
                x
                if element.startswith("!tt")
                else np.ascontiguousarray(x).view(numpy_type(element)).reshape(shape or x.shape)
            ]
        if name in ("tt.splat", "tt.broadcast"):
            assert x.ndim == (0 if name == "tt.splat" else len(shape))
            return [np.broadcast_to(x, shape)]
        return [np.ascontiguousarray(x).reshape(shape)]

    _tt_splat = _tt_broadcast = _tt_reshape = _tt_expand_dims = _tt_bitcast = _shaped
    _tt_ptr_to_int = _tt_int_to_ptr = _shaped

    def _tt_unsplat(self, line: Line, text: str) -> list[Value]:
        return [self.named(text.partition(" : ")[0])[0].reshape(())]

    def _tt_trans(self, line: Line, text: str) -> list[Value]:
        order = re.search(r"array<i32: (.*?)>", text)
        assert order is not None
        return [np.transpose(self.named(text.partition(" {")[0])[0], [*map(int, order[1].split(", "))])]

    def _tt_join(self, line: Line, text: str) -> list[Value]:
        return [np.stack(self.named(text.partition(" : ")[0]), -1)]

    def _tt_split(self, line: Line, text: str) -> list[Value]:
        (x,) = self.named(text.partition(" : ")[0])
        return [x[..., 0], x[..., 1]]

    def _tt_dot(self, line: Line, text: str) -> list[Value]:
        a, b, start = self.named(text.partition(" : ")[0])
        return [(a.astype(np.float64) @ b.astype(np.float64) + start).astype(start.dtype)]

    def _tt_gather(self, line: Line, text: str) -> list[Value]:
        x, index = self.named(text.partition(" {")[0])
        axis = int(text.partition("axis = ")[2].partition(" ")[0])
        assert index.min() >= 0 and index.max() < x.shape[axis]
        return [np.take_along_axis(x, index.astype(np.int64), axis)]

    def _tt_extern_elementwise(self, line: Line, text: str) -> list[Value]:
        symbol = text.partition('symbol = "')[2].partition('"')[0]
        return [called(symbol, *self.named(text.partition(" {")[0]))]

    def _tt_elementwise_inline_asm(self, line: Line, text: str) -> list[Value]:
        _, said, rest = text.split('"', 2)
        return [instruction(said, *self.named(rest.partition("} ")[2].partition(" : ")[0]))]

    def _tt_addptr(self, line: Line, text: str) -> list[Value]:
        start, apart = self.named(text.partition(" : ")[0])
        _, element = typed(text.rpartition(" : ")[2].partition(", ")[0])
        return [start + apart.astype(np.int64) * pointed(element).itemsize]

    def _tt_load(self, line: Line, text: str) -> list[Value]:
        addresses, *masked = self.named(text.partition(" : ")[0])
        dtype = pointed(typed(text.rpartition(" : ")[2])[1])
        mask = np.broadcast_to(masked[0] if masked else True, addresses.shape)
        found = np.array(np.broadcast_to(masked[1] if masked[1:] else dtype.type(0), addresses.shape))
        found[mask] = self.memory.load(addresses[mask], dtype)
        return [found]

    def _tt_store(self, line: Line, text: str) -> list[Value]:
        addresses, values, *masked = self.named(text.partition(" : ")[0])
        mask = np.broadcast_to(masked[0] if masked else True, addresses.shape)
        there, given = addresses[mask], values[mask]
        order = self.rng.permutation(there.size)
        self.memory.store(there[order], given[order])
        return []

    def _tt_atomic_rmw(self, line: Line, text: str) -> list[Value]:
        kind = text.split(" ")[1].rstrip(",")
        addresses, values, mask = self.named(text.partition(" : ")[0])
        return [self._one_by_one(addresses, mask, values, lambda held, at: ATOMIC[kind](held, values.flat[at]))]

    def _tt_atomic_cas(self, line: Line, text: str) -> list[Value]:
        addresses, expected, values = self.named(text.partition(" : ")[0])
        everywhere = np.ones(addresses.shape, np.bool_)

        def swapped(held: Any, at: int) -> Any:
            return values.flat[at] if held == expected.flat[at] else held

        return [self._one_by_one(addresses, everywhere, values, swapped)]

    def _one_by_one(self, addresses: Any, mask: Any, like: Any, change: Callable[[Any, int], Any]) -> Any:
        found = np.zeros(addresses.shape, like.dtype)
        for at in self.rng.permutation(addresses.size):
            if mask.flat[at]:
                place = np.asarray([addresses.flat[at]])
                found.flat[at] = self.memory.load(place, like.dtype)[0]
                self.memory.store(place, np.asarray([change(found.flat[at : at + 1], at)], like.dtype).reshape(1))
        return found


class Machine(Operations):
    """A block of a kernel while it runs: loops, branches and folds, and the operations inside them."""

    def __init__(self, text: str, memory: Memory) -> None:
        super().__init__(memory)
        plain = re.sub(r' loc\("[^"]*":\d+:\d+\)', "", text)
        lines = [line.strip() for line in plain.splitlines() if line.strip()]
        self.params = re.findall(r"(%arg\d+): (\S+?)[,) ]", lines[1])
        self.body, _ = parsed(lines, 2)

    def run(self, args: Sequence[Any], block: int = 0) -> None:
        """Run a block of a kernel."""
        self.block = block
        self.values = {name: np.asarray(arg) for (name, _), arg in zip(self.params, args, strict=True)}
        with np.errstate(all="ignore"):
            self.region(self.body, [])

    def region(self, lines: Sequence[Line], given: Sequence[Value]) -> list[Value]:
        """Run the operations of a region; return what the last of them hands on."""
        found: list[Value] = []
        for line in lines:
            if line.text.startswith("^bb0"):
                self.values.update(zip(re.findall(r"(%\d+):", line.text), given, strict=True))
                continue
            found = self.operation(line)
        return found

    def operation(self, line: Line) -> list[Value]:
        """Run one operation; return what it hands on, where it ends a region."""
        results, is_bound, text = line.text.partition(" = ")
        text = text if is_bound and results.startswith("%") else line.text
        name, _, rest = text.partition(" ")
        name = name.partition("(")[0].strip('"')
        left = rest.rpartition(" : ")[0]
        if name in ("scf.yield", "tt.reduce.return", "tt.scan.return"):
            return self.named(left)
        if name == "scf.condition":
            return self.named(line.text.rpartition(" : ")[0])
        if name in ("gpu.barrier", "tt.return"):
            return []
        method = getattr(self, f"_{name.replace('.', '_')}", None)
        found = method(line, text) if method is not None else [self.simple(name, left, rest.rpartition(" : ")[2])]
        if text is not line.text:
            names = results.split(", ")
            if ":" in results:
                first, _, count = results.partition(":")
                names = [f"{first}#{place}" for place in range(int(count))]
            self.values.update(zip(names, found, strict=True))
        return []

    def _fold(self, line: Line, text: str) -> list[Value]:
        axis = int(text.partition("axis = ")[2].partition(" ")[0])
        values = [np.moveaxis(x, axis, 0) for x in self.named(text.partition(" <{")[0])]
        count, is_scan = len(values[0]), text.startswith('"tt.scan"')
        order: Any = self.rng.permutation(count)
        if is_scan:
            order = range(count - 1, -1, -1) if "reverse = true" in text else range(count)
        kept, steps = list[Value](), list["list[Value]"]()
        for at in order:
            now = [x[at] for x in values]
            kept = self.region(line.regions[0], [*kept, *now]) if kept else now
            steps.append(kept)
        if not is_scan:
            return [np.asarray(x) for x in kept]
        found = [np.stack([step[n] for step in steps]) for n in range(len(values))]
        return [np.moveaxis(x[::-1] if "reverse = true" in text else x, 0, axis) for x in found]

    _tt_reduce = _tt_scan = _fold

    def _carried(self, text: str) -> tuple[list[str], list[Value]]:
        pairs = re.findall(r"(%\w+) = (%[\w#]+)", text)
        return [name for name, _ in pairs], [self.values[start] for _, start in pairs]

    def _scf_for(self, line: Line, text: str) -> list[Value]:
        head, _, rest = text.partition(" iter_args(")
        turn, *ends = re.findall(r"%[\w#]+", head)
        names, held = self._carried(rest.partition(")")[0])
        for now in range(*(int(self.values[end]) for end in ends)):
            self.values[turn] = np.asarray(now, self.values[ends[0]].dtype)
            self.values.update(zip(names, held, strict=True))
            held = self.region(line.regions[0], [])
        return held

    def _scf_if(self, line: Line, text: str) -> list[Value]:
        (condition,) = self.named(text.partition(" {")[0].partition(" -> ")[0])
        chosen = line.regions[:1] if condition else line.regions[1:]
        return self.region(chosen[0], []) if chosen else []

    def _scf_while(self, line: Line, text: str) -> list[Value]:
        names, held = self._carried(text.partition(") : ")[0])
        while True:
            self.values.update(zip(names, held, strict=True))
            goes_on, *held = self.region(line.regions[0], [])
            if not goes_on:
                return held
            held = self.region(line.regions[1], held)


@lru_cache(maxsize=1)
def _kernel(function: Function, shared: int) -> KernelText:
    """Return the only kernel of a function, which may be run on several arguments one after the other."""
    (kernel,) = written(function, shared).kernels
    return kernel


def emulated(function: Function, args: Sequence[Any], shared: int = ANY_ROOM, turns: int = 1) -> tuple[list[Any], int]:
    """Return what a kernel of so many turns and static extents leaves in its tensors, and the error that it notes."""
    kernel = _kernel(function, shared)
    memory, words, tensors = Memory(), list[Any](), list[Any]()
    machine = Machine(kernel.other, memory)
    for arg in args:
        if not isinstance(arg, np.ndarray):
            words.append(np.asarray(arg).astype(numpy_type(machine.params[len(words)][1])))
            continue
        tensors.append((arg, len(memory.held)))
        words += [memory.add(arg), *(stride // arg.itemsize for stride in arg.strides[:-1])]
    errors = -1
    for _, type_ in machine.params[len(words) :]:
        errors = len(memory.held) if type_ == "!tt.ptr<i64>" else errors
        words.append(memory.add(np.zeros(8 if type_ == "!tt.ptr<i64>" else 16 * APART, np.uint8)))
    for block in range(turns * kernel.parts):
        machine.run(words, block)
    left = [memory.left(place, arg) for arg, place in tensors]
    return left, int(memory.held[errors][1].view(np.int64)[0]) if errors >= 0 else 0
