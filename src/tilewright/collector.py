"""The cycle collector, paused while the compiler works.

Compiling makes many objects that all stay alive until it is done, so every collection in between walks them for
nothing: on a 1,000-op program that is 40 % of the time. The work is undivided: nobody would turn the collector on again
in a child that was forked meanwhile.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

from tilewright.forks import undivided


@contextmanager
def paused_collection() -> Generator[None, None, None]:
    """Keep the collector off inside; leave it as it was found."""
    with undivided():
        was_on = gc.isenabled()
        gc.disable()
        try:
            yield
        finally:
            if was_on:
                gc.enable()
