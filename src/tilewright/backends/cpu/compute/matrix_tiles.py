"""Matrix tiles: registers of 16 rows of 64 bytes, which AMX loads, multiplies and stores as wholes.

There are eight: four hold sums, two rows of A and two words of B. How many rows each has is configured before it is
used, and all are given back before anybody else runs. Where tests have functions stand for the instructions, the
registers lie in memory behind the configuration, and plain code does the same to them.
https://www.intel.com/content/www/us/en/developer/articles/technical/intel-sdm.html, volume 1, chapter 18
"""

from __future__ import annotations

from tilewright.dtypes import BF16, INT8, UINT8, DataType
from tilewright.native.llvm import I64, PTR, Builder, Value, i64
from tilewright.native.target import Target
from tilewright.records import record

ROWS, BYTES = 16, 64
"""Rows of a register, and bytes of each."""
REGISTERS = 8
CONFIGURATION = 64
"""Bytes that say how the registers are cut: the palette, then bytes of a row, then rows."""
_PALETTE = 1
_UPPER, _LOWER, _RIGHT = 0x0000000100000101, 0x0000010001010000, 0x0101000000000000
"""Which bytes of a word are rows of the upper sums and rows of A, of the lower ones, and of the words of B."""
_ALL, _LEFT, _OTHERS = 0x0001000100010001, 0x0000000000010001, 0x0001000100000000
"""Which bytes of a word are the lengths of rows: of sums; of those of A, and of the words of B."""
SUMS, LEFT, RIGHT = 0, 4, 6
"""The first registers of sums, of rows of A and of words of B."""

_PRODUCTS = {
    (BF16, BF16): "tdpbf16ps",
    (INT8, INT8): "tdpbssd",
    (INT8, UINT8): "tdpbsud",
    (UINT8, INT8): "tdpbusd",
    (UINT8, UINT8): "tdpbuud",
}
"""The instructions that multiply elements."""


def depth_of_tile(target: Target, lhs: DataType, rhs: DataType) -> int:
    """Return how many products one instruction adds to each element, 0 where the processor has none for them."""
    if (lhs, rhs) not in _PRODUCTS:
        return 0
    has_units = target.has("amx-bf16" if lhs == BF16 else "amx-int8") or target.emulates_tiles
    return BYTES // lhs.get_byte() if has_units else 0


@record
class MatrixTiles:
    """The registers as a function uses them; `room` is where they are configured, aligned to a cache line."""

    b: Builder
    room: Value
    is_emulated: bool

    def configure(self, upper: Value, lower: Value, steps: Value) -> None:
        """Cut the registers: so many rows of the upper and the lower sums, and words of A, of which none is 0."""
        b = self.b
        rows = b.op("add", b.op("mul", upper, i64(_UPPER)), b.op("mul", lower, i64(_LOWER)))
        rows = b.op("add", rows, b.op("mul", steps, i64(_RIGHT)))
        factors = b.op("add", b.op("mul", steps, i64(4 * _LEFT)), i64(BYTES * _OTHERS))
        words = [i64(_PALETTE), i64(0), i64(BYTES * _ALL), factors, i64(0), i64(0), rows, i64(0)]
        for at, word in enumerate(words):
            b.store(word, b.offset(self.room, i64(at), I64), 8)
        if not self.is_emulated:
            b.invoke(b.module.intrinsic("llvm.x86.ldtilecfg", "void", PTR), self.room)

    def release(self) -> None:
        """Give the registers back."""
        if not self.is_emulated:
            self.b.invoke(self.b.module.intrinsic("llvm.x86.tilerelease", "void"))

    def clear(self, register: int) -> None:
        """Set a register to zero."""
        self._do("tilezero", register)

    def load(self, register: int, pointer: Value, apart: Value) -> None:
        """Fill a register with rows that are some bytes apart."""
        self._do("tileloadd64", register, memory=(pointer, apart))

    def store(self, register: int, pointer: Value, apart: Value) -> None:
        """Write the rows of a register, some bytes apart."""
        self._do("tilestored64", register, memory=(pointer, apart))

    def multiply_add(self, lhs: DataType, rhs: DataType, total: int, left: int, right: int) -> None:
        """Add the products of rows and words to sums."""
        self._do(_PRODUCTS[lhs, rhs], total, left, right)

    def _do(self, name: str, *registers: int, memory: tuple[Value, ...] = ()) -> None:
        numbers = [Value("i8", str(register)) for register in registers]
        if self.is_emulated:
            from tilewright.backends.cpu.compute.emulated_tiles import emulated  # which only tests need

            self.b.invoke(emulated(self.b.module, name), self.room, *numbers, *memory)
            return
        types = *["i8"] * len(numbers), *(each.type for each in memory)
        self.b.invoke(self.b.module.intrinsic(f"llvm.x86.{name}", "void", *types), *numbers, *memory)


def room_of_tiles(is_emulated: bool) -> int:
    """Return how many bytes registers take in memory."""
    return CONFIGURATION + REGISTERS * ROWS * BYTES * is_emulated
