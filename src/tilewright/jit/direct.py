"""Direct calls: the entries of compiled programs as the native dispatcher reaches them.

The same machine code takes them as takes a kernel's calls. A compiled program reads nothing that could change, so there
is nothing to guard but its arguments: element types, ranks, fixed extents and numbers are the key, extents of one name
must agree, and whatever is written is looked at as for kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright import settings
from tilewright.backends.host import HostProgram, scalar_word
from tilewright.call.guards import Guards
from tilewright.call.native import Native, is_available, surroundings
from tilewright.call.styles import Meaning, Styles, missed
from tilewright.call.tables import Target, key_words
from tilewright.call.words import LAUNCH_WORDS, MAX_PARAMS, RESULT_WORDS
from tilewright.core.enums import ParamDirection
from tilewright.core.expr import Symbol
from tilewright.core.program import Function
from tilewright.core.types import ScalarType, TensorType
from tilewright.frontend.outputs import returned_parameters
from tilewright.frontend.signature import Given, Known, TensorMeta
from tilewright.programs.shortcut import Learned

LIMIT = 256
"""How many different numbers one entry's calls may bring before Python takes the rest."""


class Direct:
    """One entry's calls; `slow` takes those with arguments that were not added, and written in other ways."""

    def __init__(
        self, native: HostProgram, entry: Function, directions: Sequence[ParamDirection], slow: Callable[..., Any]
    ) -> None:
        self._program = native
        self._entry = entry
        self._names = [param.name_hint for param in entry.params]
        self._written = sum(1 << k for k, d in enumerate(directions) if d is not ParamDirection.In)
        self._styles = Styles(_without_defaults, slow)
        may_be_named = "config" not in self._names  # which has a meaning of its own
        names = self._names if may_be_named else ()
        self._native = Native(len(entry.params), self._styles.call, self._failed, names=names)
        self._returning = Native(len(entry.params), missed, self._failed)
        self._returns = _returned(entry)
        self._may_be_named = may_be_named
        self._surroundings = surroundings()
        self._known: set[tuple[object, ...]] = set()

    def is_current(self) -> bool:
        """Return whether the settings are those it was made under."""
        return self._surroundings == surroundings()

    def add(self, call: Learned) -> bool:
        """Take calls like one; return whether they are new and can be taken."""
        given, values = call.arguments.given, call.arguments.values
        target = self._target(given, values) if len(self._known) < LIMIT else None
        style = () if call.is_whole else (call.positional, *call.named)
        if target is None or (known := (style, *map(type, given if style else ()), *target.masked)) in self._known:
            return False
        if not style:
            self._native.put(len(self._known), target, self._written)
        elif not self._add_returning(style, call, target):
            return False
        self._known.add(known)
        return True

    def _add_returning(self, style: tuple[object, ...], call: Learned, target: Target) -> bool:
        """Take calls that leave the outputs out, where it is known what they are returned."""
        outputs = [self._names[k] for k, d in enumerate(self._entry.param_directions) if d is ParamDirection.Out]
        if not self._may_be_named or self._returns is None or not {*outputs} <= {*self._returns}:
            return False
        values = dict(zip(self._names, call.arguments.given, strict=True))
        inputs = [name for name in self._names if name not in outputs]
        names = [*inputs[: call.positional], *call.named]
        self._returning.put(len(self._known), target, self._written)
        meaning = Meaning(names, outputs, values, self._returns)
        self._styles.add(style, [values[name] for name in names], meaning, self._returning.builtin())
        return True

    def builtin(self) -> Callable[..., Any]:
        """Return what to call; ImportError where its code was not made before and there is no LLVM."""
        return self._native.builtin()

    def _target(self, given: Sequence[Any], values: Sequence[Any]) -> Target | None:
        described: list[Given] = []
        scalars: list[tuple[int, int]] = []
        axes: dict[str, list[int]] = {}
        at = launched = 0
        for param, passed, value in zip(self._entry.params, given, values, strict=True):
            if isinstance(param.type, TensorType):
                described.append(TensorMeta(tuple(value.data.shape), param.type.dtype))
                for axis, extent in enumerate(param.type.shape):
                    if isinstance(extent, Symbol):
                        axes.setdefault(extent.name, []).append(at + 1 + axis)
                at += 1 + len(param.type.shape)
                launched += 1 + 2 * len(param.type.shape)
            else:
                assert isinstance(param.type, ScalarType)
                described.append(Known(passed))
                scalars.append((launched, scalar_word(param.type.dtype, value)))
                at += 2
                launched += 1
        key = key_words(described)
        if key is None:
            return None
        left_out = {place for places in axes.values() for place in places}
        mask = [0 if place in left_out else -1 for place in range(len(key))]
        same = [(places[0], other) for places in axes.values() for other in places[1:]]
        code = self._program.address(self._entry.name)
        returns = [self._names.index(name) for name in given_back(self._entry, self._returns)]
        return Target(key, mask, code, Guards(), scalars, same, [self._program], returns)

    def _failed(self, number: int, buffers: int, _: int) -> None:
        """Raise what the program did wrong, after freeing what it had made."""
        self._program.finish(self._entry.name, number, buffers)


def _without_defaults() -> None:
    """Stand for a function that has a default for nothing."""


def _returned(entry: Function) -> tuple[str, ...] | None:
    """Return the parameters that an entry gives back, whatever it is called on; None where that is not known."""
    if entry.return_types and not entry.body:
        return None  # of a loaded program only the declaration is there
    found = returned_parameters(entry)
    return None if found is None else tuple(entry.params[k].name_hint for k in found)


def direct(
    native: HostProgram, entry: Function, directions: Sequence[ParamDirection], slow: Callable[..., Any]
) -> Direct | None:
    """Return the direct calls of an entry, None where the dispatcher cannot take any."""
    if settings.native_dispatch() and is_available() and fits(entry, len(entry.params), _returned(entry)):
        return Direct(native, entry, directions, slow)
    return None


def given_back(entry: Function, returns: Sequence[str] | None) -> Sequence[str]:
    """Return the parameters that a call with every argument gives back: none where it is for its outputs."""
    has_output = any(d is ParamDirection.Out for d in entry.param_directions)
    return () if has_output or returns is None or not entry.return_types else returns


def fits(entry: Function, count: int, returns: Sequence[str] | None) -> bool:
    """Return whether the dispatcher can call an entry with so many arguments, which returns some of them.

    It gives back arguments alone, its tables have so much room, and it takes extents that are numbers or names.
    """
    types = [*(p.type for p in entry.params), *entry.return_types]
    if count > MAX_PARAMS or not all(isinstance(p.type, (TensorType, ScalarType)) for p in entry.params):
        return False
    words = sum(1 + 2 * len(t.shape) if isinstance(t, TensorType) else 1 for t in types)
    extents = [e for p in entry.params if isinstance(p.type, TensorType) for e in p.type.shape]
    has_output = any(d is ParamDirection.Out for d in entry.param_directions)
    is_plain = all(isinstance(extent, (int, Symbol)) for extent in extents)
    is_given = has_output or returns is not None or not entry.return_types
    return words <= LAUNCH_WORDS + RESULT_WORDS and is_plain and is_given
