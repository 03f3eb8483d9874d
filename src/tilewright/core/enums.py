"""Enumerations: every named choice of the language."""

from __future__ import annotations

from enum import Enum, IntEnum

__all__ = ["ArgDirection", "AtomicType", "CmpType", "CompactMode", "ForKind", "FunctionType", "Level", "MemorySpace"]
__all__ += ["PadValue", "PipeType", "Role", "RoundMode", "ScopeMode", "SplitMode", "TensorLayout", "TileLayout"]


class FunctionType(Enum):
    """What a function is: control plane, device kernel, or something between."""

    Opaque = "Opaque"
    Orchestration = "Orchestration"
    InCore = "InCore"
    AIC = "AIC"
    AIV = "AIV"
    Group = "Group"
    Spmd = "Spmd"
    Inline = "Inline"
    Graph = "Graph"

    @property
    def is_incore(self) -> bool:
        """Whether functions of this type run on the execution plane."""
        return self in (FunctionType.InCore, FunctionType.AIC, FunctionType.AIV)


class Level(Enum):
    """A level of the machine hierarchy, from one vector core to the whole system."""

    AIV = 0
    AIC = 1
    CORE_GROUP = 2
    CHIP_DIE = 3
    L2CACHE = 3
    CHIP = 4
    PROCESSOR = 4
    UMA = 4
    HOST = 5
    NODE = 5
    CLUSTER_0 = 6
    POD = 6
    CLUSTER_1 = 7
    CLOS1 = 7
    CLUSTER_2 = 8
    CLOS2 = 8
    GLOBAL = 9


class Role(Enum):
    """What a function does at its level."""

    Orchestrator = "Orchestrator"
    SubWorker = "SubWorker"


class ParamDirection(Enum):
    """Whether a function reads a parameter, writes it, or both."""

    In = "In"
    Out = "Out"
    InOut = "InOut"


class ArgDirection(Enum):
    """How a dispatch takes an argument."""

    Scalar = "scalar"
    Input = "input"
    Output = "output"
    OutputExisting = "output_existing"
    InOut = "inout"
    NoDep = "no_dep"


class MemorySpace(Enum):
    """Where a tile lives; it never changes a result."""

    DDR = "DDR"
    Vec = "Vec"
    Mat = "Mat"
    Left = "Left"
    Right = "Right"
    Acc = "Acc"
    Bias = "Bias"
    LeftScale = "LeftScale"
    RightScale = "RightScale"
    ScalarLocal = "ScalarLocal"


class PadValue(Enum):
    """What `fillpad` writes outside the valid region."""

    null = "null"
    zero = "zero"
    max = "max"
    min = "min"


class SplitMode(Enum):
    """How a kernel's work is split between two vector lanes."""

    NONE = 0
    UP_DOWN = 1
    LEFT_RIGHT = 2


class AtomicType(Enum):
    """How a store combines with what the tensor already holds."""

    None_ = 0
    Add = 1


class NotifyOp(IntEnum):
    """What a signal does to the cell of a peer."""

    AtomicAdd = 0
    Set = 1


class WaitCmp(IntEnum):
    """How a cell is held against what a rank waits for."""

    Eq = 0
    Ge = 1


class ReduceOp(IntEnum):
    """What a collective makes of the elements of all ranks."""

    Sum = 0
    Max = 1
    Min = 2
    Prod = 3


class TensorLayout(Enum):
    """How a tensor is laid out in memory."""

    ND = "ND"
    DN = "DN"
    NZ = "NZ"
    MX_A_ZZ = "MX_A_ZZ"
    MX_B_NN = "MX_B_NN"

    @property
    def is_permuted(self) -> bool:
        """Whether neighbours in memory are not neighbours along an axis."""
        return self in (TensorLayout.MX_A_ZZ, TensorLayout.MX_B_NN)


class TileLayout(Enum):
    """How a tile's boxes are laid out."""

    none_box = "none_box"
    row_major = "row_major"
    col_major = "col_major"


class CompactMode(Enum):
    """How a ragged tile is packed."""

    null = "null"
    normal = "normal"
    row_plus_one = "row_plus_one"


class PipeType(Enum):
    """A hardware pipe named by synchronization ops."""

    MTE1 = "MTE1"
    MTE2 = "MTE2"
    MTE3 = "MTE3"
    M = "M"
    V = "V"
    S = "S"
    FIX = "FIX"
    ALL = "ALL"


class ForKind(Enum):
    """What a counted loop promises about its iterations."""

    Sequential = "range"
    Parallel = "parallel"
    Unroll = "unroll"
    Pipeline = "pipeline"


class ScopeMode(Enum):
    """Who orders the tasks dispatched inside a scope."""

    AUTO = "AUTO"
    MANUAL = "MANUAL"


class MaskPattern(IntEnum):
    """Which columns a masked gather or scatter takes."""

    P0101 = 1
    P1010 = 2
    P0001 = 3
    P0010 = 4
    P0100 = 5
    P1000 = 6
    P1111 = 7

    @property
    def step(self) -> int:
        """How far apart the columns are that it takes."""
        return 4 // self.name.count("1")

    @property
    def first(self) -> int:
        """The first column that it takes; the digits count from the right."""
        return self.name[::-1].index("1")


class CmpType(IntEnum):
    """The comparison `cmp` and `cmps` make."""

    EQ = 0
    NE = 1
    LT = 2
    LE = 3
    GT = 4
    GE = 5


class RoundMode(IntEnum):
    """How `cast` rounds when the target cannot hold the value."""

    none = 0
    rint = 1
    round = 2
    floor = 3
    ceil = 4
    trunc = 5
    odd = 6
