"""Stages: the texts that a program is on its way to code, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import TypeAlias

from tilewright.backends.interface import Backend, Code
from tilewright.core.program import Program
from tilewright.forks import computed_once
from tilewright.passes.strategy import OptimizationStrategy

Maker = Callable[[], str]


class Remade(Mapping[str, Maker]):
    """The stages of a program, by name: its source, one after each pass, then the code.

    They are made again from its source when somebody looks, so that nobody pays for texts that are not read. Neither
    names nor texts are known before, so a program that was kept shows its stages without loading the compiler.
    """

    def __init__(
        self,
        backend: Backend,
        source: Callable[[], Program],
        strategy: OptimizationStrategy = OptimizationStrategy.Default,
        code: Callable[[], Code] | None = None,
        *,
        concise: bool = False,
    ) -> None:
        self._source = cache(source)
        self._strategy = strategy
        self._backend = backend
        self._code = cache(code or self._compiled)
        self._concise = concise

    @property
    def source(self) -> Program:
        """The program before any pass."""
        return self._source()

    def __getitem__(self, name: str) -> Maker:
        return self._makers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)

    @computed_once
    def _makers(self) -> dict[str, Maker]:
        from tilewright.passes.manager import PassManager

        names = PassManager.get_strategy(self._strategy).pass_names
        found: dict[str, Maker] = {"program": lambda: str(self._source()), "00_frontend": partial(self._dumped, 0)}
        found |= {f"{n:02}_after_{name}": partial(self._dumped, n) for n, name in enumerate(names, start=1)}
        found["ir"] = partial(self._dumped, -1)
        return found | {stage: partial(self._text, stage) for stage in self._backend.stages}

    def _text(self, stage: str) -> str:
        return self._code().texts[stage]()

    @computed_once
    def _programs(self) -> list[Program]:
        """The program as it comes, and after each pass."""
        from tilewright.passes.context import CallbackInstrument, PassContext
        from tilewright.passes.manager import PassManager

        found = [self._source()]
        with PassContext([CallbackInstrument(after=lambda _, program: found.append(program))]):
            PassManager.get_strategy(self._strategy).run_passes(self._source())
        return found

    def _dumped(self, number: int) -> str:
        return self._programs[number].as_python(concise=self._concise)

    def _compiled(self) -> Code:
        return self._backend.compile(self._programs[-1], [entry.name for entry in self._source().entries])


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
