"""Made on a device: tensors that a program has made, copied out of memory that ends with the call."""

from __future__ import annotations

import sys
from typing import Any

from tilewright.call.argument import Argument
from tilewright.dtypes import to_torch
from tilewright.errors import ExecutionError
from tilewright.records import record


@record
class Bytes:
    """The bytes of a tensor of a GPU, as others take them: each element is a row of them."""

    argument: Argument

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Where they lie."""
        shape, strides = (*self.argument.shape, self.argument.dtype.get_byte()), (*self.argument.strides, 1)
        return {
            "version": 3,
            "typestr": "|u1",
            "data": (self.argument.address, False),
            "shape": shape,
            "strides": strides,
        }


def copied(made: Argument) -> Any:
    """Return a tensor of torch with what a program has made; ExecutionError where there is no torch."""
    torch: Any = sys.modules.get("torch")
    if torch is None:
        raise ExecutionError("a program that returns a tensor it makes on a GPU needs torch", help="pass an output")
    lent = torch.as_tensor(Bytes(made), device=made.device)
    return lent.clone(memory_format=torch.contiguous_format).view(to_torch(made.dtype)).reshape(made.shape)
