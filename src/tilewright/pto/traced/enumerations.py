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
