"""Examples of PTO's tile ops: a kernel that loads tiles, does one op, and stores what it wrote."""

from __future__ import annotations

from tilewright.errors import TilewrightError
from tilewright.pto.op import Declaration
from tilewright.pto.text.kinds import signature

_TILE, _WINDOW, _VIEW = (
    "!pto.tile_buf<vec, 8x64xf32>",
    "!pto.partition_tensor_view<8x64xf32>",
    "!pto.tensor_view<?x?xf32>",
)
_NUMBERS = {"e": "f32", "s": "f32", "f": "f32", "i": "i32"}
_SIZES = "sizes = [%c8, %c64]"


def example(name: str, declared: Declaration) -> str:
    """Return a text that runs an op, or nothing where the op takes more than tiles of floats and numbers."""
    words = declared.form.words
    if set(words) != {"ins", "outs"} or words["outs"].kinds not in ("t", "z"):
        return ""
    row = signature(words["ins"].kinds)
    letters = row.rows[0][: row.count[0]]
    if not letters or set(letters) - {"t", "z", *_NUMBERS}:
        return ""
    text = _written(name, letters)
    return text if _runs(text) else ""


def _written(name: str, letters: str) -> str:
    tiles = [f"x{place}" for place, letter in enumerate(letters) if letter in "tz"]
    params = [f"%x{i}_gm: !pto.ptr<f32>" for i, letter in enumerate(letters) if letter in "tz"]
    params += ["%out_gm: !pto.ptr<f32>"]
    params += [f"%x{i}: {_NUMBERS[letter]}" for i, letter in enumerate(letters) if letter in _NUMBERS]
    lines = [f"%c{n} = arith.constant {n} : index" for n in (0, 1, 8, 64)]
    lines += [line for tile in (*tiles, "out") for line in _placed(tile)]
    lines += [f"pto.tload ins(%{tile}_part : {_WINDOW}) outs(%{tile} : {_TILE})" for tile in tiles]
    given = ", ".join(f"%x{place}" for place in range(len(letters)))
    types = ", ".join(_TILE if letter in "tz" else _NUMBERS[letter] for letter in letters)
    lines += [
        f"{name} ins({given} : {types}) outs(%out : {_TILE})",
        f"pto.tstore ins(%out : {_TILE}) outs(%out_part : {_WINDOW})",
        "return",
    ]
    body = "\n".join(f"    {line}" for line in lines)
    return f"module {{\n  func.func @example({', '.join(params)}) {{\n{body}\n  }}\n}}\n"


def _placed(tile: str) -> list[str]:
    """Return the lines that make a tile and a window of its memory."""
    shape = "shape = [%c8, %c64], strides = [%c64, %c1]"
    return [
        f"%{tile}_view = pto.make_tensor_view %{tile}_gm, {shape} : {_VIEW}",
        f"%{tile}_part = pto.partition_view %{tile}_view, offsets = [%c0, %c0], {_SIZES} : {_VIEW} -> {_WINDOW}",
        f"%{tile} = pto.alloc_tile : {_TILE}",
    ]


def _runs(text: str) -> bool:
    """Return whether a text is read, verified and lowered as it is."""
    from tilewright.pto.lower import lower
    from tilewright.pto.text.parser import parse
    from tilewright.pto.verify import verify

    try:
        module = parse(text)
        verify(module)
        lower(module, next(module.funcs()), target="a5")
    except TilewrightError:
        return False
    return True
