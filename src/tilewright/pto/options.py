"""Options: what `@pto.jit` is told besides the function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from tilewright.pto.architectures import MACHINES
from tilewright.pto.declared import Declared
from tilewright.pto.errors import PtoDeclarationError, PtoOptionError

_WORDS: Mapping[str, tuple[str, ...]] = {
    "target": MACHINES,
    "backend": ("vpto", "emitc"),
    "mode": ("auto", "explicit"),
    "kernel_kind": ("vector", "cube"),
}
_TYPES: Mapping[str, tuple[type, str]] = {
    "entry": (bool, "True or False"),
    "insert_sync": (bool, "True, False or None"),
    "ast_rewrite": (bool, "True, False or None"),
    "frontend_options": (Mapping, "a dict or None"),
    "native_options": (Mapping, "a dict or None"),
}
"""What options are that are no words; the last three change nothing here."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a kernel is to be compiled; nothing here changes what it computes."""

    target: str = "a5"
    kernel_kind: str | None = None
    backend: str = "vpto"
    entry: bool = True
    mode: str = "auto"
    insert_sync: bool | None = None

    @property
    def level(self) -> str:
        """How much of the machine the author has taken over: level 3 is all of it."""
        return "level3" if self.mode == "explicit" else "default"

    @property
    def syncs(self) -> bool:
        """Whether the compiler puts synchronization in: in auto mode, unless `insert_sync` says otherwise."""
        return self.mode == "auto" if self.insert_sync is None else self.insert_sync

    def metadata(self) -> dict[str, object]:
        """Return the options as `build_metadata` shows them."""
        return {
            "target": self.target,
            "kernel_kind": self.kernel_kind,
            "backend": self.backend,
            "mode": self.mode,
            "level": self.level,
            "insert_sync": self.syncs,
            "entry": self.entry,
        }


def checked_options(declared: Declared, given: Mapping[str, object]) -> Options:
    """Return the options of a kernel; PtoOptionError or PtoDeclarationError names the one that cannot be."""
    for name, choices in _WORDS.items():
        if given[name] not in choices and (name, given[name]) != ("kernel_kind", None):
            *most, last = map(repr, choices)
            raise declared.refusal(PtoOptionError, f"{name}= takes {', '.join(most)} or {last}, got {given[name]!r}")
    for name, (kind, words) in _TYPES.items():
        if not isinstance(given[name], kind) and (given[name] is not None or name == "entry"):
            raise declared.refusal(PtoDeclarationError, f"{name}= takes {words}, got {given[name]!r}")
    if (given["backend"], given["mode"]) == ("emitc", "explicit"):
        message = "backend='emitc' cannot be combined with mode='explicit'"
        raise declared.refusal(PtoOptionError, message, help="use backend='vpto', or mode='auto'")
    return Options(**{each.name: given[each.name] for each in fields(Options)})  # pyright: ignore[reportArgumentType]
