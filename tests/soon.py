"""Soon: native code that LLVM does not optimise, made in a quarter of the time, for tests of what programs mean."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from functools import partial

import pytest

from tilewright.backends.cpu import backend
from tilewright.native.assemble import SOON, assemble


@contextmanager
def soon(is_so: bool = True) -> Generator[None]:
    """Compile programs unoptimised inside, where that `is_so`."""
    with pytest.MonkeyPatch.context() as patch:
        if is_so:
            patch.setattr(backend, "assemble", partial(assemble, level=SOON))
        yield
