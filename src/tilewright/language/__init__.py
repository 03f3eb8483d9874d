"""The language: every name a kernel author imports, as `import tilewright.language as pl`."""

import os as _os
import typing as _typing

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
from tilewright.language import adir as adir
from tilewright.language import array as array
from tilewright.language import optimizations as optimizations
from tilewright.language import parser as parser
from tilewright.language import prefetch as prefetch
from tilewright.language import system as system
from tilewright.language import tensor as tensor
from tilewright.language import tile as tile
from tilewright.ops.atomics import *
from tilewright.ops.axes import *
from tilewright.ops.blends import *
from tilewright.ops.block_gather import *
from tilewright.ops.broadcast import *
from tilewright.ops.bytes import *
from tilewright.ops.compare import *
from tilewright.ops.convert import *
from tilewright.ops.counting import arange as arange
from tilewright.ops.counting import iota as iota
from tilewright.ops.draw import *
from tilewright.ops.elementwise import *
from tilewright.ops.functions import *
from tilewright.ops.gather import *
from tilewright.ops.generate import random as random
from tilewright.ops.generate import tri as tri
from tilewright.ops.indexed import *
from tilewright.ops.lanes import *
from tilewright.ops.load import *
from tilewright.ops.masks import *
from tilewright.ops.matmul import *
from tilewright.ops.memory import *
from tilewright.ops.memory_gather import *
from tilewright.ops.memory_scatter import *
from tilewright.ops.mx import *
from tilewright.ops.normalize import *
from tilewright.ops.order import *
from tilewright.ops.padding import *
from tilewright.ops.partial import *
from tilewright.ops.pipes import AUTO as AUTO
from tilewright.ops.pipes import aic_initialize_pipe as aic_initialize_pipe
from tilewright.ops.pipes import aiv_initialize_pipe as aiv_initialize_pipe
from tilewright.ops.pipes import import_peer_buffer as import_peer_buffer
from tilewright.ops.pipes import reserve_buffer as reserve_buffer
from tilewright.ops.pipes import tfree_to_aic as tfree_to_aic
from tilewright.ops.pipes import tfree_to_aiv as tfree_to_aiv
from tilewright.ops.pipes import tpop_from_aic as tpop_from_aic
from tilewright.ops.pipes import tpop_from_aiv as tpop_from_aiv
from tilewright.ops.pipes import tpush_to_aic as tpush_to_aic
from tilewright.ops.pipes import tpush_to_aiv as tpush_to_aiv
from tilewright.ops.position import *
from tilewright.ops.ravel import *
from tilewright.ops.reduce import *
from tilewright.ops.reinterpret import *
from tilewright.ops.reshape import *
from tilewright.ops.row_gather import *
from tilewright.ops.scan import *
from tilewright.ops.scatter import *
from tilewright.ops.scatter_update import *
from tilewright.ops.shape import *
from tilewright.ops.sort import *
from tilewright.ops.strided import *
from tilewright.ops.system import *
from tilewright.ops.system import device_assert as device_assert
from tilewright.tune.config import Config as Config
from tilewright.tune.decorator import autotune as autotune

from tilewright.language.extremes import max as max, min as min  # isort: skip

if _typing.TYPE_CHECKING:
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
