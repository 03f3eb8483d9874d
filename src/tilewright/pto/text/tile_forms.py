"""Tile forms: ops over tile buffers, nearly all of them `pto.tX ins(...) outs(...) {...}`.

Scratch tiles, packed bits, indices and casts are tiles whose element type is their own (`z`).
"""

from __future__ import annotations

from tilewright.pto.text.form import Form, Layout, Typing, Word


def _tile(ins: str, outs: str = "t", is_pointwise: bool = False) -> Form:
    words = {"ins": Word(Layout.TYPED, ins, required=True), "outs": Word(Layout.TYPED, outs, required=True)}
    return Form(words=words, is_pointwise=is_pointwise)


_UNARY = ("texp", "tlog", "tsqrt", "trecip", "tneg", "tabs", "trelu", "tnot")
_BINARY = ("tadd", "tsub", "tmul", "tdiv", "tmax", "tmin", "tand", "tor", "tshl", "tshr", "tfmod")
_SCALAR = ("tadds", "tsubs", "tmuls", "tmaxs", "tmins", "tands", "tors", "tshls", "tshrs", "tfmods")
_ROW_REDUCED = ("trowsum", "trowmax", "trowmin", "trowprod", "tcolsum", "tcolmax", "tcolmin", "tcolprod")
_EXPANDED = ("add", "sub", "mul", "div", "min", "max", "expdif")

TILE = {
    **{f"pto.{name}": _tile("t", is_pointwise=True) for name in _UNARY},
    **{f"pto.{name}": _tile("tt", is_pointwise=True) for name in _BINARY},
    **{f"pto.{name}": _tile("te", is_pointwise=True) for name in _SCALAR},
    **{f"pto.{name}": _tile("tz?") for name in _ROW_REDUCED},
    **{f"pto.trowexpand{op}": _tile("ttz?") for op in _EXPANDED},
    **{f"pto.tcolexpand{op}": _tile("tt") for op in _EXPANDED},
    **{f"pto.tpart{op}": _tile("tt") for op in ("add", "mul", "max", "min")},
    **{f"pto.{name}": _tile("zz?", "z") for name in ("trowargmin", "trowargmax", "tcolargmin", "tcolargmax")},
    "pto.trowexpand": _tile("t"),
    "pto.tcolexpand": _tile("t"),
    "pto.trsqrt": _tile("tz?", is_pointwise=True),
    "pto.tdivs": _tile("te|et", is_pointwise=True),
    "pto.tlrelu": _tile("ts", is_pointwise=True),
    "pto.taxpy": _tile("zs", "z", is_pointwise=True),
    "pto.trem": _tile("ttz?", is_pointwise=True),
    "pto.trems": _tile("tez?", is_pointwise=True),
    "pto.txor": _tile("ttz?", is_pointwise=True),
    "pto.txors": _tile("tez?", is_pointwise=True),
    "pto.tprelu": _tile("ttz?", is_pointwise=True),
    "pto.taddc": _tile("ttt", is_pointwise=True),
    "pto.tsubc": _tile("ttt", is_pointwise=True),
    "pto.taddsc": _tile("tet", is_pointwise=True),
    "pto.tsubsc": _tile("tet", is_pointwise=True),
    "pto.tcvt": _tile("zz?", "z"),
    "pto.tcmp": _tile("tt", "z"),
    "pto.tcmps": _tile("te", "z"),
    "pto.tsel": _tile("zttz?"),
    "pto.tsels": _tile("ztzx?|ztex?"),
    "pto.texpands": _tile("e"),
    "pto.tci": _tile("e"),
    "pto.tload": _tile("y", "z"),
    "pto.tprefetch": _tile("y", "z"),
    "pto.tstore": _tile("zs?", "y"),
    "pto.tmov": _tile("zx?", "z"),
    "pto.ttrans": _tile("tz?"),
    "pto.tfillpad": _tile("t"),
    "pto.tfillpad_inplace": _tile("t"),
    "pto.tfillpad_expand": _tile("t"),
    "pto.textract": _tile("zii", "z"),
    "pto.tinsert": _tile("zii", "z"),
    "pto.tconcat": _tile("tt"),
    "pto.tpack": _tile("z", "z"),
    "pto.tmatmul": _tile("zz", "z"),
    "pto.tmatmul.acc": _tile("zzz", "z"),
    "pto.tmatmul.bias": _tile("zzz", "z"),
    "pto.tgemv": _tile("zz", "z"),
    "pto.tgemv.acc": _tile("zzz", "z"),
    "pto.tgemv.bias": _tile("zzz", "z"),
    "pto.tsort32": _tile("zz?z?", "zz?"),
    "pto.tmrgsort": _tile("zx?x?x?x?", "zx?x?"),
    "pto.tgather": _tile("zx?x?x?", "zz?"),
    "pto.tgatherb": _tile("zz", "z"),
    "pto.tscatter": _tile("zz", "z"),
    "pto.mgather": _tile("yz", "z"),
    "pto.mscatter": _tile("zz", "y"),
    "pto.tpartargmax": _tile("zzz?z?", "zz?"),
    "pto.tpartargmin": _tile("zzz?z?", "zz?"),
    "pto.tsetval": _tile("is"),
    "pto.tgetval": Form("", "s", Typing.RESULT, words={"ins": Word(Layout.TYPED, "ti", required=True)}),
}

_WINDOW = Form(
    "z",
    "z",
    words={"offsets": Word(Layout.INDEX, "ii", required=True), "valid": Word(Layout.BRACKET, "ii")},
    numbers=("sizes",),
    index="offsets",
    family="tile_buf",
)
VIEWS = {
    "pto.alloc_tile": Form(
        "",
        "z",
        Typing.RESULT,
        words={word: Word(Layout.SINGLE, "i") for word in ("addr", "valid_row", "valid_col")},
        family="tile_buf",
    ),
    "pto.make_tensor_view": Form(
        "g",
        "w",
        Typing.RESULT,
        words={word: Word(Layout.LIST, "i*", required=True) for word in ("shape", "strides")},
        family="tensor_view",
    ),
    "pto.partition_view": Form(
        "y",
        "q",
        words={word: Word(Layout.LIST, "i*", required=True) for word in ("offsets", "sizes")},
        family="partition_tensor_view",
    ),
    "pto.subview": _WINDOW,
    "pto.subset": _WINDOW,
    "pto.treshape": Form("z", "z", family="tile_buf"),
    "pto.tile_buf_addr": Form("z", "p", family="ptr"),
    "pto.set_validshape": Form("zii", untyped=2),
}
