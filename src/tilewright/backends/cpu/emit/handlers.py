"""Handlers: the code for statements, ops, groups of ops and calls, found by what they are.

Files sign in what they emit; a function being emitted looks it up and knows none of them.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, MutableMapping, Sequence
from importlib import import_module
from typing import Any, Generic, TypeAlias, TypeVar

from tilewright.backends.cpu.emit.values import Binding, Scalar
from tilewright.core.expr import Call
from tilewright.core.op import Op
from tilewright.errors import UnsupportedFeatureError

Bound: TypeAlias = "dict[str, Any]"
"""The arguments of an op by name: what was emitted for operands, and attributes as they are."""

E = TypeVar("E")
S = TypeVar("S")
Lowering: TypeAlias = Callable[[E, Call, Bound], Binding]
ScalarCode: TypeAlias = Callable[..., Scalar]


class Handlers(Generic[E]):
    """The code that has been signed in, for emitters of one class, and what others have where there is none."""

    def __init__(self, others: Handlers[E] | None = None) -> None:
        self.ops: MutableMapping[str, Lowering[E]] = {} if others is None else ChainMap({}, others.ops)
        self.scalars: MutableMapping[str, ScalarCode] = {} if others is None else ChainMap({}, others.scalars)
        """The code for scalar ops, by name."""
        self._rare: Sequence[str] = ()
        self._others = others
        self._kinds: MutableMapping[type, Callable[[E, Any], Any]] = {}
        if others is not None:
            self._kinds = ChainMap({}, others._kinds)

    @property
    def rare(self) -> Sequence[str]:
        """The modules with the code for ops that few programs have, loaded one after the other until one has it."""
        return self._rare if self._others is None else self._others.rare

    @rare.setter
    def rare(self, modules: Sequence[str]) -> None:
        self._rare = modules

    def lowers(self, *names: str) -> Callable[[Lowering[E]], Lowering[E]]:
        """Sign in the code for ops, by full name or by kind and family."""

        def sign(function: Lowering[E]) -> Lowering[E]:
            self.ops.update(dict.fromkeys(names, function))
            return function

        return sign

    def emits(self, *kinds: type[S]) -> Callable[[Callable[[E, S], Any]], Callable[[E, S], Any]]:
        """Sign in the code for what is of some classes."""

        def sign(function: Callable[[E, S], Any]) -> Callable[[E, S], Any]:
            self._kinds.update(dict.fromkeys(kinds, function))
            return function

        return sign

    def emit(self, e: E, what: object) -> Any:
        """Emit something by its class; return what the handler gives."""
        return self._kinds[type(what)](e, what)

    def lower(self, e: E, call: Call, bound: Bound) -> Binding:
        """Emit an op; UnsupportedFeatureError where nobody has signed in for it."""
        found = self.found(call.op)
        if found is None:
            raise UnsupportedFeatureError(f"`{call.op.name}` has no native code yet", spans=[call.span])
        return found(e, call, bound)

    def found(self, op: Op) -> Lowering[E] | None:
        """Return the code for an op, None where no module has any."""
        found = self._signed_in(op)
        for module in () if found is not None else self.rare:
            import_module(module)
            found = self._signed_in(op)
            if found is not None:
                break
        return found

    def _signed_in(self, op: Op) -> Lowering[E] | None:
        return self.ops.get(op.name) or self.ops.get(f"{op.kind.value}:{op.spec.family}")
