"""The cycle collector, paused while the compiler works.

Compiling makes many objects that all stay alive until it is done, so every collection in between walks them for
nothing: on a 1,000-op program that is 40 % of the time. The work is undivided: nobody would turn the collector on again
in a child that was forked meanwhile.

Where modules were imported meanwhile, which stay, what is there when the collector goes on counts as old: walking it
first would take a tenth of the time to the first program of a process.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Generator
from contextlib import contextmanager

from tilewright.forks import undivided


@contextmanager
def paused_collection() -> Generator[None, None, None]:
    """Keep the collector off inside; leave it as it was found."""
    with undivided():
        was_on, modules = gc.isenabled(), len(sys.modules)
        gc.disable()
        try:
            yield
        finally:
            if was_on:
                if len(sys.modules) > modules and not gc.get_freeze_count():  # which somebody else wants to keep
                    gc.freeze()
                    gc.unfreeze()
                gc.enable()
