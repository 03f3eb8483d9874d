"""The language: every name a kernel author imports, as `import tilewright.language as pl`."""

import os as _os
import typing as _typing

from tilewright.core.annotations import Array as Array
from tilewright.core.annotations import DynVar as DynVar
from tilewright.core.annotations import Scalar as Scalar
from tilewright.core.annotations import Tensor as Tensor
from tilewright.core.annotations import TensorView as TensorView
from tilewright.core.annotations import Tile as Tile
from tilewright.core.annotations import TileView as TileView
from tilewright.core.annotations import dynamic as dynamic
from tilewright.core.enums import AtomicType as AtomicType
from tilewright.core.enums import CmpType as CmpType
from tilewright.core.enums import CompactMode as CompactMode
from tilewright.core.enums import ForKind as ForKind
from tilewright.core.enums import FunctionType as FunctionType
from tilewright.core.enums import Level as Level
from tilewright.core.enums import MemorySpace as MemorySpace
from tilewright.core.enums import PadValue as PadValue
from tilewright.core.enums import PipeType as PipeType
from tilewright.core.enums import Role as Role
from tilewright.core.enums import RoundMode as RoundMode
from tilewright.core.enums import ScopeMode as ScopeMode
from tilewright.core.enums import SplitMode as SplitMode
from tilewright.core.enums import TensorLayout as TensorLayout
from tilewright.core.enums import TileLayout as TileLayout
from tilewright.core.program import Function as _Function
from tilewright.core.program import Program as _Program
from tilewright.core.types import MemRef as MemRef
from tilewright.dtypes import BF16 as BF16
from tilewright.dtypes import BOOL as BOOL
from tilewright.dtypes import FP4 as FP4
from tilewright.dtypes import FP8E4M3FN as FP8E4M3FN
from tilewright.dtypes import FP8E5M2 as FP8E5M2
from tilewright.dtypes import FP8E8M0 as FP8E8M0
from tilewright.dtypes import FP16 as FP16
from tilewright.dtypes import FP32 as FP32
from tilewright.dtypes import HF4 as HF4
from tilewright.dtypes import HF8 as HF8
from tilewright.dtypes import INDEX as INDEX
from tilewright.dtypes import INT4 as INT4
from tilewright.dtypes import INT8 as INT8
from tilewright.dtypes import INT16 as INT16
from tilewright.dtypes import INT32 as INT32
from tilewright.dtypes import INT64 as INT64
from tilewright.dtypes import TASK_ID as TASK_ID
from tilewright.dtypes import UINT4 as UINT4
from tilewright.dtypes import UINT8 as UINT8
from tilewright.dtypes import UINT16 as UINT16
from tilewright.dtypes import UINT32 as UINT32
from tilewright.dtypes import UINT64 as UINT64
from tilewright.dtypes import DataType as DataType
from tilewright.frontend.directives import at as at
from tilewright.frontend.directives import cluster as cluster
from tilewright.frontend.directives import cond as cond
from tilewright.frontend.directives import const as const
from tilewright.frontend.directives import cross_core_slot as cross_core_slot
from tilewright.frontend.directives import dump_tag as dump_tag
from tilewright.frontend.directives import func_attr as func_attr
from tilewright.frontend.directives import manual_scope as manual_scope
from tilewright.frontend.directives import no_dep as no_dep
from tilewright.frontend.directives import parallel as parallel
from tilewright.frontend.directives import pipeline as pipeline
from tilewright.frontend.directives import range as range
from tilewright.frontend.directives import scope as scope
from tilewright.frontend.directives import split as split
from tilewright.frontend.directives import split_aiv as split_aiv
from tilewright.frontend.directives import spmd as spmd
from tilewright.frontend.directives import spmd_submit as spmd_submit
from tilewright.frontend.directives import static_assert as static_assert
from tilewright.frontend.directives import static_print as static_print
from tilewright.frontend.directives import submit as submit
from tilewright.frontend.directives import unroll as unroll
from tilewright.frontend.directives import while_ as while_
from tilewright.frontend.directives import yield_ as yield_
from tilewright.frontend.inline import InlineFunction as InlineFunction
from tilewright.frontend.inline import inline as inline
from tilewright.frontend.programs import function as function
from tilewright.frontend.programs import program as program
from tilewright.frontend.text import loads as _loads
from tilewright.frontend.text import parse as _parse
from tilewright.jit.arguments import RUNTIME as RUNTIME
from tilewright.jit.decorators import jit as jit
from tilewright.jit.function import JITFunction as JITFunction
from tilewright.language import array as array
from tilewright.language import system as system
from tilewright.language import tensor as tensor
from tilewright.language import tile as tile
from tilewright.ops.broadcast import *
from tilewright.ops.bytes import *
from tilewright.ops.compare import *
from tilewright.ops.convert import *
from tilewright.ops.elementwise import *
from tilewright.ops.load import *
from tilewright.ops.matmul import *
from tilewright.ops.memory import *
from tilewright.ops.partial import *
from tilewright.ops.reduce import *
from tilewright.ops.scalar import max as max
from tilewright.ops.scalar import min as min
from tilewright.ops.shape import *
from tilewright.ops.system import *

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
TaskId = Scalar(TASK_ID)


def parse(code: str, filename: str = "<string>") -> _Function | _Program:
    """Return the one function or program that Python text defines; the text runs like a module, with `pl` at hand."""
    return _parse(code, {"pl": _this()}, filename)


def loads(path: str | _os.PathLike[str]) -> _Function | _Program:
    """Return the one function or program that a Python file defines."""
    return _loads(path, {"pl": _this()})


def _this() -> object:
    import sys

    return sys.modules[__name__]
