"""Configurations: what one variant of a tuned kernel has for the parameters that its calls leave open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilewright.programs.config import RunConfig


class Config(Mapping[str, Any]):
    """Values for parameters of a kernel, and for fields of a `RunConfig`, by name; it reads as a mapping of them."""

    def __init__(self, **values: Any) -> None:
        self._values = values

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return hash(frozenset(self._values))

    def __repr__(self) -> str:
        return f"Config({self.text})"

    @property
    def text(self) -> str:
        """The values as they are written in a call."""
        return ", ".join(f"{name}={_shown(value)}" for name, value in self._values.items())


def _shown(value: object) -> str:
    name = getattr(value, "name", None)  # of an enum's member, or an element type
    return name if isinstance(name, str) else repr(value)


def applied(options: Mapping[str, Any], config: RunConfig | None) -> RunConfig | None:
    """Return a caller's run configuration with the fields that a tuned one sets, None where nobody sets any."""
    if not options:
        return config
    from tilewright.programs.config import RunConfig

    return replace(config or RunConfig(), **options)
