"""Op spans: where the ops of a module stand, by numbers that modules of the same text share."""

from __future__ import annotations

from tilewright.forks import computed_once
from tilewright.keep.relocate import named
from tilewright.pto.module import Module
from tilewright.source import Span


class OpSpans:
    """The functions and ops of one module."""

    def __init__(self, module: Module) -> None:
        self._module = module

    def freed(self, span: Span) -> Span:
        """Return a span that names an op by its number."""
        number = self._numbers.get(span[:5])
        return span if number is None else named(0, number)

    def placed(self, span: Span, text: int, piece: int) -> Span:
        """Return where an op stands."""
        return self._spans[piece]

    @computed_once
    def _numbers(self) -> dict[tuple[object, ...], int]:
        return {span[:5]: number for number, span in reversed(list(enumerate(self._spans)))}

    @computed_once
    def _spans(self) -> list[Span]:
        funcs = [func for func in self._module.funcs() if func.body is not None]
        ops = (op for func in funcs if func.body is not None for each in func.body.ops for op in each.walk())
        return [*(func.span for func in funcs), *(op.span for op in ops)]
