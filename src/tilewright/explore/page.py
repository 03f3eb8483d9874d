"""Pages: what the explorer shows of a program, as plain data that JSON holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

FILE = 1 << 20
"""A place is a line, plus this many for each file before its own; 0 is nowhere."""


@dataclass(frozen=True)
class Text:
    """Lines, by their numbers among the page's strings, and the place of each."""

    name: str
    lines: Sequence[int]
    places: Sequence[int]
    note: str = ""


@dataclass(frozen=True)
class SourceText:
    """The part of a file that a program was written in, from line `first` on."""

    name: str
    path: str
    first: int
    lines: Sequence[int]


@dataclass(frozen=True)
class PassText:
    """The program after one pass: its text where that changed, and in which lines it differs from the one before."""

    name: str
    note: str
    text: Text | None = None
    changes: Sequence[Sequence[int]] = ()
    """From and to in the text before, from and to in this one."""


@dataclass(frozen=True)
class MemoryPlan:
    """A function's memory: each part's name, offset, size, first and last statement, and place."""

    function: str
    size: int
    steps: int
    held: Sequence[tuple[str, int, int, int, int, int]]


@dataclass(frozen=True)
class LaunchRow:
    """One thing that a program starts, what it does to memory, and the rows it waits for."""

    entry: str
    what: str
    does: str
    after: Sequence[int]
    place: int


@dataclass(frozen=True)
class Fact:
    """Something that holds for the program: a group of facts, its name, what it is, and why it matters."""

    group: str
    name: str
    value: str


@dataclass(frozen=True)
class Timed:
    """A step of compiling, in milliseconds since the first began; `depth` says within how many others it lies."""

    name: str
    start: float
    took: float
    depth: int


@dataclass(frozen=True)
class Roofline:
    """What a machine can do at most and what was measured: floating-point operations and bytes a second."""

    flops_peak: float
    bytes_peak: float
    flops: float
    bytes: float
    seconds: float


@dataclass(frozen=True)
class Speed:
    """How long a call takes, what keeps it from being faster, what was made of it, and what to try."""

    seconds: float
    """The program by itself."""
    call_seconds: float
    """Called from Python."""
    bound_by: str
    facts: Sequence[str]
    lines: Sequence[tuple[str, int, str]]
    """Files, lines, and what was made of them."""
    advice: Sequence[tuple[str, int]]
    """What to try, and the line that it is about."""
    roofline: Roofline | None = None


@dataclass(frozen=True)
class Remark:
    """What was made of one line: its place, and what there is to say."""

    place: int
    text: str


@dataclass(frozen=True)
class Refusal:
    """Why there is no program: the stage that refused it, the whole message, and where."""

    stage: str
    kind: str
    message: str
    place: int


@dataclass(frozen=True)
class Touch:
    """Elements that a turn touches: which argument, how, runs of flat indices, and the place of the op."""

    argument: int
    access: str
    runs: Sequence[tuple[int, int]]
    place: int


@dataclass(frozen=True)
class Turn:
    """A turn of a loop, or a block of a grid, and what it touches in order."""

    name: str
    touches: Sequence[Touch]


@dataclass(frozen=True)
class Argument:
    """A tensor that a call was given."""

    name: str
    shape: Sequence[int]
    dtype: str
    direction: str


@dataclass(frozen=True)
class Finding:
    """Something to know about how an argument is touched; `kind` says how it is drawn."""

    kind: str
    argument: str
    text: str
    place: int = 0


@dataclass(frozen=True)
class Access:
    """Which elements of its arguments each turn of a call touches."""

    arguments: Sequence[Argument]
    turns: Sequence[Turn]
    findings: Sequence[Finding]
    racing: Sequence[Sequence[tuple[int, int]]] = ()
    """The elements of each argument that turns race for, as runs."""


@dataclass(frozen=True)
class Page:
    """Everything on one page; what is not there is empty, and has no tab."""

    title: str
    version: str
    platform: str
    signature: str
    strings: Sequence[str]
    sources: Sequence[SourceText] = ()
    passes: Sequence[PassText] = ()
    code: Sequence[Text] = ()
    memory: Sequence[MemoryPlan] = ()
    launches: Sequence[LaunchRow] = ()
    fusion: Sequence[Text] = ()
    facts: Sequence[Fact] = ()
    profile: Sequence[Timed] = ()
    speed: Speed | None = None
    remarks: Sequence[Remark] = ()
    refusal: Refusal | None = None
    access: Access | None = None

    def plain(self) -> dict[str, Any]:
        """Return the page as JSON has it."""
        return asdict(self)
