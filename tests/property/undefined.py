"""Random kernels over tiles that are partly valid, partly written or widened, and what looks at them.

The interpreter follows every element and is right by construction: an undefined one that reached an output would be
one it had to look at. Native code follows boxes. It must refuse what the interpreter refuses, and nothing else; only
a created tile that is put together from parts may pass, and is zero where nobody wrote.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np
from ops.kernels import Array, counting, kernel, out, scalar, tensor
from ops.native import Native

import tilewright.language as pl
from tilewright.core.program import Function
from tilewright.core.region import whole
from tilewright.errors import ExecutionError, UndefinedElementError
from tilewright.frontend.programs import as_program
from tilewright.interpret import machine

SHAPE = [8, 16]
EXTENTS = (("3", "8", "5", "i", "i + 1"), ("16", "16", "7", "j", "j + 2"))
ARGUMENTS = ((2, 5), (7, 14), (0, 9), (6, 13))


@dataclass
class Writer:
    """A kernel being written: its lines, and the tiles it has so far."""

    rng: random.Random
    lines: list[str] = field(default_factory=list[str])
    tiles: list[str] = field(default_factory=list[str])
    is_put_together: bool = False

    def make(self, text: str) -> str:
        """Bind an expression to a new name."""
        name = f"t{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        self.tiles.append(name)
        return name

    def tile(self) -> str:
        """Return one of the latest tiles."""
        return self.rng.choice(self.tiles[-4:])

    def extents(self) -> str:
        """Return a valid part."""
        return ", ".join(self.rng.choice(choices) for choices in EXTENTS)

    def step(self) -> None:
        """Add a statement of some kind."""
        forms = (self._load, self._load, self._made, self._meet, self._meet, self._meet, self._resize, self._part)
        self.rng.choice((*forms, self._created, self._loop, self._turn, self._beside, self._fold))()

    def _load(self) -> None:
        pad = self.rng.choice((", pad=0.5", "", ""))
        self.make(f"pl.load(x, [0, 0], {SHAPE}, valid_shape=[{self.extents()}]{pad})")

    def _made(self) -> None:
        self.make(f"pl.tile.full({SHAPE}, dtype=pl.FP32, value={self.rng.choice((0.0, 1.5))})")

    def _meet(self) -> None:
        a, b = self.tile(), self.tile()
        mask = f"pl.cmp({a}, {b}, cmp_type={self.rng.randrange(6)})"
        forms = (f"pl.add({a}, {b})", f"pl.mul({a}, {b})", f"pl.maximum({a}, {b})", f"pl.sel({mask}, {a}, {b})")
        self.make(self.rng.choice((*forms, f"pl.neg({a})", f"pl.part_add({a}, {b})", f"pl.add({a}, 2.0)")))

    def _resize(self) -> None:
        self.make(f"pl.set_validshape({self.tile()}, {self.extents()})")

    def _part(self) -> None:
        top = self.make(f"pl.slice({self.tile()}, [8, 8], [0, {self.rng.choice((0, 8, 3))}])")
        self.tiles.remove(top)
        self.make(f"pl.fillpad(pl.slice({self.tile()}, {SHAPE}, [0, 0]))" if self.rng.random() < 0.5 else
                  f"pl.concat({top}, pl.tile.full([8, 8], dtype=pl.FP32, value=1.0))")  # fmt: skip

    def _created(self) -> None:
        self.is_put_together = True
        name = self.make(f"pl.create_tile({SHAPE}, dtype=pl.FP32)")
        for _ in range(self.rng.randrange(4)):
            row, column = self.rng.choice((0, 4)), self.rng.choice((0, 8))
            part = f"pl.load(x, [0, 0], [{self.rng.choice((4, 8)) if row == 0 else 4}, 8])"
            name = self.make(f"pl.assemble({name}, {part}, [{row}, {column}])")

    def _loop(self) -> None:
        name, extents = self.make(f"pl.add({self.tile()}, 0.0)"), self.extents()
        loaded = f"pl.load(x, [0, k * {self.rng.choice((0, 4, 6))}], {SHAPE}, valid_shape=[{extents}])"
        form = self.rng.choice((f"pl.add({name}, {loaded})", f"pl.add({loaded}, {name})", loaded))
        self.lines.append(f"for k in pl.range({self.rng.choice(('3', 'i'))}):\n    {name} = {form}")

    def _turn(self) -> None:
        self.make(f"pl.tile.transpose_view(pl.tile.transpose_view({self.tile()}))")

    def _beside(self) -> None:
        name = self.make(f"pl.neg({self.tile()})")
        self.lines.append(f"if i > 2:\n    {name} = pl.add({self.tile()}, 1.0)")

    def _fold(self) -> None:
        form = self.rng.choice(("row_max", "col_sum"))
        self.make(f"pl.{form.split('_')[0]}_expand_sub({self.tile()}, pl.{form}({self.tile()}))")


class Lowered(Native):
    """A kernel whose passes are run for the interpreter too: with dead code goes what was wrong in it."""

    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self.program = self.native.program


def written(seed: int) -> tuple[Function, str, bool]:
    """Return a kernel, its text, and whether it puts a tile together from parts."""
    w = Writer(random.Random(seed))
    w._load()  # pyright: ignore[reportPrivateUsage]
    for _ in range(w.rng.randrange(2, 9)):
        w.step()
    w.lines.append(f"out = pl.store({w.tiles[-1]}, [0, 0], out)")
    body = "\n".join(w.lines)
    parameters = {"x": tensor(pl.FP32, 8, 16), "i": scalar(pl.INDEX), "j": scalar(pl.INDEX)}
    return kernel(body, **parameters, out=out(pl.FP32, *SHAPE)), body, w.is_put_together


def check(seed: int) -> str:
    """Fail unless native code and interpreter agree on a kernel; return how it ended."""
    function, text, is_put_together = written(seed)
    try:
        native = Lowered(function)
    except UndefinedElementError:
        ends = [_alone(function, i, j) for i, j in ARGUMENTS]
        assert all(end is not None for end in ends), f"refused when compiling, and no error:\n{text}"
        return "refused"
    return " ".join(_compared(native, text, is_put_together, i, j) for i, j in ARGUMENTS)


def _compared(native: Native, text: str, is_put_together: bool, i: int, j: int) -> str:
    args = [counting(*SHAPE), i, j, np.full(SHAPE, -7, np.float32)]
    ours, theirs = native.errors(args)
    where = f"seed with i = {i}, j = {j}\n{text}\nnative: {ours}\ninterpreter: {theirs}"
    if theirs is not None:
        assert ours is not None or is_put_together, f"native code does not refuse: {where}"
        return "error"
    assert ours is None, f"only native code refuses: {where}"
    for got, want in native.run(args):
        np.testing.assert_allclose(got, want, rtol=1e-5, err_msg=where)
    return "same"


def _alone(function: Function, i: int, j: int) -> ExecutionError | None:
    args: list[Array | int] = [counting(*SHAPE), i, j, np.full(SHAPE, -7, np.float32)]
    try:
        machine.run(as_program(function), function.name, [whole(a) if isinstance(a, np.ndarray) else a for a in args])
    except ExecutionError as error:
        return error
    return None
