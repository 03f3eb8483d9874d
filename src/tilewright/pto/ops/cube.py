"""Cube micro-ops: matrices staged through the cube's memories, multiplied there, and brought out converted.

They are read and verified; nothing here runs them yet.
"""

from __future__ import annotations

from tilewright.pto.errors import PtoOperandError
from tilewright.pto.module import Op
from tilewright.pto.op import Constants, Rule, unmeant
from tilewright.pto.text.form import free
from tilewright.pto.text.typetext import brief_text
from tilewright.pto.types import Ptr, Space

_FAMILY = "cube micro-ops"
_GM, _UB, _L1, _L0A, _L0B, _L0C = Space.GM, Space.VEC, Space.MAT, Space.LEFT, Space.RIGHT, Space.ACC


def _in(*spaces: Space) -> Rule:
    """Return the rule of an op whose first operands are pointers to certain memories."""

    def rule(op: Op, _: Constants) -> None:
        for number, (value, space) in enumerate(zip(op.operands, spaces, strict=False), 1):
            if value.of(Ptr).space is not space:
                message = f"`{op.name}` takes a pointer to {space.value} as operand {number}"
                help = f"operand {number} lies in {space.value}"
                raise PtoOperandError(f"{message}, `%{value.name}` is {brief_text(value.type)}", help=help)

    return rule


unmeant("pto.mte_gm_l1", free("ppiiiii*", words="nburst loop"), _FAMILY, _in(_GM, _L1))
unmeant("pto.mte_l1_ub", free("ppiiiii*", words="nburst loop"), _FAMILY, _in(_L1, _UB))
unmeant(
    "pto.mte_gm_l1_frac",
    free("ppiiiiiiiiii?", words="nd2nz dn2nz shape src_layout dst_group ctrl"),
    _FAMILY,
    _in(_GM, _L1),
)
unmeant("pto.mte_l1_l0a", free("ppiiii"), _FAMILY, _in(_L1, _L0A))
unmeant("pto.mte_l1_l0b", free("ppiiii"), _FAMILY, _in(_L1, _L0B))
unmeant("pto.mte_l1_l0a_mx", free("ppii"), _FAMILY, _in(_L1, _L0A))
unmeant("pto.mte_l1_l0b_mx", free("ppii"), _FAMILY, _in(_L1, _L0B))
unmeant("pto.mte_l1_bt mte_l1_bias", free("ppiiii", words="nburst"), _FAMILY, _in(_L1, Space.BIAS))
unmeant("pto.mte_l1_fb", free("ppiiii", words="nburst"), _FAMILY, _in(_L1, Space.SCALING))

_CLAUSES = "unit_flag disable_gemv sat nosat tf32_mode n_dir"
unmeant("pto.mad mad_acc mad_mx mad_mx_acc", free("pppiii", words=_CLAUSES), _FAMILY, _in(_L0A, _L0B, _L0C))
unmeant("pto.mad_bias mad_mx_bias", free("ppppiii", words=_CLAUSES), _FAMILY, _in(_L0A, _L0B, _L0C, Space.BIAS))

_OUT = "unit_flag pre_quant pre_relu nz2nd nz2dn nz2nz loop3 sat nosat atomic dst_mode"
unmeant("pto.mte_l0c_l1", free("ppiiiix*", words=_OUT), _FAMILY, _in(_L0C, _L1))
unmeant("pto.mte_l0c_gm", free("ppiiiiiix*", words=_OUT), _FAMILY, _in(_L0C, _GM))
unmeant("pto.mte_l0c_ub", free("ppiiiix*", words=_OUT), _FAMILY, _in(_L0C, _UB))
