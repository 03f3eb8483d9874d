"""Distant parts: what a program fetches from ranks that share no memory with it, and sends them."""

from __future__ import annotations

import pytest

import tilewright.language as pl
from tilewright.core.expr import Call
from tilewright.core.op import Kind
from tilewright.core.program import Program
from tilewright.core.visitor import statements, used
from tilewright.errors import UnsupportedFeatureError
from tilewright.passes import distant

KERNEL = """
import tilewright.language.distributed as pld
X = pl.Tensor[[8, 32], pl.FP32]
W = pld.DistributedTensor[[8, 32], pl.FP32]

@pl.program
class Ranks:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, x: X, y: pl.InOut[X], w: pl.InOut[W]):
        peer = pld.rank(w) + 1
"""


def program(*lines: str) -> Program:
    made = pl.parse(KERNEL + "".join(f"        {line}\n" for line in lines))
    assert isinstance(made, Program)
    return made


def ops(*lines: str) -> list[str]:
    """Return the ops of a kernel that is made for distant ranks."""
    found = [e for s in statements(distant.run(program(*lines))["kernel"].body) for e in used(s)]
    return [e.op.name for e in found if isinstance(e, Call) and e.op.kind is not Kind.SCALAR]


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("pld.tensor.put(w, peer, x)", ["distributed.part", "tensor.assemble", "distributed.send"]),
        ("pld.tensor.get(y, peer, w)", ["distributed.part", "distributed.fetch", "tensor.assemble"]),
        (
            "pl.store(pld.tile.remote_load(w, peer, [0, 0], [4, 32]), [0, 0], y)",
            ["distributed.part", "distributed.fetch", "tile.load", "tile.store"],
        ),
        (
            "pld.tile.remote_store(pl.load(x, [0, 0], [4, 32]), w, peer, [0, 0])",
            ["tile.load", "distributed.part", "tile.store", "distributed.send"],
        ),
        (
            "pld.tile.remote_store(pl.load(x, [0, 0], [4, 32]), w, peer, [0, 0], atomic=pl.AtomicType.Add)",
            ["tile.load", "distributed.part", "distributed.fetch", "tile.store", "distributed.send"],
        ),
        (
            "pl.write(pld.part(w, peer), [0, 0], pl.read(pld.part(w, peer), [1, 1]))",
            ["distributed.part"] * 2 + ["distributed.fetch", "tensor.read", "tensor.write", "distributed.send"],
        ),
        ("pl.store(pl.load(w, [0, 0], [4, 32]), [0, 0], y)", ["tile.load", "tile.store"]),
    ],
)  # fmt: skip
def test_what_is_read_of_a_peer_is_fetched_and_what_is_written_is_sent(line: str, wanted: list[str]) -> None:
    assert ops(line) == ["distributed.rank", *wanted]


def test_a_loop_that_reads_its_peers_fetches_in_every_turn() -> None:
    found = ops("for p in pl.range(3):", "    pld.tensor.get(y, p, w, [p, 0], [p, 0], [1, 32])")
    assert found[1:] == ["distributed.part", "tensor.slice", "distributed.fetch", "tensor.assemble"]


def test_elements_behind_a_mask_cannot_be_sent() -> None:
    with pytest.raises(UnsupportedFeatureError, match="`store` cannot write to the part of a rank on another machine"):
        distant.run(program("t = pl.load(x, [0, 0], [8, 32])", "pl.store(t, [0, 0], pld.part(w, peer), mask=t > 0.0)"))
