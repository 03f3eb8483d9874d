"""The namespace: the ops of PTO as Python names, `pto.tile.add` for `pto.tadd`.

The names follow from the declarations of ops. They say something inside a `@pto.jit` body only, where calls are read
and not made; anywhere else a call raises OutsideKernelError.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from keyword import iskeyword
from typing import Any, NoReturn

from tilewright.errors import OutsideKernelError
from tilewright.pto.text.form import Form, Syntax
from tilewright.source import calling_line

DIRECTIVES = (
    *("bytewidth", "cast", "const", "elements_per_vreg", "for_", "if_", "make_mask", "max", "min", "select"),
    *("static_range", "get_tid", "get_block_dim", "get_grid_dim", "get_op_attr"),
    *("vands", "vors", "vxors", "vrec", "vrsqrt"),
    *("chistv2", "sprsts", "vmi", "yield_", "declare_struct", "struct_get", "struct_set", "Vec"),
    *("alloc_buffer", "tile_type", "pipe.bidirectional", "pipe.c2v", "pipe.v2c"),
    *(f"simt_allreduce_{word}" for word in ("sum", "max", "min")),
    *(f"scalar.{word}" for word in ("abs", "addi", "exp", "index_cast", "load", "log", "max", "min", "muli")),
    *(f"scalar.{word}" for word in ("select", "sqrt", "store", "subi")),
)
"""The names that are no op of their own."""
_BITS = [f"{word}{form}" for word in ("and", "or", "xor", "shl", "shr") for form in ("", "s")]
_ALIASES = {
    **{f"{word}_{which}_flag": f"pto.sync.{word}" for word in ("set", "wait") for which in ("cross", "intra")},
    **{"mte_load": "pto.mte_gm_ub", "mte_store": "pto.mte_ub_gm"},
    **{f"tile.bit_{word}": f"pto.t{word}" for word in (*_BITS, "not")},
    **{word: f"pto.{word}" for word in ("tsort32", "tmrgsort", "tgather", "tscatter")},
}
"""Other names of ops."""


@dataclass(frozen=True)
class Operation:
    """An op, or a directive, that a body can call."""

    name: str
    """How Python spells it after `pto.`"""
    op: str = ""
    """The op it stands for, if it is one."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Ops only mean something inside a kernel."""
        _outside(self.name)

    def __repr__(self) -> str:
        return f"pto.{self.name}"


@dataclass(frozen=True)
class Scope:
    """What `with` opens: an op with a region."""

    op: str
    kind: str = ""
    """The sub-kernel that it is, where it is one."""

    def __enter__(self) -> None:
        """Scopes only mean something inside a kernel."""
        _outside(self.op.removeprefix("pto."))

    def __exit__(self, *_: object) -> None:
        """Never reached."""


@dataclass(frozen=True)
class StaticRange:
    """The items of `pto.static_range`: a loop over them is unrolled."""

    items: range


def _outside(name: str) -> NoReturn:
    message = f"`pto.{name}` describes work for a kernel and cannot run as plain Python"
    help = "use it inside a function decorated with @pto.jit"
    raise OutsideKernelError(message, spans=[calling_line()], help=help)


class Operations:
    """The ops under one word, as in `pto.tile`."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def __getattr__(self, name: str) -> Operation:
        found = operation(f"{self._prefix}.{name}")
        if found is None:
            raise AttributeError(f"there is no pto.{self._prefix}.{name}")
        return found

    def __dir__(self) -> Iterable[str]:
        return sorted(name.rpartition(".")[2] for name in operations() if name.startswith(f"{self._prefix}."))

    def __repr__(self) -> str:
        return f"pto.{self._prefix}"


_GROUPS = ("tile", "section", "sync", "scalar", "comm", "pipe", "cmo", "fence")
tile, section, sync, scalar, comm, pipe, cmo, fence = map(Operations, _GROUPS)


_SPELLED = (Syntax.PLAIN, Syntax.REGION, Syntax.FREE)


def operation(name: str) -> Operation | None:
    """Return what `pto.name` is, or None where there is no such op."""
    return operations().get(name)


@cache
def operations() -> dict[str, Operation]:
    """Return every op and directive by its Python name."""
    from tilewright.pto.ops.registry import OPS

    words = {name: Operation(name) for name in DIRECTIVES}
    forms = ((op, declared.form) for op, declared in OPS.items() if op.startswith("pto."))
    spelled = ((_spelling(op, form), op) for op, form in forms if form.syntax in _SPELLED)
    words |= {name: Operation(name, op) for name, op in spelled}
    return words | {name: Operation(name, op) for name, op in _ALIASES.items()}


def _spelling(op: str, form: Form) -> str:
    name = op.removeprefix("pto.")
    if "outs" not in form.words and name not in ("treshape", "tgetval"):
        return f"{name}_" if iskeyword(name) else name
    plain = (name[1:] if name.startswith("t") else name).replace(".", "_")
    return f"tile.{plain}_" if iskeyword(plain) else f"tile.{plain}"
