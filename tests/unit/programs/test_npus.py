"""NPUs: what a process means by one, and what programs ask of it to size their grids."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tilewright import backend
from tilewright.backend import Backend910B, Backend950, BackendType, CoreType


@pytest.fixture(autouse=True)
def nothing_said() -> Iterator[None]:
    backend.reset_for_testing()
    yield
    backend.reset_for_testing()


def test_a_backend_type_is_said_once() -> None:
    assert not backend.is_backend_configured()
    backend.set_backend_type(BackendType.Ascend950)
    backend.set_backend_type(BackendType.Ascend950)
    assert backend.is_backend_configured() and backend.get_backend_type() is BackendType.Ascend950
    with pytest.raises(ValueError, match="is Ascend950 already, and cannot become Ascend910B"):
        backend.set_backend_type(BackendType.Ascend910B)
    backend.reset_for_testing()
    with pytest.raises(ValueError, match="call set_backend_type first"):
        backend.get_backend_type()


def test_each_npu_is_one_object() -> None:
    assert Backend910B.instance() is backend.get_backend_instance(BackendType.Ascend910B)
    assert Backend950.instance() is not Backend910B.instance()
    assert isinstance(Backend950.instance(), Backend950)


@pytest.mark.parametrize(("npu", "cube", "vector"), [(Backend910B, 24, 48), (Backend950, 36, 72)])
def test_cores_are_counted_die_by_die(npu: type[Backend910B], cube: int, vector: int) -> None:
    found = dict.fromkeys(CoreType, 0)
    for die, dies in npu.instance().soc.die_counts.items():
        for cluster, clusters in die.cluster_counts.items():
            for core, cores in cluster.core_counts.items():
                found[core.core_type] += dies * clusters * cores
    assert found == {CoreType.CUBE: cube, CoreType.VECTOR: vector}
    assert npu.instance().soc.cores(CoreType.VECTOR) == vector
