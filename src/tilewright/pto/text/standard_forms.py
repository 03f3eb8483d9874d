"""Standard forms: the ops of `arith`, `scf` and `func` that PTO text uses.

Attributes: `value` of a constant, `predicate` of a comparison, `callee` of a call.
"""

from __future__ import annotations

from tilewright.pto.text.form import Form, Layout, Slot, Syntax, Typing, Word

_PREDICATE = (Slot("predicate", "word"),)

INTEGER_OPS = (
    *("addi", "subi", "muli", "divsi", "divui", "remsi", "remui", "ceildivsi", "ceildivui", "floordivsi"),
    *("andi", "ori", "xori", "shli", "shrsi", "shrui", "maxsi", "maxui", "minsi", "minui"),
)
FLOAT_OPS = ("addf", "subf", "mulf", "divf", "remf", "maximumf", "minimumf", "maxnumf", "minnumf", "maxf", "minf")
INTEGER_CASTS = ("index_cast", "index_castui", "extsi", "extui", "trunci")
CASTS = {
    **{name: ("i", "i") for name in INTEGER_CASTS},
    **{name: ("f", "f") for name in ("extf", "truncf")},
    **{name: ("i", "f") for name in ("sitofp", "uitofp")},
    **{name: ("f", "i") for name in ("fptosi", "fptoui")},
    "bitcast": ("s", "s"),
}

STANDARD = {
    **{f"arith.{name}": Form("ii", "i", Typing.SAME) for name in INTEGER_OPS},
    **{f"arith.{name}": Form("ff", "f", Typing.SAME) for name in FLOAT_OPS},
    **{f"arith.{name}": Form(source, target, Typing.CAST) for name, (source, target) in CASTS.items()},
    "arith.negf": Form("f", "f", Typing.SAME),
    "arith.cmpi": Form("ii", "b", Typing.COMPARE, slots=_PREDICATE, is_leading=True),
    "arith.cmpf": Form("ff", "b", Typing.COMPARE, slots=_PREDICATE, is_leading=True),
    "arith.select": Form("bxx", "x", Typing.SELECT),
    "arith.addui_extended": Form("ii", "ib", Typing.EXTENDED),
    "arith.mulsi_extended": Form("ii", "ii", Typing.SAME),
    "arith.mului_extended": Form("ii", "ii", Typing.SAME),
    "arith.constant": Form("", "s", syntax=Syntax.CONSTANT),
    "scf.for": Form("iii", "x*", words={"iter_args": Word(Layout.PLAIN, "x*")}, syntax=Syntax.FOR),
    "scf.if": Form("b", "x*", syntax=Syntax.IF),
    "scf.while": Form("x*", "x*", syntax=Syntax.WHILE),
    "scf.condition": Form("bx*", syntax=Syntax.CONDITION),
    "scf.yield": Form("x*"),
    "func.call": Form("x*", "x*", syntax=Syntax.CALL),
    "func.return": Form("x*"),
}
SHORT_NAMES = {"return": "func.return", "call": "func.call", "yield": "scf.yield"}
