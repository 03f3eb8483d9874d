"""Kernels whose steps use what came before several times, by what a step does."""

from __future__ import annotations

from unit.backends.cpu.running import floats, native

STEPS = 60
"""Ways that double with each step could not be gone in a lifetime."""

KERNEL = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, x: pl.Tensor[[16, 16], pl.FP32], m: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        t = pl.load(x, [0, 0], [16, 16])
        u = t + 1.0
        n = m + 1
{steps}
        pl.store(t + u + pl.cast(n, pl.FP32), [0, 0], out)
"""
PATTERNS = {
    "square": ["t = t * t"],
    "two in turn": ["t = t * 0.5 + u * 0.25", "u = u * 0.5 + t * 0.25"],
    "a function": ["t = pl.exp(t * 0.1 - t * t)"],
    "rows": ["t = t - pl.row_max(t) * t"],
    "columns": ["t = t * 0.5 - pl.col_sum(t) * t"],
    "choices": ["t = pl.where(t > u, t * 0.5, t)"],
    "masks": ["t = t * 0.5 + pl.where((t > u) & (t < u * t), t * 0.1, u * 0.1)"],
    "other types": ["t = t * 0.5 + pl.cast(pl.cast(t, pl.BF16), pl.FP32) * 0.25"],
    "products": ["t = (t * 0.1) @ (t + t)"],
    "what products read": ["t = t * t", "u = u * t"],
    "turned": ["t = t * 0.5 + t.T * 0.25"],
    "numbers": ["n = n % 7 + n % 5"],
    "branches": ["if n % 2 > 0:\n            t = t * t\n        else:\n            t = t * 0.5\n        n = n + n % 3"],
}


def is_right(steps: list[str], last: str) -> bool:
    """Return that a kernel of these steps, over and over, and a last one computes what it means."""
    lines = [steps[number % len(steps)] for number in range(STEPS)]
    program = native(KERNEL.format(steps="\n".join(f"        {line}" for line in [*lines, last])))
    program.check(floats(16, 16) * 0.1, 3, floats(16, 16))
    return True
