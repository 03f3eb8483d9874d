"""Random programs of work items: what lanes find out about each other is what NumPy computes of all of them."""

from __future__ import annotations

from random import Random
from typing import Any, cast

import numpy
import pytest

from tilewright import ir
from tilewright.pto.lower import lower
from tilewright.pto.text.parser import parse
from tilewright.pto.verify import verify

np = cast("Any", numpy)
Array = Any
SIZES = ((32, 1), (40, 1), (64, 1), (16, 4), (7, 3), (33, 2))
WARP, WORD = 32, 0xFFFFFFFF
BUFFER = "!pto.ptr<i32, gm>"


class Items:
    """A program of work items, and what each of its values is for each of them."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.extents = self.random.choice(SIZES)
        self.count = self.extents[0] * self.extents[1]
        self.places = np.arange(self.count)
        self.lane = self.places % WARP
        self.given = np.random.default_rng(seed).integers(-1000, 1000, self.count).astype(np.int32)
        self.values: dict[str, Array] = {"lin": self.places.astype(np.int32), "a": self.given}
        self.constants: dict[int, str] = {}
        self.lines: list[str] = []
        self.active = np.ones(self.count, bool)
        """Which work items reach the next op."""
        self.made = 0

    def constant(self, number: int) -> str:
        return self.constants.setdefault(number, f"%k{len(self.constants)}")

    def add(self, text: str, value: Array, name: str = "") -> None:
        """Add an op that gives a value."""
        self.made += not name
        name = name or f"r{self.made}"
        self.lines.append(f"%{name} = {text}")
        self.values[name] = value.astype(np.int32)

    def some(self) -> tuple[str, Array]:
        return self.random.choice([*self.values.items()])

    def warps(self) -> list[Array]:
        """Return the work items of each warp that reach the next op."""
        found = [np.arange(at, min(at + WARP, self.count)) for at in range(0, self.count, WARP)]
        return [each for each in (warp[self.active[warp]] for warp in found) if len(each)]

    def step(self) -> None:
        ways = [self.reduce, self.vote, self.compute, self.permute, self.lanes, self.high]
        self.random.choice([*ways, *[self.shuffle] * 3] if self.active.all() else ways)()

    def shuffle(self) -> None:
        (name, held), width = self.some(), self.random.choice((16, 32))
        way, by = self.random.choice(("idx", "up", "down", "bfly")), self.random.randrange(width)
        own = self.lane % width
        other = {"idx": np.full(self.count, by), "up": own - by, "down": own + by, "bfly": own ^ by}[way]
        inside, source = (other >= 0) & (other < width), self.places - own + other
        if (inside & (source >= self.count)).any():
            return  # nobody is there who could answer
        value = np.where(inside, held[np.where(inside, source, 0)], held)
        text = f"pto.shuffle_{way} %{name}, {self.constant(by)} {{width = {width} : i32}} : i32, i32 -> i32"
        self.add(text, value)

    def reduce(self) -> None:
        (name, held), way = self.some(), self.random.choice(("add", "max", "min"))
        sign = "" if way == "add" else self.random.choice((" signed", " unsigned"))
        value = held.copy()
        for warp in self.warps():
            part = held[warp].view(np.uint32) if sign == " unsigned" else held[warp]
            found = {"add": np.sum, "max": np.max, "min": np.min}[way](part)
            value[warp] = np.array(int(found) & WORD, np.uint32).view(np.int32)
        self.add(f"pto.redux_{way} %{name}{sign} : i32 -> i32", value)

    def vote(self) -> None:
        (name, held), bound = self.some(), self.random.randint(-500, 500)
        way, value = self.random.choice(("all", "any", "uni", "ballot")), np.zeros(self.count, np.int32)
        for warp in self.warps():
            said = held[warp] > bound
            word = sum(1 << int(lane) for lane in self.lane[warp][said])
            ballot = np.array(word, np.uint32).view(np.int32)
            ways = {"all": said.all(), "any": said.any(), "uni": said.all() or not said.any(), "ballot": ballot}
            value[warp] = ways[way]
        flag = f"%p{self.made}"
        self.lines.append(f"{flag} = arith.cmpi sgt, %{name}, {self.constant(bound)} : i32")
        if way == "ballot":
            self.add(f"pto.vote_ballot {flag} : i1 -> i32", value)
            return
        self.lines.append(f"%v{self.made} = pto.vote_{way} {flag} : i1 -> i1")
        self.add(f"arith.extui %v{self.made} : i1 to i32", value)

    def compute(self) -> None:
        (name, a), (other, b), way = self.some(), self.some(), self.random.choice(("addi", "muli", "xori"))
        value = {"addi": a + b, "muli": a * b, "xori": a ^ b}[way]
        self.add(f"arith.{way} %{name}, %{other} : i32", value)

    def permute(self) -> None:
        (name, a), (other, b), (by, how) = self.some(), self.some(), self.some()
        pool = np.stack([b, a], 1).view(np.uint8)
        chosen = [(how.view(np.uint32) >> np.uint32(4 * n)) & np.uint32(7) for n in range(4)]
        value = np.stack([pool[self.places, each] for each in chosen], 1).view(np.int32)[:, 0]
        self.add(f"pto.prmt %{name}, %{other}, %{by} : i32, i32, i32 -> i32", value)

    def lanes(self) -> None:
        way, lane = self.random.choice(("eq", "le", "lt", "ge", "gt")), self.lane.astype(np.int64)
        masks = {
            "eq": 1 << lane,
            "le": (2 << lane) - 1,
            "lt": (1 << lane) - 1,
            "ge": WORD << lane,
            "gt": WORD << lane + 1,
        }
        self.add(f"pto.get_lanemask_{way} : i32", (masks[way] & WORD).astype(np.uint32).view(np.int32))

    def high(self) -> None:
        (name, a), (other, b), sign = self.some(), self.some(), self.random.choice(("signed", "unsigned"))
        wide = [
            each.astype(np.int64) if sign == "signed" else each.view(np.uint32).astype(np.uint64) for each in (a, b)
        ]
        value = (wide[0] * wide[1] >> wide[0].dtype.type(WARP)).astype(np.uint32).view(np.int32)
        self.add(f"pto.mulhi %{name}, %{other} {sign} : i32, i32 -> i32", value)

    def text(self) -> str:
        """Return the kernel, whose work items store all that they have."""
        stores = [
            f"%at{n} = arith.addi %pos, %first{n} : index\npto.stg %{name}, %o[%at{n}] : {BUFFER}, i32"
            for n, name in enumerate(self.values)
        ]
        numbers = [f"{name} = arith.constant {number} : i32" for number, name in self.constants.items()]
        numbers += [f"%first{n} = arith.constant {n * self.count} : index" for n in range(len(self.values))]
        begin = (
            f"%wide = arith.constant {self.extents[0]} : i32",
            "%x = pto.get_tid_x : i32", "%y = pto.get_tid_y : i32", "%below = arith.muli %y, %wide : i32",
            "%lin = arith.addi %x, %below : i32", "%pos = arith.index_cast %lin : i32 to index",
            f"%a = pto.ldg %i[%pos] : {BUFFER} -> i32",
        )  # fmt: skip
        body = "\n".join((*numbers, *begin, *self.lines, *stores, "return"))
        extents = "\n".join(f"%e{n} = arith.constant {extent} : i32" for n, extent in enumerate((*self.extents, 1)))
        buffers = f"%i: {BUFFER}, %o: {BUFFER}, %t: {BUFFER}"
        launch = f"pto.simt_launch @body<<<%e0, %e1, %e2>>>(%i, %o, %t) : ({BUFFER}, {BUFFER}, {BUFFER}) -> ()"
        return f"""module attributes {{pto.target_arch = "a5"}} {{
func.func @body({buffers}) attributes {{pto.simt_entry}} {{
{body}
}}
func.func @k({buffers}) {{
{extents}
{launch}
return
}}
}}
"""


def branched(items: Items) -> int:
    """Add a branch that some work items take, where they change one element together; return what it becomes."""
    bound, outer = items.random.randint(-300, 300), dict(items.values)
    name, held = items.some()
    items.active = held > bound
    items.lines += [
        f"%taken = arith.cmpi sgt, %{name}, {items.constant(bound)} : i32",
        "%left = scf.if %taken -> (i32) {",
    ]
    for _ in range(4):
        items.step()
    name, held = items.some()
    way = items.random.choice(("add", "max", "min", "and", "or", "xor"))
    sign = " signed" if way in ("max", "min") else ""
    items.lines += [f"%old = pto.atomic_{way} %t, %{name}{sign} : {BUFFER}, i32 -> i32", f"scf.yield %{name} : i32"]
    items.lines += ["} else {", "scf.yield %a : i32", "}"]
    total = 5
    for number in held[items.active].tolist():
        ways = {"add": total + number, "max": max(total, number), "min": min(total, number)}
        total = (ways | {"and": total & number, "or": total | number, "xor": total ^ number})[way]
    items.values = {**outer, "left": np.where(items.active, held, items.given)}
    items.active = np.ones(items.count, bool)
    return total & WORD


@pytest.mark.parametrize("seed", range(20))
def test_every_value_is_the_one_that_numpy_computes(seed: int, target: str) -> None:
    items = Items(seed)
    with np.errstate(all="ignore"):
        for _ in range(8):
            items.step()
        total = branched(items)
        for _ in range(3):
            items.step()
    text = items.text()
    module = parse(text, "k.pto")
    verify(module)
    func = next(func for func in module.funcs() if func.name == "k")
    out, changed = np.zeros((len(items.values), items.count), np.int32), np.array([5], np.int32)
    flat = out.reshape(-1)
    ir.compile(lower(module, func, target="a5"), platform=target)(1, items.given.copy(), flat, changed)
    np.testing.assert_array_equal(out, np.stack([*items.values.values()]), err_msg=text)
    assert changed.view(np.uint32)[0] == total, text
