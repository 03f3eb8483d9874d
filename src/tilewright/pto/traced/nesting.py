"""Nesting: what sub-kernels may hold: none holds another, and a tile op no more than what computes."""

from __future__ import annotations

import ast
from collections.abc import Generator
from contextlib import contextmanager

from tilewright.errors import UnsupportedFeatureError
from tilewright.pto.module import Op, Region
from tilewright.pto.traced.subkernels import CUBE_OPS, SIMT_OPS
from tilewright.pto.traced.tracer import Tracer
from tilewright.pto.types import Mask, VReg


@contextmanager
def alone(t: Tracer, kind: str, node: ast.AST) -> Generator[None]:
    """Let a sub-kernel be written out, or what is none where `kind` is ""; raise inside of another one."""
    outer = t.program.inside
    if kind and outer:
        help = "open it in the kernel, beside the other one; what both need is a plain function, or a @pto.func"
        raise t.error(UnsupportedFeatureError, node, f"a pto.{kind} stands inside of a pto.{outer}", help=help)
    t.program.inside = kind or outer
    yield
    t.program.inside = outer


_BESIDE = {
    "pto.alloc_tile": "allocate it in the kernel, and pass it",
    "pto.mte_gm": "copy it in the kernel, before", "pto.mte_ub_gm": "copy it in the kernel, after",
    "pto.set_flag": "set it in the kernel", "pto.wait_flag": "wait for it in the kernel",
    **dict.fromkeys(SIMT_OPS, "launch a pto.simt function that does"),
    "pto.sync.": "signal in the kernel", "pto.get_buf": "do so in the kernel", "pto.rls_buf": "do so in the kernel",
}  # fmt: skip
"""What the names of ops begin with that no tile op holds, and where they go instead."""


def is_on_the_cube(t: Tracer, kind: str, region: Region, node: ast.AST) -> bool:
    """Return whether the ops of a sub-kernel are the cube's; raise for a tile op that holds what none does."""
    ops = [op for outer in region.ops for op in outer.walk()]
    if kind == "tileop":
        _refuse_more(t, ops, node)
    return kind == "cube" or any(op.name.startswith(CUBE_OPS) for op in ops)


def _refuse_more(t: Tracer, ops: list[Op], node: ast.AST) -> None:
    """Raise where a tile op holds ops of both cores, or others than those that compute."""
    for op in ops:
        for name, help in _BESIDE.items():
            if op.name.startswith(name):
                raise t.error(UnsupportedFeatureError, node, f"a pto.tileop has no `{op.name}`", help=help)
        if op.outs and not op.name.startswith(CUBE_OPS):
            message, help = f"a pto.tileop holds no other one, such as `{op.name}`", "call it in the kernel, beside it"
            raise t.error(UnsupportedFeatureError, node, message, help=help)
    on_cube = next((op for op in ops if op.name.startswith(CUBE_OPS)), None)
    vector = next((op for op in ops if _is_on_vectors(op)), None)
    if on_cube is not None and vector is not None:
        message = f"a pto.tileop runs on one core: `{on_cube.name}` is the cube's, `{vector.name}` the vector core's"
        raise t.error(UnsupportedFeatureError, node, message, help="make a tile op of each")


def _is_on_vectors(op: Op) -> bool:
    return any(isinstance(value.type, VReg | Mask) for value in (*op.operands, *op.results))
