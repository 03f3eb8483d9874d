"""`tilewright.debug`: programs as text that torch runs, to be read and compared."""

from tilewright.programs.torch_text.codegen import torch_codegen
from tilewright.programs.torch_text.validate import validate_pass_ir_codegen_results

__all__ = ["torch_codegen", "validate_pass_ir_codegen_results"]
