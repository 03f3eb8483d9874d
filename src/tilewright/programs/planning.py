"""Planning: the choices that `ir.compile` takes for an NPU, checked, and of no effect on a processor."""

from __future__ import annotations

from typing import Any

from tilewright.passes.choices import MemoryPlanner, RuntimeKind
from tilewright.programs import fields

RULES: dict[str, fields.Rule] = {
    "skip_ptoas": fields.flag,
    "memory_planner": fields.optional(fields.one_of(MemoryPlanner)),
    "enable_pypto_l0c_double_buffer": fields.optional(fields.flag),
    "analyze_auto_scopes_for_deps": fields.flag,
    "emit_source_loc": fields.optional(fields.flag),
    "dump_ptoas_passes": fields.flag,
    "runtime": fields.optional(fields.one_of(RuntimeKind)),
}
"""What the values of choices may be; of the others only somebody with an NPU can tell."""

CONTEXT = (
    *("verification_level", "diagnostic_phase", "disabled_diagnostics"),
    *("memory_planner", "enable_pypto_l0c_double_buffer", "runtime"),
)
"""What a `PassContext` that is active has decided already."""


def check_choices(**choices: Any) -> None:
    """Raise ValueError for a choice that nobody could make, by its name."""
    for name, value in choices.items():
        if name in RULES:
            RULES[name](name, value)


def check_context(**choices: Any) -> None:
    """Raise RuntimeError for a choice that the active `PassContext` has taken."""
    for name in CONTEXT:
        if choices.get(name) is not None:
            raise RuntimeError(f"compile: {name}= while a PassContext is active: leave it out, or say it there")
