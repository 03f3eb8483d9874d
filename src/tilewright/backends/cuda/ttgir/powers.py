"""Powers: exponentials of sums whose numbers are scaled once, before the GPU raises two to them.

`exp(a * b + c)` is two to the power of `a * (b * log2(e)) + c * log2(e)`. Where `b` is a constant and `c` one number
for a row, that is an instruction less for each element.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator, Sequence

from tilewright.backends.cuda.ttgir.operations import Operation

_LOG2_E = 1 / math.log(2)
_POWER = "ex2.approx.ftz.f32 $0, $1;"
"""Two to a power, zero where that is no normal number: to keep others takes three instructions more."""
_ASKED = '{constraints = "=f,f", packed_element = 1 : i32, pure = true}'
_NUMBER = re.compile(r"arith\.constant (?:dense<)?0x([0-9A-F]{8})>? :")


class Powers:
    """Exponentials being rewritten, with the constants that they take then."""

    def __init__(self, before: Sequence[Operation], body: Sequence[Operation]) -> None:
        self.constants: list[Operation] = []
        self._made = {name: op for op in (*before, *body) for name in op.results}
        self._users: dict[str, int] = {}
        for op in body:
            for name in op.operands:
                self._users[name] = self._users.get(name, 0) + 1

    def rewritten(self, body: Sequence[Operation]) -> tuple[Operation, ...]:
        """Return operations, those of exponentials in other words where that is shorter."""
        return tuple(each for op in body for each in (list(self._power(op)) or [op]))

    def _power(self, op: Operation) -> Iterator[Operation]:
        """Yield what is done in place of an exponential, nothing where that stays."""
        if op.name != "math.exp" or not op.types or op.types[0][1] != "f32":
            return
        sum_ = self._made.get(op.operands[0])
        if sum_ is None or self._users[op.operands[0]] != 1 or sum_.name not in ("math.fma", "arith.subf"):
            return
        shape, (result,) = op.types[0][0], op.results
        left, right = sum_.operands[0], sum_.operands[-1]
        factor = self._constant(sum_.operands[1]) if sum_.name == "math.fma" else 1.0
        few = self._made.get(right)
        if factor is None or few is None or few.name != "tt.broadcast":
            return
        sign = -1 if sum_.name == "arith.subf" else 1
        scaled, spread, power = (f"%{what}_{result[1:]}" for what in ("scaled", "spread", "power"))
        by = self._held(f"by_{result[1:]}", factor * _LOG2_E, shape)
        narrow = self._held(f"few_by_{result[1:]}", sign * _LOG2_E, few.types[0][0])
        small, whole = (f"tensor<{'x'.join(map(str, each))}xf32>" for each in (few.types[0][0], shape))
        place = op.place
        yield _done("arith.mulf", scaled, f"{few.operands[0]}, {narrow} : {small}", place)
        yield _done("tt.broadcast", spread, f"{scaled} : {small} -> {whole}", place)
        yield _done("math.fma", power, f"{left}, {by}, {spread} : {whole}", place)
        yield _done("tt.elementwise_inline_asm", result, f'"{_POWER}" {_ASKED} {power} : {whole} -> {whole}', place)

    def _constant(self, name: str) -> float | None:
        """Return the number that is in every element of a tensor, None where that is none that is known."""
        op = self._made.get(name)
        if op is not None and op.name == "tt.splat":
            op = self._made.get(op.operands[0])
        found = _NUMBER.match(op.text) if op is not None else None
        return struct.unpack(">f", bytes.fromhex(found[1]))[0] if found else None

    def _held(self, name: str, number: float, shape: Sequence[int]) -> str:
        bits = struct.pack(">f", number).hex().upper()
        text = f"dense<0x{bits}> : tensor<{'x'.join(map(str, shape))}xf32>"
        self.constants.append(_done("arith.constant", f"%{name}", text, ""))
        return f"%{name}"


def _done(name: str, result: str, text: str, place: str) -> Operation:
    return Operation(name, (result,), f"{name} {text}", place)
