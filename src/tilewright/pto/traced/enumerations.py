"""Enumerations: words that bodies may write instead of text, as `pto.Pipe.V` for `"PIPE_V"`."""

from __future__ import annotations

from enum import Enum

from tilewright.pto import types


class Word(str, Enum):
    """Text that is one of a few words."""


class Pipe(Word):
    """A queue of instructions that run in order."""

    S = "PIPE_S"
    V = "PIPE_V"
    M = "PIPE_M"
    MTE1 = "PIPE_MTE1"
    MTE2 = "PIPE_MTE2"
    MTE3 = "PIPE_MTE3"
    MTE4 = "PIPE_MTE4"
    MTE5 = "PIPE_MTE5"
    FIX = "PIPE_FIX"
    ALL = "PIPE_ALL"


class MemorySpace(Word):
    """A memory of the machine, for pointers and tiles."""

    GM = types.Space.GM.value
    UB = types.Space.VEC.value
    VEC = types.Space.VEC.value
    MAT = types.Space.MAT.value
    LEFT = types.Space.LEFT.value
    RIGHT = types.Space.RIGHT.value
    ACC = types.Space.ACC.value
    BIAS = types.Space.BIAS.value
    SCALING = types.Space.SCALING.value


class BarrierType(Word):
    """What a memory barrier lets finish before what."""

    VV_ALL = "VV_ALL"
    VST_VLD = "VST_VLD"
    VLD_VST = "VLD_VST"
    VST_VST = "VST_VST"
    VS_ALL = "VS_ALL"
    VST_LD = "VST_LD"
    VLD_ST = "VLD_ST"
    VST_ST = "VST_ST"
    SV_ALL = "SV_ALL"
    ST_VLD = "ST_VLD"
    LD_VST = "LD_VST"
    ST_VST = "ST_VST"


class MaskPattern(Word):
    """Which lanes of a mask are on."""

    ALL = "PAT_ALL"
    ALLF = "PAT_ALLF"
    H = "PAT_H"
    Q = "PAT_Q"
    M3 = "PAT_M3"
    M4 = "PAT_M4"
    VL1 = "PAT_VL1"
    VL2 = "PAT_VL2"
    VL3 = "PAT_VL3"
    VL4 = "PAT_VL4"
    VL8 = "PAT_VL8"
    VL16 = "PAT_VL16"
    VL32 = "PAT_VL32"
    VL64 = "PAT_VL64"
    VL128 = "PAT_VL128"


PAT = MaskPattern


class CmpMode(Word):
    """A comparison."""

    EQ = "eq"
    NE = "ne"
    LT = "lt"
    LE = "le"
    GT = "gt"
    GE = "ge"


class PredicatePart(Word):
    """Half of a mask."""

    LOWER = "LOWER"
    HIGHER = "HIGHER"


VPackPart = PredicatePart


class PredicateDist(Word):
    """How a mask lies in memory."""

    NORM = "NORM"
    US = "US"
    DS = "DS"
    PK = "PK"


class VStoreDist(Word):
    """How lanes are spread over memory by a store."""

    NORM_B8 = "NORM_B8"
    NORM_B16 = "NORM_B16"
    NORM_B32 = "NORM_B32"
    _1PT_B8 = "1PT_B8"
    _1PT_B16 = "1PT_B16"
    _1PT_B32 = "1PT_B32"
    PK_B16 = "PK_B16"
    PK_B32 = "PK_B32"
    PK_B64 = "PK_B64"
    PK4_B32 = "PK4_B32"
    MRG4CHN_B8 = "MRG4CHN_B8"
    MRG2CHN_B8 = "MRG2CHN_B8"
    MRG2CHN_B16 = "MRG2CHN_B16"


class DeinterleaveDist(Word):
    """How a load deals elements out to two registers."""

    DINTLV_B8 = "DINTLV_B8"
    DINTLV_B16 = "DINTLV_B16"
    DINTLV_B32 = "DINTLV_B32"
    BDINTLV = "BDINTLV"


class InterleaveDist(Word):
    """How a store merges two registers."""

    INTLV_B8 = "INTLV_B8"
    INTLV_B16 = "INTLV_B16"
    INTLV_B32 = "INTLV_B32"


class PostUpdate(Word):
    """Whether a load or store moves its pointer on."""

    OFF = "NO_POST_UPDATE"
    ON = "POST_UPDATE"
    NO_POST_UPDATE = "NO_POST_UPDATE"
    POST_UPDATE = "POST_UPDATE"


class BLayout(Word):
    """The order of a tile's boxes, or of its elements where it has none."""

    ROW_MAJOR = "row_major"
    COL_MAJOR = "col_major"


class SLayout(Word):
    """The order of elements inside a tile's boxes."""

    NONE_BOX = "none_box"
    ROW_MAJOR = "row_major"
    COL_MAJOR = "col_major"


class SatMode(Word):
    """What becomes of numbers that are out of range."""

    ON = "ON"
    OFF = "OFF"
    PRESERVE_NAN = "PRESERVE_NAN"


class SplitMode(Word):
    """Along which axis a product is shared out."""

    M = "split_m"
    N = "split_n"


class PartMode(Word):
    """Which lanes of a wider register."""

    EVEN = "EVEN"
    ODD = "ODD"


class PositionMode(Word):
    """Which of a register's lanes is spread."""

    LOWEST = "LOWEST"
    HIGHEST = "HIGHEST"


class VcvtRoundMode(Word):
    """How a register's elements are rounded."""

    R = "R"
    A = "A"
    F = "F"
    C = "C"
    Z = "Z"
    O = "O"  # noqa: E741
    H = "H"


class VcvtSatMode(Word):
    """What becomes of a register's elements that are out of range."""

    SAT = "SAT"
    NOSAT = "NOSAT"
    RS_ENABLE = "RS_ENABLE"
    RS_DISABLE = "RS_DISABLE"


class VcvtPartMode(Word):
    """Which lanes a conversion reads or writes."""

    EVEN = "EVEN"
    ODD = "ODD"
    P0 = "P0"
    P1 = "P1"
    P2 = "P2"
    P3 = "P3"


class RoundMode(Word):
    """How a tile's elements are rounded."""

    NONE = "NONE"
    RINT = "RINT"
    ROUND = "ROUND"
    FLOOR = "FLOOR"
    CEIL = "CEIL"
    TRUNC = "TRUNC"
    ODD = "ODD"
    CAST_RINT = "CAST_RINT"


class FractalMode(Word):
    """How a copy lays elements out anew: by rows, by columns or in boxes."""

    ND2NZ = "nd2nz"
    DN2NZ = "dn2nz"
    NZ2ND = "nz2nd"
    NZ2DN = "nz2dn"
    NZ2NZ = "nz2nz"


class AccStoreUnitFlagCtrl(Word):
    """What a copy out of an accumulator does with its flag."""

    CHECK_ONLY = "check_only"
    CHECK_AND_CLEAR = "check_and_clear"


class MadUnitFlagMode(Word):
    """What a product does with the flag of its accumulator."""

    CHECK_ONLY = "check_only"
    CHECK_AND_SET = "check_and_set"


class Tf32Mode(Word):
    """How f32 operands of a product lose their last bits."""

    ROUND_EVEN = "round_even"
    ROUND_AWAY = "round_away"


class Precision(Word):
    """How exact a function is asked to be."""

    DEFAULT = "DEFAULT"
    HIGH_PRECISION = "HIGH_PRECISION"


DivPrecision = ExpPrecision = LogPrecision = RecipPrecision = RsqrtPrecision = SqrtPrecision = Precision
