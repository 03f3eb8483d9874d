"""Reductions of the host: what each rank runs of a host-level collective where all see the windows of all.

Elements are reduced in the order of ranks, each by one rank and rounded after each step, as the collectives' meanings
have it.
"""
# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# annotations are evaluated, and mean something to the language: callers choose element types

from functools import cache
from typing import Any

import tilewright.frontend.directives as pl
from tilewright.core.annotations import DistributedTensor, InOut, Scalar, dynamic
from tilewright.core.enums import FunctionType, Level, NotifyOp, ReduceOp, WaitCmp
from tilewright.core.program import Function
from tilewright.dtypes import INT32, INT64, DataType
from tilewright.frontend.collectives import BLOCK, COMBINED, settling
from tilewright.frontend.programs import function
from tilewright.ops.load import load
from tilewright.ops.memory import store
from tilewright.ops.ranks import nranks, part, rank
from tilewright.ops.signals import notify, wait

NR, SIZE, TELLING = dynamic("NR"), dynamic("SIZE"), dynamic("TELLING")
Cells: Any = InOut[DistributedTensor[[TELLING, 1], INT32]]
"""A signal for each rank, their number told from the extents of functions that take them besides."""


@cache
def summed_rows(dtype: DataType) -> Function:
    """Return what sums the rows that are a rank's, while others may still make theirs and tell so step by step.

    A step makes so many elements, one behind the other, and there are so many `steps`, none where all is made; what was
    told is taken back.
    """
    combine, settle = COMBINED[ReduceOp.Sum], settling(dtype)
    rows: Any = InOut[DistributedTensor[[NR, SIZE], dtype]]

    @function(type=FunctionType.Orchestration)
    def sum_rows(target: rows, told: Cells, made: Scalar[INT64], steps: Scalar[INT32]):
        with pl.at(level=Level.CORE_GROUP):
            me = rank(target)
            for block in pl.range((target.shape[1] + BLOCK - 1) // BLOCK):
                last = min((block + 1) * BLOCK, target.shape[1])
                needed = min((me * target.shape[1] + last + made - 1) // made, steps)
                for peer in pl.range(nranks(target)):
                    wait(told, [peer, 0], needed, cmp=WaitCmp.Ge)
                total = load(part(target, 0), [me, block * BLOCK], [1, BLOCK], clamp=True)
                for peer in pl.range(1, nranks(target)):
                    total = combine(total, load(part(target, peer), [me, block * BLOCK], [1, BLOCK], clamp=True))
                store(settle(total), [me, block * BLOCK], target)
            for peer in pl.range(nranks(target)):
                notify(told, me, [peer, 0], -steps, op=NotifyOp.AtomicAdd)

    return sum_rows


@cache
def telling() -> Function:
    """Return what tells all ranks that this one has taken another step."""

    @function(type=FunctionType.InCore)
    def tell(told: Cells):
        me = rank(told)
        for peer in pl.range(nranks(told)):
            notify(told, peer, [me, 0], 1, op=NotifyOp.AtomicAdd)

    return tell


@cache
def reduced_blocks(dtype: DataType, op: ReduceOp) -> Function:
    """Return what reduces every so many blocks of a window, and hands them to all ranks."""
    combine, settle = COMBINED[op], settling(dtype)
    elements: Any = InOut[DistributedTensor[[SIZE], dtype]]

    @function(type=FunctionType.Orchestration)
    def reduce_blocks(target: elements):
        with pl.at(level=Level.CORE_GROUP):
            every = nranks(target)
            for block in pl.range(rank(target), (target.shape[0] + BLOCK - 1) // BLOCK, every):
                total = load(part(target, 0), [block * BLOCK], [BLOCK], clamp=True)
                for peer in pl.range(1, every):
                    total = combine(total, load(part(target, peer), [block * BLOCK], [BLOCK], clamp=True))
                made = settle(total)
                for peer in pl.range(every):
                    store(made, [block * BLOCK], part(target, peer))

    return reduce_blocks


@cache
def awaiting(per: int, pieces: int) -> Function:
    """Return what waits for the rows of a step, of `per` steps for the rows of each rank, which come in `pieces`."""

    @function(type=FunctionType.InCore)
    def await_rows(arrived: Cells, step: Scalar[INT64]):
        wait(arrived, [step // per, 0], step % per * pieces // per + 1, cmp=WaitCmp.Ge)

    return await_rows
