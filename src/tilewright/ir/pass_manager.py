"""`tilewright.ir.pass_manager`: which passes run, and how much of their work is written down."""

from tilewright.passes.manager import OptimizationStrategy, PassDumpLevel, PassManager

__all__ = ["OptimizationStrategy", "PassDumpLevel", "PassManager"]
