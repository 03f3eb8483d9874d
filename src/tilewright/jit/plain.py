"""The plain path: calls of one kernel found and launched by generated Python, where machine code cannot be emitted.

It makes the same decisions as the dispatcher over torch tensors, and leaves the same calls to the session. One
function, with the kernel's own parameters, reads what a program is found by and looks it up; another per program checks
that nothing it was compiled from has changed, and runs it.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tilewright import settings
from tilewright.backends.cpu.dispatch import LAUNCH_WORDS, RESULT_WORDS, Probe
from tilewright.backends.cpu.threads import parallel_address
from tilewright.frontend.signature import Given, Known, TensorMeta
from tilewright.frontend.worth import MISSING
from tilewright.jit.calls import Call
from tilewright.jit.fast import as_passed, surroundings
from tilewright.jit.guards import Guards, version_of
from tilewright.jit.tables import environment

if TYPE_CHECKING:
    from tilewright.jit.compiled import Compiled

_TENSOR = "{0}.__class__, {0}.dtype, {0}.shape, {0}.stride(), {0}.is_cpu, {0}.is_neg()"
_WRITTEN = _TENSOR + ", {0}.requires_grad"
_NUMBER = "{0}.__class__, {0}"
_CALL = """
def call({parameters}, *more, **named):
    if {last} is missing or more or named:
        given = {{name: value for name, value in zip(names, ({names},)) if value is not missing}}
        return slow(*given.values(), *more) if more else slow(**given, **named)
    try:
        run = find(({fields},))
    except errors:
        return slow({names})
    if run is None{zeros}:
        return slow({names})
    return run({pointers}{names})
"""
_RUN = """
def run({pointers}{names}):
    try:
        if not ({guards}):
            return slow({names})
    except errors:
        return slow({names})
    words = template(kept)
{placed}
    context = contexts(parallel, 0, 0)
    code(words, context)
    if context[1] or context[2]:
        return finish(context[1], context[2])
    hits[0] += 1
"""
_ERRORS = (AttributeError, LookupError, RuntimeError, TypeError, ValueError)
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
        """Let calls with the arguments of `call` find a program; return whether they can."""
        given = {name: as_passed(call, name) for name in call.described}
        values = [call.values[name] for name in self._names]
        target = compiled.target(list(given.items()))
        torch = sys.modules.get("torch")
        tensors = [v for v, one in zip(values, given.values(), strict=True) if isinstance(one, TensorMeta)]
        if target is None or torch is None or any(type(value) is not torch.Tensor for value in tensors):
            return self._call is not None
        written = compiled.written
        if self._call is None:
            self._call = self._dispatcher(given, written)
        fields = [_fields(name, one, name in written) for name, one in given.items()]
        key = eval(f"({', '.join(fields)},)", {}, dict(call.values))
        self._table[key] = self._launcher(given, written, values, compiled, target.scalars)
        return True

    def builtin(self) -> Any:
        """Return what a kernel's calls go to first, as a class holds it: it takes the arguments alone."""
        assert self._call is not None
        return staticmethod(self._call)

    def _dispatcher(self, given: Mapping[str, Given], written: set[str]) -> Callable[..., Any]:
        fields = ", ".join(_fields(name, one, name in written) for name, one in given.items())
        floats = [name for name, one in given.items() if isinstance(one, Known) and type(one.value) is float]
        text = _CALL.format(
            names=", ".join(self._names),
            parameters=", ".join(f"{name}=missing" for name in self._names),
            last=self._names[-1],
            fields=fields,
            zeros="".join(f" or not {name}" for name in floats),  # 0.0 and -0.0 are equal, and other programs
            pointers="".join(f"{name}.data_ptr(), " for name, one in given.items() if isinstance(one, TensorMeta)),
        )
        names = tuple(self._names)
        return _made(text, "call", find=self._table.get, slow=self._slow, errors=_ERRORS, missing=MISSING, names=names)

    def _launcher(
        self, given: Mapping[str, Given], written: set[str], values: Sequence[Any], compiled: Compiled,
        scalars: Sequence[tuple[int, int]],
    ) -> Callable[..., Any]:  # fmt: skip
        """Return the function that runs one program on the addresses of its tensors."""
        tensors = [name for name, one in given.items() if isinstance(one, TensorMeta)]
        words, places = _words(given, dict(zip(given, values, strict=True)), scalars)
        reach = {name: _reach(value) for name, value in zip(given, values, strict=True) if name in tensors}
        tests, held = _guards(compiled.guards)
        tests += [
            f"not (p_{out} < p_{other} + {reach[other]} and p_{other} < p_{out} + {reach[out]})"
            for out in tensors if out in written
            for other in tensors if other != out
        ]  # fmt: skip
        native, (entry,) = compiled.program.native, compiled.program.program.entries
        assert native is not None
        array = ctypes.c_int64 * len(words)
        text = _RUN.format(
            names=", ".join(self._names),
            pointers="".join(f"p_{name}, " for name in tensors),
            guards=" and ".join(tests),
            placed="\n".join(f"    words[{places[name]}] = p_{name}" for name in tensors),
        )
        code = native.calls[entry.name]
        return _made(
            text, "run", **held, slow=self._slow, errors=_ERRORS, template=array.from_buffer_copy,
            kept=bytes(array(*words)), contexts=ctypes.c_int64 * 3, parallel=parallel_address(settings.num_threads()),
            code=code, hits=self._hits, finish=partial(native.finish, entry.name),
        )  # fmt: skip


def _made(text: str, name: str, **held: Any) -> Callable[..., Any]:
    names = dict(held)
    exec(text, names)  # noqa: S102 - the text above, with parameter names of the kernel's own
    return names[name]


def _fields(name: str, given: Given, is_written: bool) -> str:
    """Return the expressions that an argument is looked up by."""
    if isinstance(given, TensorMeta):
        return (_WRITTEN if is_written else _TENSOR).format(name)
    return _NUMBER.format(name)


def _words(
    given: Mapping[str, Given], values: Mapping[str, Any], scalars: Sequence[tuple[int, int]]
) -> tuple[list[int], dict[str, int]]:
    """Return the words of a launch but for the addresses, and where those go."""
    words: list[int] = []
    places: dict[str, int] = {}
    for name, one in given.items():
        if isinstance(one, TensorMeta):
            places[name] = len(words)
            rank = len(one.shape)
            words += [0, *values[name].shape, *list(values[name].stride())[: rank - 1], *[1] * bool(rank)]
        elif isinstance(one, Known) and one.value is not None:
            words.append(0)
    for place, value in scalars:
        words[place] = value
    return words + [0] * min(RESULT_WORDS, LAUNCH_WORDS), places


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
    return tests or ["True"], held
