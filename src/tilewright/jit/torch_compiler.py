"""Torch's compiler: how it meets kernels whose calls do not go through Python.

It reads the Python of what it compiles. Of a kernel with its own `__call__` it reads that, and finds an operator there;
of one whose calls go to the dispatcher it could read nothing, so it is told to take the kernel as it is: it then calls
it with tensors that it traces, which come to the same operator. It can only be told once it is imported, and that takes
seconds, so it is not imported for that: kernels are set back to their own `__call__` at the moment somebody does.
"""

from __future__ import annotations

import sys
import weakref
from typing import Any

from tilewright.imported import imported
from tilewright.jit.session import Session

COMPILER = "torch._dynamo"

_untold: weakref.WeakSet[Session] = weakref.WeakSet()
"""The sessions of kernels that it has not been told of."""


def tell(kernel: object, session: Session) -> None:
    """Let torch's compiler take calls of a kernel as they are, now or when it is imported."""
    torch: Any = imported("torch")
    if torch is None:
        return
    if COMPILER in sys.modules:
        torch.compiler.allow_in_graph(kernel)
        return
    _untold.add(session)
    if _Notice not in sys.meta_path:
        sys.meta_path.insert(0, _Notice)


class _Notice:
    """Finds no module, and notices when torch's compiler is looked for."""

    @classmethod
    def find_spec(cls, name: str, path: object = None, target: object = None) -> None:
        """Set kernels back where torch's compiler is about to be imported."""
        if name == COMPILER:
            sys.meta_path.remove(cls)
            for session in list(_untold):
                session.set_back()
            _untold.clear()
