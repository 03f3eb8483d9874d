"""Exports: a compiled program as what others take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewright.core.program import Program

if TYPE_CHECKING:
    from tilewright.programs.torch_op import TorchOp


class Exported:
    """What a compiled program can be written down or wrapped as."""

    declared: Program

    def as_pto(self) -> str:
        """Return the program as PTO text, which `pto.jit(source=...)` reads; `pto.NoPtoError` for what that cannot say.

        Its function takes the program's parameters, tensors as pointers, and then each named extent as an `index`.
        """
        from tilewright.programs.pto_text.export import as_pto

        return as_pto(self.declared)

    def as_torch_op(self: Any, name: str) -> TorchOp:
        """Return the program as an operator of torch, known there as `name`, as in `"mine::softmax"`; see `TorchOp`."""
        from tilewright.programs.torch_op import torch_op

        return torch_op(self.declared, self, name)
