"""Manifests: what a kernel in another process has to find unchanged to run a kept program without being read anew.

A manifest belongs to a kernel's own code and what is known about its arguments. It lists, for each program made so,
every value that was read from outside, as a path to follow and a digest of what was found, and the artifact to run
where all still agree.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.core.enums import TensorLayout
from tilewright.dtypes import BY_NAME
from tilewright.frontend.kernels import Kernel
from tilewright.frontend.names import Read, Resolver
from tilewright.frontend.signature import Alike, DynDim, Given, Known, TensorMeta
from tilewright.jit.digest import NotEncodable, digest, function_bytes
from tilewright.jit.reads import ReadSet, leaves

LIMIT = 16
"""How many programs a manifest lists: the oldest make room."""


@dataclass(frozen=True)
class Listed:
    """One program of a manifest."""

    artifact: str
    parameters: tuple[str, ...]
    metas: Mapping[str, Given]
    dynamic: tuple[int, ...]
    functions: tuple[tuple[Any, ...], ...]
    """How each function was reached, and the digest of its code, the kernel's own first."""
    reads: tuple[tuple[int, tuple[str, ...], str | None], ...]
    """What each function read, as a path; with a digest where that was used, not merely passed through."""

    def replayed(self, kernel: Kernel) -> ReadSet | None:
        """Return the reads done again in this process, None where anything is not what it was."""
        try:
            return _replay(self, kernel)
        except (LookupError, AttributeError, NotEncodable):
            return None


def listed(
    kernel: Kernel, artifact: bytes, parameters: Sequence[str], metas: Mapping[str, Given], dynamic: Sequence[int],
    reads: ReadSet,
) -> Listed | None:  # fmt: skip
    """Return a program as a manifest lists it, None where something that was read means nothing elsewhere."""
    try:
        functions = tuple(_reached(reads.resolvers, number) for number in range(len(reads.resolvers)))
        found = tuple(
            _plain_read(n, resolver, read)
            for n, resolver in enumerate(reads.resolvers)
            for read in resolver.reads.values()
        )
    except (NotEncodable, LookupError):
        return None
    return Listed(artifact.hex(), tuple(parameters), metas, tuple(dynamic), functions, found)


def _reached(resolvers: Sequence[Resolver], number: int) -> tuple[Any, ...]:
    """Return how a function is found from those before it, and the digest of its code; LookupError where it is not."""
    function = resolvers[number].function
    code = digest(function_bytes(function)).hex()
    if number == 0:
        return None, (), code
    for earlier, resolver in enumerate(resolvers[:number]):
        for path, read in resolver.reads.items():
            if isinstance(read.value, Kernel) and read.value.function is function:
                return earlier, path, code
    raise LookupError(f"nothing leads to {function.__qualname__}")


def _plain_read(number: int, resolver: Resolver, read: Read) -> tuple[int, tuple[str, ...], str | None]:
    is_leaf = any(read is leaf for leaf in leaves(resolver))
    return number, read.path, digest(read.value).hex() if is_leaf else None


def _replay(entry: Listed, kernel: Kernel) -> ReadSet | None:
    resolvers: list[Resolver] = []
    for reached, path, code in entry.functions:
        found = kernel if reached is None else _follow(resolvers[int(reached)], tuple(path))
        if not isinstance(found, Kernel) or digest(function_bytes(found.function)).hex() != code:
            return None
        owner = (found.self_name, found.owner) if found.self_name else None
        resolvers.append(Resolver.of(found.function, owner))
        number = len(resolvers) - 1
        for _, way, worth in (read for read in entry.reads if read[0] == number):
            value = _follow(resolvers[number], tuple(way))
            if worth is not None and digest(value).hex() != worth:
                return None
    return ReadSet(resolvers)


def _follow(resolver: Resolver, path: tuple[str, ...]) -> object:
    """Return what a path leads to, noted as read."""
    own = resolver.instance is not None and path[0] == resolver.instance[0]
    value: object = resolver.instance[1] if own and resolver.instance else resolver.lookup(path[0])
    for end in range(1, len(path)):
        value = resolver.attribute(path[:end], value, path[end])
    return value


def written(entries: Sequence[Listed]) -> bytes:
    """Return a manifest as bytes."""
    return json.dumps([_plain(entry) for entry in entries[-LIMIT:]], separators=(",", ":")).encode()


def read(data: bytes) -> list[Listed]:
    """Return the programs a manifest lists; none for bytes that are no manifest of this version."""
    try:
        return [_entry(plain) for plain in json.loads(data)]
    except (ValueError, LookupError, TypeError):
        return []


def _plain(entry: Listed) -> list[Any]:
    metas = {name: _plain_meta(meta) for name, meta in entry.metas.items()}
    return [entry.artifact, entry.parameters, metas, entry.dynamic, entry.functions, entry.reads]


def _entry(plain: Sequence[Any]) -> Listed:
    artifact, parameters, metas, dynamic, functions, reads = plain
    return Listed(
        artifact,
        tuple(parameters),
        {name: _meta(meta) for name, meta in metas.items()},
        tuple(dynamic),
        tuple((reached, tuple(path), code) for reached, path, code in functions),
        tuple((number, tuple(path), worth) for number, path, worth in reads),
    )


def _plain_meta(meta: Given) -> Any:
    if isinstance(meta, TensorMeta):
        shape = [[d.name, d.literal] if isinstance(d, DynDim) else d for d in meta.shape]
        return [shape, meta.dtype.name, meta.layout.name]
    return meta.source if isinstance(meta, Alike) else None


def _meta(plain: Any) -> Given:
    if isinstance(plain, str):
        return Alike(plain)
    if plain is None:
        return Known(None)
    shape, dtype, layout = plain
    dims = tuple(DynDim(*d) if isinstance(d, list) else d for d in shape)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return TensorMeta(dims, BY_NAME[dtype], TensorLayout[layout])
