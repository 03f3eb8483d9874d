"""Call styles: calls that leave outputs out or name their arguments, as calls with every argument in its place.

How a call is written (so many arguments by position, then these names) and what its arguments are decide together what
the call means: which parameters it gives, which outputs it wants made, and what they look like. The session finds that
out the first time, and generated Python does the same from then on: it makes the outputs, has a dispatcher find and run
a program for all the arguments, and returns the results. Whether a program may still be run is the dispatcher's to say;
where it does not, the call goes to the session as it was written.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import FunctionType
from typing import Any, TypeAlias

from tilewright.arrays import np
from tilewright.call.generated import MISSED, arguments, made, result
from tilewright.records import record

LIMIT = 1024
"""How many kinds of arguments calls of one style are remembered for."""

Style: TypeAlias = tuple[Any, ...]
"""How many arguments a call gives by position, and the names of the others in order."""

_CALL = """
def call(*args, **named):
    style = styles.get((len(args), *named))
    if style is None:
        return slow(*args, **named)
    found = style(*args, *named.values())
    return slow(*args, **named) if found is missed else found
"""
_STYLE = """
def style({arguments}):
    try:
        run = find(({fields}))
    except errors:
        return missed
    return run({arguments})
"""
_RUN = """
def run({arguments}):
    if function.__defaults__ is not defaults:
        return missed
{outputs}
    return missed if attempt({placed}) is missed else {result}
"""


def missed(*args: Any, **named: Any) -> Any:
    """Take no call."""
    return MISSED


@record
class Meaning:
    """What a call means: the parameter each argument is for, in the order they were written, and what comes back."""

    names: Sequence[str]
    made: Sequence[str]
    """The outputs it leaves out."""
    values: Mapping[str, Any]
    """All arguments by parameter, with defaults and with the outputs that were made."""
    returns: Sequence[str]


class Styles:
    """The styles of one kernel's calls that are known; `slow` takes all others."""

    def __init__(self, function: FunctionType, slow: Callable[..., Any]) -> None:
        self._function = function
        self._styles: dict[Style, Callable[..., Any]] = {}
        self._tables: dict[Style, tuple[str, dict[Any, Any]]] = {}
        """By style: how arguments are read, and what to run by what they are."""
        self.call: Callable[..., Any] = made(_CALL, "call", styles=self._styles, slow=slow)

    def __bool__(self) -> bool:
        return bool(self._styles)

    def knows(self, style: Style, given: Sequence[Any]) -> bool:
        """Return whether calls written in a style with arguments like some have a program looked for."""
        fields = _fields(given)
        known, table = self._tables.get(style, (fields, {}))
        run = table.get(_key(fields, given)) if known == fields else MISSED
        return run is MISSED or (run is not None and run.__globals__["defaults"] is self._function.__defaults__)

    def add(self, style: Style, given: Sequence[Any], meaning: Meaning, attempt: Callable[..., Any]) -> None:
        """Let calls written in a style with arguments like some have `attempt` find and run their program.

        Every program that `attempt` finds must give back the same of its arguments, and it takes no call that it does
        not find one for.
        """
        fields = _fields(given)
        known, table = self._tables.setdefault(style, (fields, {}))
        if known != fields:  # an array in one call and None in another: one of the two has to do
            return
        if len(table) >= LIMIT:
            table.clear()
        table[_key(fields, given)] = self._run(meaning, attempt)
        if style not in self._styles:
            text = _STYLE.format(arguments=arguments(len(given)), fields=fields)
            errors = AttributeError, LookupError, TypeError
            self._styles[style] = made(text, "style", find=table.__getitem__, errors=errors)

    def _run(self, meaning: Meaning, attempt: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function that makes what a call leaves out, and returns what it asks for."""
        given = {name: f"a{number}" for number, name in enumerate(meaning.names)}
        makers = {f"make_{name}": _maker(meaning.values[name]) for name in meaning.made}
        defaults = {f"default_{name}": value for name, value in meaning.values.items()}
        words = {
            name: f"made_{name}" if name in meaning.made else given.get(name, f"default_{name}")
            for name in meaning.values
        }
        text = _RUN.format(
            arguments=arguments(len(meaning.names)),
            outputs="\n".join(f"    made_{name} = make_{name}()" for name in meaning.made),
            placed=", ".join(words.values()),
            result=result(words[name] for name in meaning.returns),
        )
        held = makers | {name: value for name, value in defaults.items() if name in words.values()}
        function = self._function
        return made(text, "run", **held, attempt=attempt, function=function, defaults=function.__defaults__)


def _fields(given: Sequence[Any]) -> str:
    """Return expressions for all that a call's meaning takes from its arguments."""
    array, other = "a{0}.__class__, a{0}.dtype, a{0}.shape, ", "a{0}.__class__, "
    return "".join((array if _is_array(value) else other).format(number) for number, value in enumerate(given))


def _key(fields: str, given: Sequence[Any]) -> Any:
    return eval(f"({fields})", {f"a{number}": value for number, value in enumerate(given)})  # noqa: S307 - as above


def _is_array(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return isinstance(value, np.ndarray) or (torch is not None and isinstance(value, torch.Tensor))


def _maker(output: Any) -> Callable[[], Any]:
    """Return the function that makes another output like one: zeros, as the session makes them."""
    zeros = np.zeros if type(output) is np.ndarray else sys.modules["torch"].zeros
    return partial(zeros, tuple(output.shape), dtype=output.dtype)
