"""What a traced body computes: the same as Python, for any mixture of assignments, branches and loops."""

from __future__ import annotations

import linecache
import operator
from collections.abc import Callable, Iterable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from unit.pto.traced.tracing import traced

from tilewright import pto
from tilewright.pto.module import Func, Op, Region, Value

NAMES = ("a", "b", "c", "d")
OPERATORS = ("+", "-", "*", "//", "%", "&", "|", "^")
HEAD = "def body(n, j):\n    a, b, c, d = n, 3, n - 2, 0\n"
TAIL = """
    place = pto.castptr(0, pto.ptr(pto.index, "ub"))
    pto.store_scalar(a, place, 0)
    pto.store_scalar(b, place, 1)
    pto.store_scalar(c, place, 2)
    pto.store_scalar(d, place, 3)
"""


@st.composite
def expressions(draw: st.DrawFn) -> str:
    """Return an expression over the variables, whose divisors are not zero."""
    left = draw(st.sampled_from([*NAMES, "j", "2", "7"]))
    sign = draw(st.sampled_from(OPERATORS))
    right = draw(st.sampled_from(["3", "-5", "2"] if sign in ("//", "%", "*") else [*NAMES, "4"]))
    chosen = draw(st.sampled_from(["{}", "min({}, 50)", "({} if a < c else b)"]))
    return chosen.format(f"({left} {sign} {right}) % 1000")


def statements(depth: int) -> st.SearchStrategy[list[str]]:
    """Return statements, with blocks inside blocks up to a depth."""
    kinds = [assignments()] if depth == 0 else [assignments(), blocks(depth)]
    return st.lists(st.one_of(kinds), min_size=1, max_size=3).map(lambda lists: [s for each in lists for s in each])


@st.composite
def assignments(draw: st.DrawFn) -> list[str]:
    """Return one assignment."""
    name, other, value = draw(st.sampled_from(NAMES)), draw(st.sampled_from(NAMES)), draw(expressions())
    return [draw(st.sampled_from([f"{name} = {value}", f"{name} += {value}", f"{name}, {other} = {other}, {name}"]))]


@st.composite
def blocks(draw: st.DrawFn, depth: int) -> list[str]:
    """Return a branch or a loop."""
    value, body = draw(expressions()), _indented(draw(statements(depth - 1)))
    match draw(st.integers(0, 4)):
        case 0:
            return [f"if {value} > 2:", *body]
        case 1:
            return [f"if {value} != 1:", *body, "else:", *_indented(draw(statements(depth - 1)))]
        case 2:
            return [f"for i{depth} in range({value} % 4):", *body]
        case 3:
            return [f"for i{depth} in pto.static_range(2):", *body]
        case _:
            return [f"k{depth} = 0", f"while k{depth} < 3:", *body, f"    k{depth} += 1"]


def _indented(body: list[str]) -> list[str]:
    return [f"    {line}" for line in body]


class Memory:
    """Stands for `pto`, and keeps what is stored."""

    static_range, index = range, None

    def __init__(self) -> None:
        self.stored: dict[int, int] = {}

    def ptr(self, *_: object) -> None: ...

    def castptr(self, *_: object) -> None: ...

    def store_scalar(self, value: int, pointer: object, place: int) -> None:
        self.stored[place] = value


def made(text: str, pto: object) -> Any:
    """Return the function that text defines; its text can be read again."""
    filename, scope = "<a random body>", {"pto": pto}
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    exec(compile(text, filename, "exec"), scope)
    return scope["body"]


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "arith.addi": operator.add,
    "arith.subi": operator.sub,
    "arith.muli": operator.mul,
    "arith.floordivsi": lambda a, b: a // b,
    "arith.remsi": lambda a, b: abs(a) % abs(b) * (1 if a >= 0 else -1),
    "arith.andi": lambda a, b: a & b,
    "arith.ori": lambda a, b: a | b,
    "arith.xori": lambda a, b: a ^ b,
    "arith.minsi": min,
}
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "slt": operator.lt,
    "sgt": operator.gt,
    "ne": operator.ne,
}


class Machine:
    """Runs a function of scalars."""

    def __init__(self, func: Func, arguments: list[int]) -> None:
        assert func.body is not None
        self.values: dict[Value, Any] = dict(zip(func.arguments, arguments, strict=True))
        self.stored: dict[int, int] = {}
        self.run(func.body)

    def run(self, region: Region, arguments: Iterable[Any] = ()) -> list[Any]:
        """Run a region; return what it ends with."""
        self.values |= dict(zip(region.arguments, arguments, strict=False))
        given: list[Any] = []
        for op in region.ops:
            given = [self.values[value] for value in op.uses]
            self.values |= dict(zip(op.results, self.step(op, given), strict=True))
        return given if region.ops and region.ops[-1].name in ("scf.yield", "scf.condition") else []

    def step(self, op: Op, given: list[Any]) -> list[Any]:
        if op.name in BINARY:
            return [BINARY[op.name](*given)]
        match op.name:
            case "arith.constant":
                return [op.attributes["value"]]
            case "arith.index_cast":
                return given
            case "arith.cmpi":
                return [COMPARISONS[str(op.attributes["predicate"])](*given)]
            case "arith.select":
                return [given[1] if given[0] else given[2]]
            case "scf.if":
                chosen = op.regions[0 if given[0] else 1] if given[0] or len(op.regions) > 1 else Region()
                return self.run(chosen)
            case "scf.for":
                return self._for(op, given)
            case "scf.while":
                return self._while(op, given)
            case "pto.castptr":
                return [None]
            case "pto.store_scalar":
                self.stored[given[2]] = given[0]
                return []
            case _:
                assert op.name in ("scf.yield", "scf.condition", "func.return"), op.name
                return []

    def _for(self, op: Op, given: list[Any]) -> list[Any]:
        start, stop, step, *carried = given
        for i in range(start, stop, step):
            carried = self.run(op.regions[0], [i, *carried])
        return carried

    def _while(self, op: Op, carried: list[Any]) -> list[Any]:
        while True:
            holds, *carried = self.run(op.regions[0], carried)
            if not holds:
                return carried
            carried = self.run(op.regions[1], carried)


@given(statements(2), st.integers(-9, 9), st.integers(-9, 9))
def test_a_traced_body_computes_what_python_computes(body: list[str], n: int, j: int) -> None:
    text, memory = HEAD + "".join(f"    {line}\n" for line in body) + TAIL, Memory()
    func = next(traced(made(text, pto)).module.funcs())
    made(text, memory)(n, j)
    assert Machine(func, [n, j]).stored == memory.stored, text
