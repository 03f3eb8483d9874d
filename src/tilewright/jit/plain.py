"""The plain path: calls of one kernel found and launched by generated Python, where machine code cannot be emitted.

It takes torch tensors that lie in memory as programs want them, and leaves everything else to the session. Whether a
call is like the last one torch's own guards tell, at a fifth of what reading its tensors costs; other calls are looked
up by everything a program is found by. A function per program and layout then checks that nothing the program was
compiled from has changed, and runs it. Arguments are `a0`, `a1` and so on there, and their addresses `p0`, `p1`.
"""

from __future__ import annotations

import ctypes
import math
import os
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias

from tilewright import settings
from tilewright.call.generated import arguments, made, result
from tilewright.call.guards import Guards, version_of
from tilewright.call.tables import Target, environment
from tilewright.call.torch_state import is_traced
from tilewright.call.words import RELEASE_BYTES, Probe
from tilewright.core.types import TensorType
from tilewright.frontend.kernels import Kernel
from tilewright.frontend.signature import Given, Known, TensorMeta
from tilewright.frontend.value_keys import MISSING
from tilewright.jit.calls import Call
from tilewright.jit.fast import Path, as_passed
from tilewright.native.context import context_words
from tilewright.native.interrupts import look_address
from tilewright.native.threads import parallel_address

if TYPE_CHECKING:
    from tilewright.jit.compiled import Compiled

_TENSOR = "a{0}.__class__, a{0}.dtype, a{0}.shape, a{0}.stride(), a{0}.is_cpu, keys(a{0}).raw_repr()"
_NUMBER = "a{0}.__class__, a{0}, a{0}.__class__ is float and not a{0} and str(a{0})"  # 0.0 and -0.0 are equal
_CALL = """
def call({optional}, /, *more, **named):
    if named or more or {last} is missed:
        return slow(*(a for a in ({arguments},) if a is not missed), *more, **named)
    is_alike, launch = recent[0]
    found = launch({arguments}) if is_alike({tensors}) else missed
    if found is missed and (found := look_up({arguments})) is missed:
        return slow({arguments})
    return found

def look_up({arguments}):
    try:
        found = find(({fields},))
    except errors:
        return missed
    if is_traced() or (is_recording() and any(a.requires_grad for a in ({tensors},))):
        return missed
    recent[0] = found
    return found[1]({arguments})
"""
_LAUNCH = """
def launch({arguments}):
    try:
{addresses}
        holds = {tests}
    except errors:
        holds = False
    if not holds:
        return missed
    try:
        room, words, context = held = rooms.pop()
    except LookupError:
        room, words, context = held = new_room()
{placed}
    code(words, context)
    if room[1] or room[2]:
        return finish(room[1], room[2])
    rooms.append(held)
    hits[0] += 1
    return {result}
"""
_ERRORS = (AttributeError, LookupError, NotImplementedError, RuntimeError, TypeError, ValueError)
"""What reading an argument or a value that is not what it was may raise."""

_Found: TypeAlias = tuple[Callable[..., bool], Callable[..., Any]]
"""A test of whether tensors are like those a program is for, and the function that launches it."""


class PlainPath(Path):
    """The programs of one kernel that generated Python reaches."""

    def __init__(self, kernel: Kernel, slow: Callable[..., Any]) -> None:
        super().__init__(slow)
        self._names = [parameter.name for parameter in kernel.parameters]
        self._table: dict[tuple[Any, ...], _Found] = {}
        self._recent: list[_Found] = []
        """The program that was run last."""
        self._hits = [0]
        self._call: Callable[..., Any] | None = None
        self._tensors: Sequence[int] = ()
        """Which of the arguments are tensors, the same ones in all calls that it takes."""

    @property
    def hits(self) -> int:
        """How many calls it has taken."""
        return self._hits[0]

    def add(self, call: Call, compiled: Compiled) -> bool:
        """Let calls with the arguments of `call` find a program; return whether any do."""
        given = [as_passed(call, name) for name in self._names]
        values = [call.values[name] for name in self._names]
        written = [name in compiled.written for name in self._names]
        tensors = _tensors(given)
        if not all(map(_is_regular, values, given, written)) or (self._call is not None and self._tensors != tensors):
            return self._call is not None
        target = self._target(compiled, list(zip(self._names, given, strict=True)))
        if target is None:
            return self._call is not None
        if self._call is None:
            self._call, self._tensors = self._dispatcher(given), tensors
        held = {f"a{number}": value for number, value in enumerate(values)}
        key = eval(f"({', '.join(_fields(given))},)", _torch_names(), held)
        self._table[key] = found = self._launcher(given, written, values, compiled, target)
        self._recent[:] = [found]
        return True

    def entrance(self) -> Callable[..., Any]:
        """Return the function that takes calls; there is one once something was added."""
        assert self._call is not None
        return self._call

    def _dispatcher(self, given: Sequence[Given]) -> Callable[..., Any]:
        text = _CALL.format(
            arguments=arguments(len(given)), optional=arguments(len(given), "=missed"), last=f"a{len(given) - 1}",
            fields=", ".join(_fields(given)), tensors=", ".join(f"a{number}" for number in _tensors(given)),
        )  # fmt: skip
        return made(
            text, "call", recent=self._recent, find=self._table.__getitem__, slow=self._slow,
            errors=_ERRORS, is_traced=is_traced, **_torch_names(),
        )  # fmt: skip

    def _launcher(
        self, given: Sequence[Given], written: Sequence[bool], values: Sequence[Any], compiled: Compiled,
        target: Target,
    ) -> _Found:  # fmt: skip
        """Return a test of whether tensors are like those of this call, and the function that launches the program."""
        native, (entry,) = compiled.program.native, compiled.program.program.entries
        assert native is not None
        tensors = _tensors(given)
        words, places = _words(given, values, target.scalars)
        results = sum(1 + 2 * len(t.shape) if isinstance(t, TensorType) else 1 for t in entry.return_types)
        head = context_words(parallel_address(settings.num_threads()), look_address())
        tests, held = _guards(target.guards)
        tests = [*_number_tests(given, values), *tests, *_memory_tests(tensors, values, written)]
        text = _LAUNCH.format(
            arguments=arguments(len(given)),
            addresses="\n".join(f"        p{number} = a{number}.data_ptr()" for number in tensors),
            tests=" and ".join(tests),
            result=result(f"a{number}" for number in target.returns),
            placed="\n".join(f"    room[{len(head) + places[number]}] = p{number}" for number in tensors),
        )
        kind = ctypes.PYFUNCTYPE if sum(values[k].nbytes for k in tensors) < RELEASE_BYTES else ctypes.CFUNCTYPE
        code: Any = kind(None)(native.address(entry.name))
        code.keep = compiled
        launch = made(
            text, "launch", **held, errors=_ERRORS, rooms=[], pack=struct.pack,
            new_room=partial(_room, head, [*words, *[0] * results]),
            code=code, hits=self._hits, finish=partial(native.finish, entry.name),
        )  # fmt: skip
        return _check([values[k] for k in tensors]), launch


def _room(head: Sequence[int], words: Sequence[int]) -> tuple[Any, Any, Any]:
    """Return memory for one call at a time, and where in it the words of its arguments and its context lie."""
    array = (ctypes.c_int64 * (len(head) + len(words)))(*head, *words)
    return array, ctypes.byref(array, 8 * len(head)), ctypes.byref(array)


def _number_tests(given: Sequence[Given], values: Sequence[Any]) -> Iterator[str]:
    """Yield the tests that numbers are the very ones that the program was made for."""
    for number, (one, value) in enumerate(zip(given, values, strict=True)):
        if isinstance(one, TensorMeta):
            continue
        if type(value) in (bool, type(None)):
            yield f"a{number} is {value}"
        elif type(value) is int or (value and math.isfinite(value)):
            yield f"a{number}.__class__ is {type(value).__name__} and a{number} == {value!r}"
        else:
            yield f"a{number}.__class__ is float and pack('d', a{number}) == {struct.pack('d', value)!r}"


def _check(tensors: Sequence[Any]) -> Callable[..., bool]:
    """Return torch's own guards for some tensors; where there are none, nothing is like anything.

    Of tensors that require grad they do not tell whether gradients are recorded.
    """
    guards = _torch_guards()
    if guards is None or not tensors or any(tensor.requires_grad for tensor in tensors):
        return lambda *others: not others and not tensors
    return guards(*tensors, dynamic_dims_sizes=None, dynamic_dims_strides=None).check


@cache
def _torch_guards() -> Any:
    """Return the guards that torch compiles with, None where they do not tell apart what has to be."""
    try:
        torch = sys.modules["torch"]
        guards = torch._C._dynamo.guards.TensorGuards
        with torch.inference_mode(False), torch.enable_grad():
            return guards if _tells_apart(torch, guards) else None
    except (AttributeError, LookupError, RuntimeError, TypeError):
        return None


def _tells_apart(torch: Any, guards: Any) -> bool:
    tensor = torch.zeros(2, 3)
    check = guards(tensor, dynamic_dims_sizes=None, dynamic_dims_strides=None).check
    odd = [torch.zeros(3, 2), torch.zeros(3, 2).t(), tensor.double(), tensor.to("meta"), torch._neg_view(tensor)]
    odd += [tensor.to_sparse(), torch.nn.Parameter(tensor), tensor.clone().requires_grad_(), 1, None]
    return check(torch.ones(2, 3)) and not any(map(check, odd))


def _torch_names() -> dict[str, Any]:
    """Return what generated code calls of torch."""
    torch: Any = sys.modules.get("torch")
    return {} if torch is None else {"keys": torch._C._dispatch_keys, "is_recording": torch.is_grad_enabled}


def _tensors(given: Sequence[Given]) -> list[int]:
    return [number for number, one in enumerate(given) if isinstance(one, TensorMeta)]


def _fields(given: Sequence[Given]) -> Iterator[str]:
    """Yield the expressions that each argument is looked up by."""
    for number, one in enumerate(given):
        yield (_TENSOR if isinstance(one, TensorMeta) else _NUMBER).format(number)


def _is_regular(value: Any, given: Given, is_written: bool) -> bool:
    """Return whether a program can address an argument as it lies in memory, and may write it."""
    if not isinstance(given, TensorMeta):
        return type(value) in (int, float, bool, type(None))
    torch = sys.modules.get("torch")
    if torch is None or type(value) is not torch.Tensor:
        return False
    shape, steps = tuple(value.shape), value.stride()
    if shape and shape[-1] > 1 and steps[-1] != 1:
        return False
    return not is_written or _is_spread(shape, steps)


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


def _memory_tests(tensors: Sequence[int], values: Sequence[Any], written: Sequence[bool]) -> Iterator[str]:
    """Yield the tests that tensors are aligned and all there, and that what is written is no other's."""
    reach = {number: _reach(values[number]) for number in tensors}
    sizes = {number: values[number].element_size() for number in tensors}
    for size in sorted({*sizes.values()}):
        yield f"not ({' | '.join(f'p{number}' for number in tensors if sizes[number] == size)}) & {size - 1}"
    for number in tensors:
        if needed := reach[number]:
            end = f"({needed} + s * {sizes[number]} if (s := a{number}.storage_offset()) else {needed})"
            yield f"len(a{number}.untyped_storage()) >= {end}"
    for out in (number for number in tensors if written[number]):
        for other in tensors:
            if other != out and not (written[other] and other < out):
                yield f"not {-reach[out]} < p{out} - p{other} < {reach[other]}"


def _reach(tensor: Any) -> int:
    """Return how many bytes a tensor's elements lie in."""
    if tensor.numel() == 0:
        return 0
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    return (sum((extent - 1) * stride for extent, stride in steps) + 1) * tensor.element_size()


def _guards(guards: Guards) -> tuple[list[str], dict[str, Any]]:
    """Return the tests that nothing a program was compiled from has changed, and what they name."""
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
