"""Random programs of masks: every image is that of 256 bits that NumPy computes."""

from __future__ import annotations

from random import Random
from typing import Any, cast

import numpy
import pytest
from unit.pto.vectors.running import Array, built, lanes

np = cast("Any", numpy)
BITS = (8, 16, 32)
PATTERNS = ("ALL", "ALLF", "H", "Q", "M3", "M4", *(f"VL{1 << n}" for n in range(8)))
COUNT = 256
"""The bits of an image, and the bytes of memory that images come from."""


def packed(image: Array) -> Array:
    return np.packbits(image, bitorder="little")


class Masks:
    """A program of ops on masks, and what each of its masks is."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.bytes = np.random.default_rng(seed).integers(0, 256, COUNT).astype(np.uint8)
        self.lines: list[str] = []
        self.images: list[tuple[int, Array]] = []
        """The width of each mask, and its bits."""

    def made(self, text: str, bits: int, image: Array, types: str = "") -> None:
        """Add the op that makes the next mask."""
        self.lines.append(f"%m{len(self.images)} = pto.{text} : {types}!pto.mask<b{bits}>")
        self.images.append((bits, np.asarray(image, bool)))

    def some(self, count: int, bits: int = 0) -> list[int]:
        """Return masks of a width, nothing where there are none."""
        found = [number for number, (own, _) in enumerate(self.images) if bits in (0, own)]
        return [self.random.choice(found) for _ in range(count)] if found else []

    def step(self) -> None:
        """Add some op."""
        self.random.choice((self.start, self.load, self.join, self.join, self.seen, self.pack, self.interleave))()

    def start(self) -> None:
        bits, how = self.random.choice(BITS), self.random.choice(("pset", "pge", "plt"))
        count, image = 2048 // bits, np.zeros(COUNT, bool)
        if how == "plt":
            left, number = self.random.randint(-3, count + 9), len(self.images)
            image[:: bits // 8] = np.arange(count) < left
            self.lines.append(f"%n{number} = arith.constant {left} : i32")
            self.lines.append(f"%m{number}, %r{number} = pto.plt_b{bits} %n{number} : i32 -> !pto.mask<b{bits}>, i32")
            self.images.append((bits, image))
            return
        pattern = self.random.choice([each for each in PATTERNS if each[:2] != "VL" or int(each[2:]) <= count])
        image[:: bits // 8] = lanes(count, pattern)
        self.made(f'{how}_b{bits} "PAT_{pattern}"', bits, image)

    def load(self) -> None:
        bits, how, first = self.random.choice(BITS), self.random.choice(("NORM", "US", "DS")), self.random.randrange(6)
        held = np.unpackbits(self.bytes, bitorder="little")[first * COUNT :]
        image = {"NORM": held[:COUNT], "US": np.repeat(held[: COUNT // 2], 2), "DS": held[: 2 * COUNT : 2]}[how]
        self.made(f'plds %p[%at{first}], "{how}"', bits, image, "!pto.ptr<ui8, ub>, index -> ")

    def join(self) -> None:
        bits = self.random.choice(BITS)
        chosen = self.some(3, bits)
        if not chosen:
            return
        a, b, c = (self.images[number][1] for number in chosen)
        way = self.random.choice(("pand", "por", "pxor", "psel", "pnot"))
        image = {"pand": a & b & c, "por": (a | b) & c, "pxor": (a ^ b) & c, "psel": np.where(c, a, b), "pnot": ~a & b}
        used = chosen[: 2 if way == "pnot" else 3]
        types = ", ".join([f"!pto.mask<b{bits}>"] * len(used))
        self.made(f"{way} {', '.join(f'%m{number}' for number in used)}", bits, image[way], f"{types} -> ")

    def seen(self) -> None:
        for number in self.some(1):
            bits, image = self.images[number]
            self.made(f"pbitcast %m{number}", self.random.choice(BITS), image, f"!pto.mask<b{bits}> -> ")

    def pack(self) -> None:
        for number in self.some(1):
            (bits, held), image = self.images[number], np.zeros(COUNT, bool)
            way, part = self.random.choice(("ppack", "punpack")), self.random.choice(("LOWER", "HIGHER"))
            half = slice(0, COUNT // 2) if part == "LOWER" else slice(COUNT // 2, COUNT)
            other = bits // 2 if way == "ppack" else bits * 2
            if way == "ppack":
                image[half] = held[::2]
            else:
                image[::2] = held[half]
            width = self.random.choice([bits, other]) if other in BITS else bits
            self.made(f'{way} %m{number}, "{part}"', width, image, f"!pto.mask<b{bits}> -> ")

    def interleave(self) -> None:
        chosen = self.some(2, 8)
        if not chosen:
            return
        way, first = self.random.choice(("pintlv", "pdintlv")), len(self.images)
        a, b = (self.images[number][1] for number in chosen)
        both = np.stack([a, b], 1).reshape(2, -1) if way == "pintlv" else np.append(a, b).reshape(-1, 2).T
        mask = "!pto.mask<b8>"
        names = ", ".join(f"%m{number}" for number in chosen)
        self.lines.append(f"%m{first}, %m{first + 1} = pto.{way}_b8 {names} : {mask}, {mask} -> {mask}, {mask}")
        self.images += [(8, image) for image in both]

    def text(self) -> str:
        """Return the kernel, which stores every mask, some of them packed."""
        size = 32 * len(self.images)
        stores = [
            f'pto.psts %m{n}, %q[%to{n}], "{self.way(n)}" : !pto.mask<b{bits}>, !pto.ptr<ui8, ub>, index'
            for n, (bits, _) in enumerate(self.images)
        ]
        numbers = [f"%at{n} = arith.constant {32 * n} : index" for n in range(6)]
        numbers += [f"%to{n} = arith.constant {32 * n} : index" for n in range(len(self.images))]
        numbers += [f"%c{n} = arith.constant {n} : i64" for n in sorted({0, 1, COUNT, 1024, size})]
        types = "!pto.ptr<ui8, {}>, !pto.ptr<ui8, {}>, i64, i64, i64, i64"
        inner = "\n".join([
            *numbers,
            "%p = pto.castptr %c0 : i64 -> !pto.ptr<ui8, ub>", "%q = pto.castptr %c1024 : i64 -> !pto.ptr<ui8, ub>",
            f"pto.mte_gm_ub %x, %p, %c0, %c{COUNT} nburst(%c1, %c{COUNT}, %c{COUNT}) : {types.format('gm', 'ub')}, i64",
            "pto.vecscope {", *self.lines, *stores, "}",
            f"pto.mte_ub_gm %q, %out, %c{size} nburst(%c1, %c{size}, %c{size}) : {types.format('ub', 'gm')}",
            "return",
        ])  # fmt: skip
        head = "func.func @k(%x: !pto.ptr<ui8>, %out: !pto.ptr<ui8>)"
        return f'module attributes {{pto.target_arch = "a5"}} {{\n{head} {{\n{inner}\n}}\n}}\n'

    def way(self, number: int) -> str:
        return "PK" if number % 4 == 3 else "NORM"

    def stored(self) -> Array:
        """Return the bytes that the kernel leaves."""
        found = np.zeros((len(self.images), 32), np.uint8)
        for number, (_, image) in enumerate(self.images):
            held = packed(image[::2]) if self.way(number) == "PK" else packed(image)
            found[number, : len(held)] = held
        return found.reshape(-1)


@pytest.mark.parametrize("seed", range(24))
def test_every_mask_is_the_one_that_numpy_computes(seed: int, target: str) -> None:
    program = Masks(seed)
    program.start()
    for _ in range(14):
        program.step()
    text, out = program.text(), np.zeros(32 * len(program.images), np.uint8)
    built(text, target)(1, program.bytes.copy(), out)
    np.testing.assert_array_equal(out, program.stored(), err_msg=text)
