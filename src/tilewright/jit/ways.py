"""Ways in: everything between a kernel's calls and its programs that does not ask the session.

Calls with every argument in its place go to a dispatcher, native where this process can run it. Those that leave their
outputs out have another one, which reaches only programs that are known to give back the same of their arguments, and
come to it by way of their styles; so do calls that name arguments, where the dispatcher takes none by name.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from tilewright import settings
from tilewright.call.native import surroundings
from tilewright.call.styles import Meaning, Styles, missed
from tilewright.call.torch_layout import torch_layout
from tilewright.frontend.kernels import Kernel, KernelParameter
from tilewright.jit.calls import Binder, Call
from tilewright.jit.compiled import Compiled
from tilewright.jit.fast import FastPath
from tilewright.jit.plain import PlainPath

Given: TypeAlias = tuple[Sequence[Any], Mapping[str, Any]]
"""A call's arguments as they were written: by position, and by name."""


class Ways:
    """The ways to the programs of one kernel; `slow` takes the calls that go none of them."""

    def __init__(self, kernel: Kernel, slow: Callable[..., Any]) -> None:
        self._kernel = kernel
        self._surroundings = surroundings()
        self.styles = Styles(kernel.function, slow)
        self.fast = self._path(self.styles.call)
        self._has_fast = False
        self._styled: dict[tuple[str, ...], FastPath | PlainPath] = {}
        """The paths of calls that come by their style, by what they give back: nothing where outputs are given."""

    @property
    def hits(self) -> int:
        """How many calls they have taken."""
        return self.fast.hits + sum(path.hits for path in self._styled.values())

    def is_current(self) -> bool:
        """Return whether the settings are those they were made under."""
        return self._surroundings == surroundings()

    def entrance(self) -> Callable[..., Any]:
        """Return what a kernel's calls go to first."""
        return self.fast.entrance() if self._has_fast else self.styles.call

    def learn(self, binder: Binder, given: Given, call: Call, found: Compiled, result: Any) -> bool:
        """Let calls like one that gave `result` find its program; return whether they have another entrance now."""
        before = self._stage
        left_out = [name for name in binder.outputs if name not in call.values]
        if left_out:
            self._learn_returning(binder, given, call, found, result, left_out)
            return self._stage > before
        if self.fast.is_due(found):
            self._has_fast = self.fast.add(call, found)
        is_whole = not given[1] and len(given[0]) == len(call.values)
        if not is_whole and isinstance(self.fast, PlainPath) and self._is_style_due((), given, found):
            self._learn_style(given, Meaning(_names(self._kernel.parameters, given), (), call.values, ()), call, found)
        return self._stage > before

    @property
    def _stage(self) -> int:
        return 2 if self._has_fast else int(bool(self.styles))

    def _learn_returning(
        self, binder: Binder, given: Given, call: Call, found: Compiled, result: Any, left_out: Sequence[str]
    ) -> None:
        """Take a call that was returned its outputs as one that was given them."""
        if found.returns is None or not {*left_out} <= {*found.returns}:
            return
        if not self._is_style_due(found.returns, given, found):
            return
        results: Sequence[Any] = result if len(found.returns) > 1 else (result,)
        values = {**call.values, **dict(zip(found.returns, results, strict=True))}
        whole = binder.call([values[p.name] for p in self._kernel.parameters], {})
        names = _names(binder.inputs, given)
        self._learn_style(given, Meaning(names, left_out, whole.values, found.returns), whole, found)

    def _is_style_due(self, returns: tuple[str, ...], given: Given, found: Compiled) -> bool:
        """Return whether there is anything to do for calls that are written like this one."""
        path = self._styled.get(returns)
        if path is None:
            path = self._styled[returns] = self._path(missed)
        if path.is_due(found):
            return True
        args, kwargs = given
        return path.is_known(found) and not self.styles.knows((len(args), *kwargs), [*args, *kwargs.values()])

    def _learn_style(self, given: Given, meaning: Meaning, whole: Call, found: Compiled) -> None:
        """Let calls written as this one find its program as calls with every argument."""
        path = self._styled[tuple(meaning.returns)]
        if not path.is_known(found):
            path.add(whole, found)
        if path.is_known(found):
            args, kwargs = given
            self.styles.add((len(args), *kwargs), [*args, *kwargs.values()], meaning, path.entrance())

    def _path(self, slow: Callable[..., Any]) -> FastPath | PlainPath:
        """Return the fastest dispatcher that this process has, with nothing in it.

        Where torch lays tensors out in a way that nobody knows yet, machine code cannot read them, and Python can.
        """
        knows_torch = "torch" not in sys.modules or torch_layout() is not None
        if settings.native_dispatch() and FastPath.is_available() and knows_torch:
            return FastPath(self._kernel, slow)
        return PlainPath(self._kernel, slow)


def _names(positional: Sequence[KernelParameter], given: Given) -> list[str]:
    """Return the parameter that each argument is for."""
    args, kwargs = given
    return [*(parameter.name for parameter in positional[: len(args)]), *kwargs]
