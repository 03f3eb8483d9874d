"""Programs of many ranks that are wrong: what stands in a kernel or in a host function, and what is said of it."""

from typing import NamedTuple

HEAD = """\
import tilewright.language as pl
import tilewright.language.distributed as pld

W = pl.InOut[pld.DistributedTensor[[4, 8], pl.FP32]]
S = pl.InOut[pld.DistributedTensor[[4, 1], pl.INT32]]


@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, x: pl.Tensor[[4, 8], pl.FP32], n: pl.Scalar[pl.INT32], w: W, s: S):
        {kernel}

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(self, x: pl.Tensor[[4, 8], pl.FP32], n: pl.Scalar[pl.INT32], w: W, s: S):
        self.kernel(x, n, w, s)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self, x: pl.Tensor[[2, 4, 8], pl.FP32]):
        {host}
"""


class Case(NamedTuple):
    """A statement of a kernel or of a host function, the class of its mistake, and words of the message."""

    kernel: str
    host: str
    error: str
    quoted: str

    @property
    def text(self) -> str:
        host = self.host.replace("\n", "\n        ") or "pass"
        return HEAD.format(kernel=self.kernel or "pass", host=host)


def kernel(text: str, error: str, quoted: str) -> Case:
    return Case(text, "", error, quoted)


def host(text: str, error: str, quoted: str) -> Case:
    return Case("", text, error, quoted)


WINDOWS = "must be a DistributedTensor (window-bound)"

CASES = [
    kernel("pld.tensor.scatter(w)", "InvalidOperationError", "Unknown distributed operation 'pld.tensor.scatter'"),
    kernel("pld.put_all(w)", "InvalidOperationError", "Unknown distributed operation 'pld.put_all'"),
    kernel("n = pld.world_size()", "ParserSyntaxError", "`world_size` is for host functions"),
    kernel("b = pld.alloc_window_buffer(64)", "ParserSyntaxError", "`alloc_window_buffer` is for host functions"),
    kernel("v = pld.window(w, [4, 8], dtype=pl.FP32)", "ParserSyntaxError", "`window` is for host functions"),
    kernel("me = pld.rank(x)", "ParserTypeError", WINDOWS),
    kernel("ctx = pld.get_comm_ctx(x)", "ParserTypeError", WINDOWS),
    kernel("pld.tensor.put(x, 0, w)", "ParserTypeError", WINDOWS),
    kernel("pld.tensor.get(w, 0, x)", "ParserTypeError", WINDOWS),
    kernel("t = pld.tile.remote_load(x, 0, [0, 0], [1, 8])", "ParserTypeError", WINDOWS),
    kernel("pld.tensor.allreduce(x, s)", "ParserTypeError", WINDOWS),
    kernel("pld.tensor.allreduce(w, x)", "ParserTypeError", WINDOWS),
    kernel("pld.tensor.allreduce(w)", "ParserTypeError", "`allreduce` needs its signal in a kernel"),
    kernel("pld.tensor.allreduce(w, s, mode='tree')", "ParserError", "mode cannot be 'tree'"),
    kernel("pld.tensor.allreduce(w, s, op=7)", "ParserError", "op cannot be 7"),
    kernel("pld.tensor.broadcast(w, s, root=-1)", "ParserError", "root is a rank"),
    kernel("pld.tensor.allgather(w, w, s)", "ParserTypeError", "are two buffers, got one"),
    kernel("pld.tensor.put(w, 0, s)", "ParserTypeError", "cannot be copied"),
    kernel("pld.tensor.put(w, 0, x, [0, 0])", "ParserError", "takes all of dst_offsets, src_offsets, shape"),
    kernel("pld.tensor.put(w, 0, x, pipeline=True)", "ParserError", "pipeline=True needs chunk_rows and chunk_cols"),
    kernel("pld.tensor.put(w, -1, x)", "ParserError", "`peer` is -1, and ranks count from 0"),
    kernel("pld.tensor.put(w, 0, x, [4, 0], [0, 0], [1, 8])", "ParserError", "lie outside 0 to 4"),
    kernel("pld.tensor.remote_store(w, w, 0, [0, 0])", "ParserTypeError", "`src` is a window"),
    kernel("pld.system.notify(w, 0, [0, 0], 1, op=pld.NotifyOp.Set)", "ParserTypeError", "cells of an int32 window"),
    kernel("pld.system.notify(s, 0, [0], 1, op=pld.NotifyOp.Set)", "ParserTypeError", "one entry per axis"),
    kernel("pld.system.notify(s, 0, [4, 0], 1, op=pld.NotifyOp.Set)", "ParserError", "index 4 lies outside 0 to 4"),
    kernel("pld.system.notify(s, 0, [0, 0], 1, op=2)", "ParserError", "op cannot be 2"),
    kernel("pld.system.wait(s, [0, 0], 1.5, cmp=pld.WaitCmp.Ge)", "ParserTypeError", "integer"),
    kernel("pld.system.defer_wait(s, [0, 0], 1, cmp=1)", "ParserSyntaxError", "in a kernel of its own that has a name"),
    kernel("pld.system.wait(s, [0, 0], 1, cmp=5)", "ParserError", "cmp cannot be 5"),
    host("pld.alloc_window_buffer(64)", "ParserSyntaxError", "a window buffer is assigned to a name"),
    host("b = pld.alloc_window_buffer(64, name='b')", "ParserSyntaxError", "takes no name="),
    host("b = pld.alloc_window_buffer(64)\nb = pld.alloc_window_buffer(32)", "ParserSyntaxError", "assigned 2 times"),
    host(
        "for r in pl.range(2):\n    b = pld.alloc_window_buffer(64)", "ParserSyntaxError",
        "each turn of this loop would have another buffer `b`",
    ),
    host("b = pld.alloc_window_buffer([4, 8])", "ParserError", "a window buffer with a shape needs a dtype"),
    host("b = pld.alloc_window_buffer(64, dtype=pl.FP32)", "ParserError", "a number of bytes takes no dtype"),
    host("b = pld.alloc_window_buffer(0)", "ParserError", "one byte or more"),
    host(
        "b = pld.alloc_window_buffer(64)\nw = pld.window(b, [4, 8], dtype=pl.FP32)", "ParserError",
        "takes 128 bytes, and the buffer has 64",
    ),
    host("w = pld.window(x, [4, 8], dtype=pl.FP32)", "ParserTypeError", WINDOWS),
    host("self.chip(x[0], 1, x[0], x[0], device=0)", "ParserTypeError", WINDOWS),
    host(
        "b = pld.alloc_window_buffer(128)\nw = pld.window(b, [4, 8], dtype=pl.FP32)\n"
        "s = pld.window(b, [4, 1], dtype=pl.INT32)\nself.kernel(x[0], 1, w, s, device=0)",
        "ParserSyntaxError", "a host function dispatches to chips alone",
    ),
    host(
        "b = pld.alloc_window_buffer(128)\nw = pld.window(b, [4, 8], dtype=pl.FP32)\n"
        "s = pld.window(b, [4, 1], dtype=pl.INT32)\nself.chip(x[0], 1, w, s, device=-1)",
        "ParserTypeError", "ranks count from 0",
    ),
    host(
        "b = pld.alloc_window_buffer(128)\nw = pld.window(b, [4, 8], dtype=pl.FP32)\n"
        "s = pld.window(b, [4, 1], dtype=pl.INT32)\nself.chip(x[0], 1, w, s, device=0.5)",
        "ParserTypeError", "device= is a rank, an integer",
    ),
]  # fmt: skip
