"""Stages: the texts that a program is on its way to code, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from tilewright.programs.lowered_stages import Remade

Makers: TypeAlias = Mapping[str, Callable[[], str]]
"""What makes each text, by the stage's name."""


class Stages(Mapping[str, str]):
    """The texts a program went through on its way, by name; each is made when it is looked at."""

    def __init__(self, *makers: Makers) -> None:
        self._makers = makers

    def joined(self, others: Makers) -> Stages:
        """Return these stages after others."""
        return Stages(others, *self._makers)

    def followed(self, others: Makers) -> Stages:
        """Return these stages with others in place of those that go by the same names."""
        return Stages(*self._makers, others)

    @property
    def remade(self) -> Remade | None:
        """Where the program itself is made again, None where only its texts are known."""
        return next((makers for makers in reversed(self._makers) if isinstance(makers, Remade)), None)

    def __getitem__(self, name: str) -> str:
        for makers in reversed(self._makers):
            if name in makers:
                return makers[name]()
        raise KeyError(f"there is no stage {name!r}; there are {', '.join(self)}")

    def __contains__(self, name: object) -> bool:
        """Return whether there is such a stage, without making it."""
        return any(name in makers for makers in self._makers)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name for makers in self._makers for name in makers))

    def __len__(self) -> int:
        return sum(1 for _ in self)
