"""`pl.max` and `pl.min`, which fold one value or compare two numbers, as type checkers see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from tilewright.ops.axes import max as max
from tilewright.ops.axes import min as min

if TYPE_CHECKING:
    from tilewright.core.annotations import Number, Scalar, X

    class Extreme:
        """What both are."""

        @overload
        def __call__(self, x: X, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> X: ...
        @overload
        def __call__(self, x: Number, axis: Number) -> Scalar: ...
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            """Return the largest or smallest."""

    max, min = Extreme(), Extreme()
