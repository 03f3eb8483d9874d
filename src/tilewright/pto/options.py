"""Options: what `@pto.jit` is told besides the function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tilewright.pto.declared import Declared
from tilewright.pto.errors import PtoDeclarationError, PtoOptionError

TARGETS = ("a2", "a3", "a2a3", "a5")
BACKENDS = ("vpto", "emitc")
MODES = ("auto", "explicit")
KINDS = ("vector", "cube")


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
    for name, choices in (("target", TARGETS), ("backend", BACKENDS), ("mode", MODES)):
        _check_word(declared, name, given[name], choices)
    if given["kernel_kind"] is not None:
        _check_word(declared, "kernel_kind", given["kernel_kind"], KINDS)
    if not isinstance(given["entry"], bool):
        raise declared.refusal(PtoDeclarationError, f"entry= takes True or False, got {given['entry']!r}")
    if given["insert_sync"] is not None and not isinstance(given["insert_sync"], bool):
        raise declared.refusal(
            PtoDeclarationError, f"insert_sync= takes True, False or None, got {given['insert_sync']!r}"
        )
    if (given["backend"], given["mode"]) == ("emitc", "explicit"):
        message = "backend='emitc' cannot be combined with mode='explicit'"
        raise declared.refusal(PtoOptionError, message, help="use backend='vpto', or mode='auto'")
    return Options(**given)  # pyright: ignore[reportArgumentType]


def check_carried(declared: Declared, carried: Mapping[str, object]) -> None:
    """Raise PtoDeclarationError for options of the family that change nothing here and cannot be."""
    for name, value in carried.items():
        kind, words = (bool, "True, False") if name == "ast_rewrite" else (Mapping, "a dict")
        if value is not None and not isinstance(value, kind):
            raise declared.refusal(PtoDeclarationError, f"{name}= takes {words} or None, got {value!r}")


def _check_word(declared: Declared, name: str, value: object, choices: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in choices:
        *most, last = map(repr, choices)
        message = f"{name}= takes {', '.join(most)} or {last}, got {value!r}"
        raise declared.refusal(PtoOptionError, message)
