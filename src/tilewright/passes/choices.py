"""Choices: what a `PassContext` says for an NPU; none of it changes what a program computes."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum


class MemoryPlanner(Enum):
    """Who places tiles in an NPU's memories; on a processor our own pass always does."""

    PYPTO = "PYPTO"
    DSA_RP = "DSA_RP"
    PTOAS = "PTOAS"


class RuntimeKind(Enum):
    """Who builds the graph of a program's tasks on an NPU: its control processor as it runs, or the host before."""

    TENSORMAP_AND_RINGBUFFER = "tensormap_and_ringbuffer"
    HOST_BUILD_GRAPH = "host_build_graph"


class DiagnosticPhase(Enum):
    """When a compiler for NPUs looks for what is legal and probably not meant."""

    NONE = "NONE"
    PRE_PIPELINE = "PRE_PIPELINE"
    POST_PASS = "POST_PASS"
    POST_PIPELINE = "POST_PIPELINE"


class DiagnosticCheck(Enum):
    """One thing that is looked for then."""

    UnusedVariable = "UnusedVariable"
    UnusedControlFlowResult = "UnusedControlFlowResult"
    TileInnermostDimGranularity = "TileInnermostDimGranularity"
    OutParamWriteDropped = "OutParamWriteDropped"


class DiagnosticCheckSet:
    """Some of the checks."""

    def __init__(self, checks: Iterable[DiagnosticCheck] = ()) -> None:
        self._checks = set(checks)

    def insert(self, check: DiagnosticCheck) -> None:
        """Add a check."""
        self._checks.add(check)

    def remove(self, check: DiagnosticCheck) -> None:
        """Take a check out, where it is in."""
        self._checks.discard(check)

    def contains(self, check: DiagnosticCheck) -> bool:
        """Return whether a check is in."""
        return check in self._checks

    def empty(self) -> bool:
        """Return whether none is in."""
        return not self._checks

    def difference(self, other: DiagnosticCheckSet) -> DiagnosticCheckSet:
        """Return those that are not in another set."""
        return DiagnosticCheckSet(self._checks - other._checks)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DiagnosticCheckSet) and self._checks == other._checks

    def __repr__(self) -> str:
        return f"DiagnosticCheckSet([{', '.join(sorted(check.name for check in self._checks))}])"
