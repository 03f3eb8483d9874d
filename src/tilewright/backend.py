"""`tilewright.backend`: which of the PTO family's processors is meant, and how many cores each has."""

from tilewright.errors import PartialCodegenError
from tilewright.programs.npus import (
    Backend910B,
    Backend950,
    CoreType,
    get_backend_instance,
    get_backend_type,
    is_backend_configured,
    reset_for_testing,
    set_backend_type,
)
from tilewright.programs.platforms import BackendType

__all__ = [
    "Backend910B",
    "Backend950",
    "BackendType",
    "CoreType",
    "PartialCodegenError",
    "get_backend_instance",
    "get_backend_type",
    "is_backend_configured",
    "reset_for_testing",
    "set_backend_type",
]
