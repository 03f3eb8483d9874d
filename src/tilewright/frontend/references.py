"""References: objects that are copied and pickled as Python's functions are, by where they stand."""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T")


class Uncopied:
    """Something that a copy shares: it is made once and never changed."""

    def __copy__(self: T) -> T:
        """Return the thing itself."""
        return self

    def __deepcopy__(self: T, memo: dict[int, Any]) -> T:
        """Return the thing itself."""
        return self


class Referred(Uncopied):
    """Something that pickle writes as its module and its name there; PicklingError where it is found under none."""

    def __reduce__(self) -> Any:
        """Return the name by which it is found in its module."""
        return vars(self)["__qualname__"]
