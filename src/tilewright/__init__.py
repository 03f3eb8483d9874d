"""Tilewright: a tile-kernel JIT for Python."""

from tilewright.programs import providers as _providers
from tilewright.version import __version__ as __version__


def _shortcut() -> object:
    from tilewright.jit.direct import direct

    return direct


_providers.provide("shortcut", _shortcut)  # compiled programs lie below the dispatcher that calls them
