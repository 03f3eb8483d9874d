"""SIMT: functions launched over work items, their ids, memory, atomics, collectives and arithmetic.

They are read and verified; nothing here runs them yet.
"""

from __future__ import annotations

from itertools import product

from tilewright.pto.errors import PtoAttributeError
from tilewright.pto.module import Op
from tilewright.pto.op import Constants, number_of, unmeant
from tilewright.pto.text.form import Typing, free
from tilewright.pto.text.free import WRITTEN
from tilewright.pto.types import Scalar

_FAMILY = "SIMT"
_SIGNS = ("signed", "unsigned")
_SPELLED = " ".join(_SIGNS)


def _signed_integers(op: Op, _: Constants) -> None:
    """Refuse integers without a word for their sign, where that matters, and floats with one."""
    type_ = op.operands[-1].type
    written = op.attributes.get(WRITTEN, ())
    is_told = isinstance(written, tuple) and any(word in written for word in _SIGNS)
    is_integer = isinstance(type_, Scalar) and type_.is_integer
    if is_told and not is_integer:
        raise PtoAttributeError(f"`{op.name}` on {type_} has no sign to say", help="leave `signed` or `unsigned` out")
    if is_integer and not is_told and op.name.endswith(("_max", "_min", "mulhi", "mul_i32toi64")):
        raise PtoAttributeError(f"`{op.name}` on {type_} needs its sign", help="write `signed` or `unsigned`")


def _width(op: Op, _: Constants) -> None:
    width = number_of(op, "width")
    if width not in (None, 16, 32):
        raise PtoAttributeError(f"`{op.name}` has groups of {width} lanes", help="width is 16 or 32")


def _slot(op: Op, _: Constants) -> None:
    slot = number_of(op, "slot")
    if slot is None or not 0 <= slot <= 122:
        raise PtoAttributeError(f"`{op.name}` needs a slot", help="as in `{slot = 0 : i64}`, up to 122")


_AXES = [f"get_{what}_{axis}" for what, axis in product(("tid", "block_dim", "grid_dim", "block_idx"), "xyz")]
_MASKS = [f"get_lanemask_{which}" for which in ("eq", "le", "lt", "ge", "gt")]
_IDS = " ".join([*_AXES, *_MASKS, "get_laneid", "get_veccoreid", "get_clock32", "get_clock64"])

unmeant("pto.simt_launch", free("iiix*"), _FAMILY)
unmeant("pto.store_vfsimt_info", free("iii"), _FAMILY)
unmeant(f"pto.{_IDS}", free("", "i", typing=Typing.RESULT), _FAMILY)
unmeant("pto.vote_all vote_any vote_uni", free("b", "b"), _FAMILY)
unmeant("pto.vote_ballot", free("b", "i"), _FAMILY)
unmeant("pto.shuffle_idx shuffle_up shuffle_down shuffle_bfly", free("xi", "x"), _FAMILY, _width)
unmeant("pto.redux_add redux_max redux_min", free("x", "x", _SPELLED), _FAMILY, _signed_integers)
unmeant("pto.ldg", free("pi", "x", "l1cache l2cache"), _FAMILY)
unmeant("pto.stg", free("xpi", words="l1cache l2cache"), _FAMILY)
unmeant(
    "pto.atomic_exch atomic_add atomic_sub atomic_min atomic_max atomic_and atomic_or atomic_xor",
    free("px", "x", f"l2cache {_SPELLED}"),
    _FAMILY,
    _signed_integers,
)
unmeant("pto.atomic_cas", free("pxx", "x", f"l2cache {_SPELLED}"), _FAMILY)
unmeant("pto.prmt", free("iii", "i"), _FAMILY)
unmeant("pto.mulhi mul_i32toi64", free("ii", "i", _SPELLED), _FAMILY, _signed_integers)
unmeant("pto.absf sqrt exp log ceil floor rint round", free("x", "x"), _FAMILY)
unmeant("pto.fmin fmax pow", free("xx", "x"), _FAMILY)
unmeant("pto.fma", free("xxx", "x"), _FAMILY)
unmeant("pto.convert", free("x", "x", f"round sat nosat {_SPELLED}"), _FAMILY)
unmeant("pto.syncthreads threadfence threadfence_block", free(""), _FAMILY)
unmeant("pto.keep", free("x"), _FAMILY, _slot)
unmeant("pto.resume", free("", "x", typing=Typing.RESULT), _FAMILY, _slot)
unmeant("llvm.bitcast", free("x", "x", "to", Typing.RESULT), _FAMILY)
