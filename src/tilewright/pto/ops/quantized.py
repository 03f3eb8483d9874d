"""Quantized tiles: integers with a scale, per tile, row or channel; and block-scaled products.

They are read and verified; nothing here runs them yet.
"""

from __future__ import annotations

from tilewright.pto.errors import PtoAttributeError
from tilewright.pto.module import Op, word_of
from tilewright.pto.op import Constants, unmeant
from tilewright.pto.text.form import free

_FAMILY, _SCALED = "quantized tiles", "block-scaled matrices"
_WORDS = "ins outs"


def _has_its_offset(op: Op, _: Constants) -> None:
    """Refuse an asymmetric quantization without an offset, and a symmetric one with one."""
    kind = word_of(op.attributes.get("quant_type", "INT8_SYM"))
    if kind not in ("INT8_SYM", "INT8_ASYM"):
        raise PtoAttributeError(f"`{kind}` is no quant_type", help="it is INT8_SYM or INT8_ASYM")
    if (len(op.operands) == 4) != (kind == "INT8_ASYM"):
        message = f"`{op.name}` of {kind} has {'an' if len(op.operands) == 4 else 'no'} offset"
        raise PtoAttributeError(message, help="INT8_ASYM takes an offset, INT8_SYM none")


unmeant("pto.tquant", free("zzzz?", words=_WORDS), _FAMILY, _has_its_offset)
unmeant("pto.tdequant", free("zzzz", words=_WORDS), _FAMILY)
unmeant("pto.tmov.fp", free("zzz", words=_WORDS), _FAMILY)
unmeant("pto.tstore_fp", free("zzy", words=_WORDS), _FAMILY)
unmeant("pto.textract_fp tinsert_fp", free("zziiz", words=_WORDS), _FAMILY)
unmeant("pto.tget_scale_addr", free("zz", words=_WORDS), _SCALED)
unmeant("pto.tmatmul.mx tgemv.mx", free("zzzzz", words=_WORDS), _SCALED)
unmeant("pto.tmatmul.mx.acc tmatmul.mx.bias tgemv.mx.acc tgemv.mx.bias", free("zzzzzz", words=_WORDS), _SCALED)
