"""Read sets: what a program was compiled from besides its arguments.

The front end notes every value it takes from outside a kernel. Here those notes become a question that can be asked
again: whether everything that was used is what it was. An object that was merely passed through on the way to an
attribute may be another one by now.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.frontend.names import Access, Read, Resolver
from tilewright.frontend.value_keys import MISSING, is_mutable, value_key
from tilewright.records import record


@record
class Drift:
    """A value that has changed since a program was compiled."""

    function: str
    module: str
    name: str
    kind: str
    old: object
    new: object
    is_own: bool = False
    """Whether it is an attribute of the instance that a method is bound to."""

    def __str__(self) -> str:
        now = "is gone" if self.new is MISSING else f"is {self.new!r} now"
        return (
            f"{self.kind} `{self.name}`, which `{self.function}` of module {self.module} reads, "
            f"was {self.old!r} when it was compiled and {now}"
        )


@record
class Leaf:
    """A value that a function used."""

    resolver: Resolver
    read: Read

    @property
    def is_own(self) -> bool:
        """Whether it was read from the instance that a method is bound to."""
        return self.read.root.access is Access.INSTANCE

    def drift(self) -> Drift | None:
        """Return how the value has changed, or None."""
        new = self.read.now()
        if self.is_same(new):
            return None
        function, read = self.resolver.function, self.read
        return Drift(
            function.__qualname__, function.__module__, read.name, read.access.value, read.given, new, self.is_own
        )

    def is_same(self, new: object) -> bool:
        """Return whether a kernel could not tell a value from what was found."""
        if new is self.read.value and not is_mutable(new):
            return True
        return new is not MISSING and value_key(new) == self.read.value_key


class ReadSet:
    """What one program was compiled from, by the resolvers of all the functions in it."""

    def __init__(self, resolvers: Sequence[Resolver]) -> None:
        self.resolvers = tuple(resolvers)
        leaves = [Leaf(resolver, read) for resolver in self.resolvers for read in resolver.leaves()]
        self.leaves = sorted(leaves, key=lambda leaf: not leaf.is_own)

    @property
    def value_keys(self) -> list[object]:
        """Everything that was used, by its key: equal for programs that were compiled from the same."""
        functions = [(resolver.function, resolver.code) for resolver in self.resolvers]
        return [*functions, *((leaf.read.root.access, leaf.read.path, leaf.read.value_key) for leaf in self.leaves)]

    def drift(self) -> Drift | None:
        """Return the first value that is no longer what it was, or None; the instance's own attributes come first."""
        found = next((found for leaf in self.leaves if (found := leaf.drift()) is not None), None)
        return found if found is not None and found.is_own else self._code_drift() or found

    def _code_drift(self) -> Drift | None:
        for resolver in self.resolvers:
            function, old = resolver.function, resolver.code
            if function.__code__ is not old:
                new = function.__code__
                return Drift(function.__qualname__, function.__module__, "__code__", "attribute", old, new)
        return None
