"""NPUs: the PTO family's processors as descriptions count their cores, and which of them a process means.

None of them runs anything here: programs ask how many cores there are to size their grids.
"""

from __future__ import annotations

from enum import Enum

from tilewright.programs import fields
from tilewright.programs.platforms import BackendType
from tilewright.records import record


class CoreType(Enum):
    """What a core computes."""

    CUBE = "CUBE"
    VECTOR = "VECTOR"


@record
class Core:
    """One core."""

    core_type: CoreType


@record
class Cluster:
    """Cores that work together."""

    cores: tuple[tuple[Core, int], ...]

    @property
    def core_counts(self) -> dict[Core, int]:
        """How many of each core it has."""
        return dict(self.cores)


@record
class Die:
    """Clusters on one piece of silicon."""

    clusters: tuple[tuple[Cluster, int], ...]

    @property
    def cluster_counts(self) -> dict[Cluster, int]:
        """How many of each cluster it has."""
        return dict(self.clusters)


@record
class SoC:
    """A whole processor."""

    dies: tuple[tuple[Die, int], ...]

    @property
    def die_counts(self) -> dict[Die, int]:
        """How many of each die it has."""
        return dict(self.dies)

    def cores(self, core_type: CoreType) -> int:
        """Return how many cores of a type there are in all."""
        return sum(
            dies * clusters * cores
            for die, dies in self.dies
            for cluster, clusters in die.clusters
            for core, cores in cluster.cores
            if core.core_type is core_type
        )


CUBE, VECTOR = Core(CoreType.CUBE), Core(CoreType.VECTOR)


class Npu:
    """One of the PTO family's processors, of which a process has one object."""

    backend_type: BackendType
    soc: SoC

    @classmethod
    def instance(cls) -> Npu:
        """Return the one object of this processor."""
        return get_backend_instance(cls.backend_type)


class Backend910B(Npu):
    """The older one: cores of each kind in clusters of their own."""

    backend_type = BackendType.Ascend910B
    soc = SoC(((Die(((Cluster(((CUBE, 1),)), 24), (Cluster(((VECTOR, 1),)), 48))), 1),))


class Backend950(Npu):
    """The newer one: each cluster has one core for products and two for vectors."""

    backend_type = BackendType.Ascend950
    soc = SoC(((Die(((Cluster(((CUBE, 1), (VECTOR, 2))), 18),)), 2),))


_NPUS = {npu.backend_type: npu() for npu in (Backend910B, Backend950)}
_chosen: list[BackendType] = []


def set_backend_type(backend_type: BackendType) -> None:
    """Say which processor programs are for that do not name one; ValueError where another was said before."""
    wanted = _known(backend_type)
    if _chosen and _chosen[0] is not wanted:
        raise ValueError(f"the backend type is {_chosen[0].name} already, and cannot become {wanted.name}")
    _chosen[:] = [wanted]


def get_backend_type() -> BackendType:
    """Return the processor that was said; ValueError where none was."""
    if not _chosen:
        raise ValueError("no backend type is set: call set_backend_type first")
    return _chosen[0]


def meant() -> BackendType | None:
    """Return the processor that was said, None where none was."""
    return _chosen[0] if _chosen else None


def is_backend_configured() -> bool:
    """Return whether a processor was said."""
    return bool(_chosen)


def reset_for_testing() -> None:
    """Forget which processor was said."""
    _chosen.clear()


def get_backend_instance(backend_type: BackendType) -> Npu:
    """Return the one object of a processor."""
    return _NPUS[_known(backend_type)]


def _known(backend_type: object) -> BackendType:
    return fields.one_of(BackendType)("backend_type", backend_type)
