"""Manifests: what a kernel in another process has to find unchanged to run a kept program without being read anew.

A manifest belongs to a kernel's own code and what is known about its arguments. It lists, for each program made so,
every value that was read from outside, as a path to follow and a digest of what was found, and the artifact to run
where all still agree. The text of a PTO module reads nothing: its manifest lists one program, under no condition.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from types import FunctionType
from typing import Any, TypeAlias

from tilewright.errors import DriftError
from tilewright.frontend.inline import InlineFunction
from tilewright.frontend.kernels import Kernel
from tilewright.frontend.names import Access, Item, Origins, Path, Read, Resolver
from tilewright.keep.digest import NotEncodable, digest, function_bytes
from tilewright.keep.reads import ReadSet
from tilewright.records import record

PlainRead: TypeAlias = tuple[int, str, tuple[Any, ...], "str | None"]
"""Which function read something, where its path starts, the path, and a digest where that was not merely passed."""

LIMIT = 16
"""How many programs a manifest lists: the oldest make room."""


@record
class Listed:
    """One program of a manifest."""

    artifact: bytes
    """Its key, which has 32 bytes."""
    parameters: tuple[str, ...] = ()
    returns: tuple[str, ...] | None = None
    """What the program is to its kernel's calls; see `Compiled`."""
    functions: tuple[tuple[Any, ...], ...] = ()
    """How each function was reached, and the digest of its code, the kernel's own first."""
    reads: tuple[PlainRead, ...] = ()

    def replayed(self, kernel: Kernel | None) -> ReadSet | None:
        """Return the reads done again in this process, None where anything is not what it was."""
        try:
            return _replay(self, kernel)
        except (LookupError, AttributeError, TypeError, NotEncodable, DriftError):
            return None


def listed(
    artifact: bytes, parameters: tuple[str, ...], returns: tuple[str, ...] | None, reads: ReadSet
) -> Listed | None:
    """Return a program as a manifest lists it, None where something that was read means nothing elsewhere."""
    try:
        functions = tuple(_reached(reads.resolvers, number) for number in range(len(reads.resolvers)))
        found = tuple(
            _plain_read(n, resolver, read)
            for n, resolver in enumerate(reads.resolvers)
            for read in resolver.reads.values()
        )
    except (NotEncodable, LookupError, RecursionError):  # a container may hold itself
        return None
    return Listed(artifact, parameters, returns, functions, found)


def _reached(resolvers: Sequence[Resolver], number: int) -> tuple[Any, ...]:
    """Return how a function is found from those before it, and the digest of its code; LookupError where it is not."""
    function = resolvers[number].function
    code = digest(function_bytes(function)).hex()
    if number == 0:
        return None, "", (), code
    for earlier, resolver in enumerate(resolvers[:number]):
        for read in resolver.reads.values():
            if function_of(read.value) is function:
                return earlier, read.root.access.name, _plain_path(read.path), code
    raise LookupError(f"nothing leads to {function.__qualname__}")


def function_of(value: object) -> Any:
    """Return the Python function behind something that a kernel calls, None for anything else."""
    if isinstance(value, Kernel):
        return value.function
    if isinstance(value, InlineFunction):
        return value.captured.function
    return value if isinstance(value, FunctionType) else None


def _plain_read(number: int, resolver: Resolver, read: Read) -> PlainRead:
    key = read.root.access, read.path
    found = digest(read.given).hex() if resolver.uses[key] > 0 else None
    return number, read.root.access.name, _plain_path(read.path), found


def _plain_path(path: Path) -> tuple[Any, ...]:
    """Return a path of strings and one-item lists, which stand for items; NotEncodable for other keys."""
    keys = [step.key for step in path if isinstance(step, Item)]
    if any(type(key) not in (int, str) for key in keys):
        raise NotEncodable("only items by position or by text are the same in another process")
    return tuple((step.key,) if isinstance(step, Item) else step for step in path)


def _replay(entry: Listed, kernel: Kernel | None) -> ReadSet | None:
    resolvers: list[Resolver] = []
    origins = Origins()
    for reached, access, path, code in entry.functions:
        found = kernel if reached is None else _follow(resolvers[int(reached)], access, path)
        function = function_of(found)
        if function is None or digest(function_bytes(function)).hex() != code:
            return None
        owner = (found.self_name, found.owner) if isinstance(found, Kernel) and found.self_name else None
        resolvers.append(resolver := Resolver.of(function, owner, origins))
        number = len(resolvers) - 1
        for _, root, way, used in (read for read in entry.reads if read[0] == number):
            value = _follow(resolver, root, way)
            if used is None:
                resolver.pass_through()
            elif digest(value).hex() != used:
                return None
    for resolver in resolvers:
        resolver.close()
    return ReadSet(resolvers)


def _follow(resolver: Resolver, root: str, path: Sequence[Any]) -> Any:
    """Return what a path leads to, noted as read; what was only passed on the way is noted as that."""
    value = resolver.start(Access[root], path[0])
    for step in path[1:]:
        value = resolver.item(value, step[0]) if isinstance(step, (list, tuple)) else resolver.attribute(value, step)
    return value


def written(entries: Sequence[Listed]) -> bytes:
    """Return a manifest as bytes."""
    plain = [[e.artifact.hex(), e.parameters, e.returns, e.functions, e.reads] for e in entries[-LIMIT:]]
    return json.dumps(plain, separators=(",", ":")).encode()


def read(data: bytes) -> list[Listed]:
    """Return the programs a manifest lists; none for bytes that are no manifest of this version."""
    try:
        return [_entry(plain) for plain in json.loads(data)]
    except (ValueError, LookupError, TypeError, RecursionError):
        return []


def _entry(plain: Sequence[Any]) -> Listed:
    artifact, parameters, returns, functions, reads = plain
    if len(artifact) != 64:
        raise ValueError(f"{artifact!r} is no artifact's key")
    return Listed(
        bytes.fromhex(artifact),
        tuple(parameters),
        None if returns is None else tuple(returns),
        tuple((reached, root, _steps(path), code) for reached, root, path, code in functions),
        tuple((number, root, _steps(path), found) for number, root, path, found in reads),
    )


def _steps(path: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(tuple(step) if isinstance(step, list) else step for step in path)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
