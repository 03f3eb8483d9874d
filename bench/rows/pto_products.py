"""pto_products: chains of bfloat16 products as PTO text writes them, beside torch's product.

A block computes a tile of the result: operands come into `mat`, go on to `left` and `right`, and are multiplied into
one accumulator. Some kernels take one step of K a turn, some two with two of each operand, and some load a panel of
which they multiply one part after the other.
"""
# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false
# PTO declares parameters by values, which type checkers do not take for types.

from functools import partial
from typing import NamedTuple

import torch
from contest import EAGER, Contest, Field, Work
from memory import output

from tilewright import pto

F32, BF16 = pto.ptr(pto.f32, "gm"), pto.ptr(pto.bf16, "gm")
PTO, GROUP = "pto text", "PTO text: bf16 products"
VIEW, SUMS = "!pto.tensor_view<?x?xbf16>", "!pto.tensor_view<?x?xf32>"


def _buffer(loc: str, rows: int, cols: int, dtype: str = "bf16", layouts: str = "col/row", fractal: int = 512) -> str:
    outer, inner = layouts.split("/")
    return (
        f"!pto.tile_buf<loc={loc}, dtype={dtype}, rows={rows}, cols={cols}, v_row={rows}, v_col={cols}, "
        f"blayout={outer}_major, slayout={inner}_major, fractal={fractal}, pad=0>"
    )


def _window(rows: int, cols: int, dtype: str = "bf16") -> str:
    return f"!pto.partition_tensor_view<{rows}x{cols}x{dtype}>"


class Chain(NamedTuple):
    """A product of so many rows, inner and columns, in square tiles and steps of the inner dimension."""

    rows: int
    inner: int
    columns: int
    tile: int
    step: int = 64
    form: str = "steps"
    """`steps`, `pairs` of them, or the parts of a `panel`."""

    def __str__(self) -> str:
        return f"{self.rows}x{self.inner}x{self.columns}, tiles of {self.tile}, {self.form} of {self.step}"

    @property
    def left(self) -> str:
        return _buffer("left", self.tile, self.step)

    @property
    def right(self) -> str:
        return _buffer("right", self.step, self.tile, layouts="row/col")

    @property
    def acc(self) -> str:
        return _buffer("acc", self.tile, self.tile, "f32", fractal=1024)

    @property
    def blocks(self) -> int:
        """How many tiles the result has."""
        return (self.rows // self.tile) * (self.columns // self.tile)

    def text(self) -> str:
        """Return the kernel."""
        out = _window(self.tile, self.tile, "f32")
        body = {"steps": self._steps, "pairs": self._pairs, "panel": self._parts}[self.form]()
        numbers = {"m": self.rows, "k": self.inner, "n": self.columns, "tile": self.tile, "step": self.step}
        constants = "".join(f"    %{name} = arith.constant {number} : index\n" for name, number in numbers.items())
        return f"""module {{
  func.func @product(%a: !pto.ptr<bf16>, %b: !pto.ptr<bf16>, %c: !pto.ptr<f32>) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %two = arith.constant {2 * self.step} : index
    %panel = arith.constant 256 : index
    %across = arith.constant {self.columns // self.tile} : index
{constants}    %va = pto.make_tensor_view %a, shape = [%m, %k], strides = [%k, %c1] : {VIEW}
    %vb = pto.make_tensor_view %b, shape = [%k, %n], strides = [%n, %c1] : {VIEW}
    %vc = pto.make_tensor_view %c, shape = [%m, %n], strides = [%n, %c1] : {SUMS}
    %sum = pto.alloc_tile : {self.acc}
    %id = pto.get_block_idx
    %block = arith.index_cast %id : i64 to index
    %i = arith.divui %block, %across : index
    %j = arith.remui %block, %across : index
    %row = arith.muli %i, %tile : index
    %col = arith.muli %j, %tile : index
{body}    %pc = pto.partition_view %vc, offsets = [%row, %col], sizes = [%tile, %tile] : {SUMS} -> {out}
    pto.tstore ins(%sum : {self.acc}) outs(%pc : {out})
    return
  }}
}}
"""

    def _alloc(self, name: str = "", depth: int | None = None) -> str:
        mat_a, mat_b = _buffer("mat", self.tile, depth or self.step), _buffer("mat", depth or self.step, self.tile)
        tiles = {"ma": mat_a, "mb": mat_b, "l": self.left, "r": self.right}
        return "".join(f"    %{each}{name} = pto.alloc_tile : {type_}\n" for each, type_ in tiles.items())

    def _load(self, at: str, name: str = "", depth: int | None = None, size: str = "%step") -> str:
        deep = depth or self.step
        part_a, part_b = _window(self.tile, deep), _window(deep, self.tile)
        mat_a, mat_b = _buffer("mat", self.tile, deep), _buffer("mat", deep, self.tile)
        return f"""
      %pa{name} = pto.partition_view %va, offsets = [%row, {at}], sizes = [%tile, {size}] : {VIEW} -> {part_a}
      %pb{name} = pto.partition_view %vb, offsets = [{at}, %col], sizes = [{size}, %tile] : {VIEW} -> {part_b}
      pto.tload ins(%pa{name} : {part_a}) outs(%ma{name} : {mat_a})
      pto.tload ins(%pb{name} : {part_b}) outs(%mb{name} : {mat_b})
"""

    def _move(self, name: str = "") -> str:
        mat_a, mat_b = _buffer("mat", self.tile, self.step), _buffer("mat", self.step, self.tile)
        return f"""      pto.tmov ins(%ma{name} : {mat_a}) outs(%l{name} : {self.left})
      pto.tmov ins(%mb{name} : {mat_b}) outs(%r{name} : {self.right})
"""

    def _multiply(self, at: str) -> str:
        """Return the product that begins the sum in the first step, and is added in the others."""
        types = f"{self.left}, {self.right}"
        return f"""      %first = arith.cmpi eq, {at}, %c0 : index
      scf.if %first {{
        pto.tmatmul ins(%l, %r : {types}) outs(%sum : {self.acc})
      }} else {{
        pto.tmatmul.acc ins(%sum, %l, %r : {self.acc}, {types}) outs(%sum : {self.acc})
      }}
"""

    def _steps(self) -> str:
        turn = f"{self._load('%at')}{self._move()}{self._multiply('%at')}"
        return f"{self._alloc()}    scf.for %at = %c0 to %k step %step {{{turn}    }}\n"

    def _pairs(self) -> str:
        types = f"{self.acc}, {self.left}, {self.right}"
        first = f"{self._load('%at')}{self._load('%next', '2')}{self._move()}{self._move('2')}{self._multiply('%at')}"
        second = f"      pto.tmatmul.acc ins(%sum, %l2, %r2 : {types}) outs(%sum : {self.acc})\n"
        turn = f"\n      %next = arith.addi %at, %step : index{first}{second}"
        return f"{self._alloc()}{self._alloc('2')}    scf.for %at = %c0 to %k step %two {{{turn}    }}\n"

    def _parts(self) -> str:
        mat_a, mat_b = _buffer("mat", self.tile, 256), _buffer("mat", 256, self.tile)
        parts = f"""      scf.for %in = %c0 to %panel step %step {{
      pto.textract ins(%ma, %c0, %in : {mat_a}, index, index) outs(%l : {self.left})
      pto.textract ins(%mb, %in, %c0 : {mat_b}, index, index) outs(%r : {self.right})
      %here = arith.addi %at, %in : index
{self._multiply("%here")}      }}
"""
        turn = f"{self._load('%at', depth=256, size='%panel')}{parts}"
        return f"{self._alloc(depth=256)}    scf.for %at = %c0 to %k step %panel {{{turn}    }}\n"


def enter(chain: Chain) -> Field:
    @pto.jit(source=chain.text())
    def product(a: BF16, b: BF16, c: F32): ...

    a, b = torch.randn(chain.rows, chain.inner).bfloat16(), torch.randn(chain.inner, chain.columns).bfloat16()
    text = output(chain.rows, chain.columns)
    kernel = product.compile()

    def by_text() -> torch.Tensor:
        kernel[chain.blocks, None](a, b, text)
        return text

    expected = (a.double() @ b.double()).float()
    return Field(
        expected,
        {PTO: by_text, EAGER: lambda: torch.matmul(a, b).float()},
        rtol=1e-2,  # torch's result has eight bits
        atol=0.5,
    )


CHAINS = (
    Chain(256, 4096, 256, 128), Chain(256, 4096, 256, 64), Chain(256, 4096, 256, 128, 128),
    Chain(256, 4096, 256, 128, 64, "pairs"), Chain(256, 4096, 256, 128, 64, "panel"),
    Chain(128, 2048, 512, 64), Chain(128, 2048, 512, 128), Chain(128, 2048, 512, 128, 64, "panel"),
    Chain(512, 512, 512, 64), Chain(512, 512, 512, 128), Chain(512, 512, 512, 256),
    Chain(512, 512, 512, 128, 64, "pairs"), Chain(512, 512, 512, 128, 64, "panel"),
    Chain(1024, 1024, 1024, 128), Chain(1024, 1024, 1024, 64),
)  # fmt: skip

ROWS = tuple(
    Contest(
        str(chain), partial(enter, chain), Work(flops=2 * chain.rows * chain.inner * chain.columns), target=1.0,
        group=GROUP, subject=PTO, against=EAGER, calls=2,
    )
    for chain in CHAINS
)  # fmt: skip
