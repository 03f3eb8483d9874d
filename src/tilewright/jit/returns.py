"""Returns: the parameters that a kernel gives back, by what its return statements say."""

from __future__ import annotations

import ast
from collections.abc import Collection

from tilewright.frontend.kernels import Kernel


def returned_names(kernel: Kernel, declared: Collection[str]) -> list[str]:
    """Return the parameters that all return statements name, in order; none where they name anything else."""
    found = [node.value for node in ast.walk(kernel.captured.node) if isinstance(node, ast.Return) and node.value]
    names = {ast.unparse(value).strip("()") for value in found}
    parts = [part.strip() for part in names.pop().split(",")] if len(names) == 1 else []
    return parts if all(part in declared for part in parts) else []
