"""Gathering: a subject as the data of its page."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from tilewright.backends.interface import Line, Memory
from tilewright.core.expr import Var
from tilewright.core.program import Program
from tilewright.errors import KernelError
from tilewright.explore.listing import listed, sources
from tilewright.explore.notes import TooLarge
from tilewright.explore.page import (
    FILE,
    Access,
    Fact,
    LaunchRow,
    MemoryPlan,
    Page,
    PassText,
    Refusal,
    Remark,
    SourceText,
    Text,
    Timed,
)
from tilewright.explore.subject import Subject
from tilewright.passes.launches import launches
from tilewright.passes.pipeline import DEFAULT
from tilewright.passes.stages import summary
from tilewright.source import Source, Span

AROUND, AROUND_ERROR = 4, 40
"""How many lines of a file are shown around those that a program, or an error, has to do with."""


class Gatherer:
    """One page being gathered: its strings, and the files that places lie in."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.strings: dict[str, int] = {}
        self.files: dict[str, Source] = {}
        self.lines: dict[str, list[int]] = {}
        """The lines of each file that something was made for."""

    def page(self) -> Page:
        """Return the whole page."""
        subject = self.subject
        programs = [*self._programs()]
        error = subject.error if isinstance(subject.error, KernelError) else None
        texts = [listed(program) for _, _, program in programs]
        spans = [span for text in texts for _, span in text if span is not None]
        spans += list(error.spans) if error is not None else []
        spans += [held.span for memory in subject.anatomy.memory for held in memory.held]
        self.files = sources(subject.source.function_list if subject.source else (), spans)
        passes = list(self._passes(programs, texts))
        code = [self._code(name, lines) for name, lines in subject.anatomy.texts.items()]
        facts = [*self._signature_facts(), *subject.facts]
        memory = [self._memory(plan) for plan in subject.anatomy.memory]
        access = self._access()
        lines = subject.speed.lines if subject.speed is not None else ()
        refusal = self._refusal()
        return Page(
            subject.name,
            subject.version,
            subject.platform,
            self._signature(),
            sources=[self._source(file, source) for file, source in self.files.items()],
            passes=passes,
            code=code,
            memory=memory,
            launches=list(self._launches(programs[-1][2])) if len(subject.stages) == len(DEFAULT) else [],
            fusion=[self._fusion(subject.fusion, texts[-1])] if subject.fusion else [],
            facts=facts,
            profile=list(_profile(subject.profile)),
            speed=subject.speed,
            remarks=[Remark(self._numbered(file, line), text) for file, line, text in lines],
            refusal=refusal,
            access=access,
            strings=list(self.strings),  # last: all others add to them
        )

    # texts

    def _programs(self) -> Iterator[tuple[str, str, Program]]:
        if self.subject.source is not None:
            yield "FrontEnd", "What the front end read.", self.subject.source
        for stage in self.subject.stages:
            yield stage.each.name, summary(stage.each), stage.after

    def _passes(
        self, programs: Sequence[tuple[str, str, Program]], texts: Sequence[Sequence[tuple[str, Span | None]]]
    ) -> Iterator[PassText]:
        before: list[str] = []
        for (name, note, _), text in zip(programs, texts, strict=True):
            lines = [line for line, _ in text]
            if lines == before:
                yield PassText(name, note)
                continue
            places = [self._place(span) for _, span in text]
            changes = _changes(before, lines) if before else []
            yield PassText(name, note, Text(name, [self._string(line) for line in lines], places), changes)
            before = lines

    def _code(self, name: str, lines: Sequence[Line]) -> Text:
        places = [self._numbered(line.file, line.number) for line in lines]
        return Text(name, [self._string(line.text.expandtabs(8)) for line in lines], places)

    def _fusion(self, text: str, program: Sequence[tuple[str, Span | None]]) -> Text:
        """Return which ops share a loop, each where the same line of the program was written."""
        known = {line.strip(): span for line, span in program}
        lines = text.splitlines()
        places = [self._place(known.get(line.strip())) for line in lines]
        return Text("fusion", [self._string(line) for line in lines], places)

    def _source(self, file: str, source: Source) -> SourceText:
        used = self.lines.get(file) or [1]
        around = AROUND if self.subject.stages else AROUND_ERROR
        first, last = max(1, min(used) - around), min(len(source.lines), max(used) + around)
        lines = [self._string(source.line(number) or "") for number in range(first, last + 1)]
        return SourceText(os.path.basename(file), file, first, lines)

    def _string(self, text: str) -> int:
        return self.strings.setdefault(text, len(self.strings))

    # places

    def _place(self, span: Span | None) -> int:
        return self._numbered(span.filename, span.line) if span is not None and span.is_known else 0

    def _numbered(self, file: str, line: int) -> int:
        """Return a place as a number; a file may be known by its last name alone."""
        if not line:
            return 0
        for number, known in enumerate(self.files):
            if file in (known, os.path.basename(known)):
                self.lines.setdefault(known, []).append(line)
                return number * FILE + line
        return 0

    # the rest

    def _memory(self, memory: Memory) -> MemoryPlan:
        held = [(h.name, h.offset, h.size, h.since, h.until, self._place(h.span)) for h in memory.held]
        return MemoryPlan(
            re.sub(r"^(fn|task)\d+_", "", memory.function), memory.size, max(until for *_, until, _ in held), held
        )

    def _access(self) -> Access | None:
        """Return what the call touches, None where there is no room for a picture of it."""
        try:
            return self.subject.watch(self._place) if self.subject.watch is not None else None
        except TooLarge:
            return None

    def _launches(self, program: Program) -> Iterator[LaunchRow]:
        for function in program.entries:
            for launch in launches(program, function):
                does = launch.does.partition("; after")[0]
                yield LaunchRow(function.name, launch.what, does, launch.after, self._place(launch.span))

    def _signature(self) -> str:
        source = self.subject.source
        entries = source.entries if source is not None else ()
        return "  ".join(f"{entry.name}({', '.join(map(_declared, entry.params))})" for entry in entries)

    def _signature_facts(self) -> Iterator[Fact]:
        for entry in self.subject.source.entries if self.subject.source is not None else ():
            for param, direction in zip(entry.params, entry.param_directions, strict=True):
                yield Fact("parameters", f"{entry.name}.{param.name_hint}", f"{param.type} ({direction.name})")

    def _refusal(self) -> Refusal | None:
        error = self.subject.error
        if error is None:
            return None
        place = self._place(error.place) if isinstance(error, KernelError) else 0
        return Refusal(self.subject.refused_by, type(error).__name__, str(error), place)


def gathered(subject: Subject) -> Page:
    """Return the page of a subject."""
    return Gatherer(subject).page()


def _declared(param: Var) -> str:
    return f"{param.name_hint}: {param.type}"


def _changes(before: Sequence[str], after: Sequence[str]) -> list[tuple[int, int, int, int]]:
    """Return where two texts differ: from and to in the first, from and to in the second."""
    found = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return [(i, j, k, m) for tag, i, j, k, m in found if tag != "equal"]


def _profile(records: Sequence[tuple[str, float, float]]) -> Iterator[Timed]:
    """Yield the steps of compiling as a flame chart has them: all of it, the passes together, and each step."""
    if not records:
        return
    begin, end = records[0][1], records[-1][2]
    known = {each.name for each in DEFAULT}
    passes = [record for record in records if record[0] in known]
    yield Timed("compile", 0.0, 1e3 * (end - begin), 0)
    if passes:
        yield Timed("passes", 1e3 * (passes[0][1] - begin), 1e3 * (passes[-1][2] - passes[0][1]), 1)
    for name, start, stop in records:
        yield Timed(name, 1e3 * (start - begin), 1e3 * (stop - start), 2 if name in known else 1)
