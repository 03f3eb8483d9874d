"""Declarations, compilations and launches that must be refused, each a file of its own."""

from __future__ import annotations

HEAD = "import ctypes\nimport numpy as np\nfrom tilewright import pto\n\n"

COPY = '''
TEXT = """
module {
  func.func @copy(%x: !pto.ptr<f32>, %out: !pto.ptr<f32, gm>, %n: index) {
    return
  }
}
"""

@pto.jit(source=TEXT)
def copy(x: pto.ptr(pto.f32, "gm"), out: pto.ptr(pto.f32, "GM"), n: pto.index):
    ...

x, out = np.zeros(8, np.float32), np.zeros(8, np.float32)
'''


def declared(parameters: str, **options: str) -> str:
    """Return a kernel without a source."""
    given = ", ".join(f"{name}={value}" for name, value in options.items())
    return f"@pto.jit({given})\ndef kernel({parameters}):\n    ...\n"


def against(text: str, parameters: str = 'x: pto.ptr(pto.f32, "gm"), n: pto.i32') -> str:
    """Return the compilation of a kernel whose source is `text`."""
    return f'@pto.jit(source="""\n{text}\n""")\ndef kernel({parameters}):\n    ...\n\nkernel.compile()\n'


def launched(launch: str) -> str:
    """Return a launch of a kernel that copies."""
    return f"{COPY}\n{launch}\n"


DECLARATIONS = {
    "no_parentheses": "@pto.jit\ndef kernel():\n    ...\n",
    "a_wrapper": "import functools\ndef plain(n: pto.i32):\n    ...\n"
    "@pto.jit()\n@functools.wraps(plain)\ndef kernel(*args):\n    return plain(*args)\n",
    "a_class": "@pto.jit()\nclass Kernel:\n    ...\n",
    "a_name_that_is_no_text": "@pto.jit(name=3)\ndef kernel():\n    ...\n",
    "mode": declared("n: pto.i32", mode="'fast'"),
    "backend": declared("n: pto.i32", backend="'cuda'"),
    "target": declared("n: pto.i32", target="'h100'"),
    "kernel_kind": declared("n: pto.i32", kernel_kind="'both'"),
    "entry": declared("n: pto.i32", entry="1"),
    "insert_sync": declared("n: pto.i32", insert_sync="'yes'"),
    "ast_rewrite": declared("n: pto.i32", ast_rewrite="'no'"),
    "frontend_options": declared("n: pto.i32", frontend_options="3"),
    "emitc_and_explicit": declared("n: pto.i32", backend="'emitc'", mode="'explicit'"),
    "no_annotation": declared("n"),
    "default_space": declared("x: pto.ptr(pto.f32)"),
    "local_space": declared('x: pto.ptr(pto.f32, "mat")'),
    "tensor_spec": declared("x: pto.tensor_spec((16, 16), pto.f32)"),
    "vreg": declared("x: pto.vreg(64, pto.f32)"),
    "mask": declared("x: pto.mask('b32')"),
    "a_body_beside_its_source": '@pto.jit(source="module {\\n}")\ndef kernel(n: pto.i32):\n    """What it is for."""\n'
    "    m = n + 1\n    pto.print('m is %d', m)\n",
    "struct": declared("x: pto.struct(a=pto.f32)"),
    "tile": declared("x: pto.Tile"),
    "tensor_view": declared("x: pto.TensorView"),
    "partition_tensor_view": declared("x: pto.PartitionTensorView"),
    "python_type": declared("n: int"),
    "text_that_is_no_annotation": declared("n: 'pto.f99'"),
    "narrow_scalar": declared("n: pto.f8e4m3"),
    "keyword_only_scalar": declared("*, n: pto.i32"),
    "constant_without_default": declared("*, rows: pto.const_expr"),
    "positional_constant": declared("rows: pto.const_expr = 16"),
    "unhashable_default": declared("*, rows: pto.const_expr = []"),
    "arguments": declared("*xs: pto.i32"),
    "keywords": declared("**xs: pto.i32"),
    "default": declared("n: pto.i32 = 3"),
    "result": "@pto.jit()\ndef kernel(n: pto.i32) -> int:\n    ...\n",
    "constant_of_a_helper": declared("*, rows: pto.const_expr = 16", entry="False"),
    "helper_with_a_result": "@pto.jit(entry=False)\ndef helper(n: pto.i32) -> pto.i32:\n    ...\n",
    "source_that_is_no_text": "from pathlib import Path\n\n" + declared("n: pto.i32", source="Path('kernel.pto')"),
    "source_of_a_helper": declared("n: pto.i32", source="'kernel.pto'", entry="False"),
    "source_with_constants": declared("n: pto.i32, *, rows: pto.const_expr = 16", source="'kernel.pto'"),
    "element_type": "pto.ptr(int)\n",
    "memory_space": "pto.ptr(pto.f32, 'shared')\n",
}

COMPILATIONS = {
    "missing_file": declared("n: pto.i32", source="'nowhere/kernel.pto'") + "\nkernel.compile()\n",
    "constants_for_a_source": f"{COPY}\ncopy.compile(rows=3, cols=4)\n",
    "unknown_constant": declared("n: pto.i32, *, rows: pto.const_expr = 16") + "\nkernel.compile(cols=3)\n",
    "unhashable_constant": declared("n: pto.i32, *, rows: pto.const_expr = 16") + "\nkernel.compile(rows=[])\n",
    "helper": declared("n: pto.i32", entry="False") + "\nkernel.compile()\n",
    "launched_helper": declared("n: pto.i32", entry="False") + "\nkernel[1, None](3)\n",
    "called_helper": declared("n: pto.i32", entry="False") + "\nkernel(3)\n",
    "called_kernel": declared("n: pto.i32") + "\nkernel(3)\n",
    "no_entry": against("module {\n  func.func @other(%n: i32) {\n    return\n  }\n}"),
    "no_functions": against("module {\n}"),
    "declaration_only": against("module {\n  func.func private @kernel(!pto.ptr<f32>, i32)\n}"),
    "two_entries": against(
        "module {\n"
        "  module attributes {pto.kernel_kind = #pto.kernel_kind<vector>} {\n"
        "    func.func @kernel(%n: i32) {\n      return\n    }\n  }\n"
        "  module attributes {pto.kernel_kind = #pto.kernel_kind<cube>} {\n"
        "    func.func @kernel(%n: i32) {\n      return\n    }\n  }\n}"
    ),
    "results_come_first": against("module {\n  func.func @kernel(%n: i32) -> i32 {\n    return %n : i32\n  }\n}"),
    "count_comes_second": against("module {\n  func.func @kernel(%n: i64) {\n    return\n  }\n}"),
    "types_come_third": against("module {\n  func.func @kernel(%x: !pto.ptr<f16>, %n: i64) {\n    return\n  }\n}"),
    "second_type": against("module {\n  func.func @kernel(%x: !pto.ptr<f32>, %n: i64) {\n    return\n  }\n}"),
    "signedness": against("module {\n  func.func @kernel(%n: i8) {\n    return\n  }\n}", "n: pto.ui8"),
    "index": against("module {\n  func.func @kernel(%n: i64) {\n    return\n  }\n}", "n: pto.index"),
    "space": against(
        "module {\n  func.func @kernel(%x: !pto.ptr<f32, ub>) {\n    return\n  }\n}", 'x: pto.ptr(pto.f32, "gm")'
    ),
    "unknown_op": against("module {\n  func.func @kernel(%n: i32) {\n    pto.frob %n : i32\n    return\n  }\n}"),
    "merged_twice": f"{COPY}\nother = pto.jit(source='// other' + TEXT)(copy.function)\n"
    "pto.merge_jit_modules(copy, other)\n",
    "merged_nothing": "pto.merge_jit_modules()\n",
    "merged_text": "pto.merge_jit_modules('module {}')\n",
    "parsed_number": "pto.parse(3)\n",
    "parsed_file": "pto.parse('nowhere.pto')\n",
}

LAUNCHES = {
    "no_stream": launched("copy[1](x, out, 0)"),
    "three_parts": launched("copy[1, None, 0](x, out, 0)"),
    "no_blocks": launched("copy[0, None](x, out, 0)"),
    "negative_blocks": launched("copy.compile()[-1, None](x, out, 0)"),
    "half_a_block": launched("copy[0.5, None](x, out, 0)"),
    "true_blocks": launched("copy[True, None](x, out, 0)"),
    "too_many_blocks": launched("copy[2**31, None](x, out, 0)"),
    "stream_text": launched("copy[1, 'default'](x, out, 0)"),
    "stream_value": launched("class Stream:\n    value = 'x'\n\ncopy[1, Stream()](x, out, 0)"),
    "too_few": launched("copy[1, None](x, out)"),
    "too_many": launched("copy[1, None](x, out, 0, 0)"),
    "by_name": launched("copy[1, None](x, out, n=0)"),
    "constant_at_launch": declared("n: pto.i32, *, ROWS: pto.const_expr = 8") + "\nkernel[1, None](3, ROWS=16)\n",
    "constant_by_position": declared("n: pto.i32, *, ROWS: pto.const_expr = 8") + "\nkernel.compile(16)\n",
    "list": launched("copy[1, None]([1.0], out, 0)"),
    "none": launched("copy[1, None](x, None, 0)"),
    "true": launched("copy[1, None](x, True, 0)"),
    "null": launched("copy[1, None](x, 0, 0)"),
    "null_pointer": launched("copy[1, None](ctypes.c_void_p(), out, 0)"),
    "no_address": launched("copy[1, None](x, -8, 0)"),
    "another_dtype": launched("copy[1, None](x.astype(np.float64), out, 0)"),
    "unknown_dtype": launched("copy[1, None](x.astype(np.complex64), out, 0)"),
    "another_byte_order": launched("copy[1, None](x.astype('>f4'), out, 0)"),
    "gaps": launched("copy[1, None](x[::2], out, 0)"),
    "transposed": launched("copy[1, None](x.reshape(2, 4).T, out, 0)"),
    "read_only": launched("out.flags.writeable = False\ncopy[1, None](x, out, 0)"),
    "masked": launched("copy[1, None](np.ma.masked_array(x, x > 1), out, 0)"),
    "float_for_index": launched("copy[1, None](x, out, 1.0)"),
    "true_for_index": launched("copy[1, None](x, out, True)"),
    "array_for_index": launched("copy[1, None](x, out, x)"),
    "index_out_of_range": launched("copy[1, None](x, out, 2**63)"),
}
