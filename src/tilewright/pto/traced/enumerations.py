"""Enumerations: words that bodies may write instead of text, as `pto.Pipe.V` for `"PIPE_V"`."""

from __future__ import annotations

from enum import Enum

from tilewright.pto import types


class Word(str, Enum):
    """Text that is one of a few words."""


class Pipe(Word):
    """A queue of instructions that run in order."""

    S, V, M, MTE1, MTE2, MTE3 = "PIPE_S", "PIPE_V", "PIPE_M", "PIPE_MTE1", "PIPE_MTE2", "PIPE_MTE3"
    MTE4, MTE5, FIX, ALL = "PIPE_MTE4", "PIPE_MTE5", "PIPE_FIX", "PIPE_ALL"


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

    VV_ALL, VST_VLD, VLD_VST, VST_VST = "VV_ALL", "VST_VLD", "VLD_VST", "VST_VST"
    VS_ALL, VST_LD, VLD_ST, VST_ST = "VS_ALL", "VST_LD", "VLD_ST", "VST_ST"
    SV_ALL, ST_VLD, LD_VST, ST_VST = "SV_ALL", "ST_VLD", "LD_VST", "ST_VST"


class MaskPattern(Word):
    """Which lanes of a mask are on."""

    ALL, ALLF, H, Q, M3, M4 = "PAT_ALL", "PAT_ALLF", "PAT_H", "PAT_Q", "PAT_M3", "PAT_M4"
    (
        VL1, VL2, VL3, VL4, VL5, VL6, VL7, VL8, VL9, VL10, VL11, VL12, VL13, VL14, VL15, VL16, VL17, VL18, VL19,
        VL20, VL21, VL22, VL23, VL24, VL25, VL26, VL27, VL28, VL29, VL30, VL31, VL32, VL33, VL34, VL35, VL36, VL37,
        VL38, VL39, VL40, VL41, VL42, VL43, VL44, VL45, VL46, VL47, VL48, VL49, VL50, VL51, VL52, VL53, VL54, VL55,
        VL56, VL57, VL58, VL59, VL60, VL61, VL62, VL63, VL64, VL65, VL66, VL67, VL68, VL69, VL70, VL71, VL72, VL73,
        VL74, VL75, VL76, VL77, VL78, VL79, VL80, VL81, VL82, VL83, VL84, VL85, VL86, VL87, VL88, VL89, VL90, VL91,
        VL92, VL93, VL94, VL95, VL96, VL97, VL98, VL99, VL100, VL101, VL102, VL103, VL104, VL105, VL106, VL107,
        VL108, VL109, VL110, VL111, VL112, VL113, VL114, VL115, VL116, VL117, VL118, VL119, VL120, VL121, VL122,
        VL123, VL124, VL125, VL126, VL127, VL128,
    ) = (f"PAT_VL{count}" for count in range(1, 129))  # fmt: skip


PAT = MaskPattern


class CmpMode(Word):
    """A comparison."""

    EQ, NE, LT, LE, GT, GE = "eq", "ne", "lt", "le", "gt", "ge"


class PredicatePart(Word):
    """Half of a mask."""

    LOWER, HIGHER = "LOWER", "HIGHER"


VPackPart = PredicatePart


class PredicateDist(Word):
    """How a mask lies in memory."""

    NORM, US, DS, PK = "NORM", "US", "DS", "PK"


class VStoreDist(Word):
    """How lanes are spread over memory by a store."""

    NORM_B8, NORM_B16, NORM_B32 = "NORM_B8", "NORM_B16", "NORM_B32"
    _1PT_B8, _1PT_B16, _1PT_B32 = "1PT_B8", "1PT_B16", "1PT_B32"
    locals().update({"1PT_B8": _1PT_B8, "1PT_B16": _1PT_B16, "1PT_B32": _1PT_B32})  # names that only text can spell
    PK_B16, PK_B32, PK_B64, PK4_B32 = "PK_B16", "PK_B32", "PK_B64", "PK4_B32"
    MRG4CHN_B8, MRG2CHN_B8, MRG2CHN_B16 = "MRG4CHN_B8", "MRG2CHN_B8", "MRG2CHN_B16"


class DeinterleaveDist(Word):
    """How a load deals elements out to two registers."""

    DINTLV_B8, DINTLV_B16, DINTLV_B32, BDINTLV = "DINTLV_B8", "DINTLV_B16", "DINTLV_B32", "BDINTLV"


class InterleaveDist(Word):
    """How a store merges two registers."""

    INTLV_B8, INTLV_B16, INTLV_B32 = "INTLV_B8", "INTLV_B16", "INTLV_B32"


class PostUpdate(Word):
    """Whether a load or store moves its pointer on."""

    OFF = NO_POST_UPDATE = "NO_POST_UPDATE"
    ON = POST_UPDATE = "POST_UPDATE"


class BLayout(Word):
    """The order of a tile's boxes, or of its elements where it has none."""

    ROW_MAJOR, COL_MAJOR = "row_major", "col_major"


class SLayout(Word):
    """The order of elements inside a tile's boxes."""

    NONE_BOX, ROW_MAJOR, COL_MAJOR = "none_box", "row_major", "col_major"


class SatMode(Word):
    """What becomes of numbers that are out of range."""

    ON, OFF, PRESERVE_NAN = "ON", "OFF", "PRESERVE_NAN"


class SplitMode(Word):
    """Along which axis a product is shared out."""

    M, N = "split_m", "split_n"


class PartMode(Word):
    """Which lanes of a wider register."""

    EVEN, ODD = "EVEN", "ODD"


class PositionMode(Word):
    """Which of a register's lanes is spread."""

    LOWEST, HIGHEST = "LOWEST", "HIGHEST"


class VcvtRoundMode(Word):
    """How a register's elements are rounded."""

    R, A, F, C, Z, O, H = "R", "A", "F", "C", "Z", "O", "H"  # noqa: E741


class VcvtSatMode(Word):
    """What becomes of a register's elements that are out of range."""

    SAT, NOSAT, RS_ENABLE, RS_DISABLE = "SAT", "NOSAT", "RS_ENABLE", "RS_DISABLE"


class VcvtPartMode(Word):
    """Which lanes a conversion reads or writes."""

    EVEN, ODD, P0, P1, P2, P3 = "EVEN", "ODD", "P0", "P1", "P2", "P3"


class RoundMode(Word):
    """How a tile's elements are rounded."""

    NONE, RINT, ROUND, FLOOR, CEIL, TRUNC, ODD = "NONE", "RINT", "ROUND", "FLOOR", "CEIL", "TRUNC", "ODD"
    CAST_RINT = "CAST_RINT"


class FractalMode(Word):
    """How a copy lays elements out anew: by rows, by columns or in boxes."""

    ND2NZ, DN2NZ, NZ2ND, NZ2DN, NZ2NZ = "nd2nz", "dn2nz", "nz2nd", "nz2dn", "nz2nz"


class AccStoreUnitFlagCtrl(Word):
    """What a copy out of an accumulator does with its flag."""

    CHECK_ONLY, CHECK_AND_CLEAR = "check_only", "check_and_clear"


class MadUnitFlagMode(Word):
    """What a product does with the flag of its accumulator."""

    CHECK_ONLY, CHECK_AND_SET = "check_only", "check_and_set"


class Tf32Mode(Word):
    """How f32 operands of a product lose their last bits."""

    ROUND_EVEN, ROUND_AWAY = "round_even", "round_away"


class Precision(Word):
    """How exact a function is asked to be."""

    DEFAULT, HIGH_PRECISION = "DEFAULT", "HIGH_PRECISION"


DivPrecision = ExpPrecision = LogPrecision = RecipPrecision = RsqrtPrecision = SqrtPrecision = Precision
