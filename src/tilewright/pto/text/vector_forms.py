"""Vector forms: ops over 256-byte registers and their masks.

Attributes: `predicate` of comparisons, `pattern` of made masks, `dist` of loads and stores with a quoted distribution,
`part` of packs and halves, `mode` of unaligned stores, `register` of `sprclr`. What stands in brackets after a pointer
is the clause `offset`.
"""

from __future__ import annotations

from tilewright.pto.text.form import Form, Layout, Slot, Syntax, Typing, Word
from tilewright.pto.types import ALIGN

_OFFSET = {"offset": Word(Layout.INDEX, "i")}


def _vector(operands: str, results: str = "v", slot: str = "", needs_slot: bool = True) -> Form:
    slots = (Slot(slot, "string"),) if slot else ()
    return Form(operands, results, slots=slots, needed_slots=None if needs_slot else 0)


def _memory(operands: str, results: str = "", slot: str = "") -> Form:
    """Return the form of a load or store, whose pointer has an offset in brackets."""
    slots = (Slot(slot, "string"),) if slot else ()
    indexed = operands.index("l")
    return Form(operands, results, words=_OFFSET, slots=slots, needed_slots=0, index="offset", indexed=indexed)


_UNARY = ("vabs", "vneg", "vexp", "vln", "vsqrt", "vrelu", "vnot", "vsqz")
_REDUCED = ("vcadd", "vcmax", "vcmin", "vcgadd", "vcgmax", "vcgmin", "vcpadd")
_BINARY = ("vadd", "vsub", "vmul", "vdiv", "vmax", "vmin", "vand", "vor", "vxor", "vsel")
_SCALAR = ("vadds", "vsubs", "vmuls", "vmaxs", "vmins", "vlrelu")
_MADE = Form("", "n", Typing.RESULT, slots=(Slot("pattern", "string"),), family="mask")
_BY_WIDTH = {
    "plt": _vector("i", "ni"),
    "pset": _MADE,
    "pge": _MADE,
    "pintlv": _vector("nn", "nn"),
    "pdintlv": _vector("nn", "nn"),
}

VECTOR = {
    **{f"pto.{name}": _vector("vm") for name in _UNARY},
    **{f"pto.{name}": _vector("um?", "u") for name in _REDUCED},
    **{f"pto.{name}": _vector("vvm") for name in _BINARY},
    **{f"pto.{name}": _vector("vem") for name in _SCALAR},
    **{f"pto.{name}_{width}": form for width in ("b8", "b16", "b32") for name, form in _BY_WIDTH.items()},
    **{f"pto.{name}": _vector("uum", "u") for name in ("vshl", "vshr")},
    **{f"pto.{name}": _vector("vim") for name in ("vshls", "vshrs")},
    **{f"pto.{name}": _vector("nnn", "n") for name in ("pand", "por", "pxor", "psel")},
    **{f"pto.{name}": _memory("lx?x?x?", "u") for name in ("vgather2", "vgather2_bc", "vgatherb")},
    **{f"pto.{name}": _vector("un?|ui", "u", "part", False) for name in ("vpack", "vsunpack", "vzunpack")},
    **{f"pto.{name}": _vector("vvm?") for name in ("vprelu", "vaddrelu", "vsubrelu")},
    "pto.vmula": _vector("vvvm"),
    "pto.vmadd": _vector("vvvm"),
    "pto.vaxpy": _vector("vvem|vem|vve"),
    "pto.vmulscvt": Form("usn", "u", slots=(Slot("rnd", "string"), Slot("part", "string")), needed_slots=0),
    "pto.vtrc": _vector("vm", "v", "rnd", False),
    "pto.vcvt": _vector("un?", "u"),
    "pto.vusqz": _vector("un?|n", "u"),
    "pto.vdup": _vector("vm?|em?"),
    "pto.vbr": _vector("e"),
    "pto.vci": _vector("e"),
    "pto.vbitcast": _vector("u", "u"),
    "pto.pbitcast": _vector("n", "n"),
    "pto.pnot": _vector("nn", "n"),
    "pto.vselr": _vector("uu", "u"),
    "pto.vcmp": _vector("vvm", "m", "predicate"),
    "pto.vcmps": _vector("vem", "m", "predicate"),
    "pto.vexpdif": _vector("uun?", "u", "part", False),
    "pto.vintlv": _vector("vv", "vv"),
    "pto.vdintlv": _vector("vv", "vv"),
    "pto.vaddc": _vector("vvm", "vm"),
    "pto.vsubc": _vector("vvm", "vm"),
    "pto.vaddcs": _vector("vvmm", "vm"),
    "pto.vsubcs": _vector("vvmm", "vm"),
    "pto.vmull": _vector("vvm", "vv"),
    "pto.vbitsort": _vector("llli?", ""),
    "pto.vmrgsort4": _vector("lllllii?i?", ""),
    "pto.vlds": _memory("l", "ul?"),
    "pto.vsts": _memory("uln?", "l?"),
    "pto.vldsx2": _memory("l", "uul?", "dist"),
    "pto.vstsx2": _memory("uuln?", "l?", "dist"),
    "pto.vsldb": _vector("liin", "ul?"),
    "pto.vsstb": _vector("uliin", "l?"),
    "pto.vscatter": _memory("ulx?x?"),
    "pto.vldas": _memory("l", "a"),
    "pto.vldus": _memory("lai?", "ual?"),
    "pto.vstus": _vector("aiul|aul", "al?", "mode", False),
    "pto.vstur": _vector("aul", "a", "mode", False),
    "pto.vstar": _vector("al", ""),
    "pto.vstas": _memory("ali?", "l?"),
    "pto.pstu": _vector("anli?", "al?"),
    "pto.init_align": Form("", "a", Typing.RESULT, implied=ALIGN),
    "pto.sprclr": _vector("", "", "register"),
    "pto.plds": _memory("l", "nl?", "dist"),
    "pto.pldi": _memory("li?", "nl?", "dist"),
    "pto.psts": _memory("nl", "l?", "dist"),
    "pto.psti": _memory("nli?", "l?", "dist"),
    "pto.ppack": _vector("n", "n", "part"),
    "pto.punpack": _vector("n", "n", "part"),
    "pto.vecscope": Form(syntax=Syntax.REGION),
    "pto.strict_vecscope": Form("x*", syntax=Syntax.REGION),
}
