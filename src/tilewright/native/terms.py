"""Terms: LLVM values written as arithmetic.

`x * 2.0 + y` emits two instructions. Numbers become constants of the type they meet; floats compare ordered, so that a
comparison with NaN is false; integers are signed. Nothing here carries fast-math flags: what is written is what runs.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from tilewright.native.llvm import I1, I32, I64, Builder, Value, element, lanes, vector
from tilewright.records import record

WIDTHS = {"half": "i16", "float": I32, "double": I64}


@record
class Term:
    """A scalar or vector value with the builder its instructions go to."""

    b: Builder
    value: Value

    @property
    def type(self) -> str:
        """The LLVM type."""
        return self.value.type

    @property
    def floats(self) -> bool:
        """Whether the elements are floating-point numbers."""
        return element(self.type) in WIDTHS

    @property
    def number(self) -> float | None:
        """The float that every lane is, None for what only the running program knows, and for NaN."""
        text = self.value.ref.removeprefix(f"splat ({element(self.type)} ").removesuffix(")")
        if not (self.floats and text.startswith("0x")):
            return None
        (number,) = struct.unpack(">d", bytes.fromhex(text[2:]))
        return None if math.isnan(number) else number

    def like(self, operand: Term | float) -> Term:
        """Return an operand as lanes of this type: a number becomes a constant."""
        return operand if isinstance(operand, Term) else Term(self.b, constant(self.type, operand))

    def op(self, name: str, *operands: Term | float) -> Term:
        """Emit an instruction over operands of this type."""
        return Term(self.b, self.b.op(name, self.value, *(self.like(operand).value for operand in operands)))

    def intrinsic(self, name: str, *operands: Term | float) -> Term:
        """Emit an LLVM intrinsic over operands of this type."""
        return Term(self.b, self.b.intrinsic(name, self.value, *(self.like(operand).value for operand in operands)))

    def compare(self, floats: str, integers: str, operand: Term | float) -> Term:
        """Emit a comparison with the predicate for the kind of the elements."""
        predicate = f"fcmp {floats}" if self.floats else f"icmp {integers}"
        return Term(self.b, self.b.compare(predicate, self.value, self.like(operand).value))

    def to(self, conversion: str, kind: str) -> Term:
        """Emit a conversion to another element type, as in `fpext`."""
        return Term(self.b, self.b.convert(conversion, self.value, vector(kind, lanes(self.type))))

    def bits(self) -> Term:
        """Return the floats' bits as integers."""
        return self.to("bitcast", WIDTHS[element(self.type)])

    def fma(self, factor: Term | float, addend: Term | float) -> Term:
        """Return `self * factor + addend`, rounded once where the target has the instruction, else twice."""
        return self.intrinsic("llvm.fma", factor, addend) if self.b.module.fused else self * factor + addend

    def horner(self, coefficients: Sequence[float]) -> Term:
        """Return the polynomial in these lanes with the given coefficients, lowest first."""
        *lower, highest = coefficients
        total = self.like(highest)
        for coefficient in reversed(lower):
            total = total.fma(self, coefficient)
        return total

    def choose(self, then: Term, other: Term | float) -> Term:
        """Return `then` where this mask holds and `other` elsewhere."""
        return Term(self.b, self.b.select(self.value, then.value, then.like(other).value))

    def any(self) -> Value:
        """Return whether this mask holds in some lane."""
        single = lanes(self.type) == 1
        return self.value if single else self.b.intrinsic("llvm.vector.reduce.or", self.value, returns=I1)

    def is_nan(self) -> Term:
        """Return the mask of the lanes that are not numbers."""
        return Term(self.b, self.b.compare("fcmp uno", self.value, self.value))

    def at_most(self, limit: float) -> Term:
        """Return the lanes cut off at a limit; NaN stays."""
        return (self > limit).choose(self.like(limit), self)

    def at_least(self, limit: float) -> Term:
        """Return the lanes raised to a limit; NaN stays."""
        return (self < limit).choose(self.like(limit), self)

    def magnitude(self) -> Term:
        """Return the floats without their signs."""
        return self.intrinsic("llvm.fabs")

    def signed_like(self, other: Term) -> Term:
        """Return the floats with the signs of another.

        LLVM rounds one alone to half by its parts, the sign's from as far back as conversions go: where that is a
        double it calls a function that few processes have. A fence keeps the rounding outside.
        """
        signed = self.intrinsic("llvm.copysign", other)
        return signed if lanes(self.type) > 1 else signed.intrinsic("llvm.arithmetic.fence")

    def shifted_down(self, count: int) -> Term:
        """Return the integers shifted right, filled with zeros; `>>` fills with the sign."""
        return self.op("lshr", count)

    def __add__(self, operand: Term | float) -> Term:
        return self.op("fadd" if self.floats else "add", operand)

    def __sub__(self, operand: Term | float) -> Term:
        return self.op("fsub" if self.floats else "sub", operand)

    def __mul__(self, operand: Term | float) -> Term:
        return self.op("fmul" if self.floats else "mul", operand)

    def __truediv__(self, operand: Term | float) -> Term:
        return self.op("fdiv", operand)

    def __and__(self, operand: Term | float) -> Term:
        return self.op("and", operand)

    def __or__(self, operand: Term | float) -> Term:
        return self.op("or", operand)

    def __xor__(self, operand: Term | float) -> Term:
        return self.op("xor", operand)

    def __lshift__(self, count: int) -> Term:
        return self.op("shl", count)

    def __rshift__(self, count: int) -> Term:
        return self.op("ashr", count)

    def __gt__(self, operand: Term | float) -> Term:
        return self.compare("ogt", "sgt", operand)

    def __ge__(self, operand: Term | float) -> Term:
        return self.compare("oge", "sge", operand)

    def __lt__(self, operand: Term | float) -> Term:
        return self.compare("olt", "slt", operand)


def constant(type_: str, number: float) -> Value:
    """Return a constant of a scalar or vector type, all lanes alike; floats round to the type."""
    kind = element(type_)
    text = f"{kind} {number if kind not in WIDTHS else spelled(kind, number)}"
    return Value(type_, text.split(" ")[1] if lanes(type_) == 1 else f"splat ({text})")


def spelled(kind: str, number: float) -> str:
    """Return a float as LLVM spells it: the bits of the double it equals, after rounding to its kind."""
    if kind == "float":
        (number,) = struct.unpack("<f", struct.pack("<f", number))
    return f"0x{struct.pack('>d', number).hex()}"
