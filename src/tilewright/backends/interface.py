"""What a back end is: how it is asked for code, and what its code is to everybody else.

A back end makes host functions: every entry of a program is one C function `entry(words, context)`, whatever it starts
on which device, or stands for one. So whoever calls, keeps, exports or shows programs knows no back end by name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field
from importlib import import_module
from time import perf_counter_ns
from typing import Any, Protocol, TypeAlias, runtime_checkable

from tilewright.backends.devices import Devices
from tilewright.core.program import Program
from tilewright.dtypes import DataType
from tilewright.errors import ArtifactError, ExportError
from tilewright.forks import undivided
from tilewright.named_tuples import NamedTuple
from tilewright.records import record
from tilewright.source import Span

Target: TypeAlias = Any
"""What a back end makes code for: a record of plain values, part of keys and of an artifact's header."""

Options: TypeAlias = Any
"""What changes the code besides program and target: a record of plain values."""

Timed: TypeAlias = Callable[[str], AbstractContextManager[None]]
"""Times what happens inside, as the step of that name."""

Texts: TypeAlias = Mapping[str, Callable[[], str]]
"""What code was on its way, in order: each text by its stage, made when it is looked at."""


class Error(NamedTuple):
    """What the number of an error means: its message, the line it is about, and the function that line is in."""

    message: str
    span: Span
    function: str = ""
    exact: str = ""
    """The message with places for the numbers that a context has beside the error; empty where there are none."""


Errors: TypeAlias = Sequence[Error]
"""What the numbers of errors mean, from one on."""

PROGRAM = "program"
"""The object that a program's entries lie in."""


@record
class Code:
    """A program as a back end has made it; all but the texts can be kept as bytes and run by another process."""

    backend: Backend
    target: Target
    objects: Mapping[str, bytes]
    symbols: Mapping[str, str]
    """The host function of each entry."""
    errors: Errors
    texts: Texts
    filled: Mapping[str, Sequence[int]] = field(default_factory=dict[str, Sequence[int]], kw_only=True)
    """The outputs of each entry that it surely writes whole, by position: what is made for them need not be cleared."""

    @property
    def object(self) -> bytes:
        """The object that its entries lie in."""
        return self.objects[PROGRAM]


class Line(NamedTuple):
    """A line of code, and the file and line of the author's that it was made for; nowhere is line 0."""

    text: str
    file: str = ""
    number: int = 0


@record
class Held:
    """Bytes of a function's memory that something holds from one of its statements to another."""

    name: str
    offset: int
    size: int
    since: int
    until: int
    span: Span


@record
class Memory:
    """The memory of one function that is not its caller's: how large it is, and who holds what of it.

    Every thread that runs the function has its own.
    """

    function: str
    size: int
    held: Sequence[Held]
    named: int = 0
    """How many bytes the tiles take that the function names, all at once."""


CALLED, COLUMN, SCALAR = "called", "column", "scalar"
"""The kinds of notes about single elements: of the machine's mathematical library, tiles of one column, and numbers."""


class Note(NamedTuple):
    """What was done with a line of the author's, or of the whole program: one word for it, and how or why."""

    kind: str
    text: str
    file: str = ""
    number: int = 0
    size: int = 0
    """How many bytes it is about."""


@record
class Anatomy:
    """What code is made of: its texts line by line, with the lines they were made for, its memory, and how it came."""

    texts: Mapping[str, Sequence[Line]] = field(default_factory=dict[str, Sequence[Line]])
    memory: Sequence[Memory] = ()
    notes: Sequence[Note] = ()


class Peak(NamedTuple):
    """The most of something that a machine does in a second: who does it, bytes or operations, and how many."""

    name: str
    unit: str
    most: float


THREADS, RANKS = "threads", "ranks"


class Reach(NamedTuple):
    """What turns of a parallel loop run side by side on, or dispatches of a host function: how many, and of what."""

    width: int
    noun: str = THREADS

    @property
    def spans_nests(self) -> bool:
        """Whether loops in each other are one grid."""
        return self.noun != THREADS

    def side(self, is_wide: bool) -> str:
        """Return where something runs."""
        return f"on up to {self}" if is_wide or self.noun == RANKS else f"on one {self.noun.removesuffix('s')}"

    def __str__(self) -> str:
        return f"{self.width} {self.noun}"


class Launched(NamedTuple):
    """A kernel that a device has run: when, in nanoseconds of the monotonic clock, and on which of its streams."""

    name: str
    begin: int
    end: int
    place: str


class Timeline(Protocol):
    """What a device has run, which is looked at later: asking waits for it."""

    @property
    def is_filling(self) -> bool:
        """Whether what was launched should be taken soon."""
        ...

    def begin(self) -> None:
        """Get ready for launches."""
        ...

    def taken(self) -> Iterable[Launched]:
        """Return what was launched since the last time, once it has run."""
        ...


class Entries(Protocol):
    """Code that this process can run."""

    code: Code

    def address(self, name: str, /) -> int | None:
        """Return where the host function of an entry lies, None where Python stands for it."""
        ...


@runtime_checkable
class StandIn(Entries, Protocol):
    """Code for whose host functions Python stands."""

    def run(self, name: str, args: Sequence[Any], /) -> tuple[Any, ...]:
        """Return what an entry returns for `args`, numbers and regions; tensors are written in place."""
        ...


@record
class Exported:
    """What a library of a program's own is linked from, and the processor's features that it takes."""

    objects: Sequence[bytes]
    features: Sequence[str]


class Backend(ABC):
    """One way to run programs; asking it anything but `target` and `compile` loads no compiler."""

    name: str
    stages: Sequence[str] = ()
    """The texts that its code comes with when it is made here, in order."""
    devices: Sequence[str] = ("cpu",)
    """The kinds of devices whose memory its programs take, as torch calls them."""
    is_kept = False
    """Whether its code is bytes that another process can run."""
    compiles_beside = False
    """Whether its compiler leaves Python alone, so that several programs are compiled at once in as many threads."""

    def objection(self) -> str:
        """Return why its programs cannot run on this machine, or nothing."""
        return ""

    def facts(self) -> Mapping[str, str]:
        """Return what this machine has for its programs, by what people call it; a compiler may be loaded for it."""
        return {}

    def target(self) -> Target:
        """Return this machine as something to make code for."""
        return None

    def named(self, target: str) -> Target:
        """Return something to make code for by its name, whatever this machine is; ValueError lists what there is."""
        raise ValueError(f"back end {self.name!r} makes code for this machine alone, and for no target {target!r}")

    def fingerprint(self) -> str:
        """Return a text that changes whenever `target` may."""
        return ""

    def toolchain(self) -> Sequence[str]:
        """Return the files that its compiler consists of, besides this package's own."""
        return ()

    def options(self, *, is_checked: bool = False) -> Options:
        """Return what the settings say now; programs that are checked report turns that race, where it can."""
        return None

    def begin(self) -> None:
        """Get ready for a compilation that is certain, in a thread, beside what comes before it."""
        return None

    @abstractmethod
    def compile(
        self,
        program: Program,
        entries: Sequence[str] | None = None,
        target: Target = None,
        options: Options = None,
        timed: Timed = nullcontext,
    ) -> Code:
        """Return a lowered program as code with a host function for each entry: for this machine, as settings say."""

    def anatomy(self, program: Program, entries: Sequence[str] | None = None, target: Target = None) -> Anatomy:
        """Return what a lowered program's code is made of, where that can be said: it is compiled once more."""
        return Anatomy()

    @abstractmethod
    def load(self, program: Program, code: Code) -> Entries:
        """Return code ready to run; ArtifactError says why not. Of the program its declarations are enough."""

    def elapsed(self, run: Callable[[], object]) -> float:
        """Return how many seconds a run of its code takes, until all that it started is done."""
        start = perf_counter_ns()
        run()
        return (perf_counter_ns() - start) / 1e9

    def peaks(self, threads: int, product: DataType | None) -> Sequence[Peak]:
        """Return what this machine does at most, where that is known: bytes, and operations on so many threads.

        A program that multiplies matrices says what their elements are.
        """
        return ()

    def reach(self, threads: int) -> Reach:
        """Return what parallel turns run on, where the processor has so many threads for them."""
        return Reach(threads)

    def stream(self, device: str) -> int | None:
        """Return the stream that programs for a device run on, None for the usual one or where there are none."""
        return None

    def release(self, device: str, stream: int | None) -> None:
        """Let a stream wait for what programs have started on a device; without one, wait for that here."""
        return None

    def rank_devices(self) -> Devices | None:
        """Return what ranks run on that reach into each other's memory; None where that is the host's, or none does."""
        return None

    def companions(self, code: Code) -> Mapping[str, bytes]:
        """Return the objects that running code takes besides its own: those it was kept with, where it was."""
        return {}

    def restored(
        self, target: Mapping[str, Any], objects: Mapping[str, bytes], symbols: Mapping[str, str], errors: Errors
    ) -> Code:
        """Return code that was kept; TypeError where a target is none of its own."""
        raise ArtifactError(f"this artifact is of back end {self.name!r}, which keeps none")

    def exported(self, code: Code) -> Exported:
        """Return what a C library is made from; ExportError says why there can be none."""
        raise ExportError(f"back end {self.name!r} makes no code that C could call")


_HOMES = {
    "cpu": "tilewright.backends.cpu.backend",
    "interpret": "tilewright.backends.interpreter",
    "cuda": "tilewright.backends.cuda.backend",
}
_backends: dict[str, Backend] = {}


def register(backend: Backend) -> None:
    """Let a back end be found by its name."""
    _backends[backend.name] = backend


def backend_names() -> list[str]:
    """Return the names of all back ends, ours first."""
    return list(dict.fromkeys([*_HOMES, *_backends]))


def takes(backend: Backend, device: str) -> bool:
    """Return whether a back end's programs take memory of a device, such as `cpu` or `cuda:1`."""
    return device.partition(":")[0] in backend.devices


def taken_devices() -> list[str]:
    """Return the kinds of devices whose memory some back end takes, as torch calls them."""
    return list(dict.fromkeys(kind for backend in map(find, backend_names()) for kind in backend.devices))


def serving(device: str) -> Backend | None:
    """Return the back end that programs for a device's memory are made by: the first that takes it, or None."""
    return next((backend for backend in map(find, backend_names()) if takes(backend, device)), None)


def find(name: str) -> Backend:
    """Return a back end by its name, loading it where nobody has yet; KeyError for a name that none has."""
    if name not in _backends:
        with undivided():  # a fork would leave the child with modules that are half imported
            register(import_module(_HOMES[name]).BACKEND)
    return _backends[name]
