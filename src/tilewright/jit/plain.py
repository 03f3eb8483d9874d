"""The plain path: calls of one kernel found and launched by generated Python, where machine code cannot be emitted.

It takes torch tensors that lie in memory as programs want them, and leaves everything else to the session. One function
reads what a program is found by and looks it up; another per program and layout checks that nothing the program was
compiled from has changed, and runs it. Arguments are `a0`, `a1` and so on there, and their addresses `p0`, `p1`.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tilewright import settings
from tilewright.backends.cpu.dispatch import Probe
from tilewright.backends.cpu.threads import parallel_address
from tilewright.core.types import TensorType
from tilewright.frontend.signature import Given, Known, TensorMeta
from tilewright.frontend.worth import MISSING
from tilewright.jit.calls import Call
from tilewright.jit.fast import as_passed, surroundings
from tilewright.jit.guards import Guards, version_of
from tilewright.jit.tables import environment

if TYPE_CHECKING:
    from tilewright.jit.compiled import Compiled

_TENSOR = (
    "a{0}.__class__, a{0}.dtype, a{0}.shape, a{0}.stride(), a{0}.storage_offset(), a{0}.is_cpu, a{0}.is_neg(), "
    "a{0}.requires_grad, a{0}.untyped_storage().nbytes()"
)
_NUMBER = "a{0}.__class__, a{0}, a{0}.__class__ is float and not a{0} and str(a{0})"  # 0.0 and -0.0 are equal
_CALL = """
def call(*args, **named):
    if named or len(args) != {count}:
        return slow(*args, **named)
    {arguments}, = args
    try:
        run = find(({fields},))
{addresses}
    except errors:
        run = None
    return slow(*args) if run is None else run({pointers}args)
"""
_RUN = """
def run({pointers}args):
    try:
        holds = {tests}
    except errors:
        holds = False
    if not holds:
        return slow(*args)
    words = template(kept)
{placed}
    context = contexts(parallel, 0, 0)
    code(words, context)
    if context[1] or context[2]:
        return finish(context[1], context[2])
    hits[0] += 1
"""
_ERRORS = (AttributeError, LookupError, NotImplementedError, RuntimeError, TypeError, ValueError)
"""What reading an argument or a value that is not what it was may raise."""


class PlainPath:
    """The programs of one kernel that generated Python reaches."""

    def __init__(self, names: Sequence[str], slow: Callable[..., Any]) -> None:
        self._names = names
        self._slow = slow
        self._table: dict[tuple[Any, ...], Callable[..., Any]] = {}
        self._hits = [0]
        self._surroundings = surroundings()
        self._call: Callable[..., Any] | None = None

    @property
    def hits(self) -> int:
        """How many calls it has taken."""
        return self._hits[0]

    def is_current(self) -> bool:
        """Return whether the settings are those it was made under."""
        return self._surroundings == surroundings()

    def add(self, call: Call, compiled: Compiled) -> bool:
        """Let calls with the arguments of `call` find a program; return whether any do."""
        given = [as_passed(call, name) for name in self._names]
        values = [call.values[name] for name in self._names]
        target = compiled.target(list(zip(self._names, given, strict=True)))
        written = [name in compiled.written for name in self._names]
        if target is None or not all(map(_is_regular, values, given, written)):
            return self._call is not None
        if self._call is None:
            self._call = self._dispatcher(given)
        held = {f"a{number}": value for number, value in enumerate(values)}
        key = eval(f"({', '.join(_fields(given))},)", {}, held)
        self._table[key] = self._launcher(given, written, values, compiled, target.scalars)
        return True

    def builtin(self) -> Any:
        """Return what a kernel's calls go to first, as a class holds it: it takes the arguments alone."""
        assert self._call is not None
        return staticmethod(self._call)

    def _dispatcher(self, given: Sequence[Given]) -> Callable[..., Any]:
        places = _tensors(given)
        text = _CALL.format(
            count=len(given),
            arguments=", ".join(f"a{number}" for number in range(len(given))),
            fields=", ".join(_fields(given)),
            pointers="".join(f"p{number}, " for number in places),
            addresses="\n".join(f"        p{number} = a{number}.data_ptr()" for number in places),
        )
        return _made(text, "call", find=self._table.get, slow=self._slow, errors=_ERRORS)

    def _launcher(
        self, given: Sequence[Given], written: Sequence[bool], values: Sequence[Any], compiled: Compiled,
        scalars: Sequence[tuple[int, int]],
    ) -> Callable[..., Any]:  # fmt: skip
        """Return the function that runs one program on the addresses of its tensors."""
        native, (entry,) = compiled.program.native, compiled.program.program.entries
        assert native is not None
        tensors = _tensors(given)
        words, places = _words(given, values, scalars)
        room = sum(1 + 2 * len(t.shape) if isinstance(t, TensorType) else 1 for t in entry.return_types)
        array = ctypes.c_int64 * (len(words) + room)
        tests, held = _guards(compiled.guards)
        tests += _memory_tests(tensors, values, written)
        text = _RUN.format(
            pointers="".join(f"p{number}, " for number in tensors),
            tests=" and ".join(tests),
            placed="\n".join(f"    words[{places[number]}] = p{number}" for number in tensors),
        )
        return _made(
            text, "run", **held, slow=self._slow, errors=_ERRORS, template=array.from_buffer_copy,
            kept=bytes(array(*words)), contexts=ctypes.c_int64 * 3, parallel=parallel_address(settings.num_threads()),
            code=native.calls[entry.name], hits=self._hits, finish=partial(native.finish, entry.name),
        )  # fmt: skip


def _made(text: str, name: str, **held: Any) -> Callable[..., Any]:
    names = dict(held)
    exec(text, names)  # noqa: S102 - the texts above: nothing in them is anybody else's
    return names[name]


def _tensors(given: Sequence[Given]) -> list[int]:
    return [number for number, one in enumerate(given) if isinstance(one, TensorMeta)]


def _fields(given: Sequence[Given]) -> Iterator[str]:
    """Yield the expressions that each argument is looked up by."""
    for number, one in enumerate(given):
        yield (_TENSOR if isinstance(one, TensorMeta) else _NUMBER).format(number)


def _is_regular(value: Any, given: Given, is_written: bool) -> bool:
    """Return whether a program can address an argument as it lies in memory, and may write it."""
    if not isinstance(given, TensorMeta):
        return True
    torch = sys.modules.get("torch")
    if torch is None or type(value) is not torch.Tensor:
        return False
    shape, steps = tuple(value.shape), value.stride()
    if shape and shape[-1] > 1 and steps[-1] != 1:
        return False
    return not is_written or (not value.requires_grad and _is_spread(shape, steps))


def _is_spread(shape: Sequence[int], steps: Sequence[int]) -> bool:
    """Return whether surely no two elements share memory, as the dispatcher has it."""
    axes = sorted((step, extent) for extent, step in zip(shape, steps, strict=True) if extent > 1)
    reach = 0
    for step, extent in axes:
        if reach >= step:
            return False
        reach += (extent - 1) * step
    return True


def _words(
    given: Sequence[Given], values: Sequence[Any], scalars: Sequence[tuple[int, int]]
) -> tuple[list[int], dict[int, int]]:
    """Return the words of a launch but for the addresses, and where those go."""
    words: list[int] = []
    places: dict[int, int] = {}
    for number, (one, value) in enumerate(zip(given, values, strict=True)):
        if isinstance(one, TensorMeta):
            places[number] = len(words)
            rank = len(one.shape)
            words += [0, *value.shape, *list(value.stride())[: max(rank - 1, 0)], *[1] * bool(rank)]
        elif isinstance(one, Known) and one.value is not None:
            words.append(0)
    for place, word in scalars:
        words[place] = word
    return words, places


def _memory_tests(tensors: Sequence[int], values: Sequence[Any], written: Sequence[bool]) -> list[str]:
    """Return the tests that tensors are aligned, and that none that is written shares memory with another."""
    reach = {number: _reach(values[number]) for number in tensors}
    aligned = [f"not p{number} % {values[number].element_size()}" for number in tensors]
    apart = [
        f"not (p{out} < p{other} + {reach[other]} and p{other} < p{out} + {reach[out]})"
        for out in tensors if written[out]
        for other in tensors if other != out
    ]  # fmt: skip
    return aligned + apart


def _reach(tensor: Any) -> int:
    """Return how many bytes a tensor's elements lie in."""
    if tensor.numel() == 0:
        return 0
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    return (sum((extent - 1) * stride for extent, stride in steps) + 1) * tensor.element_size()


def _guards(guards: Guards | None) -> tuple[list[str], dict[str, Any]]:
    """Return the tests that nothing a program was compiled from has changed, and what they name."""
    assert guards is not None
    tests: list[str] = []
    held: dict[str, Any] = {}

    def named(value: Any) -> str:
        held[name := f"v{len(held)}"] = value
        return name

    around = [(environment(), {os.fsencode(n): environment().get(os.fsencode(n), MISSING) for n in settings.NAMES})]
    for holder, items in (*guards.watched, *around):
        place = named(holder)
        for key, value in items.items():
            tests.append(f"{key!r} not in {place}" if value is MISSING else f"{place}[{key!r}] is {named(value)}")
    tests += [f"{named(owner)}.{name} is {named(value)}" for owner, name, value in guards.fields]
    for holder, version in guards.versions:
        tests.append(f"{named(version_of)}({named(holder)}) == {version}")
    for kind, owner, key, value in guards.probes:
        access = {Probe.ATTRIBUTE: "{0}.{1}", Probe.ITEM: "{0}[{1!r}]", Probe.SIZE: "len({0})"}[Probe(kind)]
        test = access.format(named(owner), key)
        tests.append(f"{test} == {value}" if kind == Probe.SIZE else f"{test} is {named(value)}")
    if settings.follows_torch():
        tests.append(f"{named(sys.modules['torch'].get_num_threads)}() == {settings.num_threads()}")
    return tests, held
