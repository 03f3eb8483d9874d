"""Sentences: what a declaration says in NumPy, computed beside a kernel that was made of its lines."""

from __future__ import annotations

import ast
import keyword
import re
from typing import Any

from tilewright.arrays import np
from tilewright.ops.philox import random_words
from tilewright.pto.module import Func, Module, Op
from tilewright.pto.types import Mask, Ptr, Scalar, TileBuf, VReg

BITS = 256
"""Bits of a mask's image, one for each byte of a register."""


def words_of(text: str) -> list[str]:
    """Return the arguments of the command in a text's first line."""
    words = text.splitlines()[0].split()
    assert words[:5] == ["//", "tilewright", "pto", "run", "example.pto"]
    return words[5:]


def lanes(pattern: str, count: int) -> Any:
    """Return the lanes that a pattern sets."""
    numbers = np.arange(count)
    shares = {"ALL": count, "H": count // 2, "Q": count // 4}
    if pattern in ("M3", "M4"):
        return numbers % int(pattern[1:]) == 0
    return numbers < (shares[pattern] if pattern in shares else int(pattern.removeprefix("VL")))


def image(mask: Any) -> Any:
    """Return the 256 bits of a mask: each lane is the first bit of its bytes."""
    flags = np.asarray(mask).astype(bool)
    made = np.zeros(BITS, bool)
    made[:: BITS // len(flags)] = flags
    return made


class Sentence:
    """What a kernel of an op's lines should leave, by the NumPy of its declaration."""

    def __init__(self, name: str, sentence: str, module: Module, func: Func) -> None:
        assert func.body is not None
        self.sentence, self.func = sentence, func
        self.ops = [op for each in module.funcs() if each.body for top in each.body.ops for op in top.walk()]
        params = {argument.name.removesuffix("_gm") for argument in func.arguments}
        own = [op for op in self.ops if op.name == name]
        self.op = next((op for op in own if params.issuperset(_targets(op))), own[0])
        self.types = {value.name: value.type for op in self.ops for value in op.results}
        self.masks = {
            op.results[0].name: lanes(str(op.attributes["pattern"])[4:], op.results[0].of(Mask).lanes)
            for op in self.ops
            if op.name.startswith("pto.pset_b") and op.results[0].name not in params
        }

    def left(self, values: list[Any]) -> dict[str, Any]:
        """Return what each array of the kernel holds after it."""
        scope = {"np": np, "image": image, "random_words": random_words, **self.masks}
        names = [argument.name.removesuffix("_gm") for argument in self.func.arguments]
        for argument, name, value in zip(self.func.arguments, names, values, strict=True):
            scope[f"{name}_" if keyword.iskeyword(name) else name] = _seen(argument.type, value)
        with np.errstate(all="ignore"):
            self._say(scope)
        arrays = zip(self.func.arguments, names, values, strict=True)
        return {a.name: self._stored(n, v, scope[n]) for a, n, v in arrays if isinstance(a.type, Ptr)}

    def _say(self, scope: dict[str, Any]) -> None:
        """Compute the sentence: statements, or an expression for what the op gives or writes."""
        (said, *others) = ast.parse(self.sentence).body
        if others or not isinstance(said, ast.Expr):
            exec(self.sentence, scope)
            return
        made, targets = eval(self.sentence, scope), _targets(self.op)
        for name, value in zip(targets, made if len(targets) > 1 else (made,), strict=True):
            is_masked = "m" in self.masks and not re.search(r"\bm\b", self.sentence)
            scope[name] = np.where(scope["m"], value, 0) if is_masked else value

    def _stored(self, name: str, before: Any, value: Any) -> Any:
        """Return a value as the kernel stores it."""
        if isinstance(self.types.get(name), Mask):
            return np.packbits(image(value), bitorder="little")
        return np.broadcast_to(np.reshape(value, _fitting(value, before)), before.shape).astype(before.dtype)


def _fitting(value: Any, like: Any) -> tuple[int, ...]:
    given = np.asarray(value)
    return like.shape if given.size == like.size else given.shape


def _targets(op: Op) -> list[str]:
    """Return what an op gives or writes."""
    held = [value.name for value in op.results if isinstance(value.type, VReg | Mask | Scalar | TileBuf)]
    return held or [value.name for value in op.outs]


def _seen(type: Any, value: Any) -> Any:
    """Return a value as sentences see it: a copy, and short floats that NumPy has no type for as longer ones."""
    if isinstance(type, Scalar):
        return type.dtype.numpy.type(value)
    return value.astype(np.float32) if value.dtype.isbuiltin != 1 else value.copy()
