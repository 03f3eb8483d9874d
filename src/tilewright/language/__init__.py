"""The language: every name a kernel author imports, as `import tilewright.language as pl`."""

import os as _os
import typing as _typing
from importlib import import_module as _import_module

from tilewright.collector import paused_collection as _paused_collection

with _paused_collection():  # all of it stays, and a collector would walk it once and again
    from tilewright.core.annotations import *
    from tilewright.core.annotations import RUNTIME as RUNTIME
    from tilewright.core.annotations import Scalar as Scalar
    from tilewright.core.enums import *
    from tilewright.core.enums import MemorySpace as MemorySpace
    from tilewright.core.enums import TensorLayout as TensorLayout
    from tilewright.core.expr import Expr as _Expr
    from tilewright.core.memrefs import *
    from tilewright.core.program import Function as _Function
    from tilewright.core.program import Program as _Program
    from tilewright.dtypes import *
    from tilewright.dtypes import TASK_ID as TASK_ID
    from tilewright.frontend.directives import *
    from tilewright.frontend.inline import InlineFunction as InlineFunction
    from tilewright.frontend.inline import inline as inline
    from tilewright.frontend.programs import function as function
    from tilewright.frontend.programs import program as program
    from tilewright.frontend.text import loads as _loads
    from tilewright.frontend.text import only_program as _only_program
    from tilewright.frontend.text import parse as _parse
    from tilewright.jit.decorators import jit as jit
    from tilewright.jit.function import JITFunction as JITFunction
    from tilewright.language import optimizations as optimizations
    from tilewright.programs.pto_text.readers import READERS as _READERS
    from tilewright.programs.pto_text.readers import TAKERS as _TAKERS

if _typing.TYPE_CHECKING:
    from tilewright.language import adir as adir
    from tilewright.language import array as array
    from tilewright.language import distributed as distributed
    from tilewright.language import parser as parser
    from tilewright.language import prefetch as prefetch
    from tilewright.language import system as system
    from tilewright.language import tensor as tensor
    from tilewright.language import tile as tile
    from tilewright.language._ops import *
    from tilewright.tune.config import Config as Config
    from tilewright.tune.function import autotune as autotune

    _T = _typing.TypeVar("_T")
    Out = _typing.Annotated[_T, "Out"]
    InOut = _typing.Annotated[_T, "InOut"]
    Tuple = tuple
else:
    from tilewright.core.annotations import InOut as InOut
    from tilewright.core.annotations import Out as Out
    from tilewright.core.annotations import Tuple as Tuple

Mem = MemorySpace
ND, DN, NZ = TensorLayout.ND, TensorLayout.DN, TensorLayout.NZ
MX_A_ZZ, MX_B_NN = TensorLayout.MX_A_ZZ, TensorLayout.MX_B_NN
TaskId = PrefetchAsyncContext = AsyncEvent = AsyncSession = Scalar(TASK_ID)
IntLike: _typing.TypeAlias = int | Scalar | _Expr


def parse(code: str, filename: str = "<string>", source_map: object = None) -> _Function | _Program:
    """Return the one function or program that Python text defines; the text runs like a module, with `pl` at hand.

    A `source_map`, which other implementations make for text of their own, is not looked at: places are in the text.
    """
    return _parse(code, {"pl": _this()}, filename)


def loads(path: str | _os.PathLike[str]) -> _Function | _Program:
    """Return the one function or program that a Python file defines."""
    return _loads(path, {"pl": _this()})


def parse_program(code: str, filename: str = "<string>") -> _Program:
    """Return the one program that Python text defines; ValueError for a function."""
    return _only_program(parse(code, filename))


def loads_program(path: str | _os.PathLike[str]) -> _Program:
    """Return the one program that a Python file defines; ValueError for a function."""
    return _only_program(loads(path))


def _this() -> object:
    import sys

    return sys.modules[__name__]


_READERS.append(lambda _: _import_module("tilewright.pto"))  # which signs in what PTO text is held to
_TAKERS.append(lambda _op, _read, _written: bool(_import_module("tilewright.pto")))
_SPACES = ("adir", "array", "distributed", "parser", "prefetch", "system", "tensor", "tile")
_LATER = {
    **{"Config": "tilewright.tune.config", "autotune": "tilewright.tune.function"},
    **dict.fromkeys(_SPACES, __name__),
}
"""Names that few kernels ask for, and where they are."""


def __getattr__(name: str) -> object:
    """Load the ops with the first of their names: a process that finds its programs kept asks for none."""
    if name in _LATER:
        return _loaded(name)
    if name == "__all__":  # which `import *` asks for before it takes every name
        __dir__()
    if name.startswith("__") or name not in _with_ops():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals()[name]


def __dir__() -> list[str]:
    for name in _LATER:
        _loaded(name)
    return sorted(_with_ops())


def _with_ops() -> dict[str, object]:
    """Return the names that are there, those of ops among them."""
    ops = vars(_import_module("tilewright.language._ops"))
    globals().update({name: value for name, value in ops.items() if not name.startswith("_")})
    return globals()


def _loaded(name: str) -> object:
    where = _LATER[name]
    found = _import_module(f"{where}.{name}") if where == __name__ else getattr(_import_module(where), name)
    return globals().setdefault(name, found)
